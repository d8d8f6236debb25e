// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Replies that are too long for what the requester has provided: the responder provides a Read
//! chunk, which the requester pulls, and says so (`Documentation/reliable-reply.rst`, after
//! draft-cel-nfsv4-rpcrdma-reliable-reply). Without an agreement at connection set-up none of it is
//! to be used.

use crate::{
    wire::Writer,
    Call,
    CallPayload,
    DecodeError,
    EncodeError,
    FixedHeader,
    Procedure,
    Reply,
    ReplyPayload,
    VERSION, //
};

impl<'a> Call<'a> {
    /// The Reply that an `RDMA_NOMSG` with a Position Zero Read chunk is, to a requester that pulls
    /// Replies: nobody sends it Calls with chunks.
    ///
    /// An error says why it is no good one.
    pub fn as_provided_reply(&self) -> Result<Reply<'a>, DecodeError> {
        let CallPayload::PositionZero(chunk) = self.payload else {
            return Err(DecodeError::ReadListInReply);
        };
        // Results are never in Read chunks of their own (section 4.1 of the draft).
        if self.reads.data_chunks().next().is_some() {
            return Err(DecodeError::ReadListInReply);
        }
        Ok(Reply {
            xid: self.xid,
            credits: self.credits,
            writes: self.writes,
            reply_chunk: self.reply_chunk,
            payload: ReplyPayload::Provided(chunk),
        })
    }
}

/// The XID of an `RDMA_DONE`: the requester has pulled that Reply, or does not want it. It has
/// nothing but the fixed fields, so that it is shorter than what is decoded otherwise.
#[inline]
pub fn peek_done(message: &[u8]) -> Option<u32> {
    let fixed = message.first_chunk::<{ FixedHeader::SIZE }>()?;
    // As for most messages.
    let [.., p0, p1, p2, p3] = *fixed;
    if u32::from_be_bytes([p0, p1, p2, p3]) != Procedure::Done.to_wire() {
        return None;
    }
    let header = FixedHeader::from_wire(fixed);
    (header.version == VERSION).then_some(header.xid)
}

/// Writes an `RDMA_DONE` for that XID to the front of `buffer`. Returns its length in octets. It
/// has no answer, and `credits` mean nothing.
pub fn encode_done(buffer: &mut [u8], xid: u32, credits: u32) -> Result<usize, EncodeError> {
    let mut writer = Writer::new(buffer);
    let header = FixedHeader {
        xid,
        version: VERSION,
        credits,
        procedure: Procedure::Done.to_wire(),
    };
    writer.array(&header.to_wire());
    EncodeError::check_room(&writer)
}
