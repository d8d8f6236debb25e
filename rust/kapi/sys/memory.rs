// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The memory of the machine.
//!
//! C header: [`include/linux/mm.h`](srctree/include/linux/mm.h)

use crate::kapi::bindings;

/// Pages that the kernel manages. Any context.
pub(crate) fn total_pages() -> usize {
    // SAFETY: Reads a counter; no precondition.
    unsafe { bindings::totalram_pages() }
}
