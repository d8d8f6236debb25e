// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Completion entries, by which the core finds the handler of a completed request.

use crate::kapi::bindings;
use kernel::prelude::*;

/// A completion handler.
pub(super) type Done = unsafe extern "C" fn(*mut bindings::ib_cq, *mut bindings::ib_wc);

/// The completion handlers of a ring.
pub(in crate::kapi::ib) struct Handlers {
    /// Of the slots.
    pub(in crate::kapi::ib) done: Done,
    /// Of the last RDMA Read of a transfer.
    pub(in crate::kapi::ib) read_done: Done,
    /// Of those before, which are not signaled, so only when they fail.
    pub(in crate::kapi::ib) read_failed: Done,
}

/// A table of completion entries.
///
/// # Invariants
///
/// Once there are any, the entries do not move: the vector is not resized.
pub(super) struct Cqes {
    table: KVVec<bindings::ib_cqe>,
    /// As many as there are to be.
    n: usize,
}

impl Cqes {
    /// Room for `n` of them. May sleep.
    pub(super) fn new(n: u32) -> Result<Self> {
        let n = n as usize;
        // INVARIANT: There is none.
        Ok(Self {
            table: KVVec::with_capacity(n, GFP_KERNEL)?,
            n,
        })
    }

    /// Makes all that there is room for, once. Does not sleep.
    pub(super) fn open(&mut self, done: Done) -> Result {
        if !self.table.is_empty() {
            return Err(EBUSY);
        }
        while self.table.len() < self.n {
            // INVARIANT: There is room for it.
            self.table
                .push_within_capacity(bindings::ib_cqe { done: Some(done) })
                .map_err(|_| EINVAL)?;
        }
        Ok(())
    }

    /// The entry with that index.
    #[inline]
    pub(super) fn at(&self, index: usize) -> *mut bindings::ib_cqe {
        self.table.as_ptr().wrapping_add(index).cast_mut()
    }

    /// The index of an entry that is in the table.
    #[inline]
    pub(super) fn index_of(&self, entry: *const bindings::ib_cqe) -> Option<usize> {
        let offset = (entry as usize).checked_sub(self.table.as_ptr() as usize)?;
        let index = offset / core::mem::size_of::<bindings::ib_cqe>();
        (index < self.table.len()).then_some(index)
    }
}

/// Gives requests that are not signaled a completion entry each, so that their failure is known.
/// The last before `end` keeps what it has if `end` is null.
///
/// # Safety
///
/// `first` must be a list of valid requests that ends with `end`.
pub(super) unsafe fn set_cqes(
    first: *mut bindings::ib_send_wr,
    end: *mut bindings::ib_send_wr,
    entry: impl Fn(usize) -> *mut bindings::ib_cqe,
) {
    let (mut at, mut i) = (first, 0);
    while !at.is_null() && !core::ptr::eq(at, end) {
        // SAFETY: The list is of valid requests and ends with `end`, as the caller promises; this
        // one is in front of that.
        unsafe {
            let last = (*at).next.is_null();
            if !last {
                (*at).__bindgen_anon_1.wr_cqe = entry(i);
            }
            at = (*at).next;
        }
        i += 1;
    }
}
