// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! A transport of the RPC layer with our part of its allocation, at its beginning and at its end.

use crate::kapi::{
    bindings,
    sunrpc::{
        display::{
            free_address_strings,
            set_address_strings, //
        },
        xprt::DEFAULT_TIMEOUT, //
    },
    sys::address::SocketAddress, //
};
use core::{
    marker::PhantomData,
    mem::ManuallyDrop,
    ptr::NonNull, //
};
use kernel::prelude::*;

/// A transport with our part of its allocation.
#[repr(C)]
pub(super) struct Private<D> {
    xprt: bindings::rpc_xprt,
    data: D,
}

impl<D> Private<D> {
    /// Returns our part of a transport.
    ///
    /// # Safety
    ///
    /// `xprt` must be of [`Fresh::finish`] with the same `D`, and not be taken apart for `'a`.
    pub(super) unsafe fn data<'a>(xprt: *mut bindings::rpc_xprt) -> &'a D {
        // SAFETY: Such a transport is the first part of a `Private<D>`, whose data was written. The
        // reference is to the data alone.
        unsafe { &(*xprt.cast::<Self>()).data }
    }

    /// Returns the request of a task, and our part of its transport.
    ///
    /// # Safety
    ///
    /// The task must have a request, on a transport as for [`Self::data`].
    pub(super) unsafe fn of_task<'a>(
        task: *const bindings::rpc_task,
    ) -> (*mut bindings::rpc_rqst, &'a D) {
        // SAFETY: The task has a request, and that such a transport, by the contract of this
        // function.
        unsafe {
            let rqst = (*task).tk_rqstp;
            (rqst, Self::data((*rqst).rq_xprt))
        }
    }

    /// Takes our part out of a transport, of which [`free`] is to be called afterwards.
    ///
    /// # Safety
    ///
    /// `xprt` must be of [`Fresh::finish`] with the same `D`; to be called once, and nobody may
    /// have a reference to the data, or ask for one any more.
    pub(super) unsafe fn take(xprt: *mut bindings::rpc_xprt) -> D {
        // SAFETY: Such a transport is the first part of a `Private<D>`, whose data was written, and
        // is nobody else's by the contract of this function.
        unsafe { (&raw const (*xprt.cast::<Self>()).data).read() }
    }
}

/// A transport that the RPC layer was not told of, with its address and room for `D`.
///
/// # Invariants
///
/// `xprt` is of `xprt_alloc`, with room for a `Private<D>`, and whoever knows of it uses neither
/// the data nor the strings. These are null, static, or allocated.
pub(super) struct Fresh<D> {
    xprt: NonNull<bindings::rpc_xprt>,
    _data: PhantomData<D>,
}

impl<D> Fresh<D> {
    /// Allocates a transport of `slots` requests at first and `max` at most. May sleep.
    ///
    /// `EBADF` for an address that is none.
    ///
    /// # Safety
    ///
    /// The arguments must be those of the RPC layer.
    pub(super) unsafe fn new(
        args: *const bindings::xprt_create,
        slots: u32,
        max: u32,
    ) -> Result<Self> {
        // SAFETY: The arguments are valid by the contract of this function.
        let (net, from, len) = unsafe { ((*args).net, (*args).dstaddr, (*args).addrlen) };
        // SAFETY: The address is `len` bytes long, as the arguments say.
        let address = unsafe { SocketAddress::copy(from, len) }.ok_or(EBADF)?;
        // SAFETY: The namespace is valid for the call.
        let xprt = unsafe { bindings::xprt_alloc(net, size_of::<Private<D>>(), slots, max) };
        // INVARIANT: Made above; a transport that was just made has no strings.
        let fresh = Self {
            xprt: NonNull::new(xprt).ok_or(ENOMEM)?,
            _data: PhantomData,
        };
        // SAFETY: Nobody else knows of it, since it was made above.
        unsafe {
            (*xprt).timeout = &raw const DEFAULT_TIMEOUT.0;
            (*xprt).addr = address.0;
            (*xprt).addrlen = len;
            if address.port() != 0 {
                bindings::xprt_set_bound(xprt);
            }
            set_address_strings(xprt, &address)?;
        }
        Ok(fresh)
    }

    pub(super) fn xprt(&self) -> NonNull<bindings::rpc_xprt> {
        self.xprt
    }

    /// Gives the transport its data. It is to be handed to the RPC layer, which destroys it.
    pub(super) fn finish(self, data: D) -> *mut bindings::rpc_xprt {
        let xprt = ManuallyDrop::new(self).xprt.as_ptr();
        // SAFETY: There is room for the data, which nobody uses, by the type invariant.
        unsafe { (&raw mut (*xprt.cast::<Private<D>>()).data).write(data) };
        xprt
    }
}

impl<D> Drop for Fresh<D> {
    fn drop(&mut self) {
        // SAFETY: Made by `new`, and there is no data yet; nobody knows of it any more who could
        // look at it.
        unsafe { free(self.xprt.as_ptr()) };
    }
}

/// Frees a transport.
///
/// # Safety
///
/// It must be one that [`Fresh::new`] made, and nobody knows of it any more, nor looks at its
/// strings.
pub(super) unsafe fn free(xprt: *mut bindings::rpc_xprt) {
    // SAFETY: Nobody uses it, nor its strings, by the contract of this function.
    unsafe {
        free_address_strings(xprt);
        bindings::xprt_free(xprt);
    }
}
