// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The Replies that all clients of a listener are to pull, and the Receives that are posted for
//! them, together: each client has its limits, but there may be many, and anybody may be one.

#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
#[path = "../../kunit/all_pulls.rs"]
mod tests;

use crate::{
    kapi::sys::{
        memalloc::total_pages,
        time::is_before, //
    },
    transport::provided_total::{
        ProvidedShare,
        ProvidedTotal, //
    },
};
use kernel::{
    new_mutex,
    page::PAGE_SIZE,
    prelude::*,
    sync::{
        Arc,
        Mutex, //
    },
    time::Jiffies, //
};

/// Of the machine's pages, one in so many may be held for Replies that clients are to pull, and for
/// Receives.
const SHARE_OF_MEMORY: usize = 16;

/// Who provides Replies to a client.
pub(super) trait Provider: Send + Sync {
    /// When the time of the first one is over, if there is one.
    fn first_end(&self) -> Option<Jiffies>;

    /// Takes back one whose time is over at `end` or before. Returns how many bytes are held for
    /// it. Does not sleep.
    fn withdraw(&self, end: Jiffies) -> usize;
}

/// What is provided to all clients of a listener.
#[pin_data]
pub(super) struct AllPulls {
    total: Arc<ProvidedTotal>,
    /// Those whose clients pull, by the numbers of their queue pairs.
    #[pin]
    providers: Mutex<KVec<(u64, Arc<dyn Provider>)>>,
}

impl AllPulls {
    /// By the machine's memory. May sleep.
    pub(super) fn new() -> Result<Arc<Self>> {
        Self::of_bytes(total_pages() / SHARE_OF_MEMORY * PAGE_SIZE)
    }

    fn of_bytes(bytes: usize) -> Result<Arc<Self>> {
        let total = ProvidedTotal::new(bytes)?;
        let providers = KVec::new();
        Arc::pin_init(
            pin_init!(Self { total, providers <- new_mutex!(providers, "svcrdma_providers") }),
            GFP_KERNEL,
        )
    }

    /// One that may have to take something back, until [`Self::remove`]. May sleep.
    pub(super) fn add(&self, number: u64, provider: Arc<dyn Provider>) -> Result {
        self.providers.lock().push((number, provider), GFP_KERNEL)?;
        Ok(())
    }

    /// It has nothing provided any more. Waits for who takes something back. May sleep.
    pub(super) fn remove(&self, number: u64) {
        self.providers.lock().retain(|(other, _)| *other != number);
    }

    /// The share of a Reply for which so many bytes are held. Where there is not much left, the
    /// oldest ones of as many are taken back, whoever's they are. `EMSGSIZE` if nothing is left
    /// until they are. May sleep.
    pub(super) fn share(&self, bytes: usize) -> Result<ProvidedShare> {
        self.take_back(self.total.excess(bytes));
        ProvidedTotal::take(&self.total, bytes)
    }

    /// What a connection has of it for its Receives. They do not come back before its end, so that
    /// no Reply is taken back for them.
    pub(super) fn share_of_receives(&self) -> ProvidedShare {
        ProvidedShare::none(self.total.clone())
    }

    fn take_back(&self, bytes: usize) {
        if bytes == 0 {
            return;
        }
        let mut left = bytes;
        let providers = self.providers.lock();
        while left != 0 {
            let ends = providers
                .iter()
                .filter_map(|(_, one)| Some((one.first_end()?, one)));
            let oldest = ends.reduce(|a, b| if is_before(b.0, a.0) { b } else { a });
            let Some((end, provider)) = oldest else { break };
            left = left.saturating_sub(provider.withdraw(end));
        }
    }
}
