// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! What any message settles with the server: grants and credits; and what came to nothing.

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
        sys::log,
        trace::TaskId, //
    },
    transport::{
        flow::credits::Credit,
        header::Refusal,
        send_buffer::Purpose, //
    },
};

/// Takes note of the server's grant, with a Reply that is well formed (RFC 8166, section 3.3.1),
/// and of the credit that comes back with the Reply.
#[inline]
pub(super) fn settle(connection: &Connection, grant: Option<u32>, back: Option<Credit>) {
    let changed = connection.lock().flow.credits.answered(back, grant);
    connection.handler().set_window(changed);
}

/// A message that was not well formed: counted, logged, and otherwise ignored (RFC 8166,
/// section 4.5).
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

/// A key came to be invalid that is not of the RPC with this XID (RFC 8797, section 4.1): the
/// server takes one RPC for another, or wants to do harm.
#[cold]
pub(super) fn foreign_key(requester: &Requester, xid: u32) {
    bad_reply(requester, Some(xid), "it invalidates a key of another RPC");
    requester.loss.report(LossReason::BadMessage);
}

/// A message came that no RPC waits for. It may be a late Reply, or that to the probe, which give
/// their credit back, but not beside another that is being looked at.
#[cold]
pub(super) fn unawaited(
    connection: &Connection,
    message: &Received<'_>,
    xid: u32,
    grant: Option<u32>,
    why: NotFound,
) {
    let (requester, unknown) = (connection.handler(), why == NotFound::Unknown);
    let mut queue = connection.lock();
    let credits = &mut queue.flow.credits;
    let probe = credits.awaits_probe(xid);
    let back = unknown && credits.put_unawaited(xid);
    drop(queue);
    if probe && unknown {
        requester.shared.xprt.was_ours();
    }
    if grant.is_some() && !probe {
        trace::unexpected(requester, message.bytes());
    }
    // Of one that was not sent it may be a key that is about to be registered.
    let unsent = why == NotFound::Unsent;
    if message.has_invalidated() && (unsent || (unknown && !back)) {
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

/// Answers with an error. Without a buffer at hand the connection ends instead: one that cannot
/// answer must close it (RFC 8166, section 4.5.4), and the peer is in the wrong anyway.
pub(super) fn refuse(requester: &Requester, connection: &Connection, refusal: &Refusal) {
    let sent = connection
        .send_buffer(Purpose::Pooled)
        .is_ok_and(|mut buffer| {
            let refused = buffer.refuse(refusal);
            refused.is_ok() && buffer.post(0, None, || TaskId::NONE).is_ok()
        });
    if !sent {
        requester.loss.report(LossReason::BadMessage);
    }
}
