// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Returned chunks, compared with what the requester offered.

use core::borrow::Borrow;

use crate::{
    Reply,
    ReplyPayload,
    RpcPrefix,
    Segment,
    WriteChunk, //
};

/// Difference between a returned chunk and the one offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReturnError {
    /// A chunk comes back where none, or fewer, were offered.
    NotOffered,
    /// More segments.
    SegmentCount,
    /// Another handle.
    Handle,
    /// Another offset.
    Offset,
    /// More octets than the segment has.
    Length,
    /// Octets in a segment after one that is not full.
    Hole,
    /// Too few octets in the Reply chunk of an `RDMA_NOMSG` for an RPC message.
    ShortPayload,
    /// Octets in the Reply chunk, beside a Read chunk that has the RPC message.
    TwoPayloads,
}

impl ReturnError {
    /// Returns the reason in words, for a log line.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::NotOffered => "chunk returned that was not offered",
            Self::SegmentCount => "returned chunk has more segments",
            Self::Handle => "returned segment has another handle",
            Self::Offset => "returned segment has another offset",
            Self::Length => "returned segment longer than offered",
            Self::Hole => "returned chunk not filled in order",
            Self::ShortPayload => "Reply chunk too short for an RPC message",
            Self::TwoPayloads => "Reply chunk written, and a Read chunk provided",
        }
    }
}

impl WriteChunk<'_> {
    /// Returns the octets that the responder wrote into the chunk that was offered as `offered`.
    ///
    /// The responder copies count and segments and changes only the lengths (RFC 8166,
    /// section 3.4.6). It fills "contiguously and in segment array order" (same section), so a
    /// segment that is not full is the last with octets in it: anything after it would leave stale
    /// bytes inside the result. Segments left out at the end count as not written: responders of
    /// RFC 5666 return only those they used, and RFC 8267, section 6.4.1, has servers return an
    /// empty chunk for an unused one.
    pub fn written(
        &self,
        offered: impl IntoIterator<Item: Borrow<Segment>>,
    ) -> Result<u32, ReturnError> {
        let mut returned = self.segments();
        let (mut full, mut written) = (true, 0u32);
        for (offered, segment) in offered.into_iter().zip(returned.by_ref()) {
            let offered = offered.borrow();
            if segment.handle != offered.handle {
                return Err(ReturnError::Handle);
            }
            if segment.offset != offered.offset {
                return Err(ReturnError::Offset);
            }
            if segment.length > offered.length {
                return Err(ReturnError::Length);
            }
            if segment.length != 0 && !full {
                return Err(ReturnError::Hole);
            }
            full &= segment.length == offered.length;
            // Decoding has held the sum against a 32-bit limit.
            written = written.saturating_add(segment.length);
        }
        match returned.next() {
            Some(_) => Err(ReturnError::SegmentCount),
            None => Ok(written),
        }
    }
}

impl Reply<'_> {
    /// Returns the octets in the only Write chunk that was offered.
    ///
    /// A Reply without Write list counts as zero: nothing in it refers to the chunk.
    pub fn written(
        &self,
        offered: impl IntoIterator<Item: Borrow<Segment>>,
    ) -> Result<u32, ReturnError> {
        let mut chunks = self.writes.chunks();
        match (chunks.next(), chunks.next()) {
            (None, _) => Ok(0),
            (Some(chunk), None) => chunk.written(offered),
            (Some(_), Some(_)) => Err(ReturnError::NotOffered),
        }
    }

    /// Checks the Reply to a Call that offered no Write chunk.
    pub fn nothing_written(&self) -> Result<(), ReturnError> {
        let nothing = self.writes.is_empty().then_some(());
        nothing.ok_or(ReturnError::NotOffered)
    }

    /// Returns the octets of the RPC message in the Reply chunk that was offered; zero when it is
    /// not there.
    ///
    /// An inline Reply may mark the chunk as not present or return it; its lengths then mean
    /// nothing, but its segments are still compared.
    pub fn reply_written(
        &self,
        offered: impl IntoIterator<Item: Borrow<Segment>>,
    ) -> Result<u32, ReturnError> {
        let returned = self.reply_chunk;
        let written = returned.map_or(Ok(0), |chunk| chunk.written(offered))?;
        match self.payload {
            ReplyPayload::Inline(_) => Ok(0),
            ReplyPayload::ReplyChunk if written < RpcPrefix::SIZE => Err(ReturnError::ShortPayload),
            ReplyPayload::Provided(_) if written != 0 => Err(ReturnError::TwoPayloads),
            ReplyPayload::ReplyChunk | ReplyPayload::Provided(_) => Ok(written),
        }
    }

    /// Checks the Reply to a Call that offered no Reply chunk.
    pub fn no_reply_written(&self) -> Result<(), ReturnError> {
        let nothing = self.reply_chunk.is_none().then_some(());
        nothing.ok_or(ReturnError::NotOffered)
    }
}
