// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Protects: the server may use all the credits that it was granted for its Calls, and some more,
//! but not without end.

use super::*;
use crate::kunit::{
    claim,
    same, //
};

#[kunit_tests(rpcrdma_reverse)]
mod suite {
    use super::*;

    #[test]
    fn as_many_calls_as_can_be_kept() -> Result {
        let mut reverse = ReverseCalls::new()?;
        let mut came = 0;
        while came <= 2 * MOST && reverse.came() {
            came += 1;
        }
        claim(came > REVERSE_SLOTS, "more than were granted")?;
        same("calls", came, REVERSE_SLOTS + RECEIVE_BATCH)?;
        claim(!reverse.came(), "still none more")?;
        claim(reverse.waiting.capacity() >= came as usize, "room for all")
    }

    #[test]
    fn an_answer_makes_room_for_one_call() -> Result {
        let mut reverse = ReverseCalls::new()?;
        for _ in 0..MOST {
            claim(reverse.came(), "kept")?;
        }
        reverse.answered();
        claim(reverse.came(), "one more")?;
        claim(!reverse.came(), "and no other")
    }

    #[test]
    fn more_answers_than_calls_make_no_room() -> Result {
        let mut reverse = ReverseCalls::new()?;
        reverse.answered();
        same("unanswered", reverse.unanswered, 0)
    }

    #[test]
    fn what_is_unanswered_is_known() -> Result {
        let mut reverse = ReverseCalls::new()?;
        claim(!reverse.any(), "none came")?;
        claim(reverse.came(), "kept")?;
        claim(reverse.any(), "one came")?;
        same("Receives that wait with it", reverse.kept(), 0)?;
        reverse.answered();
        claim(!reverse.any(), "it is answered")
    }
}
