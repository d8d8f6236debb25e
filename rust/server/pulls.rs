// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Replies that the client pulls, since they are too long for the offered chunks
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

/// The interval of the check for idle regions: those that were idle throughout are deregistered.
const QUIET: Jiffies = 60 * HZ;

/// The state of a connection whose client pulls.
pub(super) struct Pulls<H: Handler> {
    pub(super) limits: ProvidedLimits,
    /// The time for which a Reply is provided.
    time: Jiffies,
    overdue: DelayedWork<Overdue<H>>,
    quiet: DelayedWork<Quiet<H>>,
    all: Arc<AllPulls>,
    /// The number of the queue pair.
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

/// The work item that withdraws expired Replies.
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

/// The work item that deregisters idle regions.
struct Quiet<H: Handler>(Arc<Endpoint<H>>);

impl<H: Handler> WorkItem for Quiet<H> {
    fn run(&self, timer: Timer<'_>) {
        if self.0.trim_regions() {
            timer.queue(QUIET);
        }
    }
}

impl<H: Handler> Pulls<H> {
    /// Creates the state for a client that pulls, with the limits of the client and of `all`. May
    /// sleep.
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

    /// Takes the share of a Reply, for which `bytes` are held, of the memory for all clients.
    /// `EMSGSIZE` if nothing is left. May sleep.
    pub(super) fn share(&self, bytes: usize) -> Result<ProvidedShare> {
        self.all.share(bytes)
    }

    /// Returns the time when a Reply that is provided now expires.
    pub(super) fn end(&self) -> Jiffies {
        jiffies().wrapping_add(self.time)
    }

    /// Counts a Reply of `bytes` bytes that was posted for the client to pull.
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
