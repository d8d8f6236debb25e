// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! A transport that no client of the RPC layer uses, for tests.

use super::*;
use crate::kapi::{
    sunrpc::{
        private::Private,
        xprt::INITIAL_BACKOFF, //
    },
    sys::address::SocketAddress, //
};
use core::{
    marker::PhantomData,
    ptr::NonNull, //
};
use kernel::error::from_err_ptr;

/// A transport that is made and destroyed as for a mount, and does nothing in between: for the RPC
/// layer it is locked, so that a request to close it stays a request.
///
/// Handles of it must go before it does, which waits for them.
///
/// # Invariants
///
/// `xprt` is a transport that [`setup`] made for `T`, not destroyed, and known to nobody
/// else.
pub(crate) struct Unmounted<T: Transport> {
    xprt: NonNull<bindings::rpc_xprt>,
    _transport: PhantomData<T>,
}

impl<T: Transport> Unmounted<T> {
    /// Makes one. May sleep.
    pub(crate) fn new() -> Result<Self> {
        // The set-up looks at what is registered; the suites run when that is so.
        CLIENT.netids()?;
        let address = SocketAddress::for_test(1);
        let mut args = bindings::xprt_create {
            net: &raw mut bindings::init_net,
            dstaddr: address.as_raw().cast_mut(),
            addrlen: size_of::<SocketAddress>(),
            ..bindings::xprt_create::default()
        };
        // SAFETY: The initial network namespace always exists, and the address is only read.
        let xprt = from_err_ptr(unsafe { setup::<T>(&raw mut args) })?;
        let xprt = NonNull::new(xprt).ok_or(ENOMEM)?;
        // SAFETY: Made above, and known to nobody else.
        unsafe { (*xprt.as_ptr()).state |= 1 << bindings::XPRT_LOCKED };
        // What is locked is not closed, so that nothing needs to be initialised for that.
        // SAFETY: It was set up, and is not destroyed.
        unsafe { Private::<Data<T>>::data(xprt.as_ptr()) }
            .shared
            .beside
            .set_made();
        // INVARIANT: Made above.
        Ok(Self {
            xprt,
            _transport: PhantomData,
        })
    }

    /// What the module has of it.
    pub(crate) fn transport(&self) -> &T {
        // SAFETY: By the type invariant.
        &unsafe { Private::<Data<T>>::data(self.xprt.as_ptr()) }.transport
    }

    /// Swapping to a file of the mount begins.
    pub(crate) fn enable_swap(&self) {
        // SAFETY: Valid by the type invariant.
        unsafe { bindings::xprt_begin_swap(self.xprt.as_ptr()) };
    }

    /// Swapping to a file of the mount ends.
    pub(crate) fn disable_swap(&self) {
        // SAFETY: Valid by the type invariant.
        unsafe { bindings::xprt_end_swap(self.xprt.as_ptr()) };
    }

    /// Whether the RPC layer was asked to close it since this was last called.
    pub(crate) fn was_to_close(&self) -> bool {
        let asked = 1 << bindings::XPRT_CLOSE_WAIT;
        // SAFETY: Valid by the type invariant; in a test nobody else changes the word meanwhile.
        unsafe {
            let state = &raw mut (*self.xprt.as_ptr()).state;
            let was = *state & asked != 0;
            *state &= !asked;
            was
        }
    }

    /// An attempt to connect has begun, and the next is to be delayed.
    pub(crate) fn attempted(&self) {
        // SAFETY: Valid by the type invariant. The function changes one word.
        unsafe { bindings::xprt_reconnect_backoff(self.xprt.as_ptr(), INITIAL_BACKOFF) };
    }

    /// How long after the last one the next connection is to be made.
    pub(crate) fn backoff(&self) -> Jiffies {
        // SAFETY: Valid by the type invariant.
        unsafe { (*self.xprt.as_ptr()).reestablish_timeout }
    }
}

impl<T: Transport> Drop for Unmounted<T> {
    fn drop(&mut self) {
        // SAFETY: By the type invariant nobody else knows it.
        unsafe { XprtOps::<T>::destroy(self.xprt.as_ptr()) };
    }
}
