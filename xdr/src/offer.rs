// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! What a Call offers for its Reply, and where in the message it does.

use crate::{
    wire::Writer,
    Call,
    FixedHeader,
    Procedure,
    Segment,
    WriteChunk,
    WriteList,
    MIN_HEADER,
    VERSION, //
};

/// Room that a requester offers for the results of its Call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offer<'a> {
    /// Room for results that are placed directly.
    pub writes: WriteList<'a>,
    /// Room for a Long Reply.
    pub reply_chunk: Option<WriteChunk<'a>>,
}

impl<'a> Offer<'a> {
    /// The Write chunk, if that is all of the offer.
    #[inline]
    pub fn only_write_chunk(&self) -> Option<WriteChunk<'a>> {
        if self.reply_chunk.is_some() || self.writes.chunk_count() != 1 {
            return None;
        }
        // In front of its segments it says that they are there, and how many.
        self.writes.raw().get(2 * WORD..).map(WriteChunk::known)
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

    /// Writes the header of the Reply: the chunks as they came, with the lengths of what was written
    /// (RFC 8166, section 3.4.6). Returns its length; `None` when it does not fit, when a chunk has
    /// less room than was written, or there is none. What the buffer then holds is of no use.
    ///
    /// `written` has the octets in each Write chunk, in order, and may end where the others are not
    /// used. `long` is the length of the RPC message in the Reply chunk, none when that follows the
    /// header.
    #[inline]
    pub fn encode_reply(
        &self,
        buffer: &mut [u8],
        xid: u32,
        credits: u32,
        written: impl IntoIterator<Item = u32>,
        long: Option<u32>,
    ) -> Option<usize> {
        let procedure = match long {
            Some(_) => Procedure::NoMsg,
            None => Procedure::Msg,
        };
        let fixed = FixedHeader {
            xid,
            version: VERSION,
            credits,
            procedure: procedure.to_wire(),
        };
        let mut writer = Writer::new(buffer);
        writer.array(&fixed.to_wire());
        // No Read list.
        writer.word(0);
        fill_list(writer.bytes(self.writes.raw())?, written)?;
        writer.word(0);
        match self.reply_chunk {
            Some(chunk) => {
                writer.word(1);
                let count = u32::try_from(chunk.segment_count()).ok()?;
                writer.word(count);
                fill(writer.bytes(chunk.raw())?, long.unwrap_or(0))?;
            }
            None if long.is_some() => return None,
            None => writer.word(0),
        }
        (writer.needed() <= writer.room()).then_some(writer.needed())
    }
}

/// Makes a copied Write list that of a Reply.
#[inline]
fn fill_list(mut list: &mut [u8], written: impl IntoIterator<Item = u32>) -> Option<()> {
    let mut written = written.into_iter();
    // The words that say "present" and how many segments there are.
    while let Some((words, rest)) = list.split_first_chunk_mut::<{ 2 * WORD }>() {
        let [_, _, _, _, count @ ..] = *words;
        let count = usize::try_from(u32::from_be_bytes(count)).ok()?;
        let octets = count.checked_mul(Segment::SIZE)?;
        let (segments, rest) = rest.split_at_mut_checked(octets)?;
        fill(segments, written.next().unwrap_or(0))?;
        list = rest;
    }
    // What has no chunk cannot have been written.
    written.all(|octets| octets == 0).then_some(())
}

/// Gives copied segments the lengths that say that so many octets were written: each is full before
/// the next begins. `None` when they have less room.
#[inline]
fn fill(segments: &mut [u8], mut written: u32) -> Option<()> {
    for segment in segments.chunks_exact_mut(Segment::SIZE) {
        let (_handle, rest) = segment.split_first_chunk_mut::<WORD>()?;
        let length = rest.first_chunk_mut::<WORD>()?;
        let here = u32::from_be_bytes(*length).min(written);
        *length = here.to_be_bytes();
        written = written.saturating_sub(here);
    }
    (written == 0).then_some(())
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
    #[inline]
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
