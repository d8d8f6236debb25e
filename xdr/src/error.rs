// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Why a received message is refused, or a header cannot be written.

use crate::{
    Direction,
    FixedHeader, //
};

/// Reason for which a received message is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DecodeError {
    /// Fewer octets than the smallest header; even the XID is not to be trusted (RFC 8166,
    /// section 4.5).
    Short,
    /// `rdma_vers` is not 1 (RFC 8166, section 4.5.1).
    Version(u32),
    /// `rdma_proc` has a value that version 1 does not define (RFC 8166, section 4.5.2).
    Procedure(u32),
    /// The reserved procedure `RDMA_MSGP` (RFC 8166, section 4.6.1).
    Msgp,
    /// The procedure `RDMA_DONE`, which is reserved (RFC 8166, section 4.6.2) but between peers
    /// that pull Replies: see [`peek_done`](crate::peek_done).
    Done,
    /// An `RDMA_ERROR` that cannot be decoded (RFC 8166, section 4.5).
    UnknownError,
    /// A list or array goes on past the end of the message.
    Truncated,
    /// The word in front of optional-data is neither 0 nor 1 (RFC 4506, section 4.19).
    Discriminator(u32),
    /// Offset plus length of a segment does not fit 64 bits.
    SegmentWraps,
    /// A Position that is not a multiple of four (RFC 8166, section 3.4.5).
    PositionUnaligned(u32),
    /// A Position other than zero inside the RPC Call header, where nothing is DDP-eligible.
    PositionInHeader(u32),
    /// A Read chunk that begins inside the one before it.
    PositionOverlaps(u32),
    /// A Position after the end of the Payload stream.
    PositionPastEnd(u32),
    /// A Position Zero Read chunk beside an inline Payload stream (RFC 8166, section 3.5.3).
    PositionZeroInline,
    /// Read chunks in a Reply (RFC 8166, section 4.3.1).
    ReadListInReply,
    /// `RDMA_NOMSG` without a chunk that holds the Payload stream (RFC 8166, sections 4.2.4 and
    /// 4.5.2).
    NoPayload,
    /// A Payload stream too short for an XID and a `msg_type`.
    ShortPayload,
    /// The XID of the RPC message differs from `rdma_xid` (RFC 8166, sections 4.2.1 and 4.5.2).
    XidMismatch,
    /// `msg_type` is neither `CALL` nor `REPLY`.
    MsgType(u32),
    /// More than [`Limits::read_segments`](crate::Limits::read_segments).
    ReadSegments,
    /// More than [`Limits::read_chunks`](crate::Limits::read_chunks).
    ReadChunks,
    /// More than [`Limits::write_chunks`](crate::Limits::write_chunks).
    WriteChunks,
    /// More than [`Limits::write_segments`](crate::Limits::write_segments).
    WriteSegments,
    /// More than [`Limits::chunk_segments`](crate::Limits::chunk_segments).
    ChunkSegments,
    /// More than [`Limits::read_chunk_bytes`](crate::Limits::read_chunk_bytes).
    ReadChunkBytes,
    /// More than [`Limits::read_list_bytes`](crate::Limits::read_list_bytes).
    ReadListBytes,
    /// More than [`Limits::write_chunk_bytes`](crate::Limits::write_chunk_bytes).
    WriteChunkBytes,
    /// More than [`Limits::reply_chunk_bytes`](crate::Limits::reply_chunk_bytes).
    ReplyChunkBytes,
}

impl DecodeError {
    /// Returns the reason in words, for a log line.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Short => "message shorter than a header",
            Self::Version(_) => "unsupported protocol version",
            Self::Procedure(_) => "undefined procedure",
            Self::Msgp => "reserved procedure RDMA_MSGP",
            Self::Done => "reserved procedure RDMA_DONE",
            Self::UnknownError => "undecodable RDMA_ERROR",
            Self::Truncated => "chunk list runs past the end",
            Self::Discriminator(_) => "bad optional-data discriminator",
            Self::SegmentWraps => "segment wraps the address space",
            Self::PositionUnaligned(_) => "Position not a multiple of four",
            Self::PositionInHeader(_) => "Position inside the RPC header",
            Self::PositionOverlaps(_) => "Read chunks overlap",
            Self::PositionPastEnd(_) => "Position past the end of the Payload stream",
            Self::PositionZeroInline => "Position Zero Read chunk beside an inline payload",
            Self::ReadListInReply => "Read list in a Reply",
            Self::NoPayload => "RDMA_NOMSG without a payload chunk",
            Self::ShortPayload => "payload shorter than an RPC header",
            Self::XidMismatch => "XIDs of header and RPC message differ",
            Self::MsgType(_) => "RPC message neither Call nor Reply",
            Self::ReadSegments => "too many Read segments",
            Self::ReadChunks => "too many Read chunks",
            Self::WriteChunks => "too many Write chunks",
            Self::WriteSegments => "too many Write segments",
            Self::ChunkSegments => "too many segments in a chunk",
            Self::ReadChunkBytes => "Read chunk too long",
            Self::ReadListBytes => "Read chunks together too long",
            Self::WriteChunkBytes => "Write chunk too long",
            Self::ReplyChunkBytes => "Reply chunk too long",
        }
    }
}

/// Part that a receiver plays for one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Awaits Replies, and discards bad ones without a word.
    Requester,
    /// Serves Calls, and answers bad ones.
    Responder,
}

/// A refused message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rejected {
    /// The fixed fields; `None` when the message is too short for them to be trusted.
    pub header: Option<FixedHeader>,
    /// Call or Reply; `None` when decoding did not get far enough to know.
    pub direction: Option<Direction>,
    /// The fault.
    pub reason: DecodeError,
}

/// Reason for which a header could not be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EncodeError {
    /// The buffer is too small.
    NoRoom {
        /// Octets that the whole header takes.
        needed: usize,
        /// Octets that the buffer has.
        room: usize,
    },
    /// A Position that no receiver would accept: not a multiple of four, inside the RPC Call
    /// header, or zero beside an inline Payload stream.
    Position(u32),
    /// `RDMA_NOMSG` without a chunk that can hold the Payload stream.
    NoPayload,
    /// More octets were written into a chunk than it has room for, or where there is none.
    Written,
}
