// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Calls of a server to its client, by the client's connection (RFC 8167).
//!
//! The RPC layer makes a client transport of a class of its own for that. It outlives the
//! connection, of which it keeps nothing but a [`BcLink`].

use crate::kapi::{
    bindings,
    sunrpc::{
        backchannel::MAX_REVERSE,
        buffer::RpcBuffer,
        class::REVERSE,
        private::{
            free,
            Fresh,
            Private, //
        },
        rqst::RpcRqst,
        svc::{
            link::BcLink,
            rqst::NoState,
            xprt::SvcXprt,
            ReverseDirection,
            SvcListener, //
        },
        transport::to_send_again,
        xprt::{
            Xprt,
            NO_CALLS, //
        },
    },
    sys::module::ModuleRef, //
};
use core::{
    ffi::c_int,
    marker::PhantomData, //
};
use kernel::{
    error::from_result,
    prelude::*,
    sync::Arc, //
};

/// What such a transport has of ours, until the RPC layer destroys it.
struct Data<T: SvcListener> {
    link: Arc<BcLink<T::Connection>>,
    state: Arc<NoState>,
    // Last of all, since the end of this module waits for it.
    _module: ModuleRef,
}

/// The table of calls of the RPC layer into the reverse direction of a service.
pub(in crate::kapi::sunrpc) struct ReverseOps<T: SvcListener>(PhantomData<T>);

impl<T: SvcListener> ReverseOps<T> {
    /// Makes a transport for the reverse direction of the connection in the arguments.
    ///
    /// # Safety
    ///
    /// The arguments must be those of the RPC layer.
    unsafe fn new_xprt(args: *const bindings::xprt_create) -> Result<*mut bindings::rpc_xprt> {
        // SAFETY: The arguments are valid by the contract of this function.
        let svc_xprt = unsafe { (*args).bc_xprt };
        if svc_xprt.is_null() {
            return Err(EINVAL);
        }
        // SAFETY: The connection is valid for the call, which its user sees to. The RPC layer has
        // looked the class up, which is registered with that of the service.
        let link = unsafe { SvcXprt::<T>::link_of(svc_xprt) }.ok_or(EINVAL)?;
        let module = ModuleRef::try_get().ok_or(EIO)?;
        let state = Arc::new(NoState, GFP_KERNEL)?;
        let requests = T::Connection::CREDITS;
        // SAFETY: The arguments are those of the RPC layer by the contract of this function.
        let fresh = unsafe { Fresh::new(args, requests, requests) }?;
        let xprt = fresh.xprt().as_ptr();
        // SAFETY: Nobody else knows of it.
        unsafe {
            (*xprt).ops = Self::TABLE;
            (*xprt).prot = bindings::xprt_transports_XPRT_TRANSPORT_BC_RDMA;
            (*xprt).xprt_class = REVERSE.as_raw().cast();
            (*xprt).max_payload = MAX_REVERSE;
            bindings::xprt_set_bound(xprt);
            bindings::xprt_set_connected(xprt);
        }
        // There is one for the life of the connection. Service threads may know of it from here on,
        // so that nothing may fail any more. They look for requests of it alone: its data are for
        // the callbacks of a client, which the RPC layer makes of what this function returns.
        // SAFETY: A transport of this function, which `destroy` unlinks before it is freed.
        unsafe { link.link(fresh.xprt()) }?;
        Ok(fresh.finish(Data::<T> {
            link,
            state,
            _module: module,
        }))
    }
}

#[expect(
    clippy::missing_safety_doc,
    reason = "the RPC layer alone calls these, with valid objects of a transport of ours"
)]
impl<T: SvcListener> ReverseOps<T> {
    const TABLE: &'static bindings::rpc_xprt_ops = &bindings::rpc_xprt_ops {
        reserve_xprt: Some(bindings::xprt_reserve_xprt),
        release_xprt: Some(bindings::xprt_release_xprt),
        alloc_slot: Some(bindings::xprt_alloc_slot),
        free_slot: Some(bindings::xprt_free_slot),
        connect: Some(Self::connect),
        buf_alloc: Some(Self::buf_alloc),
        buf_free: Some(Self::buf_free),
        send_request: Some(Self::send_request),
        wait_for_reply_request: Some(RpcBuffer::<NoState>::wait_for_reply),
        release_request: Some(Self::release_request),
        close: Some(bindings::xprt_disconnect_done),
        destroy: Some(Self::destroy),
        print_stats: Some(Self::print_stats),
        ..NO_CALLS
    };

    /// Makes a transport for the reverse direction of a connection. May sleep.
    pub(in crate::kapi::sunrpc) unsafe extern "C" fn setup(
        args: *mut bindings::xprt_create,
    ) -> *mut bindings::rpc_xprt {
        // SAFETY: The arguments are valid for the time of the call.
        unsafe { Self::new_xprt(args) }.unwrap_or_else(|e| e.to_ptr())
    }

    /// Destroys a transport whose last reference is gone. From a workqueue of the kernel.
    unsafe extern "C" fn destroy(xprt: *mut bindings::rpc_xprt) {
        // SAFETY: The RPC layer makes no other call any more.
        unsafe {
            let data = Private::<Data<T>>::take(xprt);
            data.link.unlink(xprt);
            free(xprt);
        }
    }

    /// Gets memory for a Call and its Reply. From its task; sleeps as that may.
    unsafe extern "C" fn buf_alloc(task: *mut bindings::rpc_task) -> c_int {
        // SAFETY: The task, which calls, has a request on a transport of `new_xprt`.
        let (rqst, data) = unsafe { Private::<Data<T>>::of_task(task) };
        // SAFETY: The request is the task's, which calls.
        let (call, reply) = unsafe { ((*rqst).rq_callsize, (*rqst).rq_rcvsize) };
        if call > MAX_REVERSE {
            return EINVAL.to_errno();
        }
        from_result(|| {
            let reply_offset = RpcBuffer::<NoState>::reply_offset(call).ok_or(ENOMEM)?;
            let len = reply_offset.saturating_add(reply);
            let buffer = RpcBuffer::new(len, data.state.clone())?;
            // SAFETY: The request is the task's, which calls, and has no memory yet.
            unsafe { buffer.lend(rqst, reply_offset) };
            Ok(0)
        })
    }

    /// Takes the memory of a Call back. From its task.
    unsafe extern "C" fn buf_free(task: *mut bindings::rpc_task) {
        // SAFETY: The request has memory of `buf_alloc`. What was sent of it was copied, and its
        // task, which calls, has taken it from the receive queue.
        drop(unsafe { RpcBuffer::<NoState>::take_back((*task).tk_rqstp) });
    }

    /// Sends a Call. From an RPC task that has locked the transport; may sleep.
    unsafe extern "C" fn send_request(rqst: *mut bindings::rpc_rqst) -> c_int {
        // SAFETY: The RPC layer sends a request on a transport of `new_xprt` that it holds, and
        // whose data is there until it is destroyed.
        let data = unsafe { Private::<Data<T>>::data((*rqst).rq_xprt) };
        // SAFETY: The RPC layer holds the transport of the request.
        let xprt = unsafe { Xprt::from_raw((*rqst).rq_xprt) };
        let Some(connection) = data.link.caller() else {
            // It may not have been known to the RPC layer when that closed the connection.
            // SAFETY: The transport is valid, and locked by the caller.
            unsafe { bindings::xprt_disconnect_done(xprt.as_raw()) };
            return ENOTCONN.to_errno();
        };
        if !xprt.is_connected() {
            return ENOTCONN.to_errno();
        }
        // SAFETY: The request is a Call, so that it has a task, and that a client. The caller has
        // locked the transport to send it, and it stays until then.
        let message = unsafe {
            RpcBuffer::<NoState>::prefix_of(rqst).progress.sent();
            RpcRqst::from_raw(rqst)
        };
        let sent = connection.call(message);
        // What is the Call's own cannot be told from here to its RPC alone.
        let sent = sent.map_err(|e| to_send_again(e).unwrap_or(ENOTCONN));
        from_result(|| sent.map(|()| 0))
    }

    /// Ends an RPC. From its task, with the lock of the transport's state held.
    unsafe extern "C" fn release_request(task: *mut bindings::rpc_task) {
        // SAFETY: The task has its request still, which is one of a transport of `new_xprt`, whose
        // data is there until it is destroyed.
        let (xid, data) = unsafe {
            let (rqst, data) = Private::<Data<T>>::of_task(task);
            (u32::from_be((*rqst).rq_xid), data)
        };
        data.link
            .with_connection(|connection| connection.call_ended(xid));
    }

    /// Refuses to connect, which only the client can. From an RPC task.
    unsafe extern "C" fn connect(xprt: *mut bindings::rpc_xprt, _: *mut bindings::rpc_task) {
        // SAFETY: Called with a transport of ours, marked as connecting.
        unsafe {
            bindings::xprt_clear_connecting(xprt);
            bindings::xprt_wake_pending_tasks(xprt, ENOTCONN.to_errno());
        }
    }

    /// Prints nothing: nobody asks for statistics but of mounts.
    unsafe extern "C" fn print_stats(_: *mut bindings::rpc_xprt, _: *mut bindings::seq_file) {}
}
