// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The calls of the RPC layer into a server transport.

#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
mod tests;

use crate::kapi::{
    bindings,
    sunrpc::svc::{
        handle::is_dead,
        payload::Payloads,
        reply::SvcReply,
        rqst::SvcRqst,
        xprt::{
            Kind,
            NewSvcXprt,
            SvcXprt, //
        },
        SvcConnection,
        SvcItem,
        SvcListener,
        SvcMessage, //
    },
    sys::{
        address::SocketAddress,
        net::Net,
        stable::StableBytes, //
    },
    trace::svcrdma_send_err, //
};
use core::marker::PhantomData;
use kernel::{
    error::from_result,
    ffi::{
        c_int,
        c_uint,
        c_void, //
    },
    prelude::*,
    sync::Arc, //
};

/// What a request brings back when its Reply is to be sent.
struct Context<T: SvcListener> {
    /// None once the Reply is being sent.
    message: Option<<T::Connection as SvcConnection>::Message>,
    payloads: Payloads,
}

/// The table of calls for a service.
pub(in crate::kapi::sunrpc) struct SvcOps<T: SvcListener>(PhantomData<T>);

impl<T: SvcListener> SvcOps<T> {
    /// Makes a listener for the RPC layer's arguments.
    ///
    /// # Safety
    ///
    /// The arguments must be those of the RPC layer, whose call does not return before this.
    unsafe fn new_listener(
        serv: *mut bindings::svc_serv,
        net: *mut bindings::net,
        sa: *mut bindings::sockaddr,
        salen: c_int,
    ) -> Result<*mut bindings::svc_xprt> {
        let len = usize::try_from(salen).map_err(|_| EINVAL)?;
        // SAFETY: The address is `salen` bytes long, as the arguments say.
        let address = unsafe { SocketAddress::copy(sa, len) }.ok_or(EINVAL)?;
        if !address.is_ip() {
            return Err(EAFNOSUPPORT);
        }
        // SAFETY: Both are valid, since they are the RPC layer's arguments.
        let (new, handle) = unsafe { NewSvcXprt::<T>::new(serv, net)? };
        // SAFETY: The namespace is valid for the call.
        let listener = T::listen(handle, unsafe { Net::from_raw(net) }, &address)?;
        let local = listener.local_address();
        if !local.is_ip() {
            return Err(EAFNOSUPPORT);
        }
        let xprt = new.finish(Kind::Listener(listener));
        // SAFETY: The RPC layer does not know of it before this returns. The address is of IP.
        unsafe {
            bindings::svc_xprt_set_local(xprt, local.as_raw());
            bindings::svc_xprt_set_listener(xprt);
        }
        Ok(xprt)
    }

    /// Accepts the next connection of a listener.
    ///
    /// # Safety
    ///
    /// `xprt` must be the listener's transport, for which the RPC layer calls.
    unsafe fn new_connection(
        xprt: *mut bindings::svc_xprt,
        listener: &T,
    ) -> Result<*mut bindings::svc_xprt> {
        // SAFETY: Service and namespace stay as long as the listener.
        let (new, handle, max_message) = unsafe {
            let serv = (*xprt).xpt_server;
            let (new, handle) = NewSvcXprt::<T>::new(serv, (*xprt).xpt_net)?;
            (new, handle, (*serv).sv_max_mesg as usize)
        };
        let connection = Arc::new(listener.accept(handle, max_message)?, GFP_KERNEL)?;
        let (local, remote) = connection.addresses();
        if !local.is_ip() || !remote.is_ip() {
            return Err(EAFNOSUPPORT);
        }
        let new = new.finish(Kind::Connection(connection));
        // SAFETY: Service threads do not know of it before this returns. The addresses are of IP.
        unsafe {
            bindings::svc_xprt_set_local(new, local.as_raw());
            bindings::svc_xprt_set_client(new, remote.as_raw());
            bindings::set_bit(bindings::XPT_CONG_CTRL as usize, &raw mut (*new).xpt_flags);
        }
        Ok(new)
    }

    /// Begins a request, and returns the length of its argument: 0 if there is none.
    ///
    /// # Safety
    ///
    /// `rqstp` must be of a running thread, and `xprt` its transport, that of `connection`.
    unsafe fn begin(
        rqstp: *mut bindings::svc_rqst,
        xprt: *mut bindings::svc_xprt,
        connection: &T::Connection,
        item: <T::Connection as SvcConnection>::RecvItem,
    ) -> Result<c_int> {
        // SAFETY: The thread runs us. The transport stays as long as the thread is at work for it.
        let mut rqst = unsafe { SvcRqst::from_raw(rqstp, SvcXprt::<T>::link(xprt).reverse()) };
        let Some((message, argument)) = item.request(connection, &mut rqst)? else {
            return Ok(0);
        };
        let bytes = message.memory();
        let context = init!(Context::<T> {
            message: Some(message),
            payloads: Payloads::default(),
        });
        let context = KBox::init(context, GFP_KERNEL)?;
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

    /// Returns what [`Self::begin`] has kept of a request.
    ///
    /// # Safety
    ///
    /// `rqstp` must be of a running thread, on a transport of ours.
    unsafe fn context<'a>(rqstp: *mut bindings::svc_rqst) -> Option<&'a mut Context<T>> {
        // SAFETY: Set by `begin`, from a box, and only the running thread uses it.
        unsafe { (*rqstp).rq_xprt_ctxt.cast::<Context<T>>().as_mut() }
    }

    /// Sends the Reply to a request.
    ///
    /// # Safety
    ///
    /// `rqstp` must be of a running thread, on a transport of ours.
    unsafe fn reply(rqstp: *mut bindings::svc_rqst) -> Result {
        // SAFETY: The request is of a running thread, on a transport of this service, which stays
        // as long as the thread is at work for it.
        let (xprt, connection, context) = unsafe {
            let xprt = (*rqstp).rq_xprt;
            (xprt, SvcXprt::<T>::connection(xprt), Self::context(rqstp))
        };
        let (connection, context) = (connection.ok_or(ENOTCONN)?, context.ok_or(ENOTCONN)?);
        let message = context.message.take().ok_or(ENOTCONN)?;
        // SAFETY: The thread runs us, and the RPC layer has encoded the result in its pages.
        let mut rqst = unsafe { SvcReply::from_raw(rqstp) };
        // The RPC layer does not look at the argument any more when it sends the result.
        rqst.forget_argument();
        // SAFETY: The transport of the request is valid.
        if unsafe { is_dead(xprt) } {
            return Err(ENOTCONN);
        }
        let payloads = context.payloads.as_mut_slice();
        message.reply(connection, payloads, &mut rqst)
    }
}

#[expect(
    clippy::missing_safety_doc,
    reason = "the RPC layer alone calls these, with valid objects of a transport of ours"
)]
impl<T: SvcListener> SvcOps<T> {
    pub(in crate::kapi::sunrpc) const TABLE: &'static bindings::svc_xprt_ops =
        &bindings::svc_xprt_ops {
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

    /// Makes a listener. From who configures the server; may sleep.
    unsafe extern "C" fn create(
        serv: *mut bindings::svc_serv,
        net: *mut bindings::net,
        sa: *mut bindings::sockaddr,
        salen: c_int,
        _flags: c_int,
    ) -> *mut bindings::svc_xprt {
        // SAFETY: All arguments are valid.
        unsafe { Self::new_listener(serv, net, sa, salen) }.unwrap_or_else(|e| e.to_ptr())
    }

    /// Accepts a connection. From a service thread; may sleep.
    unsafe extern "C" fn accept(xprt: *mut bindings::svc_xprt) -> *mut bindings::svc_xprt {
        // SAFETY: Called with a listener of ours.
        unsafe {
            bindings::clear_bit(bindings::XPT_CONN as usize, &raw mut (*xprt).xpt_flags);
            let Kind::Listener(listener) = SvcXprt::<T>::kind(xprt) else {
                return core::ptr::null_mut();
            };
            let accepted = Self::new_connection(xprt, listener);
            if listener.is_pending() {
                bindings::set_bit(bindings::XPT_CONN as usize, &raw mut (*xprt).xpt_flags);
            }
            accepted.unwrap_or(core::ptr::null_mut())
        }
    }

    /// Returns that there is room: a sender waits for it.
    unsafe extern "C" fn has_wspace(_xprt: *mut bindings::svc_xprt) -> c_int {
        1
    }

    /// Takes a request. From a service thread; may sleep.
    unsafe extern "C" fn recvfrom(rqstp: *mut bindings::svc_rqst) -> c_int {
        // SAFETY: The RPC layer calls this for a running thread, with its request.
        let xprt = unsafe {
            (*rqstp).rq_xprt_ctxt = core::ptr::null_mut();
            (*rqstp).rq_xprt
        };
        let pending = bindings::XPT_DATA as usize;
        // SAFETY: The transport of the request is valid; its flags change atomically.
        let flags = unsafe {
            let flags = &raw mut (*xprt).xpt_flags;
            bindings::clear_bit(pending, flags);
            flags
        };
        // SAFETY: This thread has marked the transport as busy, and lets go of it here, once.
        let received = || unsafe { bindings::svc_xprt_received(xprt) };
        // SAFETY: The transport is one of this service, and known to the RPC layer.
        let Some(connection) = (unsafe { SvcXprt::<T>::connection(xprt) }) else {
            received();
            return 0;
        };
        let (item, more) = connection.next();
        if more {
            // SAFETY: The transport of the request is valid; its flags change atomically.
            unsafe { bindings::set_bit(pending, flags) };
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

    /// Sends the Reply. From a service thread; may sleep.
    unsafe extern "C" fn sendto(rqstp: *mut bindings::svc_rqst) -> c_int {
        // SAFETY: Called with a request of a running thread, on a transport of ours.
        let sent = unsafe { Self::reply(rqstp) };
        let sent = sent.inspect_err(|e| {
            // SAFETY: The request is valid, and so is its transport.
            svcrdma_send_err(|| unsafe {
                let peer = SocketAddress::new((*(*rqstp).rq_xprt).xpt_remote);
                (peer, u32::from_be((*rqstp).rq_xid), *e)
            });
        });
        from_result(|| sent.map(|()| 0))
    }

    /// Notes a part of the result that may be placed directly. From a service thread.
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

    /// Ends a request: not one that was deferred, which takes the context away. From a
    /// service thread, or from who drops a deferred one; may sleep.
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
            if let Some(connection) = SvcXprt::<T>::connection(xprt) {
                connection.dropped();
            }
        }
    }

    /// Closes a transport. From a service thread, or who configures the server; may sleep.
    unsafe extern "C" fn detach(xprt: *mut bindings::svc_xprt) {
        // SAFETY: Called with a transport of ours, which has a reference of the caller's.
        unsafe {
            match SvcXprt::<T>::kind(xprt) {
                Kind::Listener(listener) => listener.unlisten(),
                Kind::Connection(connection) => {
                    SvcXprt::<T>::link(xprt).detach();
                    connection.detach();
                }
                Kind::None => (),
            }
        }
    }

    /// Frees a transport whose last reference is gone. Any context: a work item does it.
    unsafe extern "C" fn free(xprt: *mut bindings::svc_xprt) {
        // SAFETY: A transport of ours, whose last reference is gone.
        unsafe { SvcXprt::<T>::queue_tear_down(xprt) };
    }

    /// Ignores that: a closed connection does not linger.
    unsafe extern "C" fn kill_temp_xprt(_xprt: *mut bindings::svc_xprt) {}
}
