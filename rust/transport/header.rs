// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The headers of messages: those of this end are written, and those of the peer decoded, in the
//! version of the connection. The credit word is written when a message is posted, since the peer
//! goes by the latest one that it receives.

use crate::transport::{
    endpoint::{
        Endpoint,
        Handler, //
    },
    flow::charge::Charge,
    send_buffer::SendBuffer,
    work, //
};
use core::iter;
use kernel::prelude::*;
use xdr::{
    encode_done,
    encode_plain,
    v2::{
        self,
        Properties,
        Undecoded, //
    },
    DecodeError,
    EncodeError,
    Encoder,
    ErrorMessage,
    FixedHeader,
    Message,
    Offer,
    RdmaError,
    Rejected,
    Role,
    Segment,
    Version, //
};

pub(crate) use xdr::{
    Direction,
    ReplyPlace, //
};

/// The credit word before that.
const UNSTAMPED: u32 = 0;

/// The chunks of a Call.
#[derive(Default)]
pub(crate) struct CallChunks<'a> {
    /// A Read chunk, if there is one: with Position Zero it has the whole Call.
    pub(crate) read: &'a [Segment],
    pub(crate) position: usize,
    /// A Write chunk, if there is one.
    pub(crate) write: &'a [Segment],
    /// The Reply chunk, if there is one.
    pub(crate) reply: &'a [Segment],
    /// The handle of a segment of these that the server may invalidate, or zero. Version 1 does not
    /// say it.
    pub(crate) invalidate: u32,
}

/// Why a Call is not executed, or its Reply not sent. Version 1 has `ERR_CHUNK` for all but the
/// first (RFC 8166, section 4.5.3).
#[derive(Clone, Copy)]
pub(crate) enum Reason {
    /// Its message is malformed, as that error says.
    Malformed(ErrorMessage),
    /// Its chunks carry arguments that are not eligible (RFC 8267), or the message is none.
    NotEligible,
    /// Its chunks cannot be served, or its Reply has more parts than can be posted.
    Chunks,
    /// Nobody serves it now.
    NoService,
    /// A Write chunk has no room for its result, which is so long: the first such chunk, by its
    /// number from one on.
    WriteRoom { index: u32, needed: u32 },
    /// It has no room for its Reply, which is so long.
    ReplyRoom { needed: u32 },
    /// Its chunks have broken a connection before.
    Poisonous,
}

/// A Call that is refused.
#[derive(Clone, Copy)]
pub(crate) struct Refusal {
    pub(crate) xid: u32,
    pub(crate) reason: Reason,
}

impl Refusal {
    /// Returns whether the version of the Call is the reason.
    pub(crate) fn is_of_version(&self) -> bool {
        let error = match &self.reason {
            Reason::Malformed(message) => message.error,
            _ => return false,
        };
        matches!(
            error,
            RdmaError::Version { .. } | RdmaError::VersionMismatch
        )
    }

    fn message(&self, version: Version) -> ErrorMessage {
        let error = match (version, self.reason) {
            (_, Reason::Malformed(message)) => return message,
            (Version::One, _) => RdmaError::Chunk,
            (Version::Two, Reason::NotEligible) => RdmaError::BadXdr,
            (Version::Two, Reason::WriteRoom { index, needed }) => {
                RdmaError::WriteResource { index, needed }
            }
            (Version::Two, Reason::ReplyRoom { needed }) => RdmaError::ReplyResource { needed },
            (Version::Two, Reason::Chunks | Reason::NoService | Reason::Poisonous) => {
                RdmaError::System
            }
        };
        ErrorMessage {
            xid: self.xid,
            version: version.number(),
            credits: UNSTAMPED,
            error,
        }
    }
}

impl From<ErrorMessage> for Refusal {
    fn from(message: ErrorMessage) -> Self {
        Self {
            xid: message.xid,
            reason: Reason::Malformed(message),
        }
    }
}

impl<H: Handler> Endpoint<H> {
    /// Returns the rooms for the Payload stream of a message that is split: of its last message,
    /// which has a header of `header` bytes, and of each of the others. None in version 1.
    pub(super) fn fragment_rooms(&self, header: usize) -> Option<(usize, usize)> {
        let send = self.longest_send();
        match self.version() {
            Version::One => None,
            Version::Two => {
                let room = send.saturating_sub(v2::FRAGMENT_HEADER);
                Some((send.saturating_sub(header), room))
            }
        }
    }

    /// Decodes a message that has arrived.
    #[inline]
    pub(crate) fn decode<'m>(
        &self,
        message: &'m [u8],
        undecoded: Undecoded,
    ) -> Result<Message<'m>, Rejected> {
        let bounds = self.handler().bounds();
        match (self.version(), H::ROLE) {
            (Version::One, Role::Requester) => Message::decode(message, &bounds.replies),
            (Version::One, Role::Responder) => Message::decode(message, &bounds.calls),
            (Version::Two, _) => bounds.decode(message, undecoded),
        }
    }

    /// Returns the bytes of the chunks of an offer in the header of an inline Reply, at most.
    #[inline]
    pub(crate) fn returned_size(&self, offer: &Offer<'_>) -> usize {
        offer.returned_size(self.version())
    }

    /// Returns the part that this end plays for a malformed message, and the error that answers it,
    /// if one does. `awaits` says whether a Call of this end awaits a Reply with an XID: what does
    /// not tell its direction, and no Call awaits, can only be a Call.
    pub(crate) fn judge(
        &self,
        rejected: &Rejected,
        awaits: impl FnOnce(u32) -> bool,
    ) -> (Role, Option<Refusal>) {
        let (role, mut answer) = match self.version() {
            Version::One => {
                let tells = rejected.direction.is_some() || rejected.reason.answer().is_none();
                let role = match rejected.header {
                    Some(header) if !tells && !awaits(header.xid) => Role::Responder,
                    _ => Role::Requester,
                };
                (role, rejected.error_message(role, UNSTAMPED))
            }
            Version::Two => {
                let role = match rejected.direction {
                    Some(Direction::Reply) => Role::Requester,
                    _ => Role::Responder,
                };
                let bounds = self.handler().bounds();
                (role, v2::error_message(rejected, bounds, UNSTAMPED))
            }
        };
        if let (DecodeError::Version(_), Some(message)) = (rejected.reason, &mut answer) {
            self.tell_versions(&mut message.error);
        }
        (role, answer.map(Refusal::from))
    }
}

/// Writers of headers: each returns the room behind its header. `EMSGSIZE` if there is none.
impl<H: Handler> SendBuffer<'_, H> {
    /// Writes the header of a message without chunks.
    #[inline]
    pub(crate) fn plain(&mut self, direction: Direction, xid: u32) -> Result<&mut [u8]> {
        let version = self.version();
        self.write_header(direction.into(), |to| match version {
            Version::One => encode_plain(to, xid, UNSTAMPED),
            Version::Two => v2::encode_plain(to, direction, xid, UNSTAMPED),
        })
    }

    /// Writes the header of a Call.
    pub(crate) fn call(&mut self, xid: u32, chunks: &CallChunks<'_>) -> Result<&mut [u8]> {
        let position = u32::try_from(chunks.position).map_err(|_| EMSGSIZE)?;
        let version = self.version();
        let long = position == 0 && !chunks.read.is_empty();
        self.write_header(Charge::Taken, |to| {
            let (mut reads, listed) = match (version, long) {
                (Version::One, true) => (Encoder::nomsg(to, xid, UNSTAMPED), chunks.read),
                (Version::One, false) => (Encoder::msg(to, xid, UNSTAMPED), chunks.read),
                (Version::Two, true) => {
                    let handle = chunks.invalidate;
                    let call = Encoder::call_external(to, xid, UNSTAMPED, handle, chunks.read);
                    (call, &[][..])
                }
                (Version::Two, false) => {
                    let call = Encoder::call_inline(to, xid, UNSTAMPED, chunks.invalidate);
                    (call, chunks.read)
                }
            };
            if !listed.is_empty() {
                reads.read_chunk(position, listed);
            }
            let mut writes = reads.end_reads();
            if !chunks.write.is_empty() {
                writes.write_chunk(chunks.write);
            }
            let reply = writes.end_writes();
            match chunks.reply {
                [] => reply.no_reply_chunk(),
                segments => reply.reply_chunk(segments),
            }
        })
    }

    /// Writes the header of a Reply, which returns the chunks of its Call; `written` are the
    /// numbers of bytes in the Write chunks.
    #[inline]
    pub(crate) fn reply(
        &mut self,
        xid: u32,
        offer: &Offer<'_>,
        written: impl IntoIterator<Item = u32>,
        place: ReplyPlace<'_>,
    ) -> Result<&mut [u8]> {
        let version = self.version();
        self.write_header(Charge::AtPost, |to| match version {
            Version::One => offer.encode_reply(to, xid, UNSTAMPED, written, place),
            Version::Two => encode_reply_2(to, xid, offer, written, place),
        })
    }

    /// Writes an error message.
    pub(crate) fn refuse(&mut self, refusal: &Refusal) -> Result {
        let version = self.version();
        let message = refusal.message(version);
        self.write_header(Charge::AtPost, |to| match version {
            Version::One => message.encode(to),
            Version::Two => v2::encode_error(&message, to),
        })?;
        Ok(())
    }

    /// Writes an RDMA_DONE.
    pub(crate) fn done(&mut self, xid: u32) -> Result {
        self.write_header(Charge::Taken, |to| encode_done(to, xid, UNSTAMPED))?;
        Ok(())
    }

    /// Writes the header of a fragment, in version 2.
    pub(super) fn fragment(
        &mut self,
        direction: Direction,
        xid: u32,
        remaining: u32,
    ) -> Result<&mut [u8]> {
        self.write_header(direction.into(), |to| {
            v2::encode_fragment(to, direction, xid, UNSTAMPED, remaining)
        })
    }

    /// Writes the properties of this end, in version 2.
    pub(super) fn properties(&mut self, charge: Charge, xid: u32, own: &Properties) -> Result {
        self.write_header(charge, |to| v2::encode_properties(own, to, xid, UNSTAMPED))?;
        Ok(())
    }

    /// Writes a GRANT, in version 2.
    pub(super) fn grant(&mut self) -> Result {
        self.write_header(Charge::Beside, |to| v2::encode_grant(to, UNSTAMPED))?;
        Ok(())
    }

    #[inline]
    fn write_header(
        &mut self,
        charge: Charge,
        encode: impl FnOnce(&mut [u8]) -> Result<usize, EncodeError>,
    ) -> Result<&mut [u8]> {
        let header = encode(self.bytes()).map_err(|_| EMSGSIZE)?;
        self.begin(charge, header);
        self.bytes().get_mut(header..).ok_or(EMSGSIZE)
    }
}

impl work::Message {
    /// Makes a Reply of version 2 an error: it has no room, of which it needs `needed` bytes
    /// (section 7.3.5 of the draft). What is written for it goes out in front. Returns its XID.
    pub(super) fn refuse_room(&mut self, needed: u32) -> u32 {
        let to = match &mut self.buffer {
            Some(buffer) => buffer.as_mut_slice(),
            None => &mut [],
        };
        let xid = FixedHeader::peek(to).map_or(0, |header| header.xid);
        let reason = Reason::ReplyRoom { needed };
        let refusal = Refusal { xid, reason };
        // A buffer has room for the header of any error.
        self.len = v2::encode_error(&refusal.message(Version::Two), to).unwrap_or(0);
        // Section 6.5: errors invalidate nothing.
        self.invalidate = None;
        xid
    }
}

/// Writes the header of a Reply of version 2: a Write chunk into which nothing was written comes
/// back empty (the binding, section 5.1.2.1).
#[inline(never)]
fn encode_reply_2(
    to: &mut [u8],
    xid: u32,
    offer: &Offer<'_>,
    written: impl IntoIterator<Item = u32>,
    place: ReplyPlace<'_>,
) -> Result<usize, EncodeError> {
    let mut written = written.into_iter().peekable();
    let plain = offer.is_empty() && matches!(place, ReplyPlace::Inline);
    if plain && written.peek().is_none() {
        return v2::encode_plain(to, Direction::Reply, xid, UNSTAMPED);
    }
    let written = written.map(|n| (n != 0).then_some(n));
    let unused = iter::repeat_n(None, offer.writes.chunk_count());
    let long = match place {
        ReplyPlace::ReplyChunk(octets) => Some(octets),
        ReplyPlace::Inline | ReplyPlace::Provided(_) => None,
    };
    let written = Iterator::chain(written, unused);
    v2::encode_reply(to, xid, UNSTAMPED, offer, written, long)
}
