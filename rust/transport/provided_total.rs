// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! What all peers of a server have it provide, and post, together: each has its limits, but there
//! may be many.

use kernel::{
    new_spinlock,
    prelude::*,
    sync::{
        Arc,
        SpinLock, //
    },
};

/// What is in use of the memory and the regions that there may be for all.
#[pin_data]
pub(crate) struct ProvidedTotal {
    /// Bytes, at most.
    most: usize,
    #[pin]
    used: SpinLock<Used>,
}

struct Used {
    bytes: usize,
    regions: u32,
}

/// A part of it, which goes back when this is dropped.
pub(crate) struct ProvidedShare {
    total: Arc<ProvidedTotal>,
    bytes: usize,
    regions: u32,
}

impl ProvidedTotal {
    /// For so many bytes at most. May sleep.
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

    /// How many of `bytes` bytes are beyond three quarters of what there may be: so many of others
    /// are to be taken back, which takes a while, for which there is the last quarter.
    pub(crate) fn excess(&self, bytes: usize) -> usize {
        let all = self.used.lock().bytes.saturating_add(bytes);
        all.saturating_sub(self.most - self.most / 4).min(bytes)
    }

    /// Takes so many bytes of what there is. `EMSGSIZE` if that is more than is left.
    pub(crate) fn take(this: &Arc<Self>, bytes: usize) -> Result<ProvidedShare> {
        let mut share = ProvidedShare::none(this.clone());
        share.grow(bytes)?;
        Ok(share)
    }
}

impl ProvidedShare {
    /// Nothing of it yet.
    pub(crate) fn none(total: Arc<ProvidedTotal>) -> Self {
        Self {
            total,
            bytes: 0,
            regions: 0,
        }
    }

    /// Makes it one of so many bytes at least. `EMSGSIZE` if that is more than is left.
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

    /// How many bytes it is.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Takes a region of the `most` that there may be for all. `EMSGSIZE` if none is left.
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
