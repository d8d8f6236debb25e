// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The messages of a connection of version 2: which may be sent, and which may come.

#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
#[path = "../../../kunit/messages.rs"]
mod tests;

use crate::{
    kapi::ib::RecvBuf,
    transport::{
        chunk_limits::ChunkLimits,
        continued::{
            Kept,
            MOST_MESSAGES, //
        },
        flow::charge::Charge, //
    },
};
use kernel::prelude::*;
use xdr::{
    v2::{
        Bounds,
        Credits,
        Hostile,
        Properties,
        PropertySet,
        Received,
        Receiver,
        Undecoded, //
    },
    Rejected, //
};

/// Credits that Calls leave: for Replies, and for the question whether the peer is there (section
/// 5.4.2 of the binding).
const KEPT: u32 = 1;

/// The state of both directions.
pub(super) struct Messages {
    credits: Credits,
    receiver: Receiver,
    peer: Properties,
    /// It has not taken those of this end.
    refused: bool,
    /// What the peer takes of the chunks of a Call.
    chunks: ChunkLimits,
    /// The fragments of the message that the peer has begun.
    kept: Kept,
    /// A GRANT is being made.
    is_granting: bool,
}

impl Messages {
    /// Creates the state of a new connection.
    pub(super) fn new(bounds: Bounds) -> Self {
        let (peer, mut chunks) = (Properties::default(), ChunkLimits::NONE);
        // As long as it tells no others (section 5.2 of the draft).
        chunks.apply(&peer);
        Self {
            credits: Credits::new(),
            receiver: Receiver::new(bounds),
            peer,
            refused: false,
            chunks,
            kept: Kept::default(),
            is_granting: false,
        }
    }

    /// Takes a message in, as it arrives: its credit value counts, whatever else is wrong with it.
    pub(super) fn arrive<'m>(
        &mut self,
        message: &'m [u8],
    ) -> Result<Result<Received<'m, Undecoded>, Rejected>, Hostile> {
        self.credits.arrive(message)?;
        Ok(self.receiver.arrive(message))
    }

    /// Applies properties that the peer has sent. Returns all of them.
    pub(super) fn learn(&mut self, set: &PropertySet<'_>) -> Properties {
        self.peer.apply(set);
        self.chunks.apply(&self.peer);
        self.peer
    }

    /// Notes that the peer has not taken the properties of this end. Returns its own.
    pub(super) fn refuse(&mut self) -> Properties {
        self.refused = true;
        self.peer
    }

    /// Returns whether that is so.
    pub(super) fn has_refused(&self) -> bool {
        self.refused
    }

    /// Returns what the peer takes of the chunks of a Call.
    pub(super) fn chunks(&mut self) -> &mut ChunkLimits {
        &mut self.chunks
    }

    pub(super) fn may_post(&self, charge: Charge, messages: u32) -> bool {
        match charge {
            Charge::Taken => true,
            Charge::AtPost => self.credits.available() >= messages,
            Charge::Beside => self.credits.may_grant(),
        }
    }

    /// Takes the credit of a Call. False if too few are left. One that is `alone` may have the
    /// last.
    pub(super) fn take_for_call(&mut self, alone: bool) -> bool {
        self.may_take_for_call(alone) && self.credits.take(1)
    }

    /// Returns whether [`Self::take_for_call`] succeeds now.
    pub(super) fn may_take_for_call(&self, alone: bool) -> bool {
        self.credits.available() > if alone { 0 } else { KEPT }
    }

    /// Takes a credit. False if there is none.
    pub(super) fn take(&mut self) -> bool {
        self.credits.take(1)
    }

    /// Takes the credits of more messages of a Call. False if too few are left.
    pub(super) fn take_for_more(&mut self, messages: u32) -> bool {
        self.may_take_for_more(messages) && self.credits.take(messages)
    }

    /// Returns whether that many credits are left for more messages of a Call.
    pub(super) fn may_take_for_more(&self, messages: u32) -> bool {
        messages <= self.credits.available().saturating_sub(KEPT)
    }

    /// Takes back credits.
    pub(super) fn put(&mut self, messages: u32) {
        self.credits.put(messages);
    }

    /// Returns the most messages that can ever be sent at a time.
    pub(super) fn most(&self) -> u32 {
        self.credits.most()
    }

    /// Returns the most messages that a Call can ever be in.
    pub(super) fn most_of_call(&self) -> u32 {
        self.most().saturating_sub(KEPT)
    }

    /// Keeps a fragment. Gives it back if there are too many.
    pub(super) fn keep(&mut self, fragment: RecvBuf) -> Result<(), RecvBuf> {
        self.kept.push(fragment)
    }

    /// Takes the fragments that are kept; if that is `stale`, only where their message was refused.
    pub(super) fn take_kept(&mut self, stale: bool) -> Kept {
        match stale && self.receiver.is_in_message() {
            true => Kept::default(),
            false => core::mem::take(&mut self.kept),
        }
    }

    /// Returns the credit word of messages that are about to be posted.
    pub(super) fn stamp(&mut self, charge: Charge, messages: u32, posted: u32) -> u32 {
        // Seen by `may_post` under the same lock.
        let _ = match charge {
            Charge::Taken => true,
            Charge::AtPost => self.credits.take(messages),
            Charge::Beside => self.credits.take_for_grant(),
        };
        // Any message tells what a GRANT would.
        self.is_granting &= charge != Charge::Beside;
        self.credits.tell(posted)
    }

    /// Returns whether [`Self::begin_grant`] may say so before the next message comes.
    pub(super) fn may_owe_grant(&self) -> bool {
        self.credits.may_owe_grant(MOST_MESSAGES)
    }

    /// Returns whether a GRANT is to be made now.
    pub(super) fn begin_grant(&mut self, posted: u32) -> bool {
        let owed = self.credits.owes_grant(posted, MOST_MESSAGES);
        let begins = owed && self.credits.may_grant() && !self.is_granting;
        self.is_granting |= begins;
        begins
    }

    pub(super) fn not_granted(&mut self) {
        self.is_granting = false;
    }
}
