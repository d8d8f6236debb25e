// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Credits of a requester (RFC 8166, section 3.3.1), and the Receives that go with them.

#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
#[path = "../../kunit/credits.rs"]
mod tests;

use kernel::prelude::*;

/// Receives that are posted in one go, beyond those that are needed.
pub(crate) const RECEIVE_BATCH: u32 = 16;

/// The credits of one connection.
///
/// # Invariants
///
/// `1 <= grant <= max`. `outstanding` counts the Calls sent whose Reply has not come; those in
/// `abandoned` are among them.
pub(crate) struct Credits {
    max: u32,
    grant: u32,
    outstanding: u32,
    /// Receives posted less those completed. Their order is not that of the events: it may be
    /// below zero for a moment.
    posted: i64,
    /// Reverse Calls that may come at any time (RFC 8167, section 4.3.1).
    reverse: u32,
    /// XIDs of Calls that nobody waits for any more, but that the server may still answer.
    abandoned: KVec<u32>,
}

impl Credits {
    /// A new connection: one Call may be under way until the server grants more (RFC 8166,
    /// section 3.3.3), never more than `max`.
    pub(crate) fn new(max: u32) -> Result<Self> {
        // INVARIANT: The grant is 1.
        Ok(Self {
            max: max.max(1),
            grant: 1,
            outstanding: 0,
            posted: 0,
            reverse: 0,
            abandoned: KVec::with_capacity(max.max(1) as usize, GFP_KERNEL)?,
        })
    }

    /// The server granted `wire` credits. Returns the new grant if it changed.
    ///
    /// A grant of zero would be a deadlock, and a server must not grant it; more than was asked
    /// for is of no use.
    pub(crate) fn granted(&mut self, wire: u32) -> Option<u32> {
        let grant = wire.clamp(1, self.max);
        // INVARIANT: Clamped.
        let changed = grant != self.grant;
        self.grant = grant;
        changed.then_some(grant)
    }

    /// Takes a credit for a Call. False when all are in use.
    pub(crate) fn take(&mut self) -> bool {
        if self.outstanding >= self.grant {
            return false;
        }
        self.outstanding += 1;
        true
    }

    /// A Call for which a credit was taken was not sent after all, or its Reply came.
    pub(crate) fn give_back(&mut self) {
        self.outstanding = self.outstanding.saturating_sub(1);
    }

    /// Nobody waits for the Reply of a Call any more; its credit comes back only with it.
    pub(crate) fn abandon(&mut self, xid: u32) {
        // There is room: no more Calls than `max` are outstanding.
        let _ = self.abandoned.push_within_capacity(xid);
    }

    /// A Reply came for which nobody waits: whether it was for an abandoned Call. Its credit is
    /// back if so.
    pub(crate) fn late_reply(&mut self, xid: u32) -> bool {
        let Some(i) = self.abandoned.iter().position(|a| *a == xid) else {
            return false;
        };
        let _ = self.abandoned.remove(i);
        self.give_back();
        true
    }

    /// Reverse Calls may come from now on, `n` at once.
    pub(crate) fn expect_reverse_calls(&mut self, n: u32) {
        self.reverse = n;
    }

    /// A Receive was completed.
    pub(crate) fn received(&mut self) {
        self.posted = self.posted.saturating_sub(1);
    }

    /// `n` more Receives were posted.
    pub(crate) fn posted(&mut self, n: u32) {
        self.posted = self.posted.saturating_add(i64::from(n));
    }

    /// How many Receives should be posted, if there are too few: one for each Reply that may
    /// come, one for each reverse Call, and a batch more so that it is not soon again.
    pub(crate) fn wanted_receives(&self) -> Option<u32> {
        let needed = self.outstanding.saturating_add(self.reverse);
        let few = self.posted < i64::from(needed.max(1));
        few.then(|| needed.saturating_add(RECEIVE_BATCH))
    }
}
