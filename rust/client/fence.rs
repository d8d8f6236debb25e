// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The local invalidation of an RPC's regions when its Reply is here, which comes before the result
//! (RFC 8166, section 4.4.1).

use crate::{
    client::{
        call::{
            Answer,
            Call,
            CallState,
            Phase,
            WaitingReply, //
        },
        connection::{
            Connection,
            Requester, //
        },
        loss::LossReason,
        pull,
        stats::Stat, //
    },
    kapi::ib::Invalidated,
    transport::work::Waiter, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// Posts the local invalidation of the RPC's regions; its completion completes the RPC.
pub(super) fn fence(connection: &Connection, reply: WaitingReply) {
    let requester = connection.handler();
    requester.shared.stats.add(Stat::LocalInvalidations, 1);
    let call: Arc<Call> = reply.rqst.call().into();
    requester.hold(call.clone());
    let mut state = call.state.lock();
    let CallState { offer, waiting, .. } = &mut *state;
    let reply = waiting.insert(reply);
    let task = || reply.rqst.task().id();
    let posted = match offer {
        Some(offer) => connection.invalidate(&mut offer.regions, call.clone(), Waiter::Reply, task),
        // A sender holds the offer only before the Call is sent.
        None => Err((EINVAL, Some(call.clone()))),
    };
    if let Err((_, unposted)) = posted {
        drop(state);
        requester.loss.report(LossReason::NotFenced);
        // Otherwise it comes back with the completion of what was posted.
        if unposted.is_some() {
            defer(requester, &call);
        }
        requester.end_for_deferred();
    }
}

/// Handles the completion of the local invalidations of an RPC.
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
    let waits = state.waiting.is_some();
    let waiting = state.waiting.take_if(|_| fenced);
    if !waits {
        // Under the lock, so that the signal cannot reach the next user of this state.
        call.fenced.complete_all();
    }
    drop(state);
    if waits && !fenced {
        defer(requester, &call);
        requester.end_for_deferred();
    } else {
        requester.let_go(&call);
    }
    if let Some(reply) = waiting {
        finish(connection, reply);
    }
    requester.shared.xprt.space();
}

/// Lets an RPC with a Reply wait for the tear-down: the state of its regions is unknown until they
/// are deregistered. Without memory the Reply is dropped, and the RPC sent again on the next
/// connection.
#[cold]
fn defer(requester: &Requester, call: &Call) {
    let waiting = call.state.lock().waiting.take();
    match waiting.and_then(WaitingReply::detached) {
        Some(reply) => call.state.lock().waiting = Some(reply),
        None => requester.let_go(call),
    }
}

/// Completes an RPC whose memory is fenced, or begins to pull its Reply.
pub(super) fn finish(connection: &Connection, reply: WaitingReply) {
    match reply.answer {
        Answer::Provided { .. } => pull::begin(connection.handler(), connection, reply),
        _ => reply.finish(connection),
    }
}

/// Completes an RPC that waits for the tear-down, which has deregistered its regions.
#[cold]
pub(crate) fn drained(connection: &Connection, call: &Call) {
    let mut state = call.state.lock();
    if let Some(regions) = state.regions() {
        regions.drop_dead();
    }
    let (waiting, fenced) = (state.waiting.take(), state.is_fenced());
    if fenced {
        state.phase = Phase::Idle;
    }
    drop(state);
    if let (Some(reply), true) = (waiting, fenced) {
        reply.finish(connection);
    }
}
