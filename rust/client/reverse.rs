// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Calls of the server (RFC 8167).

use crate::{
    client::{
        call::WaitingMessage,
        connection::{
            Connection,
            Requester, //
        },
        loss::LossReason,
        reverse_calls::{
            ReverseCalls,
            WaitingCall, //
        },
        settle::{
            refuse,
            send_error, //
        },
    },
    kapi::{
        sunrpc::RpcRqst,
        trace, //
    },
    transport::{
        header::{
            Direction,
            Reason,
            Refusal, //
        },
        send_buffer::Purpose, //
    },
};
use kernel::{
    prelude::*, //
};
use xdr::{
    Call,
    CallPayload, //
};

/// Handles a Call of the server. Completion handler. Returns the Call's offset in its message, if
/// it is for the callback service.
pub(super) fn called(
    requester: &Requester,
    connection: &Connection,
    call: &Call<'_>,
    before: usize,
) -> Option<usize> {
    let chunks =
        !call.reads.is_empty() || call.writes.chunk_count() != 0 || call.reply_chunk.is_some();
    let part = match &call.payload {
        // Reverse Calls use no chunks (RFC 8167, section 5.3). One that is longer than was agreed
        // on when the session was made is as little use.
        CallPayload::Inline(part)
            if !chunks
                && part.bytes.len().saturating_add(before)
                    <= requester.shared.xprt.longest_callback() =>
        {
            part
        }
        _ => {
            let (xid, reason) = (call.xid, Reason::NotEligible);
            refuse(requester, connection, &Refusal { xid, reason });
            return None;
        }
    };
    let served = requester.shared.reverse_enabled();
    if !served || !requester.reverse.lock().came() {
        match connection.answers_unserved() {
            true => turn_down(requester, connection, call.xid),
            false if served => requester.loss.report(LossReason::TooManyCalls),
            false => (),
        }
        return None;
    }
    // Wakes a sender that waits for a credit, so that it does not hold up the Reply.
    requester.shared.xprt.space();
    trace::xprtrdma_cb_call(|| (*requester.loss.address(), call.xid));
    Some(part.offset)
}

/// Answers a Call that nobody serves, or that is more than are kept: there may be credits for it
/// all the same. Without an answer the connection ends (section 7.4 of the draft).
#[cold]
fn turn_down(requester: &Requester, connection: &Connection, xid: u32) {
    let reason = Reason::NoService;
    if send_error(connection, &Refusal { xid, reason }).is_err() {
        requester.loss.report(LossReason::NotPosted);
    }
}

/// Queues a Call for the callback service, in its message.
pub(super) fn wait(requester: &Requester, xid: u32, message: WaitingMessage, offset: usize) {
    let call = WaitingCall {
        xid,
        message,
        offset,
    };
    // There is room for all Calls that may be unanswered.
    let _ = requester.reverse.lock().waiting.push_within_capacity(call);
    deliver_pending(requester);
}

/// Gives a Call to the callback service. False if that has no room now.
fn hand_over(requester: &Requester, reverse: &mut ReverseCalls, call: &WaitingCall) -> bool {
    let xprt = &requester.shared.xprt;
    let WaitingMessage { front, message } = &call.message;
    let front = front.iter().flat_map(|front| front.iter());
    let last = message.bytes().get(call.offset..).unwrap_or(&[]);
    let parts = Iterator::chain(front, [last]);
    match xprt.receive_reverse_call(call.xid, parts, requester.id.0) {
        Ok(true) => true,
        Err(e) if e == ENOBUFS => false,
        // There is no callback service, or not any more, or it takes no Calls so long any more.
        Ok(false) | Err(_) => {
            reverse.answered();
            true
        }
    }
}

/// Makes a connection ready for Calls of the server. May sleep.
pub(super) fn expect_calls(connection: &Connection) {
    let requester = connection.handler();
    requester.expect_calls(connection);
    // Without memory now, the next Call posts them.
    let _ = requester.provide_receives(connection);
    deliver_pending(requester);
}

/// Delivers waiting Calls to the callback service, which has room for another. Does not sleep.
pub(super) fn deliver_pending(requester: &Requester) {
    // Before the RPC layer knows of the connection, Replies would be lost.
    if !requester.shared.xprt.is_connected() {
        return;
    }
    let mut reverse = requester.reverse.lock();
    while let Ok(next) = reverse.waiting.remove(0) {
        if !hand_over(requester, &mut reverse, &next) {
            // There is room, since it was in the list before.
            let _ = reverse.waiting.insert_within_capacity(0, next);
            break;
        }
    }
}

/// Drops the waiting Calls: no more are received.
pub(super) fn end(requester: &Requester) {
    loop {
        let mut reverse = requester.reverse.lock();
        let last = reverse.waiting.pop();
        if last.is_none() {
            break;
        }
        reverse.answered();
        drop(reverse);
        drop(last);
    }
}

/// Sends the Reply to a reverse Call that came by the connection `came_by`. The RPC layer has
/// locked the transport. May sleep.
pub(super) fn send_reply(connection: &Connection, rqst: &RpcRqst, came_by: u64) -> Result {
    let requester = connection.handler();
    // A Reply belongs to the connection of its Call; the server sends that again on a new one.
    if came_by != requester.id.0 {
        return Ok(());
    }
    // It consumes no credit: the server has given one with its Call (RFC 8167, section 4.1).
    let mut buffer = requester.buffer(connection, Purpose::Message)?;
    let reply = rqst.send_buf();
    let len = reply.len();
    let copy = |at, to: &mut [u8]| reply.copy_to(at, to);
    let behind = buffer.message(Direction::Reply, rqst.xid(), len, copy)?;
    // The Receive of a Call that had to wait is not posted again yet.
    requester.provide_receives(connection)?;
    rqst.note_sent();
    // The server may send its next Call as soon as it has this Reply.
    requester.reverse.lock().answered();
    trace::xprtrdma_cb_reply(|| (*requester.loss.address(), rqst.xid()));
    buffer.set_task(rqst.task().id());
    buffer
        .send(behind)
        .map_err(|_| ENOTCONN)
        .inspect_err(|_| requester.loss.report(LossReason::NotPosted))
}
