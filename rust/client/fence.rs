// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The local invalidation of an RPC's regions when its Reply is here: only then it has its result
//! (RFC 8166, section 4.4.1).

use crate::{
    client::{
        answer::{
            complete,
            place_inline, //
        },
        call::{
            Call,
            CallState,
            Outcome,
            Phase, //
        },
        connection::{
            Connection,
            Requester, //
        },
        loss::LossReason,
        pull,
        pulls::ProvidedReply,
        settle::settle, //
    },
    kapi::{
        ib::Invalidated,
        sunrpc::PinnedRqst, //
    },
    transport::work::Waiter, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// As [`complete`], for an RPC whose Reply had to wait for that.
fn complete_fenced(connection: &Connection, rqst: PinnedRqst<Call>, outcome: Outcome) {
    let requester = connection.handler();
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
            let credit = rqst.call().state.lock().take_credit(requester.id);
            settle(connection, None, credit);
            placed
        }
        // Its connection is over, and with that all credits.
        Outcome::Copied { part, written } => place_inline(requester, &rqst, &part, written),
        // It cannot be pulled any more: it is sent again.
        Outcome::Provided { .. } => return,
    };
    complete(requester, rqst, placed);
}

/// Posts the local invalidation of the RPC's regions; its completion gives the RPC its result.
pub(super) fn fence(
    requester: &Requester,
    connection: &Connection,
    rqst: PinnedRqst<Call>,
    outcome: Outcome,
) {
    requester.shared.stats.local_invalidations.add(1);
    let call: Arc<Call> = rqst.call().into();
    requester.hold(call.clone());
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
    requester.let_go(&call);
    match (waiting, fenced) {
        (Some((rqst, Outcome::Provided { message, written })), true) => {
            let provided = ProvidedReply {
                rqst,
                message,
                written,
            };
            pull::begin(requester, connection, provided);
        }
        (Some((rqst, outcome)), true) => complete_fenced(connection, rqst, outcome),
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
    if let (Some((rqst, outcome)), true) = (waiting, fenced) {
        complete_fenced(connection, rqst, outcome);
    }
}
