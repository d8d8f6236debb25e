// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Credits of the server for its Calls to a client (RFC 8167, section 4.1).

#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
#[path = "../../kunit/reverse_credits.rs"]
mod tests;

use crate::kapi::sys::time::HZ;
use kernel::{
    prelude::*,
    time::Jiffies, //
};

/// How long all credits may be with Calls that nobody waits for any more.
const PATIENCE: Jiffies = 60 * HZ;

/// The credits of one connection.
///
/// A Call has its credit until the client answers, were it late: the RPC may be over by then, but
/// the client still is at work on the Call, and need not have a Receive for another (RFC 8166,
/// section 3.3.1).
///
/// # Invariants
///
/// `1 <= grant <= most`, and `unanswered` has room for `most` Calls.
pub(crate) struct ReverseCredits {
    most: u32,
    grant: u32,
    /// Their XIDs, and whether somebody awaits the Reply.
    unanswered: KVec<(u32, bool)>,
    /// Since when each credit has been with a Call that nobody waits for, and no Call was answered.
    stalled: Option<Jiffies>,
}

impl ReverseCredits {
    /// A new connection: one Call until the client grants more (RFC 8166, section 3.3.3), and never
    /// more than `most`. May sleep.
    pub(crate) fn new(most: u32) -> Result<Self> {
        let most = most.max(1);
        // INVARIANT: The grant is 1, and there is no Call.
        Ok(Self {
            most,
            grant: 1,
            unanswered: KVec::with_capacity(most as usize, GFP_KERNEL)?,
            stalled: None,
        })
    }

    /// Takes a credit for a Call. False when all are in use.
    pub(crate) fn get(&mut self, xid: u32) -> bool {
        self.unanswered.len() < self.grant as usize
            && self.unanswered.push_within_capacity((xid, true)).is_ok()
    }

    fn place_of(&self, xid: u32) -> Option<usize> {
        self.unanswered.iter().position(|call| call.0 == xid)
    }

    /// Whether a Call of this XID is unanswered.
    pub(crate) fn awaits(&self, xid: u32) -> bool {
        self.place_of(xid).is_some()
    }

    /// The Call of this XID was answered, or was not sent after all: its credit is back. False
    /// where there is no such Call. `grant` is that of a good Reply; of zero it would be a
    /// deadlock.
    pub(crate) fn answered(&mut self, xid: u32, grant: Option<u32>) -> bool {
        let place = self.place_of(xid);
        let known = place.is_some_and(|place| self.unanswered.remove(place).is_ok());
        if let (true, Some(wire)) = (known, grant) {
            // INVARIANT: Clamped.
            self.grant = wire.clamp(1, self.most);
        }
        if known {
            self.stalled = None;
        }
        known
    }

    /// An RPC is over, whether its Call was answered, or sent, or not. True where the client has
    /// had its time: all credits have been with Calls that nobody waits for, and no other can be
    /// sent.
    pub(crate) fn ended(&mut self, xid: u32, now: Jiffies) -> bool {
        for (_, awaited) in self.unanswered.iter_mut().filter(|call| call.0 == xid) {
            *awaited = false;
        }
        let all_in_use = self.unanswered.len() >= self.grant as usize;
        if !all_in_use || self.unanswered.iter().any(|(_, awaited)| *awaited) {
            self.stalled = None;
            return false;
        }
        let since = *self.stalled.get_or_insert(now);
        let over = now.wrapping_sub(since) >= PATIENCE;
        if over {
            // It is said once.
            self.stalled = Some(now);
        }
        over
    }
}
