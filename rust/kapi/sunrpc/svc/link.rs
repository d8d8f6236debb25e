// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! What leads from the reverse direction to its connection, and back.

#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
mod tests;

use crate::kapi::bindings;
use core::ptr::NonNull;
use kernel::{
    new_spinlock,
    prelude::*,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Relaxed,
            Release, //
        },
        Arc,
        SpinLock, //
    },
};

/// A connection, and what the RPC layer knows it by.
///
/// # Invariants
///
/// `xprt` is valid.
struct FwdXprt<C> {
    connection: Arc<C>,
    xprt: NonNull<bindings::svc_xprt>,
    /// It was detached, and so gets no reverse transport any more.
    detached: bool,
}

// SAFETY: The pointer is to an object that may be used from any thread, and is used under the lock
// of the link.
unsafe impl<C: Send + Sync> Send for FwdXprt<C> {}

impl<C> FwdXprt<C> {
    /// The reverse transport, or null. Those who write it have the lock of the link.
    fn reverse(&self) -> &Atomic<*mut bindings::rpc_xprt> {
        // SAFETY: Valid by the type invariant.
        unsafe { reverse_of(self.xprt.as_ptr()) }
    }
}

/// Where the RPC layer has the reverse transport of a connection. It reads it as a word, and does
/// not write it.
///
/// # Safety
///
/// `xprt` must be valid for `'a`.
unsafe fn reverse_of<'a>(xprt: *mut bindings::svc_xprt) -> &'a Atomic<*mut bindings::rpc_xprt> {
    // SAFETY: Valid by the contract of this function. Here the field is only used as an atomic.
    unsafe { Atomic::from_ptr(&raw mut (*xprt).xpt_bc_xprt) }
}

/// The reverse transport of a connection; null until there is one, which then stays as long as the
/// connection does.
///
/// # Safety
///
/// `xprt` must be valid.
pub(super) unsafe fn published(xprt: *mut bindings::svc_xprt) -> *mut bindings::rpc_xprt {
    // SAFETY: Valid by the contract of this function. Acquires what `BcLink::publish` released.
    unsafe { reverse_of(xprt) }.load(Acquire)
}

/// Leads from the reverse direction to the connection, until that is torn down.
#[pin_data]
pub(super) struct BcLink<C> {
    #[pin]
    forward: SpinLock<Option<FwdXprt<C>>>,
}

impl<C> BcLink<C> {
    /// Leads nowhere yet. May sleep.
    pub(super) fn new() -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self { forward <- new_spinlock!(None, "svcrdma_link") }),
            GFP_KERNEL,
        )
    }

    /// The connection is up.
    ///
    /// # Safety
    ///
    /// `xprt` must be valid until [`Self::clear`].
    pub(super) unsafe fn set(&self, connection: Arc<C>, xprt: NonNull<bindings::svc_xprt>) {
        // INVARIANT: The transport is valid until `clear`, which takes this away.
        *self.forward.lock() = Some(FwdXprt {
            connection,
            xprt,
            detached: false,
        });
    }

    /// The connection ends. Its reverse transport still leads to it: the RPC layer may be about to
    /// look there, and holds the connection for that.
    pub(super) fn detach(&self) {
        if let Some(forward) = &mut *self.forward.lock() {
            forward.detached = true;
        }
    }

    /// The connection goes: nobody holds it any more. Its reverse transport, which others may hold
    /// for longer, forgets it.
    pub(super) fn clear(&self) {
        let mut forward = self.forward.lock();
        let taken = forward.take();
        if let Some(taken) = &taken {
            let reverse = taken.reverse().load(Relaxed);
            if !reverse.is_null() {
                // SAFETY: A transport that was published is unpublished, under the lock, before it
                // is freed.
                unsafe { (&raw mut (*reverse).bc_xprt).write(core::ptr::null_mut()) };
            }
        }
        drop(forward);
        drop(taken);
    }

    pub(super) fn connection(&self) -> Option<Arc<C>> {
        let forward = self.forward.lock();
        forward.as_ref().map(|forward| forward.connection.clone())
    }

    /// Runs `f`, which must not sleep, with the connection, if it is there. Whoever had a reference
    /// of their own might drop the last one.
    pub(super) fn with_connection(&self, f: impl FnOnce(&C)) {
        if let Some(forward) = &*self.forward.lock() {
            f(&forward.connection);
        }
    }

    /// Makes a transport the reverse one of the connection, which takes a reference and lets it go
    /// when it is freed. `EBUSY` if it has one: two clients of the service may ask at once.
    ///
    /// # Safety
    ///
    /// `xprt` must be a transport of `ReverseOps::new_xprt`.
    pub(super) unsafe fn publish(&self, xprt: *mut bindings::rpc_xprt) -> Result {
        let forward = self.forward.lock();
        let forward = forward.as_ref().ok_or(ENOTCONN)?;
        if forward.detached {
            return Err(ENOTCONN);
        }
        if !forward.reverse().load(Relaxed).is_null() {
            return Err(EBUSY);
        }
        // SAFETY: The transport is valid, and being made: it has the reference of its maker, so
        // that one more can be had, and nobody else reads the field.
        unsafe {
            bindings::xprt_get(xprt);
            (&raw mut (*xprt).bc_xprt).write(forward.xprt.as_ptr());
        }
        // Whoever finds it finds it made.
        forward.reverse().store(xprt, Release);
        Ok(())
    }

    /// The transport goes, perhaps before anybody has used it.
    pub(super) fn unpublish(&self, xprt: *mut bindings::rpc_xprt) {
        if let Some(forward) = &*self.forward.lock() {
            if core::ptr::eq(forward.reverse().load(Relaxed), xprt) {
                forward.reverse().store(core::ptr::null_mut(), Relaxed);
            }
        }
    }
}
