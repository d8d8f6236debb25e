// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Handles of a server transport, for its event handlers.

use crate::kapi::{
    bindings,
    sunrpc::handle::HandleInner,
    sys::{
        bit::test_bit,
        net::NetRef, //
    },
};
use kernel::sync::Arc;

/// Returns whether the RPC layer has let a transport go, as its `svc_xprt_is_dead()` says.
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
/// The transport is valid as long as the shared part is, and so is its network namespace, of which
/// that has a reference. Of one that the RPC layer has let go, or that it was never told of,
/// `XPT_BUSY` is set for ever: its service, which may be gone, is not looked at then.
#[derive(Clone)]
pub(crate) struct SvcHandle(pub(super) Arc<HandleInner<bindings::svc_xprt, NetRef>>);

impl SvcHandle {
    fn raw(&self) -> *mut bindings::svc_xprt {
        self.0.as_raw()
    }

    /// Returns whether the RPC layer has let the transport go. What it would look at is gone then.
    fn is_dead(&self) -> bool {
        // SAFETY: The transport is valid by the type invariant.
        unsafe { is_dead(self.raw()) }
    }

    fn announce(&self, flag: u32) {
        if self.is_dead() {
            return;
        }
        // SAFETY: The transport is valid by the type invariant, and its namespace, which a trace
        // event looks at. The service is looked at only of one that is not busy.
        unsafe {
            bindings::set_bit(flag as usize, &raw mut (*self.raw()).xpt_flags);
            bindings::svc_xprt_enqueue(self.raw());
        }
    }

    /// Returns the number of requests that service threads work on.
    pub(crate) fn executing(&self) -> u32 {
        // SAFETY: The transport is valid by the type invariant. A volatile read of a word is one
        // access, as with the RPC layer's `atomic_read()`.
        let requests = unsafe { (&raw const (*self.raw()).xpt_nr_rqsts.counter).read_volatile() };
        requests.try_into().unwrap_or(0)
    }

    /// Announces that a connection waits to be accepted. Any context.
    pub(crate) fn connection_pending(&self) {
        self.announce(bindings::XPT_CONN);
    }

    /// Announces that a request waits to be taken. Any context.
    pub(crate) fn request_pending(&self) {
        self.announce(bindings::XPT_DATA);
    }

    /// Makes a service thread close the connection, which is lost. Any context.
    pub(crate) fn close(&self) {
        if self.is_dead() {
            return;
        }
        // SAFETY: The transport is valid, and its namespace, by the type invariant, which says what
        // of its service is looked at.
        unsafe { bindings::svc_xprt_deferred_close(self.raw()) };
    }
}
