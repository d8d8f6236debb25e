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
            place_inline,
            Answer, //
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
        loss::LossReason,
        offer::Offer,
        refusal,
        reverse,
        settle::{
            bad_reply,
            foreign_key,
            give_up,
            send_error,
            settle,
            unawaited, //
        },
        sizes::REVERSE_SLOTS,
        trace, //
    },
    kapi::{
        ib::{
            Invalidated,
            Received, //
        },
        sunrpc::PinnedRqst, //
    },
    transport::send_queue::Waiter, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};
use xdr::{
    DecodeError,
    Direction,
    ErrorMessage,
    Limits,
    Message,
    Rejected,
    Reply,
    Role, //
};

/// Bounds on what a server may send. What has a Read list is a reverse Call, and refused whatever
/// is in it, so that few will do. Of the others there may be as many as a Receive can hold, so that
/// the Payload stream behind them tells what it is; what was offered bounds those of a Reply
/// further.
const LIMITS: Limits = Limits {
    read_segments: 64,
    read_chunks: 16,
    write_chunks: usize::MAX,
    write_segments: usize::MAX,
    chunk_segments: usize::MAX,
    ..Limits::floor(u32::MAX)
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
        Some(Later::Reply(rqst, part)) => fence_inline(requester, connection, rqst, part, message),
        Some(Later::Call(unserved)) => unserved.wait(message.keep()),
        None => (),
    }
}

/// What is to be done when the message is not looked at any more, and is kept.
enum Later<'a> {
    /// The RPC whose Reply, at that offset and beside so many bytes in the Write chunk, cannot be
    /// put in its place before its regions are fenced.
    Reply(PinnedRqst<Call>, (usize, usize)),
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
    later.map(|(rqst, part)| Later::Reply(rqst, part))
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
                Ok(Answer::Ready(Err(refusal::refused(error.error, guess))))
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
    // Of another version little more than the XID is known. What no Call awaits can only be a Call.
    let other = matches!(rejected.reason, DecodeError::Version(_));
    let role = match rejected.header {
        Some(header) if other && !requester.credits.lock().awaits(header.xid) => Role::Responder,
        _ => Role::Requester,
    };
    if let Some(error) = rejected.error_message(role, REVERSE_SLOTS) {
        send_error(requester, connection, &error);
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
                give_up(requester, LossReason::BadMessage);
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
    /// So must its Reply, which is in the message from that offset on, beside so many bytes that
    /// the server has written into the Write chunk.
    Keep { offset: usize, written: usize },
    /// The message was not for it after all.
    Ignore,
    /// The connection must go, so that the RPC is sent again at once.
    Resend,
}

/// Has the regions of an RPC fenced whose Reply is in this message, which is kept: at that offset,
/// beside so many bytes that the server has written into the Write chunk.
fn fence_inline(
    requester: &Requester,
    connection: &Connection,
    rqst: PinnedRqst<Call>,
    (offset, written): (usize, usize),
    message: Received<'_>,
) {
    let outcome = Outcome::Inline {
        message: message.keep(),
        offset,
        written,
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
) -> Option<(PinnedRqst<Call>, (usize, usize))> {
    let credits = content.credits();
    let rqst = match requester.shared.xprt.find(xid) {
        Ok(rqst) => rqst,
        Err(why) => {
            unawaited(requester, message, xid, credits, why);
            return None;
        }
    };
    let Looked {
        verdict,
        malformed,
        foreign,
    } = look(requester, connection, message, &rqst, xid, content);
    let end = match &verdict {
        Verdict::Complete(_) | Verdict::Fence(_) | Verdict::Keep { .. } => malformed,
        Verdict::Ignore => {
            if malformed {
                bad_reply(requester, Some(xid), "not well formed");
            }
            false
        }
        Verdict::Resend => true,
    };
    let mut later = None;
    match verdict {
        Verdict::Complete(placed) => complete(requester, rqst, placed),
        Verdict::Fence(placed) => fence(requester, connection, rqst, Outcome::Placed(placed)),
        Verdict::Keep { offset, written } => {
            later = Some((rqst, (offset, written)));
        }
        Verdict::Ignore | Verdict::Resend => (),
    }
    if end {
        give_up(requester, LossReason::BadMessage);
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
        };
    };
    if let Some(credits) = credits {
        trace::answered(requester, rqst, xid, credits);
    }
    let checked = content.check(requester, rqst, offer, message);
    let malformed = checked.is_err();
    let foreign = message.take_invalidated().is_some_and(|key| {
        let task = || rqst.task().id();
        !connection.remotely_invalidated(&mut offer.regions, key, task)
    });
    let verdict = judge(requester, message, rqst, &mut state, credits, checked);
    Looked {
        verdict,
        malformed,
        foreign,
    }
}

/// What is to be done with an RPC that waits for this Reply.
#[inline(always)]
fn judge(
    requester: &Requester,
    message: &Received<'_>,
    rqst: &PinnedRqst<Call>,
    state: &mut CallState,
    credits: Option<u32>,
    checked: Result<Answer<'_>, &'static str>,
) -> Verdict {
    let well_formed = checked.is_ok();
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
                return Verdict::Resend;
            }
            Answer::Ready(Err(EIO))
        }
    };
    let grant = credits.filter(|_| well_formed);
    let fenced = state.is_fenced();
    if !fenced {
        state.phase = Phase::Fencing;
        let overlaps = |offer: &KBox<Offer>| answer.overlaps_chunks(rqst, offer);
        if let (Answer::Inline { part, written }, true) =
            (&answer, state.offer.as_ref().is_none_or(overlaps))
        {
            // The credit comes back when the message is in its place.
            settle(requester, grant, None);
            return Verdict::Keep {
                offset: part.offset,
                written: *written,
            };
        }
    }
    settle(requester, grant, Some(state.xid));
    let placed = answer.place(requester, rqst);
    if fenced {
        state.phase = Phase::Idle;
        Verdict::Complete(placed)
    } else {
        Verdict::Fence(placed)
    }
}

/// Gives an RPC its result: no peer can reach its memory any more.
#[inline(always)]
fn complete(requester: &Requester, mut rqst: PinnedRqst<Call>, placed: Placed) {
    if let Some(head) = placed.head {
        rqst.trim_head(head);
    }
    if rqst.complete(placed.result).is_err() {
        not_fenced(requester);
    }
}

/// A region still covers memory of an RPC with its Reply: it is sent again on another connection,
/// when those of this one are gone.
#[cold]
fn not_fenced(requester: &Requester) {
    requester.loss.report(LossReason::NotFenced);
}

/// As [`complete`], for an RPC whose Reply had to wait for that.
fn complete_fenced(requester: &Requester, rqst: PinnedRqst<Call>, outcome: Outcome) {
    let placed = match outcome {
        Outcome::Placed(placed) => placed,
        Outcome::Inline {
            message,
            offset,
            written,
        } => {
            let part = message.bytes().get(offset..).unwrap_or(&[]);
            let placed = place_inline(requester, &rqst, part, written);
            drop(message);
            let xid = rqst.call().state.lock().xid;
            requester.credits.lock().put(xid);
            placed
        }
        // Its connection is over, and with that all credits.
        Outcome::Copied { part, written } => place_inline(requester, &rqst, &part, written),
    };
    complete(requester, rqst, placed);
}

/// Posts the local invalidation of the RPC's regions; its completion gives the RPC its result.
fn fence(requester: &Requester, connection: &Connection, rqst: PinnedRqst<Call>, outcome: Outcome) {
    requester.shared.stats.local_invalidations.add(1);
    let call: Arc<Call> = rqst.call().into();
    let mut state = call.state.lock();
    let CallState { offer, waiting, .. } = &mut *state;
    let (rqst, _) = waiting.insert((rqst, outcome));
    let task = || rqst.task().id();
    let posted = match offer {
        Some(offer) => connection.invalidate(&mut offer.regions, call.clone(), Waiter::Reply, task),
        // No Call is made before they are fenced.
        None => Err((EINVAL, Some(call.clone()))),
    };
    if let Err((_, unposted)) = posted {
        // Otherwise it comes back from what was posted.
        let waiting = unposted.and_then(|_| state.waiting.take());
        drop(state);
        if let Some(waiting) = waiting {
            put_off(requester, call, waiting);
        }
        requester.loss.report(LossReason::NotFenced);
        requester.end_for_put_off();
    }
}

/// Local invalidations have ended.
pub(crate) fn invalidated(
    requester: &Requester,
    connection: &Connection,
    call: Arc<Call>,
    done: Option<Invalidated>,
) {
    let mut state = call.state.lock();
    if let (Some(done), Some(regions)) = (done, state.regions()) {
        connection.invalidation_completed(regions, &done);
    }
    let fenced = state.is_fenced();
    if fenced {
        state.phase = Phase::Idle;
    }
    let waiting = state.waiting.take();
    if waiting.is_none() {
        // Under the lock, so that it cannot be a signal to the next user of the call's state.
        call.fenced.complete_all();
    }
    drop(state);
    match (waiting, fenced) {
        (Some((rqst, outcome)), true) => complete_fenced(requester, rqst, outcome),
        (Some(waiting), false) => {
            put_off(requester, call, waiting);
            requester.end_for_put_off();
        }
        (None, _) => (),
    }
    requester.shared.xprt.space();
}

/// Lets an RPC whose Reply is here wait for the tear-down: nobody knows what its regions are until
/// that has taken them from the device. Without memory the Reply is dropped, and the RPC sent again
/// on the next connection.
#[cold]
fn put_off(requester: &Requester, call: Arc<Call>, waiting: (PinnedRqst<Call>, Outcome)) {
    let (rqst, outcome) = waiting;
    let Some(outcome) = outcome.detached() else {
        return;
    };
    call.state.lock().waiting = Some((rqst, outcome));
    if let Err(call) = requester.put_off(call) {
        let waiting = call.state.lock().waiting.take();
        drop(waiting);
    }
}

/// The tear-down has taken the regions from the device of an RPC that was put off.
#[cold]
pub(crate) fn drained(requester: &Requester, call: &Call) {
    let mut state = call.state.lock();
    if let Some(regions) = state.regions() {
        regions.drop_dead();
    }
    let (waiting, fenced) = (state.waiting.take(), state.is_fenced());
    if fenced {
        state.phase = Phase::Idle;
    }
    drop(state);
    if let (Some((rqst, outcome)), true) = (waiting, fenced) {
        complete_fenced(requester, rqst, outcome);
    }
}
