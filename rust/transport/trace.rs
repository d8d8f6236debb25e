// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The trace events that an end has of its work requests, under names of its own.

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
    Role,
    Segment, //
};

/// What a work request of a send queue is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum WrKind {
    Send,
    /// An RDMA Write, for a Write chunk or the Reply chunk; the last of those.
    Write {
        reply_chunk: bool,
        last: bool,
    },
    Registration,
    /// A local invalidation, which others of the chain follow.
    Invalidation,
    /// The last one of a chain.
    LastInvalidation(Waiter),
}

fn with(wc: Wc, id: CompletionId) -> (CompletionId, u32, u32) {
    (id, wc.status(), wc.vendor_err())
}

/// How a chunk names what a region covers.
#[inline]
pub(super) fn segment(key: RemoteKey) -> Segment {
    Segment {
        handle: key.rkey,
        length: key.length,
        offset: key.iova,
    }
}

/// A region was taken from the device, or that failed.
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

/// Memory was taken from the device.
pub(super) fn unmapped(covered: Covered) {
    trace::xprtrdma_mr_unmap(|| covered.into());
}

/// A message is about to be posted that invalidates that key, if any, for a task or none, with
/// those flags.
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

/// What something was about that waits for room in a send queue: it begins to, is posted after
/// that, or could not be posted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Waiting {
    Begins,
    Ends,
    NotPosted(Error),
}

/// Something waits for room in a send queue, with so much room of so much.
#[cold]
pub(super) fn waiting(role: Role, what: Waiting, state: impl FnOnce() -> (CompletionId, u32, u32)) {
    match (role, what) {
        // The RPC layer's events tell of those of a requester.
        (Role::Requester, _) => (),
        (Role::Responder, Waiting::Begins) => trace::svcrdma_sq_full(state),
        (Role::Responder, Waiting::Ends) => trace::svcrdma_sq_retry(state),
        (Role::Responder, Waiting::NotPosted(e)) => trace::svcrdma_sq_post_err(|| {
            let (id, room, size) = state();
            (id, room, size, e)
        }),
    }
}

/// There is no region.
pub(super) fn not_made(error: &Error) {
    // The connection is going otherwise, and nobody was asked for one.
    if *error != ENOTCONN {
        trace::xprtrdma_frwr_alloc(|| (0, *error));
    }
}

/// Memory could not be covered.
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

/// A part of a connection could not be made.
pub(super) fn no_part(role: Role, part: Part, failure: impl FnOnce() -> (SocketAddress, Error)) {
    match (role, part) {
        (Role::Responder, Part::ProtectionDomain) => trace::svcrdma_pd_err(failure),
        (Role::Responder, Part::QueuePair) => trace::svcrdma_qp_err(failure),
        (Role::Requester, Part::Region) => not_made(&failure().1),
        _ => (),
    }
}

/// There is no message buffer.
pub(super) fn no_buffer(role: Role, error: Error) {
    if role == Role::Requester && error == ENOBUFS {
        // It could not be mapped, and so has no address of the device's: all ones.
        trace::xprtrdma_dma_maperr(|| u64::MAX);
    }
}

/// A Receive is about to be posted.
#[inline]
pub(super) fn receive_posted(role: Role, id: impl FnOnce() -> CompletionId) {
    match role {
        Role::Responder => trace::svcrdma_post_recv(id),
        Role::Requester => trace::xprtrdma_post_recv(id),
    }
}

/// A message of so many bytes was received.
#[inline]
pub(super) fn received(role: Role, id: impl FnOnce() -> CompletionId, len: usize) {
    match role {
        Role::Responder => trace::svcrdma_wc_recv(|| (id(), len as u32)),
        Role::Requester => {
            trace::xprtrdma_wc_receive(|| receive_outcome(id(), len as u32, Wc::SUCCESS));
        }
    }
}

/// A Receive failed.
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

/// Whether [`ended`] is listened to.
#[inline]
pub(super) fn tells_of_ends(role: Role) -> bool {
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

/// A request of a send queue has ended well, other than RDMA Reads.
#[inline]
pub(super) fn ended(role: Role, kind: WrKind, id: CompletionId) {
    match (role, kind) {
        // Told once for all that are for the same kind of chunk.
        (_, WrKind::Write { last: false, .. }) => (),
        (_, WrKind::Write { reply_chunk, .. }) => {
            if reply_chunk {
                trace::svcrdma_wc_reply(|| id);
            } else {
                trace::svcrdma_wc_write(|| id);
            }
        }
        // Nobody asks for the completion of a registration.
        (_, WrKind::Registration) => (),
        (Role::Responder, _) => trace::svcrdma_wc_send(|| id),
        (Role::Requester, _) => completed(kind, id, Wc::SUCCESS),
    }
}

/// A request of a send queue failed, other than an RDMA Read.
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

/// A request of a requester has ended, well or not.
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

/// There is no memory for a transfer of so many elements.
pub(super) fn no_transfer(role: Role, queue: u32, elements: usize) {
    if role == Role::Responder {
        trace::svcrdma_rwctx_empty(|| (queue, elements as u32));
    }
}

/// Memory could not be added to a transfer.
pub(super) fn not_added(role: Role, queue: u32, (rkey, iova): (u32, u64), why: &NotAdded) {
    if role == Role::Responder && why.elements != 0 {
        trace::svcrdma_dma_map_rw_err(|| (queue, rkey, iova, why.elements, why.error));
    }
}

/// RDMA Reads are about to be posted. When that is, if somebody asks for how long they take.
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

/// RDMA Writes are about to be posted: so many requests, and from which on they are for the Reply
/// chunk.
pub(super) fn writes_posted(id: CompletionId, requests: usize, reply_chunk_from: usize) {
    let writes = requests.min(reply_chunk_from);
    if writes != 0 {
        trace::svcrdma_post_write_chunk(|| (id, writes as u32));
    }
    if writes != requests {
        trace::svcrdma_post_reply_chunk(|| (id, (requests - writes) as u32));
    }
}

/// RDMA Reads have ended well, which were posted then.
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
        // The clock is not read while the event is off, so what was posted then has no time.
        let elapsed = posted.map(Instant::<Monotonic>::elapsed);
        let latency = elapsed.map_or(0, |elapsed| elapsed.as_micros_ceil());
        (id, latency, transfer.bytes())
    });
}

/// RDMA Reads failed, or one of them.
pub(super) fn read_failed(role: Role, id: CompletionId, wc: Wc) {
    match (role, wc.is_flush()) {
        (Role::Requester, _) => (),
        (Role::Responder, true) => trace::svcrdma_wc_read_flush(|| with(wc, id)),
        (Role::Responder, false) => trace::svcrdma_wc_read_err(|| with(wc, id)),
    }
}

/// The memory of a transfer was taken from the device.
pub(super) fn released(role: Role, id: CompletionId, transfer: &RwCtx) {
    if role == Role::Responder {
        trace::svcrdma_cc_release(|| (id, transfer.requests() as u32));
    }
}
