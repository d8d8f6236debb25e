// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Handles of a server transport, for its event handlers.

use crate::kapi::{
    bindings,
    sys::{
        bit::test_bit,
        completion::Completion, //
    },
};
use core::ptr::NonNull;
use kernel::sync::Arc;

/// What the handles of a transport share.
pub(super) struct Shared {
    pub(super) xprt: NonNull<bindings::svc_xprt>,
    pub(super) handles: NonNull<Completion>,
}

// SAFETY: What is done with the transport here may be done by any thread, and a completion may be
// used by any.
unsafe impl Send for Shared {}
// SAFETY: What is done with the transport here goes by its own atomic flags and locks, and a
// completion may be used by several threads at once.
unsafe impl Sync for Shared {}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: The tear-down waits for this before it frees either.
        unsafe { self.handles.as_ref() }.complete_all();
    }
}

/// Whether the RPC layer has let a transport go, as its `svc_xprt_is_dead()` says.
///
/// # Safety
///
/// The transport must be valid.
#[inline]
pub(super) unsafe fn is_dead(xprt: *const bindings::svc_xprt) -> bool {
    // SAFETY: Valid by the contract of this function. The flags are read as words.
    unsafe {
        let flags = &raw const (*xprt).xpt_flags;
        test_bit(bindings::XPT_DEAD, flags) || test_bit(bindings::XPT_CLOSE, flags)
    }
}

/// Keeps the memory of a server transport, without being a reference to it: the RPC layer may let
/// it go, and the tear-down then waits for the last handle.
///
/// # Invariants
///
/// The transport is valid as long as the shared part is.
#[derive(Clone)]
pub(crate) struct SvcHandle(pub(super) Arc<Shared>);

impl SvcHandle {
    fn raw(&self) -> *mut bindings::svc_xprt {
        self.0.xprt.as_ptr()
    }

    /// Whether the RPC layer has let the transport go. What it would look at is gone then.
    fn is_dead(&self) -> bool {
        // SAFETY: The transport is valid by the type invariant.
        unsafe { is_dead(self.raw()) }
    }

    fn announce(&self, flag: u32) {
        if self.is_dead() {
            return;
        }
        // SAFETY: The transport is valid by the type invariant.
        unsafe {
            bindings::set_bit(flag as usize, &raw mut (*self.raw()).xpt_flags);
            bindings::svc_xprt_enqueue(self.raw());
        }
    }

    /// A connection waits to be accepted. Any context.
    pub(crate) fn connection_pending(&self) {
        self.announce(bindings::XPT_CONN);
    }

    /// A request waits to be taken. Any context.
    pub(crate) fn request_pending(&self) {
        self.announce(bindings::XPT_DATA);
    }

    /// The connection is lost: a service thread is to close it. Any context.
    pub(crate) fn close(&self) {
        if self.is_dead() {
            return;
        }
        // SAFETY: The transport is valid by the type invariant.
        unsafe { bindings::svc_xprt_deferred_close(self.raw()) };
    }
}
