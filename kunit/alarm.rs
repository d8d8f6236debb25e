// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Protects: a connection that is lost is given up, once, and as soon as it is up where it was lost
//! before that; one that is being closed is not given up again; the next one is not delayed where the
//! server was waited for.

use super::*;
use crate::{
    kapi::sunrpc::Unmounted,
    kunit::{
        claim,
        same, //
    },
};

/// The alarm of a new connection of this mount.
fn alarm(mount: &Unmounted<Mount>) -> Result<Arc<Alarm>> {
    let xprt = mount.transport()?.shared().xprt.clone();
    Alarm::new(xprt, SocketAddress::for_test(1))
}

#[kunit_tests(rpcrdma_alarm)]
mod suite {
    use super::*;

    #[test]
    fn what_is_up_and_lost_is_closed() -> Result {
        let mount = Unmounted::new()?;
        let alarm = alarm(&mount)?;
        alarm.arm();
        claim(!mount.was_to_close(), "nothing is lost")?;
        alarm.lost(CmEventKind::Disconnected);
        claim(mount.was_to_close(), "it is lost")
    }

    #[test]
    fn what_is_lost_before_it_is_up_is_closed_then() -> Result {
        let mount = Unmounted::new()?;
        let alarm = alarm(&mount)?;
        alarm.lost(CmEventKind::DeviceRemoval);
        // There is nothing to close: the attempt may fail yet.
        claim(!mount.was_to_close(), "it is not up")?;
        alarm.arm();
        claim(mount.was_to_close(), "it is up, and lost")
    }

    #[test]
    fn a_loss_is_told_once() -> Result {
        let mount = Unmounted::new()?;
        let alarm = alarm(&mount)?;
        alarm.arm();
        let mut told = 0;
        for reason in [Reason::BadMessage, Reason::NotPosted, Reason::Overdue] {
            alarm.raise(reason);
            told += u32::from(mount.was_to_close());
        }
        same("told", told, 1)
    }

    #[test]
    fn what_is_being_closed_is_left_alone() -> Result {
        let mount = Unmounted::new()?;
        let alarm = alarm(&mount)?;
        alarm.arm();
        alarm.silence();
        alarm.lost(CmEventKind::Disconnected);
        claim(!mount.was_to_close(), "its end is no news")
    }

    #[test]
    fn waiting_for_a_server_is_delay_enough() -> Result {
        let mount = Unmounted::<Mount>::new()?;
        let xprt = mount.transport()?.shared().xprt.clone();
        let lose = |reason| {
            xprt.increase_backoff();
            let alarm = alarm(&mount)?;
            alarm.arm();
            alarm.raise(reason);
            Ok::<_, Error>(mount.backoff())
        };
        let first = lose(Reason::BadMessage)?;
        claim(first > 0, "a bad message is followed by a delay")?;
        let closed = Reason::Event(CmEventKind::Disconnected);
        same("when the server closes it", lose(closed)?, 2 * first)?;
        for reason in [Reason::Overdue, Reason::Silent, Reason::NoCredits] {
            same("without an answer", lose(reason)?, 0)?;
        }
        Ok(())
    }
}
