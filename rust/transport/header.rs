// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The headers of this end's messages. Their credit word is written when they are posted, since the
//! peer goes by the latest one that it receives.

use crate::transport::{
    endpoint::Handler,
    send_buffer::SendBuffer, //
};
use kernel::prelude::*;
use xdr::{
    encode_done,
    encode_plain,
    EncodeError,
    Encoder,
    ErrorMessage,
    Offer,
    RdmaError,
    Segment,
    MIN_HEADER,
    VERSION, //
};

pub(crate) use xdr::{
    header_size,
    Direction,
    ReplyPlace, //
};

/// The credit word before that.
const UNSTAMPED: u32 = 0;

/// Returns the length of a message without chunks that carries a Payload stream of `len` bytes.
#[inline]
pub(crate) fn inline_len(len: usize) -> usize {
    MIN_HEADER.saturating_add(len)
}

/// Returns the length of the longest Payload stream that a message without chunks carries, for an
/// inline threshold.
pub(crate) fn longest_inline(threshold: usize) -> usize {
    threshold.saturating_sub(MIN_HEADER)
}

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
}

/// Why a Call is not executed, or its Reply not sent. Version 1 has `ERR_CHUNK` for all but the
/// first (RFC 8166, section 4.5.3).
#[derive(Clone, Copy)]
pub(crate) enum Reason {
    /// Its message is malformed, as that error says.
    Malformed(ErrorMessage),
    /// Its chunks carry arguments or results that are not eligible (RFC 8267), or cannot be served.
    Chunks,
    /// It has no room for its Reply.
    ReplyRoom,
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
        matches!(&self.reason, Reason::Malformed(message) if message.error != RdmaError::Chunk)
    }

    fn message(&self) -> ErrorMessage {
        match self.reason {
            Reason::Malformed(message) => message,
            Reason::Chunks | Reason::ReplyRoom | Reason::Poisonous => ErrorMessage {
                xid: self.xid,
                version: VERSION,
                credits: UNSTAMPED,
                error: RdmaError::Chunk,
            },
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

/// Writers of headers: each returns the room behind its header. `EMSGSIZE` if there is none.
impl<H: Handler> SendBuffer<'_, H> {
    /// Writes the header of a message without chunks.
    pub(crate) fn plain(&mut self, direction: Direction, xid: u32) -> Result<&mut [u8]> {
        self.write_header(direction, |to| encode_plain(to, xid, UNSTAMPED))
    }

    /// Writes the header of a Call.
    pub(crate) fn call(&mut self, xid: u32, chunks: &CallChunks<'_>) -> Result<&mut [u8]> {
        let position = u32::try_from(chunks.position).map_err(|_| EMSGSIZE)?;
        self.write_header(Direction::Call, |to| {
            let mut reads = match chunks.read {
                [_, ..] if position == 0 => Encoder::nomsg(to, xid, UNSTAMPED),
                _ => Encoder::msg(to, xid, UNSTAMPED),
            };
            if !chunks.read.is_empty() {
                reads.read_chunk(position, chunks.read);
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
        self.write_header(Direction::Reply, |to| {
            offer.encode_reply(to, xid, UNSTAMPED, written, place)
        })
    }

    /// Writes an RDMA_ERROR.
    pub(crate) fn refuse(&mut self, refusal: &Refusal) -> Result {
        let message = refusal.message();
        self.write_header(Direction::Reply, |to| message.encode(to))?;
        Ok(())
    }

    /// Writes an RDMA_DONE.
    pub(crate) fn done(&mut self, xid: u32) -> Result {
        self.write_header(Direction::Call, |to| encode_done(to, xid, UNSTAMPED))?;
        Ok(())
    }

    #[inline]
    fn write_header(
        &mut self,
        direction: Direction,
        encode: impl FnOnce(&mut [u8]) -> Result<usize, EncodeError>,
    ) -> Result<&mut [u8]> {
        let header = encode(self.bytes()).map_err(|_| EMSGSIZE)?;
        self.begin(direction, header);
        self.bytes().get_mut(header..).ok_or(EMSGSIZE)
    }
}
