// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Handles of a transport, for its connections and work items.

use crate::kapi::{
    bindings,
    sunrpc::{
        backchannel::Backchannel,
        rqst::{
            NotFound,
            PinnedRqst, //
        },
        transport::Transport,
        xprt::Xprt, //
    },
    sys::completion::Completion, //
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

// SAFETY: An `Xprt`, a completion and a backchannel may be used by any thread, and so may the last
// handle go on any.
unsafe impl Send for Shared {}
// SAFETY: An `Xprt`, a completion and a backchannel may be used by several threads at once.
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
        // INVARIANT: The type is as the contract of this function says; `destroy` waits until the
        // shared part is gone.
        Self {
            shared,
            _transport: PhantomData,
        }
    }

    /// Finds the request that waits for a Reply of this XID.
    pub(crate) fn find(&self, xid: u32) -> Result<PinnedRqst<T>, NotFound> {
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
}

impl<T> Deref for XprtHandle<T> {
    type Target = Xprt;

    fn deref(&self) -> &Xprt {
        // SAFETY: Valid by the type invariant.
        unsafe { Xprt::from_raw(self.shared.xprt.as_ptr()) }
    }
}
