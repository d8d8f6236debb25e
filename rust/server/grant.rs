// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! How many Calls a client may have unanswered (RFC 8166, section 3.3.1): more when it uses what it
//! has, and less when it has not used it for a while; and the Receives for that.

#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
#[path = "../../kunit/grant.rs"]
mod tests;

/// Receives that are posted in one go: less than one RPC in sixteen posts any.
pub(super) const BATCH: u32 = 17;
/// Credits to begin with, and to come back to.
pub(super) const FIRST: u32 = 16;
/// Credits for each service thread, at most: those beyond would wait here and not at the client.
const PER_THREAD: u32 = 8;
/// Calls that this end has under way at once, at most (RFC 8167, section 4.1).
pub(super) const REVERSE: u32 = 2;
/// Receives beside those for what the client may send: for those that were given back and not
/// posted yet, which are less than a batch; and twice for each reverse Call, since the next may be
/// sent while the Reply to the one before is being looked at (RFC 8167, section 4.3.1).
pub(super) const BESIDE: u32 = 2 * BATCH;
const _: () = assert!(BESIDE >= BATCH - 1 + 2 * REVERSE);
/// Replies after which it is looked at what has been used since the last time.
const PERIOD: u32 = 1024;

/// The grant of one connection.
pub(super) struct Grant {
    /// What the client may have unanswered, beside what it cannot know to be dropped.
    current: u32,
    /// What the last Reply said that was posted: the client may go by that.
    advertised: u32,
    /// What the client has been told of: one credit at first (RFC 8166, section 3.3.3).
    told: u32,
    /// What Receives are being made for; zero if for nothing.
    pending: u32,
    /// Calls that were dropped. To the client they are unanswered as long as there is the
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
}

impl Grant {
    /// For a client that is to be granted `max` at most.
    pub(super) fn new(max: u32) -> Self {
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
        }
    }

    /// What the next Reply says.
    pub(super) fn credits(&self) -> u32 {
        self.with(self.current, self.returned)
    }

    /// A grant with so many for Calls that were dropped.
    fn with(&self, grant: u32, dropped: u32) -> u32 {
        grant.saturating_add(dropped).min(self.max)
    }

    /// The Receives that are needed: for all that the client may send, and [`BESIDE`]. It sends
    /// more if it gives up a Call that was dropped.
    pub(super) fn receives(&self) -> u32 {
        let wanted = self.with(self.current.max(self.pending), self.dropped);
        self.advertised.max(wanted) + BESIDE
    }

    /// A Reply was posted that says [`Self::credits`]. Returns whether it takes back what the one
    /// before it has granted.
    pub(super) fn advertise(&mut self) -> bool {
        let now = self.credits();
        self.told = now;
        let before = core::mem::replace(&mut self.advertised, now);
        before > now
    }

    /// A Call was dropped, so that the client has one credit less. More [`Self::receives`] are
    /// wanted to give it back, and then [`Self::made`] whether there are. Returns whether the
    /// client has any left: if not, it can send nothing that would be replied to.
    pub(super) fn dropped(&mut self) -> bool {
        self.dropped = self.dropped.saturating_add(1);
        !self.is_used_up()
    }

    /// Whether all credits that the client was told of are with Calls that were dropped.
    pub(super) fn is_used_up(&self) -> bool {
        self.dropped >= self.told
    }

    /// A Call was replied to, while so many other messages were in use, by one of `threads`.
    /// Returns whether more [`Self::receives`] are wanted, and then [`Self::made`] whether there
    /// are.
    pub(super) fn used(&mut self, used: u32, threads: u32) -> bool {
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

    /// So many Receives, which were wanted, are posted; or are not to be had now.
    pub(super) fn made(&mut self, receives: u32, ok: bool) {
        if !ok {
            self.pending = 0;
        } else if self.receives() <= receives {
            self.current = self.current.max(core::mem::take(&mut self.pending));
            self.returned = self.dropped;
        }
        // Else somebody makes more meanwhile.
    }
}

/// The number of Receives that a connection has to have posted.
#[derive(Clone, Copy)]
pub(super) struct Wanted {
    /// Those of the grant.
    pub(super) granted: u32,
    /// Those for messages by which the client says that it has pulled a Reply, without a credit.
    pub(super) unsaid: u32,
}

impl Wanted {
    /// Wants those of the grant alone.
    pub(super) fn new(granted: u32) -> Self {
        Self { granted, unsaid: 0 }
    }

    /// Returns the number of all.
    pub(super) fn receives(&self) -> u32 {
        self.granted.saturating_add(self.unsaid)
    }

    /// Takes one of the messages off: it has come, or is not going to.
    pub(super) fn said(&mut self) {
        self.unsaid = self.unsaid.saturating_sub(1);
    }
}
