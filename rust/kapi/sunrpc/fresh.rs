// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! A transport of the RPC layer that nobody else knows of, at its beginning and at its end.

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
use core::ptr::NonNull;
use kernel::prelude::*;

/// A transport, with its address, that nobody else knows of.
///
/// # Invariants
///
/// `xprt` is of `xprt_alloc`, and nobody else knows of it. Its strings are null, static, or
/// allocated.
pub(super) struct Fresh {
    xprt: NonNull<bindings::rpc_xprt>,
    address: SocketAddress,
}

impl Fresh {
    /// Makes one of `size` bytes, whose requests are `slots` at first and `max` at most. May sleep.
    ///
    /// `EBADF` for an address that is none.
    ///
    /// # Safety
    ///
    /// The arguments must be those of the RPC layer.
    pub(super) unsafe fn new(
        args: *const bindings::xprt_create,
        size: usize,
        slots: u32,
        max: u32,
    ) -> Result<Self> {
        // SAFETY: The arguments are valid by the contract of this function.
        let (net, from, len) = unsafe { ((*args).net, (*args).dstaddr, (*args).addrlen) };
        let mut storage = bindings::__kernel_sockaddr_storage::default();
        if len > core::mem::size_of_val(&storage) {
            return Err(EBADF);
        }
        // SAFETY: The address is `len` bytes long, and there is room for as many.
        unsafe {
            let to = (&raw mut storage).cast::<u8>();
            core::ptr::copy_nonoverlapping(from.cast::<u8>(), to, len);
        }
        // SAFETY: The namespace is valid for the call.
        let xprt = unsafe { bindings::xprt_alloc(net, size, slots, max) };
        // INVARIANT: Made above; a transport that was just made has no strings.
        let fresh = Self {
            xprt: NonNull::new(xprt).ok_or(ENOMEM)?,
            address: SocketAddress::new(storage),
        };
        // SAFETY: Nobody else knows of it, by the type invariant.
        unsafe {
            (*xprt).timeout = &raw const DEFAULT_TIMEOUT.0;
            fresh.address.write_to(&raw mut (*xprt).addr);
            (*xprt).addrlen = len;
            set_address_strings(xprt, &fresh.address)?;
        }
        Ok(fresh)
    }

    pub(super) fn as_raw(&self) -> *mut bindings::rpc_xprt {
        self.xprt.as_ptr()
    }

    pub(super) fn address(&self) -> &SocketAddress {
        &self.address
    }

    /// What a set-up hands to the RPC layer, which frees it when the transport is destroyed.
    pub(super) fn hand_out(made: Result<Self>) -> *mut bindings::rpc_xprt {
        match made {
            Ok(fresh) => core::mem::ManuallyDrop::new(fresh).as_raw(),
            Err(e) => e.to_ptr(),
        }
    }
}

impl Drop for Fresh {
    fn drop(&mut self) {
        // SAFETY: By the type invariant.
        unsafe { free(self.as_raw()) };
    }
}

/// Frees a transport.
///
/// # Safety
///
/// It must be one that [`Fresh::new`] made, and nobody knows of it any more, nor looks at its
/// strings.
pub(super) unsafe fn free(xprt: *mut bindings::rpc_xprt) {
    // SAFETY: By the contract of this function.
    unsafe {
        free_address_strings(xprt);
        bindings::xprt_free(xprt);
    }
}
