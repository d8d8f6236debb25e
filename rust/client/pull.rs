// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Replies that the server provides in memory of its own, since they are too long for the offered
//! chunks: they are pulled, and the server is told (`Documentation/reliable-reply.rst`).
//!
//! All of this runs in completion handlers, except [`drop_killed`].

use crate::{
    client::{
        answer::complete,
        call::{
            Answer,
            Call,
            Pulling,
            WaitingReply, //
        },
        chunks,
        connection::{
            Connection,
            Requester, //
        },
        loss::LossReason,
        settle::{
            bad_reply,
            settle, //
        },
        trace, //
    },
    kapi::{
        ib::TransferKind,
        sunrpc::PinnedRqst,
        sys::{
            counters::{
                count,
                count_all,
                Counter, //
            },
            memalloc::MemoryScope, //
        },
    },
    transport::{
        segment_cursor::SegmentCursor,
        send_buffer::Purpose, //
    },
};
use kernel::{
    prelude::*,
    sync::Arc, //
};
use xdr::{
    ReadChunk,
    ReadList, //
};

/// Begins to pull the Reply of an RPC whose memory no peer can reach.
pub(super) fn begin(requester: &Requester, connection: &Connection, provided: WaitingReply) {
    let mut next = Some(provided);
    while let Some(provided) = next {
        next = try_one(requester, connection, provided);
    }
}

/// Tries to pull one Reply for [`begin`]. Returns the next to try, if this one did not start.
fn try_one(
    requester: &Requester,
    connection: &Connection,
    provided: WaitingReply,
) -> Option<WaitingReply> {
    let ticket = requester.pulls.lock().begin();
    if provided.rqst.task().is_killed() {
        unwanted(requester, connection, provided);
        return requester.pulls.lock().end();
    }
    let Err((error, unposted)) = start(connection, provided) else {
        return None;
    };
    let mut pulls = requester.pulls.lock();
    let (unposted, next) = match (error, unposted) {
        // Pulls under way give regions or memory back, after which this one is tried again.
        (EAGAIN | ENOMEM, Some(provided)) => match pulls.wait(&ticket, provided) {
            Ok(next) => return next,
            Err(provided) => (Some(provided), pulls.end()),
        },
        (_, unposted) => (unposted, pulls.end()),
    };
    drop(pulls);
    if let Some(unposted) = unposted {
        fail(requester, error, unposted.rqst);
    }
    next
}

/// Drops the Reply of a killed RPC unread, and tells the server at once.
#[cold]
fn unwanted(requester: &Requester, connection: &Connection, provided: WaitingReply) {
    let call = provided.rqst.call();
    let mut state = call.state.lock();
    let (xid, credit) = (state.xid, state.take_credit(requester.id));
    drop(state);
    let first = chunk(provided.bytes()).and_then(|chunk| chunk.segments().next());
    send_done(
        requester,
        connection,
        xid,
        first.map(|segment| segment.handle),
    );
    settle(connection, None, credit);
    requester.shared.xprt.space();
}

/// Drops the waiting Replies of RPCs that were killed meanwhile. For the work item.
pub(super) fn drop_killed(requester: &Requester, connection: &Connection) {
    let killed = |provided: &WaitingReply| provided.rqst.task().is_killed();
    loop {
        let Some(provided) = requester.pulls.lock().take_one(killed) else {
            return;
        };
        unwanted(requester, connection, provided);
    }
}

/// Handles the failure to pull a Reply.
#[cold]
fn fail(requester: &Requester, error: Error, rqst: PinnedRqst<Call>) {
    match error {
        // The RPC is sent again on another connection.
        ENOTCONN | ENOBUFS => requester.loss.report(LossReason::NotPosted),
        // The same, with a Reply chunk: then the Reply need not be pulled.
        ENOMEM => {
            rqst.call().state.lock().refused = true;
            requester.loss.report(LossReason::NotPosted);
        }
        EPROTO => unusable(requester, rqst),
        _ => with_room(requester, rqst, LossReason::NotPulled),
    }
}

/// Handles provided memory that is no Reply to its RPC.
#[cold]
fn unusable(requester: &Requester, rqst: PinnedRqst<Call>) {
    let xid = rqst.call().state.lock().xid;
    bad_reply(requester, Some(xid), "what it provides is no Reply to it");
    with_room(requester, rqst, LossReason::BadMessage);
}

/// Makes the RPC layer send an RPC again with a Reply chunk, but only once: a Reply that fails
/// twice would fail for ever.
#[cold]
fn with_room(requester: &Requester, rqst: PinnedRqst<Call>, reason: LossReason) {
    let call = rqst.call();
    let mut state = call.state.lock();
    state.bad_replies = state.bad_replies.saturating_add(1);
    state.refused = true;
    let again = state.bad_replies < 2;
    drop(state);
    if !again {
        complete(requester, rqst, Answer::failed(EIO));
    }
    requester.loss.report(reason);
}

/// Returns the chunk that a message provides, which was decoded when it came.
fn chunk(message: &[u8]) -> Option<ReadChunk<'_>> {
    ReadList::find(message)?.position_zero()
}

/// Posts the RDMA Reads. Gives back the Reply if none was posted.
fn start(
    connection: &Connection,
    provided: WaitingReply,
) -> Result<(), (Error, Option<WaitingReply>)> {
    let xid = provided.rqst.call().state.lock().xid;
    let requester = connection.handler();
    let _scope = requester.shared.memory_scope();
    let prepared = prepare(connection, &provided);
    let len = prepared.as_ref().map_or(0, |(_, len, _)| *len);
    let result = prepared.as_ref().map(|_| ()).map_err(|e| *e);
    trace::pull(&provided.rqst, xid, len, result);
    let written = provided.written();
    let (transfer, len, key) = match prepared {
        Ok(prepared) => prepared,
        Err(e) => return Err((e, Some(provided))),
    };
    let WaitingReply {
        rqst,
        answer,
        message,
    } = provided;
    let call: Arc<Call> = rqst.call().into();
    requester.hold(call.clone());
    // The Reads may complete at once.
    call.state.lock().pulling = Some(Pulling {
        rqst,
        len,
        written,
        key,
    });
    transfer.read(Some(xid), call.clone()).map_err(|e| {
        requester.let_go(&call);
        let unposted = call.state.lock().pulling.take();
        let unposted = unposted.map(|pulling| WaitingReply {
            rqst: pulling.rqst,
            answer,
            message,
        });
        (e, unposted)
    })
}

type Transfer<'a> = crate::transport::transfer::RwBuilder<'a, Requester>;

/// Prepares the RDMA Reads. Returns their length in bytes, and a key of the server's for RDMA_DONE
/// to invalidate. `EPROTO` if the chunk can be no Reply to the RPC.
fn prepare<'a>(
    connection: &'a Connection,
    provided: &WaitingReply,
) -> Result<(Transfer<'a>, usize, Option<u32>)> {
    let rqst = &provided.rqst;
    let chunk = chunk(provided.bytes()).ok_or(EPROTO)?;
    let length = chunk.length() as usize;
    // As for an inline Reply, all of it is in front of the payload.
    if provided.written() != 0 {
        rqst.stretch_head(length).map_err(|_| EPROTO)?;
    }
    let memory = rqst.receive_memory()?;
    // As over TCP, the consumer's decoder sees what is missing.
    let len = match length.checked_sub(memory.len()) {
        None | Some(0) => length,
        Some(_) => memory.len() & !3,
    };
    let parts = chunk.segment_count();
    let mut transfer = connection.transfer(TransferKind::Read, memory, parts)?;
    // A task that frees memory waits for Replies, and those for this handler: the RDMA core must
    // not wait for memory either. Just now there was some without the reserves.
    let _scope = MemoryScope::enter(true);
    SegmentCursor::new(chunk.segments()).add(&mut transfer, 0, len)?;
    let key = chunk.segments().next().map(|segment| segment.handle);
    Ok((transfer, len, key))
}

/// Handles the server's refusal of the RDMA Reads that its Reply to `xid` has asked for: that is no
/// Reply to the RPC. It may be noticed before or after the memory of the Reads comes back.
#[cold]
pub(super) fn refused(requester: &Requester, xid: u32) {
    match requester.shared.xprt.find(xid) {
        Ok(rqst) => unusable(requester, rqst),
        Err(_) => requester.pulls.lock().refuse(xid),
    }
}

/// Handles the end of RDMA Reads, successful or not: their memory is not the device's any more.
pub(super) fn ended(requester: &Requester, connection: &Connection, call: &Call, ok: bool) {
    let mut state = call.state.lock();
    let (pulling, xid) = (state.pulling.take(), state.xid);
    drop(state);
    requester.let_go(call);
    if let Some(pulling) = pulling {
        let result = if ok { Ok(()) } else { Err(EIO) };
        trace::pulled(&pulling.rqst, xid, pulling.len, result);
        if ok {
            pulled(requester, connection, xid, pulling);
        } else if requester.pulls.lock().was_refused(xid) {
            unusable(requester, pulling.rqst);
        }
    }
    let next = requester.pulls.lock().end();
    if let Some(provided) = next {
        begin(requester, connection, provided);
    }
    requester.shared.xprt.space();
}

/// Handles a Reply that was pulled.
fn pulled(requester: &Requester, connection: &Connection, xid: u32, pulling: Pulling) {
    let Pulling {
        rqst,
        len,
        written,
        key,
    } = pulling;
    count(Counter::ClientPulls);
    count_all(Counter::ClientPullBytes, len);
    // Before the credit lets the next Call out.
    send_done(requester, connection, xid, key);
    let credit = rqst.call().state.lock().take_credit(requester.id);
    settle(connection, None, credit);
    let mut words = [0; 8];
    let room = rqst.receive_buf();
    let [a, b] = [xid, 1].map(u32::to_be_bytes);
    // The Reply was read once, and does not change any more.
    if room.copy_to(0, &mut words).is_err() || words.as_slice() != [a, b].as_flattened() {
        return unusable(requester, rqst);
    }
    // The payload follows at once behind a head that is shorter than was planned.
    let short = written != 0 && len < room.head_len();
    let answer = Answer::Ready(Ok(chunks::reply_len(len, written)), short.then_some(len));
    complete(requester, rqst, answer);
}

/// Tells the server that a Reply was pulled, or is not wanted. The server keeps a Receive for this
/// message, so that it needs no credit. Without a buffer and memory for one, the connection ends.
pub(super) fn send_done(
    requester: &Requester,
    connection: &Connection,
    xid: u32,
    key: Option<u32>,
) {
    let key = key.filter(|_| requester.invalidates_remotely());
    let _scope = requester.shared.memory_scope();
    let sent = connection
        .send_buffer(Purpose::Queued)
        .and_then(|mut buffer| {
            buffer.done(xid)?;
            buffer.invalidate(key);
            buffer.send(0)
        });
    trace::done(xid, key, sent);
    match sent {
        Ok(()) => count(Counter::ClientDones),
        Err(_) => requester.loss.report(LossReason::NotPosted),
    }
}

/// Drops the waiting Replies: no more are pulled.
pub(super) fn end(requester: &Requester) {
    let waiting = requester.pulls.lock().take_waiting();
    drop(waiting);
}
