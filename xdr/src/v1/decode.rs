// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Whole received messages.

use crate::{
    wire::Reader,
    Call,
    CallPayload,
    DecodeError,
    Direction,
    ErrorMessage,
    FixedHeader,
    Inline,
    Limits,
    Message,
    Procedure,
    ReadChunk,
    ReadList,
    Rejected,
    Reply,
    ReplyPayload,
    RpcPrefix,
    WriteChunk,
    WriteList,
    MIN_HEADER,
    VERSION, //
};

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
