// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Whole received messages: Calls, Replies and errors.

use crate::{
    ReadChunk,
    ReadList,
    WriteChunk,
    WriteList, //
};

/// A decoded message. It borrows the received bytes.
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
    /// `rdma_xid`; an inline Payload stream begins with the same XID.
    pub xid: u32,
    /// Credits that the requester asks for; any value.
    pub credits: u32,
    /// Arguments to pull.
    pub reads: ReadList<'a>,
    /// Room for results.
    pub writes: WriteList<'a>,
    /// Room for a Long Reply.
    pub reply_chunk: Option<WriteChunk<'a>>,
    /// Where the RPC message is.
    pub payload: CallPayload<'a>,
}

impl Call<'_> {
    /// Whether all of it is in the message.
    #[inline]
    pub const fn has_no_chunks(&self) -> bool {
        self.reads.is_empty() && self.writes.is_empty() && self.reply_chunk.is_none()
    }
}

/// Where the RPC message of a Call is.
#[derive(Clone, Copy, Debug)]
pub enum CallPayload<'a> {
    /// Behind the header (`RDMA_MSG`).
    Inline(Inline<'a>),
    /// In requester memory: a Position Zero Read chunk (`RDMA_NOMSG`; RFC 8166, section 3.5.3).
    PositionZero(ReadChunk<'a>),
}

/// An RPC Reply. It has no Read list, but where peers agreed on that (see
/// [`Call::as_provided_reply`]).
#[derive(Clone, Copy, Debug)]
pub struct Reply<'a> {
    /// `rdma_xid`; an inline Payload stream begins with the same XID.
    pub xid: u32,
    /// Credits that the responder grants; any value, zero included.
    pub credits: u32,
    /// Write chunks as returned.
    pub writes: WriteList<'a>,
    /// Reply chunk as returned.
    pub reply_chunk: Option<WriteChunk<'a>>,
    /// Where the RPC message is.
    pub payload: ReplyPayload<'a>,
}

/// Where the RPC message of a Reply is.
#[derive(Clone, Copy, Debug)]
pub enum ReplyPayload<'a> {
    /// Behind the header (`RDMA_MSG`).
    Inline(Inline<'a>),
    /// In the Reply chunk (`RDMA_NOMSG`; RFC 8166, section 3.5.3). How much of it the requester
    /// learns from [`Reply::reply_written`]. To an end that offers no Reply chunks this is a Call
    /// without a Payload stream, an XDR error (RFC 8166, section 4.5.2).
    ReplyChunk,
    /// In responder memory: a Read chunk that the requester pulls. No message is decoded as such
    /// a Reply at once: see [`Call::as_provided_reply`].
    Provided(ReadChunk<'a>),
}

/// A Payload stream behind the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inline<'a> {
    /// Octets in front of it in the received message, which is the header's length.
    pub offset: usize,
    /// The stream; at least [`RpcPrefix::SIZE`] octets.
    pub bytes: &'a [u8],
}

/// What an `RDMA_ERROR` message reports (RFC 8166, section 4.5).
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
    /// 4.5.3).
    Chunk,
}

/// An `RDMA_ERROR` message. It completes the RPC that has its XID (RFC 8166, section 4.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorMessage {
    /// `rdma_xid` of the request that failed.
    pub xid: u32,
    /// `rdma_vers` of the request that failed.
    pub version: u32,
    /// `rdma_credit`: the responder's grant.
    pub credits: u32,
    /// What went wrong.
    pub error: RdmaError,
}

/// The fixed header fields as received, not yet judged (RFC 8166, section 4.2).
///
/// They have the same meaning and place in all versions of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FixedHeader {
    /// `rdma_xid`, a copy of the RPC message's transaction ID (section 4.2.1).
    pub xid: u32,
    /// `rdma_vers` (section 4.2.2).
    pub version: u32,
    /// `rdma_credit`: credits requested in a Call, granted in a Reply (sections 3.3.1 and 4.2.3).
    /// A peer may send any value; whoever acts on it clamps it first.
    pub credits: u32,
    /// `rdma_proc` (section 4.2.4); see [`Procedure::from_wire`].
    pub procedure: u32,
}

impl FixedHeader {
    /// Octets of the fixed fields.
    pub const SIZE: usize = 16;

    /// Looks at the fixed fields; `None` when `message` is shorter than they are.
    #[inline]
    pub const fn peek(message: &[u8]) -> Option<Self> {
        match message.first_chunk::<{ Self::SIZE }>() {
            Some(bytes) => Some(Self::from_wire(bytes)),
            None => None,
        }
    }

    /// Changes `rdma_credit` of an encoded message, which must have fixed fields.
    #[inline]
    pub fn set_credits(message: &mut [u8], credits: u32) {
        if let Some(field) = message.get_mut(8..12) {
            field.copy_from_slice(&credits.to_be_bytes());
        }
    }

    /// Reads the fixed fields.
    #[inline]
    pub const fn from_wire(bytes: &[u8; Self::SIZE]) -> Self {
        let [x0, x1, x2, x3, v0, v1, v2, v3, c0, c1, c2, c3, p0, p1, p2, p3] = *bytes;
        Self {
            xid: u32::from_be_bytes([x0, x1, x2, x3]),
            version: u32::from_be_bytes([v0, v1, v2, v3]),
            credits: u32::from_be_bytes([c0, c1, c2, c3]),
            procedure: u32::from_be_bytes([p0, p1, p2, p3]),
        }
    }

    /// Writes the fixed fields.
    #[inline]
    pub fn to_wire(&self) -> [u8; Self::SIZE] {
        // Words, since the compiler would store octets one by one.
        let words = [self.xid, self.version, self.credits, self.procedure].map(u32::to_be_bytes);
        let mut wire = [0; Self::SIZE];
        wire.copy_from_slice(words.as_flattened());
        wire
    }
}
