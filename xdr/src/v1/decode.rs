// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Received messages, decoded.

use crate::{
    v1::header::{
        MIN_HEADER,
        RDMA_DONE,
        RDMA_ERROR,
        RDMA_MSG,
        RDMA_MSGP,
        RDMA_NOMSG,
        VERSION, //
    },
    v2,
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
    Offer,
    ReadList,
    Rejected,
    Reply,
    ReplyPayload,
    RpcPrefix,
    WriteChunk,
    WriteList, //
};

impl<'a> Message<'a> {
    /// Decodes a received message: `bytes` is all that was received and no more.
    ///
    /// A message of fewer than 28 octets is [`DecodeError::Short`] (RFC 8166, section 4.5), except
    /// an `ERR_CHUNK`, which has only 20. Octets behind the chunk lists of an `RDMA_NOMSG` and
    /// behind an `RDMA_ERROR` are ignored.
    pub fn decode(bytes: &'a [u8], limits: &Limits) -> Result<Self, Rejected> {
        let mut decoder = Decoder {
            bytes,
            limits,
            direction: None,
        };
        decoder.message()
    }
}

impl<'a> Offer<'a> {
    /// Reads the offer once more in the message that a Call was decoded from, whose lists need no
    /// check now. `None` in a message that is shorter.
    pub fn find(message: &'a [u8]) -> Option<Self> {
        Lists::find(message).map(|lists| lists.offer)
    }
}

impl<'a> ReadList<'a> {
    /// Reads the list once more in the message that a Call was decoded from, where it needs no
    /// check now. `None` in a message that is shorter.
    pub fn find(message: &'a [u8]) -> Option<Self> {
        Lists::find(message).map(|lists| lists.reads)
    }
}

/// The chunk lists of `RDMA_MSG` and `RDMA_NOMSG` (RFC 8166, section 4.3), and of a Call of version
/// 2, which has the same behind what [`v2::pass_to_lists`] passes.
#[derive(Default)]
pub(crate) struct Lists<'a> {
    pub(crate) reads: ReadList<'a>,
    pub(crate) offer: Offer<'a>,
}

impl<'a> Lists<'a> {
    /// Finds the lists in the message that a Call was decoded from.
    fn find(message: &'a [u8]) -> Option<Self> {
        let mut reader = Reader::new(message);
        let header = FixedHeader::read(&mut reader).ok()?;
        if header.version == v2::VERSION {
            v2::pass_to_lists(&header, &mut reader).ok()?;
        }
        Self::read(&mut reader).ok()
    }

    /// Takes the lists, which are still to be checked.
    pub(crate) fn read(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        // All three are "not present", as in most messages.
        let mut ahead = *reader;
        if ahead.words() == Ok([0; 3]) {
            *reader = ahead;
            return Ok(Self::default());
        }
        Ok(Self {
            reads: ReadList::read(reader)?,
            offer: Offer {
                writes: WriteList::read(reader)?,
                reply_chunk: WriteChunk::read_reply_chunk(reader)?,
            },
        })
    }

    /// Returns whether none of them is present.
    pub(crate) const fn is_empty(&self) -> bool {
        self.reads.is_empty() && self.offer.is_empty()
    }

    fn check(&self, limits: &Limits) -> Result<(), DecodeError> {
        self.reads.check(limits)?;
        self.offer.check(limits)
    }

    /// Decodes an `RDMA_NOMSG`. The chunk that holds the Payload stream tells its direction: a
    /// Position Zero Read chunk is a Call's, and a Reply has no Read list but a Reply chunk.
    fn long(self, header: &FixedHeader) -> Result<Message<'a>, DecodeError> {
        if self.reads.is_empty() {
            let chunk = self.offer.reply_chunk.ok_or(DecodeError::NoPayload)?;
            check_payload(chunk.length())?;
            return Ok(self.reply(header, ReplyPayload::ReplyChunk));
        }
        let chunk = self.reads.position_zero().ok_or(DecodeError::NoPayload)?;
        check_payload(chunk.length())?;
        self.reads.check_positions(u64::from(chunk.length()))?;
        Ok(self.call(header, CallPayload::PositionZero(chunk)))
    }

    fn call(self, header: &FixedHeader, payload: CallPayload<'a>) -> Message<'a> {
        Message::Call(Call {
            xid: header.xid,
            credits: header.credits,
            inv_handle: None,
            reads: self.reads,
            writes: self.offer.writes,
            reply_chunk: self.offer.reply_chunk,
            payload,
        })
    }

    fn reply(self, header: &FixedHeader, payload: ReplyPayload<'a>) -> Message<'a> {
        Message::Reply(Reply {
            xid: header.xid,
            credits: header.credits,
            writes: self.offer.writes,
            reply_chunk: self.offer.reply_chunk,
            payload,
        })
    }
}

/// A message, and what is known of it when it is refused.
struct Decoder<'a, 'l> {
    bytes: &'a [u8],
    limits: &'l Limits,
    direction: Option<Direction>,
}

impl<'a> Decoder<'a, '_> {
    // Fails with what it returns in the end, so that no message is moved on the way.
    fn message(&mut self) -> Result<Message<'a>, Rejected> {
        let mut reader = Reader::new(self.bytes);
        let read = FixedHeader::read(&mut reader);
        let header = read.map_err(|_| self.rejected(DecodeError::Short))?;
        // This value is fixed for all versions, and an error is never answered with an error.
        if header.procedure == RDMA_ERROR {
            return match ErrorMessage::decode(&header, &mut reader) {
                Ok(error) => Ok(Message::Error(error)),
                Err(_) if self.is_short() => Err(self.rejected(DecodeError::Short)),
                Err(reason) => Err(self.rejected(reason)),
            };
        }
        self.check(&header)
            .map_err(|reason| self.rejected(reason))?;
        let lists = self.lists(&mut reader);
        let lists = lists.map_err(|reason| self.rejected(reason))?;
        match header.procedure {
            RDMA_MSG => self.inline(&header, lists, reader),
            _ => lists.long(&header).map_err(|reason| self.rejected(reason)),
        }
    }

    #[cold]
    fn rejected(&self, reason: DecodeError) -> Rejected {
        Rejected {
            header: FixedHeader::peek(self.bytes).filter(|_| !self.is_short()),
            direction: self.direction,
            reason,
        }
    }

    const fn is_short(&self) -> bool {
        self.bytes.len() < MIN_HEADER
    }

    /// Checks the fixed fields of a message that is no error.
    fn check(&self, header: &FixedHeader) -> Result<(), DecodeError> {
        if self.is_short() {
            return Err(DecodeError::Short);
        }
        if header.version != VERSION {
            return Err(DecodeError::Version(header.version));
        }
        match header.procedure {
            RDMA_MSG | RDMA_NOMSG => Ok(()),
            RDMA_MSGP => Err(DecodeError::Msgp),
            RDMA_DONE => Err(DecodeError::Done),
            other => Err(DecodeError::Procedure(other)),
        }
    }

    /// Decodes the lists. A message that has a Read list is a Call, whatever is wrong with that or
    /// with the rest: all replies leave it empty (RFC 8166, section 4.3.1).
    fn lists(&mut self, reader: &mut Reader<'a>) -> Result<Lists<'a>, DecodeError> {
        // Known, even if the list is malformed behind its first word.
        if reader.clone().word() == Ok(1) {
            self.direction = Some(Direction::Call);
        }
        let lists = Lists::read(reader)?;
        if !lists.is_empty() {
            lists.check(self.limits)?;
        }
        Ok(lists)
    }

    /// Decodes an `RDMA_MSG`, whose Payload stream follows the lists and tells its direction.
    fn inline(
        &mut self,
        header: &FixedHeader,
        lists: Lists<'a>,
        reader: Reader<'a>,
    ) -> Result<Message<'a>, Rejected> {
        let inline = Inline {
            offset: reader.since(Reader::new(self.bytes)).len(),
            bytes: reader.rest(),
        };
        let Some(rpc) = RpcPrefix::peek(inline.bytes) else {
            return Err(self.rejected(DecodeError::ShortPayload));
        };
        self.direction = rpc.direction().or(self.direction);
        if rpc.xid != header.xid {
            return Err(self.rejected(DecodeError::XidMismatch));
        }
        match rpc.direction() {
            Some(Direction::Call) => {
                if !lists.reads.is_empty() {
                    // Widening: no supported target has a usize of more than 64 bits.
                    let fit = lists.reads.check_inline(inline.bytes.len() as u64);
                    fit.map_err(|reason| self.rejected(reason))?;
                }
                Ok(lists.call(header, CallPayload::Inline(inline)))
            }
            Some(Direction::Reply) if lists.reads.is_empty() => {
                Ok(lists.reply(header, ReplyPayload::Inline(inline)))
            }
            Some(Direction::Reply) => Err(self.rejected(DecodeError::ReadListInReply)),
            None => Err(self.rejected(DecodeError::MsgType(rpc.msg_type))),
        }
    }
}

/// Checks that a chunk can hold the two words that every RPC message begins with.
const fn check_payload(length: u32) -> Result<(), DecodeError> {
    if length < RpcPrefix::SIZE {
        return Err(DecodeError::ShortPayload);
    }
    Ok(())
}
