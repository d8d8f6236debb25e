// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The pace at which connections of a client are ended because nfsd has dropped all its Calls.

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

/// The shortest time between two such ends for one client.
const PACE: Jiffies = 60 * HZ;
/// The number of places for clients, by a hash of their addresses; one place has one pace.
const PLACES: usize = 64;

/// The times when connections of a listener's clients were last ended for that.
pub(super) struct Pace([Atomic<Jiffies>; PLACES]);

impl Pace {
    /// Creates the times, as if all were long ago. May sleep.
    pub(super) fn new() -> Result<Arc<Self>> {
        let long_ago = time::jiffies().wrapping_sub(PACE);
        let places = [const { Atomic::new(0) }; PLACES];
        for place in &places {
            place.store(long_ago, Relaxed);
        }
        Ok(Arc::new(Self(places), GFP_KERNEL)?)
    }

    /// Allows an end for this client now, or returns the number of jiffies until then. Any context.
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
