// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The RPCs with Replies whose requests are held until the memory is fenced or the Reply pulled.
//! The RPC layer waits for that without a limit, also in the task of a killed process.

use crate::{
    client::{
        call::Call,
        loss::LossReason, //
    },
    kapi::sys::time::HZ, //
};
use kernel::{
    prelude::*,
    sync::Arc,
    time::Jiffies, //
};

/// The longest time that a request may be held: the timeout of an RPC.
const MOST: Jiffies = 60 * HZ;
/// The same for a killed process, and the longest time of a cancelled RPC's local invalidation. It
/// comes after the Sends in front of it, and a connection that cannot transmit those is of no use.
pub(super) const FENCE_TIMEOUT: Jiffies = 5 * HZ;

/// A held request, and the time since when.
struct Pin {
    call: Arc<Call>,
    since: Jiffies,
}

/// The held requests of one connection.
pub(crate) struct Pins(KVec<Pin>);

impl Pins {
    /// Creates the list, for `rpcs` at once. May sleep.
    pub(super) fn new(rpcs: usize) -> Result<Self> {
        Ok(Self(KVec::with_capacity(rpcs, GFP_KERNEL)?))
    }

    /// Adds an RPC whose request is held from now on. There is room for all RPCs of the transport.
    pub(super) fn add(&mut self, call: Arc<Call>, now: Jiffies) {
        let _ = self.0.push_within_capacity(Pin { call, since: now });
    }

    /// Removes an RPC whose request is not held any more.
    pub(super) fn remove(&mut self, call: &Call) {
        self.0.retain(|pin| !core::ptr::eq(&*pin.call, call));
    }

    /// Returns whether any request is held.
    pub(super) fn is_any(&self) -> bool {
        !self.0.is_empty()
    }

    /// Takes all RPCs, at the end of the connection.
    pub(super) fn take_all(&mut self) -> impl Iterator<Item = Arc<Call>> {
        let all = core::mem::take(&mut self.0);
        all.into_iter().map(|pin| pin.call)
    }

    /// Returns the reason to end the connection, if a request is held for too long. Takes the locks
    /// of the RPCs.
    pub(super) fn overdue(&self, now: Jiffies) -> Option<LossReason> {
        self.0.iter().find_map(|pin| {
            let held = now.wrapping_sub(pin.since);
            if held < FENCE_TIMEOUT {
                return None;
            }
            let state = pin.call.state.lock();
            let (rqst, reason) = match (&state.pulling, &state.waiting) {
                (Some(pulling), _) => (&pulling.rqst, LossReason::NotPulled),
                (None, Some(reply)) => (&reply.rqst, LossReason::NotFenced),
                (None, None) => return None,
            };
            (held >= MOST || rqst.task().is_killed()).then_some(reason)
        })
    }
}
