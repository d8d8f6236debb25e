// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Allocation scopes: what may be done to get memory while a thread is in one; and how much memory
//! the machine has.
//!
//! C header: [`include/linux/sched/mm.h`](srctree/include/linux/sched/mm.h),
//! [`include/linux/mm.h`](srctree/include/linux/mm.h)

use crate::kapi::bindings;
use kernel::types::NotThreadSafe;

/// While this lives, allocations of the current thread do not enter a file system to free memory.
///
/// The callbacks of sunrpc run on behalf of NFS, which may be freeing memory itself. Scopes nest.
/// They should end in the reverse order, as values in variables do: one that ends before another
/// that was entered in it ends that one, too, and one that is forgotten never ends. Either lets
/// the thread have what it should not, or not what it should, and nothing worse.
///
/// # Invariants
///
/// `saved` is what opening the scope returned, on the current thread.
#[must_use = "the scope ends when this is dropped"]
pub(crate) struct MemoryScope {
    saved: u32,
    _bound_to_thread: NotThreadSafe,
}

impl MemoryScope {
    /// Opens a scope; with `reserves` allocations may take the memory that the kernel keeps for
    /// those who free more, as one does who writes out what is swapped. Any context.
    pub(crate) fn enter(reserves: bool) -> Self {
        // INVARIANT: `NotThreadSafe` keeps the value on this thread.
        Self {
            // SAFETY: No precondition; `drop` closes the scope.
            saved: unsafe { bindings::memalloc_save(reserves) },
            _bound_to_thread: NotThreadSafe,
        }
    }
}

impl Drop for MemoryScope {
    fn drop(&mut self) {
        // SAFETY: By the type invariant `saved` belongs to a scope of this thread.
        unsafe { bindings::memalloc_restore(self.saved) };
    }
}

/// Returns the number of pages that the kernel manages. Any context.
pub(crate) fn total_pages() -> usize {
    // SAFETY: Reads a counter; no precondition.
    unsafe { bindings::totalram_pages() }
}

#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
mod tests;
