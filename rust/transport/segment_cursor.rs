// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! A position in the segments of a chunk.

use crate::transport::{
    endpoint::Handler,
    transfer::RwBuilder, //
};
use kernel::prelude::*;
use xdr::Segment;

/// The rest of a chunk.
pub(crate) struct SegmentCursor<I> {
    first: Segment,
    rest: I,
}

impl<I: Iterator<Item = Segment>> SegmentCursor<I> {
    /// Creates a cursor at the front of a chunk.
    pub(crate) fn new(rest: I) -> Self {
        let first = Segment {
            handle: 0,
            length: 0,
            offset: 0,
        };
        Self { first, rest }
    }

    /// Adds the next `len` bytes of the chunk to a transfer, from `offset` of its memory.
    /// `EMSGSIZE` if the chunk has fewer left. May sleep.
    #[inline]
    pub(crate) fn add<H: Handler>(
        &mut self,
        transfer: &mut RwBuilder<'_, H>,
        mut offset: usize,
        mut len: usize,
    ) -> Result {
        while len != 0 {
            if self.first.length == 0 {
                self.first = self.rest.next().ok_or(EMSGSIZE)?;
                continue;
            }
            let part = len.min(self.first.length as usize);
            transfer.add(offset, part, &self.first)?;
            self.first.length -= part as u32;
            // The peer's addresses may wrap around.
            self.first.offset = self.first.offset.wrapping_add(part as u64);
            offset += part;
            len -= part;
        }
        Ok(())
    }
}
