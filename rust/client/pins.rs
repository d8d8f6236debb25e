// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! RPCs whose Replies are here, and whose requests are held until the memory is fenced or the Reply
//! pulled. The RPC layer waits for that without end, also with the task of a process that was
//! killed.

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

/// How long a request may be held: as long as an RPC waits for its Reply.
const MOST: Jiffies = 60 * HZ;
/// The same where its process was killed, and how long the local invalidation of a cancelled RPC's
/// regions may take. It comes after the Sends in front of it, and a connection on which those do
/// not get out is of no use.
pub(super) const FENCE_TIMEOUT: Jiffies = 5 * HZ;

/// One that is held, since then.
struct Pin {
    call: Arc<Call>,
    since: Jiffies,
}

/// Those of one connection.
pub(crate) struct Pins(KVec<Pin>);

impl Pins {
    /// For so many RPCs at once. May sleep.
    pub(super) fn new(rpcs: usize) -> Result<Self> {
        Ok(Self(KVec::with_capacity(rpcs, GFP_KERNEL)?))
    }

    /// The request of an RPC is held from now on. There is room for as many as the transport has.
    pub(super) fn add(&mut self, call: Arc<Call>, now: Jiffies) {
        let _ = self.0.push_within_capacity(Pin { call, since: now });
    }

    /// It is not held any more.
    pub(super) fn remove(&mut self, call: &Call) {
        self.0.retain(|pin| !core::ptr::eq(&*pin.call, call));
    }

    /// Returns whether any is held.
    pub(super) fn is_any(&self) -> bool {
        !self.0.is_empty()
    }

    /// Takes all, at the end of the connection.
    pub(super) fn take_all(&mut self) -> impl Iterator<Item = Arc<Call>> {
        let all = core::mem::take(&mut self.0);
        all.into_iter().map(|pin| pin.call)
    }

    /// Returns why the connection is to end, if one is held for too long. Takes the locks of the
    /// RPCs.
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
