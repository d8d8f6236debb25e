// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Replies that the client pulls, since they are too long for what it has offered
//! (`Documentation/reliable-reply.rst`).

use crate::{
    kapi::{
        sys::{
            counters::{
                count,
                count_all,
                Counter, //
            },
            svc_sysctl,
            time::{
                jiffies,
                HZ, //
            },
            workqueue::{
                work_class,
                DelayedWork,
                OwnedQueue,
                Timer,
                WorkItem, //
            },
        },
        trace, //
    },
    server::sizes::Provides,
    transport::{
        endpoint::{
            Endpoint,
            Handler, //
        },
        provided::ProvidedLimits, //
    },
};
use kernel::{
    prelude::*,
    sync::Arc,
    time::Jiffies, //
};

/// What a connection has whose client pulls.
pub(super) struct Pulls<H: Handler> {
    pub(super) limits: ProvidedLimits,
    /// For how long a Reply is provided.
    time: Jiffies,
    overdue: DelayedWork<Overdue<H>>,
}

/// Takes back what was provided for too long.
struct Overdue<H: Handler>(Arc<Endpoint<H>>);

impl<H: Handler> WorkItem for Overdue<H> {
    fn run(&self, timer: Timer<'_>) {
        let now = jiffies();
        let (withdrawn, next) = self
            .0
            .withdraw_overdue(now, |xid| trace::svcrdma_pull_overdue(|| xid));
        count_all(Counter::PullsOverdue, withdrawn);
        if let Some(end) = next {
            timer.queue(end.wrapping_sub(now));
        }
    }
}

impl<H: Handler> Pulls<H> {
    /// For a client that may have so much provided at once. May sleep.
    pub(super) fn new(
        qp: &Arc<Endpoint<H>>,
        queue: Arc<OwnedQueue>,
        provides: Provides,
    ) -> Result<Self> {
        let overdue = DelayedWork::new(
            queue,
            work_class!(c"svcrdma_pulls"),
            Overdue(qp.clone()),
            GFP_KERNEL,
        )?;
        Ok(Self {
            limits: ProvidedLimits {
                replies: provides.replies,
                regions: provides.all_regions,
                bytes: svc_sysctl::reliable_reply_bytes() as usize,
            },
            time: svc_sysctl::reliable_reply_timeout() as Jiffies * HZ,
            overdue,
        })
    }

    /// When the time of a Reply is over that is provided now.
    pub(super) fn end(&self) -> Jiffies {
        jiffies().wrapping_add(self.time)
    }

    /// A Reply of so many bytes was posted for the client to pull.
    pub(super) fn provided(&self, bytes: usize) {
        count(Counter::Pulls);
        count_all(Counter::PullBytes, bytes);
        self.overdue.queue(self.time);
    }
}
