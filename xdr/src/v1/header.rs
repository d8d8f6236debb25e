// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Values of the fixed fields, and sizes of headers.

use crate::{
    FixedHeader,
    Offer,
    ReadSegment,
    Segment, //
};

/// `rdma_vers` (RFC 8166, section 4.2.2).
pub const VERSION: u32 = 1;

/// `rdma_proc`: chunk lists and a Payload stream follow (RFC 8166, section 4.2.4).
pub(crate) const RDMA_MSG: u32 = 0;
/// `rdma_proc`: chunk lists follow, and one of the chunks holds the Payload stream (RFC 8166,
/// section 4.2.4).
pub const RDMA_NOMSG: u32 = 1;
/// `rdma_proc`: reserved, never sent (RFC 8166, section 4.6.1).
pub(crate) const RDMA_MSGP: u32 = 2;
/// `rdma_proc`: reserved (RFC 8166, section 4.6.2), sent between peers alone that pull Replies.
pub(crate) const RDMA_DONE: u32 = 3;
/// `rdma_proc`: an error code follows (RFC 8166, section 4.2.4); the value is fixed for all
/// versions.
pub(crate) const RDMA_ERROR: u32 = 4;

/// Octets of the smallest header that has chunk lists: the fixed fields and three words that say
/// "not present" (RFC 8166, sections 4.5 and 4.7).
pub const MIN_HEADER: usize = 28;

/// Returns the fixed fields of a message of this version.
pub(super) const fn fixed(xid: u32, credits: u32, procedure: u32) -> FixedHeader {
    FixedHeader {
        xid,
        version: VERSION,
        credits,
        procedure,
    }
}

/// Returns the octets of a header with these chunks, for choosing the form of a message before it
/// is written.
///
/// `writes` has the segment count of each Write chunk; `reply` is that of the Reply chunk.
pub fn header_size(
    read_segments: usize,
    writes: impl IntoIterator<Item = usize>,
    reply: Option<usize>,
) -> usize {
    let segments = |count: usize| count.saturating_mul(Segment::SIZE);
    let reads = read_segments.saturating_mul(ReadSegment::LISTED_SIZE);
    // A Write chunk has a "present" word and a count.
    let lists = writes.into_iter().fold(reads, |sum, count| {
        sum.saturating_add(segments(count)).saturating_add(8)
    });
    // The "present" word of a Reply chunk is part of every header, the count is not.
    let reply = reply.map_or(0, |count| segments(count).saturating_add(4));
    MIN_HEADER.saturating_add(lists).saturating_add(reply)
}

impl Offer<'_> {
    /// Returns the octets of the header of the Reply, which returns every chunk offered.
    pub fn header_size(&self) -> usize {
        let writes = self.writes.chunks().map(|chunk| chunk.segment_count());
        header_size(0, writes, self.reply_chunk.map(|c| c.segment_count()))
    }
}
