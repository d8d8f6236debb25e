// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! The marks that the counting plugin looks for: `nopl disp32(%rax,%rax,1)`, whose displacement is the mark's number,
//! and then "RPC".

use std::arch::asm;

/// From here on it counts.
pub(crate) fn begin() {
    // SAFETY: the instruction does nothing.
    unsafe {
        asm!(
            ".byte 0x0f, 0x1f, 0x84, 0x00, 0x01, 0x52, 0x50, 0x43",
            options(nostack, preserves_flags)
        );
    }
}

/// Until here.
pub(crate) fn end() {
    // SAFETY: as above.
    unsafe {
        asm!(
            ".byte 0x0f, 0x1f, 0x84, 0x00, 0x02, 0x52, 0x50, 0x43",
            options(nostack, preserves_flags)
        );
    }
}
