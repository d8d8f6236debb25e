// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! What can never be.

use crate::kapi::bindings;

/// Writes a warning with the stack to the log if something can never be, and is. That of the kernel
/// crate wants a file which headers alone do not have.
#[inline]
pub(in crate::kapi) fn warn_if(is: bool) {
    if is {
        // SAFETY: It may be called anywhere.
        unsafe { bindings::warn() };
    }
}
