// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Network namespaces.

use crate::kapi::bindings;
use core::ptr::NonNull;
use kernel::{
    sync::aref::{
        ARef,
        AlwaysRefCounted, //
    },
    types::Opaque, //
};

/// A network namespace.
#[repr(transparent)]
pub(crate) struct Net(Opaque<bindings::net>);

/// A reference to a network namespace.
pub(crate) type NetRef = ARef<Net>;

// SAFETY: A namespace may be used, and let go, by any thread.
unsafe impl Send for Net {}
// SAFETY: A namespace may be used by several threads at once.
unsafe impl Sync for Net {}

impl Net {
    /// Borrows a namespace.
    ///
    /// # Safety
    ///
    /// `net` must be valid for `'a`.
    pub(in crate::kapi) unsafe fn from_raw<'a>(net: *mut bindings::net) -> &'a Self {
        // SAFETY: Valid by the contract of this function; the type is transparent, and opaque.
        unsafe { &*net.cast::<Self>() }
    }

    pub(in crate::kapi) fn as_raw(&self) -> *mut bindings::net {
        self.0.get()
    }
}

// SAFETY: The kernel counts the references to a namespace, and keeps it as long as there are any.
unsafe impl AlwaysRefCounted for Net {
    fn inc_ref(&self) {
        // SAFETY: The namespace is valid while borrowed.
        unsafe { bindings::get_net(self.as_raw()) };
    }

    unsafe fn dec_ref(net: NonNull<Self>) {
        // SAFETY: The caller has a reference, which it gives back; the type is transparent.
        unsafe { bindings::put_net(net.cast().as_ptr()) };
    }
}
