// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Bytes that stay where they are.

use core::ptr::NonNull;

/// Has bytes that others may point to, and change.
///
/// # Safety
///
/// The bytes must stay where they are, and nobody else's, as long as the value lives, even if it is
/// moved.
pub(crate) unsafe trait StableBytes {
    /// Returns where the bytes are. Nobody must look at them by the value while another may change
    /// them.
    fn memory(&self) -> NonNull<[u8]>;
}

// SAFETY: The bytes are those of the first member, which stay by the contract of its own
// implementation. Nobody replaces it: whom the value is handed to gets no exclusive reference to it
// while its bytes are in use.
unsafe impl<M: StableBytes, T> StableBytes for (M, T) {
    fn memory(&self) -> NonNull<[u8]> {
        self.0.memory()
    }
}
