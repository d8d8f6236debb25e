// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Replies that are too long for what the requester has provided.
//!
//! The responder provides a Read chunk, which the requester pulls, and says so
//! (`Documentation/reliable-reply.rst`, after draft-cel-nfsv4-rpcrdma-reliable-reply). Without an
//! agreement at connection set-up none of it is to be used.

use crate::{
    v1::{
        encode::begin,
        header::{
            RDMA_DONE,
            VERSION, //
        },
    },
    Call,
    CallPayload,
    DecodeError,
    EncodeError,
    FixedHeader,
    Reply,
    ReplyPayload, //
};

impl<'a> Call<'a> {
    /// Returns the Reply that an `RDMA_NOMSG` with a Position Zero Read chunk is to a requester
    /// that pulls Replies: nobody sends it Calls with chunks.
    ///
    /// An error says why it is no good one.
    pub fn as_provided_reply(&self) -> Result<Reply<'a>, DecodeError> {
        match self.payload {
            // Results are never in Read chunks of their own (section 4.1 of the draft).
            CallPayload::PositionZero(chunk) if self.reads.data_chunks().next().is_none() => {
                Ok(Reply {
                    xid: self.xid,
                    credits: self.credits,
                    writes: self.writes,
                    reply_chunk: self.reply_chunk,
                    payload: ReplyPayload::Provided(chunk),
                })
            }
            _ => Err(DecodeError::ReadListInReply),
        }
    }
}

/// Returns the XID of an `RDMA_DONE`: the requester has pulled that Reply, or does not want it.
///
/// It has nothing but the fixed fields, so that it is shorter than what is decoded otherwise.
pub fn peek_done(message: &[u8]) -> Option<u32> {
    let header = FixedHeader::peek(message)?;
    (header.version == VERSION && header.procedure == RDMA_DONE).then_some(header.xid)
}

/// Writes an `RDMA_DONE` for that XID to the front of `buffer`. Returns its length in octets. It
/// has no answer, and `credits` mean nothing.
pub fn encode_done(buffer: &mut [u8], xid: u32, credits: u32) -> Result<usize, EncodeError> {
    begin(buffer, xid, credits, RDMA_DONE).finish()
}
