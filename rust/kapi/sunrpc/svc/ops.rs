// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The calls of the RPC layer into a server transport.

#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
mod tests;

use crate::kapi::{
    bindings,
    sunrpc::{
        class::SERVICE,
        handle::{
            Common,
            HandleInner, //
        },
        svc::{
            handle::{
                is_dead,
                SvcHandle, //
            },
            link::BcLink,
            payload::Payloads,
            reply::SvcReply,
            rqst::SvcRqst,
            Service, //
        },
    },
    sys::{
        address::SocketAddress,
        net,
        stable::StableBytes,
        workqueue::{
            init_plain_work,
            queue_plain_work,
            work_class, //
        },
    },
    trace::svcrdma_send_err, //
};
use core::{
    marker::PhantomData,
    ptr::NonNull, //
};
use kernel::{
    container_of,
    ffi::{
        c_int,
        c_uint,
        c_void, //
    },
    prelude::*,
    sync::Arc, //
};

/// What a transport is.
enum Kind<T: Service> {
    /// Being made, or gone.
    None,
    Listener(T::Listener),
    Connection(Arc<T::Connection>),
}

/// A server transport with what the RPC layer knows of it.
///
/// # Invariants
///
/// `kind` is set before the RPC layer knows of the transport, and changed only by the tear-down,
/// when it does not any more.
#[repr(C)]
struct Private<T: Service> {
    xprt: bindings::svc_xprt,
    work: bindings::work_struct,
    common: Pin<KBox<Common<net::NetRef>>>,
    link: Arc<BcLink<T::Connection>>,
    kind: Kind<T>,
}

/// What a request brings back when its Reply is to be sent.
struct Context<T: Service> {
    /// None once the Reply is being sent.
    message: Option<T::Message>,
    payloads: Payloads,
}

/// The table of calls for a service.
pub(super) struct SvcOps<T: Service>(PhantomData<T>);

impl<T: Service> SvcOps<T> {
    pub(super) const TABLE: &'static bindings::svc_xprt_ops = &bindings::svc_xprt_ops {
        xpo_create: Some(Self::create),
        xpo_accept: Some(Self::accept),
        xpo_has_wspace: Some(Self::has_wspace),
        xpo_recvfrom: Some(Self::recvfrom),
        xpo_sendto: Some(Self::sendto),
        xpo_result_payload: Some(Self::result_payload),
        xpo_release_ctxt: Some(Self::release_ctxt),
        xpo_detach: Some(Self::detach),
        xpo_free: Some(Self::free),
        xpo_kill_temp_xprt: Some(Self::kill_temp_xprt),
        xpo_handshake: None,
    };

    /// A transport without kind, with one reference, marked as busy.
    ///
    /// # Safety
    ///
    /// `net` and `serv` must be valid.
    unsafe fn make(
        serv: *mut bindings::svc_serv,
        net: *mut bindings::net,
    ) -> Result<(NonNull<Private<T>>, SvcHandle)> {
        let private = KBox::new(
            Private::<T> {
                // SAFETY: A structure of C, which is initialised below.
                xprt: unsafe { core::mem::zeroed() },
                // SAFETY: A structure of C, which is initialised below.
                work: unsafe { core::mem::zeroed() },
                // SAFETY: The namespace is valid by the contract of this function.
                common: Common::new(unsafe { net::Net::from_raw(net) }.hold())?,
                link: BcLink::new()?,
                kind: Kind::None,
            },
            GFP_KERNEL,
        )?;
        let private = NonNull::new(KBox::into_raw(private)).ok_or(ENOMEM)?;
        let place = private.as_ptr();
        // SAFETY: `tear_down` waits before it frees them.
        let handle = match unsafe { HandleInner::new(private.cast(), &(*place).common) } {
            Ok(handle) => handle,
            Err(e) => {
                // SAFETY: Of the box above, and nobody else knows of it.
                drop(unsafe { KBox::from_raw(place) });
                return Err(e);
            }
        };
        let class = work_class!(c"svcrdma_free");
        // SAFETY: Nobody else knows of the work, which is in the object that `tear_down` wants.
        unsafe { init_plain_work(&raw mut (*place).work, Self::tear_down, class) };
        // SAFETY: Nobody else knows of the transport; namespace and service are valid by the
        // contract of this function.
        unsafe { bindings::svc_xprt_init(net, SERVICE.as_raw(), place.cast(), serv) };
        Ok((private, SvcHandle(handle)))
    }

    /// Lets a transport go that the RPC layer was not told of. Its end gives a reference to this
    /// module back; that of the RPC layer's call is given back by its caller.
    ///
    /// # Safety
    ///
    /// It must be of [`Self::make`], for a call of the RPC layer that has not returned.
    unsafe fn abandon(private: NonNull<Private<T>>) {
        // SAFETY: The RPC layer holds a reference for the time of its call, so there is one to add
        // to, and the module cannot be going.
        unsafe { bindings::__module_get() };
        // SAFETY: Of `make`, the transport has one reference, of which nobody else knows.
        unsafe { bindings::svc_xprt_put(private.as_ptr().cast()) };
    }

    /// # Safety
    ///
    /// `xprt` must be a transport of this service, known to the RPC layer.
    unsafe fn kind<'a>(xprt: *mut bindings::svc_xprt) -> &'a Kind<T> {
        // SAFETY: It is the first part of a `Private<T>`, whose kind does not change while the
        // RPC layer knows of it.
        unsafe { &(*xprt.cast::<Private<T>>()).kind }
    }

    /// # Safety
    ///
    /// As for [`Self::kind`].
    unsafe fn connection<'a>(xprt: *mut bindings::svc_xprt) -> Option<&'a T::Connection> {
        // SAFETY: The contract of this function is that of the other one.
        match unsafe { Self::kind(xprt) } {
            Kind::Connection(connection) => Some(connection),
            _ => None,
        }
    }

    /// What leads to the connection. None if the transport is not one of this service.
    ///
    /// # Safety
    ///
    /// `xprt` must be a valid transport of any service, and this one be registered.
    pub(super) unsafe fn link_of(
        xprt: *mut bindings::svc_xprt,
    ) -> Option<Arc<BcLink<T::Connection>>> {
        // SAFETY: Valid by the contract of this function.
        let ours = core::ptr::eq(unsafe { (*xprt).xpt_class }, SERVICE.as_raw());
        // SAFETY: One of this class is the first part of a `Private<T>`: no other service is
        // registered while this is. Its link does not change.
        ours.then(|| unsafe { (*xprt.cast::<Private<T>>()).link.clone() })
    }

    /// Makes a listener. From who configures the server; may sleep.
    ///
    /// # Safety
    ///
    /// To be called by the RPC layer alone, as all functions below.
    unsafe extern "C" fn create(
        serv: *mut bindings::svc_serv,
        net: *mut bindings::net,
        sa: *mut bindings::sockaddr,
        salen: c_int,
        _flags: c_int,
    ) -> *mut bindings::svc_xprt {
        // SAFETY: All arguments are valid.
        match unsafe { Self::new_listener(serv, net, sa, salen) } {
            Ok(xprt) => xprt,
            Err(e) => e.to_ptr(),
        }
    }

    /// # Safety
    ///
    /// The arguments must be those of the RPC layer.
    unsafe fn new_listener(
        serv: *mut bindings::svc_serv,
        net: *mut bindings::net,
        sa: *mut bindings::sockaddr,
        salen: c_int,
    ) -> Result<*mut bindings::svc_xprt> {
        let mut storage = bindings::__kernel_sockaddr_storage::default();
        let len = usize::try_from(salen).map_err(|_| EINVAL)?;
        if len > core::mem::size_of_val(&storage) {
            return Err(EINVAL);
        }
        // SAFETY: The address is `salen` bytes long, and there is room for as many.
        unsafe {
            core::ptr::copy_nonoverlapping(sa.cast::<u8>(), (&raw mut storage).cast::<u8>(), len)
        };
        let address = SocketAddress::new(storage);
        if !address.is_ip() {
            return Err(EAFNOSUPPORT);
        }
        // SAFETY: Both are valid, since they are the RPC layer's arguments.
        let (private, handle) = unsafe { Self::make(serv, net)? };
        // SAFETY: The namespace is valid for the call.
        let listener = match T::listen(handle, unsafe { net::Net::from_raw(net) }, &address) {
            Ok(listener) => listener,
            Err(e) => {
                // SAFETY: Fresh.
                unsafe { Self::abandon(private) };
                return Err(e);
            }
        };
        let local = T::local_address(&listener);
        let Some(len) = local.ip_len() else {
            drop(listener);
            // SAFETY: Fresh.
            unsafe { Self::abandon(private) };
            return Err(EAFNOSUPPORT);
        };
        // SAFETY: Fresh; service threads do not know of it before this returns, although events
        // may mark it: it is busy until then.
        unsafe {
            let place = private.as_ptr();
            (&raw mut (*place).kind).write(Kind::Listener(listener));
            let xprt = place.cast::<bindings::svc_xprt>();
            bindings::svc_xprt_set_local(xprt, local.as_raw(), len);
            bindings::svc_xprt_set_listener(xprt);
            Ok(xprt)
        }
    }

    /// Accepts a connection. From a service thread; may sleep.
    ///
    /// # Safety
    ///
    /// As for [`Self::create`].
    unsafe extern "C" fn accept(xprt: *mut bindings::svc_xprt) -> *mut bindings::svc_xprt {
        // SAFETY: Called with a listener of ours.
        unsafe {
            bindings::clear_bit(bindings::XPT_CONN as usize, &raw mut (*xprt).xpt_flags);
            let Kind::Listener(listener) = Self::kind(xprt) else {
                return core::ptr::null_mut();
            };
            let accepted = Self::new_connection(xprt, listener);
            if T::is_pending(listener) {
                bindings::set_bit(bindings::XPT_CONN as usize, &raw mut (*xprt).xpt_flags);
            }
            accepted.unwrap_or(core::ptr::null_mut())
        }
    }

    /// # Safety
    ///
    /// `xprt` must be the listener's transport.
    unsafe fn new_connection(
        xprt: *mut bindings::svc_xprt,
        listener: &T::Listener,
    ) -> Result<*mut bindings::svc_xprt> {
        // SAFETY: Service and namespace stay as long as the listener.
        let (private, handle, max_message) = unsafe {
            let serv = (*xprt).xpt_server;
            let (private, handle) = Self::make(serv, (*xprt).xpt_net)?;
            (private, handle, (*serv).sv_max_mesg as usize)
        };
        let connection = match T::accept(listener, handle, max_message) {
            Ok(connection) => connection,
            Err(e) => {
                // SAFETY: Fresh.
                unsafe { Self::abandon(private) };
                return Err(e);
            }
        };
        let connection = match Arc::new(connection, GFP_KERNEL) {
            Ok(connection) => connection,
            Err(e) => {
                // SAFETY: Fresh.
                unsafe { Self::abandon(private) };
                return Err(e.into());
            }
        };
        let (local, remote) = T::addresses(&connection);
        let (Some(local_len), Some(remote_len)) = (local.ip_len(), remote.ip_len()) else {
            drop(connection);
            // SAFETY: Fresh.
            unsafe { Self::abandon(private) };
            return Err(EAFNOSUPPORT);
        };
        // SAFETY: Fresh; service threads do not know of it before this returns.
        unsafe {
            let place = private.as_ptr();
            let new = place.cast::<bindings::svc_xprt>();
            // The tear-down clears it before the memory goes.
            (*place).link.set(connection.clone(), private.cast());
            (&raw mut (*place).kind).write(Kind::Connection(connection));
            bindings::svc_xprt_set_local(new, local.as_raw(), local_len);
            bindings::svc_xprt_set_client(new, remote.as_raw(), remote_len);
            bindings::set_bit(bindings::XPT_CONG_CTRL as usize, &raw mut (*new).xpt_flags);
            Ok(new)
        }
    }

    /// There is always room: who sends waits for it.
    ///
    /// # Safety
    ///
    /// As for [`Self::create`].
    unsafe extern "C" fn has_wspace(_xprt: *mut bindings::svc_xprt) -> c_int {
        1
    }

    /// Takes a request. From a service thread; may sleep.
    ///
    /// # Safety
    ///
    /// As for [`Self::create`].
    unsafe extern "C" fn recvfrom(rqstp: *mut bindings::svc_rqst) -> c_int {
        // SAFETY: The RPC layer calls this for a running thread, with its request.
        let xprt = unsafe {
            (*rqstp).rq_xprt_ctxt = core::ptr::null_mut();
            (*rqstp).rq_xprt
        };
        let set_pending = |pending: bool| {
            let bit = bindings::XPT_DATA as usize;
            // SAFETY: The transport of the request is valid; its flags change atomically.
            unsafe {
                let flags = &raw mut (*xprt).xpt_flags;
                if pending {
                    bindings::set_bit(bit, flags);
                } else {
                    bindings::clear_bit(bit, flags);
                }
            }
        };
        // SAFETY: This thread has marked the transport as busy, and lets go of it here, once.
        let received = || unsafe { bindings::svc_xprt_received(xprt) };

        set_pending(false);
        // SAFETY: The transport is one of this service, and known to the RPC layer.
        let Some(connection) = (unsafe { Self::connection(xprt) }) else {
            received();
            return 0;
        };
        let (item, more) = T::next(connection);
        if more {
            set_pending(true);
        }
        // From here on other threads may take the next ones.
        received();
        let Some(item) = item else { return 0 };
        // SAFETY: Of a running thread; its transport, and what that is of, stay as long as the
        // thread is at work for it.
        unsafe { Self::begin(rqstp, xprt, connection, item) }.unwrap_or_else(|_| {
            // The client would wait for a Reply that never comes.
            // SAFETY: The transport of the request is valid.
            unsafe { bindings::svc_xprt_deferred_close(xprt) };
            0
        })
    }

    /// # Safety
    ///
    /// `rqstp` must be of a running thread, and `xprt` its transport, that of `connection`.
    unsafe fn begin(
        rqstp: *mut bindings::svc_rqst,
        xprt: *mut bindings::svc_xprt,
        connection: &T::Connection,
        item: T::RecvItem,
    ) -> Result<c_int> {
        let raw = NonNull::new(rqstp).ok_or(EINVAL)?;
        let private = xprt.cast::<Private<T>>();
        // SAFETY: The thread runs us. What the transport is the first part of stays as long as the
        // thread is at work for it, and its link does not change.
        let mut rqst = unsafe { SvcRqst::from_raw(raw, (*private).link.reverse()) };
        let Some((message, argument)) = T::request(connection, item, &mut rqst)? else {
            return Ok(0);
        };
        let context = KBox::init(
            init!(Context::<T> {
                message: Some(message),
                payloads <- Payloads::none(),
            }? Error),
            GFP_KERNEL,
        )?;
        let bytes = context.message.as_ref().ok_or(EINVAL)?.memory();
        // SAFETY: The message stays in the context until `release_ctxt`, or `sendto`, which has
        // the argument forgotten; nobody looks at it before that.
        let len = unsafe { rqst.set_argument(bytes, argument) };
        // SAFETY: The thread runs us; the transport is valid.
        unsafe {
            (*rqstp).rq_xprt_ctxt = KBox::into_raw(context).cast();
            (*rqstp).rq_prot = bindings::IPPROTO_MAX;
            bindings::svc_xprt_copy_addrs(rqstp, xprt);
            bindings::set_bit(bindings::RQ_SECURE as usize, &raw mut (*rqstp).rq_flags);
        }
        Ok(c_int::try_from(len).unwrap_or(0))
    }

    /// # Safety
    ///
    /// `rqstp` must be of a running thread, on a transport of ours.
    unsafe fn context<'a>(rqstp: *mut bindings::svc_rqst) -> Option<&'a mut Context<T>> {
        // SAFETY: Set by `begin`, from a box, and only the running thread uses it.
        unsafe { (*rqstp).rq_xprt_ctxt.cast::<Context<T>>().as_mut() }
    }

    /// Sends the Reply. From a service thread; may sleep.
    ///
    /// # Safety
    ///
    /// As for [`Self::create`].
    unsafe extern "C" fn sendto(rqstp: *mut bindings::svc_rqst) -> c_int {
        // SAFETY: Called with a request of a running thread, on a transport of ours.
        unsafe {
            match Self::reply(rqstp) {
                Ok(()) => 0,
                Err(e) => {
                    svcrdma_send_err(|| {
                        let peer = SocketAddress::new((*(*rqstp).rq_xprt).xpt_remote);
                        (peer, u32::from_be((*rqstp).rq_xid), e)
                    });
                    e.to_errno()
                }
            }
        }
    }

    /// # Safety
    ///
    /// `rqstp` must be of a running thread, on a transport of ours.
    unsafe fn reply(rqstp: *mut bindings::svc_rqst) -> Result {
        let raw = NonNull::new(rqstp).ok_or(ENOTCONN)?;
        // SAFETY: The request is of a running thread, on a transport of this service, which stays
        // as long as the thread is at work for it.
        let (xprt, connection, context) = unsafe {
            let xprt = (*rqstp).rq_xprt;
            (xprt, Self::connection(xprt), Self::context(rqstp))
        };
        let (connection, context) = (connection.ok_or(ENOTCONN)?, context.ok_or(ENOTCONN)?);
        let message = context.message.take().ok_or(ENOTCONN)?;
        // SAFETY: The thread runs us, and the RPC layer has encoded the result in its pages.
        let mut rqst = unsafe { SvcReply::from_raw(raw) };
        // The RPC layer does not look at the argument any more when it sends the result.
        rqst.forget_argument();
        // SAFETY: The transport of the request is valid.
        if unsafe { is_dead(xprt) } {
            return Err(ENOTCONN);
        }
        let payloads = context.payloads.as_mut_slice();
        T::reply(connection, message, payloads, &mut rqst)
    }

    /// A part of the result may be placed directly. From a service thread.
    ///
    /// # Safety
    ///
    /// As for [`Self::create`].
    unsafe extern "C" fn result_payload(
        rqstp: *mut bindings::svc_rqst,
        offset: c_uint,
        length: c_uint,
    ) -> c_int {
        // SAFETY: Called with a request of a running thread, on a transport of ours.
        unsafe {
            // Where integrity or privacy wraps the result, which then needs room to spare, nothing
            // of it may be placed directly (RFC 8166, section 8.2.2.3).
            let wrapped = (*rqstp).rq_auth_slack != 0;
            if let (Some(context), false) = (Self::context(rqstp), wrapped) {
                context.payloads.add(offset as usize, length as usize);
            }
        }
        0
    }

    /// The request is done with: not if it was deferred, which takes the context away. From a
    /// service thread, or from who drops a deferred one; may sleep.
    ///
    /// # Safety
    ///
    /// As for [`Self::create`].
    unsafe extern "C" fn release_ctxt(xprt: *mut bindings::svc_xprt, ctxt: *mut c_void) {
        if ctxt.is_null() {
            return;
        }
        // SAFETY: The context is the box that `begin` made, given back once.
        let context = unsafe { KBox::from_raw(ctxt.cast::<Context<T>>()) };
        let replied = context.message.is_none();
        // Whoever drops a deferred request holds no lock.
        #[cfg(CONFIG_RPCRDMA_DEBUG)]
        kernel::task::might_sleep();
        drop(context);
        // SAFETY: Called with a transport of ours.
        unsafe {
            if replied || is_dead(xprt) {
                return;
            }
            if let Some(connection) = Self::connection(xprt) {
                T::dropped(connection);
            }
        }
    }

    /// The transport is closed. From a service thread, or who configures the server; may sleep.
    ///
    /// # Safety
    ///
    /// As for [`Self::create`].
    unsafe extern "C" fn detach(xprt: *mut bindings::svc_xprt) {
        // SAFETY: Called with a transport of ours, which has a reference of the caller's.
        unsafe {
            match Self::kind(xprt) {
                Kind::Listener(listener) => T::unlisten(listener),
                Kind::Connection(connection) => {
                    (*xprt.cast::<Private<T>>()).link.detach();
                    T::detach(connection);
                }
                Kind::None => (),
            }
        }
    }

    /// The last reference is gone. Any context: the rest is done by a work item.
    ///
    /// # Safety
    ///
    /// As for [`Self::create`].
    unsafe extern "C" fn free(xprt: *mut bindings::svc_xprt) {
        let private = xprt.cast::<Private<T>>();
        // SAFETY: A transport of ours: the end of its class, which has a queue, waits for it.
        let queue = unsafe { SERVICE.queue() }.as_raw();
        // SAFETY: Nobody else knows of the transport any more, and its work is initialised. The
        // queue stays until the module goes, which waits for what is queued.
        unsafe { queue_plain_work(queue, &raw mut (*private).work) };
    }

    /// # Safety
    ///
    /// To be called for the work of a `Private<T>` that [`Self::free`] has queued.
    unsafe extern "C" fn tear_down(work: *mut bindings::work_struct) {
        // SAFETY: The contract of this function says that the work is in such an object.
        let private = unsafe { container_of!(work, Private<T>, work) };
        // SAFETY: The object is nobody else's any more, but for handles, which look at the
        // transport: the references are to other parts of it.
        let (link, kind) = unsafe {
            let kind = core::mem::replace(&mut (*private).kind, Kind::None);
            (&(*private).link, kind)
        };
        link.clear();
        if let Kind::Connection(connection) = &kind {
            // Somebody who calls in the reverse direction may still hold it for a moment.
            T::shutdown(connection);
        }
        // A listener waits for its handlers.
        drop(kind);
        // SAFETY: The object is there until the end of this function.
        unsafe { &(*private).common }.wait();
        // SAFETY: Of the box that `make` took apart. The last handle is gone, and with it whoever
        // could use the object.
        drop(unsafe { KBox::from_raw(private) });
    }

    /// Nothing to do: a closed connection does not linger.
    ///
    /// # Safety
    ///
    /// As for [`Self::create`].
    unsafe extern "C" fn kill_temp_xprt(_xprt: *mut bindings::svc_xprt) {}
}
