// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Requests with a Call in the reverse direction: their memory, and their end.

use crate::kapi::{
    bindings,
    sunrpc::{
        progress::Progress,
        xprt::Xprt, //
    },
};
use core::ffi::c_int;
use kernel::prelude::*;

/// Bytes of a Call in the reverse direction, at most: no chunks carry one (RFC 8167, section 5.3).
pub(super) const LARGEST: usize = kernel::page::PAGE_SIZE;

/// In front of the memory for a Call and its Reply; a multiple of the alignment that `kmalloc`
/// gives.
#[repr(C, align(16))]
struct Prefix(Progress);

/// How far a request is.
///
/// # Safety
///
/// Its memory must be of [`buf_alloc`], and not freed for `'a`.
pub(super) unsafe fn progress_of<'a>(rqst: *const bindings::rpc_rqst) -> &'a Progress {
    // SAFETY: `buf_alloc` gave out what is behind the prefix.
    let progress = unsafe { &raw const (*(*rqst).rq_buffer.cast::<Prefix>().sub(1)).0 };
    // SAFETY: It is not freed for `'a`, and nobody has an exclusive reference to it.
    unsafe { &*progress }
}

/// Gets memory for a Call and its Reply. From its task; sleeps as that may.
///
/// # Safety
///
/// To be called by the RPC layer alone.
pub(super) unsafe extern "C" fn buf_alloc(task: *mut bindings::rpc_task) -> c_int {
    // SAFETY: The task, which calls, has a request.
    let (rqst, call, reply) = unsafe {
        let rqst = (*task).tk_rqstp;
        (rqst, (*rqst).rq_callsize, (*rqst).rq_rcvsize)
    };
    if call > LARGEST {
        return EINVAL.to_errno();
    }
    let size = size_of::<Prefix>().saturating_add(call);
    let size = size.saturating_add(reply);
    // SAFETY: Allocating has no further requirement.
    let prefix = unsafe { bindings::kmalloc(size, bindings::rpc_task_gfp_mask()) };
    if prefix.is_null() {
        return ENOMEM.to_errno();
    }
    let prefix = prefix.cast::<Prefix>();
    let data = prefix.wrapping_add(1);
    // SAFETY: There is room for the prefix. The request is the task's, which calls.
    unsafe {
        prefix.write(Prefix(Progress::new()));
        (*rqst).rq_buffer = data.cast();
        (*rqst).rq_rbuffer = data.cast::<u8>().wrapping_add(call).cast();
    }
    0
}

/// A Call gives its memory back. From its task.
///
/// # Safety
///
/// To be called by the RPC layer alone.
pub(super) unsafe extern "C" fn buf_free(task: *mut bindings::rpc_task) {
    // SAFETY: The request has a buffer of `buf_alloc`. What was sent of it was copied.
    unsafe {
        let rqst = (*task).tk_rqstp;
        bindings::kfree((*rqst).rq_buffer.cast::<Prefix>().sub(1).cast());
        (*rqst).rq_buffer = core::ptr::null_mut();
        (*rqst).rq_rbuffer = core::ptr::null_mut();
    }
}

/// A Reply to a Call in the reverse direction of a connection came. It is discarded where `accept`
/// says that its Call was not sent, which is asked too if it is late for its RPC. Of one that is
/// longer than there is room what fits is passed on: the client does not answer again.
///
/// # Safety
///
/// `xprt` must be the reverse transport of a connection that stays for the call.
pub(super) unsafe fn complete(
    xprt: *mut bindings::rpc_xprt,
    xid: u32,
    reply: &[u8],
    accept: impl FnOnce() -> bool,
) {
    // SAFETY: It stays for the call, by the contract of this function.
    let xprt = unsafe { Xprt::from_raw(xprt) };
    xprt.with_queue_lock(|raw| {
        // SAFETY: The transport is valid, and the queue lock is held.
        let rqst = unsafe { bindings::xprt_lookup_rqst(raw, xid.to_be()) };
        if rqst.is_null() {
            accept();
            return;
        }
        // SAFETY: A request that is found stays while the queue lock is held. The head of the room
        // is memory of `buf_alloc`; of the rest this cannot be told.
        let (task, head) = unsafe { ((*rqst).rq_task, (*rqst).rq_rcv_buf.head[0]) };
        if !accept() {
            return;
        }
        let len = reply.len().min(head.iov_len);
        // SAFETY: There is room for so much, which nobody else writes to: who answers holds the
        // queue lock, and takes the request from the queue before that is released.
        unsafe {
            let to = head.iov_base.cast::<u8>();
            core::ptr::copy_nonoverlapping(reply.as_ptr(), to, len);
            let (room, decoded) = (
                &raw const (*rqst).rq_rcv_buf,
                &raw mut (*rqst).rq_private_buf,
            );
            core::ptr::copy_nonoverlapping(room, decoded, 1);
            bindings::xprt_complete_rqst(task, len as c_int);
        }
    });
    xprt.space();
}

/// A Call in the reverse direction of a connection cannot be served, says the client.
///
/// # Safety
///
/// `xprt` must be the reverse transport of a connection that stays for the call.
pub(super) unsafe fn fail(xprt: *mut bindings::rpc_xprt, xid: u32) {
    // SAFETY: It stays for the call, by the contract of this function.
    let xprt = unsafe { Xprt::from_raw(xprt) };
    xprt.with_queue_lock(|xprt| {
        // SAFETY: The queue lock is held; a request that is found stays while it is.
        unsafe {
            let rqst = bindings::xprt_lookup_rqst(xprt, xid.to_be());
            if !rqst.is_null() {
                progress_of(rqst).end_with((*rqst).rq_task, EIO);
            }
        }
    });
    xprt.space();
}
