// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Flow control (the draft, section 4.2.1), of one end of a connection.

use crate::{
    v1::error::peek_err_vers,
    v2::header::{
        RDMA2_ERROR,
        RDMA2_GRANT,
        VERSION, //
    },
    FixedHeader, //
};

/// Credits that nobody gives at a time (the draft, section 4.2.1).
const MAX_WINDOW: u32 = (1 << 31) - 1;

/// Messages of each end that count as sent before the first: none, but in a test build, whose ends
/// both begin so, the counts wrap soon.
const BEFORE: u32 = if cfg!(CONFIG_RPCRDMA_NEAR_WRAP) {
    u32::MAX - 100
} else {
    0
};

/// A credit value that no peer sends that keeps to the rules: the connection is to be closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hostile;

/// What one end may send, and what it has told the other of what that may.
///
/// All values count messages since the connection began, of all header types, and wrap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Credits {
    /// Messages that this end has sent.
    sent: u32,
    /// Messages that it has received.
    received: u32,
    /// "Received credits": the number of messages that it may send.
    limit: u32,
    /// The most that the limit was ahead of what was sent.
    window: u32,
    /// The number that the peer was told last, which never goes back.
    told: u32,
    /// The messages that the peer could send when it was told.
    given: u32,
    /// A message other than a GRANT has come since it was told that it may send any.
    is_owed: bool,
}

impl Credits {
    /// Creates the state of a new connection: each end may send one message.
    pub const fn new() -> Self {
        Self {
            sent: BEFORE,
            received: BEFORE,
            limit: BEFORE.wrapping_add(1),
            window: 1,
            told: BEFORE.wrapping_add(1),
            given: 1,
            is_owed: false,
        }
    }

    /// Returns the number of messages that may be sent now, other than a GRANT.
    pub fn available(&self) -> u32 {
        // Behind what was sent if the peer has taken credits back, or after a GRANT.
        ahead(self.limit, self.sent).unwrap_or(0)
    }

    /// Returns the most messages that could ever be sent at a time: who needs more waits for ever.
    pub const fn most(&self) -> u32 {
        self.window
    }

    /// Takes the credits of messages that are to be sent. False when they may not all be sent now.
    pub fn take(&mut self, messages: u32) -> bool {
        let may = messages <= self.available();
        if may {
            self.sent = self.sent.wrapping_add(messages);
        }
        may
    }

    /// Takes the credit of a GRANT, which may be one more than the credits (the draft, section
    /// 4.2.1.1). Returns as [`Credits::take`].
    pub fn take_for_grant(&mut self) -> bool {
        let may = self.may_grant();
        if may {
            self.sent = self.sent.wrapping_add(1);
        }
        may
    }

    /// Returns whether a GRANT may be sent now.
    pub fn may_grant(&self) -> bool {
        ahead(self.limit, self.sent).is_some()
    }

    /// Takes back the credits of messages that are not sent after all.
    pub fn put(&mut self, messages: u32) {
        self.sent = self.sent.wrapping_sub(messages);
    }

    /// Returns the `rdma_credit` of a message that is being sent, whose credit was taken.
    ///
    /// `posted` is the number of Receives of this end, at most 2^31 - 1, of which one is kept for a
    /// GRANT; without any, nothing new is told. What is told of the others is the sum with the
    /// messages *received*, which the peer compares with those that it has sent; the draft says
    /// "sent", which nobody could use.
    pub fn tell(&mut self, posted: u32) -> u32 {
        let credits = self.credits(posted);
        // What was told may be on its way: its Receives stay.
        if ahead(credits, self.told).is_some() {
            self.told = credits;
        }
        self.given = self.left();
        // Who may send nothing is owed what there will be.
        self.is_owed &= self.given == 0;
        self.told
    }

    /// Returns the number of messages that the peer may send in all, by so many Receives.
    fn credits(&self, posted: u32) -> u32 {
        self.received.wrapping_add(posted).wrapping_sub(1)
    }

    /// Returns the number of messages that the peer may still send.
    fn left(&self) -> u32 {
        // None, too, when one more has come than was told.
        ahead(self.told, self.received).unwrap_or(0)
    }

    /// Returns whether a GRANT is to be sent if nothing else goes out: the peer has used half of
    /// what it was given, or has too few for `least` messages, those of the longest RPC message
    /// that this end takes. To be asked when a message has come, and when there are Receives
    /// again.
    ///
    /// What GRANTs alone have used is told only in the second case, and only if more than `least`
    /// are told then: each answer takes two messages, so that an idle connection comes to rest.
    pub fn owes_grant(&self, posted: u32, least: u32) -> bool {
        let left = self.left();
        let too_few = left < least && (self.is_owed || posted.saturating_sub(1) > least);
        let news = ahead(self.credits(posted), self.told).is_some_and(|news| news != 0);
        news && (too_few || self.is_owed && left <= self.given / 2)
    }

    /// Returns whether [`Self::owes_grant`] may say so for any number of Receives, until the next
    /// message comes.
    pub fn may_owe_grant(&self, least: u32) -> bool {
        let left = self.left();
        left < least || left <= self.given / 2
    }

    /// Counts a message as it arrives, and takes over its credit value if it has one: all of
    /// version 2 have, whatever else is wrong with them, but for `ERR_VERS`.
    pub fn arrive(&mut self, bytes: &[u8]) -> Result<(), Hostile> {
        let is_err_vers = |procedure| procedure == RDMA2_ERROR && peek_err_vers(bytes).is_some();
        match FixedHeader::peek(bytes) {
            Some(header) if header.version == VERSION && !is_err_vers(header.procedure) => {
                self.receive(header.credits, header.procedure == RDMA2_GRANT)
            }
            _ => {
                self.count_received();
                Ok(())
            }
        }
    }

    /// Counts a received message that says nothing of credits: one that is too short for it, or of
    /// another version.
    pub const fn count_received(&mut self) {
        self.received = self.received.wrapping_add(1);
        self.is_owed = true;
    }

    /// Counts a received message, and takes over its `rdma_credit`.
    ///
    /// A value may go back behind what was sent, since it may have been on its way when that was:
    /// but not further than all that may be. An advance of 2^31 or more cannot be told from that.
    pub fn receive(&mut self, credits: u32, is_grant: bool) -> Result<(), Hostile> {
        match (ahead(credits, self.sent), ahead(self.sent, credits)) {
            (Some(window), _) if window < MAX_WINDOW => {
                self.window = self.window.max(window);
            }
            // A GRANT may have been sent beside the window.
            (None, Some(behind)) if behind <= self.window.saturating_add(1) => {}
            _ => return Err(Hostile),
        }
        self.received = self.received.wrapping_add(1);
        self.is_owed |= !is_grant;
        self.limit = credits;
        Ok(())
    }
}

/// Returns how far a count is ahead of another; `None` if it is behind.
fn ahead(count: u32, of: u32) -> Option<u32> {
    let difference = count.wrapping_sub(of);
    i32::try_from(difference).is_ok().then_some(difference)
}

#[cfg(any(test, feature = "checks", CONFIG_RPCRDMA_KUNIT_TEST))]
impl Credits {
    /// Sends a message. Returns its `rdma_credit`; `None` when it may not be sent now.
    pub fn send(&mut self, advertised: u32) -> Option<u32> {
        self.take(1).then(|| self.tell(advertised.wrapping_add(1)))
    }

    /// Sends a GRANT. Returns as [`Credits::send`].
    pub fn send_grant(&mut self, advertised: u32) -> Option<u32> {
        self.take_for_grant()
            .then(|| self.tell(advertised.wrapping_add(1)))
    }

    /// Returns the state after so many messages more.
    pub(crate) const fn after_sending(self, messages: u32) -> Self {
        Self {
            sent: self.sent.wrapping_add(messages),
            ..self
        }
    }
}

impl Default for Credits {
    fn default() -> Self {
        Self::new()
    }
}
