// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The limits on provided memory, regions and Receives of all peers of a server together: each peer
//! has its own limits, but there may be many peers.

use kernel::{
    new_spinlock,
    prelude::*,
    sync::{
        Arc,
        SpinLock, //
    },
};

/// The memory and regions in use for all peers.
#[pin_data]
pub(crate) struct ProvidedTotal {
    /// The most bytes.
    most: usize,
    #[pin]
    used: SpinLock<Used>,
}

struct Used {
    bytes: usize,
    regions: u32,
}

/// A part of the total, which goes back when this is dropped.
pub(crate) struct ProvidedShare {
    total: Arc<ProvidedTotal>,
    bytes: usize,
    regions: u32,
}

impl ProvidedTotal {
    /// Creates a total of at most `most` bytes. May sleep.
    pub(crate) fn new(most: usize) -> Result<Arc<Self>> {
        let used = Used {
            bytes: 0,
            regions: 0,
        };
        Arc::pin_init(
            pin_init!(Self { most, used <- new_spinlock!(used, "svcrdma_provided") }),
            GFP_KERNEL,
        )
    }

    /// Returns how many of `bytes` more bytes are beyond three quarters of the total: as many are
    /// to be withdrawn from other Replies. That takes a while, for which there is the last quarter.
    pub(crate) fn excess(&self, bytes: usize) -> usize {
        let all = self.used.lock().bytes.saturating_add(bytes);
        all.saturating_sub(self.most - self.most / 4).min(bytes)
    }

    /// Takes `bytes` bytes of the total. `EMSGSIZE` if fewer are left.
    pub(crate) fn take(this: &Arc<Self>, bytes: usize) -> Result<ProvidedShare> {
        let mut share = ProvidedShare::none(this.clone());
        share.grow(bytes)?;
        Ok(share)
    }
}

impl ProvidedShare {
    /// Creates an empty share.
    pub(crate) fn none(total: Arc<ProvidedTotal>) -> Self {
        Self {
            total,
            bytes: 0,
            regions: 0,
        }
    }

    /// Grows the share to at least `bytes` bytes. `EMSGSIZE` if fewer are left.
    pub(crate) fn grow(&mut self, bytes: usize) -> Result {
        let mut used = self.total.used.lock();
        let all = used.bytes.saturating_add(bytes.saturating_sub(self.bytes));
        if all > self.total.most {
            return Err(EMSGSIZE);
        }
        used.bytes = all;
        drop(used);
        self.bytes = self.bytes.max(bytes);
        Ok(())
    }

    /// Returns the number of its bytes.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Takes a region, of at most `most` for all peers. `EMSGSIZE` if none is left.
    pub(super) fn take_region(&self, most: u32) -> Result<Self> {
        let mut used = self.total.used.lock();
        if used.regions >= most {
            return Err(EMSGSIZE);
        }
        used.regions += 1;
        drop(used);
        Ok(Self {
            total: self.total.clone(),
            bytes: 0,
            regions: 1,
        })
    }

    /// Adds the regions of another share.
    pub(super) fn add_regions(&mut self, mut other: Self) {
        self.regions += core::mem::take(&mut other.regions);
    }

    /// Gives one region back.
    pub(super) fn put_region(&mut self) {
        if let Some(fewer) = self.regions.checked_sub(1) {
            self.regions = fewer;
            self.total.used.lock().regions -= 1;
        }
    }
}

impl Drop for ProvidedShare {
    fn drop(&mut self) {
        let mut used = self.total.used.lock();
        used.bytes = used.bytes.saturating_sub(self.bytes);
        used.regions = used.regions.saturating_sub(self.regions);
    }
}
