// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Credits of a requester (RFC 8166, section 3.3.1), and the Receives that go with them.

#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
#[path = "../../kunit/credits.rs"]
mod tests;

use kernel::prelude::*;

/// Receives that are posted in one go, beyond those that are needed: as many Replies come until it is
/// done again, but for the one that is being looked at then.
pub(crate) const RECEIVE_BATCH: u32 = 17;

/// A Call that has a credit.
struct Unanswered {
    xid: u32,
    /// Nobody waits for its Reply any more, and nothing ends the wait for its credit.
    abandoned: bool,
}

/// The credits of one connection.
///
/// One of them is kept for a Call that asks whether the server is still there (RFC 8267, section
/// 6.7.2). Where there is only one in all, others wait for that Call, and it for them.
///
/// # Invariants
///
/// `1 <= grant <= max`. `unanswered` has the Calls that were sent here, or are about to be, and that
/// the server has not answered, whether somebody still waits for that or not; but not the probe.
pub(crate) struct Credits {
    max: u32,
    grant: u32,
    unanswered: KVVec<Unanswered>,
    /// The probe is under way.
    probing: bool,
    /// Receives posted less those completed. Their order is not that of the events: it may be
    /// below zero for a moment.
    posted: i64,
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
            unanswered: KVVec::with_capacity(max as usize, GFP_KERNEL)?,
            probing: false,
            posted: 0,
            reverse: 0,
        })
    }

    /// How many Calls may be under way, the probe not counted.
    fn calls(&self) -> u32 {
        self.grant.saturating_sub(1).max(1)
    }

    /// The server granted `wire` credits. Returns how many Calls may be under way if that changed.
    ///
    /// A grant of zero would be a deadlock, and a server must not grant it; more than was asked
    /// for is of no use.
    pub(crate) fn granted(&mut self, wire: u32) -> Option<u32> {
        let before = self.calls();
        // INVARIANT: Clamped.
        self.grant = wire.clamp(1, self.max);
        let calls = self.calls();
        (calls != before).then_some(calls)
    }

    /// Takes a credit for a Call. False when all are in use.
    pub(crate) fn take(&mut self, xid: u32) -> bool {
        let alone = self.grant == 1 && self.probing;
        // There is room for `max`, and the grant is no more than that.
        !alone
            && self.unanswered.len() < self.calls() as usize
            && self
                .unanswered
                .push_within_capacity(Unanswered {
                    xid,
                    abandoned: false,
                })
                .is_ok()
    }

    /// Takes the credit that is kept for the probe. False when it cannot be had now.
    pub(crate) fn take_probe(&mut self) -> bool {
        let free = !self.probing && self.unanswered.len() < self.grant as usize;
        self.probing |= free;
        free
    }

    /// The probe was answered, or was not sent after all.
    pub(crate) fn end_probe(&mut self) {
        self.probing = false;
    }

    /// The Call of this XID was answered, or was not sent after all: its credit is back. False
    /// where there is no such Call, or no more.
    ///
    /// The credit of a Call that nobody waits for any more comes back in the same way, and not
    /// before: the server may still be at work on it.
    pub(crate) fn give_back(&mut self, xid: u32) -> bool {
        // The oldest are the likeliest.
        let Some(i) = self.unanswered.iter().position(|call| call.xid == xid) else {
            return false;
        };
        if let Some(last) = self.unanswered.pop() {
            // The last one takes its place, unless it is the last.
            if let Some(place) = self.unanswered.as_mut_slice().get_mut(i) {
                *place = last;
            }
        }
        true
    }

    /// Nobody waits for the Reply to this Call any more.
    pub(crate) fn abandon(&mut self, xid: u32) {
        for call in self.unanswered.iter_mut() {
            call.abandoned |= call.xid == xid;
        }
    }

    /// Whether every credit for Calls is with one that nobody waits for: where the server has dropped
    /// those, no Call can be sent on this connection any more, and none times out.
    pub(crate) fn all_abandoned(&self) -> bool {
        self.unanswered.len() >= self.calls() as usize
            && self.unanswered.iter().all(|call| call.abandoned)
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
        let calls = self.unanswered.len() as u32 + u32::from(self.probing);
        let needed = calls.saturating_add(self.reverse);
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
