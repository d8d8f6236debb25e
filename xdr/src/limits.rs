// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Bounds on what a receiver processes.

use crate::ReadList;

/// Bounds on a received header.
///
/// The protocol itself sets none (RFC 8267, section 6.4.2), so each receiver states what its page
/// arrays and queues can hold. Decoding takes time linear in the message, plus a few times
/// [`read_chunks`](Self::read_chunks) times [`read_segments`](Self::read_segments) steps to group
/// the Read list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Read segments in the whole Read list.
    pub read_segments: usize,
    /// Read chunks, that is, distinct Positions, a Position Zero Read chunk included.
    pub read_chunks: usize,
    /// Write chunks in the Write list.
    pub write_chunks: usize,
    /// Segments in the whole Write list.
    pub write_segments: usize,
    /// Segments in any one chunk of any kind.
    pub chunk_segments: usize,
    /// Octets of any one Read chunk.
    pub read_chunk_bytes: u32,
    /// Octets of all Read chunks together.
    pub read_list_bytes: u32,
    /// Octets of any one Write chunk.
    pub write_chunk_bytes: u32,
    /// Octets of the Reply chunk.
    pub reply_chunk_bytes: u32,
}

impl Limits {
    /// Returns whether no chunk is within these limits.
    pub(crate) const fn takes_no_chunks(&self) -> bool {
        self.read_chunks == 0 && self.write_chunks == 0 && self.chunk_segments == 0
    }

    /// Returns what is left for the Read list beside a Call chunk within these limits.
    pub(crate) fn beside(&self, call_chunk: &ReadList<'_>) -> Self {
        let (chunks, octets) = call_chunk
            .chunks()
            .next()
            .map_or((0, 0), |c| (1, c.length()));
        let segments = call_chunk.segment_count();
        Self {
            read_segments: self.read_segments.saturating_sub(segments),
            read_chunks: self.read_chunks.saturating_sub(chunks),
            read_list_bytes: self.read_list_bytes.saturating_sub(octets),
            ..*self
        }
    }

    /// Returns the least that every NFS responder accepts (RFC 8267, section 6.4.2): a Position
    /// Zero Read chunk and one more Read chunk, one Write chunk, sixteen segments in any chunk.
    ///
    /// `bytes` bounds each chunk, and all Read chunks together.
    pub const fn floor(bytes: u32) -> Self {
        Self {
            read_segments: 32,
            read_chunks: 2,
            write_chunks: 1,
            write_segments: 16,
            chunk_segments: 16,
            read_chunk_bytes: bytes,
            read_list_bytes: bytes,
            write_chunk_bytes: bytes,
            reply_chunk_bytes: bytes,
        }
    }
}
