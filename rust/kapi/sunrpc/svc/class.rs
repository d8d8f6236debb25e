// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Server transport classes.

use super::{
    super::super::{
        bindings,
        sys::workqueue::OwnedQueue, //
    },
    ops::SvcOps,
    Service, //
};
use core::marker::PhantomData;
use kernel::{
    error::to_result,
    prelude::*,
    sync::Arc,
    types::Opaque, //
};

#[repr(C)]
struct Storage {
    class: bindings::svc_xprt_class,
    queue: *mut bindings::workqueue_struct,
}

/// The place of a class; one `static` each.
#[repr(transparent)]
pub(crate) struct SvcClass(Opaque<Storage>);

// SAFETY: Written once, before the RPC layer knows of it, which serialises what it does with it.
unsafe impl Sync for SvcClass {}

impl SvcClass {
    /// An unregistered class.
    pub(crate) const fn new() -> Self {
        Self(Opaque::uninit())
    }

    pub(super) fn as_raw(&self) -> *mut bindings::svc_xprt_class {
        self.0.get().cast()
    }

    /// Where transports are torn down. Only for a transport of the class.
    pub(super) fn queue(&self) -> *mut bindings::workqueue_struct {
        // SAFETY: Set before the class was registered, and there are transports only after that.
        unsafe { (*self.0.get()).queue }
    }
}

/// A class is registered while this lives.
pub(crate) struct SvcClassRegistration<T: Service> {
    // What is queued is done before the queue is gone, which is after the class is.
    _queue: Arc<OwnedQueue>,
    _service: PhantomData<T>,
}

impl<T: Service> SvcClassRegistration<T> {
    /// Registers `T::class()`, once. `EEXIST` when the name is taken.
    pub(crate) fn new(module: &'static ThisModule) -> Result<Self> {
        let queue = OwnedQueue::new(c"svcrdma", GFP_KERNEL)?;
        let place = T::class().0.get();
        // SAFETY: The place is static and not registered: this is called once, when the module
        // loads. Only the fields are written, no reference is made to them.
        unsafe {
            (&raw mut (*place).queue).write(queue.as_raw());
            let class = &raw mut (*place).class;
            (&raw mut (*class).xcl_name).write(T::NAME.as_char_ptr());
            (&raw mut (*class).xcl_owner).write(module.as_ptr());
            (&raw mut (*class).xcl_ops).write(SvcOps::<T>::TABLE);
            (&raw mut (*class).xcl_max_payload).write(T::MAX_PAYLOAD);
            (&raw mut (*class).xcl_ident).write(T::IDENT);
            to_result(bindings::svc_reg_xprt_class(class))?;
        }
        Ok(Self {
            _queue: queue,
            _service: PhantomData,
        })
    }
}

impl<T: Service> Drop for SvcClassRegistration<T> {
    fn drop(&mut self) {
        // SAFETY: Registered by `new`.
        unsafe { bindings::svc_unreg_xprt_class(T::class().as_raw()) };
    }
}
