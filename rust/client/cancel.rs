// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The end of an RPC whose Reply has not come.

use crate::{
    client::{
        call::{
            Call,
            Phase, //
        },
        connection_slot::ConnectionSlot,
        loss::LossReason,
        pins::FENCE_TIMEOUT, //
    },
    kapi::{
        sunrpc::Task,
        trace, //
    },
    transport::work::Waiter, //
};
use kernel::sync::ArcBorrow;

/// Fences the memory of an RPC without a Reply, or whose Reply still waits. May sleep.
#[cold]
pub(super) fn fence_unanswered(slot: &ConnectionSlot, call: ArcBorrow<'_, Call>, task: &Task) {
    loop {
        // In this order, so that the last reference is not dropped with the lock held.
        let connection = slot.get();
        let mut state = call.state.lock();
        if let Some(regions) = state.regions() {
            regions.drop_dead();
        }
        let sent = match (&connection, state.phase) {
            (Some(c), Phase::Sent(id)) => c.handler().id == id,
            _ => false,
        };
        if sent {
            // A Reply is ignored from now on; the credit comes back only with it.
            state.phase = Phase::Fencing;
            if let (Some(connection), Some(credit)) = (&connection, state.credit.take()) {
                connection.lock().flow.credits.abandon(credit);
                // A sender may wait for this RPC's place, if the Reply came just before.
                connection.handler().shared.xprt.space();
            }
        }
        if state.end() {
            return;
        }
        let Some(connection) = connection else {
            // Regions are marked dead before their connection leaves the slot.
            drop(state);
            continue;
        };
        let _scope = slot.state.memory_scope();
        call.fenced.reinit();
        trace::xprtrdma_mrs_zap(|| task.id());
        let posted = state
            .regions()
            .map(|regions| connection.invalidate(regions, call.into(), Waiter::Task, || task.id()));
        drop(state);
        if posted.is_some() {
            connection.handler().loss.memory_taken_back();
        }
        if let Some(Ok(())) = posted {
            // In time or not, the state of the regions decides.
            let _ = call.fenced.wait_timeout(FENCE_TIMEOUT);
        }
        if !call.state.lock().is_fenced() {
            // The state of the regions is unknown until the tear-down has deregistered them.
            connection.handler().loss.report(LossReason::NotFenced);
            connection.shutdown();
        }
    }
}
