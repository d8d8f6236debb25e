// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! How often connections of a client are ended since nfsd has dropped all that it may send.

use crate::kapi::sys::{
    address::SocketAddress,
    time::{
        self,
        HZ, //
    },
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

/// From one such end to the next, of a client.
const PACE: Jiffies = 60 * HZ;
/// Clients that are told apart, by a hash of their addresses; who shares a place waits for others.
const PLACES: usize = 64;

/// When connections of a listener's clients were last ended for that.
pub(super) struct Pace([Atomic<Jiffies>; PLACES]);

impl Pace {
    /// None was. May sleep.
    pub(super) fn new() -> Result<Arc<Self>> {
        let long_ago = time::jiffies().wrapping_sub(PACE);
        let places = [const { Atomic::new(0) }; PLACES];
        for place in &places {
            place.store(long_ago, Relaxed);
        }
        Ok(Arc::new(Self(places), GFP_KERNEL)?)
    }

    /// Has one of this client's ended now, or says after how many jiffies it may be. Any context.
    pub(super) fn take(&self, client: &SocketAddress) -> Result<(), Jiffies> {
        let Some(last) = self.0.get(client.hash() as usize % PLACES) else {
            return Err(PACE);
        };
        let now = time::jiffies();
        let since = now.wrapping_sub(last.load(Relaxed));
        if let Some(left @ 1..) = PACE.checked_sub(since) {
            return Err(left);
        }
        last.store(now, Relaxed);
        Ok(())
    }
}
