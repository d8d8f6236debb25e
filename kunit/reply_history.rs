// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Protects: whether a Reply is long is learnt from the latest of its kind, and of that alone; the
//! memory of it is bounded, and keeps the kinds that are asked for.

use super::*;
use crate::kunit::{
    claim,
    same, //
};

const READDIR: Kind = Kind {
    program: 100_003,
    version: 4,
    procedure: 30,
    class: 15,
};

/// A kind for each procedure.
fn kind(procedure: u32) -> Kind {
    Kind {
        procedure,
        ..READDIR
    }
}

/// Each value of a sequence that looks like any.
struct Random(u32);

impl Random {
    fn next(&mut self) -> u32 {
        // A linear congruential generator (Numerical Recipes, section 7.1).
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        self.0 >> 16
    }
}

#[kunit_tests(rpcrdma_reply_history)]
mod suite {
    use super::*;

    #[test]
    fn the_first_reply_tells() -> Result {
        for (long, expected) in [(true, Expected::Long), (false, Expected::Short)] {
            let mut history = ReplyHistory::new()?;
            same("before", history.expected(&READDIR), Expected::Unknown)?;
            history.replied(&READDIR, long);
            same("after", history.expected(&READDIR), expected)?;
        }
        Ok(())
    }

    #[test]
    fn nothing_large_is_pulled_that_nobody_knows() -> Result {
        let mut history = ReplyHistory::new()?;
        for (room, expected) in [
            (64 << 10, Expected::Unknown),
            ((128 << 10) - 1, Expected::Unknown),
            (128 << 10, Expected::Long),
            (1 << 20, Expected::Long),
        ] {
            let class = Kind::class_of(room);
            let large = Kind { class, ..READDIR };
            same("at first", history.expected(&large), expected)?;
        }
        let large = Kind {
            class: Kind::class_of(1 << 20),
            ..READDIR
        };
        history.replied(&large, false);
        same("then", history.expected(&large), Expected::Short)
    }

    #[test]
    fn kinds_are_apart() -> Result {
        let mut history = ReplyHistory::new()?;
        history.replied(&READDIR, true);
        let others = [
            Kind {
                program: 100_227,
                ..READDIR
            },
            Kind {
                version: 3,
                ..READDIR
            },
            kind(31),
            Kind {
                class: 13,
                ..READDIR
            },
        ];
        for other in others {
            same("other", history.expected(&other), Expected::Unknown)?;
            history.replied(&other, false);
            same("it", history.expected(&READDIR), Expected::Long)?;
            same("other", history.expected(&other), Expected::Short)?;
        }
        Ok(())
    }

    #[test]
    fn a_few_do_not_change_it_and_many_do() -> Result {
        for long in [true, false] {
            let (then, now) = match long {
                true => (Expected::Short, Expected::Long),
                false => (Expected::Long, Expected::Short),
            };
            let mut history = ReplyHistory::new()?;
            history.replied(&READDIR, !long);
            for _ in 0..4 {
                history.replied(&READDIR, long);
                same("a few", history.expected(&READDIR), then)?;
            }
            for _ in 4..8 {
                history.replied(&READDIR, long);
            }
            same("many", history.expected(&READDIR), now)?;
            // And it stays so, however many there are.
            for _ in 0..1000 {
                history.replied(&READDIR, long);
                same("all", history.expected(&READDIR), now)?;
            }
        }
        Ok(())
    }

    #[test]
    fn one_that_had_no_room_is_offered_some_behind_a_short_one() -> Result {
        for before in [0, 1, 100] {
            let mut history = ReplyHistory::new()?;
            for _ in 0..before {
                history.replied(&READDIR, false);
            }
            history.refused(&READDIR);
            for _ in 0..2 {
                same("refused", history.expected(&READDIR), Expected::Long)?;
                history.replied(&READDIR, false);
            }
        }
        Ok(())
    }

    #[test]
    fn it_follows_the_share_of_long_ones() -> Result {
        let mut random = Random(1);
        for percent in [0, 5, 15, 85, 95, 100] {
            let mut history = ReplyHistory::new()?;
            let mut long_expected = 0;
            for i in 0..1200 {
                let long = random.next() % 100 < percent;
                history.replied(&READDIR, long);
                let expected = history.expected(&READDIR);
                claim(expected != Expected::Unknown, "it is known")?;
                long_expected += u32::from(i >= 200 && expected == Expected::Long);
            }
            // Of a thousand, by chance not quite all.
            let right = match percent < 50 {
                true => 1000 - long_expected,
                false => long_expected,
            };
            claim(right >= 980, "as the share says")?;
        }
        Ok(())
    }

    #[test]
    fn so_many_kinds_are_kept_as_are_asked_for() -> Result {
        let mut history = ReplyHistory::new()?;
        for i in 0..10 * KINDS as u32 {
            history.expected(&kind(i));
            history.replied(&kind(i), true);
            // These two are in use all the time.
            for used in [0, 1] {
                let expected = history.expected(&kind(used));
                same("used", expected == Expected::Unknown, i < used)?;
            }
            claim(history.records.len() <= KINDS, "it is bounded")?;
        }
        let mut known = 0;
        for i in 0..10 * KINDS as u32 {
            let expected = history.expected(&kind(i));
            known += usize::from(expected != Expected::Unknown);
        }
        same("kinds", known, KINDS)?;
        let last = history.expected(&kind(10 * KINDS as u32 - 1));
        same("the latest", last, Expected::Long)
    }
}
