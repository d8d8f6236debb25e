// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! How many use something, for who has to wait until nobody does.

#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
mod tests;

use crate::kapi::sys::completion::Completion;
use core::ptr::NonNull;
use kernel::{
    prelude::*,
    sync::atomic::{
        Atomic,
        Full,
        Relaxed, //
    },
};

/// In the count: nobody may begin to use it any more.
const CLOSED: u32 = 1 << 31;

/// The number of uses of something, each of which has a [`Use`].
///
/// Dropping it waits for all of them, which sleeps.
///
/// # Invariants
///
/// - `n` counts the [`Use`]s; with [`CLOSED`] once the count was closed. Who makes it zero behind
///   that completes `none`, as its last act.
/// - It is pinned from the first, since it can be initialised only where it stays.
#[pin_data(PinnedDrop)]
pub(crate) struct Uses {
    n: Atomic<u32>,
    #[pin]
    none: Completion,
}

impl Uses {
    /// Creates one without uses.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            n: Atomic::new(0),
            none <- Completion::new(),
        })
    }

    /// Begins to use it, unless [`Self::close`] was called, or too many do. Any context.
    #[inline]
    pub(crate) fn get(&self) -> Option<Use> {
        let mut n = self.n.load(Relaxed);
        // One more than all of them would count as closed, too.
        while n < CLOSED - 1 {
            match self.n.cmpxchg(n, n + 1, Full) {
                // INVARIANT: Counted here.
                Ok(_) => return Some(Use(NonNull::from(self))),
                Err(now) => n = now,
            }
        }
        None
    }

    #[inline]
    fn put(&self) {
        if self.n.fetch_sub(1, Full) == CLOSED | 1 {
            self.none.complete_all();
        }
    }

    /// Closes it: nobody begins to use it any more. Returns the number of those that still do.
    pub(crate) fn close(&self) -> u32 {
        let mut n = self.n.load(Relaxed);
        while n & CLOSED == 0 {
            match self.n.cmpxchg(n, n | CLOSED, Full) {
                Ok(_) => {
                    if n == 0 {
                        self.none.complete_all();
                    }
                    return n;
                }
                Err(now) => n = now,
            }
        }
        n & !CLOSED
    }

    /// Closes it, and waits until nobody uses it. Sleeps.
    pub(crate) fn wait(&self) {
        self.close();
        // Always, since whoever was the last may not be done with the completion yet.
        self.none.wait();
    }
}

#[pinned_drop]
impl PinnedDrop for Uses {
    fn drop(self: Pin<&mut Self>) {
        self.wait();
    }
}

/// The use of something: as long as it lives, [`Uses::wait`] does not return.
///
/// # Invariants
///
/// It is counted in the [`Uses`], which therefore are valid: their end waits for it.
pub(crate) struct Use(NonNull<Uses>);

// SAFETY: The count may be used from any thread.
unsafe impl Send for Use {}
// SAFETY: Nothing can be done with a reference to it.
unsafe impl Sync for Use {}

impl Drop for Use {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: Valid by the type invariant. Who waits for the last one goes on only when the
        // completion is done with, as always with completions.
        unsafe { self.0.as_ref() }.put();
    }
}
