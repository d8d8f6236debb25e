// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Protects: a server that is heard is never asked, one that is silent is asked once, and one that
//! does not answer in time is given up, and not before.

use super::*;
use crate::kunit::{
    claim,
    same, //
};

const INTERVAL: Jiffies = 3 * HZ;

/// What is to be done after another interval.
fn turn(watch: &Watch) -> Turn {
    turn_after(watch, INTERVAL)
}

/// What is to be done when so much time has passed.
fn turn_after(watch: &Watch, passed: Jiffies) -> Turn {
    watch.turn(passed, Some(INTERVAL))
}

/// A connection that was silent for an interval, whose server is to be asked.
fn silent() -> Result<Watch> {
    let watch = Watch::new();
    same("new", turn(&watch), Turn::Wait)?;
    same("silent", turn(&watch), Turn::Ask)?;
    Ok(watch)
}

#[kunit_tests(rpcrdma_keep_alive)]
mod suite {
    use super::*;

    #[test]
    fn a_server_that_is_heard_is_left_alone() -> Result {
        let watch = Watch::new();
        same("new", turn(&watch), Turn::Wait)?;
        for _ in 0..3 {
            watch.heard();
            same("heard", turn(&watch), Turn::Wait)?;
        }
        Ok(())
    }

    #[test]
    fn a_silence_is_as_long_as_the_interval_says() -> Result {
        let watch = Watch::new();
        same("new", turn(&watch), Turn::Wait)?;
        same("half", turn_after(&watch, INTERVAL / 2), Turn::Wait)?;
        same("whole", turn_after(&watch, INTERVAL / 2), Turn::Ask)?;
        watch.heard();
        same("heard", turn(&watch), Turn::Wait)?;
        same("half again", turn_after(&watch, INTERVAL / 2), Turn::Wait)?;
        same("never", watch.turn(100 * INTERVAL, None), Turn::Wait)
    }

    #[test]
    fn a_server_that_does_not_answer_has_its_time() -> Result {
        let watch = silent()?;
        watch.asked();
        let mut waited = INTERVAL;
        while waited < PATIENCE {
            same("asked", turn(&watch), Turn::Wait)?;
            waited += INTERVAL;
        }
        same("no answer", turn(&watch), Turn::GiveUp)
    }

    #[test]
    fn an_answer_is_a_sign_of_life() -> Result {
        let watch = silent()?;
        watch.asked();
        watch.heard();
        same("answered", turn(&watch), Turn::Wait)?;
        same("silent", turn(&watch), Turn::Ask)
    }

    #[test]
    fn a_server_that_could_not_be_asked_is_asked_later() -> Result {
        let watch = silent()?;
        same("still", turn(&watch), Turn::Ask)
    }

    #[test]
    fn other_replies_are_signs_of_life_too() -> Result {
        let watch = silent()?;
        watch.asked();
        same("asked", turn_after(&watch, PATIENCE / 2), Turn::Wait)?;
        watch.heard();
        same("heard", turn(&watch), Turn::Wait)?;
        // The probe may have been dropped.
        same("silent again", turn(&watch), Turn::Ask)?;
        watch.asked();
        same("asked", turn_after(&watch, PATIENCE / 2), Turn::Wait)?;
        same("no answer", turn_after(&watch, PATIENCE), Turn::GiveUp)
    }

    #[test]
    fn a_question_is_followed_up_whatever_the_tunable_says() -> Result {
        let watch = silent()?;
        watch.asked();
        same("no answer", watch.turn(PATIENCE, None), Turn::GiveUp)
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
