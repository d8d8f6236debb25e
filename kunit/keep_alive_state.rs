// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Protects: a server that is heard is never asked, one that is silent is asked once, and one that
//! does not answer in time is given up, and not before.

use super::*;
use crate::kunit::{
    claim,
    same, //
};
use kernel::prelude::*;

const INTERVAL: Jiffies = 3 * HZ;

/// What is to be done after another interval.
fn next(watch: &KeepAliveState) -> ProbeAction {
    next_after(watch, INTERVAL)
}

/// What is to be done when so much time has passed.
fn next_after(watch: &KeepAliveState, passed: Jiffies) -> ProbeAction {
    watch.next_action(passed, Some(INTERVAL))
}

/// A connection that was silent for an interval, whose server is to be asked.
fn silent() -> Result<KeepAliveState> {
    let watch = KeepAliveState::new();
    same("new", next(&watch), ProbeAction::Wait)?;
    same("silent", next(&watch), ProbeAction::Ask)?;
    Ok(watch)
}

#[kunit_tests(rpcrdma_keep_alive)]
mod suite {
    use super::*;

    #[test]
    fn a_server_that_is_heard_is_left_alone() -> Result {
        let watch = KeepAliveState::new();
        same("new", next(&watch), ProbeAction::Wait)?;
        for _ in 0..3 {
            watch.heard();
            same("heard", next(&watch), ProbeAction::Wait)?;
        }
        Ok(())
    }

    #[test]
    fn a_server_in_doubt_is_asked_at_once_and_given_up_soon() -> Result {
        let watch = KeepAliveState::new();
        watch.doubt();
        // It says something, or has since the last look.
        same("heard", next_after(&watch, 1), ProbeAction::Wait)?;
        claim(!watch.is_doubted(), "it is there")?;
        watch.doubt();
        let never = |passed| watch.next_action(passed, None);
        same("in doubt", never(1), ProbeAction::Ask)?;
        watch.asked();
        same("asked", never(10 * HZ - 1), ProbeAction::Wait)?;
        same("no answer", never(1), ProbeAction::GiveUp)?;
        watch.heard();
        same("an answer", never(1), ProbeAction::Wait)?;
        claim(!watch.is_doubted(), "it is there after all")
    }

    #[test]
    fn a_silence_is_as_long_as_the_interval_says() -> Result {
        let watch = KeepAliveState::new();
        same("new", next(&watch), ProbeAction::Wait)?;
        same("half", next_after(&watch, INTERVAL / 2), ProbeAction::Wait)?;
        same("whole", next_after(&watch, INTERVAL / 2), ProbeAction::Ask)?;
        watch.heard();
        same("heard", next(&watch), ProbeAction::Wait)?;
        same(
            "half again",
            next_after(&watch, INTERVAL / 2),
            ProbeAction::Wait,
        )?;
        same(
            "never",
            watch.next_action(100 * INTERVAL, None),
            ProbeAction::Wait,
        )
    }

    #[test]
    fn a_server_that_does_not_answer_has_its_time() -> Result {
        let watch = silent()?;
        watch.asked();
        let mut waited = INTERVAL;
        while waited < 60 * HZ {
            same("asked", next(&watch), ProbeAction::Wait)?;
            waited += INTERVAL;
        }
        same("no answer", next(&watch), ProbeAction::GiveUp)
    }

    #[test]
    fn an_answer_is_a_sign_of_life() -> Result {
        let watch = silent()?;
        watch.asked();
        watch.heard();
        same("answered", next(&watch), ProbeAction::Wait)?;
        same("silent", next(&watch), ProbeAction::Ask)
    }

    #[test]
    fn a_server_that_could_not_be_asked_is_asked_later() -> Result {
        let watch = silent()?;
        same("still", next(&watch), ProbeAction::Ask)
    }

    #[test]
    fn other_replies_are_signs_of_life_too() -> Result {
        let watch = silent()?;
        watch.asked();
        same(
            "asked",
            next_after(&watch, PROBE_TIMEOUT / 2),
            ProbeAction::Wait,
        )?;
        watch.heard();
        same("heard", next(&watch), ProbeAction::Wait)?;
        // The probe may have been dropped.
        same("silent again", next(&watch), ProbeAction::Ask)?;
        watch.asked();
        same(
            "asked",
            next_after(&watch, PROBE_TIMEOUT / 2),
            ProbeAction::Wait,
        )?;
        same(
            "no answer",
            next_after(&watch, PROBE_TIMEOUT),
            ProbeAction::GiveUp,
        )
    }

    #[test]
    fn a_question_is_followed_up_whatever_the_tunable_says() -> Result {
        let watch = silent()?;
        watch.asked();
        same(
            "no answer",
            watch.next_action(PROBE_TIMEOUT, None),
            ProbeAction::GiveUp,
        )
    }

    #[test]
    fn the_first_rpc_after_a_look_without_any_is_told() -> Result {
        let watch = KeepAliveState::new();
        claim(!watch.was_idle(), "there were some")?;
        watch.set_idle(true);
        claim(watch.was_idle(), "there were none")?;
        claim(!watch.was_idle(), "the next is not the first")?;
        watch.set_idle(true);
        watch.set_idle(false);
        claim(!watch.was_idle(), "there are some again")
    }

    #[test]
    fn time_passes_from_look_to_look() -> Result {
        let watch = KeepAliveState::new();
        let long = 1000 * INTERVAL;
        let before = time::jiffies().wrapping_sub(long);
        watch.looked.store(before, Relaxed);
        claim(watch.elapsed() >= long, "it was long ago")?;
        claim(watch.elapsed() < long, "it was just now")
    }
}
