// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! From a received message to the RPC's result.
//!
//! Everything here runs in completion handlers, or in the tear-down for RPCs that wait for it, and
//! trusts nothing that was received.

#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
#[path = "../../kunit/reply.rs"]
mod tests;

use crate::{
    client::{
        answer::{
            complete,
            Answer,
            LIMITS, //
        },
        call::{
            Call,
            CallState,
            Outcome,
            Phase,
            Placed, //
        },
        connection::{
            Connection,
            Requester, //
        },
        fence::fence,
        loss::LossReason,
        offer::Offer,
        pull,
        pulls::ProvidedReply,
        refusal,
        reverse,
        settle::{
            self,
            bad_reply,
            foreign_key,
            settle,
            unawaited, //
        },
        trace, //
    },
    kapi::{
        ib::Received,
        sunrpc::PinnedRqst, //
    },
};
use kernel::prelude::*;
use xdr::{
    DecodeError,
    Direction,
    ErrorMessage,
    Message,
    RdmaError,
    Rejected,
    Reply,
    Role, //
};

/// A message was received.
#[inline]
pub(crate) fn received(requester: &Requester, connection: &Connection, message: Received<'_>) {
    // In line twice, since most messages have no chunks, and nothing looks for any then.
    let later = match Message::without_chunks(message.bytes()) {
        Some(plain) => decoded(requester, connection, &message, &Ok(plain)),
        None => {
            let any = Message::decode_lists(message.bytes(), &LIMITS);
            decoded(requester, connection, &message, &any)
        }
    };
    match later {
        Some(Later::Reply(rqst, kept)) => keep(requester, connection, rqst, kept, message),
        Some(Later::Call(unserved)) => unserved.wait(message.keep()),
        None => (),
    }
}

/// What is to be done when the message is not looked at any more, and is kept.
enum Later<'a> {
    /// The RPC whose Reply cannot be put in its place now.
    Reply(PinnedRqst<Call>, Kept),
    /// A Call of the server has to wait.
    Call(reverse::Unserved<'a>),
}

/// A message was decoded, or not.
#[inline(always)]
fn decoded<'a>(
    requester: &'a Requester,
    connection: &Connection,
    message: &Received<'_>,
    decoded: &Result<Message<'_>, Rejected>,
) -> Option<Later<'a>> {
    let (xid, content) = match decoded {
        Ok(Message::Reply(reply)) => (reply.xid, Content::Reply(reply)),
        Ok(Message::Error(error)) => (error.xid, Content::Error(error)),
        Ok(Message::Call(call)) if requester.is_provided(connection, call) => {
            return provided(requester, connection, message, &{ *call });
        }
        Ok(Message::Call(call)) => {
            // A copy for who is not in line, so that the rest need not be in memory.
            return called(requester, connection, message, &{ *call }).map(Later::Call);
        }
        Err(rejected) => {
            let xid = refuse(requester, connection, message, &{ *rejected })?;
            (xid, Content::Malformed(rejected.reason))
        }
    };
    let later = answer(requester, connection, message, xid, content);
    later.map(|(rqst, kept)| Later::Reply(rqst, kept))
}

/// A Reply was received that is to be pulled. If it is not, the server is told so at once.
#[cold]
fn provided<'a>(
    requester: &Requester,
    connection: &Connection,
    message: &Received<'_>,
    call: &xdr::Call<'_>,
) -> Option<Later<'a>> {
    let checked = call.as_provided_reply();
    let content = match &checked {
        Ok(reply) => Content::Reply(reply),
        Err(reason) => Content::Malformed(*reason),
    };
    let xid = call.xid;
    let done = || {
        let first = call.reads.segments().next();
        let key = first.map(|read| read.segment.handle);
        pull::send_done(requester, connection, xid, key);
    };
    match requester.shared.xprt.find(xid) {
        Ok(rqst) => {
            let later = answered(requester, connection, message, rqst, xid, content);
            if later.is_none() {
                done();
            }
            later.map(|(rqst, kept)| Later::Reply(rqst, kept))
        }
        Err(why) => {
            // Before its credit comes back.
            done();
            unawaited(connection, message, xid, content.credits(), why);
            None
        }
    }
}

/// A Call of the server was received. What is returned has to wait.
#[inline(never)]
fn called<'a>(
    requester: &'a Requester,
    connection: &Connection,
    message: &Received<'_>,
    call: &xdr::Call<'_>,
) -> Option<reverse::Unserved<'a>> {
    if message.has_invalidated() {
        foreign_key(requester, call.xid);
    }
    reverse::called(requester, connection, call)
}

/// What came for an RPC.
enum Content<'m> {
    Reply(&'m Reply<'m>),
    Error(&'m ErrorMessage),
    /// Something that is not well formed.
    Malformed(DecodeError),
}

impl<'m> Content<'m> {
    /// The server's grant, of what is well formed.
    fn credits(&self) -> Option<u32> {
        match self {
            Self::Reply(reply) => Some(reply.credits),
            Self::Error(error) => Some(error.credits),
            Self::Malformed(_) => None,
        }
    }

    /// What it is to this RPC: the answer, or a reason why it is not well formed.
    #[inline(always)]
    fn check(
        &self,
        requester: &Requester,
        rqst: &PinnedRqst<Call>,
        offer: &Offer,
        message: &Received<'_>,
    ) -> Result<Answer<'m>, &'static str> {
        match self {
            Self::Reply(reply) => {
                trace::returned(reply);
                Answer::check(requester, offer, reply)
            }
            Self::Error(error) => {
                trace::failed(rqst, &{ **error });
                requester.shared.stats.bad_replies.add(1);
                let guess = rqst.receive_buf().buflen_is_guess();
                Ok(Answer::Refused {
                    error: refusal::refused(error.error, guess),
                    room: error.error == RdmaError::Chunk,
                })
            }
            Self::Malformed(reason) => {
                trace::misunderstood(rqst, *reason, message.bytes());
                Err(reason.as_str())
            }
        }
    }
}

/// A message that was not well formed came (RFC 8166, section 4.5). Returns its XID if it may have
/// come for an RPC.
#[inline(never)]
fn refuse(
    requester: &Requester,
    connection: &Connection,
    message: &Received<'_>,
    rejected: &Rejected,
) -> Option<u32> {
    if let Some(header) = rejected
        .header
        .filter(|_| requester.is_bad_provided(rejected))
    {
        trace::refused(requester, rejected.reason, message.bytes());
        pull::send_done(requester, connection, header.xid, None);
        return Some(header.xid);
    }
    // What does not tell its direction, and no Call awaits, can only be a Call.
    let tells = rejected.direction.is_some() || rejected.reason.answer() == xdr::Answer::Silence;
    let role = match rejected.header {
        Some(header) if !tells && !connection.lock().flow.credits.awaits(header.xid) => {
            Role::Responder
        }
        _ => Role::Requester,
    };
    if let Some(error) = rejected.error_message(role, 0) {
        settle::refuse(requester, connection, &error.into());
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

/// What is to be done with an RPC whose Reply was looked at.
enum Verdict {
    /// Its memory is fenced: it has its result.
    Complete(Placed),
    /// Its result must wait for the local invalidation of its regions.
    Fence(Placed),
    /// So must its Reply, or it has to be pulled.
    Keep(Kept),
    /// The message was not for it after all.
    Ignore,
    /// The connection must go, so that the RPC is sent again at once.
    Resend(LossReason),
}

/// What a message is kept for, beside so many bytes that the server has written into the Write
/// chunk.
#[derive(Clone, Copy)]
enum Kept {
    /// The Reply is in it, from that offset on.
    Inline { offset: usize, written: usize },
    /// It says how to pull the Reply; whether the RPC's regions are fenced.
    Provided { written: usize, fenced: bool },
}

/// Keeps a message until the regions of its RPC are fenced, or until it is not needed any more to
/// pull the Reply.
fn keep(
    requester: &Requester,
    connection: &Connection,
    rqst: PinnedRqst<Call>,
    kept: Kept,
    message: Received<'_>,
) {
    let message = message.keep();
    let outcome = match kept {
        Kept::Inline { offset, written } => Outcome::Inline {
            message,
            offset,
            written,
        },
        Kept::Provided {
            written,
            fenced: false,
        } => Outcome::Provided { message, written },
        Kept::Provided { written, .. } => {
            let provided = ProvidedReply {
                rqst,
                message,
                written,
            };
            return pull::begin(requester, connection, provided);
        }
    };
    fence(requester, connection, rqst, outcome);
}

/// Finds the RPC that waits for `xid`, and gives it the result that came in the message as soon as
/// no peer can reach its memory. What is returned is to be fenced.
#[inline(always)]
fn answer(
    requester: &Requester,
    connection: &Connection,
    message: &Received<'_>,
    xid: u32,
    content: Content<'_>,
) -> Option<(PinnedRqst<Call>, Kept)> {
    match requester.shared.xprt.find(xid) {
        Ok(rqst) => answered(requester, connection, message, rqst, xid, content),
        Err(why) => {
            unawaited(connection, message, xid, content.credits(), why);
            None
        }
    }
}

/// As [`answer`], for the RPC that waits.
#[inline(always)]
fn answered(
    requester: &Requester,
    connection: &Connection,
    message: &Received<'_>,
    rqst: PinnedRqst<Call>,
    xid: u32,
    content: Content<'_>,
) -> Option<(PinnedRqst<Call>, Kept)> {
    let Looked {
        verdict,
        malformed,
        foreign,
        room,
    } = look(requester, connection, message, &rqst, xid, content);
    if room {
        connection.make_room();
    }
    if malformed && matches!(verdict, Verdict::Ignore) {
        bad_reply(requester, Some(xid), "not well formed");
    }
    let mut end = malformed.then_some(LossReason::BadMessage);
    let mut later = None;
    match verdict {
        Verdict::Complete(placed) => complete(requester, rqst, placed),
        Verdict::Fence(placed) => fence(requester, connection, rqst, Outcome::Placed(placed)),
        Verdict::Keep(kept) => later = Some((rqst, kept)),
        Verdict::Ignore => end = None,
        Verdict::Resend(reason) => end = Some(reason),
    }
    if let Some(reason) = end {
        requester.loss.report(reason);
    }
    if foreign {
        foreign_key(requester, xid);
    }
    requester.shared.xprt.space();
    later
}

/// What came of a look at what has come for an RPC.
struct Looked {
    verdict: Verdict,
    /// It is not well formed, or no answer.
    malformed: bool,
    /// It came with a key that is not the RPC's.
    foreign: bool,
    /// Somebody waits for room in the send queue that there is now.
    room: bool,
}

/// Looks at what came in a message for an RPC.
#[inline(always)]
fn look(
    requester: &Requester,
    connection: &Connection,
    message: &Received<'_>,
    rqst: &PinnedRqst<Call>,
    xid: u32,
    content: Content<'_>,
) -> Looked {
    let credits = content.credits();
    let call = rqst.call();
    let mut state = call.state.lock();
    let Some(offer) = state.offer_on(requester.id) else {
        // A Reply to a Call that was not sent here, or a second one. What it is compared with is
        // another's now.
        if credits.is_some() {
            trace::unexpected(requester, message.bytes());
        }
        return Looked {
            verdict: Verdict::Ignore,
            malformed: credits.is_none(),
            // It may have been one of the Call's regions that are being taken back, or, of an
            // earlier connection, were.
            foreign: message.has_invalidated() && state.phase == Phase::Idle,
            room: false,
        };
    };
    if let Some(credits) = credits {
        trace::answered(requester, rqst, xid, credits);
    }
    let checked = content.check(requester, rqst, offer, message);
    let malformed = checked.is_err();
    let freed = message.take_invalidated().map(|key| {
        let task = || rqst.task().id();
        connection.remotely_invalidated(&mut offer.regions, key, task)
    });
    let verdict = judge(connection, message, rqst, &mut state, credits, checked);
    Looked {
        verdict,
        malformed,
        foreign: freed == Some(None),
        room: freed.flatten() == Some(true),
    }
}

/// What is to be done with an RPC that waits for this Reply.
#[inline(always)]
fn judge(
    connection: &Connection,
    message: &Received<'_>,
    rqst: &PinnedRqst<Call>,
    state: &mut CallState,
    credits: Option<u32>,
    checked: Result<Answer<'_>, &'static str>,
) -> Verdict {
    let (requester, well_formed) = (connection.handler(), checked.is_ok());
    let answer = match checked {
        Ok(answer) => answer,
        Err(reason) => {
            // What is malformed in itself was told already.
            if credits.is_some() {
                trace::unfit(requester, message.bytes());
            }
            bad_reply(requester, Some(state.xid), reason);
            state.bad_replies = state.bad_replies.saturating_add(1);
            // The RPC is sent again once. A server that answers badly again would do so for ever.
            if state.bad_replies < 2 {
                return Verdict::Resend(LossReason::BadMessage);
            }
            Answer::Refused {
                error: EIO,
                room: false,
            }
        }
    };
    if state.kind.is_some() {
        if let Some(verdict) = learn(requester, state, &answer) {
            return verdict;
        }
    }
    let grant = credits.filter(|_| well_formed);
    let fenced = state.is_fenced();
    let kept = match &answer {
        Answer::Provided { written } => Some(Kept::Provided {
            written: *written,
            fenced,
        }),
        Answer::Inline { part, written } if !fenced => {
            let overlaps = |offer: &KBox<Offer>| answer.overlaps_chunks(rqst, offer);
            let waits = state.offer.as_ref().is_none_or(overlaps);
            waits.then_some(Kept::Inline {
                offset: part.offset,
                written: *written,
            })
        }
        _ => None,
    };
    state.phase = if fenced { Phase::Idle } else { Phase::Fencing };
    if let Some(kept) = kept {
        // The credit comes back when the message is not needed any more.
        settle(connection, grant, None);
        return Verdict::Keep(kept);
    }
    settle(connection, grant, state.take_credit(requester.id));
    let placed = answer.place(requester, rqst);
    match fenced {
        true => Verdict::Complete(placed),
        false => Verdict::Fence(placed),
    }
}

/// Takes note of how long the Reply to an RPC of its kind was. One that was relied upon to be
/// provided, and is refused, is asked for once more, with room for it.
#[cold]
fn learn(requester: &Requester, state: &mut CallState, answer: &Answer<'_>) -> Option<Verdict> {
    let kind = state.kind.take()?;
    let offered = state
        .offer
        .as_ref()
        .is_none_or(|offer| !offer.reply.is_empty());
    let refused = matches!(answer, Answer::Refused { room: true, .. }) && !offered;
    let long = match answer.is_long(requester.thresholds().receive) {
        None if refused && !state.refused => true,
        None => return None,
        Some(long) => long,
    };
    requester.shared.history.lock().replied(&kind, long);
    if !refused {
        return None;
    }
    state.refused = true;
    Some(Verdict::Resend(LossReason::NotProvided))
}
