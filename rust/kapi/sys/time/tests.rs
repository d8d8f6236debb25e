// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Protects: of two moments the earlier one is known, also when the counter wraps between them.

use crate::{
    kapi::sys::time::*,
    kunit::claim, //
};
use kernel::prelude::*;

/// Half of the counter's range.
const HALF: Jiffies = Jiffies::MAX / 2 + 1;

#[kunit_tests(rpcrdma_time)]
mod suite {
    use super::*;

    #[test]
    fn the_earlier_comes_before_the_later() -> Result {
        for earlier in [0, 1, HALF, Jiffies::MAX - 1, Jiffies::MAX] {
            claim(!is_before(earlier, earlier), "not before itself")?;
            for distance in [1, 2, 1000, HALF - 1] {
                let later = earlier.wrapping_add(distance);
                claim(is_before(earlier, later), "it is before")?;
                claim(!is_before(later, earlier), "it is behind")?;
            }
            let opposite = earlier.wrapping_add(HALF);
            claim(!is_before(earlier, opposite), "that cannot be known")?;
        }
        Ok(())
    }

    #[test]
    fn the_time_since_then_goes_on_when_the_counter_wraps() -> Result {
        for passed in [0, 1, HALF] {
            let start = jiffies().wrapping_sub(passed);
            claim(since(start) >= passed, "it has passed")?;
        }
        Ok(())
    }
}
