// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Write list and Reply chunk: requester memory that a responder fills.

use core::iter;

use crate::{
    segment::{
        segments,
        total, //
    },
    wire::Reader,
    DecodeError,
    Limits,
    Segment, //
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
    /// Takes a chunk whose "present" word has been taken; it is still to be checked.
    fn read(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let count = reader.count()?;
        let raw = reader.items(count, Segment::SIZE)?;
        Ok(Self { raw })
    }

    /// Takes the optional Reply chunk, which is still to be checked.
    pub(crate) fn read_reply_chunk(reader: &mut Reader<'a>) -> Result<Option<Self>, DecodeError> {
        match reader.present()? {
            true => Self::read(reader).map(Some),
            false => Ok(None),
        }
    }

    /// Checks the chunk against `limits`; `too_long` is the error for more than `max_bytes` octets.
    pub(crate) fn check(
        &self,
        limits: &Limits,
        max_bytes: u32,
        too_long: DecodeError,
    ) -> Result<(), DecodeError> {
        if self.segment_count() > limits.chunk_segments {
            return Err(DecodeError::ChunkSegments);
        }
        let mut length: u64 = 0;
        for segment in self.segments() {
            segment.end().ok_or(DecodeError::SegmentWraps)?;
            length = length.saturating_add(u64::from(segment.length));
        }
        if length > u64::from(max_bytes) {
            return Err(too_long);
        }
        Ok(())
    }

    /// Returns the number of octets of all segments together.
    pub fn length(&self) -> u32 {
        // Decoding has held the sum against a 32-bit limit.
        u32::try_from(total(self.segments())).unwrap_or(u32::MAX)
    }

    /// Returns the number of segments; zero makes an empty chunk (RFC 8166, sections 3.4.6 and
    /// 4.3.2.3).
    pub const fn segment_count(&self) -> usize {
        self.raw.len() / Segment::SIZE
    }

    /// Returns the segments in array order, which is the order in which a responder fills them.
    pub fn segments(&self) -> impl Iterator<Item = Segment> + Clone + 'a {
        segments(self.raw)
    }

    /// Returns the segments with the lengths that a responder returns after it wrote `bytes`
    /// octets: in array order, each full before the next begins (RFC 8166, section 3.4.6).
    ///
    /// Zero gives an unused chunk (section 4.3.2.2). `None` when the chunk has less room.
    pub fn filled(&self, bytes: u32) -> Option<impl Iterator<Item = Segment> + Clone + 'a> {
        let mut left = bytes;
        let filled = self.segments().map(move |segment| {
            let length = segment.length.min(left);
            left = left.saturating_sub(length);
            Segment { length, ..segment }
        });
        (bytes <= self.length()).then_some(filled)
    }
}

/// The Write list of a Call or a Reply (RFC 8166, section 4.3.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteList<'a> {
    /// Chunks, each with its "present" word; the final zero is left out.
    raw: &'a [u8],
}

impl<'a> WriteList<'a> {
    /// Takes a Write list, which is still to be checked.
    pub(crate) fn read(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let raw = reader.list(WriteChunk::read)?;
        Ok(Self { raw })
    }

    /// Checks each Write chunk and all together against `limits`.
    pub(crate) fn check(&self, limits: &Limits) -> Result<(), DecodeError> {
        let (mut chunks, mut segments) = (0usize, 0usize);
        for chunk in self.chunks() {
            chunks = chunks.saturating_add(1);
            if chunks > limits.write_chunks {
                return Err(DecodeError::WriteChunks);
            }
            segments = segments.saturating_add(chunk.segment_count());
            if segments > limits.write_segments {
                return Err(DecodeError::WriteSegments);
            }
            let max_bytes = limits.write_chunk_bytes;
            chunk.check(limits, max_bytes, DecodeError::WriteChunkBytes)?;
        }
        Ok(())
    }

    /// Returns whether the list is "not present".
    pub const fn is_empty(&self) -> bool {
        self.raw.is_empty()
    }

    /// Returns the number of Write chunks, empty ones included.
    pub fn chunk_count(&self) -> usize {
        self.chunks()
            .fold(0, |count: usize, _| count.saturating_add(1))
    }

    /// Returns the number of segments of all chunks together.
    pub fn segment_count(&self) -> usize {
        self.chunks().fold(0, |count: usize, chunk| {
            count.saturating_add(chunk.segment_count())
        })
    }

    /// Returns the Write chunks in list order, which is the order in which results use them
    /// (RFC 8166, section 4.3.2.1).
    pub fn chunks(&self) -> impl Iterator<Item = WriteChunk<'a>> + Clone + 'a {
        let mut reader = Reader::new(self.raw);
        iter::from_fn(move || {
            let _present = reader.word().ok()?;
            WriteChunk::read(&mut reader).ok()
        })
    }
}
