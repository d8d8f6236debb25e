// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Completions, with what the `kernel` crate's lack: single wakeups, timeouts and reuse.
//!
//! C header: [`include/linux/completion.h`](srctree/include/linux/completion.h)

use crate::kapi::bindings;
use core::ptr;
use kernel::{
    prelude::*,
    time::Jiffies,
    types::Opaque, //
};

/// An event that one side signals and the other waits for.
///
/// # Invariants
///
/// `inner` is an initialised `struct completion`, which is safe to use from any thread.
#[pin_data]
pub(crate) struct Completion {
    #[pin]
    inner: Opaque<bindings::completion>,
}

// SAFETY: A `struct completion` is bound to no thread.
unsafe impl Send for Completion {}

// SAFETY: By the type invariant a shared reference may be used from any thread.
unsafe impl Sync for Completion {}

impl Completion {
    /// Creates one that has not been signalled.
    pub(crate) fn new() -> impl PinInit<Self> {
        // INVARIANT: `init_completion()` initialises it.
        pin_init!(Self {
            inner <- Opaque::ffi_init(|slot: *mut bindings::completion| {
                // SAFETY: `slot` is valid for writes of a `struct completion`.
                unsafe { bindings::init_completion(slot) };
            }),
        })
    }

    /// Forgets every signal that no one has waited for.
    ///
    /// For the owner of the event, between two uses. A signal given at the same moment may be lost.
    pub(crate) fn reinit(&self) {
        // SAFETY: By the type invariant `inner` is initialised, hence valid for a write. C does the
        // same store without the lock; the volatile write keeps it a single one.
        unsafe { ptr::write_volatile(&raw mut (*self.inner.get()).done, 0) };
    }

    /// Signals all waiters, now and until [`Self::reinit`]. Any context.
    pub(crate) fn complete_all(&self) {
        // SAFETY: By the type invariant `inner` is initialised.
        unsafe { bindings::complete_all(self.inner.get()) };
    }

    /// Waits for a signal. Sleeps, uninterruptibly.
    pub(crate) fn wait(&self) {
        // SAFETY: By the type invariant `inner` is initialised.
        unsafe { bindings::wait_for_completion(self.inner.get()) };
    }

    /// Waits for a signal and tells whether it came in time. Sleeps, uninterruptibly.
    #[must_use]
    pub(crate) fn wait_timeout(&self, timeout: Jiffies) -> bool {
        // SAFETY: By the type invariant `inner` is initialised.
        unsafe { bindings::wait_for_completion_timeout(self.inner.get(), timeout) != 0 }
    }
}
