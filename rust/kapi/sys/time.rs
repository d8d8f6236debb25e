// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The kernel's coarse clock.
//!
//! C header: [`include/linux/jiffies.h`](srctree/include/linux/jiffies.h)

#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
#[path = "time/tests.rs"]
mod tests;

use crate::kapi::bindings;
use kernel::time::Jiffies;

/// Jiffies in a second.
pub(crate) const HZ: Jiffies = bindings::HZ;

/// Returns the current time. Any context.
pub(crate) fn jiffies() -> Jiffies {
    // SAFETY: No precondition.
    unsafe { bindings::jiffies() }
}

/// Returns the time from `start` until now, whether or not the counter has wrapped since.
pub(crate) fn since(start: Jiffies) -> Jiffies {
    jiffies().wrapping_sub(start)
}

/// Returns whether `time` comes before `other`, which is less than half the counter's range away.
pub(crate) fn is_before(time: Jiffies, other: Jiffies) -> bool {
    other.wrapping_sub(time).wrapping_sub(1) < Jiffies::MAX / 2
}
