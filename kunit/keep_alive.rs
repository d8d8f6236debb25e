// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Protects: a server that is heard is never asked, one that is silent is asked once, and one that
//! does not answer is given up.

use super::*;
use crate::kunit::{
    claim,
    same, //
};
use kernel::prelude::*;

#[kunit_tests(rpcrdma_keep_alive)]
mod suite {
    use super::*;

    #[test]
    fn a_server_that_is_heard_is_left_alone() -> Result {
        let watch = Watch::new();
        same("new", watch.turn(), Turn::Wait)?;
        for _ in 0..3 {
            watch.heard();
            same("heard", watch.turn(), Turn::Wait)?;
        }
        Ok(())
    }

    #[test]
    fn a_silent_server_is_asked_once_and_given_up() -> Result {
        let watch = Watch::new();
        watch.turn();
        same("silent", watch.turn(), Turn::Ask)?;
        watch.set_probe(Some(7));
        watch.asked();
        same("no answer", watch.turn(), Turn::GiveUp)
    }

    #[test]
    fn an_answer_is_a_sign_of_life() -> Result {
        let watch = Watch::new();
        watch.turn();
        for xid in [0, 7, u32::MAX] {
            same("silent", watch.turn(), Turn::Ask)?;
            watch.set_probe(Some(xid));
            watch.asked();
            watch.heard();
            claim(!watch.answered(xid ^ 1), "another's Reply")?;
            claim(watch.answered(xid), "the answer")?;
            claim(!watch.answered(xid), "is one only once")?;
            same("answered", watch.turn(), Turn::Wait)?;
        }
        Ok(())
    }

    #[test]
    fn a_server_that_could_not_be_asked_is_asked_later() -> Result {
        let watch = Watch::new();
        watch.turn();
        same("silent", watch.turn(), Turn::Ask)?;
        same("still", watch.turn(), Turn::Ask)
    }

    #[test]
    fn other_replies_are_signs_of_life_too() -> Result {
        let watch = Watch::new();
        watch.turn();
        same("silent", watch.turn(), Turn::Ask)?;
        watch.set_probe(Some(7));
        watch.asked();
        watch.heard();
        same("heard", watch.turn(), Turn::Wait)?;
        // The probe is still unanswered: it has its time once more.
        same("silent again", watch.turn(), Turn::Asked)?;
        same("no answer", watch.turn(), Turn::GiveUp)
    }

    #[test]
    fn no_probe_before_the_first_call() -> Result {
        let watch = Watch::new();
        claim(watch.program().is_none(), "no Call")?;
        watch.sending(|| (100003, 3));
        watch.sending(|| (100227, 3));
        same("program", watch.program(), Some((100003, 3)))
    }
}
