// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! What a responder takes of the chunks of a Call, as it says in its properties (sections 5.2.3 and
//! 5.2.4 of the version 2 draft) and in errors (section 7.3). In version 1 it does not say.

#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
#[path = "../../kunit/chunk_limits.rs"]
mod tests;

use xdr::{
    v2::Properties,
    RdmaError, //
};

/// What a responder takes of the chunks of a Call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ChunkLimits {
    /// Bytes of a segment, not zero.
    pub(crate) segment_bytes: usize,
    /// Segments of a header.
    pub(crate) segments: usize,
    /// Segments of a chunk.
    pub(crate) chunk_segments: usize,
    /// Read chunks.
    pub(crate) read_chunks: u32,
    /// Write chunks.
    pub(crate) write_chunks: u32,
}

impl ChunkLimits {
    /// No limits.
    pub(super) const NONE: Self = Self {
        segment_bytes: usize::MAX,
        segments: usize::MAX,
        chunk_segments: usize::MAX,
        read_chunks: u32::MAX,
        write_chunks: u32::MAX,
    };

    /// Notes what its properties say.
    pub(super) fn apply(&mut self, theirs: &Properties) {
        self.segment_bytes = theirs.segment_bytes as usize;
        self.segments = theirs.segments as usize;
    }

    /// Notes what an error to a Call says. Returns whether it is about the chunks of that, which is
    /// to be encoded once more, within these limits.
    pub(super) fn refuse(&mut self, error: &RdmaError) -> bool {
        match *error {
            RdmaError::ReadChunks { max } => self.read_chunks = self.read_chunks.min(max),
            RdmaError::WriteChunks { max } => self.write_chunks = self.write_chunks.min(max),
            RdmaError::Segments { max } => {
                self.chunk_segments = self.chunk_segments.min(max as usize);
            }
            _ => return false,
        }
        true
    }

    /// Returns the segments of one chunk beside others of `used` segments in the header.
    pub(crate) fn left(&self, used: usize) -> usize {
        self.segments.saturating_sub(used).min(self.chunk_segments)
    }
}
