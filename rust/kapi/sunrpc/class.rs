// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Transport classes: what the RPC layer knows a transport by.

use super::super::bindings;
use super::{
    transport::Transport,
    xprt_ops::XprtOps, //
};
use core::marker::PhantomData;
use kernel::{
    error::to_result,
    ffi::c_char,
    prelude::*,
    types::Opaque, //
};

/// Names that fit behind a class, with the empty one at the end.
const NAMES: usize = 3;

/// The C structure with its trailing array of names.
#[repr(C)]
struct Storage {
    class: bindings::xprt_class,
    names: [*const c_char; NAMES],
}

/// The place of a transport class; one `static` each.
#[repr(transparent)]
pub(crate) struct Class(Opaque<Storage>);

// SAFETY: Written once, by `ClassRegistration::new`, before the RPC layer knows of it, which
// serialises what it does with it.
unsafe impl Sync for Class {}

impl Class {
    /// An unregistered class.
    pub(crate) const fn new() -> Self {
        Self(Opaque::uninit())
    }

    pub(super) fn as_raw(&self) -> *mut bindings::xprt_class {
        self.0.get().cast()
    }
}

/// A class is registered while this lives.
pub(crate) struct ClassRegistration<T: Transport> {
    class: &'static Class,
    _transport: PhantomData<T>,
}

impl<T: Transport> ClassRegistration<T> {
    /// Registers `T::class()`, once. `EEXIST` when the identifier is taken.
    pub(crate) fn new(module: &'static ThisModule) -> Result<Self> {
        let mut name = [0; 32];
        for (to, from) in name.iter_mut().zip(T::NAME.to_bytes()) {
            *to = *from as c_char;
        }
        let mut names = [c"".as_char_ptr(); NAMES];
        for (to, from) in names.iter_mut().zip(T::NETIDS) {
            *to = from.as_char_ptr();
        }
        let class = T::class().as_raw();
        // SAFETY: The place is static and not registered: this is called once, when the module
        // loads. Only the fields are written, no reference is made to them.
        unsafe {
            (&raw mut (*class).list.next).write(&raw mut (*class).list);
            (&raw mut (*class).list.prev).write(&raw mut (*class).list);
            (&raw mut (*class).ident).write(T::IDENT);
            (&raw mut (*class).setup).write(Some(XprtOps::<T>::setup));
            (&raw mut (*class).owner).write(module.as_ptr());
            (&raw mut (*class).name).write(name);
            (&raw mut (*T::class().0.get()).names).write(names);
        }
        // SAFETY: The class is filled in and static.
        to_result(unsafe { bindings::xprt_register_transport(class) })?;
        Ok(Self {
            class: T::class(),
            _transport: PhantomData,
        })
    }
}

impl<T: Transport> Drop for ClassRegistration<T> {
    fn drop(&mut self) {
        // SAFETY: Registered by `new`.
        unsafe { bindings::xprt_unregister_transport(self.class.as_raw()) };
    }
}
