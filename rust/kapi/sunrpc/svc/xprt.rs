// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! A server transport: a listener or a connection, from its making to its tear-down.

use crate::kapi::{
    bindings,
    sunrpc::{
        class::{
            SERVICE,
            SERVICE_QUEUE, //
        },
        handle::{
            Common,
            HandleInner, //
        },
        svc::{
            handle::SvcHandle,
            link::BcLink,
            SvcConnection,
            SvcListener, //
        },
    },
    sys::{
        net::{
            Net,
            NetRef, //
        },
        workqueue::{
            init_plain_work,
            queue_plain_work,
            work_class, //
        },
    },
};
use core::{
    mem::{
        replace,
        zeroed,
        ManuallyDrop, //
    },
    ptr::NonNull, //
};
use kernel::{
    container_of,
    prelude::*,
    sync::Arc, //
};

/// What a transport is.
pub(super) enum Kind<T: SvcListener> {
    /// Being made, or gone.
    None,
    Listener(T),
    Connection(Arc<T::Connection>),
}

/// A server transport with what the RPC layer knows of it.
///
/// # Invariants
///
/// `kind` is set before the RPC layer knows of the transport, and changed only by the tear-down,
/// when it does not any more.
#[repr(C)]
pub(super) struct SvcXprt<T: SvcListener> {
    xprt: bindings::svc_xprt,
    work: bindings::work_struct,
    common: Pin<KBox<Common<NetRef>>>,
    link: Arc<BcLink<T::Connection>>,
    kind: Kind<T>,
}

impl<T: SvcListener> SvcXprt<T> {
    /// Returns what a transport is.
    ///
    /// # Safety
    ///
    /// `xprt` must be a transport of this service, known to the RPC layer for `'a`.
    pub(super) unsafe fn kind<'a>(xprt: *mut bindings::svc_xprt) -> &'a Kind<T> {
        // SAFETY: It is the first part of an `SvcXprt<T>`, whose kind does not change while the RPC
        // layer knows of it.
        unsafe { &(*xprt.cast::<Self>()).kind }
    }

    /// Returns the connection that a transport is. None for a listener.
    ///
    /// # Safety
    ///
    /// `xprt` must be a transport of this service, known to the RPC layer for `'a`.
    pub(super) unsafe fn connection<'a>(
        xprt: *mut bindings::svc_xprt,
    ) -> Option<&'a T::Connection> {
        // SAFETY: The contract of this function is that of the other one.
        match unsafe { Self::kind(xprt) } {
            Kind::Connection(connection) => Some(connection),
            _ => None,
        }
    }

    /// Returns what leads to the connection.
    ///
    /// # Safety
    ///
    /// `xprt` must be a transport of this service, and stay for `'a`.
    pub(super) unsafe fn link<'a>(xprt: *mut bindings::svc_xprt) -> &'a Arc<BcLink<T::Connection>> {
        // SAFETY: It is the first part of an `SvcXprt<T>`, whose link does not change.
        unsafe { &(*xprt.cast::<Self>()).link }
    }

    /// Returns what leads to the connection. None if the transport is not one of this service.
    ///
    /// # Safety
    ///
    /// `xprt` must be a valid transport of any service, and this one be registered.
    pub(super) unsafe fn link_of(
        xprt: *mut bindings::svc_xprt,
    ) -> Option<Arc<BcLink<T::Connection>>> {
        // SAFETY: Valid by the contract of this function.
        let ours = core::ptr::eq(unsafe { (*xprt).xpt_class }, SERVICE.as_raw());
        // SAFETY: One of this class is of this service: no other is registered while this is.
        ours.then(|| unsafe { Self::link(xprt) }.clone())
    }

    /// Queues the tear-down. Any context.
    ///
    /// # Safety
    ///
    /// `xprt` must be a transport of this service whose last reference is gone; to be called once.
    pub(super) unsafe fn queue_tear_down(xprt: *mut bindings::svc_xprt) {
        // SAFETY: A transport of ours: the end of its class, which has a queue, waits for it.
        let queue = unsafe { &*SERVICE_QUEUE.as_raw() }.as_raw();
        // SAFETY: Nobody else knows of the transport any more, and its work is initialised. The
        // queue stays until the module goes, which waits for what is queued.
        unsafe { queue_plain_work(queue, &raw mut (*xprt.cast::<Self>()).work) };
    }

    /// Tears a transport down. On the queue of the class; sleeps.
    ///
    /// # Safety
    ///
    /// To be called for the work that [`Self::queue_tear_down`] has queued.
    unsafe extern "C" fn tear_down(work: *mut bindings::work_struct) {
        // SAFETY: The contract of this function says that the work is in such an object.
        let place = unsafe { container_of!(work, Self, work) };
        // SAFETY: The object is nobody else's any more, but for handles, which look at the
        // transport: the references are to other parts of it.
        let (link, kind) = unsafe {
            let kind = replace(&mut (*place).kind, Kind::None);
            (&(*place).link, kind)
        };
        link.clear();
        if let Kind::Connection(connection) = &kind {
            // Somebody who calls in the reverse direction may still hold it for a moment.
            connection.shutdown();
        }
        // A listener waits for its handlers.
        drop(kind);
        // SAFETY: The object is there until the end of this function.
        unsafe { &(*place).common }.wait();
        // SAFETY: Of the box that `NewSvcXprt::new` took apart. The last handle is gone, and with
        // it whoever could use the object.
        drop(unsafe { KBox::from_raw(place) });
    }
}

/// A transport that the RPC layer was not told of. Dropped, it is torn down.
///
/// # Invariants
///
/// It is of [`Self::new`], and has one reference, of which nobody else knows.
pub(super) struct NewSvcXprt<T: SvcListener>(NonNull<SvcXprt<T>>);

impl<T: SvcListener> NewSvcXprt<T> {
    /// Makes a transport without kind, with one reference, marked as busy. May sleep.
    ///
    /// # Safety
    ///
    /// `net` and `serv` must be valid. This must be for a call of the RPC layer, which does not
    /// return before the result is finished or dropped.
    pub(super) unsafe fn new(
        serv: *mut bindings::svc_serv,
        net: *mut bindings::net,
    ) -> Result<(Self, SvcHandle)> {
        let place = KBox::new(
            SvcXprt::<T> {
                // SAFETY: A structure of C, which is initialised below.
                xprt: unsafe { zeroed() },
                // SAFETY: A structure of C, which is initialised below.
                work: unsafe { zeroed() },
                // SAFETY: The namespace is valid by the contract of this function.
                common: Common::new(NetRef::from(unsafe { Net::from_raw(net) }))?,
                link: BcLink::new()?,
                kind: Kind::None,
            },
            GFP_KERNEL,
        )?;
        let place = NonNull::from(KBox::leak(place));
        let raw = place.as_ptr();
        // SAFETY: `tear_down` waits before it frees them.
        let handle = unsafe { HandleInner::new(place.cast(), &(*raw).common) };
        let handle = handle.inspect_err(|_| {
            // SAFETY: Of the box above, and nobody else knows of it.
            drop(unsafe { KBox::from_raw(raw) });
        })?;
        let class = work_class!(c"svcrdma_free");
        // SAFETY: Nobody else knows of the work, which is in the object that `tear_down` wants.
        unsafe { init_plain_work(&raw mut (*raw).work, SvcXprt::<T>::tear_down, class) };
        // SAFETY: Nobody else knows of the transport; namespace and service are valid by the
        // contract of this function.
        unsafe { bindings::svc_xprt_init(net, SERVICE.as_raw(), raw.cast(), serv) };
        // INVARIANT: Made above, with one reference.
        Ok((Self(place), SvcHandle(handle)))
    }

    /// Makes it what it is. It is to be handed to the RPC layer, which is busy with it until then:
    /// events may mark it, but no service thread looks at it.
    pub(super) fn finish(self, kind: Kind<T>) -> *mut bindings::svc_xprt {
        let place = ManuallyDrop::new(self).0;
        // SAFETY: By the type invariant nobody else looks at it. The tear-down clears the link
        // before the memory goes.
        unsafe {
            if let Kind::Connection(connection) = &kind {
                (*place.as_ptr()).link.set(connection.clone(), place.cast());
            }
            (&raw mut (*place.as_ptr()).kind).write(kind);
        }
        place.as_ptr().cast()
    }
}

impl<T: SvcListener> Drop for NewSvcXprt<T> {
    fn drop(&mut self) {
        // Its end gives a reference to this module back; that of the RPC layer's call is given back
        // by its caller.
        // SAFETY: The RPC layer holds a reference for the time of its call, so there is one to add
        // to, and the module cannot be going.
        unsafe { bindings::__module_get() };
        // SAFETY: By the type invariant there is one reference, of which nobody else knows.
        unsafe { bindings::svc_xprt_put(self.0.as_ptr().cast()) };
    }
}
