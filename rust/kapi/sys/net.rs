// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Network namespaces.

use crate::kapi::bindings;
use core::{
    ops::Deref,
    ptr::NonNull, //
};
use kernel::types::Opaque;

/// A network namespace.
#[repr(transparent)]
pub(crate) struct Net(Opaque<bindings::net>);

impl Net {
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

    /// Takes a reference.
    pub(crate) fn hold(&self) -> NetRef {
        // SAFETY: The namespace is valid while borrowed.
        unsafe { bindings::get_net(self.as_raw()) };
        // INVARIANT: Taken above.
        NetRef(NonNull::from(self))
    }
}

/// A reference to a network namespace.
///
/// # Invariants
///
/// Owns one reference to a valid namespace.
pub(crate) struct NetRef(NonNull<Net>);

// SAFETY: A namespace may be used, and let go, by any thread.
unsafe impl Send for NetRef {}
// SAFETY: A namespace may be used by several threads at once.
unsafe impl Sync for NetRef {}

impl Deref for NetRef {
    type Target = Net;

    fn deref(&self) -> &Net {
        // SAFETY: Valid by the type invariant.
        unsafe { self.0.as_ref() }
    }
}

impl Drop for NetRef {
    fn drop(&mut self) {
        // SAFETY: Ours by the type invariant.
        unsafe { bindings::put_net(self.as_raw()) };
    }
}
