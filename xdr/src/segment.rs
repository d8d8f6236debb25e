// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Plain segment: one registered memory region of a requester.

use core::iter::FusedIterator;

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

    /// Reads a segment.
    #[inline]
    pub const fn from_wire(bytes: &[u8; Self::SIZE]) -> Self {
        let [h0, h1, h2, h3, l0, l1, l2, l3, o0, o1, o2, o3, o4, o5, o6, o7] = *bytes;
        Self {
            handle: u32::from_be_bytes([h0, h1, h2, h3]),
            length: u32::from_be_bytes([l0, l1, l2, l3]),
            offset: u64::from_be_bytes([o0, o1, o2, o3, o4, o5, o6, o7]),
        }
    }

    /// Writes a segment.
    #[inline]
    pub fn to_wire(&self) -> [u8; Self::SIZE] {
        // Words, since the compiler would store octets one by one.
        let (high, low) = ((self.offset >> 32) as u32, self.offset as u32);
        let words = [self.handle, self.length, high, low].map(u32::to_be_bytes);
        let mut wire = [0; Self::SIZE];
        wire.copy_from_slice(words.as_flattened());
        wire
    }

    /// The offset just after the region; `None` when it does not fit 64 bits.
    ///
    /// A region whose end is 2^64 exactly counts as wrapping, so that a decoded segment's end can
    /// always be named.
    #[inline]
    pub const fn end(&self) -> Option<u64> {
        // Widening: every u32 is a u64.
        self.offset.checked_add(self.length as u64)
    }
}

/// The segments of one Write or Reply chunk, in array order.
#[derive(Clone, Debug, Default)]
pub struct Segments<'a> {
    rest: &'a [u8],
}

impl<'a> Segments<'a> {
    /// `raw` holds whole segments; a remainder would be left out.
    #[inline]
    pub(crate) const fn new(raw: &'a [u8]) -> Self {
        Self { rest: raw }
    }
}

impl Iterator for Segments<'_> {
    type Item = Segment;

    #[inline]
    fn next(&mut self) -> Option<Segment> {
        let (first, rest) = self.rest.split_first_chunk::<{ Segment::SIZE }>()?;
        self.rest = rest;
        Some(Segment::from_wire(first))
    }
}

impl FusedIterator for Segments<'_> {}
