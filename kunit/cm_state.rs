// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Protects: an id that was lost is never taken for one that is up, whatever event comes when, and
//! whoever must know of the loss hears of it once it was up.

use super::*;
use crate::kunit::{
    claim,
    same, //
};
use kernel::sync::atomic::{
    Atomic,
    Relaxed, //
};

/// Counts losses.
struct Losses(Atomic<u32>);

impl OnLost for Losses {
    fn lost(&self, _event: CmEventKind) {
        self.0.fetch_add(1, Relaxed);
    }
}

fn new_state() -> Result<Arc<CmState<Losses>>> {
    CmState::new(Losses(Atomic::new(0)))
}

fn losses(cm: &CmState<Losses>) -> u32 {
    cm.on_lost.0.load(Relaxed)
}

/// Those that end an id, each with what an attempt fails with.
const ENDS: [(CmEventKind, i32, Error); 14] = [
    (CmEventKind::AddressError, -19, EPROTO),
    (CmEventKind::AddressError, 0, EPROTO),
    (CmEventKind::AddressError, -100, ENETUNREACH),
    (CmEventKind::AddressError, -101, ENETUNREACH),
    (CmEventKind::AddressError, -110, EHOSTUNREACH),
    (CmEventKind::AddressError, -113, EHOSTUNREACH),
    // A server that is silent for a while is no end of a network.
    (CmEventKind::RouteError, 0, EHOSTUNREACH),
    (CmEventKind::Unreachable, 0, EHOSTUNREACH),
    (CmEventKind::ConnectError, 0, ENOTCONN),
    (CmEventKind::Stale, 10, ENOTCONN),
    (CmEventKind::Rejected, 8, ECONNREFUSED),
    (CmEventKind::Disconnected, 0, ECONNABORTED),
    (CmEventKind::DeviceRemoval, 0, ENODEV),
    (CmEventKind::AddressChange, 0, ENODEV),
];

const STEPS: [CmEventKind; 3] = [
    CmEventKind::AddressResolved,
    CmEventKind::RouteResolved,
    CmEventKind::Established,
];

#[kunit_tests(rpcrdma_cm_state)]
mod suite {
    use super::*;

    #[test]
    fn each_step_ends_with_its_event() -> Result {
        let cm = new_state()?;
        for kind in STEPS {
            let step = || {
                cm.handle(kind, 0, &[]);
                Ok(())
            };
            same("step", cm.wait_step(1, step), Ok(()))?;
        }
        same("losses", losses(&cm), 0)
    }

    #[test]
    fn an_event_of_an_earlier_step_does_not_end_the_next() -> Result {
        let cm = new_state()?;
        cm.handle(CmEventKind::AddressResolved, 0, &[]);
        same("step", cm.wait_step(1, || Ok(())), Err(EHOSTUNREACH))
    }

    #[test]
    fn an_event_that_is_none_of_ours_ends_no_step() -> Result {
        let cm = new_state()?;
        let step = || {
            cm.handle(CmEventKind::Other, 0, &[]);
            Ok(())
        };
        same("step", cm.wait_step(1, step), Err(EHOSTUNREACH))
    }

    #[test]
    fn an_attempt_fails_with_the_error_that_users_know() -> Result {
        for (kind, status, error) in ENDS {
            let cm = new_state()?;
            let step = || {
                cm.handle(kind, status, &[]);
                Ok(())
            };
            same("step", cm.wait_step(1, step), Err(error))?;
            same("losses before it is up", losses(&cm), 0)?;
        }
        Ok(())
    }

    #[test]
    fn what_is_over_stays_so() -> Result {
        for (kind, status, error) in ENDS {
            for late in STEPS {
                let cm = new_state()?;
                cm.handle(kind, status, &[]);
                cm.handle(late, 0, &[]);
                let mut asked = false;
                let step = || {
                    asked = true;
                    Ok(())
                };
                same("step", cm.wait_step(1, step), Err(error))?;
                claim(!asked, "the connection manager is asked for nothing more")?;
                same("losses", losses(&cm), 0)?;
            }
        }
        Ok(())
    }

    #[test]
    fn the_first_end_counts() -> Result {
        let cm = new_state()?;
        cm.handle(CmEventKind::DeviceRemoval, 0, &[]);
        cm.handle(CmEventKind::Disconnected, 0, &[]);
        same("step", cm.wait_step(1, || Ok(())), Err(ENODEV))
    }

    #[test]
    fn the_loss_of_what_was_up_is_told_once() -> Result {
        for (kind, status, _) in ENDS {
            let cm = new_state()?;
            cm.handle(CmEventKind::Established, 0, &[]);
            cm.handle(kind, status, &[]);
            cm.handle(kind, status, &[]);
            same("losses", losses(&cm), 1)?;
        }
        Ok(())
    }

    #[test]
    fn its_status_says_how_far_it_has_come() -> Result {
        let cm = new_state()?;
        same("on its way", cm.status(), 0)?;
        cm.handle(CmEventKind::Established, 0, &[]);
        same("up", cm.status(), 1)?;
        cm.handle(CmEventKind::Disconnected, 0, &[]);
        same("over", cm.status(), ECONNABORTED.to_errno())
    }

    #[test]
    fn what_the_peer_says_of_itself_is_known() -> Result {
        let mut said = [0; PrivateData::MAX_SIZE];
        let wrong = |_| EINVAL;
        PrivateData::DEFAULT.encode(&mut said).map_err(wrong)?;
        let cm = new_state()?;
        cm.handle(CmEventKind::Established, 0, &said);
        same("the peer", cm.peer(), Some(PrivateData::DEFAULT))
    }

    #[test]
    fn private_data_that_is_none_is_not_known() -> Result {
        let cm = new_state()?;
        cm.handle(CmEventKind::Established, 0, &[0; 56]);
        claim(cm.peer().is_none(), "the peer has said nothing")
    }
}
