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
    /// `rdma_vers` is not the connection's (RFC 8166, section 4.5.1).
    Version(u32),
    /// `rdma_proc`, in version 2 `rdma_htype`, has a value that the version does not define
    /// (RFC 8166, section 4.5.2).
    Procedure(u32),
    /// The reserved procedure `RDMA_MSGP` (RFC 8166, section 4.6.1).
    Msgp,
    /// The procedure `RDMA_DONE`, which is reserved (RFC 8166, section 4.6.2) but between peers
    /// that pull Replies: see [`peek_done`](crate::peek_done).
    Done,
    /// An `RDMA_ERROR` that cannot be decoded (RFC 8166, section 4.5).
    UnknownError,
    /// A message that may not come here: among the fragments of another, or properties after the
    /// last (version 2, sections 6.3.3 to 6.3.10).
    Sequence,
    /// An `rdma_remaining` that does not fit what has come, or the longest message (version 2,
    /// section 6.3.6); zero for an end that is not of the length that was left.
    Remaining(u32),
    /// The rest of a message that was refused (version 2, section 7.1.4).
    Discarded,
    /// More octets of properties than are received.
    PropertyOctets,
    /// A property whose value is none of its type (version 2, section 5.1).
    PropertyValue(u32),
    /// A handle to be made invalid that is none of the header's (version 2, section 6.5).
    InvHandle(u32),
    /// A Call chunk with a segment at another Position than zero (version 2, section 6.6.3).
    CallChunkPosition(u32),
    /// A Position that is less than the one before it (version 2, section 4.5.1.1).
    PositionOrder(u32),
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
            Self::Sequence => "message out of sequence",
            Self::Remaining(_) => "rdma_remaining does not fit",
            Self::Discarded => "rest of a refused message",
            Self::PropertyOctets => "too many octets of properties",
            Self::PropertyValue(_) => "bad value of a property",
            Self::InvHandle(_) => "handle to be made invalid is not in the header",
            Self::CallChunkPosition(_) => "Position in a Call chunk not zero",
            Self::PositionOrder(_) => "Positions not in ascending order",
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
