// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Trace events.
//!
//! They are defined in `bindings/trace.h`. Here each one is a function of its name, which takes a
//! closure that says what the event has to say: nobody calls it unless the event is on, and until
//! then the function is one instruction that does nothing, on a kernel with `JUMP_LABEL`. Any
//! context.
//!
//! C header: [`include/linux/tracepoint.h`](srctree/include/linux/tracepoint.h)

use crate::kapi::{
    bindings,
    sunrpc::SocketAddress, //
};
use kernel::{
    ffi::c_char,
    prelude::*, //
};

/// What an event takes, as C has it.
///
/// # Safety
///
/// [`Self::raw`] is a number, or a pointer to what C expects there, valid as long as `self` is
/// borrowed.
pub(in crate::kapi) unsafe trait Argument {
    /// The type that C has for it.
    type Raw;

    /// The value for C.
    fn raw(&self) -> Self::Raw;
}

macro_rules! plain {
    ($($type:ty),*) => {$(
        // SAFETY: A number.
        unsafe impl Argument for $type {
            type Raw = $type;

            #[inline]
            fn raw(&self) -> $type {
                *self
            }
        }
    )*};
}

plain!(u32, i64, u64);

// SAFETY: A number.
unsafe impl Argument for Error {
    type Raw = i32;

    #[inline]
    fn raw(&self) -> i32 {
        self.to_errno()
    }
}

/// What work requests are called in events: the number that the resource tracker has given to their
/// completion queue, and one that tells them from others of the same queue. It is that of the
/// buffer, or of the transfer, which has one work request or chain of them at a time.
#[derive(Clone, Copy, Default)]
pub(crate) struct CompletionId(bindings::rpc_rdma_cid);

impl CompletionId {
    /// Of a completion queue, and a number.
    pub(in crate::kapi) fn new(queue: u32, number: u32) -> Self {
        Self(bindings::rpc_rdma_cid {
            ci_queue_id: queue,
            // Events show it as signed, as those of the in-tree module do.
            ci_completion_id: number as i32,
        })
    }

    /// The completion queue alone.
    pub(in crate::kapi) fn queue(&self) -> u32 {
        self.0.ci_queue_id
    }
}

// SAFETY: A pointer to the borrowed structure.
unsafe impl Argument for CompletionId {
    type Raw = *const bindings::rpc_rdma_cid;

    #[inline]
    fn raw(&self) -> Self::Raw {
        &raw const self.0
    }
}

/// A copy of a device's name.
///
/// # Invariants
///
/// The last byte is 0.
pub(crate) struct DeviceName([c_char; bindings::IB_DEVICE_NAME_MAX as usize]);

impl DeviceName {
    /// # Safety
    ///
    /// `device` must be a valid device.
    pub(in crate::kapi) unsafe fn of(device: *const bindings::ib_device) -> Self {
        // SAFETY: Valid by contract. The name may be changed meanwhile, which at worst mixes both.
        let mut name = unsafe { (&raw const (*device).name).read_volatile() };
        if let Some(last) = name.last_mut() {
            *last = 0;
        }
        // INVARIANT: Set above.
        Self(name)
    }
}

// SAFETY: A pointer into the borrowed array, which ends with a 0 by the type invariant.
unsafe impl Argument for DeviceName {
    type Raw = *const c_char;

    #[inline]
    fn raw(&self) -> Self::Raw {
        self.0.as_ptr()
    }
}

/// Makes the functions of events. The types are those of what `trace.h` has, in the same order.
macro_rules! events {
    ($(
        $(#[$doc:meta])*
        $name:ident($($argument:ident: $type:ty),+);
    )*) => {
        /// Whether an event is on, for what takes more than one call to say.
        pub(crate) mod on {
            use super::*;

            $(
                /// Whether the event of that name is on.
                #[inline(always)]
                pub(crate) fn $name() -> bool {
                    #[cfg(CONFIG_TRACEPOINTS)]
                    kernel::macros::paste! {
                        // SAFETY: The key is that of a tracepoint that C has defined.
                        return unsafe {
                            kernel::jump_label::static_branch_unlikely!(
                                bindings::[<__tracepoint_ $name>],
                                bindings::tracepoint,
                                key
                            )
                        };
                    }
                    #[cfg(not(CONFIG_TRACEPOINTS))]
                    false
                }
            )*
        }

        $(
            $(#[$doc])*
            #[inline(always)]
            #[allow(unused_parens, reason = "what takes one argument takes no tuple")]
            pub(crate) fn $name(arguments: impl FnOnce() -> ($($type),+)) {
                if !on::$name() {
                    return;
                }
                let ($($argument),+) = arguments();
                #[cfg(CONFIG_TRACEPOINTS)]
                kernel::macros::paste! {
                    // SAFETY: Numbers, and pointers that are valid for the time of the call, by
                    // the contract of `Argument`; what they point to is copied.
                    unsafe { bindings::[<rust_do_trace_ $name>]($($argument.raw()),+) };
                }
                #[cfg(not(CONFIG_TRACEPOINTS))]
                let _ = ($($argument.raw()),+);
            }
        )*
    };
}

events! {
    /// There is no protection domain for a new connection.
    svcrdma_pd_err(peer: SocketAddress, error: Error);
    /// There is no queue pair for a new connection.
    svcrdma_qp_err(peer: SocketAddress, error: Error);
    /// A new connection is refused, since its peer serves no RDMA Reads.
    svcrdma_initdepth_err(peer: SocketAddress, error: Error);
    /// A new connection could not be accepted.
    svcrdma_accept_err(peer: SocketAddress, error: Error);

    /// A Receive is about to be posted.
    svcrdma_post_recv(id: CompletionId);
    /// The device refused Receives.
    svcrdma_rq_post_err(peer: SocketAddress, error: Error);
    /// A message of so many bytes was received.
    svcrdma_wc_recv(id: CompletionId, received: u32);
    /// A Receive was flushed: the connection had ended.
    svcrdma_wc_recv_flush(id: CompletionId, status: u32, vendor_error: u32);
    /// A Receive failed.
    svcrdma_wc_recv_err(id: CompletionId, status: u32, vendor_error: u32);

    /// A message, received as `id`, was decoded; its transport header has so many bytes.
    svcrdma_decode_rqst(
        id: CompletionId, xid: u32, version: u32, credits: u32, procedure: u32, header_len: u32
    );
    /// A message of so many bytes is too short for a header.
    svcrdma_decode_short_err(id: CompletionId, len: u32);
    /// A message is of another version of the protocol.
    svcrdma_decode_badvers_err(
        id: CompletionId, xid: u32, version: u32, credits: u32, procedure: u32
    );
    /// A message has a procedure that a responder does not know.
    svcrdma_decode_badproc_err(
        id: CompletionId, xid: u32, version: u32, credits: u32, procedure: u32
    );
    /// A message has a procedure that is no Call and no Reply.
    svcrdma_decode_drop_err(id: CompletionId, xid: u32, version: u32, credits: u32, procedure: u32);
    /// A message has chunk lists that cannot be.
    svcrdma_decode_parse_err(
        id: CompletionId, xid: u32, version: u32, credits: u32, procedure: u32
    );
    /// A segment of a Read chunk that a message has.
    svcrdma_decode_rseg(
        id: CompletionId, number: u32, position: u32, handle: u32, length: u32, offset: u64
    );
    /// A segment of a Write chunk or Reply chunk that a message has.
    svcrdma_decode_wseg(id: CompletionId, number: u32, handle: u32, length: u32, offset: u64);
    /// A segment of a Write chunk or Reply chunk that a Reply returns.
    svcrdma_encode_wseg(id: CompletionId, number: u32, handle: u32, length: u32, offset: u64);

    /// RDMA Reads are about to be posted.
    svcrdma_post_read_chunk(id: CompletionId, requests: u32);
    /// RDMA Writes to Write chunks are about to be posted.
    svcrdma_post_write_chunk(id: CompletionId, requests: u32);
    /// RDMA Writes to a Reply chunk are about to be posted.
    svcrdma_post_reply_chunk(id: CompletionId, requests: u32);
    /// The memory of RDMA Reads or Writes is taken from the device.
    svcrdma_cc_release(id: CompletionId, requests: u32);
    /// RDMA Reads of so many bytes have ended, microseconds after they were posted.
    svcrdma_wc_read(id: CompletionId, latency: i64, bytes: u32);
    /// RDMA Reads were flushed: the connection had ended.
    svcrdma_wc_read_flush(id: CompletionId, status: u32, vendor_error: u32);
    /// RDMA Reads failed.
    svcrdma_wc_read_err(id: CompletionId, status: u32, vendor_error: u32);
    /// A Call, received as `id`, is whole, with what was read for it.
    svcrdma_read_finished(id: CompletionId);
    /// RDMA Writes to Write chunks have ended.
    svcrdma_wc_write(id: CompletionId);
    /// An RDMA Write to a Write chunk was flushed: the connection had ended.
    svcrdma_wc_write_flush(id: CompletionId, status: u32, vendor_error: u32);
    /// An RDMA Write to a Write chunk failed.
    svcrdma_wc_write_err(id: CompletionId, status: u32, vendor_error: u32);
    /// RDMA Writes to a Reply chunk have ended.
    svcrdma_wc_reply(id: CompletionId);
    /// An RDMA Write to a Reply chunk was flushed: the connection had ended.
    svcrdma_wc_reply_flush(id: CompletionId, status: u32, vendor_error: u32);
    /// An RDMA Write to a Reply chunk failed.
    svcrdma_wc_reply_err(id: CompletionId, status: u32, vendor_error: u32);
    /// Memory could not be prepared for RDMA Reads or Writes.
    svcrdma_dma_map_rw_err(queue: u32, handle: u32, offset: u64, elements: u32, error: Error);
    /// There is no memory for what describes RDMA Reads or Writes.
    svcrdma_rwctx_empty(queue: u32, elements: u32);
    /// A Call, received as `id`, is longer than what a service thread has pages for.
    svcrdma_page_overrun_err(id: CompletionId, page: u32);
    /// A chunk of a Call, received as `id`, has too little room, by so many bytes.
    svcrdma_small_wrch_err(id: CompletionId, missing: u32, number: u32, segments: u32);

    /// A message was copied behind its header.
    svcrdma_send_pullup(id: CompletionId, header_len: u32, message_len: u32);
    /// A Send is about to be posted, which invalidates a key if that is not 0.
    svcrdma_post_send(id: CompletionId, elements: u32, key: u32);
    /// A Send has ended.
    svcrdma_wc_send(id: CompletionId);
    /// A Send was flushed: the connection had ended.
    svcrdma_wc_send_flush(id: CompletionId, status: u32, vendor_error: u32);
    /// A Send failed.
    svcrdma_wc_send_err(id: CompletionId, status: u32, vendor_error: u32);
    /// A Reply could not be sent.
    svcrdma_send_err(peer: SocketAddress, xid: u32, error: Error);
    /// A message is answered with ERR_VERS.
    svcrdma_err_vers(xid: u32);
    /// A message is answered with ERR_CHUNK.
    svcrdma_err_chunk(xid: u32);

    /// The send queue, with so many of its places free, has no room.
    svcrdma_sq_full(id: CompletionId, room: u32, size: u32);
    /// There is room for what has waited for it.
    svcrdma_sq_retry(id: CompletionId, room: u32, size: u32);
    /// The device refused to post.
    svcrdma_sq_post_err(id: CompletionId, room: u32, size: u32, error: Error);

    /// The device reports something about a queue pair.
    svcrdma_qp_error(event: u32, device: DeviceName, peer: SocketAddress);
    /// The device goes.
    svcrdma_device_removal(device: DeviceName, peer: SocketAddress);
}
