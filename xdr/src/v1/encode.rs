// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Headers, encoded.

use crate::{
    v1::header::{
        fixed,
        RDMA_MSG,
        RDMA_NOMSG,
        VERSION, //
    },
    wire::Writer,
    EncodeError,
    Encoder,
    Offer,
    ReplyPlace, //
};

impl<'b> Encoder<'b> {
    /// Begins an `RDMA_MSG` header: the Payload stream follows it in the same Send.
    ///
    /// `credits` is the number requested in a Call, or granted in a Reply.
    pub fn msg(buffer: &'b mut [u8], xid: u32, credits: u32) -> Self {
        Self::new(begin(buffer, xid, credits, RDMA_MSG), true)
    }

    /// Begins an `RDMA_NOMSG` header: the Payload stream is in the Position Zero Read chunk of a
    /// Call or in the Reply chunk of a Reply.
    pub fn nomsg(buffer: &'b mut [u8], xid: u32, credits: u32) -> Self {
        Self::new(begin(buffer, xid, credits, RDMA_NOMSG), false)
    }
}

/// Writes the header of a message without chunks. Returns its length in octets.
///
/// `credits` is as of [`Encoder::msg`].
#[inline]
pub fn encode_plain(buffer: &mut [u8], xid: u32, credits: u32) -> Result<usize, EncodeError> {
    let mut writer = Writer::new(buffer);
    // Three lists that are not present.
    writer.words([xid, VERSION, credits, RDMA_MSG, 0, 0, 0]);
    writer.finish()
}

/// Begins a message with its fixed fields.
pub(super) fn begin(buffer: &mut [u8], xid: u32, credits: u32, procedure: u32) -> Writer<'_> {
    let mut writer = Writer::new(buffer);
    fixed(xid, credits, procedure).write(&mut writer);
    writer
}

impl Offer<'_> {
    /// Writes the header of the Reply: the chunks as they came, with the lengths of what was
    /// written (RFC 8166, section 3.4.6). Returns its length. On an error what the buffer holds is
    /// of no use.
    ///
    /// `written` has the octets in each Write chunk, in order, and may end where the others are not
    /// used.
    pub fn encode_reply(
        &self,
        buffer: &mut [u8],
        xid: u32,
        credits: u32,
        written: impl IntoIterator<Item = u32>,
        place: ReplyPlace<'_>,
    ) -> Result<usize, EncodeError> {
        let mut written = written.into_iter();
        if let (ReplyPlace::Inline, true) = (place, self.is_empty()) {
            // As most replies are. What has no chunk cannot have been written.
            return match written.any(|octets| octets != 0) {
                true => Err(EncodeError::Written),
                false => encode_plain(buffer, xid, credits),
            };
        }
        let mut encoder = match place {
            ReplyPlace::Inline => Encoder::msg(buffer, xid, credits),
            ReplyPlace::ReplyChunk(_) | ReplyPlace::Provided(_) => {
                Encoder::nomsg(buffer, xid, credits)
            }
        };
        let reply = match place {
            ReplyPlace::Inline => Some(0),
            ReplyPlace::ReplyChunk(octets) => Some(octets),
            ReplyPlace::Provided(segments) => {
                encoder.read_chunk(0, segments);
                None
            }
        };
        let encoder = encoder.end_reads();
        let encoder = encoder.return_writes(&self.writes, written.map(Some));
        match self.reply_chunk.zip(reply) {
            Some((chunk, octets)) => encoder.return_chunk(&chunk, octets),
            None => encoder.no_reply_chunk(),
        }
    }
}
