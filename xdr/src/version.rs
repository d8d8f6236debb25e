// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The versions of the protocol.

use crate::{
    lists_size,
    v1::header::MIN_HEADER,
    Direction,
    FixedHeader,
    Offer, //
};

/// A version of the protocol, which all messages of a connection have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// RFC 8166.
    #[default]
    One,
    /// See [`v2`](crate::v2).
    Two,
}

impl Version {
    /// Returns its number on the wire.
    pub const fn number(self) -> u32 {
        match self {
            Self::One => crate::v1::header::VERSION,
            Self::Two => crate::v2::VERSION,
        }
    }

    /// Returns the octets of a header without chunks, which a Payload stream follows.
    #[inline]
    pub const fn plain_size(self, direction: Direction) -> usize {
        match (self, direction) {
            (Self::One, _) => MIN_HEADER,
            // `rdma_inv_handle`, and the end of three lists.
            (Self::Two, Direction::Call) => FixedHeader::SIZE.saturating_add(16),
            // The end of the Write list.
            (Self::Two, Direction::Reply) => FixedHeader::SIZE.saturating_add(4),
        }
    }
}

impl Offer<'_> {
    /// Returns the octets of the chunks that an inline Reply returns at most: all that are offered,
    /// but in version 2 the Reply chunk.
    #[inline]
    pub fn returned_size(&self, version: Version) -> usize {
        let writes = self.writes.chunks().map(|chunk| chunk.segment_count());
        let reply = self.reply_chunk.map(|chunk| chunk.segment_count());
        lists_size(0, writes, reply.filter(|_| version == Version::One))
    }
}
