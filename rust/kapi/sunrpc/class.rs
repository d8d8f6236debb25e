// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Transport classes: what the RPC layer knows a transport by.

#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
mod lookup;

#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
pub(crate) use self::lookup::find_transport_ident;

use crate::kapi::{
    bindings,
    sunrpc::registered::{
        Registered,
        RpcClass, //
    },
    sys::{
        single::Single,
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

/// Network identifiers of a class, at most.
const NETIDS: usize = 2;

/// The C structure with its trailing array of network identifiers.
#[repr(C)]
struct Storage {
    class: bindings::xprt_class,
    /// The RPC layer reads up to the first that is an empty string; a null pointer ends nothing.
    netids: [*const c_char; NETIDS + 1],
    /// Null, or of an `Arc` that lives as long as the class is registered.
    queue: *const OwnedQueue,
}

// The RPC layer finds them behind the structure.
const _: () = assert!(offset_of!(Storage, netids) == offset_of!(bindings::xprt_class, netid));

/// Makes a transport for the RPC layer.
pub(super) type SetupFn =
    unsafe extern "C" fn(args: *mut bindings::xprt_create) -> *mut bindings::rpc_xprt;

/// The place of a transport class; one `static` each.
pub(crate) struct Class {
    storage: Opaque<Storage>,
    owner: Single,
}

// SAFETY: The storage is written by whoever has taken `owner`, before the RPC layer knows of it,
// which serialises what it does with it.
unsafe impl Sync for Class {}

impl Class {
    /// An unregistered class.
    pub(crate) const fn new() -> Self {
        Self {
            storage: Opaque::zeroed(),
            owner: Single::new(),
        }
    }

    pub(super) fn as_raw(&self) -> *mut bindings::xprt_class {
        self.storage.get().cast()
    }

    /// Where the transports of the class work; `EINVAL` if it was registered without.
    ///
    /// # Safety
    ///
    /// The class must be registered until this returns.
    pub(super) unsafe fn queue(&self) -> Result<Arc<OwnedQueue>> {
        // SAFETY: A class that is registered was filled in before, and is not written to.
        let queue = unsafe { (&raw const (*self.storage.get()).queue).read() };
        if queue.is_null() {
            return Err(EINVAL);
        }
        // SAFETY: It is of an `Arc` that lives as long as the class is registered.
        Ok(unsafe { ArcBorrow::from_raw(queue) }.into())
    }

    /// Registers the class. `EEXIST` when the identifier is taken, `EBUSY` when the class is
    /// registered, `EINVAL` when it has more network identifiers than there is room for.
    ///
    /// # Safety
    ///
    /// `setup` must make transports as the RPC layer expects them of this function.
    pub(super) unsafe fn register(
        &'static self,
        module: &'static ThisModule,
        ident: c_int,
        name: &CStr,
        netids: &[&'static CStr],
        setup: SetupFn,
        queue: Option<Arc<OwnedQueue>>,
    ) -> Result<Registered<Self>> {
        let taken = self.owner.take()?;
        let mut text = [0; 32];
        for (to, from) in text.iter_mut().zip(name.to_bytes()) {
            *to = *from as c_char;
        }
        if netids.len() > NETIDS {
            return Err(EINVAL);
        }
        let mut names = [c"".as_char_ptr(); NETIDS + 1];
        for (to, from) in names.iter_mut().zip(netids) {
            *to = from.as_char_ptr();
        }
        let (class, storage) = (self.as_raw(), self.storage.get());
        // SAFETY: The place is static, and was taken above: it is not registered. Only the fields
        // are written, no reference is made to them.
        unsafe {
            (&raw mut (*class).list.next).write(&raw mut (*class).list);
            (&raw mut (*class).list.prev).write(&raw mut (*class).list);
            (&raw mut (*class).ident).write(ident);
            (&raw mut (*class).setup).write(Some(setup));
            (&raw mut (*class).owner).write(module.as_ptr());
            (&raw mut (*class).name).write(text);
            (&raw mut (*storage).netids).write(names);
            (&raw mut (*storage).queue).write(queue.as_ref().map_or(null(), Arc::as_ptr));
        }
        // SAFETY: The class is filled in and static.
        to_result(unsafe { bindings::xprt_register_transport(class) })?;
        // SAFETY: Registered above, and the place taken.
        Ok(unsafe { Registered::new(self, queue, taken) })
    }
}

impl RpcClass for Class {
    unsafe fn unregister(&self) {
        // SAFETY: Registered by the contract of this function.
        unsafe { bindings::xprt_unregister_transport(self.as_raw()) };
    }
}
