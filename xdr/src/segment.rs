// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Plain segment: one registered memory region of a requester.

use core::iter;

use crate::{
    wire::{
        Reader,
        Writer, //
    },
    DecodeError, //
};

/// A plain segment, `HLOO` on the wire (RFC 8166, sections 3.4.3 and 4.7).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// Steering tag or R_key of the region.
    pub handle: u32,
    /// Length of the region in octets; zero makes an empty segment.
    pub length: u32,
    /// Offset or address of the first octet of the region.
    pub offset: u64,
}

impl Segment {
    /// Octets of a plain segment on the wire.
    pub const SIZE: usize = 16;

    /// Takes a segment.
    #[inline]
    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let [handle, length, high, low] = reader.words()?;
        Ok(Self {
            handle,
            length,
            offset: (u64::from(high) << 32) | u64::from(low),
        })
    }

    /// Puts the segment.
    #[inline]
    pub(crate) fn write(&self, writer: &mut Writer<'_>) {
        let (high, low) = ((self.offset >> 32) as u32, self.offset as u32);
        writer.words([self.handle, self.length, high, low]);
    }

    /// Returns the offset just after the region; `None` when it does not fit 64 bits.
    ///
    /// A region whose end is 2^64 exactly counts as wrapping, so that a decoded segment's end can
    /// always be named.
    pub const fn end(&self) -> Option<u64> {
        // Widening: every u32 is a u64.
        self.offset.checked_add(self.length as u64)
    }
}

/// Returns the segments of an array, in its order.
pub(crate) fn segments(raw: &[u8]) -> impl Iterator<Item = Segment> + Clone + '_ {
    let mut reader = Reader::new(raw);
    iter::from_fn(move || Segment::read(&mut reader).ok())
}

/// Returns the sum of the lengths of `segments`.
pub(crate) fn total(segments: impl Iterator<Item = Segment>) -> u64 {
    segments.fold(0, |sum, segment| {
        sum.saturating_add(u64::from(segment.length))
    })
}
