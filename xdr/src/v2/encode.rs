// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Headers, encoded.

use core::borrow::Borrow;

use crate::{
    v2::header::{
        begin,
        RDMA2_CALL_EXTERNAL,
        RDMA2_CALL_INLINE,
        RDMA2_CALL_MIDDLE,
        RDMA2_GRANT,
        RDMA2_REPLY_EXTERNAL,
        RDMA2_REPLY_INLINE,
        RDMA2_REPLY_MIDDLE,
        VERSION, //
    },
    wire::Writer,
    Direction,
    EncodeError,
    Encoder,
    Offer,
    Segment, //
};

impl<'b> Encoder<'b> {
    /// Begins an `RDMA2_CALL_INLINE` header: the Call, or its last fragment, follows it in the same
    /// Send.
    ///
    /// `inv_handle` is the handle that the responder may make invalid with its Reply, one of those
    /// in this header, or zero (the draft, section 6.5).
    pub fn call_inline(buffer: &'b mut [u8], xid: u32, credits: u32, inv_handle: u32) -> Self {
        let mut writer = begin(buffer, xid, credits, RDMA2_CALL_INLINE);
        writer.words([inv_handle]);
        Self::new(writer, true)
    }

    /// Begins an `RDMA2_CALL_EXTERNAL` header, whose Call chunk has these segments (the draft,
    /// section 6.3.5). `inv_handle` is as of [`Encoder::call_inline`].
    pub fn call_external(
        buffer: &'b mut [u8],
        xid: u32,
        credits: u32,
        inv_handle: u32,
        call: impl IntoIterator<Item: Borrow<Segment>>,
    ) -> Self {
        let mut writer = begin(buffer, xid, credits, RDMA2_CALL_EXTERNAL);
        writer.words([inv_handle]);
        Self::behind_call_chunk(writer, call)
    }
}

/// Writes the header of a Call or a Reply without chunks. Returns its length in octets.
pub fn encode_plain(
    buffer: &mut [u8],
    direction: Direction,
    xid: u32,
    credits: u32,
) -> Result<usize, EncodeError> {
    let mut writer = Writer::new(buffer);
    match direction {
        // No handle, and three lists that are not present.
        Direction::Call => {
            writer.words([xid, VERSION, credits, RDMA2_CALL_INLINE, 0, 0, 0, 0]);
        }
        Direction::Reply => writer.words([xid, VERSION, credits, RDMA2_REPLY_INLINE, 0]),
    }
    writer.finish()
}

/// Writes the header of a Reply: the Write chunks of the offer as they came, with the lengths of
/// what was written (the draft, section 4.5.2.1). Returns its length. On an error what the buffer
/// holds is of no use.
///
/// `written` has the octets in each Write chunk, in order, and may end where the others are not
/// used. A chunk for whose item there is no result has `None`, and is returned empty (the binding,
/// section 5.1.2.1). The Payload stream follows the header, or its last fragment does, unless it is
/// in the Reply chunk: `reply` has the octets of that, then.
pub fn encode_reply(
    buffer: &mut [u8],
    xid: u32,
    credits: u32,
    offer: &Offer<'_>,
    written: impl IntoIterator<Item = Option<u32>>,
    reply: Option<u32>,
) -> Result<usize, EncodeError> {
    let header_type = match reply {
        Some(_) => RDMA2_REPLY_EXTERNAL,
        None => RDMA2_REPLY_INLINE,
    };
    let writer = begin(buffer, xid, credits, header_type);
    let encoder = Encoder::new(writer, reply.is_none()).no_reads();
    let encoder = encoder.return_writes(&offer.writes, written);
    match (reply, offer.reply_chunk) {
        (None, _) => encoder.no_reply_field(),
        (Some(octets), Some(chunk)) => encoder.return_chunk(&chunk, octets),
        (Some(_), None) => Err(EncodeError::NoPayload),
    }
}

/// Writes the header of a fragment that is not the last (the draft, sections 6.3.6 and 6.3.9).
/// Returns its length in octets.
pub fn encode_fragment(
    buffer: &mut [u8],
    direction: Direction,
    xid: u32,
    credits: u32,
    remaining: u32,
) -> Result<usize, EncodeError> {
    let header_type = match direction {
        Direction::Call => RDMA2_CALL_MIDDLE,
        Direction::Reply => RDMA2_REPLY_MIDDLE,
    };
    let mut writer = begin(buffer, xid, credits, header_type);
    writer.words([remaining]);
    writer.finish()
}

/// Writes an `RDMA2_GRANT`, whose XID is zero (the draft, section 6.3.2). Returns its length in
/// octets.
pub fn encode_grant(buffer: &mut [u8], credits: u32) -> Result<usize, EncodeError> {
    begin(buffer, 0, credits, RDMA2_GRANT).finish()
}
