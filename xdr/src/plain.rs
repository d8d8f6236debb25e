// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! `RDMA_MSG` without chunks, as most messages are: only XID and credits differ from one header to
//! the next.

use crate::{
    Call,
    CallPayload,
    Direction,
    EncodeError,
    FixedHeader,
    Inline,
    Message,
    Procedure,
    ReadList,
    Reply,
    ReplyPayload,
    RpcPrefix,
    WriteList,
    MIN_HEADER,
    VERSION, //
};

/// A received `RDMA_MSG` without chunks.
///
/// [`Message::decode`] takes it for the same Call or Reply; who knows that there are no chunks has
/// less to look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plain<'a> {
    /// `rdma_xid`; the Payload stream begins with the same XID.
    pub xid: u32,
    /// Credits requested in a Call, granted in a Reply; any value.
    pub credits: u32,
    /// What it is.
    pub direction: Direction,
    /// The Payload stream.
    pub inline: Inline<'a>,
}

impl<'a> Plain<'a> {
    /// Decodes a received message: `bytes` is all that was received and no more. `None` if it is
    /// not of this kind, or not well formed.
    #[inline]
    pub fn decode(bytes: &'a [u8]) -> Option<Self> {
        const LISTS: usize = MIN_HEADER - FixedHeader::SIZE;
        let (fixed, rest) = bytes.split_first_chunk::<{ FixedHeader::SIZE }>()?;
        let (lists, payload) = rest.split_first_chunk::<LISTS>()?;
        let header = FixedHeader::from_wire(fixed);
        let prefix = RpcPrefix::peek(payload)?;
        let plain = header.version == VERSION
            && header.procedure == Procedure::Msg.to_wire()
            && *lists == [0; LISTS]
            && prefix.xid == header.xid;
        if !plain {
            return None;
        }
        Some(Self {
            xid: header.xid,
            credits: header.credits,
            direction: prefix.direction()?,
            inline: Inline {
                offset: MIN_HEADER,
                bytes: payload,
            },
        })
    }

    /// The same, as any message.
    #[inline]
    pub fn message(&self) -> Message<'a> {
        match self.direction {
            Direction::Call => Message::Call(Call {
                xid: self.xid,
                credits: self.credits,
                reads: ReadList::default(),
                writes: WriteList::default(),
                reply_chunk: None,
                payload: CallPayload::Inline(self.inline),
            }),
            Direction::Reply => Message::Reply(Reply {
                xid: self.xid,
                credits: self.credits,
                writes: WriteList::default(),
                reply_chunk: None,
                payload: ReplyPayload::Inline(self.inline),
            }),
        }
    }
}

/// Writes the header of an `RDMA_MSG` without chunks, which has [`MIN_HEADER`] octets. Returns the
/// room behind it, for the Payload stream.
///
/// `credits` is the number requested in a Call, or granted in a Reply.
#[inline]
pub fn encode_plain(buffer: &mut [u8], xid: u32, credits: u32) -> Result<&mut [u8], EncodeError> {
    let room = buffer.len();
    let Some((header, rest)) = buffer.split_first_chunk_mut::<MIN_HEADER>() else {
        return Err(EncodeError::NoRoom {
            needed: MIN_HEADER,
            room,
        });
    };
    let fixed = FixedHeader {
        xid,
        version: VERSION,
        credits,
        procedure: Procedure::Msg.to_wire(),
    };
    *header = [0; MIN_HEADER];
    if let Some(field) = header.first_chunk_mut() {
        *field = fixed.to_wire();
    }
    Ok(rest)
}
