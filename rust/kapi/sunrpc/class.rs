// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Transport classes: what the RPC layer knows transports by, of a client or of a server.

#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
mod tests;

#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
pub(crate) use self::tests::find_transport_ident;

use crate::kapi::{
    bindings,
    sys::workqueue::OwnedQueue, //
};
use core::{
    ffi::{
        c_int,
        CStr, //
    },
    mem::offset_of, //
};
use kernel::{
    ffi::c_char,
    prelude::*,
    sync::Arc,
    types::Opaque, //
};

/// The class of the transports of mounts.
pub(crate) static CLIENT: Place<XprtClass> = Place::new();
/// The class of listeners and connections.
pub(super) static SERVICE: Place<bindings::svc_xprt_class> = Place::new();
/// The class of the transports for Calls to a service's clients.
pub(crate) static REVERSE: Place<XprtClass> = Place::new();
/// The queue on which the transports of mounts work.
pub(super) static CLIENT_QUEUE: Place<Arc<OwnedQueue>> = Place::new();
/// The queue on which the transports of the service work.
pub(super) static SERVICE_QUEUE: Place<Arc<OwnedQueue>> = Place::new();

/// The greatest number of network identifiers of a class.
const NETIDS: usize = 2;

/// A function that makes a transport for the RPC layer.
pub(super) type SetupFn =
    unsafe extern "C" fn(args: *mut bindings::xprt_create) -> *mut bindings::rpc_xprt;

/// The structure of a class of client transports, with its trailing array.
#[repr(C)]
pub(crate) struct XprtClass {
    class: bindings::xprt_class,
    /// The RPC layer reads up to the first that is an empty string; a null pointer ends nothing.
    netids: [*const c_char; NETIDS + 1],
}

// The RPC layer finds them behind the structure.
const _: () = assert!(offset_of!(XprtClass, netids) == offset_of!(bindings::xprt_class, netid));

impl XprtClass {
    /// Describes a class whose transports `setup` makes. Empty network identifiers are none.
    pub(super) fn new(
        module: &'static ThisModule,
        ident: c_int,
        name: &CStr,
        [first, second]: [&'static CStr; NETIDS],
        setup: SetupFn,
    ) -> Self {
        let mut class = bindings::xprt_class {
            ident,
            setup: Some(setup),
            owner: module.as_ptr(),
            ..bindings::xprt_class::default()
        };
        // The last byte stays zero.
        let room = class.name.len() - 1;
        for (to, from) in class.name.iter_mut().zip(name.to_bytes().iter().take(room)) {
            *to = *from as c_char;
        }
        Self {
            class,
            netids: [first, second, c""].map(|netid| netid.as_char_ptr()),
        }
    }
}

/// A static place, which the registration of the classes fills before the RPC layer knows of them,
/// and empties when they are unregistered and not used any more.
pub(crate) struct Place<T>(Opaque<T>);

// SAFETY: What is in the place is used by raw pointer alone. The RPC layer serialises what it does
// with a class; queues may be used by several threads at once.
unsafe impl<T> Sync for Place<T> {}

impl<T> Place<T> {
    const fn new() -> Self {
        Self(Opaque::zeroed())
    }

    pub(super) fn as_raw(&self) -> *mut T {
        self.0.get()
    }
}
