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
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Release, //
        },
        Arc, //
    },
};

/// What the handles of a transport use beside it.
#[pin_data]
pub(super) struct Beside {
    #[pin]
    pub(super) backchannel: Backchannel,
    /// The RPC layer has made the transport, all of it, and begun to use it.
    made: Atomic<bool>,
}

impl Beside {
    pub(super) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            backchannel <- Backchannel::new(),
            made: Atomic::new(false),
        })
    }

    /// Notes that the RPC layer uses the transport.
    pub(super) fn set_made(&self) {
        self.made.store(true, Release);
    }
}

/// What its handles share.
type Inner = HandleInner<bindings::rpc_xprt, Beside>;

/// Keeps a transport of the RPC layer from being freed, without being a reference to it: the RPC
/// layer may destroy it, and then waits for the last handle to go.
///
/// # Invariants
///
/// The transport, whose state of an RPC is a `C`, and its backchannel are valid as long as the
/// shared part is.
pub(crate) struct XprtHandle<C>(Arc<Inner>, PhantomData<fn() -> C>);

impl<C> Clone for XprtHandle<C> {
    fn clone(&self) -> Self {
        Self(self.0.clone(), PhantomData)
    }
}

impl<C> XprtHandle<C> {
    /// Makes a handle of what the handles of a transport share.
    ///
    /// # Safety
    ///
    /// The transport must be one whose state of an RPC is a `C`.
    pub(super) unsafe fn new(shared: Arc<Inner>) -> Self {
        // INVARIANT: The state is as the contract of this function says; `destroy` waits until the
        // shared part is gone.
        Self(shared, PhantomData)
    }

    /// Finds the request that waits for a Reply of this XID.
    pub(crate) fn find(&self, xid: u32) -> Result<PinnedRqst<C>, NotFound> {
        // SAFETY: The transport's state of an RPC is a `C` by the type invariant.
        unsafe { PinnedRqst::find(self, xid) }
    }

    /// Makes the RPC layer close the connection. Any context that may take a spin lock.
    ///
    /// There is none before the first attempt to connect; and what closes it the RPC layer
    /// initialises only when the transport was made here.
    pub(crate) fn force_disconnect(&self) {
        if self.0.beside().made.load(Acquire) {
            // SAFETY: The transport is valid by the type invariant, and was made.
            unsafe { bindings::xprt_force_disconnect(self.as_raw()) };
        }
    }

    /// Returns the bytes of the longest reverse Call that the callback service takes.
    pub(crate) fn longest_callback(&self) -> usize {
        self.0.beside().backchannel.longest()
    }

    /// Hands a reverse Call to the callback service; see [`Backchannel::receive`].
    pub(crate) fn receive_reverse_call<'m>(
        &self,
        xid: u32,
        call: impl IntoIterator<Item = &'m [u8], IntoIter: Clone>,
        connection: u64,
    ) -> Result<bool> {
        let backchannel = &self.0.beside().backchannel;
        backchannel.receive(self, xid, call, connection)
    }
}

impl<C> Deref for XprtHandle<C> {
    type Target = Xprt;

    fn deref(&self) -> &Xprt {
        // SAFETY: Valid by the type invariant.
        unsafe { Xprt::from_raw(self.0.as_raw()) }
    }
}
