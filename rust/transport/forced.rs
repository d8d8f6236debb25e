// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Connections for which the core registers memory for every RDMA Read and Write, since it was told
//! to (`ib_core.force_mr=1`, for tests of that way).
//!
//! Such a transfer takes regions of a pool that belongs to the queue pair. Who finds none waits for
//! those of transfers that are under way, so a peer that does not let them end keeps a service
//! thread.

use crate::kapi::sys::completion::Completion;
use kernel::{
    new_mutex,
    prelude::*,
    sync::{
        Arc,
        Mutex,
        MutexGuard, //
    },
};

/// The use of a queue pair's pool of regions.
#[pin_data]
pub(crate) struct Forced {
    /// One transfer at a time takes regions: none waits for those that another waiter holds.
    #[pin]
    taking: Mutex<()>,
    /// Regions came back, or none will any more.
    #[pin]
    back: Completion,
}

impl Forced {
    /// Nobody takes any yet. May sleep.
    pub(super) fn new() -> Result<Arc<Self>> {
        let forced = pin_init!(Self {
            taking <- new_mutex!((), "svcrdma_forced"),
            back <- Completion::new(),
        });
        Arc::pin_init(forced, GFP_KERNEL)
    }

    /// From here on nobody else takes regions, until the result is dropped. May sleep.
    pub(super) fn take_turn(&self) -> MutexGuard<'_, ()> {
        self.taking.lock()
    }

    /// Forgets what came back before. For whose turn it is.
    pub(super) fn begin(&self) {
        self.back.reinit();
    }

    /// Waits until something has come back since [`Self::begin`], or the connection goes. Sleeps.
    pub(super) fn wait(&self) {
        self.back.wait();
    }

    /// Whether nobody would wait now.
    #[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
    pub(super) fn has_come_back(&self) -> bool {
        self.back.wait_timeout(1)
    }

    /// Something has come back, or the connection goes. Any context.
    pub(super) fn came_back(&self) {
        self.back.complete_all();
    }
}
