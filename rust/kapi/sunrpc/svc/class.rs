// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Server transport classes.

use crate::kapi::{
    bindings,
    sunrpc::{
        registered::{
            Registered,
            RpcClass, //
        },
        svc::{
            ops::SvcOps,
            Service, //
        },
    },
    sys::{
        single::Single,
        workqueue::OwnedQueue, //
    },
};
use kernel::{
    error::to_result,
    prelude::*,
    types::Opaque, //
};

#[repr(C)]
struct Storage {
    class: bindings::svc_xprt_class,
    queue: *mut bindings::workqueue_struct,
}

/// The place of a class; one `static` each.
pub(crate) struct SvcClass {
    storage: Opaque<Storage>,
    owner: Single,
}

// SAFETY: The storage is written by whoever has taken `owner`, before the RPC layer knows of it,
// which serialises what it does with it.
unsafe impl Sync for SvcClass {}

impl SvcClass {
    /// An unregistered class.
    pub(crate) const fn new() -> Self {
        Self {
            storage: Opaque::zeroed(),
            owner: Single::new(),
        }
    }

    pub(super) fn as_raw(&self) -> *mut bindings::svc_xprt_class {
        self.storage.get().cast()
    }

    /// Where transports are torn down.
    ///
    /// # Safety
    ///
    /// There must be a transport of the class.
    pub(super) unsafe fn queue(&self) -> *mut bindings::workqueue_struct {
        // SAFETY: There are transports only of a class that was registered, which `queue` was
        // written before and not after.
        unsafe { (&raw const (*self.storage.get()).queue).read() }
    }
}

impl RpcClass for SvcClass {
    unsafe fn unregister(&self) {
        // SAFETY: Registered by the contract of this function.
        unsafe { bindings::svc_unreg_xprt_class(self.as_raw()) };
    }
}

/// Registers `T::class()`. `EEXIST` when the name is taken, `EBUSY` when the class is registered.
/// May sleep.
pub(crate) fn register_service<T: Service>(
    module: &'static ThisModule,
) -> Result<Registered<SvcClass>> {
    let class = T::class();
    let taken = class.owner.take()?;
    let queue = OwnedQueue::new(c"svcrdma", GFP_KERNEL)?;
    let (place, raw) = (class.storage.get(), class.as_raw());
    // SAFETY: The place is static, and was taken above: it is not registered. Only the fields are
    // written, no reference is made to them.
    unsafe {
        (&raw mut (*place).queue).write(queue.as_raw());
        (&raw mut (*raw).xcl_name).write(T::NAME.as_char_ptr());
        (&raw mut (*raw).xcl_owner).write(module.as_ptr());
        (&raw mut (*raw).xcl_ops).write(SvcOps::<T>::TABLE);
        (&raw mut (*raw).xcl_max_payload).write(T::MAX_PAYLOAD);
        (&raw mut (*raw).xcl_ident).write(T::IDENT);
    }
    // SAFETY: The class is filled in and static; its table is written for this.
    to_result(unsafe { bindings::svc_reg_xprt_class(raw) })?;
    // SAFETY: Registered above, and the place taken.
    Ok(unsafe { Registered::new(class, Some(queue), taken) })
}
