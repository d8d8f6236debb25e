// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The state that the parts of a transport share, independent of the connection.

use crate::{
    client::{
        call::{
            Call,
            ConnectionId, //
        },
        outage::Outage,
        reply_history::ReplyHistory,
        stats::Stats, //
    },
    kapi::{
        sunrpc::XprtHandle,
        sys::{
            memalloc::MemoryScope,
            sysctl::Tunable,
            time::{
                self,
                HZ, //
            },
        },
    },
};
use kernel::{
    new_spinlock,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc,
        SpinLock, //
    },
    time::Jiffies, //
};

/// The time for which a server counts as one of version 1 after it did not answer version 2.
const REMEMBERED: Jiffies = 3600 * HZ;

/// The state that the parts of a transport share.
#[pin_data]
pub(crate) struct XprtState {
    pub(crate) xprt: XprtHandle<Call>,
    pub(crate) stats: Stats,
    #[pin]
    pub(super) outage: SpinLock<Outage>,
    /// The history of Replies whose length is not known before.
    #[pin]
    pub(super) history: SpinLock<ReplyHistory>,
    reverse: Atomic<bool>,
    /// The time since when the server is taken for one that speaks version 1 alone; 0 if it is not.
    only_version_1: Atomic<Jiffies>,
    connections: Atomic<u64>,
}

impl XprtState {
    /// Creates the state of a new transport. May sleep.
    pub(super) fn new(xprt: XprtHandle<Call>) -> Result<Arc<Self>> {
        let history = ReplyHistory::new()?;
        let state = pin_init!(Self {
            xprt,
            stats: Stats::new(),
            outage <- new_spinlock!(Outage::new(), "rpcrdma_outage"),
            history <- new_spinlock!(history, "rpcrdma_reply_history"),
            reverse: Atomic::new(false),
            only_version_1: Atomic::new(0),
            connections: Atomic::new(0),
        });
        Arc::pin_init(state, GFP_KERNEL)
    }

    /// Enters the scope for the transport's own allocations.
    pub(crate) fn memory_scope(&self) -> MemoryScope {
        MemoryScope::enter(self.xprt.is_swapper())
    }

    /// Returns whether the next connection is to begin with version 2.
    pub(super) fn tries_version_2(&self) -> bool {
        let since = self.only_version_1.load(Relaxed);
        Tunable::MaxVersion.get() > 1 && (since == 0 || time::since(since) >= REMEMBERED)
    }

    /// Notes that a connection which has begun with version 2 has failed by that.
    pub(super) fn note_only_version_1(&self) {
        self.only_version_1.store(time::jiffies().max(1), Relaxed);
    }

    /// Returns the number of connections that were tried.
    pub(super) fn attempts(&self) -> u64 {
        self.connections.load(Relaxed)
    }

    /// Returns the number of a new connection.
    pub(crate) fn next_id(&self) -> ConnectionId {
        ConnectionId(self.connections.fetch_add(1, Relaxed))
    }

    /// Returns whether there is a callback service for reverse Calls.
    pub(crate) fn reverse_enabled(&self) -> bool {
        self.reverse.load(Relaxed)
    }

    /// Notes whether there is a callback service for reverse Calls.
    pub(super) fn set_reverse(&self, enabled: bool) {
        self.reverse.store(enabled, Relaxed);
    }
}
