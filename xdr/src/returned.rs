// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Returned chunks, compared with what the requester offered.

use core::borrow::Borrow;

use crate::{
    Reply,
    ReplyPayload,
    RpcPrefix,
    Segment,
    WriteChunk,
    WriteList, //
};

/// How a returned chunk differs from the one offered.
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
    /// The reason in words, for a log line.
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
    /// Octets that the responder wrote into the chunk that was offered as `offered`.
    ///
    /// The responder copies count and segments and changes only the lengths (RFC 8166,
    /// section 3.4.6). It fills "contiguously and in segment array order" (same section), so a
    /// segment that is not full is the last with octets in it: anything after it would leave stale
    /// bytes inside the result. Segments left out at the end count as not written: responders of
    /// RFC 5666 return only those they used, and RFC 8267, section 6.4.1, has servers return an
    /// empty chunk for an unused one.
    pub fn written<I>(&self, offered: I) -> Result<u32, ReturnError>
    where
        I: IntoIterator<Item: Borrow<Segment>>,
    {
        let mut returned = self.segments();
        let mut full = true;
        let mut written: u32 = 0;
        for offered in offered {
            let offered = offered.borrow();
            let Some(segment) = returned.next() else {
                break;
            };
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
        if returned.next().is_some() {
            return Err(ReturnError::SegmentCount);
        }
        Ok(written)
    }
}

impl Reply<'_> {
    /// Octets in the only Write chunk that was offered.
    ///
    /// A Reply without Write list counts as zero: nothing in it refers to the chunk.
    #[inline]
    pub fn written<I>(&self, offered: I) -> Result<u32, ReturnError>
    where
        I: IntoIterator<Item: Borrow<Segment>>,
    {
        if self.writes.is_empty() {
            return Ok(0);
        }
        self.writes.written(offered)
    }
}

impl WriteList<'_> {
    /// Octets in the only chunk of a list that is not empty.
    fn written<I>(self, offered: I) -> Result<u32, ReturnError>
    where
        I: IntoIterator<Item: Borrow<Segment>>,
    {
        let mut chunks = self.chunks();
        match (chunks.next(), chunks.next()) {
            (None, _) => Ok(0),
            (Some(chunk), None) => chunk.written(offered),
            (Some(_), Some(_)) => Err(ReturnError::NotOffered),
        }
    }
}

impl Reply<'_> {
    /// For a Call that offered no Write chunk.
    #[inline]
    pub fn nothing_written(&self) -> Result<(), ReturnError> {
        if self.writes.is_empty() {
            return Ok(());
        }
        Err(ReturnError::NotOffered)
    }

    /// Octets of the RPC message in the Reply chunk that was offered; zero when it is not there.
    ///
    /// An inline Reply may mark the chunk as not present or return it; its lengths then mean
    /// nothing, but its segments are still compared.
    #[inline]
    pub fn reply_written<I>(&self, offered: I) -> Result<u32, ReturnError>
    where
        I: IntoIterator<Item: Borrow<Segment>>,
    {
        let written = match self.reply_chunk {
            Some(chunk) => chunk.written(offered)?,
            None => 0,
        };
        match self.payload {
            ReplyPayload::Inline(_) => Ok(0),
            ReplyPayload::ReplyChunk
                if usize::try_from(written).is_ok_and(|len| len >= RpcPrefix::SIZE) =>
            {
                Ok(written)
            }
            ReplyPayload::ReplyChunk => Err(ReturnError::ShortPayload),
            ReplyPayload::Provided(_) if written == 0 => Ok(0),
            ReplyPayload::Provided(_) => Err(ReturnError::TwoPayloads),
        }
    }

    /// For a Call that offered no Reply chunk.
    #[inline]
    pub fn no_reply_written(&self) -> Result<(), ReturnError> {
        if self.reply_chunk.is_none() {
            return Ok(());
        }
        Err(ReturnError::NotOffered)
    }
}
