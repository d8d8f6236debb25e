// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Protects: a bit that C code sets is the one that is looked at here.

use crate::{
    kapi::{
        bindings,
        sys::bit::*, //
    },
    kunit::claim, //
};
use kernel::prelude::*;

#[kunit_tests(rpcrdma_bit)]
mod suite {
    use super::*;

    #[test]
    fn each_bit_alone() -> Result {
        let mut word: c_ulong = 0;
        for set in 0..c_ulong::BITS {
            // SAFETY: The word is valid.
            unsafe { bindings::set_bit(set as usize, &raw mut word) };
            for bit in 0..c_ulong::BITS {
                // SAFETY: The word is valid.
                let is_set = unsafe { test_bit(bit, &raw const word) };
                claim(is_set == (bit == set), "that bit and no other")?;
            }
            // SAFETY: The word is valid.
            unsafe { bindings::clear_bit(set as usize, &raw mut word) };
        }
        Ok(())
    }
}
