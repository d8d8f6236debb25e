// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Of `rust/kapi`; what plays the rest of it does as little as the state machines notice.

pub(crate) mod ib;
pub(crate) mod sunrpc;
pub(crate) mod sys;

/// A clock that stands still unless a test waits, and is about to wrap for who counts from some
/// time ago.
pub(crate) mod clock {
    use core::cell::Cell;

    pub(crate) const HZ: usize = 1000;

    thread_local! {
        static NOW: Cell<usize> = const { Cell::new(HZ) };
    }

    pub(crate) fn jiffies() -> usize {
        NOW.get()
    }

    pub(crate) fn set(now: usize) {
        NOW.set(now);
    }
}

pub(crate) use clock as bindings;

/// Events that nobody traces.
pub(crate) mod trace {
    pub(crate) fn xprtrdma_device_removal<T>(_: impl FnOnce() -> T) {}
}
