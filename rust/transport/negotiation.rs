// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The version of a connection, and the sizes of its messages.
//!
//! A client that may speak version 2 begins with its properties, and goes by the answer. A server
//! goes by the first message that it receives (sections 4.3 and 6.3.4 of the draft).

use crate::{
    kapi::ib::Received,
    transport::{
        chunk_limits::ChunkLimits,
        continued::Kept,
        endpoint::{
            Arrival,
            Endpoint,
            Handler, //
        },
        flow::charge::Charge,
        negotiated::{
            first,
            Inline,
            Why, //
        },
        send_buffer::Purpose,
        trace, //
    },
};
use kernel::prelude::*;
use xdr::{
    v2::{
        self,
        Properties,
        Undecoded, //
    },
    Direction,
    FixedHeader,
    RdmaError,
    Rejected,
    Role,
    Version, //
};

/// A peer that breaks the protocol.
struct Broken;

/// Returns the XID of a message; zero if it is too short for one.
fn xid(message: &[u8]) -> u32 {
    FixedHeader::peek(message).map_or(0, |header| header.xid)
}

impl<H: Handler> Endpoint<H> {
    /// Returns the version of the connection: 1 as long as it is not known.
    #[inline]
    pub(crate) fn version(&self) -> Version {
        self.negotiated().version().unwrap_or_default()
    }

    /// Returns why it is that.
    pub(crate) fn why(&self) -> Why {
        self.negotiated().why()
    }

    /// Notes that the server has not answered version 2 before.
    pub(crate) fn note_unanswered(&self) {
        self.negotiated().note_unanswered();
    }

    /// Returns whether a Call of the transport is the first exchange of the connection. In version
    /// 2 that of the properties is.
    pub(crate) fn begins_with_call(&self) -> bool {
        self.version() == Version::One
    }

    /// Returns whether Replies may be pulled: continued messages take the place of that in version
    /// 2.
    #[inline]
    pub(crate) fn may_pull(&self) -> bool {
        self.version() == Version::One
    }

    /// Returns whether a message may be split.
    pub(crate) fn may_continue(&self) -> bool {
        self.version() == Version::Two
    }

    /// Returns whether a header says if its message is a Call or a Reply, whatever is in it. In
    /// version 1 the RPC message says it, if there is one.
    pub(crate) fn tells_direction(&self) -> bool {
        self.version() == Version::Two
    }

    /// Returns whether a Call that nobody can serve is answered. In version 1 it is dropped.
    pub(crate) fn answers_unserved(&self) -> bool {
        self.version() == Version::Two
    }

    /// Sets the inline thresholds, when the connection is up.
    pub(crate) fn set_inline(&self, inline: &Inline) {
        self.negotiated().set_inline(inline);
    }

    /// Returns the bytes of the longest message that this end sends.
    #[inline]
    pub(crate) fn longest_send(&self) -> usize {
        self.negotiated().send() as usize
    }

    /// Returns the bytes of the longest message that it receives.
    #[inline]
    pub(crate) fn longest_receive(&self) -> usize {
        self.negotiated().receive() as usize
    }

    /// Returns the bytes of the longest Reply that it sends if no Reply chunk was offered.
    #[inline]
    pub(crate) fn longest_unoffered(&self) -> usize {
        self.negotiated().unoffered() as usize
    }

    /// Returns the bytes of the longest Payload stream without chunks, of a message in that
    /// direction, within a threshold.
    #[inline]
    pub(crate) fn longest_inline(&self, direction: Direction, threshold: usize) -> usize {
        let header = self.version().plain_size(direction);
        threshold.saturating_sub(header)
    }

    /// Returns what the peer takes of the chunks of a Call.
    #[inline]
    pub(crate) fn chunk_limits(&self) -> ChunkLimits {
        match self.version() {
            Version::One => ChunkLimits::NONE,
            Version::Two => self.lock().flow.chunk_limits(),
        }
    }

    /// Sets the range of versions in an error that tells it.
    pub(super) fn tell_versions(&self, error: &mut RdmaError) {
        if let RdmaError::Version { high, .. } = error {
            let negotiated = self.negotiated();
            let spoken = negotiated.version().unwrap_or(negotiated.highest());
            *high = spoken.number();
        }
    }

    /// Takes a received message in.
    #[inline]
    pub(super) fn take_in(&self, message: Received<'_>) {
        let arrived = match self.negotiated().version() {
            Some(Version::One) => Ok(Some((Arrival::Message, false))),
            version => self.arrive(version, &message),
        };
        let (arrival, grants) = match arrived {
            // The last message of a Reply may invalidate a key, and no other (section 6.5 of the
            // draft).
            Ok(None | Some((Arrival::Taken, _))) if message.has_invalidated() => {
                return self.handler().broken(self);
            }
            Ok(Some(arrived)) => arrived,
            Ok(None) => return self.keep(message),
            Err(Broken) => return self.handler().broken(self),
        };
        self.handler().received(self, message, arrival);
        if grants {
            self.grant_if_owed();
        }
    }

    /// Takes note of a message on a connection that speaks version 2, or may come to that. Returns
    /// what it is, and whether a GRANT may be owed for it; none for a fragment, which is to be
    /// kept.
    #[inline(never)]
    fn arrive(
        &self,
        version: Option<Version>,
        message: &Received<'_>,
    ) -> Result<Option<(Arrival, bool)>, Broken> {
        let first = version.is_none().then(|| xid(message.bytes()));
        let version = version.or_else(|| self.settle(message.bytes()));
        match (version, H::ROLE) {
            (Some(Version::Two), _) => (),
            // Its ERR_VERS has said what it has to say.
            (Some(Version::One), Role::Requester) => {
                self.handler().negotiated(self, xid(message.bytes()));
                return Ok(Some((Arrival::Taken, false)));
            }
            (None, Role::Requester) => return Err(Broken),
            (Some(Version::One) | None, Role::Responder) => {
                return Ok(Some((Arrival::Message, false)));
            }
        }
        let (arrived, owes, waits) = {
            let mut queue = self.lock();
            let arrived = queue.flow.arrive(message.bytes());
            (arrived, queue.flow.may_owe_grant(), queue.has_pending())
        };
        let arrived = arrived.map_err(|_| Broken)?;
        // No answer to one tells the credits that are left; a responder answers most others.
        let tells = H::ROLE == Role::Requester || matches!(arrived, Ok(v2::Received::Grant(_)));
        let arrival = self.note(arrived, message.bytes())?;
        // Not before the sizes are known.
        if let Some(xid) = first {
            self.handler().negotiated(self, xid);
        }
        self.use_credits(waits);
        Ok(arrival.map(|arrival| (arrival, tells && owes)))
    }

    /// Takes note of what a message of version 2 is. None for a fragment.
    #[inline]
    fn note(
        &self,
        arrived: Result<v2::Received<'_, Undecoded>, Rejected>,
        message: &[u8],
    ) -> Result<Option<Arrival>, Broken> {
        Ok(Some(match arrived {
            Err(rejected) => {
                // Outside of the lock.
                drop(self.take_kept(true));
                Arrival::Refused(rejected.reason)
            }
            Ok(v2::Received::Message {
                before: 0,
                message: whole,
            }) => {
                if whole.is_error && v2::refuses_properties(message) {
                    self.count_as_not_sent()?;
                }
                Arrival::Message
            }
            Ok(v2::Received::Message { message: last, .. }) => {
                match KBox::new(self.take_kept(false), GFP_NOWAIT) {
                    Ok(kept) => Arrival::Last(last, kept),
                    // There is no memory for a list of them.
                    Err(_) => return Err(Broken),
                }
            }
            Ok(v2::Received::Properties { set, .. }) => {
                let theirs = self.lock().flow.learn(&set);
                self.apply(&theirs);
                trace::properties(H::ROLE, self.cqs().1, &theirs);
                Arrival::Taken
            }
            Ok(v2::Received::Grant(credits)) => {
                trace::grant(H::ROLE, || (self.cqs().1, credits, false));
                Arrival::Taken
            }
            Ok(v2::Received::Fragment(part)) => {
                trace::fragment(H::ROLE, || (self.cqs().1, part.xid, part.remaining));
                return Ok(None);
            }
        }))
    }

    /// Lets go on what a message that has arrived may have brought credits for; `waits` says
    /// whether work waited for its turn then.
    fn use_credits(&self, waits: bool) {
        match (waits, H::ROLE) {
            (true, _) => self.make_room(),
            (false, Role::Requester) => self.handler().sq_space(self),
            (false, Role::Responder) => (),
        }
    }

    /// Keeps a fragment.
    #[cold]
    fn keep(&self, fragment: Received<'_>) {
        let kept = self.lock().flow.keep(fragment.keep());
        if kept.is_err() {
            return self.handler().broken(self);
        }
        self.handler().kept(self);
        self.grant_if_owed();
    }

    /// Takes the fragments of the message that the peer has begun; if that is `stale`, only where
    /// it was refused.
    pub(super) fn take_kept(&self, stale: bool) -> Kept {
        self.lock().flow.take_kept(stale)
    }

    /// Settles the version by the first message. None if it stays open.
    fn settle(&self, message: &[u8]) -> Option<Version> {
        let version = first(H::ROLE, message)?;
        self.lock().flow.settle(version);
        self.negotiated().settle(version);
        match version {
            // Errors may wait, which now need no credits.
            Version::One => self.make_room(),
            Version::Two => self.apply(&Properties::default()),
        }
        Some(version)
    }

    /// Applies the properties of both ends; of this one the defaults if the peer has refused its
    /// own, which then count as not sent.
    fn apply(&self, theirs: &Properties) {
        let mut own = match self.lock().flow.has_refused() {
            true => Properties::default(),
            false => self.properties(),
        };
        // Buffers do not grow by what the peer believes.
        own.max_send = own.max_send.min(self.plan().send_size as u32);
        self.negotiated().apply(&own, theirs);
    }

    /// Notes that the peer has refused the properties of this end (section 7.2.2 of the draft).
    /// With the defaults it may send more than the Receives of this end may hold.
    #[cold]
    fn count_as_not_sent(&self) -> Result<(), Broken> {
        let theirs = self.lock().flow.refuse();
        self.apply(&theirs);
        match self.plan().receive_size < Properties::default().min_receive as usize {
            true => Err(Broken),
            false => Ok(()),
        }
    }

    /// Returns the properties of this end.
    fn properties(&self) -> Properties {
        let (plan, calls) = (self.plan(), &self.handler().bounds().calls);
        Properties {
            max_send: plan.send_size as u32,
            min_receive: plan.receive_size as u32,
            segment_bytes: calls.read_chunk_bytes,
            segments: match H::ROLE {
                // In its own Calls, with a region for each: those of the peer have none.
                Role::Requester => plan.qp.max_regs,
                Role::Responder => calls.chunk_segments as u32,
            },
            reverse: H::REVERSE,
        }
    }

    /// Begins the connection with the properties of this end, for a requester. May sleep.
    pub(crate) fn offer_version_2(&self, xid: u32) -> Result {
        let mut buffer = self.send_buffer(Purpose::Message)?;
        buffer.properties(Charge::Taken, xid, &self.properties())?;
        if !self.lock().flow.take_message() {
            return Err(ENOTCONN);
        }
        buffer.send(0)
    }

    /// Answers with the properties of this end, for a responder. May sleep.
    pub(crate) fn send_properties(&self, xid: u32) -> Result {
        let mut buffer = self.send_buffer(Purpose::Message)?;
        buffer.properties(Charge::AtPost, xid, &self.properties())?;
        buffer.send(0)
    }

    /// Sends a GRANT, if the peer is owed one that no other message tells. Does not sleep; without
    /// a buffer it is sent when the next message comes.
    pub(crate) fn grant_if_owed(&self) {
        // Nothing of version 2 is sent before it is agreed on (section 4.3.3).
        if self.negotiated().version().is_none() {
            return;
        }
        let begun = self.lock().flow.begin_grant(self.posted_receives());
        if !begun {
            return;
        }
        let sent = self.send_buffer(Purpose::Queued).and_then(|mut buffer| {
            buffer.grant()?;
            buffer.send(0)
        });
        if sent.is_err() {
            self.lock().flow.not_granted();
        }
    }
}
