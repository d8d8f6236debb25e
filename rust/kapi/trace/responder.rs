// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The trace events of the responder.

use crate::kapi::{
    bindings,
    ib::DeviceName,
    sys::address::SocketAddress,
    trace::{
        Argument,
        CompletionId, //
    },
};
use kernel::prelude::*;

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

    /// A Reply of so many bytes is provided in so many segments, for the client to pull, or cannot
    /// be.
    svcrdma_provide(id: CompletionId, xid: u32, segments: u32, length: u32, result: i32);
    /// The client has pulled a Reply, or does not want it; an error for what it must not say.
    svcrdma_pulled(id: CompletionId, xid: u32, result: i32);
    /// It has not said so in time: the Reply is taken back.
    svcrdma_pull_overdue(xid: u32);

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
