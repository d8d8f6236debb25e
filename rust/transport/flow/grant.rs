// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! How many Calls a peer may have unanswered (RFC 8166, section 3.3.1): more when it uses what it
//! has, and less when it has not used it for a while; and the Receives for that. What a server may
//! have (RFC 8167) stays as it begins, since the RPC layer of its client takes no more.

#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
#[path = "../../../kunit/grant.rs"]
mod tests;

/// Receives that are posted in one go: less than one RPC in sixteen posts any.
pub(crate) const BATCH: u32 = 17;
/// Credits to begin with, and to come back to.
pub(crate) const FIRST: u32 = 16;
/// Credits for each service thread, at most: those beyond would wait here and not at the client.
const PER_THREAD: u32 = 8;
/// Calls that this end has under way at once, at most (RFC 8167, section 4.1).
pub(crate) const REVERSE: u32 = 2;
/// Receives beside those for what the client may send: for those that were given back and not
/// posted yet, which are less than a batch; and twice for each reverse Call, since the next may be
/// sent while the Reply to the one before is being looked at (RFC 8167, section 4.3.1).
pub(crate) const BESIDE: u32 = 2 * BATCH;
const _: () = assert!(BESIDE >= BATCH - 1 + 2 * REVERSE);
/// Replies after which it is looked at what has been used since the last time.
const PERIOD: u32 = 1024;

/// The grant of one connection.
pub(crate) struct Grant {
    /// What the peer may have unanswered, beside what it cannot know to be dropped.
    current: u32,
    /// What the last Reply said: the peer may go by that.
    advertised: u32,
    /// What the peer has been told of: one credit at first (RFC 8166, section 3.3.3).
    told: u32,
    /// What Receives are being made for; zero if for nothing.
    pending: u32,
    /// Calls that were dropped. To the peer they are unanswered as long as there is the
    /// connection.
    dropped: u32,
    /// How many of them have their credit given back.
    returned: u32,
    /// As much as the device has room for.
    max: u32,
    /// The most messages in use since the period began.
    peak: u32,
    /// Replies since the period began.
    replies: u32,
    /// Messages that take no credit, by which the peer says that it has pulled a Reply.
    dones: u32,
    /// The number of Receives that the endpoint was told of last.
    wanted: u32,
}

impl Grant {
    /// Creates that of a peer that is to be granted `max` at most.
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

    /// Returns what the next Reply says.
    fn credits(&self) -> u32 {
        self.with(self.current, self.returned)
    }

    /// Returns a grant with those for Calls that were dropped.
    fn with(&self, grant: u32, dropped: u32) -> u32 {
        grant.saturating_add(dropped).min(self.max)
    }

    /// Returns the number of Receives that are needed: for all that the peer may send, and
    /// [`BESIDE`]. It sends more if it gives up a Call that was dropped.
    pub(crate) fn receives(&self) -> u32 {
        let wanted = self.with(self.current.max(self.pending), self.dropped);
        self.advertised.max(wanted) + BESIDE + self.dones
    }

    /// Returns [`Self::receives`], if that has changed since it was last told.
    #[inline]
    pub(crate) fn changed(&mut self) -> Option<u32> {
        let receives = self.receives();
        (core::mem::replace(&mut self.wanted, receives) != receives).then_some(receives)
    }

    /// Returns what a Reply says that is about to be posted: the peer goes by that from now on.
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

    /// Notes that a Call was dropped, so that the peer has one credit less. More
    /// [`Self::receives`] are wanted to give it back, and then [`Self::made`] whether there are.
    /// Returns whether the peer has any left: if not, it can send nothing that would be replied to.
    pub(crate) fn dropped(&mut self) -> bool {
        self.dropped = self.dropped.saturating_add(1);
        !self.is_used_up()
    }

    /// Returns whether all credits that the peer was told of are with Calls that were dropped.
    pub(crate) fn is_used_up(&self) -> bool {
        self.dropped >= self.told
    }

    /// Notes that a Call was replied to, while `used` other messages were in use, by one of
    /// `threads`. Returns whether more [`Self::receives`] are wanted, and then [`Self::made`]
    /// whether there are.
    pub(crate) fn used(&mut self, used: u32, threads: u32) -> bool {
        let most = self.max.min(threads.saturating_mul(PER_THREAD)).max(1);
        self.peak = self.peak.max(used);
        self.replies += 1;
        if self.replies >= PERIOD {
            let idle = self.peak < self.current / 4;
            self.peak = 0;
            self.replies = 0;
            if self.pending == 0 && (idle || self.current > most) {
                // Not below what it began with, as long as the threads can keep up with that.
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

    /// Notes that the `receives` that were wanted are posted, or are not to be had now.
    pub(crate) fn made(&mut self, receives: u32, ok: bool) {
        if !ok {
            self.pending = 0;
        } else if self.receives() <= receives {
            self.current = self.current.max(core::mem::take(&mut self.pending));
            self.returned = self.dropped;
        }
        // Else somebody makes more meanwhile.
    }
}
