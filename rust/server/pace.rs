// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! How often connections of a listener are ended since nfsd has dropped all that their clients may
//! send.

use crate::kapi::sys::time::{
    self,
    HZ, //
};
use kernel::{
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc, //
    },
    time::Jiffies, //
};

/// From one such end to the next, of all connections of a listener.
const PACE: Jiffies = 60 * HZ;

/// When a connection of a listener was last ended for that.
pub(super) struct Pace(Atomic<Jiffies>);

impl Pace {
    /// None was. May sleep.
    pub(super) fn new() -> Result<Arc<Self>> {
        let long_ago = time::jiffies().wrapping_sub(PACE);
        Ok(Arc::new(Self(Atomic::new(long_ago)), GFP_KERNEL)?)
    }

    /// Whether one may be ended now; that counts as done. Any context.
    pub(super) fn take(&self) -> bool {
        let now = time::jiffies();
        let due = now.wrapping_sub(self.0.load(Relaxed)) >= PACE;
        if due {
            self.0.store(now, Relaxed);
        }
        due
    }
}
