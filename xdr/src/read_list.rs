// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Read list: argument data that a responder pulls from a requester.

use core::iter::FusedIterator;

use crate::{
    wire::Reader,
    DecodeError,
    Limits,
    RpcPrefix,
    Segment,
    MIN_CALL_HEADER, //
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
    /// Octets of a read segment on the wire.
    pub const SIZE: usize = 20;
    /// Octets of a read segment and of the word in front of it that says "present".
    pub const LISTED_SIZE: usize = 24;

    #[inline]
    const fn from_parts(position: &[u8; 4], segment: &[u8; Segment::SIZE]) -> Self {
        Self {
            position: u32::from_be_bytes(*position),
            segment: Segment::from_wire(segment),
        }
    }

    /// Takes a read segment whose "present" word has been taken.
    #[inline(always)]
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let entry = Self::from_parts(reader.array()?, reader.array()?);
        if entry.position & 3 != 0 {
            return Err(DecodeError::PositionUnaligned(entry.position));
        }
        if entry.position != 0 && entry.position < MIN_CALL_HEADER {
            return Err(DecodeError::PositionInHeader(entry.position));
        }
        if entry.segment.end().is_none() {
            return Err(DecodeError::SegmentWraps);
        }
        Ok(entry)
    }
}

/// The Read list of a Call (RFC 8166, section 4.3.1).
///
/// Every Position is a multiple of four and, unless it is zero, not inside the smallest RPC Call
/// header; no segment wraps; the list is within the [`Limits`] it was decoded with.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReadList<'a> {
    /// Listed read segments, each with its "present" word; the final zero is left out.
    raw: &'a [u8],
    /// No Position is smaller than the one before it, as in every list that was made in one go:
    /// then chunks are not mixed.
    ascending: bool,
}

impl<'a> ReadList<'a> {
    #[inline]
    pub(crate) fn decode(reader: &mut Reader<'a>, limits: &Limits) -> Result<Self, DecodeError> {
        let start = *reader;
        if !reader.present()? {
            return Ok(Self::default());
        }
        Self::decode_present(start, reader, limits)
    }

    /// As [`Self::decode`], where `reader` is behind the word that says "present" at `start`.
    #[inline(never)]
    fn decode_present(
        mut start: Reader<'a>,
        reader: &mut Reader<'a>,
        limits: &Limits,
    ) -> Result<Self, DecodeError> {
        let mut count: usize = 0;
        let mut ascending = true;
        let mut tally = Tally::default();
        loop {
            let entry = ReadSegment::decode(reader)?;
            count = count.saturating_add(1);
            if count > limits.read_segments {
                return Err(DecodeError::ReadSegments);
            }
            ascending &= entry.position >= tally.position;
            if ascending {
                tally.add(&entry, limits)?;
            }
            if !reader.present()? {
                break;
            }
        }
        let list = Self {
            raw: start.items(count, ReadSegment::LISTED_SIZE)?,
            ascending,
        };
        if !ascending {
            list.check_chunks(limits)?;
        }
        Ok(list)
    }

    /// Calls `each` for the segments in ascending order of Position, those of a chunk in that of
    /// the list, until it fails.
    #[inline(always)]
    fn in_order(
        &self,
        mut each: impl FnMut(&ReadSegment) -> Result<(), DecodeError>,
    ) -> Result<(), DecodeError> {
        if self.ascending {
            return self.segments().try_for_each(|entry| each(&entry));
        }
        self.chunks().try_for_each(|chunk| {
            let position = chunk.position();
            let mut segments = chunk.segments();
            segments.try_for_each(|segment| each(&ReadSegment { position, segment }))
        })
    }

    /// Holds each Read chunk, and all together, against `limits`.
    #[cold]
    fn check_chunks(&self, limits: &Limits) -> Result<(), DecodeError> {
        let mut tally = Tally::default();
        self.in_order(|entry| tally.add(entry, limits))
    }

    /// Holds the Positions other than zero against a reduced Payload stream of `payload` octets,
    /// which the chunks are inserted into (RFC 8166, section 3.4.5).
    #[inline]
    pub(crate) fn check_positions(&self, payload: u64) -> Result<(), DecodeError> {
        // A chunk may leave out the XDR padding of its data item (section 3.4.5.2), but the
        // unreduced stream, which Positions count in, has it.
        let mut unreduced = payload;
        // Of the chunk that was begun last.
        let (mut position, mut length): (u32, u64) = (0, 0);
        self.in_order(|entry| {
            if entry.position != position {
                let end = u64::from(position).saturating_add(length);
                unreduced = unreduced.saturating_add(length.saturating_add(3) & !3);
                (position, length) = (entry.position, 0);
                if u64::from(position) < end {
                    return Err(DecodeError::PositionOverlaps(position));
                }
                if u64::from(position) > unreduced {
                    return Err(DecodeError::PositionPastEnd(position));
                }
            }
            if position != 0 {
                length = length.saturating_add(u64::from(entry.segment.length));
            }
            Ok(())
        })
    }

    /// As [`Self::check_positions`], for an inline Call, which has no Position Zero Read chunk
    /// (RFC 8166, section 3.5.3).
    #[inline(always)]
    pub(crate) fn check_inline(self, payload: u64) -> Result<(), DecodeError> {
        if self.is_empty() {
            return Ok(());
        }
        self.check_present_inline(payload)
    }

    #[inline(never)]
    fn check_present_inline(self, payload: u64) -> Result<(), DecodeError> {
        if self.segments().any(|entry| entry.position == 0) {
            return Err(DecodeError::PositionZeroInline);
        }
        self.check_positions(payload)
    }

    /// The list on the wire, without its final zero.
    #[inline]
    pub(crate) const fn raw(&self) -> &'a [u8] {
        self.raw
    }

    /// Whether the list is "not present".
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.raw.is_empty()
    }

    /// Read segments in list order, chunks possibly mixed.
    #[inline]
    pub const fn segments(&self) -> ReadSegments<'a> {
        ReadSegments { rest: self.raw }
    }

    /// Read chunks in ascending order of Position, whatever the order of the list.
    ///
    /// Each step takes time linear in the number of segments: in that of the chunk's, where the
    /// list is in ascending order itself.
    #[inline]
    pub const fn chunks(&self) -> ReadChunks<'a> {
        ReadChunks {
            list: *self,
            after: None,
        }
    }

    /// Read chunks of Positions other than zero, in ascending order.
    #[inline]
    pub fn data_chunks(&self) -> ReadChunks<'a> {
        let mut chunks = self.chunks();
        if !self.ascending {
            chunks.after = Some(0);
        } else if self
            .segments()
            .next()
            .is_some_and(|first| first.position == 0)
        {
            chunks.next();
        }
        chunks
    }

    /// The Position Zero Read chunk, which holds the Payload stream of a Long Call (RFC 8166,
    /// section 3.5.3).
    #[inline]
    pub fn position_zero(&self) -> Option<ReadChunk<'a>> {
        self.chunks().next().filter(|chunk| chunk.position() == 0)
    }
}

/// What is held against the limits: of chunks whose segments come one after the other.
#[derive(Default)]
struct Tally {
    chunks: usize,
    /// Of the chunk that was begun last: its Position, its segments and their octets.
    position: u32,
    segments: usize,
    length: u64,
    /// Octets of all chunks.
    total: u64,
}

impl Tally {
    /// Counts the next segment.
    #[inline(always)]
    fn add(&mut self, entry: &ReadSegment, limits: &Limits) -> Result<(), DecodeError> {
        if self.chunks == 0 || entry.position != self.position {
            self.chunks = self.chunks.saturating_add(1);
            if self.chunks > limits.read_chunks {
                return Err(DecodeError::ReadChunks);
            }
            self.position = entry.position;
            self.segments = 0;
            self.length = 0;
        }
        let octets = u64::from(entry.segment.length);
        self.segments = self.segments.saturating_add(1);
        self.length = self.length.saturating_add(octets);
        self.total = self.total.saturating_add(octets);
        if self.segments > limits.chunk_segments {
            return Err(DecodeError::ChunkSegments);
        }
        if self.length > u64::from(limits.read_chunk_bytes) {
            return Err(DecodeError::ReadChunkBytes);
        }
        if self.total > u64::from(limits.read_list_bytes) {
            return Err(DecodeError::ReadListBytes);
        }
        Ok(())
    }
}

/// The segments that share a Position.
struct Group {
    position: u32,
    segments: usize,
    length: u64,
}

impl Group {
    /// Of one segment.
    #[inline]
    fn new(entry: &ReadSegment) -> Self {
        Self {
            position: entry.position,
            segments: 1,
            length: u64::from(entry.segment.length),
        }
    }

    #[inline]
    fn add(&mut self, entry: &ReadSegment) {
        self.segments = self.segments.saturating_add(1);
        self.length = self.length.saturating_add(u64::from(entry.segment.length));
    }

    /// Those at the front of a list in ascending order.
    #[inline]
    fn first(mut list: ReadSegments<'_>) -> Option<Self> {
        let mut group = Self::new(&list.next()?);
        for entry in list {
            if entry.position != group.position {
                break;
            }
            group.add(&entry);
        }
        Some(group)
    }

    /// Those of the smallest Position after that one.
    #[inline(never)]
    fn smallest(list: ReadSegments<'_>, after: Option<u32>) -> Option<Self> {
        let mut best: Option<Self> = None;
        for entry in list.filter(|entry| after.is_none_or(|done| entry.position > done)) {
            match &mut best {
                Some(group) if entry.position > group.position => {}
                Some(group) if entry.position == group.position => group.add(&entry),
                _ => best = Some(Self::new(&entry)),
            }
        }
        best
    }
}

/// Iterator of [`ReadList::segments`].
#[derive(Clone, Debug)]
pub struct ReadSegments<'a> {
    rest: &'a [u8],
}

impl Iterator for ReadSegments<'_> {
    type Item = ReadSegment;

    #[inline]
    fn next(&mut self) -> Option<ReadSegment> {
        let (_present, rest) = self.rest.split_first_chunk::<4>()?;
        let (position, rest) = rest.split_first_chunk::<4>()?;
        let (segment, rest) = rest.split_first_chunk::<{ Segment::SIZE }>()?;
        self.rest = rest;
        Some(ReadSegment::from_parts(position, segment))
    }
}

impl FusedIterator for ReadSegments<'_> {}

/// Iterator of [`ReadList::chunks`].
#[derive(Clone, Debug)]
pub struct ReadChunks<'a> {
    /// In ascending order: what is left.
    list: ReadList<'a>,
    /// Otherwise: the Position before.
    after: Option<u32>,
}

impl<'a> ReadChunks<'a> {
    /// The next chunk, and a list that its segments are in.
    #[inline]
    fn next_group(&mut self) -> Option<(Group, ReadList<'a>)> {
        let segments = self.list.segments();
        if !self.list.ascending {
            let group = Group::smallest(segments, self.after)?;
            self.after = Some(group.position);
            return Some((group, self.list));
        }
        let group = Group::first(segments)?;
        let octets = group.segments.saturating_mul(ReadSegment::LISTED_SIZE);
        let list = self.list;
        self.list.raw = list.raw.get(octets..)?;
        Some((group, list))
    }
}

impl<'a> Iterator for ReadChunks<'a> {
    type Item = ReadChunk<'a>;

    #[inline]
    fn next(&mut self) -> Option<ReadChunk<'a>> {
        let (group, list) = self.next_group()?;
        Some(ReadChunk {
            list,
            position: group.position,
            segments: group.segments,
            // Decoding has held the sum against a 32-bit limit.
            length: u32::try_from(group.length).unwrap_or(u32::MAX),
        })
    }
}

impl FusedIterator for ReadChunks<'_> {}

/// A Read chunk: the read segments of one Position (RFC 8166, section 3.4.5).
#[derive(Clone, Copy, Debug)]
pub struct ReadChunk<'a> {
    list: ReadList<'a>,
    position: u32,
    segments: usize,
    length: u32,
}

impl<'a> ReadChunk<'a> {
    /// Offset in octets in the unreduced Payload stream; zero for the chunk that is the Payload
    /// stream.
    #[inline]
    pub const fn position(&self) -> u32 {
        self.position
    }

    /// Octets of all segments together.
    #[inline]
    pub const fn length(&self) -> u32 {
        self.length
    }

    /// Number of segments, at least one.
    #[inline]
    pub const fn segment_count(&self) -> usize {
        self.segments
    }

    /// The segments in list order, which is the order of their contents (RFC 8166,
    /// section 3.4.5).
    #[inline]
    pub const fn segments(&self) -> ReadChunkSegments<'a> {
        ReadChunkSegments {
            list: self.list.segments(),
            position: self.position,
            left: self.segments,
        }
    }

    /// Whether the chunk can hold the two words that every RPC message begins with.
    #[inline]
    pub(crate) fn holds_rpc_prefix(&self) -> bool {
        usize::try_from(self.length).is_ok_and(|length| length >= RpcPrefix::SIZE)
    }
}

/// Iterator of [`ReadChunk::segments`].
#[derive(Clone, Debug)]
pub struct ReadChunkSegments<'a> {
    list: ReadSegments<'a>,
    position: u32,
    left: usize,
}

impl Iterator for ReadChunkSegments<'_> {
    type Item = Segment;

    #[inline]
    fn next(&mut self) -> Option<Segment> {
        self.left = self.left.checked_sub(1)?;
        let position = self.position;
        self.list
            .find(|entry| entry.position == position)
            .map(|entry| entry.segment)
    }
}

impl FusedIterator for ReadChunkSegments<'_> {}
