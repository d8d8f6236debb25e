// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! From a received message to the RPC's result.
//!
//! Everything here runs in completion handlers, and trusts nothing that was received.

use super::{
    call::{
        Call,
        CallState,
        Phase, //
    },
    connection::{
        Connection,
        Requester, //
    },
    mount::{
        Mount,
        REVERSE_SLOTS, //
    },
};
use crate::kapi::{
    ib::{
        Fenced,
        InvalidatedKey,
        Received, //
    },
    sunrpc::PinnedRqst,
    sys::log,
};
use kernel::{
    prelude::*,
    sync::Arc, //
};
use xdr::{
    Call as ReverseCall,
    CallPayload,
    ErrorMessage,
    Limits,
    Message,
    RdmaError,
    Reply,
    ReplyPayload,
    Role,
    VERSION, //
};

/// Bounds on what a server may return; what was offered bounds it further.
const LIMITS: Limits = Limits::floor(u32::MAX);

/// A message was received.
pub(crate) fn received(requester: &Requester, connection: &Connection, message: Received<'_>) {
    let key = message.invalidated;
    match Message::decode(message.bytes, &LIMITS) {
        Ok(Message::Reply(reply)) => {
            let xid = reply.xid;
            grant(requester, reply.credits);
            answer(requester, connection, xid, key, |rqst, state| {
                place(requester, rqst, state, &reply)
            });
        }
        Ok(Message::Error(error)) => {
            grant(requester, error.credits);
            answer(requester, connection, error.xid, key, |_, _| {
                Ok(Err(EIO))
            });
        }
        Ok(Message::Call(call)) => reverse_call(requester, connection, &call),
        Err(rejected) => {
            let reason = rejected.reason.as_str();
            if let Some(error) = rejected.error_message(Role::Requester, REVERSE_SLOTS) {
                send_error(requester, connection, &error);
            }
            match rejected.header {
                Some(header) => {
                    answer(requester, connection, header.xid, key, |_, _| Err(reason));
                }
                None => bad_reply(requester, None, reason),
            }
        }
    }
}

/// Takes note of the server's grant (RFC 8166, section 3.3.1).
fn grant(requester: &Requester, wire: u32) {
    requester.shared.xprt.reset_backoff();
    let changed = requester.credits.lock().granted(wire);
    if let Some(credits) = changed {
        requester.shared.xprt.set_window(credits);
        requester.shared.xprt.space();
    }
}

/// A message that was not well formed: counted, logged, and otherwise ignored (RFC 8166,
/// section 4.5).
fn bad_reply(requester: &Requester, xid: Option<u32>, reason: &str) {
    requester.shared.stats.bad_replies.add(1);
    let address = requester.shared.xprt.address();
    match xid {
        Some(xid) => log::warn(format_args!(
            "bad reply from {address} to XID {xid:#010x}: {reason}\n"
        )),
        None => log::warn(format_args!("bad reply from {address}: {reason}\n")),
    }
}

/// What is to be done with an RPC whose Reply was looked at.
enum Verdict {
    /// Its memory is fenced: it has its result.
    Complete(Fenced, Result<usize>),
    /// Its result must wait for the local invalidation of its regions.
    Fence(Result<usize>),
    /// The message was not for it after all, or is to be ignored.
    Ignore,
    /// The connection must go, so that the RPC is sent again at once.
    Resend,
}

/// Finds the RPC that waits for `xid`, lets `place` put the Reply where it belongs, and gives the
/// RPC its result as soon as no peer can reach its memory.
///
/// `place` fails with a reason for a Reply that is not well formed, and returns the result of the
/// RPC otherwise: its length, or an error.
fn answer(
    requester: &Requester,
    connection: &Connection,
    xid: u32,
    key: Option<InvalidatedKey>,
    place: impl FnOnce(
        &PinnedRqst<Mount>,
        &mut CallState,
    ) -> Result<Result<usize>, &'static str>,
) {
    let Some(rqst) = requester.shared.xprt.find::<Mount>(xid) else {
        // Nobody waits for it. It may be a late Reply, which gives its credit back.
        if requester.credits.lock().late_reply(xid) {
            requester.shared.xprt.space();
        }
        return;
    };
    let verdict = {
        let call = rqst.call();
        let mut state = call.state.lock();
        judge(requester, connection, &rqst, &mut state, key, place)
    };
    match verdict {
        Verdict::Complete(fenced, result) => rqst.complete(fenced, result),
        Verdict::Fence(result) => fence(requester, connection, rqst, result),
        Verdict::Ignore => (),
        Verdict::Resend => {
            requester.alarm.raise();
        }
    }
    requester.shared.xprt.space();
}

fn judge(
    requester: &Requester,
    connection: &Connection,
    rqst: &PinnedRqst<Mount>,
    state: &mut CallState,
    key: Option<InvalidatedKey>,
    place: impl FnOnce(
        &PinnedRqst<Mount>,
        &mut CallState,
    ) -> Result<Result<usize>, &'static str>,
) -> Verdict {
    // A Reply to a Call that was not sent here, or a second one.
    if state.phase != Phase::Sent(requester.id) {
        return Verdict::Ignore;
    }
    let result = match place(rqst, state) {
        Ok(result) => result,
        Err(reason) => {
            bad_reply(requester, Some(state.xid), reason);
            state.bad_replies += 1;
            // The RPC is sent again once. A server that answers badly again would do so for ever.
            if state.bad_replies < 2 {
                return Verdict::Resend;
            }
            Err(EIO)
        }
    };
    requester.credits.lock().give_back();
    if let Some(key) = key {
        connection.remotely_invalidated(&mut state.regions, key);
    }
    match state.regions.fenced() {
        Some(fenced) => {
            state.phase = Phase::Idle;
            Verdict::Complete(fenced, result)
        }
        None => {
            state.phase = Phase::Fencing;
            Verdict::Fence(result)
        }
    }
}

/// Puts a Reply where it belongs. Returns its length as the RPC layer sees it.
fn place(
    requester: &Requester,
    rqst: &PinnedRqst<Mount>,
    state: &CallState,
    reply: &Reply<'_>,
) -> Result<Result<usize>, &'static str> {
    let written = if state.write.is_empty() {
        reply.nothing_written().map(|()| 0)
    } else {
        reply.written(&state.write)
    };
    let long = if state.reply.is_empty() {
        reply.no_reply_written().map(|()| 0)
    } else {
        reply.reply_written(&state.reply)
    };
    let written = written.map_err(|e| e.as_str())? as usize;
    let long = long.map_err(|e| e.as_str())? as usize;
    let stats = &requester.shared.stats;
    stats.written_bytes.add((written + long) as u64);

    let inline = match &reply.payload {
        ReplyPayload::Inline(inline) => inline.bytes,
        ReplyPayload::ReplyChunk if written != 0 => {
            return Err("Write chunk used beside a Reply chunk");
        }
        // The chunk covers the room for the Reply, in its order.
        ReplyPayload::ReplyChunk => return Ok(Ok(long)),
    };

    let mut room = rqst.receive_buf();
    let head = room.head_len();
    let (front, rest) = inline.split_at_checked(head).unwrap_or((inline, &[]));
    let too_long = |_| "reply longer than its room";
    room.copy_from(0, front).map_err(too_long)?;
    if written == 0 {
        stats.fixup_bytes.add(rest.len() as u64);
        room.copy_from(head, rest).map_err(too_long)?;
        return Ok(Ok(inline.len()));
    }
    // The pages were written by the server. What comes behind them goes into the tail; a head
    // that is shorter than was planned for is cut, so that the pages follow it.
    let tail = head + room.page_len();
    room.copy_from(tail, rest).map_err(too_long)?;
    if front.len() < head {
        rqst.trim_head(front.len());
    }
    Ok(Ok(inline.len() + written + super::chunks::pad(written)))
}

/// Posts the local invalidation of the RPC's regions; its completion gives the RPC its result.
fn fence(
    requester: &Requester,
    connection: &Connection,
    rqst: PinnedRqst<Mount>,
    result: Result<usize>,
) {
    requester.shared.stats.local_invalidations.add(1);
    let call: Arc<Call> = rqst.call().into();
    let mut state = call.state.lock();
    state.waiting = Some((rqst, result));
    let posted = connection.invalidate(&mut state.regions, call.clone());
    if let Err((_, unposted)) = posted {
        // The Reply is dropped: nobody knows what the regions are until the tear-down has taken
        // them from the device. The RPC is sent again on the next connection.
        let waiting = match &unposted {
            Some(_) => state.waiting.take(),
            None => None,
        };
        drop(state);
        drop(waiting);
        requester.alarm.raise();
    }
}

/// Local invalidations have ended.
pub(crate) fn invalidated(requester: &Requester, connection: &Connection, call: &Call, ok: bool) {
    let mut state = call.state.lock();
    if ok {
        connection.invalidation_completed(&mut state.regions);
    }
    let waiting = state.waiting.take();
    let fenced = state.regions.fenced();
    if fenced.is_some() {
        state.phase = Phase::Idle;
    }
    drop(state);
    match (waiting, fenced) {
        (Some((rqst, result)), Some(fenced)) => rqst.complete(fenced, result),
        // The Reply is dropped, and the RPC sent again on the next connection.
        (Some((rqst, _)), None) => drop(rqst),
        (None, _) => call.fenced.complete_all(),
    }
    requester.shared.xprt.space();
}

/// A Call of the server came (RFC 8167).
fn reverse_call(requester: &Requester, connection: &Connection, call: &ReverseCall<'_>) {
    let chunks = !call.reads.is_empty()
        || call.writes.chunk_count() != 0
        || call.reply_chunk.is_some();
    let inline = match &call.payload {
        CallPayload::Inline(inline) if !chunks => inline.bytes,
        // Reverse Calls use no chunks (RFC 8167, section 5.3).
        _ => {
            let error = ErrorMessage {
                xid: call.xid,
                version: VERSION,
                credits: REVERSE_SLOTS,
                error: RdmaError::Chunk,
            };
            return send_error(requester, connection, &error);
        }
    };
    if !requester.shared.reverse_enabled() {
        return;
    }
    if let Err(e) = requester.shared.xprt.receive_reverse_call(call.xid, inline) {
        log::warn(format_args!(
            "a call of {} cannot be taken ({e:?}): more at once than it was granted, or too long\n",
            requester.shared.xprt.address(),
        ));
        requester.alarm.raise();
    }
}

/// Answers with an error, if there is a buffer at hand; the peer is in the wrong anyway.
fn send_error(requester: &Requester, connection: &Connection, error: &ErrorMessage) {
    let Some(mut buffer) = connection.pooled_send_buffer() else {
        return;
    };
    let Ok(len) = error.encode(buffer.bytes()) else {
        return;
    };
    if connection.post_message(buffer, len).is_err() {
        requester.alarm.raise();
    }
}
