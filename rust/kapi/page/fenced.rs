// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! That no peer can reach memory.

/// Proof that no peer can reach memory of an RPC (RFC 8166, section 4.4.1).
pub(crate) struct Fenced(());

impl Fenced {
    /// # Safety
    ///
    /// No region may cover memory of the RPC with a registration that was or may have been posted, unless it was
    /// invalidated since, or taken from the device.
    #[inline]
    pub(in crate::kapi) unsafe fn new() -> Self {
        Self(())
    }
}
