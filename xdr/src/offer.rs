// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! What a Call offers for its Reply, and where in the message it does.

use crate::{
    Call,
    FixedHeader,
    WriteChunk,
    WriteList, //
};

/// Room that a requester offers for the results of its Call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offer<'a> {
    /// Room for results that are placed directly.
    pub writes: WriteList<'a>,
    /// Room for a Long Reply.
    pub reply_chunk: Option<WriteChunk<'a>>,
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
    /// Octets of the segments of the Reply chunk, and of the memory that they name.
    reply_chunk: Option<(u32, u32)>,
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
    #[inline]
    pub fn offer_place(&self) -> OfferPlace {
        // What does not fit is not found again.
        let short = |octets: usize| u32::try_from(octets).unwrap_or(u32::MAX);
        OfferPlace {
            reads: short(self.reads.raw().len()),
            writes: short(self.writes.raw().len()),
            chunks: short(self.writes.chunk_count()),
            reply_chunk: self
                .reply_chunk
                .map(|chunk| (short(chunk.raw().len()), chunk.length())),
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
            Some((octets, length)) => {
                // The end of the Write list, "present", and the count of segments.
                let raw = rest.get(3 * WORD..)?.get(..long(octets)?)?;
                Some(WriteChunk::known(raw, length))
            }
            None => None,
        };
        Some(Offer {
            writes: WriteList::known(writes, long(self.chunks)?),
            reply_chunk,
        })
    }
}
