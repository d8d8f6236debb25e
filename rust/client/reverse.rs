// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Calls of the server (RFC 8167).

use crate::{
    client::{
        connection::{
            Connection,
            Requester, //
        },
        loss::LossReason,
        reverse_calls::{
            ReverseCalls,
            WaitingCall, //
        },
        settle::send_error,
        sizes::REVERSE_SLOTS, //
    },
    kapi::{
        ib::RecvBuf,
        sunrpc::RpcRqst,
        trace, //
    },
};
use kernel::{
    page::PAGE_SIZE,
    prelude::*,
    sync::SpinLockGuard, //
};
use xdr::{
    Call,
    CallPayload,
    Encoder,
    ErrorMessage,
    RdmaError,
    VERSION, //
};

/// A Call that has to wait until the callback service has room for it; no other can come before it.
pub(super) struct Unserved<'a> {
    reverse: SpinLockGuard<'a, ReverseCalls>,
    xid: u32,
    offset: usize,
}

impl Unserved<'_> {
    /// It waits, in its message.
    pub(super) fn wait(mut self, message: RecvBuf) {
        // There is room for all that may be unanswered.
        let _ = self.reverse.waiting.push_within_capacity(WaitingCall {
            xid: self.xid,
            message,
            offset: self.offset,
        });
    }
}

/// A Call of the server came. In the completion handler. What is returned has to wait.
pub(super) fn called<'a>(
    requester: &'a Requester,
    connection: &Connection,
    call: &Call<'_>,
) -> Option<Unserved<'a>> {
    let chunks =
        !call.reads.is_empty() || call.writes.chunk_count() != 0 || call.reply_chunk.is_some();
    let part = match &call.payload {
        // Reverse Calls use no chunks (RFC 8167, section 5.3). One that is longer than was agreed
        // on when the session was made is as little use.
        CallPayload::Inline(part) if !chunks && part.bytes.len() <= PAGE_SIZE => part,
        _ => {
            let error = ErrorMessage {
                xid: call.xid,
                version: VERSION,
                credits: REVERSE_SLOTS,
                error: RdmaError::Chunk,
            };
            send_error(requester, connection, &error);
            return None;
        }
    };
    if !requester.shared.reverse_enabled() {
        return None;
    }
    let mut reverse = requester.reverse.lock();
    if !reverse.came() {
        drop(reverse);
        requester.loss.report(LossReason::TooManyCalls);
        return None;
    }
    // A sender that waits for a credit is not to keep the Reply back.
    requester.shared.xprt.space();
    trace::xprtrdma_cb_call(|| (*requester.loss.address(), call.xid));
    // Before the RPC layer knows of the connection, its Reply would be lost.
    let waits = !requester.shared.xprt.is_connected()
        || !reverse.waiting.is_empty()
        || !hand_over(requester, &mut reverse, call.xid, part.bytes);
    waits.then_some(Unserved {
        reverse,
        xid: call.xid,
        offset: part.offset,
    })
}

/// Gives a Call to the callback service. False if that has no room now.
fn hand_over(requester: &Requester, reverse: &mut ReverseCalls, xid: u32, call: &[u8]) -> bool {
    let xprt = &requester.shared.xprt;
    match xprt.receive_reverse_call(xid, call, requester.id.0) {
        Ok(true) => true,
        // Nobody answers, or not any more.
        Ok(false) => {
            reverse.answered();
            true
        }
        Err(_) => false,
    }
}

/// Makes a connection ready for Calls of the server. May sleep.
pub(super) fn expect_calls(connection: &Connection) {
    let requester = connection.handler();
    requester.credits.lock().expect_reverse_calls(REVERSE_SLOTS);
    // Without memory now the next Call provides them.
    let _ = requester.provide_receives(connection);
    deliver_pending(requester);
}

/// The callback service has room for another Call. Does not sleep.
pub(super) fn deliver_pending(requester: &Requester) {
    let mut reverse = requester.reverse.lock();
    while let Ok(next) = reverse.waiting.remove(0) {
        let call = next.message.bytes().get(next.offset..).unwrap_or(&[]);
        if !hand_over(requester, &mut reverse, next.xid, call) {
            // It came from there.
            let _ = reverse.waiting.insert_within_capacity(0, next);
            break;
        }
    }
}

/// Nothing more will be received: what waits goes.
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
    let mut buffer = requester.reply_buffer(connection)?;
    let reply = rqst.send_buf();
    let to = buffer.bytes();
    let header = Encoder::msg(to, rqst.xid(), REVERSE_SLOTS).no_chunks();
    let header = header.map_err(|_| EMSGSIZE)?;
    let len = header.saturating_add(reply.len());
    if len > requester.thresholds().send {
        return Err(EMSGSIZE);
    }
    let body = to.get_mut(header..len).ok_or(EMSGSIZE)?;
    reply.copy_to(0, body)?;
    // That of a Call that had to wait is not posted again yet.
    requester.provide_receives(connection)?;
    rqst.note_sent();
    // The server may send its next Call as soon as it has this.
    requester.reverse.lock().answered();
    trace::xprtrdma_cb_reply(|| (*requester.loss.address(), rqst.xid()));
    buffer
        .post(len, None, || rqst.task().id())
        .map_err(|_| ENOTCONN)
}
