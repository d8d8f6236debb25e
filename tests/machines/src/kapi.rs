// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Of `rust/kapi`; what plays the rest of it does as little as the state machines notice.

pub(crate) mod ib;
pub(crate) mod sunrpc;
pub(crate) mod sys;

/// A clock that stands still, and is about to wrap for who counts from some time ago.
pub(crate) mod bindings {
    pub(crate) const HZ: usize = 1000;

    pub(crate) fn jiffies() -> usize {
        HZ
    }
}

/// Events that nobody traces.
pub(crate) mod trace {
    pub(crate) fn xprtrdma_device_removal<T>(_: impl FnOnce() -> T) {}
}
