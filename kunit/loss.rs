// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Protects: a connection that is lost is given up, once, and as soon as it is up where it was lost
//! before that; one that is being closed is not given up again; the next one is not delayed where
//! the server was waited for.

use super::*;
use crate::{
    client::xprt::ClientXprt,
    kapi::sunrpc::Unmounted,
    kunit::{
        claim,
        same, //
    },
};

/// The loss of a new connection of this mount.
fn loss(mount: &Unmounted<ClientXprt>) -> Result<Arc<LossNotifier>> {
    let xprt = mount.transport()?.state().xprt.clone();
    LossNotifier::new(xprt, SocketAddress::for_test(1))
}

#[kunit_tests(rpcrdma_loss)]
mod suite {
    use super::*;

    #[test]
    fn what_is_up_and_lost_is_closed() -> Result {
        let mount = Unmounted::new()?;
        let loss = loss(&mount)?;
        loss.enable();
        claim(!mount.was_to_close(), "nothing is lost")?;
        loss.lost(CmEventKind::Disconnected);
        claim(mount.was_to_close(), "it is lost")
    }

    #[test]
    fn what_is_lost_before_it_is_up_is_closed_then() -> Result {
        let mount = Unmounted::new()?;
        let loss = loss(&mount)?;
        loss.lost(CmEventKind::DeviceRemoval);
        // There is nothing to close: the attempt may fail yet.
        claim(!mount.was_to_close(), "it is not up")?;
        loss.enable();
        claim(mount.was_to_close(), "it is up, and lost")
    }

    #[test]
    fn a_loss_is_told_once() -> Result {
        let mount = Unmounted::new()?;
        let loss = loss(&mount)?;
        loss.enable();
        let mut told = 0;
        for reason in [
            LossReason::BadMessage,
            LossReason::NotPosted,
            LossReason::Overdue,
        ] {
            loss.report(reason);
            told += u32::from(mount.was_to_close());
        }
        same("told", told, 1)
    }

    #[test]
    fn what_is_being_closed_is_left_alone() -> Result {
        let mount = Unmounted::new()?;
        let loss = loss(&mount)?;
        loss.enable();
        loss.disable();
        loss.lost(CmEventKind::Disconnected);
        claim(!mount.was_to_close(), "its end is no news")
    }

    #[test]
    fn waiting_for_a_server_is_delay_enough() -> Result {
        let mount = Unmounted::<ClientXprt>::new()?;
        let xprt = mount.transport()?.state().xprt.clone();
        let lose = |reason| {
            xprt.increase_backoff();
            let loss = loss(&mount)?;
            loss.enable();
            loss.report(reason);
            Ok::<_, Error>(mount.backoff())
        };
        let first = lose(LossReason::BadMessage)?;
        claim(first > 0, "a bad message is followed by a delay")?;
        let closed = LossReason::Event(CmEventKind::Disconnected);
        same("when the server closes it", lose(closed)?, 2 * first)?;
        for reason in [
            LossReason::Overdue,
            LossReason::Silent,
            LossReason::NoCredits,
        ] {
            same("without an answer", lose(reason)?, 0)?;
        }
        Ok(())
    }
}
