// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Received messages, decoded.

use crate::{
    v2::{
        continued::Arrived,
        header::Form,
        properties::PropertySet, //
    },
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
    Reply,
    ReplyPayload,
    RpcPrefix,
    WriteChunk,
    WriteList, //
};

/// A decoded message of version 2, which borrows the received bytes.
#[derive(Clone, Copy, Debug)]
pub enum Received<'a> {
    /// A Call, a Reply or an error: `RDMA2_CALL_INLINE`, `RDMA2_CALL_EXTERNAL`,
    /// `RDMA2_REPLY_INLINE`, `RDMA2_REPLY_EXTERNAL` or `RDMA2_ERROR`.
    Message {
        /// What its header says, and the Payload stream of this message.
        message: Message<'a>,
        /// Octets of the Payload stream in the fragments in front of this one, zero if it is whole.
        before: u32,
    },
    /// A part of an RPC message: `RDMA2_CALL_MIDDLE` or `RDMA2_REPLY_MIDDLE`.
    Fragment(Fragment<'a>),
    /// `RDMA2_GRANT`, which has nothing but the credits.
    Grant(u32),
    /// `RDMA2_CONNPROP_MIDDLE` or `RDMA2_CONNPROP_FINAL`.
    Properties {
        /// The properties.
        set: PropertySet<'a>,
        /// No others follow.
        last: bool,
    },
}

impl Received<'_> {
    /// Wraps an error.
    pub(crate) const fn error(error: ErrorMessage) -> Self {
        Self::Message {
            message: Message::Error(error),
            before: 0,
        }
    }
}

/// A fragment of an RPC message that is not its last (the draft, sections 6.3.6 and 6.3.9).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment<'a> {
    /// Call or Reply.
    pub direction: Direction,
    /// `rdma_xid`.
    pub xid: u32,
    /// `rdma_credit`.
    pub credits: u32,
    /// `rdma_remaining`: octets of the Payload stream in the messages that follow, at least one and
    /// within the [`Bounds`](crate::v2::Bounds).
    pub remaining: u32,
    /// The part of the Payload stream; at least four octets.
    pub payload: Inline<'a>,
}

/// A message that conveys an RPC message or a part of one, and what is known of it.
pub(super) struct Decoder<'a, 'l> {
    pub(super) bytes: &'a [u8],
    pub(super) header: &'l FixedHeader,
    pub(super) direction: Direction,
    pub(super) limits: &'l Limits,
    /// Octets of the longest RPC message in fragments.
    pub(super) longest: u32,
    /// The fragments in front of this one.
    pub(super) arrived: Option<Arrived>,
}

/// The place of an RPC message, and the octets of its Payload stream in messages before.
type Placed<T> = (T, u32);

impl<'a> Decoder<'a, '_> {
    /// Decodes a `MIDDLE`. Returns what has arrived with it, too.
    pub(super) fn fragment(&self) -> Result<(Fragment<'a>, Arrived), DecodeError> {
        let mut reader = self.body()?;
        let remaining = reader.word()?;
        let (payload, length) = self.payload(reader)?;
        let arrived = match self.arrived {
            Some(arrived) => arrived.add(length, remaining)?,
            None => {
                self.check_start(payload.bytes, length.saturating_add(remaining))?;
                Arrived::first(length, remaining, self.longest)?
            }
        };
        let fragment = Fragment {
            direction: self.direction,
            xid: self.header.xid,
            credits: self.header.credits,
            remaining,
            payload,
        };
        Ok((fragment, arrived))
    }

    /// Decodes an `INLINE` or `EXTERNAL`.
    pub(super) fn message(&self, form: Form) -> Result<Received<'a>, DecodeError> {
        let reader = self.body()?;
        let (message, before) = match self.direction {
            Direction::Call => {
                let (call, before) = self.call(reader, form)?;
                (Message::Call(call), before)
            }
            Direction::Reply => {
                let (reply, before) = self.reply(reader, form)?;
                (Message::Reply(reply), before)
            }
        };
        Ok(Received::Message { message, before })
    }

    /// Decodes a Call (the draft, sections 6.3.5 and 6.3.7).
    fn call(&self, mut reader: Reader<'a>, form: Form) -> Result<Placed<Call<'a>>, DecodeError> {
        let inv_handle = reader.word()?;
        let call_chunk = match form {
            Form::External => ReadList::read(&mut reader)?,
            Form::Inline | Form::Middle => ReadList::default(),
        };
        let reads = ReadList::read(&mut reader)?;
        let offer = Offer {
            writes: WriteList::read(&mut reader)?,
            reply_chunk: WriteChunk::read_reply_chunk(&mut reader)?,
        };
        if form != Form::External {
            // The header ends with the first word of the Payload stream.
            reader.clone().word()?;
        }
        if let Some(entry) = call_chunk.segments().find(|entry| entry.position != 0) {
            return Err(DecodeError::CallChunkPosition(entry.position));
        }
        call_chunk.check(self.limits)?;
        reads.check(&self.limits.beside(&call_chunk))?;
        reads.check_order()?;
        offer.check(self.limits)?;
        if self.limits.chunk_segments == 0 && offer.reply_chunk.is_some() {
            return Err(DecodeError::ChunkSegments);
        }
        let (payload, before) = match form {
            Form::External => (Self::call_chunk(&call_chunk, &reads)?, 0),
            Form::Inline | Form::Middle => {
                let (inline, before) = self.inline(reader)?;
                let length = u64::from(before).saturating_add(inline.bytes.len() as u64);
                reads.check_inline(length)?;
                (CallPayload::Inline(inline), before)
            }
        };
        let call = Call {
            xid: self.header.xid,
            credits: self.header.credits,
            inv_handle,
            reads,
            writes: offer.writes,
            reply_chunk: offer.reply_chunk,
            payload,
        };
        check_inv_handle(inv_handle, &call_chunk, &call)?;
        Ok((call, before))
    }

    /// Takes the Call chunk, the segments of which have Position zero, as no data item has (the
    /// draft, sections 4.5.1.2 and 6.6.3).
    fn call_chunk(
        list: &ReadList<'a>,
        reads: &ReadList<'a>,
    ) -> Result<CallPayload<'a>, DecodeError> {
        let chunk = list.position_zero().ok_or(DecodeError::NoPayload)?;
        check_whole(chunk.length())?;
        reads.check_inline(u64::from(chunk.length()))?;
        Ok(CallPayload::PositionZero(chunk))
    }

    /// Decodes a Reply (the draft, sections 6.3.8 and 6.3.10).
    fn reply(&self, mut reader: Reader<'a>, form: Form) -> Result<Placed<Reply<'a>>, DecodeError> {
        let offer = Offer {
            writes: WriteList::read(&mut reader)?,
            reply_chunk: match form {
                Form::External => WriteChunk::read_reply_chunk(&mut reader)?,
                Form::Inline | Form::Middle => None,
            },
        };
        offer.check(self.limits)?;
        let (payload, before) = match form {
            Form::External => {
                let chunk = offer.reply_chunk.ok_or(DecodeError::NoPayload)?;
                check_whole(chunk.length())?;
                (ReplyPayload::ReplyChunk, 0)
            }
            Form::Inline | Form::Middle => {
                let (inline, before) = self.inline(reader)?;
                (ReplyPayload::Inline(inline), before)
            }
        };
        let reply = Reply {
            xid: self.header.xid,
            credits: self.header.credits,
            writes: offer.writes,
            reply_chunk: offer.reply_chunk,
            payload,
        };
        Ok((reply, before))
    }

    /// Returns the octets behind the prefix.
    fn body(&self) -> Result<Reader<'a>, DecodeError> {
        let mut reader = Reader::new(self.bytes);
        FixedHeader::read(&mut reader)?;
        Ok(reader)
    }

    /// Takes the whole of an RPC message, or the end of one.
    fn inline(&self, reader: Reader<'a>) -> Result<Placed<Inline<'a>>, DecodeError> {
        let (inline, length) = self.payload(reader)?;
        let before = match self.arrived {
            Some(arrived) => arrived.end(length)?,
            None => {
                self.check_start(inline.bytes, length)?;
                0
            }
        };
        Ok((inline, before))
    }

    /// Takes the Payload stream of this message, which has at least `rdma_rpc_first_word`. Returns
    /// its length, too.
    fn payload(&self, reader: Reader<'a>) -> Result<(Inline<'a>, u32), DecodeError> {
        reader.clone().word()?;
        let bytes = reader.rest();
        let inline = Inline {
            offset: reader.since(Reader::new(self.bytes)).len(),
            bytes,
        };
        let length = u32::try_from(bytes.len()).map_err(|_| DecodeError::Remaining(0))?;
        Ok((inline, length))
    }

    /// Checks the front of a Payload stream of `whole` octets: it has the XID of the header (the
    /// draft, section 7.2), and goes the way that the header type says. The second word may be in
    /// the next fragment.
    fn check_start(&self, front: &[u8], whole: u32) -> Result<(), DecodeError> {
        check_whole(whole)?;
        let mut reader = Reader::new(front);
        if reader.word()? != self.header.xid {
            return Err(DecodeError::XidMismatch);
        }
        match RpcPrefix::peek(front) {
            Some(rpc) if rpc.direction() != Some(self.direction) => {
                Err(DecodeError::MsgType(rpc.msg_type))
            }
            _ => Ok(()),
        }
    }
}

/// Checks that a Payload stream has the two words that every RPC message begins with.
const fn check_whole(octets: u32) -> Result<(), DecodeError> {
    if octets < RpcPrefix::SIZE {
        return Err(DecodeError::ShortPayload);
    }
    Ok(())
}

/// Checks that the handle that may be made invalid is one of the Call, or none (the draft,
/// section 6.5).
fn check_inv_handle(
    handle: u32,
    call_chunk: &ReadList<'_>,
    call: &Call<'_>,
) -> Result<(), DecodeError> {
    let reads = call_chunk.segments().chain(call.reads.segments());
    let chunks = call.writes.chunks().chain(call.reply_chunk);
    let handles = reads
        .map(|entry| entry.segment.handle)
        .chain(chunks.flat_map(|chunk| chunk.segments().map(|segment| segment.handle)));
    let is_named = handle == 0 || handles.into_iter().any(|other| other == handle);
    is_named.then_some(()).ok_or(DecodeError::InvHandle(handle))
}
