// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! A ledger of DMA mappings, in test builds.
//!
//! Software devices map nothing, so the DMA debugging of the kernel sees nothing there. With
//! `CONFIG_RPCRDMA_DEBUG` every mapping that this module makes is written down here, and a
//! mapping that is undone twice, never made, or undone with another length or direction is
//! reported with a warning, which fails a test run. Otherwise the calls do nothing.

#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
mod tests;

use crate::kapi::{
    bindings::dma_data_direction,
    sys::warn::warn_if, //
};
use kernel::{
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        SetOnce, //
    },
};

/// Mappings that there is room for, from the beginning: the ledger is a tool of the tests, and has
/// nothing to allocate where they have allocations fail.
const ROOM: usize = 1 << 17;

/// A mapping: its address for the device, its length, and which way data may flow.
type Entry = (u64, usize, i64);

kernel::sync::global_lock! {
    // SAFETY: Initialised by `Ledger::open`, which then sets `OPEN`; used only where that is set.
    unsafe(uninit) static BOOK: SpinLock<KVVec<Entry>> = KVVec::new();
}

/// Whether the ledger was opened before.
static OPENED: SetOnce<()> = SetOnce::new();
/// Whether the book is initialised.
static OPEN: SetOnce<()> = SetOnce::new();
/// The number of mappings that were undone and not there.
pub(super) static FAULTS: Atomic<u32> = Atomic::new(0);

/// Returns whether mappings are written down.
fn is_open() -> bool {
    cfg!(CONFIG_RPCRDMA_DEBUG) && OPEN.as_ref().is_some()
}

/// Returns the number of mappings that are not undone.
pub(super) fn count() -> usize {
    match is_open() {
        true => BOOK.lock().len(),
        false => 0,
    }
}

/// Writes down a mapping, if the ledger is open.
pub(super) fn mapped(addr: u64, len: usize, direction: dma_data_direction) {
    if !is_open() {
        return;
    }
    let entry = (addr, len, i64::from(direction.0));
    if BOOK.lock().push_within_capacity(entry).is_err() {
        pr_warn!("DMA ledger: no room, a mapping was not written down\n");
    }
}

/// Strikes out a mapping, if the ledger is open.
pub(super) fn unmapped(addr: u64, len: usize, direction: dma_data_direction) {
    if !is_open() {
        return;
    }
    let entry = (addr, len, i64::from(direction.0));
    let mut book = BOOK.lock();
    // The youngest mappings go first, as a rule.
    let found = book.iter().rposition(|one| *one == entry);
    let struck = found.is_some_and(|at| book.remove(at).is_ok());
    drop(book);
    if !struck {
        FAULTS.fetch_add(1, Relaxed);
        pr_warn!(
            "DMA ledger: {addr:#x}+{len} (direction {}) is not mapped\n",
            direction.0
        );
        warn_if(true);
    }
}

/// The ledger is open while this lives.
pub(crate) struct Ledger(());

impl Ledger {
    /// Opens the ledger, before anything is mapped. `EBUSY` if it was opened before: that can be
    /// done once while the module is loaded. May sleep.
    pub(crate) fn open() -> Result<Self> {
        if !OPENED.populate(()) {
            return Err(EBUSY);
        }
        // SAFETY: Only the first to populate comes here.
        unsafe { BOOK.init() };
        let room = KVVec::with_capacity(
            if cfg!(CONFIG_RPCRDMA_DEBUG) { ROOM } else { 0 },
            GFP_KERNEL,
        )?;
        *BOOK.lock() = room;
        OPEN.populate(());
        Ok(Self(()))
    }
}

impl Drop for Ledger {
    fn drop(&mut self) {
        let left = count();
        if left != 0 {
            pr_warn!("DMA ledger: {left} mappings were never undone\n");
            warn_if(true);
        }
        let book = core::mem::take(&mut *BOOK.lock());
        drop(book);
    }
}
