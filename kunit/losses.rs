// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Protects: each reason has a count of its own, and none is lost where there are too many of them.

use super::*;
use crate::kunit::{
    claim,
    same, //
};
use kernel::prelude::*;

#[kunit_tests(rpcrdma_losses)]
mod suite {
    use super::*;

    #[test]
    fn each_reason_has_its_count() -> Result {
        let mut losses = Losses::new();
        claim(losses.iter().next().is_none(), "nothing was lost")?;
        for why in ["a", "b", "a"] {
            losses.count(why);
        }
        let mut counted = losses.iter();
        same("the first", counted.next(), Some(("a", 2)))?;
        same("the second", counted.next(), Some(("b", 1)))?;
        same("others", counted.next(), None)
    }

    #[test]
    fn what_has_no_place_is_counted_with_others() -> Result {
        const WORDS: &str = "abcdefghijklmnopqrstuvwxyz";
        let mut losses = Losses::new();
        // The first and the last ones twice.
        for at in [0..26, 20..26, 0..1].into_iter().flatten() {
            losses.count(WORDS.get(at..at + 1).ok_or(EINVAL)?);
        }
        let of = |why| losses.iter().find(|(words, _)| *words == why);
        same("the first", of("a"), Some(("a", 2)))?;
        same("the last with a place", of("l"), Some(("l", 1)))?;
        same("the first without", of("m"), None)?;
        let all: u32 = losses.iter().map(|(_, count)| count).sum();
        same("all", all, 33)?;
        same("others", of("other reasons"), Some(("other reasons", 20)))
    }
}
