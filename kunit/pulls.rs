// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Protects: a Reply that waits for regions of the device's is tried again, however those that had
//! them came and went, and only one that had all of them to itself is given up.

use super::*;
use crate::kunit::{
    claim,
    same, //
};

#[kunit_tests(rpcrdma_pulls)]
mod suite {
    use super::*;

    #[test]
    fn one_that_was_alone_will_never_do() -> Result {
        let mut pulls = Pulls::<u32>::new(4)?;
        let begun = pulls.begin();
        same("given up", pulls.wait(&begun, 1), Err(1))?;
        same("next", pulls.end(), None)
    }

    #[test]
    fn it_is_tried_when_another_ends() -> Result {
        let mut pulls = Pulls::<u32>::new(4)?;
        pulls.begin();
        for one in 1..3 {
            let begun = pulls.begin();
            same("waits", pulls.wait(&begun, one), Ok(None))?;
        }
        same("next", pulls.end(), Some(1))?;
        // It was alone, which is no reason to forget the other.
        let begun = pulls.begin();
        same("given up", pulls.wait(&begun, 1), Err(1))?;
        same("next", pulls.end(), Some(2))?;
        pulls.begin();
        same("none waits", pulls.end(), None)
    }

    #[test]
    fn one_that_is_not_wanted_any_more_is_found_among_those_that_wait() -> Result {
        let mut pulls = Pulls::<u32>::new(4)?;
        pulls.begin();
        for one in 1..4 {
            let begun = pulls.begin();
            same("waits", pulls.wait(&begun, one), Ok(None))?;
        }
        same("even", pulls.take_one(|one| one % 2 == 0), Some(2))?;
        same("another", pulls.take_one(|one| one % 2 == 0), None)?;
        same("the first", pulls.end(), Some(1))?;
        same("the last", pulls.end(), Some(3))
    }

    #[test]
    fn two_that_were_in_each_others_way_are_both_tried() -> Result {
        let mut pulls = Pulls::<u32>::new(4)?;
        let (first, second) = (pulls.begin(), pulls.begin());
        same("waits", pulls.wait(&first, 1), Ok(None))?;
        same("is tried", pulls.wait(&second, 2), Ok(Some(1)))?;
        pulls.begin();
        same("then", pulls.end(), Some(2))?;
        pulls.begin();
        same("none waits", pulls.end(), None)
    }

    #[test]
    fn the_first_that_was_refused_is_to_blame() -> Result {
        let mut pulls = Pulls::<u32>::new(4)?;
        claim(!pulls.was_refused(0), "none was")?;
        pulls.refuse(7);
        pulls.refuse(8);
        let found = [7, 8].map(|xid| pulls.was_refused(xid));
        same("refused", found, [true, false])
    }

    #[test]
    fn those_that_wait_come_back_at_the_end() -> Result {
        let mut pulls = Pulls::<u32>::new(4)?;
        pulls.begin();
        let begun = pulls.begin();
        same("waits", pulls.wait(&begun, 1), Ok(None))?;
        let mut waiting = pulls.take_waiting();
        same("the one", waiting.pop(), Some(1))?;
        same("is left", pulls.end(), None)
    }

    #[test]
    fn one_that_began_alone_and_met_another_is_tried_again() -> Result {
        let mut pulls = Pulls::<u32>::new(4)?;
        let first = pulls.begin();
        pulls.begin();
        same("the other ends", pulls.end(), None)?;
        same("is tried", pulls.wait(&first, 1), Ok(Some(1)))?;
        let alone = pulls.begin();
        claim(pulls.wait(&alone, 1).is_err(), "not for ever")
    }
}
