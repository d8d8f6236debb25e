// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Credits (RFC 8166, section 3.3.1): what an end may send, and what it lets its peer send. Each
//! end does both, since Calls go in both directions (RFC 8167, section 4.1).
//!
//! Version 1 counts Calls that are unanswered. Version 2 counts messages, whatever they are
//! (section 4.2.1 of the draft); there the credits of Calls are a record of who awaits a Reply.

pub(crate) mod charge;
pub(crate) mod credits;
pub(crate) mod grant;
mod messages;

use self::{
    charge::Charge,
    credits::{
        Credit,
        Credits, //
    },
    grant::Grant,
    messages::Messages, //
};
use crate::{
    kapi::ib::RecvBuf,
    transport::{
        chunk_limits::ChunkLimits,
        continued::{
            Kept,
            MOST_MESSAGES, //
        },
    },
};
use kernel::prelude::*;
use xdr::{
    v2::{
        Bounds,
        Hostile,
        Properties,
        PropertySet,
        Received,
        Undecoded, //
    },
    RdmaError,
    Rejected,
    Version, //
};

/// The credits of one end of a connection. Under the lock of the send queue, so that messages carry
/// them in the order of the posts.
pub(crate) struct Flow {
    /// The credits for the Calls of this end.
    pub(crate) credits: Credits,
    /// The grant for the Calls of the peer.
    pub(crate) grant: Grant,
    /// The count of messages, where the connection speaks version 2 or may come to that.
    messages: Option<KBox<Messages>>,
}

impl Flow {
    /// Creates the credits of a new connection, which may speak version 2 within `bounds` if there
    /// are any. May sleep.
    pub(crate) fn new(credits: Credits, grant: Grant, bounds: Option<&Bounds>) -> Result<Self> {
        let messages = |bounds: &Bounds| KBox::new(Messages::new(*bounds), GFP_KERNEL);
        Ok(Self {
            credits,
            grant,
            messages: bounds.map(messages).transpose()?,
        })
    }

    /// Returns whether the connection speaks version 2, or may come to that.
    pub(super) fn counts_messages(&self) -> bool {
        self.messages.is_some()
    }

    /// Notes the version of the connection.
    pub(super) fn settle(&mut self, version: Version) {
        match version {
            Version::One => self.messages = None,
            // The peer says how many messages it takes, and not how many Calls.
            Version::Two => {
                self.credits.grant_all();
                // And a GRANT.
                self.credits.expect_more(MOST_MESSAGES + 1);
            }
        }
    }

    /// Takes a message of version 2 in, as it arrives.
    pub(super) fn arrive<'m>(
        &mut self,
        message: &'m [u8],
    ) -> Result<Result<Received<'m, Undecoded>, Rejected>, Hostile> {
        match &mut self.messages {
            Some(messages) => messages.arrive(message),
            None => Err(Hostile),
        }
    }

    /// Applies properties that the peer has sent. Returns all of them.
    pub(super) fn learn(&mut self, set: &PropertySet<'_>) -> Properties {
        let messages = self.messages.as_mut();
        messages.map_or_else(Properties::default, |messages| messages.learn(set))
    }

    /// Notes that the peer has not taken the properties of this end. Returns its own.
    pub(super) fn refuse(&mut self) -> Properties {
        let messages = self.messages.as_mut();
        messages.map_or_else(Properties::default, |messages| messages.refuse())
    }

    /// Returns whether that is so.
    pub(super) fn has_refused(&self) -> bool {
        let messages = self.messages.as_ref();
        messages.is_some_and(|messages| messages.has_refused())
    }

    /// Returns what the peer takes of the chunks of a Call.
    pub(super) fn chunk_limits(&mut self) -> ChunkLimits {
        let messages = self.messages.as_mut();
        messages.map_or(ChunkLimits::NONE, |messages| *messages.chunks())
    }

    /// Notes what an error says of that, as [`ChunkLimits::refuse`].
    pub(crate) fn refuse_chunks(&mut self, error: &RdmaError) -> bool {
        let messages = self.messages.as_mut();
        messages.is_some_and(|messages| messages.chunks().refuse(error))
    }

    /// Returns whether an RPC message in that number of messages may be posted now.
    #[inline]
    pub(super) fn may_post(&self, charge: Charge, messages: u32) -> bool {
        match &self.messages {
            None => true,
            Some(state) => state.may_post(charge, messages),
        }
    }

    /// Returns the credit word of messages that are about to be posted, which [`Self::may_post`]
    /// allows. In version 1 credits are requested in a Call, and granted in a Reply (RFC 8166,
    /// section 4.2.3). `posted` is asked for the number of posted Receives.
    #[inline]
    pub(super) fn stamp(
        &mut self,
        charge: Charge,
        messages: u32,
        posted: impl FnOnce() -> u32,
    ) -> u32 {
        match (&mut self.messages, charge) {
            (Some(state), _) => state.stamp(charge, messages, posted()),
            (None, Charge::Taken) => self.credits.requested(),
            (None, Charge::AtPost | Charge::Beside) => self.grant.advertise(),
        }
    }

    /// Takes what the Call with this XID needs. None if it has to wait.
    #[inline]
    pub(crate) fn get(&mut self, xid: u32) -> Option<Credit> {
        match self.messages {
            None => self.credits.get(xid),
            Some(_) => self.get_counted(xid),
        }
    }

    /// Takes the same where messages are counted, with the credit of one.
    #[inline(never)]
    fn get_counted(&mut self, xid: u32) -> Option<Credit> {
        let alone = !self.credits.is_any();
        if !self.messages.as_mut()?.take_for_call(alone) {
            return None;
        }
        let credit = self.credits.get(xid);
        if credit.is_none() {
            self.put_messages(1);
        }
        credit
    }

    /// Returns whether a Call has to wait until the peer takes more messages. Any message may bring
    /// that, and wakes nobody who waits for the credit of a Call.
    pub(crate) fn is_short_of_messages(&self) -> bool {
        let alone = !self.credits.is_any();
        let state = self.messages.as_ref();
        state.is_some_and(|state| !state.may_take_for_call(alone))
    }

    /// Returns whether [`Self::get_more`] succeeds now.
    pub(super) fn may_get_more(&self, messages: u32) -> bool {
        let state = self.messages.as_ref();
        state.is_some_and(|state| state.may_take_for_more(messages))
    }

    /// Takes what a Call needs that is in so many messages more than it has credits for. False if
    /// it has to wait.
    pub(super) fn get_more(&mut self, messages: u32) -> bool {
        let state = self.messages.as_mut();
        state.is_some_and(|state| state.take_for_more(messages))
    }

    /// Takes back the credit of a Call that is not sent after all.
    pub(crate) fn put_unsent(&mut self, credit: Credit) {
        self.credits.put(credit);
        self.put_messages(1);
    }

    /// Takes the credit that is kept for the probe with this XID. False if it is not available now.
    pub(crate) fn get_probe(&mut self, xid: u32) -> bool {
        if !self.take_message() {
            return false;
        }
        let taken = self.credits.get_probe(xid);
        if !taken {
            self.put_messages(1);
        }
        taken
    }

    /// Takes back the credit of a probe that is not sent after all.
    pub(crate) fn put_unsent_probe(&mut self, xid: u32) {
        self.credits.put_unawaited(xid);
        self.put_messages(1);
    }

    /// Takes the credit of a message that is neither Call nor Reply. False if there is none.
    pub(super) fn take_message(&mut self) -> bool {
        self.messages
            .as_mut()
            .is_none_or(|messages| messages.take())
    }

    /// Takes back the credits of messages that are not sent after all.
    pub(super) fn put_messages(&mut self, messages: u32) {
        if let Some(state) = &mut self.messages {
            state.put(messages);
        }
    }

    /// Returns the most messages that can ever be sent at a time.
    pub(super) fn most_messages(&self) -> u32 {
        self.messages.as_ref().map_or(1, |messages| messages.most())
    }

    /// Returns the most messages that a Call can ever be in.
    pub(super) fn most_of_call(&self) -> u32 {
        let state = self.messages.as_ref();
        state.map_or(1, |messages| messages.most_of_call())
    }

    /// Keeps a fragment, which has arrived. Gives it back if there are too many.
    pub(super) fn keep(&mut self, fragment: RecvBuf) -> Result<(), RecvBuf> {
        match &mut self.messages {
            Some(messages) => messages.keep(fragment),
            None => Err(fragment),
        }
    }

    /// Takes the fragments that are kept; if that is `stale`, only where their message was refused.
    pub(super) fn take_kept(&mut self, stale: bool) -> Kept {
        let messages = self.messages.as_mut();
        messages.map_or_else(Kept::default, |messages| messages.take_kept(stale))
    }

    /// Notes the effects of a Reply, as [`Credits::answered`]. Its credit word is no grant of Calls
    /// in version 2.
    #[inline]
    pub(crate) fn answered(&mut self, back: Option<Credit>, grant: Option<u32>) -> Option<u32> {
        let grant = grant.filter(|_| self.messages.is_none());
        self.credits.answered(back, grant)
    }

    /// Notes that a Call of the peer was dropped, as [`Grant::dropped`]. In version 2 no credit is
    /// lost with it: the Receive is all that it had.
    pub(crate) fn call_dropped(&mut self) -> bool {
        self.messages.is_some() || self.grant.dropped()
    }

    /// Returns whether a GRANT may be owed before the next message comes.
    pub(super) fn may_owe_grant(&self) -> bool {
        let messages = self.messages.as_ref();
        messages.is_some_and(|messages| messages.may_owe_grant())
    }

    /// Returns whether a GRANT is to be sent now, with that number of Receives posted: once, until
    /// it is posted or [`Self::not_granted`].
    pub(super) fn begin_grant(&mut self, posted: u32) -> bool {
        let messages = self.messages.as_mut();
        messages.is_some_and(|messages| messages.begin_grant(posted))
    }

    /// Notes that the GRANT cannot be sent.
    pub(super) fn not_granted(&mut self) {
        if let Some(messages) = &mut self.messages {
            messages.not_granted();
        }
    }
}
