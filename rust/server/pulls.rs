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
            sysctl::Tunable,
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
    server::all_pulls::{
        AllPulls,
        Provider, //
    },
    transport::{
        endpoint::{
            Endpoint,
            Handler, //
        },
        provided::ProvidedLimits,
        provided_total::ProvidedShare, //
    },
};
use kernel::{
    prelude::*,
    sync::Arc,
    time::Jiffies, //
};

/// Regions that were not used for so long, or twice as long, go back.
const QUIET: Jiffies = 60 * HZ;

/// What a connection has whose client pulls.
pub(super) struct Pulls<H: Handler> {
    pub(super) limits: ProvidedLimits,
    /// For how long a Reply is provided.
    time: Jiffies,
    overdue: DelayedWork<Overdue<H>>,
    quiet: DelayedWork<Quiet<H>>,
    all: Arc<AllPulls>,
    /// That of the queue pair.
    number: u64,
}

impl<H: Handler> Provider for Endpoint<H> {
    fn first_end(&self) -> Option<Jiffies> {
        self.first_provided_end()
    }

    fn withdraw(&self, end: Jiffies) -> usize {
        let bytes = self.withdraw_early(end, |xid| trace::svcrdma_pull_overdue(|| xid));
        count_all(Counter::PullsOverdue, usize::from(bytes.is_some()));
        bytes.unwrap_or(0)
    }
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

/// Takes regions from the device that are not used any more.
struct Quiet<H: Handler>(Arc<Endpoint<H>>);

impl<H: Handler> WorkItem for Quiet<H> {
    fn run(&self, timer: Timer<'_>) {
        if self.0.trim_regions() {
            timer.queue(QUIET);
        }
    }
}

impl<H: Handler> Pulls<H> {
    /// For a client that may have so much provided at once, beside what `all` have. May sleep.
    pub(super) fn new(
        qp: &Arc<Endpoint<H>>,
        queue: Arc<OwnedQueue>,
        limits: ProvidedLimits,
        all: Arc<AllPulls>,
    ) -> Result<Self> {
        let overdue = DelayedWork::new(
            queue.clone(),
            work_class!(c"svcrdma_pulls"),
            Overdue(qp.clone()),
            GFP_KERNEL,
        )?;
        let quiet = DelayedWork::new(
            queue,
            work_class!(c"svcrdma_quiet"),
            Quiet(qp.clone()),
            GFP_KERNEL,
        )?;
        all.add(qp.number(), qp.clone())?;
        Ok(Self {
            limits,
            time: Tunable::SvcReliableReplyTimeout.get() as Jiffies * HZ,
            overdue,
            quiet,
            all,
            number: qp.number(),
        })
    }

    /// The share of a Reply, for which so many bytes are held, of what all clients may have
    /// provided. `EMSGSIZE` if nothing is left. May sleep.
    pub(super) fn share(&self, bytes: usize) -> Result<ProvidedShare> {
        self.all.share(bytes)
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
        self.quiet.queue(QUIET);
    }
}

impl<H: Handler> Drop for Pulls<H> {
    fn drop(&mut self) {
        self.all.remove(self.number);
    }
}
