// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Credits of a requester (RFC 8166, section 3.3.1), and the Receives that go with them.

#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
#[path = "../../kunit/credits.rs"]
mod tests;

use crate::transport::unanswered::{
    Owner,
    Unanswered, //
};
use kernel::prelude::*;

/// Receives that are posted in one go, beyond those that are needed: as many Replies come until it
/// is done again, but for the one that is being looked at then.
pub(crate) const RECEIVE_BATCH: u32 = 17;

/// The credits of one connection.
///
/// One of them is kept for a Call that asks whether the server is still there (RFC 8267, section
/// 6.7.2). Where there is only one in all, others wait for that Call, and it for them.
///
/// A server that does not answer a probe but others keeps its credit, as with any Call that it
/// drops. It can be asked again as long as there is another.
///
/// # Invariants
///
/// `1 <= grant <= max`. `unanswered` has the Calls that were sent here, or are about to be, and
/// that the server has not answered, whether somebody still waits for that or not; but not the
/// probe. `dropped` of them are probes.
pub(crate) struct Credits {
    max: u32,
    grant: u32,
    unanswered: Unanswered,
    /// The XID of the probe that is under way.
    probe: Option<u32>,
    /// Probes that the server has dropped, as it seems.
    dropped: u32,
    /// How many Calls may be under way, as was last told.
    told: u32,
    /// Receives posted less those completed. Their order is not that of the events: it may be
    /// below zero for a moment.
    posted: i64,
    /// Receives completed.
    received: u32,
    /// Reverse Calls that may come at any time (RFC 8167, section 4.3.1).
    reverse: u32,
}

impl Credits {
    /// A new connection: one Call may be under way until the server grants more (RFC 8166,
    /// section 3.3.3), never more than `max`.
    pub(crate) fn new(max: u32) -> Result<Self> {
        let max = max.max(1);
        // INVARIANT: The grant is 1.
        Ok(Self {
            max,
            grant: 1,
            unanswered: Unanswered::new(max)?,
            probe: None,
            dropped: 0,
            told: 1,
            posted: 0,
            received: 0,
            reverse: 0,
        })
    }

    /// How many Calls of RPCs may be under way.
    fn calls(&self) -> u32 {
        let left = self.grant.saturating_sub(self.dropped);
        left.saturating_sub(1).max(1)
    }

    /// How many Calls may be under way, dropped probes counted, but not the probe.
    fn most(&self) -> usize {
        self.calls().saturating_add(self.dropped) as usize
    }

    /// How many credits are in use.
    fn used(&self) -> usize {
        self.unanswered.len() + usize::from(self.probe.is_some())
    }

    /// The server granted `wire` credits. Returns how many Calls may be under way if that changed.
    ///
    /// A grant of zero would be a deadlock, and a server must not grant it; more than was asked
    /// for is of no use.
    #[inline]
    pub(crate) fn granted(&mut self, wire: u32) -> Option<u32> {
        // INVARIANT: Clamped.
        self.grant = wire.clamp(1, self.max);
        self.changed()
    }

    /// How many Calls may be under way, if that has changed since it was last told.
    pub(crate) fn changed(&mut self) -> Option<u32> {
        let calls = self.calls();
        (core::mem::replace(&mut self.told, calls) != calls).then_some(calls)
    }

    /// Takes a credit for a Call. False when all are in use.
    #[inline(always)]
    pub(crate) fn get(&mut self, xid: u32) -> bool {
        self.used() < self.grant as usize
            && self.unanswered.len() < self.most()
            && self.unanswered.insert(xid, Owner::Rpc)
    }

    /// Takes the credit that is kept for the probe. False when it cannot be had now.
    pub(crate) fn get_probe(&mut self, xid: u32) -> bool {
        let free = self.probe.is_none() && self.used() < self.grant as usize;
        if free {
            self.probe = Some(xid);
        }
        free
    }

    /// The server has dropped the probe, it seems, since it has answered others meanwhile. The
    /// credit comes back only with a late Reply. False where there would be no credit left for
    /// another probe, which waits for this one then.
    pub(crate) fn drop_probe(&mut self) -> bool {
        let Some(xid) = self.probe else {
            return true;
        };
        let another = self.grant.saturating_sub(self.dropped) > 1;
        let dropped = another && self.unanswered.insert(xid, Owner::Probe);
        if dropped {
            self.probe = None;
            self.dropped += 1;
        }
        dropped
    }

    /// Whether this is the XID of the probe that is under way.
    pub(crate) fn is_probe(&self, xid: u32) -> bool {
        self.probe == Some(xid)
    }

    /// Whether this is the XID of a probe that is unanswered, the one under way or a dropped one.
    pub(crate) fn awaits_probe(&self, xid: u32) -> bool {
        self.is_probe(xid) || self.unanswered.has_probe(xid)
    }

    /// Whether a Call of this XID is unanswered.
    pub(crate) fn awaits(&self, xid: u32) -> bool {
        self.unanswered.has(xid) || self.is_probe(xid)
    }

    /// The Call of this XID was answered, or was not sent after all: its credit is back. False
    /// where there is no such Call, or no more.
    ///
    /// The credit of a Call that nobody waits for any more comes back in the same way, and not
    /// before: the server may still be at work on it.
    #[inline(always)]
    pub(crate) fn put(&mut self, xid: u32) -> bool {
        match self.unanswered.remove(xid) {
            None if self.is_probe(xid) => {
                self.probe = None;
                true
            }
            None => false,
            Some(owner) => {
                self.dropped -= u32::from(owner == Owner::Probe);
                true
            }
        }
    }

    /// Nobody waits for the Reply to this Call any more.
    pub(crate) fn abandon(&mut self, xid: u32) {
        self.unanswered.abandon(xid);
    }

    /// Returns whether there are Calls under way.
    pub(crate) fn is_any(&self) -> bool {
        self.used() != 0
    }

    /// Whether there are Calls under way of which nobody waits for any: where the server has
    /// dropped those, their credits are lost as long as there is the connection, and none times
    /// out. Dropped probes alone are of no account, as long as there are other credits.
    pub(crate) fn is_stalled(&self) -> bool {
        let calls = self.unanswered.len();
        let lost = calls > self.dropped as usize || calls >= self.grant as usize;
        lost && self.unanswered.all_unowned()
    }

    /// Reverse Calls may come from now on, `n` at once.
    pub(crate) fn expect_reverse_calls(&mut self, n: u32) {
        self.reverse = n;
    }

    /// A Receive was completed.
    pub(crate) fn received(&mut self) {
        self.posted = self.posted.saturating_sub(1);
        self.received = self.received.saturating_add(1);
    }

    /// Returns how many Receives were completed, up to `u32::MAX`.
    pub(crate) fn all_received(&self) -> u32 {
        self.received
    }

    /// `n` more Receives were posted.
    pub(crate) fn posted(&mut self, n: u32) {
        self.posted = self.posted.saturating_add(i64::from(n));
    }

    /// How many Receives should be posted, if there are too few: one for each Reply that may
    /// come, one for each reverse Call, and a batch more so that it is not soon again.
    pub(crate) fn wanted_receives(&self) -> Option<u32> {
        let needed = (self.used() as u32).saturating_add(self.reverse);
        if self.posted >= i64::from(needed.max(1)) {
            return None;
        }
        Some(with_batch(needed))
    }
}

/// So many Receives and a batch. Out of the way, since it is asked for once in a batch.
#[cold]
fn with_batch(needed: u32) -> u32 {
    needed.saturating_add(RECEIVE_BATCH)
}
