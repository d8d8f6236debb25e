// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Handles of a transport, for its connections and work items.

use super::super::{
    bindings,
    sys::{
        completion::Completion,
        time, //
    },
};
use super::{
    backchannel::Backchannel,
    rqst::PinnedRqst,
    transport::Transport,
    xprt::Xprt, //
};
use core::{
    marker::PhantomData,
    ops::Deref,
    ptr::NonNull, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// What the handles of a transport share.
pub(super) struct Shared {
    pub(super) xprt: NonNull<bindings::rpc_xprt>,
    pub(super) handles: NonNull<Completion>,
    pub(super) backchannel: NonNull<Backchannel>,
}

// SAFETY: See `Xprt`; a completion may be used by any thread.
unsafe impl Send for Shared {}
// SAFETY: As above.
unsafe impl Sync for Shared {}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: `destroy` frees it only after this.
        unsafe { self.handles.as_ref() }.complete_all();
    }
}

/// Keeps a transport of the RPC layer from being freed, without being a reference to it: the RPC
/// layer may destroy it, and then waits for the last handle to go.
///
/// # Invariants
///
/// The transport, which is of type `T`, and its backchannel are valid as long as the shared part is.
pub(crate) struct XprtHandle<T> {
    shared: Arc<Shared>,
    _transport: PhantomData<fn() -> T>,
}

impl<T> Clone for XprtHandle<T> {
    fn clone(&self) -> Self {
        Self {
            shared: self.shared.clone(),
            _transport: PhantomData,
        }
    }
}

impl<T: Transport> XprtHandle<T> {
    /// # Safety
    ///
    /// The transport must be one of type `T`.
    pub(super) unsafe fn new(shared: Arc<Shared>) -> Self {
        // INVARIANT: By contract; `destroy` waits until the shared part is gone.
        Self {
            shared,
            _transport: PhantomData,
        }
    }

    /// Finds the request that waits for a Reply of this XID.
    pub(crate) fn find(&self, xid: u32) -> Option<PinnedRqst<T>> {
        // SAFETY: The transport is of type `T` by the type invariant.
        unsafe { PinnedRqst::find(self, xid) }
    }

    /// Hands a reverse Call to the callback service; see [`Backchannel::receive`].
    pub(crate) fn receive_reverse_call(
        &self,
        xid: u32,
        call: &[u8],
        connection: u64,
    ) -> Result<bool> {
        // SAFETY: Valid by the type invariant.
        unsafe { self.shared.backchannel.as_ref() }.receive(self, xid, call, connection)
    }

    /// The connection attempt succeeded. Ends what [`Transport::connect`] began.
    pub(crate) fn connected(&self) {
        let xprt = self.as_raw();
        // SAFETY: The transport is valid and locked for connecting, by us.
        unsafe {
            bindings::xprt_clear_connecting(xprt);
            (*xprt).connect_cookie = (*xprt).connect_cookie.wrapping_add(1);
            (*xprt).stat.connect_count += 1;
            (*xprt).stat.connect_time += time::since((*xprt).stat.connect_start);
            bindings::xprt_set_connected(xprt);
        }
        self.connect_ended(EAGAIN);
    }

    /// The connection attempt failed. Ends what [`Transport::connect`] began.
    pub(crate) fn not_connected(&self, error: Error) {
        // SAFETY: The transport is valid and locked for connecting, by us.
        unsafe { bindings::xprt_clear_connecting(self.as_raw()) };
        self.connect_ended(retriable(error));
    }

    fn connect_ended(&self, status: Error) {
        let xprt = self.as_raw();
        // SAFETY: As above; the cookie is the one `connect` locked with.
        unsafe {
            bindings::xprt_unlock_connect(xprt, xprt.cast());
            bindings::xprt_wake_pending_tasks(xprt, status.to_errno());
        }
    }
}

impl<T> Deref for XprtHandle<T> {
    type Target = Xprt;

    fn deref(&self) -> &Xprt {
        // SAFETY: Valid by the type invariant.
        unsafe { Xprt::from_raw(self.shared.xprt.as_ptr()) }
    }
}

/// What the RPC layer is told of a failed attempt. Of the errors that it does not know as those of
/// a connection it would make the result of RPCs, even on a hard mount.
fn retriable(error: Error) -> Error {
    match error {
        ENOMEM | EAGAIN => ENOBUFS,
        ENETDOWN => ENETUNREACH,
        ECONNABORTED | ECONNREFUSED | ECONNRESET | EHOSTUNREACH | ENETUNREACH | ENOBUFS
        | ETIMEDOUT => error,
        // There is no way to the address, or no device of use: a mount fails with it at once, and
        // what is mounted tries again.
        EADDRNOTAVAIL | EAFNOSUPPORT | EINVAL | ENODEV | EOPNOTSUPP | EPROTO => EPROTO,
        _ => ENOTCONN,
    }
}

#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
mod tests;
