// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! What a Call offers for its Reply, and where in the message it does.

use crate::{
    Call,
    EncodeError,
    Encoder,
    FixedHeader,
    Segment,
    WriteChunk,
    WriteList,
    MIN_HEADER, //
};

/// Room that a requester offers for the results of its Call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offer<'a> {
    /// Room for results that are placed directly.
    pub writes: WriteList<'a>,
    /// Room for a Long Reply.
    pub reply_chunk: Option<WriteChunk<'a>>,
}

impl Offer<'_> {
    /// Whether there is no chunk in it.
    #[inline]
    pub fn is_nothing(&self) -> bool {
        self.writes.is_empty() && self.reply_chunk.is_none()
    }

    /// Octets of the header of the Reply, which returns all that was offered.
    #[inline]
    pub fn header_size(&self) -> usize {
        // The count of segments, which is there only with a Reply chunk.
        let reply_chunk = self
            .reply_chunk
            .map_or(0, |chunk| chunk.raw().len().saturating_add(WORD));
        self.writes
            .raw()
            .len()
            .saturating_add(reply_chunk)
            .saturating_add(MIN_HEADER)
    }

    /// Writes the header of the Reply: the chunks as they came, with the lengths of what was
    /// written (RFC 8166, section 3.4.6). Returns its length. On an error what the buffer holds is
    /// of no use.
    ///
    /// `written` has the octets in each Write chunk, in order, and may end where the others are not
    /// used. `long` is the length of the RPC message in the Reply chunk, none when that follows the
    /// header.
    #[inline(always)]
    pub fn encode_reply(
        &self,
        buffer: &mut [u8],
        xid: u32,
        credits: u32,
        written: impl IntoIterator<Item = u32>,
        long: Option<u32>,
    ) -> Result<usize, EncodeError> {
        let encoder = match long {
            Some(_) => Encoder::nomsg(buffer, xid, credits),
            None => Encoder::msg(buffer, xid, credits),
        };
        // As for most Calls.
        if self.is_nothing() {
            if !written.into_iter().all(|octets| octets == 0) {
                return Err(EncodeError::Written);
            }
            return encoder.no_chunks();
        }
        let mut writes = encoder.end_reads();
        writes.return_writes(&self.writes, written);
        let reply = writes.end_writes();
        match &self.reply_chunk {
            Some(chunk) => reply.return_reply_chunk(chunk, long.unwrap_or(0)),
            None => reply.no_reply_chunk(),
        }
    }

    /// As [`Self::encode_reply`], of a Reply whose Payload stream is in a Read chunk that this end
    /// provides, since there is no room for it in what is offered.
    pub fn encode_provided_reply(
        &self,
        buffer: &mut [u8],
        (xid, credits): (u32, u32),
        written: impl IntoIterator<Item = u32>,
        segments: &[Segment],
    ) -> Result<usize, EncodeError> {
        let mut reads = Encoder::nomsg(buffer, xid, credits);
        reads.read_chunk(0, segments);
        let mut writes = reads.end_reads();
        writes.return_writes(&self.writes, written);
        writes.end_writes().no_reply_chunk()
    }
}

/// Where the offer of a decoded Call is in its message: who keeps that need not decode it again.
/// By default there is none.
///
/// Small, since it is kept for each Call: no message is so long that its parts need more bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OfferPlace {
    /// Octets of the Read list, without its final zero.
    reads: u32,
    /// The same of the Write list.
    writes: u32,
    chunks: u32,
    /// Octets of the segments of the Reply chunk.
    reply_chunk: Option<u32>,
}

/// Octets of the word that says "present", or that ends a list.
const WORD: usize = 4;

impl<'a> Call<'a> {
    /// What it offers.
    #[inline]
    pub const fn offer(&self) -> Offer<'a> {
        Offer {
            writes: self.writes,
            reply_chunk: self.reply_chunk,
        }
    }

    /// Where that is in the message.
    #[inline(always)]
    pub fn offer_place(&self) -> OfferPlace {
        // What does not fit is not found again.
        let short = |octets: usize| u32::try_from(octets).unwrap_or(u32::MAX);
        OfferPlace {
            reads: short(self.reads.raw().len()),
            writes: short(self.writes.raw().len()),
            chunks: short(self.writes.chunk_count()),
            reply_chunk: self.reply_chunk.map(|chunk| short(chunk.raw().len())),
        }
    }
}

impl OfferPlace {
    /// Whether there is none.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.chunks == 0 && self.reply_chunk.is_none()
    }

    /// The offer, in the message that the Call was decoded from. `None` in one that is shorter.
    #[inline]
    pub fn find<'a>(&self, message: &'a [u8]) -> Option<Offer<'a>> {
        if self.is_empty() {
            return Some(Offer::default());
        }
        let long = |octets: u32| usize::try_from(octets).ok();
        let reads_end = long(self.reads)?.checked_add(FixedHeader::SIZE + WORD)?;
        let (writes, rest) = message
            .get(reads_end..)?
            .split_at_checked(long(self.writes)?)?;
        let reply_chunk = match self.reply_chunk {
            Some(octets) => {
                // The end of the Write list, "present", and the count of segments.
                let raw = rest.get(3 * WORD..)?.get(..long(octets)?)?;
                Some(WriteChunk::known(raw))
            }
            None => None,
        };
        Some(Offer {
            writes: WriteList::known(writes, long(self.chunks)?),
            reply_chunk,
        })
    }
}
