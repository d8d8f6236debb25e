// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Credits, grants and bad messages: the effects of a received message apart from its RPC.

use crate::{
    client::{
        connection::{
            Connection,
            Requester, //
        },
        loss::LossReason,
        stats::Stat,
        trace, //
    },
    kapi::{
        ib::Received,
        sunrpc::NotFound,
        sys::log, //
    },
    transport::{
        flow::credits::Credit,
        header::Refusal,
        send_buffer::Purpose, //
    },
};
use kernel::prelude::*;

/// Notes the server's grant, from a well-formed Reply (RFC 8166, section 3.3.1), and the credit
/// that comes back with the Reply.
#[inline]
pub(super) fn settle(connection: &Connection, grant: Option<u32>, back: Option<Credit>) {
    let changed = connection.lock().flow.answered(back, grant);
    connection.handler().set_window(changed);
}

/// Counts and logs a malformed message, which is otherwise ignored (RFC 8166, section 4.5).
pub(super) fn bad_reply(requester: &Requester, xid: Option<u32>, reason: &str) {
    requester.shared.stats.add(Stat::BadReplies, 1);
    let address = requester.loss.address();
    match xid {
        Some(xid) => log::warn_about(
            address,
            format_args!("bad message from {address} with XID {xid:#010x}: {reason}"),
        ),
        None => log::warn_about(
            address,
            format_args!("bad message from {address}: {reason}"),
        ),
    }
}

/// Ends the connection after the remote invalidation of a key that is not of the RPC with this XID
/// (RFC 8797, section 4.1): the server takes one RPC for another, or is hostile.
#[cold]
pub(super) fn foreign_key(requester: &Requester, xid: u32) {
    bad_reply(requester, Some(xid), "it invalidates a key of another RPC");
    requester.loss.report(LossReason::BadMessage);
}

/// Handles a message that no RPC waits for. A late Reply, or the Reply to the probe, gives its
/// credit back, but not while another Reply to the same RPC is being handled. `plain` says whether
/// it fits a Call that offers nothing, as the probe does.
#[cold]
pub(super) fn unmatched(
    connection: &Connection,
    message: &Received<'_>,
    xid: u32,
    grant: Option<u32>,
    plain: bool,
    why: NotFound,
) {
    let (requester, unknown) = (connection.handler(), why == NotFound::Unknown);
    let mut queue = connection.lock();
    let credits = &mut queue.flow.credits;
    let probe = credits.awaits_probe(xid);
    let back = unknown && credits.put_unawaited(xid);
    drop(queue);
    let grant = grant.filter(|_| plain || !probe);
    if probe && unknown {
        requester.shared.xprt.was_ours();
    }
    if grant.is_some() && !probe {
        trace::unexpected(requester, message.bytes());
    }
    // The key of an unsent Call may belong to a region that is about to be registered.
    let unsent = why == NotFound::Unsent;
    if message.has_invalidated() && (unsent || (unknown && (probe || !back))) {
        foreign_key(requester, xid);
    }
    match grant {
        Some(_) if back => settle(connection, grant, None),
        Some(_) => (),
        None => {
            bad_reply(requester, Some(xid), "not well formed");
            if back {
                requester.loss.report(LossReason::BadMessage);
            }
        }
    }
    if probe && unknown {
        requester.loss.answered();
    }
    requester.shared.xprt.space();
}

/// Sends an error message. Where no buffer is free and none can be made the connection ends
/// instead: an end that cannot answer must close it (RFC 8166, section 4.5.4), and the peer is at
/// fault anyway.
pub(super) fn refuse(requester: &Requester, connection: &Connection, refusal: &Refusal) {
    if send_error(connection, refusal).is_err() {
        requester.loss.report(LossReason::BadMessage);
    }
}

/// Sends an error message, which waits for room where there is none.
pub(super) fn send_error(connection: &Connection, refusal: &Refusal) -> Result {
    let mut buffer = connection.send_buffer(Purpose::Queued)?;
    buffer.refuse(refusal)?;
    buffer.send(0)
}
