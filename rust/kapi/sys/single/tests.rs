// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Protects: what is registered with the kernel once cannot be registered, nor written to, again.

use crate::{
    kapi::sys::single::*,
    kunit::claim, //
};

static THING: Single = Single::new();

#[kunit_tests(rpcrdma_single)]
mod suite {
    use super::*;

    #[test]
    fn one_owner_at_a_time() -> Result {
        let first = THING.take()?;
        claim(
            THING.take().err() == Some(EBUSY),
            "a second owner is refused",
        )?;
        drop(first);
        drop(THING.take()?);
        Ok(())
    }
}
