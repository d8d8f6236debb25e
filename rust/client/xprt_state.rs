// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! What the parts of a transport share, whatever connection there is.

use crate::{
    client::{
        call::{
            Call,
            ConnectionId, //
        },
        stats::Stats, //
    },
    kapi::{
        sunrpc::XprtHandle,
        sys::memalloc::MemoryScope, //
    },
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
};

/// What the parts of a transport share.
pub(crate) struct XprtState {
    pub(crate) xprt: XprtHandle<Call>,
    pub(crate) stats: Stats,
    reverse: Atomic<bool>,
    connections: Atomic<u64>,
}

impl XprtState {
    /// That of a new transport. May sleep.
    pub(super) fn new(xprt: XprtHandle<Call>) -> Result<Arc<Self>> {
        let state = Self {
            xprt,
            stats: Stats::new(),
            reverse: Atomic::new(false),
            connections: Atomic::new(0),
        };
        Ok(Arc::new(state, GFP_KERNEL)?)
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
