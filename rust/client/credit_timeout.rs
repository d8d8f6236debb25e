// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The end of a connection whose credits do not come back.

use crate::{
    client::{
        connection_slot::ConnectionSlot,
        loss::LossReason, //
    },
    kapi::sys::{
        time::HZ,
        workqueue::{
            Timer,
            WorkItem, //
        },
    },
};
use kernel::{
    sync::Arc,
    time::Jiffies, //
};

/// How long all credits may be with Calls that nobody waits for: as long as an RPC waits that
/// somebody does wait for.
pub(super) const CREDIT_TIMEOUT: Jiffies = 60 * HZ;

/// The work item that gives a connection up whose credits do not come back.
///
/// The RPC layer times out only Calls that were sent. Those that wait for a credit wait for the
/// Reply of another, which the server may have dropped, and which nobody times out if it was
/// cancelled.
pub(super) struct CreditTimeout(pub(super) Arc<ConnectionSlot>);

impl WorkItem for CreditTimeout {
    fn run(&self, _timer: Timer<'_>) {
        if let Some(connection) = self.0.get() {
            let requester = connection.handler();
            if requester.credits.lock().all_abandoned() {
                requester.loss.report(LossReason::NoCredits);
            }
        }
    }
}
