// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Whole received messages: Calls, Replies and errors.

use crate::{
    wire::Reader,
    DecodeError,
    Direction,
    ErrorMessage,
    FixedHeader,
    Limits,
    Procedure,
    ReadChunk,
    ReadList,
    Rejected,
    RpcPrefix,
    WriteChunk,
    WriteList,
    MIN_HEADER,
    VERSION, //
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

impl<'a> Message<'a> {
    /// Decodes a received message: `bytes` is all that was received and no more.
    ///
    /// A message of fewer than 28 octets is [`DecodeError::Short`] (RFC 8166, section 4.5), except
    /// an `ERR_CHUNK`, which has only 20. Octets behind the chunk lists of an `RDMA_NOMSG` and
    /// behind an `RDMA_ERROR` are ignored.
    pub fn decode(bytes: &'a [u8], limits: &Limits) -> Result<Self, Rejected> {
        match Self::without_chunks(bytes) {
            Some(message) => Ok(message),
            None => Self::decode_lists(bytes, limits),
        }
    }

    /// As [`Self::decode`], of a well-formed `RDMA_MSG` without chunks, which no limits bound. Most
    /// messages are such, and who looks at them first has no lists to look at.
    #[inline(always)]
    pub fn without_chunks(bytes: &'a [u8]) -> Option<Self> {
        let mut reader = Reader::new(bytes);
        let header = FixedHeader::from_wire(reader.array().ok()?);
        let plain = header.version == VERSION
            && header.procedure == Procedure::Msg.to_wire()
            && reader.take_zeros::<{ MIN_HEADER - FixedHeader::SIZE }>();
        if !plain {
            return None;
        }
        Lists::default()
            .inline(&header, bytes.len(), reader.rest())
            .ok()
    }

    /// As [`Self::decode`], for who has looked at [`Self::without_chunks`] before.
    #[inline(never)]
    pub fn decode_lists(bytes: &'a [u8], limits: &Limits) -> Result<Self, Rejected> {
        let mut reader = Reader::new(bytes);
        let Ok(fixed) = reader.array() else {
            return Err(Rejected::short());
        };
        let header = &FixedHeader::from_wire(fixed);
        // This value is fixed for all versions, and an error is never answered with an error.
        if header.procedure == Procedure::Error.to_wire() {
            return match ErrorMessage::decode(header, &mut reader) {
                Ok(error) => Ok(Self::Error(error)),
                Err(_) if bytes.len() < MIN_HEADER => Err(Rejected::short()),
                Err(_) => Err(Rejected::new(header, None, DecodeError::UnknownError)),
            };
        }
        if bytes.len() < MIN_HEADER {
            return Err(Rejected::short());
        }
        let reason = if header.version != VERSION {
            DecodeError::Version(header.version)
        } else {
            match Procedure::from_wire(header.procedure) {
                Some(Procedure::Msg) => {
                    let lists = Lists::decode(&mut reader, limits, header)?;
                    return lists.inline(header, bytes.len(), reader.rest());
                }
                Some(Procedure::NoMsg) => {
                    return Lists::decode(&mut reader, limits, header)?.long(header);
                }
                Some(Procedure::Msgp) => DecodeError::Msgp,
                Some(Procedure::Done) => DecodeError::Done,
                Some(Procedure::Error) | None => DecodeError::Procedure(header.procedure),
            }
        };
        Err(Rejected::new(header, None, reason))
    }
}

impl Rejected {
    #[cold]
    const fn new(header: &FixedHeader, direction: Option<Direction>, reason: DecodeError) -> Self {
        Self {
            header: Some(*header),
            direction,
            reason,
        }
    }

    #[cold]
    const fn short() -> Self {
        Self {
            header: None,
            direction: None,
            reason: DecodeError::Short,
        }
    }
}

/// The chunk lists of `RDMA_MSG` and `RDMA_NOMSG` (RFC 8166, section 4.3).
#[derive(Default)]
struct Lists<'a> {
    reads: ReadList<'a>,
    writes: WriteList<'a>,
    reply_chunk: Option<WriteChunk<'a>>,
}

impl<'a> Lists<'a> {
    /// What has a Read list is a Call, whatever is wrong with that or with the rest: all replies
    /// leave it empty (RFC 8166, section 4.3.1).
    #[inline(always)]
    fn decode(
        reader: &mut Reader<'a>,
        limits: &Limits,
        header: &FixedHeader,
    ) -> Result<Self, Rejected> {
        let mut ahead = *reader;
        let has_reads = ahead.present() == Ok(true);
        Self::decode_lists(reader, limits).map_err(|reason| {
            let direction = has_reads.then_some(Direction::Call);
            Rejected::new(header, direction, reason)
        })
    }

    #[inline(always)]
    fn decode_lists(reader: &mut Reader<'a>, limits: &Limits) -> Result<Self, DecodeError> {
        Ok(Self {
            reads: ReadList::decode(reader, limits)?,
            writes: WriteList::decode(reader, limits)?,
            reply_chunk: WriteChunk::decode_reply_chunk(reader, limits)?,
        })
    }

    /// The direction of a message whose Payload stream does not tell it.
    fn direction(&self) -> Option<Direction> {
        (!self.reads.is_empty()).then_some(Direction::Call)
    }

    /// `RDMA_MSG`: `payload` is what follows the lists in a message of `total` octets.
    #[inline(always)]
    fn inline(
        self,
        header: &FixedHeader,
        total: usize,
        payload: &'a [u8],
    ) -> Result<Message<'a>, Rejected> {
        let Some(prefix) = RpcPrefix::peek(payload) else {
            let reason = DecodeError::ShortPayload;
            return Err(Rejected::new(header, self.direction(), reason));
        };
        let direction = prefix.direction();
        if prefix.xid != header.xid {
            return Err(Rejected::new(header, direction, DecodeError::XidMismatch));
        }
        let inline = Inline {
            offset: total.saturating_sub(payload.len()),
            bytes: payload,
        };
        match direction {
            // Widening: no supported target has a usize of more than 64 bits.
            Some(Direction::Call) => match self.reads.check_inline(inline.bytes.len() as u64) {
                Ok(()) => Ok(self.call(header, CallPayload::Inline(inline))),
                Err(reason) => Err(Rejected::new(header, direction, reason)),
            },
            Some(Direction::Reply) if self.reads.is_empty() => {
                Ok(self.reply(header, ReplyPayload::Inline(inline)))
            }
            Some(Direction::Reply) => {
                let reason = DecodeError::ReadListInReply;
                Err(Rejected::new(header, direction, reason))
            }
            None => {
                let reason = DecodeError::MsgType(prefix.msg_type);
                Err(Rejected::new(header, self.direction(), reason))
            }
        }
    }

    /// `RDMA_NOMSG`. The chunk that holds the Payload stream tells its direction: a Position Zero
    /// Read chunk is a Call's, and a Reply has no Read list but a Reply chunk.
    #[inline(never)]
    fn long(self, header: &FixedHeader) -> Result<Message<'a>, Rejected> {
        let (direction, result) = if let Some(chunk) = self.reads.position_zero() {
            (Some(Direction::Call), self.long_call(header, chunk))
        } else if !self.reads.is_empty() {
            (Some(Direction::Call), Err(DecodeError::NoPayload))
        } else if let Some(chunk) = self.reply_chunk {
            if chunk.holds_rpc_prefix() {
                let reply = self.reply(header, ReplyPayload::ReplyChunk);
                (Some(Direction::Reply), Ok(reply))
            } else {
                (None, Err(DecodeError::ShortPayload))
            }
        } else {
            (None, Err(DecodeError::NoPayload))
        };
        result.map_err(|reason| Rejected::new(header, direction, reason))
    }

    fn long_call(
        self,
        header: &FixedHeader,
        chunk: ReadChunk<'a>,
    ) -> Result<Message<'a>, DecodeError> {
        if !chunk.holds_rpc_prefix() {
            return Err(DecodeError::ShortPayload);
        }
        self.reads.check_positions(u64::from(chunk.length()))?;
        Ok(self.call(header, CallPayload::PositionZero(chunk)))
    }

    #[inline]
    fn call(self, header: &FixedHeader, payload: CallPayload<'a>) -> Message<'a> {
        Message::Call(Call {
            xid: header.xid,
            credits: header.credits,
            reads: self.reads,
            writes: self.writes,
            reply_chunk: self.reply_chunk,
            payload,
        })
    }

    /// Of lists whose Read list is empty.
    #[inline]
    fn reply(self, header: &FixedHeader, payload: ReplyPayload<'a>) -> Message<'a> {
        Message::Reply(Reply {
            xid: header.xid,
            credits: header.credits,
            writes: self.writes,
            reply_chunk: self.reply_chunk,
            payload,
        })
    }
}
