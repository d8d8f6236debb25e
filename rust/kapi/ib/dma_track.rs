// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! A ledger of DMA mappings, in test builds.
//!
//! Software devices map nothing, so the DMA debugging of the kernel sees nothing there. With
//! `CONFIG_RPCRDMA_DEBUG` every mapping that this module makes is written down here, and a
//! mapping that is undone twice, never made, or undone with another length or direction is
//! reported with a warning, which fails a test run. Otherwise the calls are empty.

#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
mod tests;

#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
pub(super) use self::track::{
    count,
    FAULTS, //
};
pub(super) use self::track::{
    mapped,
    unmapped, //
};

use crate::kapi::bindings::dma_data_direction;
use kernel::{
    prelude::*,
    sync::SetOnce, //
};

#[cfg(CONFIG_RPCRDMA_DEBUG)]
mod track {
    use super::dma_data_direction;
    #[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
    use kernel::sync::atomic::{
        Atomic,
        Relaxed, //
    };
    use kernel::{
        prelude::*,
        sync::SetOnce, //
    };

    /// One mapping: where it is for the device, how long, and which way data may flow.
    #[derive(Clone, Copy, PartialEq, Eq)]
    struct Entry {
        addr: u64,
        len: usize,
        direction: i64,
    }

    kernel::sync::global_lock! {
        // SAFETY: Initialised by `open`, and used only where `is_open` says that this was done.
        unsafe(uninit) static BOOK: SpinLock<KVec<Entry>> = KVec::new();
    }

    /// Set when the ledger was opened.
    static OPEN: SetOnce<()> = SetOnce::new();

    fn is_open() -> bool {
        OPEN.as_ref().is_some()
    }

    /// Opens the ledger.
    ///
    /// # Safety
    ///
    /// To be called once while the module is loaded.
    pub(crate) unsafe fn open() {
        // SAFETY: This is called once, as the caller promises.
        unsafe { BOOK.init() };
        OPEN.populate(());
    }

    /// Reports what is still mapped. Called once, when the module goes.
    pub(crate) fn close() {
        let left = BOOK.lock().len();
        if left != 0 {
            pr_warn!("DMA ledger: {left} mappings were never undone\n");
            kernel::warn_on!(true);
        }
        *BOOK.lock() = KVec::new();
    }

    /// How many mappings are not undone.
    #[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
    pub(crate) fn count() -> usize {
        match is_open() {
            true => BOOK.lock().len(),
            false => 0,
        }
    }

    /// How many mappings were undone that were not there.
    #[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
    pub(crate) static FAULTS: Atomic<u32> = Atomic::new(0);

    /// Writes down a mapping, if the ledger is open.
    pub(crate) fn mapped(addr: u64, len: usize, direction: dma_data_direction) {
        if !is_open() {
            return;
        }
        let entry = Entry {
            addr,
            len,
            direction: i64::from(direction.0),
        };
        if BOOK.lock().push(entry, GFP_ATOMIC).is_err() {
            pr_warn!("DMA ledger: no memory, a mapping was not written down\n");
        }
    }

    /// Strikes out a mapping, if the ledger is open.
    pub(crate) fn unmapped(addr: u64, len: usize, direction: dma_data_direction) {
        if !is_open() {
            return;
        }
        let entry = Entry {
            addr,
            len,
            direction: i64::from(direction.0),
        };
        let mut track = BOOK.lock();
        // The youngest mappings go first, as a rule.
        let found = track.iter().rposition(|e| *e == entry);
        let struck = match found {
            Some(i) => {
                let last = track.len() - 1;
                track.as_mut_slice().swap(i, last);
                track.pop().is_some()
            }
            None => false,
        };
        drop(track);
        if !struck {
            pr_warn!(
                "DMA ledger: {addr:#x}+{len} (direction {}) is not mapped\n",
                direction.0
            );
            kernel::warn_on!(true);
            #[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
            FAULTS.add(1, Relaxed);
        }
    }
}

#[cfg(not(CONFIG_RPCRDMA_DEBUG))]
mod track {
    use super::dma_data_direction;
    #[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
    use kernel::sync::atomic::Atomic;

    /// Opens the ledger.
    ///
    /// # Safety
    ///
    /// None.
    pub(crate) unsafe fn open() {}
    /// Closes the ledger.
    pub(crate) fn close() {}
    /// How many mappings are not undone.
    #[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
    pub(crate) fn count() -> usize {
        0
    }
    /// How many mappings were undone that were not there.
    #[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
    pub(crate) static FAULTS: Atomic<u32> = Atomic::new(0);
    /// Writes down a mapping.
    #[inline]
    pub(crate) fn mapped(_addr: u64, _len: usize, _direction: dma_data_direction) {}
    /// Strikes out a mapping.
    #[inline]
    pub(crate) fn unmapped(_addr: u64, _len: usize, _direction: dma_data_direction) {}
}

/// The ledger is open while this lives.
pub(crate) struct Ledger(());

/// Whether it was opened before.
static OPENED: SetOnce<()> = SetOnce::new();

impl Ledger {
    /// Opens the ledger, before anything is mapped. `EBUSY` if it was opened before: that can be
    /// done once while the module is loaded.
    pub(crate) fn open() -> Result<Self> {
        if !OPENED.populate(()) {
            return Err(EBUSY);
        }
        // SAFETY: Only who is first to populate comes here.
        unsafe { track::open() };
        Ok(Self(()))
    }
}

impl Drop for Ledger {
    fn drop(&mut self) {
        track::close();
    }
}
