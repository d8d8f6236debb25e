// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The end of a connection all of whose credits are with Calls that nfsd has dropped: what it
//! executes already, say, for an earlier connection.
//!
//! The client is not told of a drop, and cannot send the Call again on this connection. One that
//! has no other credit would wait for its own timer, with all that it has to send besides, and
//! learns of the drop by the end of the connection (RFC 8166, section 4.5.4). But not again and
//! again: nfsd may still be at work on the Call, and drop it each time.

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

/// For how long nothing must have come from the client, nor be executed for it.
const SILENCE: Jiffies = 2 * HZ;

/// The work item that ends a connection.
struct Judge {
    qp: Arc<Endpoint<Responder>>,
    pace: Arc<Pace>,
    /// Messages that had been received when it was last looked at.
    seen: Atomic<u32>,
    /// When others were seen for the first time.
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

/// Makes the work item of a new connection, which is to run each time that a Call was dropped and
/// no credit is left. May sleep.
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
