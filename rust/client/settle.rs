// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! What any message settles with the server: grants and credits; and what came to nothing.

use crate::{
    client::{
        connection::{
            Connection,
            Requester, //
        },
        loss::LossReason,
        trace, //
    },
    kapi::{
        ib::Received,
        sunrpc::NotFound,
        sys::log,
        trace::TaskId, //
    },
    transport::credits::Credit, //
};
use xdr::ErrorMessage;

/// Takes note of the server's grant, with a Reply that is well formed (RFC 8166, section 3.3.1),
/// and of the credit that comes back with the Reply.
#[inline(always)]
pub(super) fn settle(requester: &Requester, grant: Option<u32>, back: Option<Credit>) {
    let mut credits = requester.credits.lock();
    if let Some(credit) = back {
        credits.put(credit);
    }
    let changed = grant.and_then(|wire| credits.granted(wire));
    drop(credits);
    if let Some(calls) = changed {
        requester.shared.xprt.set_window(calls);
    }
}

/// A message that was not well formed: counted, logged, and otherwise ignored (RFC 8166,
/// section 4.5).
pub(super) fn bad_reply(requester: &Requester, xid: Option<u32>, reason: &str) {
    requester.shared.stats.bad_replies.add(1);
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
    requester: &Requester,
    message: &Received<'_>,
    xid: u32,
    credits: Option<u32>,
    why: NotFound,
) {
    let unknown = why == NotFound::Unknown;
    let mut ours = requester.credits.lock();
    let (probe, back) = (ours.awaits_probe(xid), unknown && ours.put_unawaited(xid));
    drop(ours);
    if probe && unknown {
        requester.shared.xprt.was_ours();
    }
    if credits.is_some() && !probe {
        trace::unexpected(requester, message.bytes());
    }
    // Of one that was not sent it may be a key that is about to be registered.
    let unsent = why == NotFound::Unsent;
    if message.has_invalidated() && (unsent || (unknown && !back)) {
        foreign_key(requester, xid);
    }
    match credits {
        Some(credits) if back => settle(requester, Some(credits), None),
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
pub(super) fn send_error(requester: &Requester, connection: &Connection, error: &ErrorMessage) {
    let sent = connection.pooled_send_buffer().is_some_and(|mut buffer| {
        let encoded = error.encode(buffer.bytes());
        encoded.is_ok_and(|len| buffer.post(len, None, || TaskId::NONE).is_ok())
    });
    if !sent {
        requester.loss.report(LossReason::BadMessage);
    }
}
