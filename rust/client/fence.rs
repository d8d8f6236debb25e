// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The local invalidation of an RPC's regions when its Reply is here: only then it has its result
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

/// Posts the local invalidation of the RPC's regions; its completion gives the RPC its result.
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
        // No Call is made before they are fenced.
        None => Err((EINVAL, Some(call.clone()))),
    };
    if let Err((_, unposted)) = posted {
        drop(state);
        requester.loss.report(LossReason::NotFenced);
        // Otherwise it comes back from what was posted.
        if unposted.is_some() {
            put_off(requester, &call);
        }
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
    let waits = state.waiting.is_some();
    let waiting = state.waiting.take_if(|_| fenced);
    if !waits {
        // Under the lock, so that it cannot be a signal to the next user of the call's state.
        call.fenced.complete_all();
    }
    drop(state);
    if waits && !fenced {
        put_off(requester, &call);
        requester.end_for_put_off();
    } else {
        requester.let_go(&call);
    }
    if let Some(reply) = waiting {
        finish(connection, reply);
    }
    requester.shared.xprt.space();
}

/// Lets an RPC whose Reply is here wait for the tear-down: nobody knows what its regions are until
/// that has taken them from the device. Without memory the Reply is dropped, and the RPC sent again
/// on the next connection.
#[cold]
fn put_off(requester: &Requester, call: &Call) {
    let waiting = call.state.lock().waiting.take();
    match waiting.and_then(WaitingReply::detached) {
        Some(reply) => call.state.lock().waiting = Some(reply),
        None => requester.let_go(call),
    }
}

/// Ends an RPC whose memory is fenced, or pulls its Reply now.
pub(super) fn finish(connection: &Connection, reply: WaitingReply) {
    match reply.answer {
        Answer::Provided { .. } => pull::begin(connection.handler(), connection, reply),
        _ => reply.finish(connection),
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
    if let (Some(reply), true) = (waiting, fenced) {
        reply.finish(connection);
    }
}
