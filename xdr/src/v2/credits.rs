// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Flow control (the draft, section 4.2.1), of one end of a connection.

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
    /// The number that the peer was told last.
    told: u32,
    /// A message other than a GRANT has come since.
    is_owed: bool,
}

impl Credits {
    /// Creates the state of a new connection: each end may send one message.
    pub const fn new() -> Self {
        Self {
            sent: 0,
            received: 0,
            limit: 1,
            told: 1,
            is_owed: false,
        }
    }

    /// Returns the number of messages that may be sent now, other than a GRANT.
    pub const fn available(&self) -> u32 {
        match self.limit.wrapping_sub(self.sent) {
            // After a GRANT that took the one beside the limit this is -1.
            credits if credits > i32::MAX as u32 => 0,
            credits => credits,
        }
    }

    /// Counts a message that is being sent. Returns its `rdma_credit`; `None` when it may not be
    /// sent now.
    ///
    /// `advertised` is the number of messages that this end has Receives for, less than 2^31 - 1.
    /// What is told of them is the sum with the messages *received*, which the peer compares with
    /// those that it has sent; the draft says "sent", which nobody could use.
    pub const fn send(&mut self, advertised: u32) -> Option<u32> {
        if self.available() == 0 {
            return None;
        }
        Some(self.tell(advertised))
    }

    /// Counts a GRANT that is being sent, which may be one more than the credits (the draft,
    /// section 4.2.1.1). Returns as [`Credits::send`].
    pub const fn send_grant(&mut self, advertised: u32) -> Option<u32> {
        if self.limit.wrapping_sub(self.sent) > i32::MAX as u32 {
            return None;
        }
        Some(self.tell(advertised))
    }

    const fn tell(&mut self, advertised: u32) -> u32 {
        self.sent = self.sent.wrapping_add(1);
        self.told = self.received.wrapping_add(advertised);
        self.is_owed = false;
        self.told
    }

    /// Returns whether a GRANT is to be sent if nothing else goes out: the peer has used half of
    /// what it was told. A GRANT alone is never answered, so that an idle connection is silent.
    pub const fn owes_grant(&self, advertised: u32) -> bool {
        let left = self.told.wrapping_sub(self.received);
        // One more may have come than was told.
        let is_half = left > i32::MAX as u32 || left <= advertised / 2;
        self.is_owed && is_half
    }

    /// Counts a received message, and takes over its `rdma_credit`.
    ///
    /// A value may go back, but not behind what was sent: what has been used cannot be taken back.
    /// An advance of 2^31 or more cannot be told from that.
    pub const fn receive(&mut self, credits: u32, is_grant: bool) -> Result<(), Hostile> {
        let goes_back = credits.wrapping_sub(self.limit) > i32::MAX as u32;
        let is_behind = credits.wrapping_sub(self.sent) > i32::MAX as u32;
        if goes_back && is_behind {
            return Err(Hostile);
        }
        self.limit = credits;
        self.received = self.received.wrapping_add(1);
        self.is_owed |= !is_grant;
        Ok(())
    }
}

#[cfg(any(test, feature = "checks", CONFIG_RPCRDMA_KUNIT_TEST))]
impl Credits {
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
