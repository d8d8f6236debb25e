// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The number of regions that cover memory of an RPC.

use core::ptr::NonNull;
use kernel::sync::atomic::{
    Acquire,
    Atomic,
    Relaxed,
    Release, //
};

/// The number of regions that cover memory of an RPC, which must not be given back before there is
/// none.
pub(in crate::kapi) struct Covers(Atomic<u32>);

impl Covers {
    pub(in crate::kapi) const fn new() -> Self {
        Self(Atomic::new(0))
    }

    /// Returns whether there is none: no peer can reach it (RFC 8166, section 4.4.1).
    pub(in crate::kapi) fn is_none(&self) -> bool {
        self.0.load(Acquire) == 0
    }
}

/// A region covers memory of an RPC, as long as this lives.
///
/// # Invariants
///
/// It is counted there. That is valid as long as it counts any.
pub(in crate::kapi) struct Cover(NonNull<Covers>);

// SAFETY: The count may be used from any thread.
unsafe impl Send for Cover {}

impl Cover {
    /// Counts a region.
    ///
    /// # Safety
    ///
    /// `covers` must be valid now, and as long as it counts any.
    pub(super) unsafe fn new(covers: NonNull<Covers>) -> Self {
        // SAFETY: Valid, as the caller promises.
        unsafe { covers.as_ref() }.0.fetch_add(1, Relaxed);
        // INVARIANT: Counted above.
        Self(covers)
    }
}

impl Drop for Cover {
    fn drop(&mut self) {
        // SAFETY: Valid by the type invariant, until this is not counted any more.
        unsafe { self.0.as_ref() }.0.fetch_sub(1, Release);
    }
}
