// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Transport classes: what the RPC layer knows transports by, of a client or of a server.

#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
mod lookup;

#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
pub(crate) use self::lookup::find_transport_ident;

use crate::kapi::{
    bindings,
    sys::{
        module,
        single::{
            Single,
            Taken, //
        },
        workqueue::OwnedQueue, //
    },
};
use core::{
    ffi::{
        c_int,
        CStr, //
    },
    mem::offset_of,
    ptr::null, //
};
use kernel::{
    error::to_result,
    ffi::c_char,
    prelude::*,
    sync::{
        Arc,
        ArcBorrow, //
    },
    types::Opaque, //
};

/// The class of the transports of mounts.
pub(crate) static CLIENT: Class<XprtClass> = Class::new();
/// The class of listeners and connections.
pub(super) static SERVICE: Class<bindings::svc_xprt_class> = Class::new();
/// The class of the transports for Calls to a service's clients.
pub(crate) static REVERSE: Class<XprtClass> = Class::new();

/// A structure by which the RPC layer knows a class.
pub(crate) trait RawClass: Sized + 'static {
    /// Registers the class; returns an errno if another has its name or identifier.
    ///
    /// # Safety
    ///
    /// `class` must be filled in, and stay so until it is unregistered.
    unsafe fn register(class: *mut Self) -> c_int;

    /// Unregisters the class: nobody finds it any more, to make a transport of it. Whoever has
    /// found it has a reference to this module as long as it uses it, and so does each transport.
    ///
    /// # Safety
    ///
    /// The class must be registered.
    unsafe fn unregister(class: *mut Self);
}

impl RawClass for bindings::svc_xprt_class {
    unsafe fn register(class: *mut Self) -> c_int {
        // SAFETY: The contract of this function is that of the other one.
        unsafe { bindings::svc_reg_xprt_class(class) }
    }

    unsafe fn unregister(class: *mut Self) {
        // SAFETY: Registered by the contract of this function.
        unsafe { bindings::svc_unreg_xprt_class(class) };
    }
}

/// Network identifiers of a class, at most.
const NETIDS: usize = 2;

/// Makes a transport for the RPC layer.
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

impl RawClass for XprtClass {
    unsafe fn register(class: *mut Self) -> c_int {
        // SAFETY: The contract of this function is that of the other one; the array of network
        // identifiers is behind the structure.
        unsafe { bindings::xprt_register_transport(class.cast()) }
    }

    unsafe fn unregister(class: *mut Self) {
        // SAFETY: Registered by the contract of this function.
        unsafe { bindings::xprt_unregister_transport(class.cast()) };
    }
}

/// The place of a class.
pub(crate) struct Class<C> {
    raw: Opaque<C>,
    /// Null, or of an `Arc` that lives as long as the class is registered.
    queue: Opaque<*const OwnedQueue>,
    owner: Single,
}

// SAFETY: The place is written by whoever has taken `owner`, before the RPC layer knows of it,
// which serialises what it does with it.
unsafe impl<C> Sync for Class<C> {}

impl<C: RawClass> Class<C> {
    const fn new() -> Self {
        Self {
            raw: Opaque::zeroed(),
            queue: Opaque::zeroed(),
            owner: Single::new(),
        }
    }

    pub(super) fn as_raw(&self) -> *mut C {
        self.raw.get()
    }

    /// Returns the queue on which the transports of the class work.
    ///
    /// # Safety
    ///
    /// The class must be registered, with a queue, as long as the result is used.
    pub(super) unsafe fn queue(&self) -> ArcBorrow<'_, OwnedQueue> {
        // SAFETY: A class that is registered was filled in before, and is not written to. The queue
        // is of an `Arc` that lives as long.
        unsafe { ArcBorrow::from_raw(self.queue.get().read()) }
    }

    /// Registers the class. `EEXIST` when its name or identifier is taken, `EBUSY` when it is
    /// registered. May sleep.
    ///
    /// # Safety
    ///
    /// The functions in `class` must be what the RPC layer expects of them.
    pub(super) unsafe fn register(
        &'static self,
        class: C,
        queue: Option<Arc<OwnedQueue>>,
    ) -> Result<Registered<C>> {
        let taken = self.owner.take()?;
        // SAFETY: The place is static, and was taken above: it is not registered.
        unsafe {
            self.raw.get().write(class);
            let queue = queue.as_ref().map_or(null(), Arc::as_ptr);
            self.queue.get().write(queue);
        }
        // SAFETY: The class is filled in and static.
        to_result(unsafe { C::register(self.as_raw()) })?;
        // INVARIANT: Registered above.
        Ok(Registered {
            class: self,
            _queue: queue,
            _taken: taken,
        })
    }
}

/// A class is registered while this lives. Its end waits for all that is of the class, and so for
/// all that uses this module: it is that of the module.
///
/// # Invariants
///
/// `class` is registered.
pub(crate) struct Registered<C: RawClass> {
    class: &'static Class<C>,
    // What is queued is done before the queue is gone, which is after the class is.
    _queue: Option<Arc<OwnedQueue>>,
    _taken: Taken,
}

impl<C: RawClass> Drop for Registered<C> {
    fn drop(&mut self) {
        // SAFETY: Registered by the type invariant.
        unsafe { C::unregister(self.class.as_raw()) };
        // Nobody finds the class any more. But a set-up may run for who has found it, and there may
        // be transports, where this is not the end of the module, or an initialisation that failed.
        module::wait_until_unused();
    }
}
