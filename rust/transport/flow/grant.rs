// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The Calls that a peer may have unanswered (RFC 8166, section 3.3.1), and the Receives for them:
//! more when it uses its grant, fewer when it has not used it for a while. A server's grant (RFC
//! 8167) does not change, since the RPC layer of its client takes no more.

#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
#[path = "../../../kunit/grant.rs"]
mod tests;

/// The number of Receives that are posted at once: less than one RPC in sixteen posts any.
pub(crate) const BATCH: u32 = 17;
/// The credits of a new connection, and of an idle one.
pub(crate) const FIRST: u32 = 16;
/// The most credits for each service thread: more Calls would wait here and not at the client.
const PER_THREAD: u32 = 8;
/// The most outstanding Calls of this end (RFC 8167, section 4.1).
pub(crate) const REVERSE: u32 = 2;
/// Receives beside those for messages that the client may send: less than a batch were given back
/// and are not posted yet; and two for each reverse Call, since the next may be sent while the
/// Reply to the one before is being handled (RFC 8167, section 4.3.1).
pub(crate) const BESIDE: u32 = 2 * BATCH;
const _: () = assert!(BESIDE >= BATCH - 1 + 2 * REVERSE);
/// The number of Replies between two checks of the grant's use.
const PERIOD: u32 = 1024;

/// The grant of one connection.
pub(crate) struct Grant {
    /// Calls that the peer may have unanswered, less those that it cannot know to be dropped.
    current: u32,
    /// The credits of the last Reply, up to which the peer may send.
    advertised: u32,
    /// The credits that the peer was told of: one at first (RFC 8166, section 3.3.3).
    told: u32,
    /// The grant for which Receives are being made; zero if for none.
    pending: u32,
    /// The number of Calls that were dropped. To the peer they are unanswered until the connection
    /// ends.
    dropped: u32,
    /// The number of dropped Calls whose credit was given back.
    returned: u32,
    /// The most credits that the device has room for.
    max: u32,
    /// The most messages in use since the period began.
    peak: u32,
    /// The number of Replies since the period began.
    replies: u32,
    /// The number of expected RDMA_DONEs, which take no credit.
    dones: u32,
    /// The number of Receives that the endpoint was last told.
    wanted: u32,
}

impl Grant {
    /// Creates the grant of a peer, of at most `max` credits.
    pub(crate) fn new(max: u32) -> Self {
        let first = FIRST.min(max);
        Self {
            current: first,
            advertised: first,
            told: 1,
            pending: 0,
            dropped: 0,
            returned: 0,
            max,
            peak: 0,
            replies: 0,
            dones: 0,
            wanted: 0,
        }
    }

    /// Returns the credits of the next Reply.
    pub(crate) fn credits(&self) -> u32 {
        self.with(self.current, self.returned)
    }

    /// Returns a grant plus the credits of `dropped` Calls.
    fn with(&self, grant: u32, dropped: u32) -> u32 {
        grant.saturating_add(dropped).min(self.max)
    }

    /// Returns the number of Receives that are needed for credits: for all Calls that the peer may
    /// send, and [`BESIDE`]. It sends more if it gives up a Call that was dropped.
    pub(crate) fn for_credits(&self) -> u32 {
        let wanted = self.with(self.current.max(self.pending), self.dropped);
        self.advertised.max(wanted) + BESIDE
    }

    /// Returns the number of all Receives that are needed.
    pub(crate) fn receives(&self) -> u32 {
        self.for_credits() + self.dones
    }

    /// Returns [`Self::receives`], if that has changed since it was last reported.
    #[inline]
    pub(crate) fn changed(&mut self) -> Option<u32> {
        let receives = self.receives();
        (core::mem::replace(&mut self.wanted, receives) != receives).then_some(receives)
    }

    /// Returns the credits of a Reply that is about to be posted, which bind from now on.
    #[inline]
    pub(super) fn advertise(&mut self) -> u32 {
        let now = self.credits();
        self.told = now;
        self.advertised = now;
        now
    }

    /// Expects one more RDMA_DONE. False if the peer can send `most` already.
    pub(crate) fn expect_done(&mut self, most: u32) -> bool {
        let room = self.dones < most;
        self.dones += u32::from(room);
        room
    }

    /// Expects one RDMA_DONE less: it has come, or is not going to.
    pub(crate) fn put_done(&mut self) {
        self.dones = self.dones.saturating_sub(1);
    }

    /// Notes that a Call was dropped, so that the peer has one credit less. To give it back the
    /// caller makes [`Self::receives`] Receives and reports to [`Self::made`]. Returns whether the
    /// peer has any credit left: without one it can send nothing that would be replied to.
    pub(crate) fn dropped(&mut self) -> bool {
        self.dropped = self.dropped.saturating_add(1);
        !self.is_used_up()
    }

    /// Returns whether all credits that the peer was told of are with dropped Calls.
    pub(crate) fn is_used_up(&self) -> bool {
        self.dropped >= self.told
    }

    /// Notes a Reply by one of `threads`, with `used` other messages in use. Returns whether the
    /// caller is to make [`Self::receives`] Receives, and report to [`Self::made`].
    pub(crate) fn used(&mut self, used: u32, threads: u32) -> bool {
        let most = self.max.min(threads.saturating_mul(PER_THREAD)).max(1);
        self.peak = self.peak.max(used);
        self.replies += 1;
        if self.replies >= PERIOD {
            let idle = self.peak < self.current / 4;
            self.peak = 0;
            self.replies = 0;
            if self.pending == 0 && (idle || self.current > most) {
                // Not below the first grant, as long as the threads can keep up with that.
                self.current = (self.current / 2).max(FIRST).min(most).min(self.current);
                return false;
            }
        }
        if self.pending != 0 || self.current >= most || used < self.current / 2 {
            return false;
        }
        self.pending = (2 * self.current).min(most);
        true
    }

    /// Notes whether the wanted `receives` are posted; if not `ok`, they are not available now.
    pub(crate) fn made(&mut self, receives: u32, ok: bool) {
        if !ok {
            self.pending = 0;
        } else if self.for_credits() <= receives {
            self.current = self.current.max(core::mem::take(&mut self.pending));
            self.returned = self.dropped;
        }
        // Otherwise another task makes more meanwhile.
    }
}
