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
pub(super) struct HandleInner {
    pub(super) xprt: NonNull<bindings::rpc_xprt>,
    pub(super) handles: NonNull<Completion>,
    pub(super) backchannel: NonNull<Backchannel>,
}

// SAFETY: An `Xprt`, a completion and a backchannel may be used by any thread, and so may the last
// handle go on any.
unsafe impl Send for HandleInner {}
// SAFETY: An `Xprt`, a completion and a backchannel may be used by several threads at once.
unsafe impl Sync for HandleInner {}

impl Drop for HandleInner {
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
/// The transport, whose state of an RPC is a `C`, and its backchannel are valid as long as the shared
/// part is.
pub(crate) struct XprtHandle<C> {
    shared: Arc<HandleInner>,
    _call: PhantomData<fn() -> C>,
}

impl<C> Clone for XprtHandle<C> {
    fn clone(&self) -> Self {
        Self {
            shared: self.shared.clone(),
            _call: PhantomData,
        }
    }
}

impl<C> XprtHandle<C> {
    /// # Safety
    ///
    /// The transport must be one whose state of an RPC is a `C`.
    pub(super) unsafe fn new(shared: Arc<HandleInner>) -> Self {
        // INVARIANT: The state is as the contract of this function says; `destroy` waits until the
        // shared part is gone.
        Self {
            shared,
            _call: PhantomData,
        }
    }

    /// Finds the request that waits for a Reply of this XID.
    pub(crate) fn find(&self, xid: u32) -> Result<PinnedRqst<C>, NotFound> {
        // SAFETY: The transport's state of an RPC is a `C` by the type invariant.
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

impl<C> Deref for XprtHandle<C> {
    type Target = Xprt;

    fn deref(&self) -> &Xprt {
        // SAFETY: Valid by the type invariant.
        unsafe { Xprt::from_raw(self.shared.xprt.as_ptr()) }
    }
}
