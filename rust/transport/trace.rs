// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The trace events of an end's work requests, under names of its own.

use crate::{
    kapi::{
        ib::{
            Covered,
            NotAdded,
            NotMapped,
            Part,
            RemoteKey,
            RwCtx,
            Wc, //
        },
        sys::address::SocketAddress,
        trace::{
            self,
            CompletionId,
            TaskId, //
        },
    },
    transport::work::Waiter, //
};
use kernel::{
    prelude::*,
    time::{
        Instant,
        Monotonic, //
    },
};
use xdr::{
    v2::Properties,
    Role,
    Segment, //
};

/// The kind of a work request of a send queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum WrKind {
    Send,
    /// An RDMA Write for a Write chunk or the Reply chunk; whether it is the last for that.
    Write {
        reply_chunk: bool,
        last: bool,
    },
    Registration,
    /// A local invalidation, which others of the chain follow.
    Invalidation,
    /// The last local invalidation of a chain.
    LastInvalidation(Waiter),
}

fn with(wc: Wc, id: CompletionId) -> (CompletionId, u32, u32) {
    (id, wc.status(), wc.vendor_err())
}

/// Returns the segment of a chunk that names the memory that a region covers.
#[inline]
pub(super) fn segment(key: RemoteKey) -> Segment {
    Segment {
        handle: key.rkey,
        length: key.length,
        offset: key.iova,
    }
}

/// Reports that a region was deregistered, or that this failed.
pub(super) fn deregistered(covered: Covered, result: Result) {
    match result {
        Ok(()) => unmapped(covered),
        Err(e) => {
            if covered.elements != 0 {
                unmapped(covered);
            }
            trace::xprtrdma_frwr_dereg(|| (covered.into(), e));
        }
    }
}

/// Reports that memory was unmapped.
pub(super) fn unmapped(covered: Covered) {
    trace::xprtrdma_mr_unmap(|| covered.into());
}

/// Reports the properties of the peer, on the connection with that queue.
pub(super) fn properties(role: Role, queue: u32, theirs: &Properties) {
    let all = || {
        let (send, receive) = (theirs.max_send, theirs.min_receive);
        let (bytes, segments) = (theirs.segment_bytes, theirs.segments);
        (queue, send, receive, bytes, segments, theirs.reverse as u32)
    };
    match role {
        Role::Responder => trace::svcrdma_properties(all),
        Role::Requester => trace::xprtrdma_properties(all),
    }
}

/// Reports a GRANT that was sent or received.
pub(super) fn grant(role: Role, grant: impl FnOnce() -> (u32, u32, bool)) {
    match role {
        Role::Responder => trace::svcrdma_grant(grant),
        Role::Requester => trace::xprtrdma_grant(grant),
    }
}

/// Reports a message that goes out in several.
pub(super) fn continued(role: Role, message: impl FnOnce() -> (u32, u32, u32, u32)) {
    match role {
        Role::Responder => trace::svcrdma_continued(message),
        Role::Requester => trace::xprtrdma_continued(message),
    }
}

/// Reports a fragment that was received.
pub(super) fn fragment(role: Role, fragment: impl FnOnce() -> (u32, u32, u32)) {
    match role {
        Role::Responder => trace::svcrdma_fragment(fragment),
        Role::Requester => trace::xprtrdma_fragment(fragment),
    }
}

/// Reports a message about to be posted, with the key that it invalidates, for a task or none, and
/// its flags.
#[inline]
pub(super) fn message_posted(
    role: Role,
    message: impl FnOnce() -> (CompletionId, Option<u32>, TaskId, i32),
) {
    match role {
        Role::Responder => trace::svcrdma_post_send(|| {
            let (id, key, _, _) = message();
            (id, 1, key.unwrap_or(0))
        }),
        Role::Requester => trace::xprtrdma_post_send(|| {
            let (id, _, task, flags) = message();
            (id, task, 1, flags)
        }),
    }
}

/// The stage of a post that waits for room in a send queue: it begins to wait, is posted after
/// that, or could not be posted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Waiting {
    Begins,
    Ends,
    NotPosted(Error),
}

/// Reports the stage of a waiting post, with the free slots and the size of the send queue.
#[cold]
pub(super) fn waiting(role: Role, what: Waiting, state: impl FnOnce() -> (CompletionId, u32, u32)) {
    match (role, what) {
        // The RPC layer has events of its own for requesters.
        (Role::Requester, _) => (),
        (Role::Responder, Waiting::Begins) => trace::svcrdma_sq_full(state),
        (Role::Responder, Waiting::Ends) => trace::svcrdma_sq_retry(state),
        (Role::Responder, Waiting::NotPosted(e)) => trace::svcrdma_sq_post_err(|| {
            let (id, room, size) = state();
            (id, room, size, e)
        }),
    }
}

/// Reports that a Reply has become an error.
pub(super) fn refused(role: Role, xid: u32) {
    match role {
        Role::Requester => (),
        Role::Responder => trace::svcrdma_err_chunk(|| xid),
    }
}

/// Reports that there is no region.
pub(super) fn not_made(error: &Error) {
    // With this error the connection is ending, and no region was asked for.
    if *error != ENOTCONN {
        trace::xprtrdma_frwr_alloc(|| (0, *error));
    }
}

/// Reports that memory could not be covered.
pub(super) fn not_mapped(why: &NotMapped) {
    let Covered {
        id,
        elements,
        key,
        access,
    } = why.covered;
    let (address, direction) = (key.iova, access.direction() as i32);
    match why.placed {
        _ if elements == 0 => (),
        None => trace::xprtrdma_frwr_sgerr(|| (id, address, direction, elements)),
        Some(placed) => {
            trace::xprtrdma_frwr_maperr(|| (id, address, direction, placed, elements));
        }
    }
}

/// Reports that a part of a connection could not be made.
pub(super) fn no_part(role: Role, part: Part, failure: impl FnOnce() -> (SocketAddress, Error)) {
    match (role, part) {
        (Role::Responder, Part::ProtectionDomain) => trace::svcrdma_pd_err(failure),
        (Role::Responder, Part::QueuePair) => trace::svcrdma_qp_err(failure),
        (Role::Requester, Part::Region) => not_made(&failure().1),
        _ => (),
    }
}

/// Reports that there is no message buffer.
pub(super) fn no_buffer(role: Role, error: Error) {
    if role == Role::Requester && error == ENOBUFS {
        // It could not be mapped, and so has no DMA address: all ones.
        trace::xprtrdma_dma_maperr(|| u64::MAX);
    }
}

/// Reports that a Receive is about to be posted.
#[inline]
pub(super) fn receive_posted(role: Role, id: impl FnOnce() -> CompletionId) {
    match role {
        Role::Responder => trace::svcrdma_post_recv(id),
        Role::Requester => trace::xprtrdma_post_recv(id),
    }
}

/// Reports that a message of `len` bytes was received.
#[inline]
pub(super) fn received(role: Role, id: impl FnOnce() -> CompletionId, len: usize) {
    match role {
        Role::Responder => trace::svcrdma_wc_recv(|| (id(), len as u32)),
        Role::Requester => {
            trace::xprtrdma_wc_receive(|| receive_outcome(id(), len as u32, Wc::SUCCESS));
        }
    }
}

/// Reports that a Receive failed.
pub(super) fn receive_failed(role: Role, id: CompletionId, wc: Wc) {
    match (role, wc.is_flush()) {
        (Role::Responder, true) => trace::svcrdma_wc_recv_flush(|| with(wc, id)),
        (Role::Responder, false) => trace::svcrdma_wc_recv_err(|| with(wc, id)),
        (Role::Requester, _) => trace::xprtrdma_wc_receive(|| receive_outcome(id, 0, wc)),
    }
}

fn receive_outcome(id: CompletionId, len: u32, wc: Wc) -> (CompletionId, u32, u32, u32) {
    (id, len, wc.status(), wc.vendor_err())
}

/// Returns whether a trace event of [`ended`] is enabled.
#[inline]
pub(super) fn traces_ends(role: Role) -> bool {
    match role {
        Role::Responder => {
            trace::on::svcrdma_wc_send()
                || trace::on::svcrdma_wc_write()
                || trace::on::svcrdma_wc_reply()
        }
        Role::Requester => {
            trace::on::xprtrdma_wc_send()
                || trace::on::xprtrdma_wc_li()
                || trace::on::xprtrdma_wc_li_done()
                || trace::on::xprtrdma_wc_li_wake()
        }
    }
}

/// Reports the success of a request of a send queue, other than an RDMA Read.
#[inline]
pub(super) fn ended(role: Role, kind: WrKind, id: CompletionId) {
    match (role, kind) {
        // Reported once for all Writes to the same kind of chunk.
        (_, WrKind::Write { last: false, .. }) => (),
        (_, WrKind::Write { reply_chunk, .. }) => {
            if reply_chunk {
                trace::svcrdma_wc_reply(|| id);
            } else {
                trace::svcrdma_wc_write(|| id);
            }
        }
        // Successful registrations are not reported.
        (_, WrKind::Registration) => (),
        (Role::Responder, _) => trace::svcrdma_wc_send(|| id),
        (Role::Requester, _) => completed(kind, id, Wc::SUCCESS),
    }
}

/// Reports the failure of a request of a send queue, other than an RDMA Read.
pub(super) fn send_failed(role: Role, kind: WrKind, id: CompletionId, wc: Wc) {
    if role == Role::Requester {
        return completed(kind, id, wc);
    }
    let reply_chunk = match kind {
        WrKind::Write { reply_chunk, .. } => Some(reply_chunk),
        _ => None,
    };
    match (reply_chunk, wc.is_flush()) {
        (Some(false), true) => trace::svcrdma_wc_write_flush(|| with(wc, id)),
        (Some(false), false) => trace::svcrdma_wc_write_err(|| with(wc, id)),
        (Some(true), true) => trace::svcrdma_wc_reply_flush(|| with(wc, id)),
        (Some(true), false) => trace::svcrdma_wc_reply_err(|| with(wc, id)),
        (None, true) => trace::svcrdma_wc_send_flush(|| with(wc, id)),
        (None, false) => trace::svcrdma_wc_send_err(|| with(wc, id)),
    }
}

/// Reports the completion of a requester's request, successful or not.
#[inline]
fn completed(kind: WrKind, id: CompletionId, wc: Wc) {
    match kind {
        WrKind::Send => trace::xprtrdma_wc_send(|| with(wc, id)),
        WrKind::Registration => trace::xprtrdma_wc_fastreg(|| with(wc, id)),
        WrKind::Invalidation => trace::xprtrdma_wc_li(|| with(wc, id)),
        WrKind::LastInvalidation(Waiter::Reply) => trace::xprtrdma_wc_li_done(|| with(wc, id)),
        WrKind::LastInvalidation(Waiter::Task) => trace::xprtrdma_wc_li_wake(|| with(wc, id)),
        // A requester posts no RDMA Writes.
        WrKind::Write { .. } => (),
    }
}

/// Reports that there is no memory for a transfer of `elements`.
pub(super) fn no_transfer(role: Role, queue: u32, elements: usize) {
    if role == Role::Responder {
        trace::svcrdma_rwctx_empty(|| (queue, elements as u32));
    }
}

/// Reports that memory could not be added to a transfer.
pub(super) fn not_added(role: Role, queue: u32, (rkey, iova): (u32, u64), why: &NotAdded) {
    if role == Role::Responder && why.elements != 0 {
        trace::svcrdma_dma_map_rw_err(|| (queue, rkey, iova, why.elements, why.error));
    }
}

/// Reports that RDMA Reads are about to be posted. Returns the time, if their latency is traced.
pub(super) fn read_posted(
    role: Role,
    id: CompletionId,
    transfer: &RwCtx,
) -> Option<Instant<Monotonic>> {
    if role == Role::Requester {
        return None;
    }
    trace::svcrdma_post_read_chunk(|| (id, transfer.requests() as u32));
    trace::on::svcrdma_wc_read().then(Instant::now)
}

/// Reports that RDMA Writes are about to be posted: `requests` in all, those from
/// `reply_chunk_from` on for the Reply chunk.
pub(super) fn writes_posted(id: CompletionId, requests: usize, reply_chunk_from: usize) {
    let writes = requests.min(reply_chunk_from);
    if writes != 0 {
        trace::svcrdma_post_write_chunk(|| (id, writes as u32));
    }
    if writes != requests {
        trace::svcrdma_post_reply_chunk(|| (id, (requests - writes) as u32));
    }
}

/// Reports the success of RDMA Reads, with the time of their post.
pub(super) fn read(
    role: Role,
    id: CompletionId,
    posted: Option<&Instant<Monotonic>>,
    transfer: &RwCtx,
) {
    if role == Role::Requester {
        return;
    }
    trace::svcrdma_wc_read(|| {
        // The clock is not read while the event is disabled, so Reads posted then have no time.
        let elapsed = posted.map(Instant::<Monotonic>::elapsed);
        let latency = elapsed.map_or(0, |elapsed| elapsed.as_micros_ceil());
        (id, latency, transfer.bytes())
    });
}

/// Reports the failure of RDMA Reads, or of one of them.
pub(super) fn read_failed(role: Role, id: CompletionId, wc: Wc) {
    match (role, wc.is_flush()) {
        (Role::Requester, _) => (),
        (Role::Responder, true) => trace::svcrdma_wc_read_flush(|| with(wc, id)),
        (Role::Responder, false) => trace::svcrdma_wc_read_err(|| with(wc, id)),
    }
}

/// Reports that the memory of a transfer was unmapped.
pub(super) fn released(role: Role, id: CompletionId, transfer: &RwCtx) {
    if role == Role::Responder {
        trace::svcrdma_cc_release(|| (id, transfer.requests() as u32));
    }
}
