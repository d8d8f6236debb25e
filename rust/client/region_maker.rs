// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Making regions when they are short.

use crate::{
    client::connection_slot::ConnectionSlot,
    kapi::sys::{
        time::HZ,
        workqueue::{
            Timer,
            WorkItem, //
        },
    },
};
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// Regions that are made at once when they are short, at least.
const MORE_REGIONS: u32 = 4;

/// The work item that makes regions when they are short, since the sender must not wait for that.
pub(super) struct RegionMaker(pub(super) Arc<ConnectionSlot>);

impl WorkItem for RegionMaker {
    fn run(&self, timer: Timer<'_>) {
        let _scope = self.0.state.memory_scope();
        if let Some(connection) = self.0.get() {
            let requester = connection.handler();
            let (calls, plan) = (requester.max_calls, requester.plan);
            let more = plan.message().max(MORE_REGIONS);
            let made = requester.make_regions(&connection, more, calls * plan.rpc());
            // Nobody waits for regions of a connection that is going. Otherwise some may have come
            // back before the sender was marked as waiting, which it was when this was queued.
            if made != Err(ENOTCONN) && connection.idle_regions() == 0 {
                // Where there can be no more, they come back with the RPCs that have them, and
                // whoever gives them back wakes the sender.
                if made.is_err() {
                    timer.queue(HZ / 10);
                }
                return;
            }
        }
        self.0.state.xprt.space();
    }
}
