// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The trace events of the requester.

use crate::kapi::{
    bindings,
    ib::DeviceName,
    sys::address::SocketAddress,
    trace::{
        Argument,
        Carriage,
        CompletionId,
        CoveredRegion,
        TaskId, //
    },
};
use kernel::prelude::*;

events! {
    /// A connection attempt begins after so many jiffies.
    xprtrdma_op_connect(server: SocketAddress, delay: usize);
    /// The mount wants other timeouts, in jiffies, for connecting and for connecting again.
    xprtrdma_op_set_cto(server: SocketAddress, connect: usize, reconnect: usize);
    /// The kernel's fault injection breaks the connection.
    xprtrdma_op_inject_dsc(server: SocketAddress);
    /// A connection attempt has ended, with 0 or a negative errno; how far the id has come.
    xprtrdma_connect(server: SocketAddress, result: i32, status: i32);
    /// The end of a connection begins; whether the peer could be told, and how far the id had come.
    xprtrdma_disconnect(server: SocketAddress, result: i32, status: i32);
    /// The inline thresholds of a new connection, and the longest RPC messages that go inline.
    xprtrdma_inline_thresh(
        send: u32, receive: u32, longest_call: u32, longest_reply: u32,
        own: SocketAddress, server: SocketAddress
    );
    /// The device goes.
    xprtrdma_device_removal(device: DeviceName, server: SocketAddress);

    /// So many memory regions were made.
    xprtrdma_createmrs(server: SocketAddress, made: u32);
    /// A Call has to wait for a memory region.
    xprtrdma_nomrs_err(task: TaskId, server: SocketAddress);
    /// The device makes no memory region.
    xprtrdma_frwr_alloc(region: u32, error: Error);
    /// The device does not let go of a memory region.
    xprtrdma_frwr_dereg(region: CoveredRegion, error: Error);
    /// Memory, which begins at that address, cannot be mapped for the device.
    xprtrdma_frwr_sgerr(region: u32, address: u64, direction: i32, elements: u32);
    /// The device takes only so many of the elements into a memory region, or fails.
    xprtrdma_frwr_maperr(region: u32, address: u64, direction: i32, taken: i32, elements: u32);
    /// A message buffer cannot be mapped for the device.
    xprtrdma_dma_maperr(address: u64);
    /// A memory region covers memory of an RPC.
    xprtrdma_mr_map(task: TaskId, region: CoveredRegion);
    /// Its registration is about to be posted.
    xprtrdma_mr_fastreg(task: TaskId, region: CoveredRegion);
    /// Its local invalidation is about to be posted.
    xprtrdma_mr_localinv(task: TaskId, region: CoveredRegion);
    /// The server has invalidated it.
    xprtrdma_mr_reminv(task: TaskId, region: CoveredRegion);
    /// The memory that it covers is taken from the device.
    xprtrdma_mr_unmap(region: CoveredRegion);
    /// An RPC ends whose memory the server may still reach.
    xprtrdma_mrs_zap(task: TaskId);

    /// A segment of the Read chunk of a Call, at that Position.
    xprtrdma_chunk_read(task: TaskId, position: u32, region: CoveredRegion, last: bool);
    /// A segment of the Write chunk of a Call.
    xprtrdma_chunk_write(task: TaskId, region: CoveredRegion, last: bool);
    /// The segment for XDR padding in the Write chunk of a Call.
    xprtrdma_chunk_wp(task: TaskId, region: CoveredRegion, last: bool);
    /// A segment of the Reply chunk of a Call.
    xprtrdma_chunk_reply(task: TaskId, region: CoveredRegion, last: bool);
    /// A Call was encoded; bytes of its header, and of head, pages and tail of the RPC message.
    xprtrdma_marshal(
        task: TaskId, xid: u32, header_len: u32, head: u32, pages: u32, tail: u32,
        arguments: Carriage, results: Carriage
    );
    /// A Call gets no send buffer.
    xprtrdma_prepsend_failed(task: TaskId, xid: u32, error: Error);
    /// A Call was not encoded.
    xprtrdma_marshal_failed(task: TaskId, xid: u32, error: Error);

    /// A Send is about to be posted; `signaled` is not 0 if it asks for a completion.
    xprtrdma_post_send(id: CompletionId, task: TaskId, elements: u32, signaled: i32);
    /// The device refused a Send.
    xprtrdma_post_send_err(queue: u32, task: TaskId, error: Error);
    /// Local invalidations could not be posted.
    xprtrdma_post_linv_err(task: TaskId, error: Error);
    /// A Receive is about to be posted.
    xprtrdma_post_recv(id: CompletionId);
    /// So many Receives were posted, when so many were.
    xprtrdma_post_recvs(queue: u32, server: SocketAddress, more: u32, before: u32);
    /// The device refused Receives.
    xprtrdma_post_recvs_err(queue: u32, server: SocketAddress, error: Error);

    /// A Receive has ended, well or not.
    xprtrdma_wc_receive(id: CompletionId, received: u32, status: u32, vendor_error: u32);
    /// A Send has ended, well or not.
    xprtrdma_wc_send(id: CompletionId, status: u32, vendor_error: u32);
    /// A registration failed.
    xprtrdma_wc_fastreg(id: CompletionId, status: u32, vendor_error: u32);
    /// A local invalidation has ended, well or not; others follow it.
    xprtrdma_wc_li(id: CompletionId, status: u32, vendor_error: u32);
    /// The last one has that an RPC waits for which ends without a Reply.
    xprtrdma_wc_li_wake(id: CompletionId, status: u32, vendor_error: u32);
    /// The last one has that a Reply waits for.
    xprtrdma_wc_li_done(id: CompletionId, status: u32, vendor_error: u32);

    /// A Reply came that an RPC waits for; the server grants so many credits.
    xprtrdma_reply(task: TaskId, xid: u32, credits: u32);
    /// A message is of another version of the protocol.
    xprtrdma_reply_vers_err(server: SocketAddress, xid: u32, version: u32, procedure: u32);
    /// A Reply came that no RPC waits for.
    xprtrdma_reply_rqst_err(server: SocketAddress, xid: u32, version: u32, procedure: u32);
    /// A message is too short for a header.
    xprtrdma_reply_short_err(server: SocketAddress, xid: u32, version: u32, procedure: u32);
    /// A message is not well formed, or no answer to its Call.
    xprtrdma_reply_hdr_err(server: SocketAddress, xid: u32, version: u32, procedure: u32);
    /// The server speaks only the versions between these two.
    xprtrdma_err_vers(task: TaskId, xid: u32, lowest: u32, highest: u32);
    /// The server does not understand the chunks of a Call, or cannot answer it.
    xprtrdma_err_chunk(task: TaskId, xid: u32);
    /// The server reports an error that is not defined.
    xprtrdma_err_unrecognized(task: TaskId, xid: u32, error: u32);
    /// A segment of a chunk that a Reply returns.
    xprtrdma_decode_seg(handle: u32, length: u32, offset: u64);
    /// So many bytes were copied behind the head of the room for a Reply, whose parts are so long.
    xprtrdma_fixup(task: TaskId, copied: usize, head: usize, pages: u32, tail: usize);

    /// How the Reply is to come back of a Call whose Reply may be long: of that program, version
    /// and procedure, with so much room; what is expected of it, and whether a Reply chunk is
    /// offered.
    xprtrdma_reply_mechanism(
        task: TaskId, xid: u32, program: u32, version: u32, procedure: u32, room: u32,
        expected: u32, offered: bool
    );
    /// A Reply of so many bytes is about to be pulled, or cannot be.
    xprtrdma_pull(task: TaskId, xid: u32, length: u32, result: i32);
    /// So many bytes of a Reply were pulled, or not.
    xprtrdma_pulled(task: TaskId, xid: u32, length: u32, result: i32);
    /// The server is told that a Reply was pulled, or is not wanted, and that key of it is made
    /// invalid, or none; or it cannot be told.
    xprtrdma_done(xid: u32, handle: u32, result: i32);

    /// Calls of the server will be answered; so many at once were asked for.
    xprtrdma_cb_setup(server: SocketAddress, requests: u32);
    /// A Call of the server came.
    xprtrdma_cb_call(server: SocketAddress, xid: u32);
    /// Its Reply is about to be sent.
    xprtrdma_cb_reply(server: SocketAddress, xid: u32);
}
