// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Protects: a grant follows what a client uses, up and down, and is never taken back while the
//! client may still go by it.

use super::*;
use crate::kunit::{
    claim,
    same, //
};
use kernel::prelude::*;

const THREADS: u32 = 8;

/// So many Replies, with so many other messages in use.
fn replies(grant: &mut Grant, n: u32, used: u32, threads: u32) {
    for _ in 0..n {
        if grant.used(used, threads) {
            grant.made(grant.receives(), true);
        }
        grant.advertise();
    }
}

#[kunit_tests(rpcrdma_grant)]
mod suite {
    use super::*;

    #[test]
    fn it_grows_with_use() -> Result {
        let mut grant = Grant::new(128);
        same("first", grant.credits(), 16)?;
        for (used, threads, credits) in [
            (0, 8, 16),
            (7, 8, 16),
            (8, 8, 32),
            (15, 8, 32),
            (16, 8, 64),
            // As many as the threads can keep up with.
            (64, 8, 64),
            (64, 11, 88),
            // As many as there may be.
            (88, 100, 128),
            (128, u32::MAX, 128),
        ] {
            replies(&mut grant, 1, used, threads);
            same("credits", grant.credits(), credits)?;
        }
        Ok(())
    }

    #[test]
    fn it_shrinks_without() -> Result {
        let mut grant = Grant::new(64);
        replies(&mut grant, 10, 64, THREADS);
        same("grown", grant.credits(), 64)?;
        // What was used counts until a period has passed without.
        replies(&mut grant, PERIOD - 10, 0, THREADS);
        same("in the first period", grant.credits(), 64)?;
        replies(&mut grant, PERIOD, 15, THREADS);
        same("half", grant.credits(), 32)?;
        replies(&mut grant, 2 * PERIOD, 8, THREADS);
        same("a quarter is enough", grant.credits(), 32)?;
        replies(&mut grant, 4 * PERIOD, 0, THREADS);
        same("not below the first", grant.credits(), 16)
    }

    #[test]
    fn fewer_threads() -> Result {
        let mut grant = Grant::new(64);
        replies(&mut grant, 10, 64, THREADS);
        replies(&mut grant, PERIOD, 60, 4);
        same("half", grant.credits(), 32)?;
        replies(&mut grant, PERIOD, 30, 1);
        same("less than the first", grant.credits(), 8)?;
        replies(&mut grant, PERIOD, 30, 0);
        same("never none", grant.credits(), 1)
    }

    #[test]
    fn a_small_device() -> Result {
        let mut grant = Grant::new(3);
        same("first", grant.credits(), 3)?;
        replies(&mut grant, 3 * PERIOD, 0, THREADS);
        same("later", grant.credits(), 3)
    }

    #[test]
    fn what_is_being_made_is_not_taken_back() -> Result {
        let mut grant = Grant::new(64);
        claim(grant.used(8, THREADS), "more")?;
        same("not yet", grant.credits(), 16)?;
        same("wanted", grant.receives(), 32 + BESIDE)?;
        claim(!grant.used(16, THREADS), "one at a time")?;
        replies(&mut grant, 2 * PERIOD, 0, THREADS);
        same("wanted still", grant.receives(), 32 + BESIDE)?;
        grant.made(grant.receives(), false);
        let as_before = (16, 16 + BESIDE);
        same("as before", (grant.credits(), grant.receives()), as_before)?;
        claim(grant.used(8, THREADS), "again")?;
        grant.made(grant.receives(), true);
        let granted = (32, 32 + BESIDE);
        same("granted", (grant.credits(), grant.receives()), granted)
    }

    #[test]
    fn receives_stay_until_the_client_knows() -> Result {
        let mut grant = Grant::new(64);
        replies(&mut grant, 10, 64, THREADS);
        same("grown", grant.receives(), 64 + BESIDE)?;
        replies(&mut grant, PERIOD - 10, 0, THREADS);
        while grant.credits() == 64 {
            claim(!grant.used(0, THREADS), "no more")?;
            if grant.credits() == 64 {
                same("nothing is taken back", grant.advertise(), 64)?;
            }
        }
        // The Reply that tells is not posted.
        same("still", grant.receives(), 64 + BESIDE)?;
        same("it is taken back", grant.advertise(), 32)?;
        same("now", grant.receives(), 32 + BESIDE)
    }

    #[test]
    fn the_credit_of_a_dropped_call_comes_back() -> Result {
        let mut grant = Grant::new(64);
        grant.advertise();
        claim(grant.dropped(), "others are left")?;
        same("not before there are Receives", grant.credits(), 16)?;
        same("wanted", grant.receives(), 17 + BESIDE)?;
        grant.made(17 + BESIDE, true);
        same("given back", grant.credits(), 17)?;
        same("nothing is taken back", grant.advertise(), 17)?;
        // It stays so, whatever else becomes of the grant.
        replies(&mut grant, 1, 8, THREADS);
        same("grown", grant.credits(), 33)?;
        replies(&mut grant, 4 * PERIOD, 0, THREADS);
        same("shrunk", grant.credits(), 17)
    }

    #[test]
    fn a_credit_without_receive_does_not_come_back() -> Result {
        let mut grant = Grant::new(64);
        grant.advertise();
        claim(grant.dropped(), "others are left")?;
        grant.made(17 + BESIDE, false);
        same("no memory", grant.credits(), 16)?;
        // Somebody else wants more meanwhile than there is when this one has made what it wanted.
        claim(grant.dropped(), "others are left")?;
        claim(grant.used(8, THREADS), "more")?;
        grant.made(18 + BESIDE, true);
        same("not all", grant.credits(), 16)?;
        grant.made(34 + BESIDE, true);
        same("all", grant.credits(), 34)
    }

    #[test]
    fn no_more_than_the_device_has_room_for() -> Result {
        let mut grant = Grant::new(16);
        grant.advertise();
        for left in (0..16).rev() {
            same("others are left", grant.dropped(), left != 0)?;
            grant.made(grant.receives(), true);
            same(
                "all there are",
                (grant.credits(), grant.receives()),
                (16, 16 + BESIDE),
            )?;
        }
        Ok(())
    }

    #[test]
    fn a_done_has_a_receive_and_no_credit() -> Result {
        let mut grant = Grant::new(64);
        same("told", grant.changed(), Some(16 + BESIDE))?;
        claim(grant.expect_done(1), "one")?;
        claim(!grant.expect_done(1), "and no other")?;
        same("credits", grant.advertise(), 16)?;
        same("wanted", grant.changed(), Some(17 + BESIDE))?;
        same("told once", grant.changed(), None)?;
        // It is not in the way of credits that are being made, nor taken for one.
        claim(grant.used(8, THREADS), "more")?;
        grant.made(31 + BESIDE, true);
        same("not all", grant.credits(), 16)?;
        grant.made(32 + BESIDE, true);
        same("all", grant.credits(), 32)?;
        same("wanted", grant.changed(), Some(33 + BESIDE))?;
        grant.put_done();
        grant.put_done();
        same("not any more", grant.changed(), Some(32 + BESIDE))
    }

    #[test]
    fn a_client_that_was_told_nothing_has_one_credit() -> Result {
        claim(!Grant::new(64).dropped(), "the only one")
    }
}
