// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The limits that all clients of a listener share, for Replies to be pulled and for Receives: each
//! client has its own limits, but there may be many clients, and any host may be one.

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

/// The share of the machine's pages that may be held for Replies to be pulled and for Receives: one
/// page in this number.
const SHARE_OF_MEMORY: usize = 16;

/// A connection that provides Replies to a client.
pub(super) trait Provider: Send + Sync {
    /// Returns the time when the oldest Reply expires, if there is one.
    fn first_end(&self) -> Option<Jiffies>;

    /// Withdraws a Reply that expires at `end` or before. Returns the number of bytes held for it.
    /// Does not sleep.
    fn withdraw(&self, end: Jiffies) -> usize;
}

/// The Replies that are provided to all clients of a listener.
#[pin_data]
pub(super) struct AllPulls {
    total: Arc<ProvidedTotal>,
    /// The connections whose clients pull, by the numbers of their queue pairs.
    #[pin]
    providers: Mutex<KVec<(u64, Arc<dyn Provider>)>>,
}

impl AllPulls {
    /// Creates the state, with limits after the machine's memory. May sleep.
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

    /// Adds a connection whose Replies may be withdrawn, until [`Self::remove`]. May sleep.
    pub(super) fn add(&self, number: u64, provider: Arc<dyn Provider>) -> Result {
        self.providers.lock().push((number, provider), GFP_KERNEL)?;
        Ok(())
    }

    /// Removes a connection, which provides nothing any more. May sleep, for a present withdrawal.
    pub(super) fn remove(&self, number: u64) {
        self.providers.lock().retain(|(other, _)| *other != number);
    }

    /// Takes the share of a Reply for which `bytes` are held. If little is left, the oldest Replies
    /// of any client are withdrawn, as many bytes in all. `EMSGSIZE` if nothing is left until then.
    /// May sleep.
    pub(super) fn share(&self, bytes: usize) -> Result<ProvidedShare> {
        self.take_back(self.total.excess(bytes));
        ProvidedTotal::take(&self.total, bytes)
    }

    /// Returns an empty share for the Receives of a connection. Their memory is held until the
    /// connection ends, so no Reply is withdrawn for them.
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
