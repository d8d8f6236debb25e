// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The trace events that an end has of its work requests, under names of its own.

use crate::kapi::{
    bindings,
    ib::{
        hardware::Part,
        mr::{
            Covered,
            Mr,
            NotMapped, //
        },
    },
    sys::address::SocketAddress,
    trace::{
        self,
        CompletionId, //
    },
};
use kernel::prelude::*;
use xdr::Role;

/// What a work request of a send queue is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Purpose {
    Send,
    WriteChunk,
    ReplyChunk,
    Registration,
    /// A local invalidation, which others of the chain follow.
    Invalidation,
    /// The last one of a chain.
    LastInvalidation(Waiter),
}

/// Who waits for local invalidations.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Waiter {
    /// A Reply, to be given to its RPC.
    Reply,
    /// The task of an RPC that ends.
    Task,
}

/// How a completion says that a work request failed.
#[derive(Clone, Copy)]
pub(super) struct Fault {
    status: u32,
    vendor: u32,
}

impl Fault {
    /// It did not fail.
    const NONE: Self = Self {
        status: bindings::ib_wc_status_IB_WC_SUCCESS,
        vendor: 0,
    };

    /// Of a completion that is not a success.
    pub(super) fn of(completion: &bindings::ib_wc) -> Self {
        Self {
            status: completion.status,
            vendor: completion.vendor_err,
        }
    }

    fn is_flush(self) -> bool {
        self.status == bindings::ib_wc_status_IB_WC_WR_FLUSH_ERR
    }

    fn with(self, id: CompletionId) -> (CompletionId, u32, u32) {
        (id, self.status, self.vendor)
    }
}

/// Takes a region from the device, and tells of it. May sleep.
///
/// To be called as [`Mr::deregister`].
pub(super) fn deregister(mr: &Mr) {
    if let Err((covered, e)) = mr.deregister(unmapped) {
        trace::xprtrdma_frwr_dereg(|| (covered.into(), e));
    }
}

/// Memory was taken from the device.
pub(super) fn unmapped(covered: Covered) {
    trace::xprtrdma_mr_unmap(|| covered.into());
}

/// There is no region.
pub(super) fn not_made(error: &Error) {
    trace::xprtrdma_frwr_alloc(|| (0, *error));
}

/// Memory could not be covered.
pub(super) fn not_mapped(why: &NotMapped) {
    let Covered {
        id,
        elements,
        key,
        direction,
    } = why.covered;
    let (address, direction) = (key.iova, direction.as_raw().0);
    match why.placed {
        _ if elements == 0 => (),
        None => trace::xprtrdma_frwr_sgerr(|| (id, address, direction, elements)),
        Some(placed) => {
            trace::xprtrdma_frwr_maperr(|| (id, address, direction, placed, elements));
        }
    }
}

/// A part of a connection's queues could not be made.
pub(super) fn no_queue(role: Role, part: Part, failure: impl FnOnce() -> (SocketAddress, Error)) {
    match (role, part) {
        (Role::Responder, Part::ProtectionDomain) => trace::svcrdma_pd_err(failure),
        (Role::Responder, Part::QueuePair) => trace::svcrdma_qp_err(failure),
        (Role::Responder, Part::CompletionQueue) | (Role::Requester, _) => (),
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
pub(super) fn receive_posted(role: Role, id: CompletionId) {
    match role {
        Role::Responder => trace::svcrdma_post_recv(|| id),
        Role::Requester => trace::xprtrdma_post_recv(|| id),
    }
}

/// A message of so many bytes was received.
#[inline]
pub(super) fn received(role: Role, id: CompletionId, len: u32) {
    match role {
        Role::Responder => trace::svcrdma_wc_recv(|| (id, len)),
        Role::Requester => trace::xprtrdma_wc_receive(|| receive_outcome(id, len, Fault::NONE)),
    }
}

/// A Receive failed.
pub(super) fn receive_failed(role: Role, id: CompletionId, fault: Fault) {
    match (role, fault.is_flush()) {
        (Role::Responder, true) => trace::svcrdma_wc_recv_flush(|| fault.with(id)),
        (Role::Responder, false) => trace::svcrdma_wc_recv_err(|| fault.with(id)),
        (Role::Requester, _) => trace::xprtrdma_wc_receive(|| receive_outcome(id, 0, fault)),
    }
}

fn receive_outcome(id: CompletionId, len: u32, fault: Fault) -> (CompletionId, u32, u32, u32) {
    let (id, status, vendor) = fault.with(id);
    (id, len, status, vendor)
}

/// Whether [`ended`] is listened to.
#[inline(always)]
pub(super) fn tells_of_ends(role: Role) -> bool {
    match role {
        Role::Responder => trace::on::svcrdma_wc_send(),
        Role::Requester => {
            trace::on::xprtrdma_wc_send()
                || trace::on::xprtrdma_wc_li()
                || trace::on::xprtrdma_wc_li_done()
                || trace::on::xprtrdma_wc_li_wake()
        }
    }
}

/// A request of a send queue has ended well, other than RDMA Reads and Writes.
#[inline]
pub(super) fn ended(role: Role, purpose: Purpose, id: CompletionId) {
    match (role, purpose) {
        // Their transfer tells of them, and nobody asks for the completion of a registration.
        (_, Purpose::WriteChunk | Purpose::ReplyChunk | Purpose::Registration) => (),
        (Role::Responder, _) => trace::svcrdma_wc_send(|| id),
        (Role::Requester, _) => completed(purpose, id, Fault::NONE),
    }
}

/// A request of a send queue failed, other than an RDMA Read.
pub(super) fn send_failed(role: Role, purpose: Purpose, id: CompletionId, fault: Fault) {
    if role == Role::Requester {
        return completed(purpose, id, fault);
    }
    match (purpose, fault.is_flush()) {
        (Purpose::WriteChunk, true) => trace::svcrdma_wc_write_flush(|| fault.with(id)),
        (Purpose::WriteChunk, false) => trace::svcrdma_wc_write_err(|| fault.with(id)),
        (Purpose::ReplyChunk, true) => trace::svcrdma_wc_reply_flush(|| fault.with(id)),
        (Purpose::ReplyChunk, false) => trace::svcrdma_wc_reply_err(|| fault.with(id)),
        (_, true) => trace::svcrdma_wc_send_flush(|| fault.with(id)),
        (_, false) => trace::svcrdma_wc_send_err(|| fault.with(id)),
    }
}

/// A request of a requester has ended, well or not.
#[inline]
fn completed(purpose: Purpose, id: CompletionId, fault: Fault) {
    match purpose {
        Purpose::Send => trace::xprtrdma_wc_send(|| fault.with(id)),
        Purpose::Registration => trace::xprtrdma_wc_fastreg(|| fault.with(id)),
        Purpose::Invalidation => trace::xprtrdma_wc_li(|| fault.with(id)),
        Purpose::LastInvalidation(Waiter::Reply) => trace::xprtrdma_wc_li_done(|| fault.with(id)),
        Purpose::LastInvalidation(Waiter::Task) => trace::xprtrdma_wc_li_wake(|| fault.with(id)),
        // A requester posts no RDMA Writes.
        Purpose::WriteChunk | Purpose::ReplyChunk => (),
    }
}

/// RDMA Reads failed, or one of them.
pub(super) fn read_failed(id: CompletionId, fault: Fault) {
    if fault.is_flush() {
        trace::svcrdma_wc_read_flush(|| fault.with(id));
    } else {
        trace::svcrdma_wc_read_err(|| fault.with(id));
    }
}
