// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! From a received message to the RPC's result.
//!
//! Everything here runs in completion handlers, or in the tear-down for RPCs that wait for it, and
//! trusts no received value.

#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
#[path = "../../kunit/reply.rs"]
mod tests;

use crate::{
    client::{
        answer::complete,
        call::{
            Answer,
            Call,
            CallState,
            Phase,
            ReplyMessage,
            WaitingMessage,
            WaitingReply, //
        },
        connection::{
            Connection,
            Requester, //
        },
        fence::{
            fence,
            finish, //
        },
        loss::LossReason,
        offer::Offer,
        pull,
        refusal::refused,
        reverse,
        settle::{
            self,
            bad_reply,
            foreign_key,
            settle,
            unmatched, //
        },
        stats::Stat,
        trace, //
    },
    kapi::{
        ib::Received,
        sunrpc::PinnedRqst, //
    },
    transport::endpoint::Arrival,
};
use kernel::prelude::*;
use xdr::{
    v2::{
        rejected_on_arrival,
        Undecoded, //
    },
    DecodeError,
    Direction,
    ErrorMessage,
    Message,
    RdmaError,
    Rejected,
    Reply,
    ReplyPayload,
    Role, //
};

/// The further use of a received message.
enum Fate {
    /// None: the message is not needed any more.
    Done,
    /// It waits for the callback service: the Call with this XID begins at `offset`.
    ReverseCall { xid: u32, offset: usize },
    /// It is the Reply of this RPC; and whether no peer can reach the RPC's memory.
    Reply(PinnedRqst<Call>, Answer, bool),
}

/// Dispatches a received message.
#[inline]
pub(crate) fn received(connection: &Connection, message: Received<'_>, arrival: Arrival) {
    let (undecoded, front) = match arrival {
        Arrival::Message => (Undecoded::default(), None),
        Arrival::Last(undecoded, front) => (undecoded, Some(front)),
        Arrival::Refused(reason) => return refused_on_arrival(connection, message, reason),
        Arrival::Taken => return drop(message),
    };
    let requester = connection.handler();
    // Bytes of its Payload stream in the messages in front of it.
    let before = front.as_ref().map_or(0, |front| front.len());
    let decoded = connection.decode(message.bytes(), undecoded);
    let fate = match &decoded {
        Ok(Message::Reply(reply)) => {
            let content = Content::Reply(reply, before);
            answered(connection, &message, reply.xid, content)
        }
        Ok(Message::Error(error)) => {
            answered(connection, &message, error.xid, Content::Error(error))
        }
        Ok(Message::Call(call)) if requester.is_provided(connection, call) => {
            provided(connection, &message, call)
        }
        Ok(Message::Call(call)) => {
            if message.has_invalidated() {
                foreign_key(requester, call.xid);
            }
            let offset = reverse::called(requester, connection, call, before);
            offset.map_or(Fate::Done, |offset| Fate::ReverseCall {
                xid: call.xid,
                offset,
            })
        }
        Err(rejected) => malformed(connection, &message, rejected),
    };
    match fate {
        Fate::Done => (),
        Fate::ReverseCall { xid, offset } => {
            let message = message.keep();
            reverse::wait(requester, xid, WaitingMessage { front, message }, offset);
        }
        Fate::Reply(rqst, mut answer, fenced) => {
            let message = if answer.waits(fenced) {
                let message = message.keep();
                Some(ReplyMessage::Received(WaitingMessage { front, message }))
            } else {
                answer = answer.place(requester, &rqst, front.as_deref(), message.bytes());
                None
            };
            deliver(connection, rqst, answer, message, fenced);
        }
    }
}

/// Handles a message that is malformed, or may not come there.
#[cold]
fn refused_on_arrival(connection: &Connection, message: Received<'_>, reason: DecodeError) {
    let rejected = rejected_on_arrival(message.bytes(), reason);
    let fate = malformed(connection, &message, &rejected);
    // An error, for which the message is not needed.
    if let Fate::Reply(rqst, answer @ Answer::Ready(..), fenced) = fate {
        deliver(connection, rqst, answer, None, fenced);
    }
}

/// Handles a malformed message.
#[cold]
fn malformed(connection: &Connection, message: &Received<'_>, rejected: &Rejected) -> Fate {
    // What its message began with was refused already.
    if rejected.reason == DecodeError::Discarded {
        if message.has_invalidated() {
            connection.handler().loss.report(LossReason::BadMessage);
        }
        return Fate::Done;
    }
    match refuse(connection, message, rejected) {
        Some(xid) => answered(
            connection,
            message,
            xid,
            Content::Malformed(rejected.reason),
        ),
        None => Fate::Done,
    }
}

/// Completes an RPC with its Reply, or has it wait for a fence or a pull; with the message, if that
/// is needed then.
#[inline]
fn deliver(
    connection: &Connection,
    rqst: PinnedRqst<Call>,
    answer: Answer,
    message: Option<ReplyMessage>,
    fenced: bool,
) {
    if fenced && message.is_none() {
        return complete(connection.handler(), rqst, answer);
    }
    let reply = WaitingReply {
        rqst,
        answer,
        message,
    };
    match fenced {
        true => finish(connection, reply),
        false => fence(connection, reply),
    }
}

/// Handles a Reply that is to be pulled. If it is not pulled, the server is told so at once.
#[cold]
fn provided(connection: &Connection, message: &Received<'_>, call: &xdr::Call<'_>) -> Fate {
    let requester = connection.handler();
    let checked = call.as_provided_reply();
    let content = match &checked {
        Ok(reply) => Content::Reply(reply, 0),
        Err(reason) => Content::Malformed(*reason),
    };
    let done = || {
        let first = call.reads.segments().next();
        let key = first.map(|read| read.segment.handle);
        pull::send_done(requester, connection, call.xid, key);
    };
    match requester.shared.xprt.find(call.xid) {
        Ok(rqst) => {
            let fate = handle(connection, message, rqst, content);
            if !matches!(&fate, Fate::Reply(_, Answer::Provided { .. }, _)) {
                done();
            }
            fate
        }
        Err(why) => {
            // The server is told before the credit comes back.
            done();
            let (grant, plain) = (content.credits(), content.is_plain());
            unmatched(connection, message, call.xid, grant, plain, why);
            Fate::Done
        }
    }
}

/// The content of a message for an RPC.
enum Content<'m> {
    /// A Reply, and the bytes of its Payload stream in messages before this one.
    Reply(&'m Reply<'m>, usize),
    Error(&'m ErrorMessage),
    /// A malformed message.
    Malformed(DecodeError),
}

impl<'m> Content<'m> {
    /// Returns the server's grant; none if the message is malformed.
    fn credits(&self) -> Option<u32> {
        match self {
            Self::Reply(reply, _) => Some(reply.credits),
            Self::Error(error) => Some(error.credits),
            Self::Malformed(_) => None,
        }
    }

    /// Returns whether the message fits a Call that offers nothing.
    fn is_plain(&self) -> bool {
        match self {
            Self::Reply(reply, _) => {
                let nothing = reply.nothing_written().and(reply.no_reply_written());
                nothing.is_ok() && matches!(reply.payload, ReplyPayload::Inline(_))
            }
            Self::Error(_) => true,
            Self::Malformed(_) => false,
        }
    }

    /// Returns whether it is the error for a Reply that has no room, and would have some; that of
    /// version 1 also stands for chunks that the server cannot use. In version 2 a length of zero
    /// says that nobody knows (section 7.3.5 of the draft).
    fn is_room_error(&self) -> bool {
        match self {
            Self::Error(error) => matches!(
                error.error,
                RdmaError::Chunk | RdmaError::ReplyResource { needed: 1.. }
            ),
            _ => false,
        }
    }

    /// Returns the answer to this RPC, or the reason why the message is malformed.
    fn check(
        &self,
        requester: &Requester,
        rqst: &PinnedRqst<Call>,
        offer: &Offer,
        message: &Received<'_>,
    ) -> Result<Answer, &'static str> {
        match self {
            Self::Reply(reply, before) => {
                trace::returned(reply);
                Answer::check(requester, rqst, offer, reply, *before)
            }
            Self::Error(error) => {
                trace::failed(rqst, error);
                requester.shared.stats.add(Stat::BadReplies, 1);
                let guess = rqst.receive_buf().buflen_is_guess();
                Ok(Answer::failed(refused(error.error, guess)))
            }
            Self::Malformed(reason) => {
                trace::misunderstood(rqst, *reason, message.bytes());
                Err(reason.as_str())
            }
        }
    }
}

/// Handles a malformed message (RFC 8166, section 4.5). Returns its XID if it may have come for an
/// RPC.
#[inline(never)]
fn refuse(connection: &Connection, message: &Received<'_>, rejected: &Rejected) -> Option<u32> {
    let requester = connection.handler();
    if let Some(header) = rejected
        .header
        .filter(|_| requester.is_bad_provided(rejected))
    {
        trace::refused(requester, rejected.reason, message.bytes());
        pull::send_done(requester, connection, header.xid, None);
        return Some(header.xid);
    }
    let awaits = |xid| connection.lock().flow.credits.awaits(xid);
    let (role, answer) = connection.judge(rejected, awaits);
    if let Some(refusal) = answer {
        settle::refuse(requester, connection, &refusal);
    }
    let (reason, bytes) = (rejected.reason, message.bytes());
    trace::refused(requester, reason, bytes);
    if role == Role::Responder && !message.has_invalidated() {
        return None;
    }
    match rejected.header {
        // Both directions may use the same XID at the same time (RFC 8167, section 2.4.1), and
        // RDMA_DONE is no Reply at all (RFC 8166, section 4.6.2).
        Some(header)
            if rejected.direction != Some(Direction::Call) && reason != DecodeError::Done =>
        {
            Some(header.xid)
        }
        header => {
            bad_reply(requester, header.map(|h| h.xid), reason.as_str());
            if message.has_invalidated() {
                requester.loss.report(LossReason::BadMessage);
            }
            None
        }
    }
}

/// Finds the RPC that waits for `xid`, and handles the message for it.
fn answered(
    connection: &Connection,
    message: &Received<'_>,
    xid: u32,
    content: Content<'_>,
) -> Fate {
    match connection.handler().shared.xprt.find(xid) {
        Ok(rqst) => handle(connection, message, rqst, content),
        Err(why) => {
            let (grant, plain) = (content.credits(), content.is_plain());
            unmatched(connection, message, xid, grant, plain, why);
            Fate::Done
        }
    }
}

/// Handles a message for an RPC.
fn handle(
    connection: &Connection,
    message: &Received<'_>,
    rqst: PinnedRqst<Call>,
    content: Content<'_>,
) -> Fate {
    let call = rqst.call();
    let mut state = call.state.lock();
    let (answer, room) = handle_locked(connection, message, &rqst, &mut state, &content);
    let fenced = state.phase == Phase::Idle;
    drop(state);
    if room {
        connection.make_room();
    }
    connection.handler().shared.xprt.space();
    answer.map_or(Fate::Done, |answer| Fate::Reply(rqst, answer, fenced))
}

/// Checks a message for an RPC, whose state is locked. Returns the answer for the RPC, and whether
/// a task waits for room in the send queue that there is now.
fn handle_locked(
    connection: &Connection,
    message: &Received<'_>,
    rqst: &PinnedRqst<Call>,
    state: &mut CallState,
    content: &Content<'_>,
) -> (Option<Answer>, bool) {
    let (requester, xid) = (connection.handler(), state.xid);
    let Some(offer) = state.offer_on(requester.id) else {
        not_sent_here(requester, message, state, content);
        return (None, false);
    };
    if let Some(credits) = content.credits() {
        trace::answered(requester, rqst, xid, credits);
    }
    let checked = content.check(requester, rqst, offer, message);
    let mut room = false;
    if let Some(key) = message.take_invalidated() {
        let task = || rqst.task().id();
        match connection.remotely_invalidated(&mut offer.regions, key, task) {
            Some(waited_for) => room = waited_for,
            None => foreign_key(requester, xid),
        }
    }
    let well_formed = checked.is_ok();
    let accepted = match checked {
        Ok(answer) => Some(match learn(connection, state, &answer, content) {
            // The RPC layer sends it again.
            true => Answer::failed(EAGAIN),
            false => answer,
        }),
        Err(reason) => {
            // A message malformed in itself was traced already.
            if content.credits().is_some() {
                trace::unfit(requester, message.bytes());
            }
            bad_reply(requester, Some(xid), reason);
            requester.loss.report(LossReason::BadMessage);
            state.bad_replies = state.bad_replies.saturating_add(1);
            // The RPC is sent again once. A server that answers badly again would do so for ever.
            (state.bad_replies >= 2).then(|| Answer::failed(EIO))
        }
    };
    if let Some(answer) = &accepted {
        let fenced = state.is_fenced();
        state.phase = if fenced { Phase::Idle } else { Phase::Fencing };
        // The credit comes back when the message is not needed any more.
        let back = match answer.waits(fenced) {
            true => None,
            false => state.take_credit(requester.id),
        };
        settle(connection, content.credits().filter(|_| well_formed), back);
    }
    (accepted, room)
}

/// Handles a Reply to a Call that was not sent on this connection, or a second Reply. The RPC's
/// state may belong to another Call now.
#[cold]
fn not_sent_here(
    requester: &Requester,
    message: &Received<'_>,
    state: &CallState,
    content: &Content<'_>,
) {
    match content.credits() {
        Some(_) => trace::unexpected(requester, message.bytes()),
        None => bad_reply(requester, Some(state.xid), "not well formed"),
    }
    // The key may be of a region of the Call that is being invalidated, or that was, on an earlier
    // connection.
    if message.has_invalidated() && state.phase == Phase::Idle {
        foreign_key(requester, state.xid);
    }
}

/// Notes the length of the Reply for RPCs of its kind, and what an error says of chunks. Returns
/// whether the RPC is sent once more: it relied on a provided Reply, or on a continued one, and was
/// refused, or the server takes other chunks.
fn learn(
    connection: &Connection,
    state: &mut CallState,
    answer: &Answer,
    content: &Content<'_>,
) -> bool {
    if let Content::Error(error) = content {
        if connection.lock().flow.refuse_chunks(&error.error) {
            let id = connection.handler().id;
            return state.limited.replace(id) != Some(id);
        }
    }
    let Some(kind) = state.kind.take() else {
        return false;
    };
    // It may be no Reply of its kind: a server of NFS 4.1 need not keep that for a Call that
    // comes once more (RFC 8881, section 2.10.6.1.3).
    if state.refused {
        return false;
    }
    let history = &connection.handler().shared.history;
    let offered = state
        .offer
        .as_ref()
        .is_none_or(|offer| !offer.reply.is_empty());
    if content.is_room_error() && !offered {
        history.lock().refused(&kind);
        state.refused = true;
        return true;
    }
    let continued = matches!(content, Content::Reply(_, 1..));
    if let Some(long) = answer.is_long(connection.thresholds().receive) {
        history.lock().replied(&kind, long || continued);
    }
    false
}
