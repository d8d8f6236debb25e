// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! What the parts of a transport share, whatever connection there is.

use crate::{
    client::{
        call::{
            Call,
            ConnectionId, //
        },
        reply_history::ReplyHistory,
        stats::Stats, //
    },
    kapi::{
        sunrpc::XprtHandle,
        sys::memalloc::MemoryScope, //
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
};

/// What the parts of a transport share.
#[pin_data]
pub(crate) struct XprtState {
    pub(crate) xprt: XprtHandle<Call>,
    pub(crate) stats: Stats,
    /// Of Replies whose length nobody knows before.
    #[pin]
    pub(super) history: SpinLock<ReplyHistory>,
    reverse: Atomic<bool>,
    connections: Atomic<u64>,
}

impl XprtState {
    /// That of a new transport. May sleep.
    pub(super) fn new(xprt: XprtHandle<Call>) -> Result<Arc<Self>> {
        let history = ReplyHistory::new()?;
        let state = pin_init!(Self {
            xprt,
            stats: Stats::new(),
            history <- new_spinlock!(history, "rpcrdma_reply_history"),
            reverse: Atomic::new(false),
            connections: Atomic::new(0),
        });
        Arc::pin_init(state, GFP_KERNEL)
    }

    /// How memory may be had for the transport's own work.
    pub(crate) fn memory_scope(&self) -> MemoryScope {
        MemoryScope::enter(self.xprt.is_swapper())
    }

    /// An identifier for a new connection.
    pub(crate) fn next_id(&self) -> ConnectionId {
        ConnectionId(self.connections.fetch_add(1, Relaxed))
    }

    /// Whether there is somebody to answer reverse Calls.
    pub(crate) fn reverse_enabled(&self) -> bool {
        self.reverse.load(Relaxed)
    }

    /// There is somebody to answer reverse Calls, or not any more.
    pub(super) fn set_reverse(&self, enabled: bool) {
        self.reverse.store(enabled, Relaxed);
    }
}
