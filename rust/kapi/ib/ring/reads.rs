// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The RDMA Reads that are under way, which retire on their own.

use crate::kapi::{
    bindings,
    ib::{
        ring::cqe::{
            set_cqes,
            Cqes,
            Handlers, //
        },
        rw::RwCtx, //
    },
};
use kernel::prelude::*;

/// The RDMA Reads of a transfer, and what goes with them.
pub(crate) struct Reading<R> {
    pub(crate) transfer: KBox<RwCtx>,
    pub(crate) owned: R,
}

/// The RDMA Reads of as many transfers as there is room for.
///
/// # Invariants
///
/// - Each of `under_way` has the entries with its index.
/// - `free` has the indices where there is none in `under_way`.
pub(crate) struct Reads<R> {
    under_way: KVVec<Option<Reading<R>>>,
    free: KVVec<u32>,
    /// Of the last RDMA Read of a transfer.
    last_entries: Cqes,
    /// Of the others.
    earlier_entries: Cqes,
}

impl<R> Reads<R> {
    /// Makes room for those of `n` transfers. May sleep.
    pub(super) fn new(n: u32, handlers: &Handlers) -> Result<Self> {
        let size = n as usize;
        let mut reads = Self {
            under_way: KVVec::with_capacity(size, GFP_KERNEL)?,
            free: KVVec::with_capacity(size, GFP_KERNEL)?,
            last_entries: Cqes::new(n, handlers.read_done)?,
            earlier_entries: Cqes::new(n, handlers.read_failed)?,
        };
        for index in (0..n).rev() {
            reads.under_way.push(None, GFP_KERNEL)?;
            reads.free.push(index, GFP_KERNEL)?;
        }
        Ok(reads)
    }

    /// Keeps a transfer until its end, and links its requests, of which it returns the first.
    /// `EAGAIN` without room, `EINVAL` for a transfer that has none.
    pub(super) fn begin(
        &mut self,
        reading: Reading<R>,
    ) -> Result<*mut bindings::ib_send_wr, (Error, Reading<R>)> {
        if reading.transfer.requests() == 0 {
            return Err((EINVAL, reading));
        }
        let Some(index) = self.free.pop() else {
            return Err((EAGAIN, reading));
        };
        let index = index as usize;
        let entry = self.last_entries.at(index);
        let earlier = self.earlier_entries.at(index);
        let Some(place) = self.under_way.get_mut(index) else {
            return Err((EINVAL, reading));
        };
        let reading = place.insert(reading);
        // SAFETY: The transfer stays in its box, which is here until the last request has
        // completed, or all were flushed.
        let first = unsafe { reading.transfer.link(core::ptr::null_mut(), entry) };
        // SAFETY: The requests are valid as long as the transfer.
        unsafe { set_cqes(first, core::ptr::null_mut(), |_| earlier) };
        Ok(first)
    }

    /// Takes back those whose last completion entry is at `entry`.
    pub(super) fn end(&mut self, entry: *const bindings::ib_cqe) -> Option<Reading<R>> {
        self.end_at(self.last_entries.index_of(entry)?)
    }

    fn end_at(&mut self, index: usize) -> Option<Reading<R>> {
        let reading = self.under_way.get_mut(index)?.take()?;
        // INVARIANT: They are not in `under_way` any more.
        let _ = self.free.push_within_capacity(index as u32);
        Some(reading)
    }

    /// Takes some of those whose end was not reported, for tear-down.
    pub(super) fn take(&mut self) -> Option<Reading<R>> {
        let index = self.under_way.iter().position(Option::is_some)?;
        self.end_at(index)
    }

    /// Takes the memory of all from the device, for tear-down.
    pub(super) fn unmap(&mut self) {
        for reading in self.under_way.iter_mut().flatten() {
            reading.transfer.unmap();
        }
    }

    /// Returns whether there is no room for the Reads of another transfer.
    pub(crate) fn is_full(&self) -> bool {
        self.free.is_empty()
    }

    /// Returns the index of those whose completion entry is at `entry`, that of one before the last
    /// of a transfer.
    pub(in crate::kapi::ib) fn index_of(&self, entry: *const bindings::ib_cqe) -> Option<usize> {
        self.earlier_entries.index_of(entry)
    }

    /// Returns those of that index.
    pub(crate) fn get(&self, index: usize) -> Option<&Reading<R>> {
        self.under_way.get(index)?.as_ref()
    }
}
