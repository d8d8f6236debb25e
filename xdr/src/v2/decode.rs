// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Received messages, decoded.

use crate::{
    v1::decode::Lists,
    v2::{
        continued::{
            Arrived,
            Longest, //
        },
        header::RDMA2_CALL_EXTERNAL,
        properties::PropertySet, //
    },
    wire::Reader,
    Call,
    CallPayload,
    DecodeError,
    Direction,
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

/// A message of version 2, which borrows the received bytes; `M` is what is known of one that is
/// not only for the transport.
#[derive(Clone, Copy, Debug)]
pub enum Received<'a, M = Message<'a>> {
    /// A Call, a Reply or an error: `RDMA2_CALL_INLINE`, `RDMA2_CALL_EXTERNAL`,
    /// `RDMA2_REPLY_INLINE`, `RDMA2_REPLY_EXTERNAL` or `RDMA2_ERROR`.
    Message {
        /// What its header says, and the Payload stream of this message.
        message: M,
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

/// A message that has arrived where it may, and is still to be decoded: [`Bounds::decode`].
///
/// [`Bounds::decode`]: crate::v2::Bounds::decode
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Undecoded {
    /// The fragments in front of it.
    pub(super) arrived: Option<Arrived>,
    /// It is an `RDMA2_ERROR`, of whatever version.
    pub is_error: bool,
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
    /// The part of the Payload stream; at least four octets, and of the first fragment at least
    /// [`RpcPrefix::SIZE`](crate::RpcPrefix::SIZE).
    pub payload: Inline<'a>,
}

/// What is known of a message that conveys an RPC message or a part of one, before the header
/// behind the prefix is read.
pub(super) struct Decoder<'a, 'l> {
    pub(super) bytes: &'a [u8],
    pub(super) header: &'l FixedHeader,
    pub(super) direction: Direction,
    pub(super) limits: &'l Limits,
    pub(super) longest: Longest,
    /// The fragments in front of this one.
    pub(super) arrived: Option<Arrived>,
}

impl<'a> Decoder<'a, '_> {
    /// Decodes a `MIDDLE`. Returns what has arrived with it, too.
    pub(super) fn fragment(
        &self,
        mut reader: Reader<'a>,
    ) -> Result<(Fragment<'a>, Arrived), DecodeError> {
        let remaining = reader.word()?;
        let (payload, length) = self.payload(reader)?;
        let arrived = match self.arrived {
            Some(arrived) => arrived.add(length, remaining, &self.longest)?,
            None => {
                self.check_start(payload.bytes)?;
                Arrived::first(length, remaining, &self.longest)?
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

    /// Decodes an `INLINE`, or an `EXTERNAL`.
    pub(super) fn message(
        &self,
        reader: Reader<'a>,
        external: bool,
    ) -> Result<Message<'a>, DecodeError> {
        match self.direction {
            Direction::Call => self.call(reader, external).map(Message::Call),
            Direction::Reply => self.reply(reader, external).map(Message::Reply),
        }
    }

    /// Decodes a Call (the draft, sections 6.3.5 and 6.3.7).
    fn call(&self, mut reader: Reader<'a>, external: bool) -> Result<Call<'a>, DecodeError> {
        let inv_handle = reader.word()?;
        let call_chunk = match external {
            true => ReadList::read(&mut reader)?,
            false => ReadList::default(),
        };
        let lists = Lists::read(&mut reader)?;
        // In front of the limits, since the header ends with the first word of the stream.
        let inline = match external {
            true => None,
            false => Some(self.inline(reader)?),
        };
        if external || !lists.is_empty() {
            self.check_chunks(&call_chunk, &lists)?;
        }
        let (payload, length) = match inline {
            Some(inline) => {
                let before = self.arrived.map_or(0, |arrived| arrived.octets());
                let length = u64::from(before).saturating_add(inline.bytes.len() as u64);
                (CallPayload::Inline(inline), length)
            }
            None => {
                let chunk = call_chunk.position_zero().ok_or(DecodeError::NoPayload)?;
                let length = u64::from(check_whole(chunk.length())?);
                (CallPayload::PositionZero(chunk), length)
            }
        };
        if !lists.reads.is_empty() {
            lists.reads.check_inline(length)?;
        }
        let call = Call {
            xid: self.header.xid,
            credits: self.header.credits,
            inv_handle: Some(inv_handle),
            reads: lists.reads,
            writes: lists.offer.writes,
            reply_chunk: lists.offer.reply_chunk,
            payload,
        };
        check_inv_handle(inv_handle, &call_chunk, &call)?;
        Ok(call)
    }

    /// Checks the chunks of a Call against the limits. All segments of a Call chunk have Position
    /// zero (the draft, section 6.6.3).
    fn check_chunks(
        &self,
        call_chunk: &ReadList<'_>,
        lists: &Lists<'_>,
    ) -> Result<(), DecodeError> {
        let Lists { reads, offer } = lists;
        if let Some(entry) = call_chunk.segments().find(|entry| entry.position != 0) {
            return Err(DecodeError::CallChunkPosition(entry.position));
        }
        call_chunk.check(self.limits)?;
        reads.check(&self.limits.beside(call_chunk))?;
        reads.check_order()?;
        // An end that takes no chunks takes no Reply chunk (the draft, section 4.6.4).
        if self.limits.takes_no_chunks() && offer.reply_chunk.is_some() {
            return Err(DecodeError::WriteChunks);
        }
        offer.check(self.limits)
    }

    /// Decodes a Reply (the draft, sections 6.3.8 and 6.3.10).
    fn reply(&self, mut reader: Reader<'a>, external: bool) -> Result<Reply<'a>, DecodeError> {
        let offer = Offer {
            writes: WriteList::read(&mut reader)?,
            reply_chunk: match external {
                true => WriteChunk::read_reply_chunk(&mut reader)?,
                false => None,
            },
        };
        if !offer.is_empty() {
            offer.check(self.limits)?;
        }
        let payload = match external {
            true => {
                let chunk = offer.reply_chunk.ok_or(DecodeError::NoPayload)?;
                check_whole(chunk.length())?;
                ReplyPayload::ReplyChunk
            }
            false => ReplyPayload::Inline(self.inline(reader)?),
        };
        Ok(Reply {
            xid: self.header.xid,
            credits: self.header.credits,
            writes: offer.writes,
            reply_chunk: offer.reply_chunk,
            payload,
        })
    }

    /// Takes the whole of an RPC message, or the end of one.
    fn inline(&self, reader: Reader<'a>) -> Result<Inline<'a>, DecodeError> {
        let (inline, length) = self.payload(reader)?;
        match self.arrived {
            Some(arrived) => arrived.end(length)?,
            None => self.check_start(inline.bytes)?,
        }
        Ok(inline)
    }

    /// Takes the Payload stream of this message, which has at least `rdma_rpc_first_word`. Returns
    /// its length, too.
    fn payload(&self, reader: Reader<'a>) -> Result<(Inline<'a>, u32), DecodeError> {
        let bytes = reader.rest();
        if bytes.len() < 4 {
            return Err(DecodeError::Truncated);
        }
        let inline = Inline {
            offset: reader.since(Reader::new(self.bytes)).len(),
            bytes,
        };
        let length = u32::try_from(bytes.len()).map_err(|_| DecodeError::Remaining(0))?;
        Ok((inline, length))
    }

    /// Checks the front of an RPC message: it has the XID of the header (the draft, section 7.2),
    /// and goes the way that the header type says.
    fn check_start(&self, front: &[u8]) -> Result<(), DecodeError> {
        let rpc = RpcPrefix::peek(front).ok_or(DecodeError::ShortPayload)?;
        if rpc.xid != self.header.xid {
            return Err(DecodeError::XidMismatch);
        }
        if rpc.direction() != Some(self.direction) {
            return Err(DecodeError::MsgType(rpc.msg_type));
        }
        Ok(())
    }
}

/// Checks that a body chunk has the two words that every RPC message begins with. Returns its
/// length.
const fn check_whole(octets: u32) -> Result<u32, DecodeError> {
    if octets < RpcPrefix::SIZE {
        return Err(DecodeError::ShortPayload);
    }
    Ok(octets)
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
    let mut handles = reads
        .map(|entry| entry.segment.handle)
        .chain(chunks.flat_map(|chunk| chunk.segments().map(|segment| segment.handle)));
    let is_named = handle == 0 || handles.any(|other| other == handle);
    is_named.then_some(()).ok_or(DecodeError::InvHandle(handle))
}

/// Takes what the header of a Call has in front of the lists that version 1 has, too.
pub(crate) fn pass_to_lists(
    header: &FixedHeader,
    reader: &mut Reader<'_>,
) -> Result<(), DecodeError> {
    let _inv_handle = reader.word()?;
    if header.procedure == RDMA2_CALL_EXTERNAL {
        ReadList::read(reader)?;
    }
    Ok(())
}
