// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! What leads from the reverse direction to its connection, and back.

#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
mod tests;

use crate::kapi::{
    bindings,
    sunrpc::xprt::Xprt, //
};
use core::ptr::NonNull;
use kernel::{
    new_spinlock,
    prelude::*,
    sync::{
        atomic::{
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
    /// Returns where the RPC layer looks for the reverse transport. It reads it as a word, and does
    /// not write it. Those who do have the lock of [`ReverseXprt`].
    fn reverse(&self) -> &Atomic<*mut bindings::rpc_xprt> {
        // SAFETY: Valid by the type invariant. Here the field is only used as an atomic.
        unsafe { Atomic::from_ptr(&raw mut (*self.xprt.as_ptr()).xpt_bc_xprt) }
    }

    /// Lets the RPC layer know the reverse transport, which gives the connection a reference to it,
    /// and closes it with the connection.
    ///
    /// Not before that transport is made: until it has its name the RPC layer may destroy it, and
    /// asks for no references then.
    fn publish(&self, reverse: &Linked) {
        let raw = reverse.0.as_ptr();
        if self.detached || !self.reverse().load(Relaxed).is_null() {
            return;
        }
        // SAFETY: Valid by the type invariant of what it is in, whose lock the caller has. The name
        // is read as a word, which others may write at the time.
        unsafe {
            if (&raw const (*raw).servername).read_volatile().is_null()
                || bindings::xprt_get(raw).is_null()
            {
                return;
            }
        }
        // Whoever finds it finds it made.
        self.reverse().store(raw, Release);
    }
}

/// A reverse transport that is in its place.
struct Linked(NonNull<bindings::rpc_xprt>);

// SAFETY: The pointer is to an object that may be used from any thread, and is used under the lock
// of its place.
unsafe impl Send for Linked {}

/// The reverse transport of a connection, as long as there is one.
///
/// # Invariants
///
/// What is in it is a valid transport of `ReverseOps`: its end takes it out before it is freed.
#[pin_data]
pub(super) struct ReverseXprt {
    #[pin]
    linked: SpinLock<Option<Linked>>,
}

impl ReverseXprt {
    fn new() -> impl PinInit<Self> {
        pin_init!(Self { linked <- new_spinlock!(None, "svcrdma_reverse") })
    }

    /// Runs `f`, which must not sleep, with the transport, if there is one. It is not freed
    /// meanwhile, whatever the RPC layer does with it.
    pub(super) fn with(&self, f: impl FnOnce(&Xprt)) {
        if let Some(reverse) = &*self.linked.lock() {
            // SAFETY: Valid by the type invariant as long as the lock is held.
            f(unsafe { Xprt::from_raw(reverse.0.as_ptr()) });
        }
    }
}

/// Leads from the reverse direction to the connection, until that is torn down, and from the
/// connection to its reverse transport, until that is destroyed.
///
/// The lock of `reverse` is taken first.
#[pin_data]
pub(super) struct BcLink<C> {
    #[pin]
    forward: SpinLock<Option<FwdXprt<C>>>,
    #[pin]
    reverse: ReverseXprt,
}

impl<C> BcLink<C> {
    /// Leads nowhere yet. May sleep.
    pub(super) fn new() -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                forward <- new_spinlock!(None, "svcrdma_link"),
                reverse <- ReverseXprt::new(),
            }),
            GFP_KERNEL,
        )
    }

    /// Leads to a connection, which is up.
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

    /// Returns the way back from the connection.
    pub(super) fn reverse(&self) -> &ReverseXprt {
        &self.reverse
    }

    /// Ends the connection. Its reverse transport still leads to it: the RPC layer may be about to
    /// look there, and holds the connection for that. What it knows as the reverse transport does
    /// not change any more.
    pub(super) fn detach(&self) {
        if let Some(forward) = &mut *self.forward.lock() {
            forward.detached = true;
        }
    }

    /// Forgets the connection: nobody holds it any more. Its reverse transport, which others may
    /// hold for longer, forgets it.
    pub(super) fn clear(&self) {
        let reverse = self.reverse.linked.lock();
        if let Some(reverse) = &*reverse {
            // SAFETY: Valid by the type invariant, and the lock is held.
            unsafe { (&raw mut (*reverse.0.as_ptr()).bc_xprt).write(core::ptr::null_mut()) };
        }
        let taken = self.forward.lock().take();
        drop(reverse);
        drop(taken);
    }

    /// Returns the connection for a Call; none where it ends, or is gone.
    pub(super) fn caller(&self) -> Option<Arc<C>> {
        let reverse = self.reverse.linked.lock();
        let forward = self.forward.lock();
        let forward = forward.as_ref().filter(|forward| !forward.detached)?;
        // What calls was made.
        forward.publish(reverse.as_ref()?);
        Some(forward.connection.clone())
    }

    /// Runs `f`, which must not sleep, with the connection, if it is there. Whoever had a reference
    /// of their own might drop the last one.
    pub(super) fn with_connection(&self, f: impl FnOnce(&C)) {
        if let Some(forward) = &*self.forward.lock() {
            f(&forward.connection);
        }
    }

    /// Makes a transport the reverse one of the connection. `EBUSY` if it has one: two clients of
    /// the service may ask at once.
    ///
    /// The RPC layer does not know it by the connection before the first Call: it may destroy what
    /// it is making.
    ///
    /// # Safety
    ///
    /// `xprt` must be a transport of `ReverseOps::new_xprt`, known to nobody else, and not be freed
    /// before [`Self::unlink`] has returned.
    pub(super) unsafe fn link(&self, xprt: NonNull<bindings::rpc_xprt>) -> Result {
        let mut reverse = self.reverse.linked.lock();
        let forward = self.forward.lock();
        let forward = forward.as_ref().ok_or(ENOTCONN)?;
        if forward.detached {
            return Err(ENOTCONN);
        }
        if let Some(first) = &*reverse {
            // Whoever asks again finds it, though its client may never have called.
            forward.publish(first);
            return Err(EBUSY);
        }
        // SAFETY: The transport is valid, and nobody else knows of it.
        unsafe { (&raw mut (*xprt.as_ptr()).bc_xprt).write(forward.xprt.as_ptr()) };
        // INVARIANT: It is valid until it is unlinked, as the caller promises.
        *reverse = Some(Linked(xprt));
        Ok(())
    }

    /// Forgets a transport that goes, perhaps before anybody has used it: nobody looks at it any
    /// more when this returns.
    pub(super) fn unlink(&self, xprt: *mut bindings::rpc_xprt) {
        let mut reverse = self.reverse.linked.lock();
        let Some(linked) = reverse.take_if(|linked| core::ptr::eq(linked.0.as_ptr(), xprt)) else {
            return;
        };
        if let Some(forward) = &*self.forward.lock() {
            // It may be another that is known, or none.
            let known = forward.reverse();
            let _ = known.cmpxchg(linked.0.as_ptr(), core::ptr::null_mut(), Relaxed);
        }
    }
}
