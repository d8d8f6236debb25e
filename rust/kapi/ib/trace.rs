// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The trace events that an end has of its work requests, under names of its own.

use super::super::{
    bindings,
    sunrpc::SocketAddress,
    sys::trace::{
        self,
        CompletionId, //
    },
};
use kernel::prelude::*;
use xdr::Role;

/// What a work request of a send queue is for.
#[derive(Clone, Copy)]
pub(super) enum Purpose {
    Send,
    WriteChunk,
    ReplyChunk,
}

/// How a completion says that a work request failed.
#[derive(Clone, Copy)]
pub(super) struct Fault {
    status: u32,
    vendor: u32,
}

impl Fault {
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

/// There is no protection domain for a connection.
pub(super) fn no_pd(role: Role, failure: impl FnOnce() -> (SocketAddress, Error)) {
    if role == Role::Responder {
        trace::svcrdma_pd_err(failure);
    }
}

/// There is no queue pair for a connection.
pub(super) fn no_qp(role: Role, failure: impl FnOnce() -> (SocketAddress, Error)) {
    if role == Role::Responder {
        trace::svcrdma_qp_err(failure);
    }
}

/// A Receive is about to be posted.
#[inline]
pub(super) fn receive_posted(role: Role, id: CompletionId) {
    if role == Role::Responder {
        trace::svcrdma_post_recv(|| id);
    }
}

/// A message of so many bytes was received.
#[inline]
pub(super) fn received(role: Role, id: CompletionId, len: u32) {
    if role == Role::Responder {
        trace::svcrdma_wc_recv(|| (id, len));
    }
}

/// A Receive failed.
pub(super) fn receive_failed(role: Role, id: CompletionId, fault: Fault) {
    match (role, fault.is_flush()) {
        (Role::Responder, true) => trace::svcrdma_wc_recv_flush(|| fault.with(id)),
        (Role::Responder, false) => trace::svcrdma_wc_recv_err(|| fault.with(id)),
        (Role::Requester, _) => (),
    }
}

/// A Send has ended.
#[inline]
pub(super) fn sent(role: Role, id: CompletionId) {
    if role == Role::Responder {
        trace::svcrdma_wc_send(|| id);
    }
}

/// A request of a send queue failed, other than an RDMA Read.
pub(super) fn send_failed(role: Role, purpose: Purpose, id: CompletionId, fault: Fault) {
    if role == Role::Requester {
        return;
    }
    match (purpose, fault.is_flush()) {
        (Purpose::Send, true) => trace::svcrdma_wc_send_flush(|| fault.with(id)),
        (Purpose::Send, false) => trace::svcrdma_wc_send_err(|| fault.with(id)),
        (Purpose::WriteChunk, true) => trace::svcrdma_wc_write_flush(|| fault.with(id)),
        (Purpose::WriteChunk, false) => trace::svcrdma_wc_write_err(|| fault.with(id)),
        (Purpose::ReplyChunk, true) => trace::svcrdma_wc_reply_flush(|| fault.with(id)),
        (Purpose::ReplyChunk, false) => trace::svcrdma_wc_reply_err(|| fault.with(id)),
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
