// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Completion entries, by which the core finds the handler of a completed request.

use crate::kapi::bindings;
use kernel::prelude::*;

/// A completion handler.
pub(in crate::kapi::ib) type Done =
    unsafe extern "C" fn(*mut bindings::ib_cq, *mut bindings::ib_wc);

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
/// The entries do not move: the vector is not resized.
pub(super) struct Cqes(KVVec<bindings::ib_cqe>);

impl Cqes {
    /// Makes `n` of them. May sleep.
    pub(super) fn new(n: u32, done: Done) -> Result<Self> {
        let entry = bindings::ib_cqe { done: Some(done) };
        Ok(Self(KVVec::from_elem(entry, n as usize, GFP_KERNEL)?))
    }

    /// Returns the entry with that index.
    pub(super) fn at(&self, index: usize) -> *mut bindings::ib_cqe {
        self.0.as_ptr().wrapping_add(index).cast_mut()
    }

    /// Returns the index of an entry that is in the table.
    pub(super) fn index_of(&self, entry: *const bindings::ib_cqe) -> Option<usize> {
        let offset = (entry as usize).checked_sub(self.0.as_ptr() as usize)?;
        let index = offset / core::mem::size_of::<bindings::ib_cqe>();
        (index < self.0.len()).then_some(index)
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
