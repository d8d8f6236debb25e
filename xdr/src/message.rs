// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Messages: what a header says, Calls, Replies and errors.

use crate::{
    wire::{
        Reader,
        Writer, //
    },
    DecodeError,
    Limits,
    ReadChunk,
    ReadList,
    Segment,
    WriteChunk,
    WriteList, //
};

/// A decoded message, which borrows the received bytes.
#[derive(Clone, Copy, Debug)]
pub enum Message<'a> {
    /// An RPC Call: `RDMA_MSG` or `RDMA_NOMSG` from a requester.
    Call(Call<'a>),
    /// An RPC Reply: `RDMA_MSG` or `RDMA_NOMSG` from a responder.
    Reply(Reply<'a>),
    /// `RDMA_ERROR` from a responder. An end that is no requester discards it (RFC 8166,
    /// section 4.2.4).
    Error(ErrorMessage),
}

/// An RPC Call.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// `rdma_xid`; an inline Payload stream begins with the same XID, if the message begins there.
    pub xid: u32,
    /// Credits that the requester asks for; any value.
    pub credits: u32,
    /// `rdma_inv_handle`: a handle of this header that the responder may make invalid with its
    /// Reply; zero if there is none. Version 1 does not say it.
    pub inv_handle: Option<u32>,
    /// Arguments to pull.
    pub reads: ReadList<'a>,
    /// Room for results.
    pub writes: WriteList<'a>,
    /// Room for a Long Reply.
    pub reply_chunk: Option<WriteChunk<'a>>,
    /// Place of the RPC message.
    pub payload: CallPayload<'a>,
}

impl<'a> Call<'a> {
    /// Returns whether all of the Call is in the message.
    pub const fn has_no_chunks(&self) -> bool {
        let inline = matches!(self.payload, CallPayload::Inline(_));
        inline && self.reads.is_empty() && self.offer().is_empty()
    }

    /// Returns the room that the Call offers for its results.
    pub const fn offer(&self) -> Offer<'a> {
        Offer {
            writes: self.writes,
            reply_chunk: self.reply_chunk,
        }
    }
}

/// Room that a requester offers for the results of its Call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offer<'a> {
    /// Room for results that are placed directly.
    pub writes: WriteList<'a>,
    /// Room for a Long Reply.
    pub reply_chunk: Option<WriteChunk<'a>>,
}

impl Offer<'_> {
    /// Checks the chunks against `limits`.
    pub(crate) fn check(&self, limits: &Limits) -> Result<(), DecodeError> {
        self.writes.check(limits)?;
        self.reply_chunk.map_or(Ok(()), |chunk| {
            let max_bytes = limits.reply_chunk_bytes;
            chunk.check(limits, max_bytes, DecodeError::ReplyChunkBytes)
        })
    }

    /// Returns whether no chunk is offered.
    pub const fn is_empty(&self) -> bool {
        self.writes.is_empty() && self.reply_chunk.is_none()
    }
}

/// Place of the RPC message of a Call.
#[derive(Clone, Copy, Debug)]
pub enum CallPayload<'a> {
    /// Behind the header (`RDMA_MSG`).
    Inline(Inline<'a>),
    /// In requester memory: a Position Zero Read chunk (`RDMA_NOMSG`; RFC 8166, section 3.5.3).
    PositionZero(ReadChunk<'a>),
}

/// An RPC Reply, without Read list except where peers agreed on that (see
/// [`Call::as_provided_reply`]).
#[derive(Clone, Copy, Debug)]
pub struct Reply<'a> {
    /// `rdma_xid`; an inline Payload stream begins with the same XID, if the message begins there.
    pub xid: u32,
    /// Credits that the responder grants; any value, zero included.
    pub credits: u32,
    /// Write chunks as returned.
    pub writes: WriteList<'a>,
    /// Reply chunk as returned.
    pub reply_chunk: Option<WriteChunk<'a>>,
    /// Place of the RPC message.
    pub payload: ReplyPayload<'a>,
}

/// Place of the RPC message of a Reply.
#[derive(Clone, Copy, Debug)]
pub enum ReplyPayload<'a> {
    /// Behind the header (`RDMA_MSG`).
    Inline(Inline<'a>),
    /// In the Reply chunk (`RDMA_NOMSG`; RFC 8166, section 3.5.3). The requester learns its length
    /// from [`Reply::reply_written`]. To an end that offers no Reply chunks this is a Call
    /// without a Payload stream, an XDR error (RFC 8166, section 4.5.2).
    ReplyChunk,
    /// In responder memory: a Read chunk that the requester pulls. No message is decoded as such
    /// a Reply at once: see [`Call::as_provided_reply`].
    Provided(ReadChunk<'a>),
}

/// Place that the Payload stream of a Reply is put into.
#[derive(Clone, Copy, Debug)]
pub enum ReplyPlace<'a> {
    /// Behind the header.
    Inline,
    /// In the Reply chunk, of which it takes that many octets.
    ReplyChunk(u32),
    /// In a Read chunk of these segments, since there is no room for it in what is offered.
    Provided(&'a [Segment]),
}

/// A Payload stream behind the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inline<'a> {
    /// Octets in front of it in the received message, which is the header's length.
    pub offset: usize,
    /// The stream; at least [`RpcPrefix::SIZE`](crate::RpcPrefix::SIZE) octets, and of a message of
    /// version 2 that continues another at least four.
    pub bytes: &'a [u8],
}

/// Error that an `RDMA_ERROR` message reports (RFC 8166, section 4.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RdmaError {
    /// `ERR_VERS`: the responder supports the versions from `low` to `high`, both inclusive
    /// (section 4.5.1). A peer may send any two values.
    Version {
        /// `rdma_vers_low`.
        low: u32,
        /// `rdma_vers_high`.
        high: u32,
    },
    /// `ERR_CHUNK`: the responder could not parse the header or cannot reply (sections 4.5.2 and
    /// 4.5.3). Version 2 has the others for that, each with its reason.
    Chunk,
    /// `ERR_BAD_XDR`: the responder could not parse the header (version 2, section 7.2.1).
    BadXdr,
    /// `ERR_BAD_PROPVAL`: a property has no good value (version 2, section 7.2.2).
    BadPropertyValue,
    /// `ERR_INVAL_HTYPE`: a header type that is not known (version 2, section 7.1.3).
    InvalidHeaderType,
    /// `ERR_INVAL_CONT`: a message that may not come there (version 2, section 7.1.4).
    InvalidContinuation,
    /// `ERR_READ_CHUNKS`: more Read chunks than the responder reads (version 2, section 7.3.1).
    ReadChunks {
        /// `rdma_max_chunks`.
        max: u32,
    },
    /// `ERR_WRITE_CHUNKS`: more Write chunks than the responder fills (version 2, section 7.3.2).
    WriteChunks {
        /// `rdma_max_chunks`.
        max: u32,
    },
    /// `ERR_SEGMENTS`: more segments than the responder supports (version 2, section 7.3.3).
    Segments {
        /// `rdma_max_segments`.
        max: u32,
    },
    /// `ERR_WRITE_RESOURCE`: a Write chunk is too short for its result (version 2, section 7.3.4).
    WriteResource {
        /// `rdma_chunk_index`, from one; zero if the responder does not know.
        index: u32,
        /// `rdma_length_needed`, in octets; zero likewise.
        needed: u32,
    },
    /// `ERR_REPLY_RESOURCE`: there is no way for a Reply of that length (version 2, section 7.3.5).
    ReplyResource {
        /// `rdma_length_needed`, in octets; zero if the responder does not know.
        needed: u32,
    },
    /// `ERR_VERS_MISMATCH`: another version than the connection's (version 2, section 7.1.2).
    VersionMismatch,
    /// `ERR_SYSTEM`: another problem of the responder's (version 2, section 7.4.1).
    System,
}

/// An `RDMA_ERROR` message, which completes the RPC of its XID (RFC 8166, section 4.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorMessage {
    /// `rdma_xid` of the request that failed.
    pub xid: u32,
    /// `rdma_vers` of the request that failed.
    pub version: u32,
    /// `rdma_credit`: the responder's grant.
    pub credits: u32,
    /// The error reported.
    pub error: RdmaError,
}

/// The fixed header fields, the prefix of every message, as received and not yet judged (RFC 8166,
/// section 4.2).
///
/// They have the same meaning and place in all versions of the protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FixedHeader {
    /// `rdma_xid`, a copy of the RPC message's transaction ID (section 4.2.1).
    pub xid: u32,
    /// `rdma_vers` (section 4.2.2).
    pub version: u32,
    /// `rdma_credit`: credits requested in a Call, granted in a Reply (sections 3.3.1 and 4.2.3).
    /// A peer may send any value; whoever acts on it clamps it first.
    pub credits: u32,
    /// `rdma_proc` (section 4.2.4).
    pub procedure: u32,
}

impl FixedHeader {
    /// Octets of the fixed fields.
    pub const SIZE: usize = 16;

    /// Reads the fixed fields of a received message and nothing behind them; `None` when `message`
    /// is shorter than they are.
    pub fn peek(message: &[u8]) -> Option<Self> {
        Self::read(&mut Reader::new(message)).ok()
    }

    /// Stamps `rdma_credit` into an encoded message, which has fixed fields already.
    pub fn set_credits(message: &mut [u8], credits: u32) {
        if let Some(field) = message.get_mut(8..12) {
            field.copy_from_slice(&credits.to_be_bytes());
        }
    }

    /// Takes the fixed fields.
    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let [xid, version, credits, procedure] = reader.words()?;
        Ok(Self {
            xid,
            version,
            credits,
            procedure,
        })
    }

    /// Puts the fixed fields.
    pub(crate) fn write(&self, writer: &mut Writer<'_>) {
        writer.words([self.xid, self.version, self.credits, self.procedure]);
    }
}
