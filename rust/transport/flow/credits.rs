// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Credits of a requester (RFC 8166, section 3.3.1), and the Receives for them. A server is a
//! requester to its client (RFC 8167).

#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
#[path = "../../../kunit/credits.rs"]
mod tests;

#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
#[path = "../../../kunit/reverse_credits.rs"]
mod reverse_tests;

use kernel::{
    prelude::*,
    time::Jiffies, //
};

/// The number of Receives that are posted at once, beyond the needed ones: as many Replies come
/// before the next time, less the one that is being handled then.
pub(crate) const RECEIVE_BATCH: u32 = 17;

/// A credit that the Call of an RPC has until it is answered on that connection, or was not sent
/// after all. A dropped one comes back with the end of the connection.
#[must_use]
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Credit {
    /// The number of the connection.
    connection: u64,
    place: u32,
}

impl Credit {
    /// Returns whether it is a credit of that connection.
    #[inline]
    pub(crate) fn is_of(&self, connection: u64) -> bool {
        self.connection == connection
    }
}

/// The credits of one connection.
///
/// A Call has its credit until it is answered, however late: its RPC may have ended by then, but
/// the responder is still executing it.
///
/// A client keeps one credit for a probe, a Call that asks whether the server is alive (RFC 8267,
/// section 6.7.2). If there is only one in all, other Calls wait for the probe, and it for them.
///
/// A server that answers other Calls but not a probe keeps the probe's credit, as with any Call
/// that it drops. The next probe can be sent as long as there is another credit.
///
/// # Invariants
///
/// `1 <= grant <= max`. Each [`Credit`] of this connection has a place of `places` of its own, and
/// `free` has the other places. `calls` of the places have an XID: that of an unanswered Call.
/// `abandoned` and `dropped` have the XIDs of unanswered Calls and probes that no RPC awaits.
pub(crate) struct Credits {
    connection: u64,
    max: u32,
    grant: u32,
    /// Whether one credit is kept for a probe.
    probes: bool,
    calls: u32,
    places: KVVec<Option<u32>>,
    free: KVVec<u32>,
    abandoned: KVVec<u32>,
    /// Probes that the server seems to have dropped.
    dropped: KVVec<u32>,
    /// The XID of the outstanding probe.
    probe: Option<u32>,
    /// The time since when credits have been lost, and no Reply came late.
    stalled: Option<Jiffies>,
    /// The number of Calls that may be outstanding, as last reported.
    told: u32,
    /// The number of Receives posted less those completed. Their order is not that of the events:
    /// it may be below zero for a moment.
    posted: i64,
    /// The number of Receives completed.
    received: u32,
    /// The number of messages beside Replies that may come at any time (RFC 8167, section 4.3.1).
    more: u32,
}

impl Credits {
    /// Creates the credits of a new connection with this number: one Call may be outstanding until
    /// the peer grants more (RFC 8166, section 3.3.3), never more than `max`. One credit is kept
    /// for `probes`. May sleep.
    pub(crate) fn new(connection: u64, max: u32, probes: bool) -> Result<Self> {
        let max = max.max(1);
        // Unanswered Calls have `max` places at most. The rest is for RPCs that are just ending.
        let places = max.saturating_mul(2);
        let mut free = KVVec::with_capacity(places as usize, GFP_KERNEL)?;
        for place in (0..places).rev() {
            free.push(place, GFP_KERNEL)?;
        }
        // INVARIANT: The grant is 1, and there is no credit.
        Ok(Self {
            connection,
            max,
            grant: 1,
            probes,
            calls: 0,
            places: KVVec::from_elem(None, places as usize, GFP_KERNEL)?,
            free,
            abandoned: KVVec::with_capacity(max as usize, GFP_KERNEL)?,
            dropped: KVVec::with_capacity(max as usize, GFP_KERNEL)?,
            probe: None,
            stalled: None,
            told: 1,
            posted: 0,
            received: 0,
            more: 0,
        })
    }

    /// Returns the number of Calls of RPCs that may be outstanding.
    fn most_calls(&self) -> u32 {
        let left = self.grant.saturating_sub(self.dropped.len() as u32);
        left.saturating_sub(self.probes.into()).max(1)
    }

    /// Returns the number of credits that a Call requests.
    pub(super) fn requested(&self) -> u32 {
        self.max
    }

    /// Returns the number of outstanding Calls, whether their Replies are awaited or not.
    fn all_calls(&self) -> u32 {
        self.calls.saturating_add(self.abandoned.len() as u32)
    }

    /// Returns the number of credits in use.
    fn used(&self) -> u32 {
        let probes = self.dropped.len() as u32 + u32::from(self.probe.is_some());
        self.all_calls().saturating_add(probes)
    }

    /// Sets the grant to `wire` credits. Returns how many Calls may be outstanding if that changed.
    ///
    /// A grant of zero would be a deadlock, and a server must not grant it; more than was requested
    /// is of no use.
    #[inline]
    pub(crate) fn granted(&mut self, wire: u32) -> Option<u32> {
        // INVARIANT: Clamped.
        self.grant = wire.clamp(1, self.max);
        self.changed()
    }

    /// Sets the grant to as many credits as are requested.
    pub(super) fn grant_all(&mut self) {
        // INVARIANT: It is the most.
        self.grant = self.max;
    }

    /// Returns how many Calls may be outstanding, if that has changed since it was last reported.
    pub(crate) fn changed(&mut self) -> Option<u32> {
        let calls = self.most_calls();
        (core::mem::replace(&mut self.told, calls) != calls).then_some(calls)
    }

    /// Takes a credit for the Call with this XID. None if all are in use.
    #[inline]
    pub(crate) fn get(&mut self, xid: u32) -> Option<Credit> {
        if self.used() >= self.grant || self.all_calls() >= self.most_calls() {
            return None;
        }
        let place = self.free.pop()?;
        // INVARIANT: One more has an XID.
        *self.places.get_mut(place as usize)? = Some(xid);
        self.calls += 1;
        let connection = self.connection;
        Some(Credit { connection, place })
    }

    /// Returns the credit of the Call with this XID, for an end that does not store its credits.
    pub(crate) fn of(&self, xid: u32) -> Option<Credit> {
        let place = self.places.iter().position(|call| *call == Some(xid))?;
        let (connection, place) = (self.connection, place as u32);
        Some(Credit { connection, place })
    }

    /// Takes a credit back. Returns the XID of its Call, if that is unanswered.
    #[inline]
    fn take(&mut self, credit: Credit) -> Option<u32> {
        if !credit.is_of(self.connection) {
            return None;
        }
        // INVARIANT: The credit is gone, and one place less has an XID, if this one had one.
        let xid = self.places.get_mut(credit.place as usize)?.take();
        let _ = self.free.push_within_capacity(credit.place);
        self.calls -= u32::from(xid.is_some());
        xid
    }

    /// Takes the credit that is kept for the probe. False if it is not available now.
    pub(crate) fn get_probe(&mut self, xid: u32) -> bool {
        let free = self.probe.is_none() && self.used() < self.grant;
        if free {
            self.probe = Some(xid);
        }
        free
    }

    /// Notes that the server seems to have dropped the probe, since it has answered other Calls
    /// meanwhile. The credit comes back only with a late Reply. False if there would be no credit
    /// left for the next probe, which then waits for this one.
    pub(crate) fn drop_probe(&mut self) -> bool {
        let Some(xid) = self.probe else {
            return true;
        };
        let another = self.grant.saturating_sub(self.dropped.len() as u32) > 1;
        let dropped = another && self.dropped.push_within_capacity(xid).is_ok();
        if dropped {
            self.probe = None;
        }
        dropped
    }

    /// Returns whether this is the XID of the outstanding probe.
    pub(crate) fn is_probe(&self, xid: u32) -> bool {
        self.probe == Some(xid)
    }

    /// Returns whether this is the XID of an unanswered probe, outstanding or dropped.
    pub(crate) fn awaits_probe(&self, xid: u32) -> bool {
        self.is_probe(xid) || self.dropped.contains(&xid)
    }

    /// Returns whether a Call with this XID is unanswered, whether an RPC awaits its Reply or not.
    pub(crate) fn awaits(&self, xid: u32) -> bool {
        self.awaits_probe(xid) || self.abandoned.contains(&xid) || self.places.contains(&Some(xid))
    }

    /// Takes back the credit of a Call that was answered, or was not sent after all. A credit of
    /// another connection has come back with the end of that.
    #[inline]
    pub(crate) fn put(&mut self, credit: Credit) {
        let _ = self.take(credit);
    }

    /// Notes the effects of a Reply: the credit `back` of its Call, if that is free again, and the
    /// `grant` of a well-formed one. Returns the same as [`Self::granted`].
    #[inline]
    pub(crate) fn answered(&mut self, back: Option<Credit>, grant: Option<u32>) -> Option<u32> {
        if let Some(credit) = back {
            self.put(credit);
        }
        grant.and_then(|wire| self.granted(wire))
    }

    /// Takes back the credit of a Reply with this XID for which no RPC is found, or of a probe that
    /// was not sent after all. Returns whether there was one: of the probe, of a Call that is
    /// answered late, or of an RPC that is just ending.
    pub(crate) fn put_unawaited(&mut self, xid: u32) -> bool {
        if self.is_probe(xid) {
            self.probe = None;
            return true;
        }
        let take = |xids: &mut KVVec<u32>| {
            let place = xids.iter().position(|other| *other == xid);
            place.is_some_and(|place| xids.remove(place).is_ok())
        };
        if take(&mut self.abandoned) || take(&mut self.dropped) {
            self.stalled = None;
            return true;
        }
        // The RPC is just ending: it is not found any more, and has not given its credit up yet.
        let ending = self.places.iter_mut().find(|place| **place == Some(xid));
        // INVARIANT: One place less has an XID, if one had it.
        let found = ending.is_some_and(|place| place.take().is_some());
        self.calls -= u32::from(found);
        found
    }

    /// Notes that the Reply to the Call that has this credit is not awaited any more. The credit
    /// comes back with that Reply, and not before: the peer may still be executing the Call.
    pub(crate) fn abandon(&mut self, credit: Credit) {
        if let Some(xid) = self.take(credit) {
            // There is room for as many as are granted.
            let _ = self.abandoned.push_within_capacity(xid);
        }
    }

    /// Returns whether any Calls are outstanding.
    pub(crate) fn is_any(&self) -> bool {
        self.used() != 0
    }

    /// Returns whether too many credits are lost, if the peer has dropped the Calls that no RPC
    /// awaits: then they come back only with another connection.
    fn is_stalled(&self) -> bool {
        let (abandoned, dropped) = (self.abandoned.len() as u32, self.dropped.len() as u32);
        let all = abandoned + dropped >= self.grant && self.calls == 0;
        if !self.probes {
            // The connection is for the Calls of the peer, and worth more than a Call of ours.
            return all;
        }
        // With no Call outstanding nothing is lost with the connection. Dropped probes alone do not
        // matter, as long as there are other credits.
        // Otherwise more than half have to be, and not the one of a grant that became small.
        let most = abandoned > (self.grant / 2).max(1);
        all || (abandoned != 0 && self.calls == 0) || most
    }

    /// Returns whether credits have been lost for `patience`, and no Reply came late meanwhile.
    /// True once each time.
    pub(crate) fn are_lost(&mut self, now: Jiffies, patience: Jiffies) -> bool {
        if !self.is_stalled() {
            self.stalled = None;
            return false;
        }
        let since = *self.stalled.get_or_insert(now);
        let over = now.wrapping_sub(since) >= patience;
        if over {
            self.stalled = Some(now);
        }
        over
    }

    /// Expects at least `n` messages at once from now on, beside a Reply to each Call: reverse
    /// Calls, or those that a Reply is continued in.
    pub(crate) fn expect_more(&mut self, n: u32) {
        self.more = self.more.max(n);
    }

    /// Notes that a Receive was completed.
    pub(crate) fn received(&mut self) {
        self.posted = self.posted.saturating_sub(1);
        self.received = self.received.saturating_add(1);
    }

    /// Returns the number of Receives completed, up to `u32::MAX`.
    pub(crate) fn all_received(&self) -> u32 {
        self.received
    }

    /// Notes that `n` more Receives were posted.
    pub(crate) fn posted(&mut self, n: u32) {
        self.posted = self.posted.saturating_add(i64::from(n));
    }

    /// Returns how many Receives should be posted, if there are too few: one for each Reply that
    /// may come, those that are expected beside, and a batch more so that it is not soon again.
    pub(crate) fn wanted_receives(&self) -> Option<u32> {
        let needed = self.used().saturating_add(self.more);
        if self.posted >= i64::from(needed.max(1)) {
            return None;
        }
        Some(with_batch(needed))
    }
}

/// Returns `needed` Receives and a batch. Out of line, since it is called once in a batch.
#[cold]
fn with_batch(needed: u32) -> u32 {
    needed.saturating_add(RECEIVE_BATCH)
}
