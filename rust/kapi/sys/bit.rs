// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Bits of words that others change.
//!
//! C header: [`include/linux/bitops.h`](srctree/include/linux/bitops.h)

use kernel::ffi::c_ulong;

/// Returns whether a bit is set; orders nothing.
///
/// # Safety
///
/// `word` must be valid. It may be changed meanwhile, as a whole.
#[inline]
pub(in crate::kapi) unsafe fn test_bit(bit: u32, word: *const c_ulong) -> bool {
    // SAFETY: The word is valid, as the caller promises; a volatile read of a word is one access.
    let word = unsafe { word.read_volatile() };
    word & (1 << bit) != 0
}

#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
mod tests;
