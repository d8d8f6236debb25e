// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! What a transport of the RPC layer has of ours, and its end.

use crate::kapi::{
    bindings,
    sunrpc::{
        fresh,
        handle::Common,
        transport::Transport,
        xprt_handle::Beside, //
    },
    sys::module::ModuleRef, //
};
use kernel::prelude::*;

/// A transport with our part of its allocation.
#[repr(C)]
pub(super) struct Private<T> {
    pub(super) xprt: bindings::rpc_xprt,
    pub(super) timeout: bindings::rpc_timeout,
    pub(super) data: Option<Data<T>>,
}

/// Our part, from when the transport is made until the RPC layer destroys it.
pub(super) struct Data<T> {
    // First, since it has handles.
    pub(super) transport: T,
    pub(super) shared: Pin<KBox<Common<Beside>>>,
    pub(super) module: ModuleRef,
}

impl<T: Transport> Private<T> {
    /// # Safety
    ///
    /// `xprt` must be a transport that [`super::setup`] made, and not destroyed for `'a`.
    pub(super) unsafe fn data<'a>(xprt: *mut bindings::rpc_xprt) -> Option<&'a Data<T>> {
        // SAFETY: Such a transport is the first part of a `Private<T>`, whose data is written
        // before the RPC layer knows of it, and taken away when it is destroyed. The reference is
        // to the data alone.
        unsafe { (*xprt.cast::<Self>()).data.as_ref() }
    }

    /// # Safety
    ///
    /// As for [`Self::data`].
    pub(super) unsafe fn transport<'a>(xprt: *mut bindings::rpc_xprt) -> Option<&'a T> {
        // SAFETY: The contract of this function is that of the other one.
        unsafe { Self::data(xprt) }.map(|data| &data.transport)
    }

    /// The last reference is gone. From a workqueue of the kernel; may sleep.
    ///
    /// # Safety
    ///
    /// To be called by the RPC layer alone, with a transport that [`super::setup`] made.
    pub(super) unsafe extern "C" fn destroy(xprt: *mut bindings::rpc_xprt) {
        // SAFETY: The RPC layer makes no other call any more, so the data is ours alone. Handles
        // have no reference to it, but to what it shares with them.
        let data = unsafe { (*xprt.cast::<Self>()).data.take() };
        let Some(data) = data else { return };
        let Data {
            transport,
            shared,
            module,
        } = data;
        transport.destroy();
        // The transport goes first: it holds handles, and work that uses them.
        drop(transport);
        shared.wait();
        shared.beside.backchannel.destroy();
        drop(shared);
        // SAFETY: The last handle is gone, and with it whoever looks at the strings or the
        // transport.
        unsafe { fresh::free(xprt) };
        // Last of all the reference to this module, whose end waits until this has returned.
        drop(module);
    }
}
