// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Read list: argument data that a responder pulls from a requester.

use core::iter;

use crate::{
    rpc::MIN_CALL_HEADER,
    segment::total,
    wire::Reader,
    DecodeError,
    Limits,
    Segment, //
};

/// A read segment, `PHLOO` on the wire (RFC 8166, sections 3.4.5 and 4.7).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadSegment {
    /// Offset in octets in the unreduced Payload stream at which the chunk is inserted.
    pub position: u32,
    /// The region that holds this piece of the chunk.
    pub segment: Segment,
}

impl ReadSegment {
    /// Octets of a read segment and of the "present" word in front of it.
    pub(crate) const LISTED_SIZE: usize = 24;

    /// Takes a read segment whose "present" word has been taken.
    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            position: reader.word()?,
            segment: Segment::read(reader)?,
        })
    }

    /// Checks the Position and the region.
    const fn check(&self) -> Result<(), DecodeError> {
        let position = self.position;
        if position & 3 != 0 {
            return Err(DecodeError::PositionUnaligned(position));
        }
        if position != 0 && position < MIN_CALL_HEADER {
            return Err(DecodeError::PositionInHeader(position));
        }
        if self.segment.end().is_none() {
            return Err(DecodeError::SegmentWraps);
        }
        Ok(())
    }
}

/// The Read list of a Call (RFC 8166, section 4.3.1).
///
/// Every Position is a multiple of four and, unless it is zero, not inside the smallest RPC Call
/// header; no segment wraps; the list is within the [`Limits`] it was decoded with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadList<'a> {
    /// Listed read segments, each with its "present" word; the final zero is left out.
    raw: &'a [u8],
}

impl<'a> ReadList<'a> {
    /// Takes a Read list, which is still to be checked.
    pub(crate) fn read(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let raw = reader.list(ReadSegment::read)?;
        Ok(Self { raw })
    }

    /// Checks each segment, each Read chunk and all together against `limits`.
    pub(crate) fn check(&self, limits: &Limits) -> Result<(), DecodeError> {
        if self.is_empty() {
            return Ok(());
        }
        // First, since the time that the rest takes depends on it.
        if self.segment_count() > limits.read_segments {
            return Err(DecodeError::ReadSegments);
        }
        self.segments().try_for_each(|entry| entry.check())?;
        if self.chunks().nth(limits.read_chunks).is_some() {
            return Err(DecodeError::ReadChunks);
        }
        let mut sum: u64 = 0;
        for chunk in self.chunks() {
            if chunk.segment_count() > limits.chunk_segments {
                return Err(DecodeError::ChunkSegments);
            }
            let length = total(chunk.segments());
            if length > u64::from(limits.read_chunk_bytes) {
                return Err(DecodeError::ReadChunkBytes);
            }
            sum = sum.saturating_add(length);
            if sum > u64::from(limits.read_list_bytes) {
                return Err(DecodeError::ReadListBytes);
            }
        }
        Ok(())
    }

    /// Checks the Positions other than zero against a reduced Payload stream of `payload` octets,
    /// which the chunks are inserted into (RFC 8166, section 3.4.5).
    pub(crate) fn check_positions(&self, payload: u64) -> Result<(), DecodeError> {
        // A chunk may leave out the XDR padding of its data item (section 3.4.5.2), but the
        // unreduced stream, which Positions count in, has it.
        let (mut unreduced, mut end) = (payload, 0);
        for chunk in self.data_chunks() {
            let (position, length) = (u64::from(chunk.position), u64::from(chunk.length()));
            if position < end {
                return Err(DecodeError::PositionOverlaps(chunk.position));
            }
            if position > unreduced {
                return Err(DecodeError::PositionPastEnd(chunk.position));
            }
            end = position.saturating_add(length);
            unreduced = unreduced.saturating_add(length.saturating_add(3) & !3);
        }
        Ok(())
    }

    /// Checks that no Position is less than the one before it, as version 2 wants it (section
    /// 4.5.1.1).
    pub(crate) fn check_order(&self) -> Result<(), DecodeError> {
        let mut last = 0;
        for entry in self.segments() {
            if entry.position < last {
                return Err(DecodeError::PositionOrder(entry.position));
            }
            last = entry.position;
        }
        Ok(())
    }

    /// Checks the Positions against a Payload stream of `payload` octets that is not in this list:
    /// beside it there is no Position Zero Read chunk (RFC 8166, section 3.5.3).
    pub(crate) fn check_inline(&self, payload: u64) -> Result<(), DecodeError> {
        if self.position_zero().is_some() {
            return Err(DecodeError::PositionZeroInline);
        }
        self.check_positions(payload)
    }

    /// Returns whether the list is "not present".
    pub const fn is_empty(&self) -> bool {
        self.raw.is_empty()
    }

    /// Returns the number of read segments.
    pub(crate) const fn segment_count(&self) -> usize {
        self.raw.len() / ReadSegment::LISTED_SIZE
    }

    /// Returns the read segments in list order, chunks possibly mixed.
    pub fn segments(&self) -> impl Iterator<Item = ReadSegment> + Clone + 'a {
        let mut reader = Reader::new(self.raw);
        iter::from_fn(move || {
            let _present = reader.word().ok()?;
            ReadSegment::read(&mut reader).ok()
        })
    }

    /// Returns the Read chunks in ascending order of Position, whatever the order of the list.
    ///
    /// Each step takes time linear in the number of segments.
    pub fn chunks(&self) -> impl Iterator<Item = ReadChunk<'a>> + Clone + 'a {
        self.chunks_after(None)
    }

    /// Returns the Read chunks of Positions other than zero, in ascending order.
    pub fn data_chunks(&self) -> impl Iterator<Item = ReadChunk<'a>> + Clone + 'a {
        self.chunks_after(Some(0))
    }

    fn chunks_after(
        self,
        mut after: Option<u32>,
    ) -> impl Iterator<Item = ReadChunk<'a>> + Clone + 'a {
        iter::from_fn(move || {
            let positions = self.segments().map(|entry| entry.position);
            // `None` is less than every Position.
            let position = positions.filter(|at| Some(*at) > after).min()?;
            after = Some(position);
            Some(ReadChunk {
                list: self,
                position,
            })
        })
    }

    /// Returns the Position Zero Read chunk, which holds the Payload stream of a Long Call
    /// (RFC 8166, section 3.5.3).
    pub fn position_zero(&self) -> Option<ReadChunk<'a>> {
        self.chunks().next().filter(|chunk| chunk.position == 0)
    }
}

/// A Read chunk: the read segments of one Position (RFC 8166, section 3.4.5).
#[derive(Clone, Copy, Debug)]
pub struct ReadChunk<'a> {
    list: ReadList<'a>,
    position: u32,
}

impl<'a> ReadChunk<'a> {
    /// Returns the offset in octets in the unreduced Payload stream; zero for the chunk that is
    /// the Payload stream.
    pub const fn position(&self) -> u32 {
        self.position
    }

    /// Returns the number of octets of all segments together.
    pub fn length(&self) -> u32 {
        // Decoding has held the sum against a 32-bit limit.
        u32::try_from(total(self.segments())).unwrap_or(u32::MAX)
    }

    /// Returns the number of segments, at least one.
    pub fn segment_count(&self) -> usize {
        self.segments()
            .fold(0, |count: usize, _| count.saturating_add(1))
    }

    /// Returns the segments in list order, which is the order of their contents (RFC 8166,
    /// section 3.4.5).
    pub fn segments(&self) -> impl Iterator<Item = Segment> + Clone + 'a {
        let position = self.position;
        let listed = self.list.segments();
        listed
            .filter(move |entry| entry.position == position)
            .map(|entry| entry.segment)
    }
}
