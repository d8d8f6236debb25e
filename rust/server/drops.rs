// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The end of a connection all of whose credits are with Calls that nfsd has dropped: for example a
//! Call that nfsd is already executing for an earlier connection.
//!
//! The client is not told of a drop, and cannot send the Call again on this connection. Without
//! another credit it would wait for its own timer, with all its Calls; the end of the connection
//! tells it (RFC 8166, section 4.5.4). But connections must not end in a row: nfsd may still be
//! executing the Call, and drop it each time.

use crate::{
    kapi::sys::{
        log::warn_about,
        time::{
            self,
            HZ, //
        },
        workqueue::{
            work_class,
            DelayedWork,
            Hasten,
            OwnedQueue,
            Timer,
            WorkItem, //
        },
    },
    server::{
        connection::Responder,
        pace::Pace, //
    },
    transport::endpoint::Endpoint, //
};
use kernel::{
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc, //
    },
    time::Jiffies, //
};

/// The time without a message from the client and without a Call in execution, before the end.
const SILENCE: Jiffies = 2 * HZ;

/// The work item that ends a connection.
struct Judge {
    qp: Arc<Endpoint<Responder>>,
    pace: Arc<Pace>,
    /// The number of received messages at the last check.
    seen: Atomic<u32>,
    /// The time when that number last changed.
    since: Atomic<Jiffies>,
}

impl WorkItem for Judge {
    fn run(&self, timer: Timer<'_>) {
        let responder = self.qp.handler();
        if !self.qp.lock().flow.grant.is_used_up() {
            return;
        }
        let calls = responder.calls();
        if self.seen.xchg(calls, Relaxed) != calls {
            self.since.store(time::jiffies(), Relaxed);
        }
        let silent = time::since(self.since.load(Relaxed)) >= SILENCE;
        if !silent || self.qp.kept_receives() != 0 {
            timer.queue(SILENCE);
            return;
        }
        let peer = responder.peer();
        if let Err(left) = self.pace.take(peer) {
            timer.queue(left);
            return;
        }
        warn_about(
            peer,
            format_args!("connection from {peer} closed: all credits are with dropped requests"),
        );
        responder.close();
    }
}

/// Creates the work item of a new connection, to be queued after each drop that leaves no credit.
/// May sleep.
pub(super) fn judge(
    qp: &Arc<Endpoint<Responder>>,
    queue: Arc<OwnedQueue>,
    pace: Arc<Pace>,
) -> Result<Arc<dyn Hasten>> {
    let judge = Judge {
        qp: qp.clone(),
        pace,
        seen: Atomic::new(0),
        since: Atomic::new(time::jiffies()),
    };
    let class = work_class!(c"svcrdma_drops");
    let work = DelayedWork::<Judge>::new(queue, class, Ok::<_, Error>(judge), GFP_KERNEL)?;
    Ok(Arc::new(work, GFP_KERNEL)?)
}
