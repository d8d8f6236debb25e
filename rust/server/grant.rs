// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! How many Calls a client may have unanswered (RFC 8166, section 3.3.1): more when it uses what it
//! has, and less when it has not used it for a while.

#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
#[path = "../../kunit/grant.rs"]
mod tests;

use super::connection::BATCH;

/// Credits to begin with, and to come back to.
pub(super) const FIRST: u32 = 16;
/// Credits for each service thread, at most: those beyond would wait here and not at the client.
const PER_THREAD: u32 = 8;
/// Replies after which it is looked at what has been used since the last time.
const PERIOD: u32 = 1024;

/// The grant of one connection.
pub(super) struct Grant {
    /// What the next Reply says.
    now: u32,
    /// What the last Reply said that was posted: the client may go by that.
    said: u32,
    /// What Receives are being made for; zero if for nothing.
    next: u32,
    /// As much as the device has room for.
    most: u32,
    /// The most messages in use since the period began.
    peak: u32,
    /// Replies since the period began.
    replies: u32,
}

impl Grant {
    /// For a client that is to be granted `most` at most.
    pub(super) fn new(most: u32) -> Self {
        let first = FIRST.min(most);
        Self {
            now: first,
            said: first,
            next: 0,
            most,
            peak: 0,
            replies: 0,
        }
    }

    /// What the next Reply says.
    pub(super) fn credits(&self) -> u32 {
        self.now
    }

    /// The Receives that are needed: for all that the client may send, a batch that is being filled,
    /// and one for what is being replied to.
    pub(super) fn receives(&self) -> u32 {
        self.now.max(self.said).max(self.next) + 2 * BATCH
    }

    /// A Reply was posted that says [`Self::credits`]. Returns whether it takes back what the one
    /// before it has granted.
    pub(super) fn said(&mut self) -> bool {
        let before = core::mem::replace(&mut self.said, self.now);
        before > self.now
    }

    /// A Call was replied to, while so many other messages were in use, by one of `threads`. Returns
    /// whether more [`Self::receives`] are wanted, and then [`Self::made`] whether there are.
    pub(super) fn used(&mut self, used: u32, threads: u32) -> bool {
        let most = self.most.min(threads.saturating_mul(PER_THREAD)).max(1);
        self.peak = self.peak.max(used);
        self.replies += 1;
        if self.replies >= PERIOD {
            let idle = self.peak < self.now / 4;
            self.peak = 0;
            self.replies = 0;
            if self.next == 0 && (idle || self.now > most) {
                // Not below what it began with, as long as the threads can keep up with that.
                self.now = (self.now / 2).max(FIRST).min(most).min(self.now);
                return false;
            }
        }
        if self.next != 0 || self.now >= most || used < self.now / 2 {
            return false;
        }
        self.next = (2 * self.now).min(most);
        true
    }

    /// The Receives that were wanted are posted, or are not to be had now.
    pub(super) fn made(&mut self, ok: bool) {
        let next = core::mem::take(&mut self.next);
        if ok {
            self.now = self.now.max(next);
        }
    }
}
