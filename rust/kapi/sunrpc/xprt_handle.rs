// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Handles of a transport, for its connections and work items.

use crate::kapi::{
    bindings,
    sunrpc::{
        backchannel::Backchannel,
        buffer::NotFound,
        handle::HandleInner,
        rqst::PinnedRqst,
        xprt::Xprt, //
    },
};
use core::{
    marker::PhantomData,
    ops::Deref, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// What its handles share.
type Inner = HandleInner<bindings::rpc_xprt, Backchannel>;

/// Keeps a transport of the RPC layer from being freed, without being a reference to it: the RPC
/// layer may destroy it, and then waits for the last handle to go.
///
/// # Invariants
///
/// The transport, whose state of an RPC is a `C`, and its backchannel are valid as long as the
/// shared part is.
pub(crate) struct XprtHandle<C> {
    shared: Arc<Inner>,
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
    pub(super) unsafe fn new(shared: Arc<Inner>) -> Self {
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
        self.shared.beside().receive(self, xid, call, connection)
    }
}

impl<C> Deref for XprtHandle<C> {
    type Target = Xprt;

    fn deref(&self) -> &Xprt {
        // SAFETY: Valid by the type invariant.
        unsafe { Xprt::from_raw(self.shared.as_raw()) }
    }
}
