// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Write list and Reply chunk: requester memory that a responder fills.

use core::iter::FusedIterator;

use crate::{
    wire::Reader,
    DecodeError,
    Limits,
    RpcPrefix,
    Segment,
    Segments, //
};

/// A Write chunk or a Reply chunk: a counted array of segments (RFC 8166, sections 3.4.6 and
/// 4.3.3).
///
/// In a Call the lengths say how much room the requester offers, in a Reply how much the responder
/// wrote. No segment wraps, and the chunk is within the [`Limits`] it was decoded with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteChunk<'a> {
    raw: &'a [u8],
}

impl<'a> WriteChunk<'a> {
    /// Takes a chunk of at most `max_bytes` octets; `too_long` is the error for a longer one.
    #[inline]
    fn decode(
        reader: &mut Reader<'a>,
        limits: &Limits,
        max_bytes: u32,
        too_long: DecodeError,
    ) -> Result<Self, DecodeError> {
        let count = reader.count()?;
        // A count that the message cannot hold is malformed, not merely too large.
        let raw = reader.items(count, Segment::SIZE)?;
        if count > limits.chunk_segments {
            return Err(DecodeError::ChunkSegments);
        }
        let mut length: u32 = 0;
        for segment in Segments::new(raw) {
            if segment.end().is_none() {
                return Err(DecodeError::SegmentWraps);
            }
            length = match length.checked_add(segment.length) {
                Some(sum) if sum <= max_bytes => sum,
                _ => return Err(too_long),
            };
        }
        Ok(Self { raw })
    }

    /// Takes the optional Reply chunk.
    #[inline]
    pub(crate) fn decode_reply_chunk(
        reader: &mut Reader<'a>,
        limits: &Limits,
    ) -> Result<Option<Self>, DecodeError> {
        if !reader.present()? {
            return Ok(None);
        }
        let max_bytes = limits.reply_chunk_bytes;
        Self::decode(reader, limits, max_bytes, DecodeError::ReplyChunkBytes).map(Some)
    }

    /// A chunk that was decoded before.
    #[inline]
    pub(crate) const fn known(raw: &'a [u8]) -> Self {
        Self { raw }
    }

    /// Its segments on the wire.
    #[inline]
    pub(crate) const fn raw(&self) -> &'a [u8] {
        self.raw
    }

    /// Octets of all segments together.
    #[inline]
    pub fn length(&self) -> u32 {
        self.segments().fold(0, |sum: u32, segment| {
            // Decoding has held the sum against a 32-bit limit.
            sum.saturating_add(segment.length)
        })
    }

    /// Number of segments; zero makes an empty chunk (RFC 8166, sections 3.4.6 and 4.3.2.3).
    #[inline]
    pub const fn segment_count(&self) -> usize {
        self.raw.len() / Segment::SIZE
    }

    /// The segments in array order, which is the order in which a responder fills them.
    #[inline]
    pub const fn segments(&self) -> Segments<'a> {
        Segments::new(self.raw)
    }

    /// The segments with the lengths that a responder returns after it wrote `bytes` octets: in
    /// array order, each full before the next begins (RFC 8166, section 3.4.6).
    ///
    /// Zero gives an unused chunk (section 4.3.2.2). `None` when the chunk has less room.
    #[inline]
    pub fn filled(&self, bytes: u32) -> Option<Filled<'a>> {
        if bytes > self.length() {
            return None;
        }
        Some(Filled {
            segments: self.segments(),
            left: bytes,
        })
    }

    /// Whether the chunk can hold the two words that every RPC message begins with.
    #[inline]
    pub(crate) fn holds_rpc_prefix(&self) -> bool {
        usize::try_from(self.length()).is_ok_and(|length| length >= RpcPrefix::SIZE)
    }
}

/// Iterator of [`WriteChunk::filled`].
#[derive(Clone, Debug)]
pub struct Filled<'a> {
    segments: Segments<'a>,
    left: u32,
}

impl Iterator for Filled<'_> {
    type Item = Segment;

    #[inline]
    fn next(&mut self) -> Option<Segment> {
        let segment = self.segments.next()?;
        let length = segment.length.min(self.left);
        self.left = self.left.saturating_sub(length);
        Some(Segment { length, ..segment })
    }
}

impl FusedIterator for Filled<'_> {}

/// The Write list of a Call or a Reply (RFC 8166, section 4.3.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteList<'a> {
    /// Chunks, each with its "present" word; the final zero is left out.
    raw: &'a [u8],
    chunks: usize,
}

impl<'a> WriteList<'a> {
    #[inline]
    pub(crate) fn decode(reader: &mut Reader<'a>, limits: &Limits) -> Result<Self, DecodeError> {
        let start = reader.rest();
        let mut raw_len: usize = 0;
        let mut chunks: usize = 0;
        let mut segments: usize = 0;
        while reader.present()? {
            let max_bytes = limits.write_chunk_bytes;
            let chunk =
                WriteChunk::decode(reader, limits, max_bytes, DecodeError::WriteChunkBytes)?;
            chunks = chunks.saturating_add(1);
            if chunks > limits.write_chunks {
                return Err(DecodeError::WriteChunks);
            }
            segments = segments.saturating_add(chunk.segment_count());
            if segments > limits.write_segments {
                return Err(DecodeError::WriteSegments);
            }
            raw_len = start.len().saturating_sub(reader.rest().len());
        }
        let raw = start.get(..raw_len).ok_or(DecodeError::Truncated)?;
        Ok(Self { raw, chunks })
    }

    /// A list of so many chunks that was decoded before.
    #[inline]
    pub(crate) const fn known(raw: &'a [u8], chunks: usize) -> Self {
        Self { raw, chunks }
    }

    /// The list on the wire, without its final zero.
    #[inline]
    pub(crate) const fn raw(&self) -> &'a [u8] {
        self.raw
    }

    /// Whether the list is "not present".
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.chunks == 0
    }

    /// Number of Write chunks, empty ones included.
    #[inline]
    pub const fn chunk_count(&self) -> usize {
        self.chunks
    }

    /// Number of segments of all chunks together.
    #[inline]
    pub const fn segment_count(&self) -> usize {
        // Each chunk has a word that says "present", and a count.
        let others = self.chunks.saturating_mul(8);
        self.raw.len().saturating_sub(others) / Segment::SIZE
    }

    /// The Write chunks in list order, which is the order in which results use them (RFC 8166,
    /// section 4.3.2.1).
    #[inline]
    pub const fn chunks(&self) -> WriteChunks<'a> {
        WriteChunks {
            rest: self.raw,
            left: self.chunks,
        }
    }
}

/// Iterator of [`WriteList::chunks`].
#[derive(Clone, Debug)]
pub struct WriteChunks<'a> {
    rest: &'a [u8],
    left: usize,
}

impl<'a> Iterator for WriteChunks<'a> {
    type Item = WriteChunk<'a>;

    #[inline]
    fn next(&mut self) -> Option<WriteChunk<'a>> {
        self.left = self.left.checked_sub(1)?;
        let mut reader = Reader::new(self.rest);
        // Decoding has seen that all of this is there.
        reader.word().ok()?;
        let count = reader.count().ok()?;
        let raw = reader.items(count, Segment::SIZE).ok()?;
        self.rest = reader.rest();
        Some(WriteChunk { raw })
    }
}

impl FusedIterator for WriteChunks<'_> {}
