// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The chunks that a Call offers the server.

use crate::kapi::ib::{
    Access,
    Regions, //
};
use kernel::{
    alloc::Flags,
    prelude::*, //
};
use xdr::Segment;

/// The number of regions that an RPC has room for from the first: enough unless the regions of a
/// connection are small.
const USUAL_REGIONS: usize = 8;

/// A chunk of a Call.
#[derive(Clone, Copy)]
pub(super) enum Chunk {
    /// A Read chunk at this Position.
    Read(usize),
    Write,
    Reply,
}

impl Chunk {
    pub(super) fn access(self) -> Access {
        match self {
            Self::Read(_) => Access::RemoteRead,
            Self::Write | Self::Reply => Access::RemoteWrite,
        }
    }
}

/// The chunks that a Call offers the server, and the regions that cover them.
pub(crate) struct Offer {
    pub(crate) regions: Regions,
    /// The Read chunk or Position Zero Read chunk.
    pub(crate) read: KVec<Segment>,
    /// The Write chunk.
    pub(crate) write: KVec<Segment>,
    /// The Reply chunk.
    pub(crate) reply: KVec<Segment>,
}

impl Offer {
    /// Creates an offer without chunks. May sleep if `flags` say so.
    pub(super) fn new(flags: Flags) -> Result<Self> {
        Ok(Self {
            regions: Regions::new(USUAL_REGIONS, flags)?,
            read: KVec::with_capacity(USUAL_REGIONS, flags)?,
            write: KVec::with_capacity(USUAL_REGIONS, flags)?,
            reply: KVec::with_capacity(USUAL_REGIONS, flags)?,
        })
    }

    /// Returns the segments of one of its chunks.
    pub(super) fn segments(&mut self, chunk: Chunk) -> &mut KVec<Segment> {
        match chunk {
            Chunk::Read(_) => &mut self.read,
            Chunk::Write => &mut self.write,
            Chunk::Reply => &mut self.reply,
        }
    }

    /// Returns the number of segments of all its chunks.
    pub(super) fn all_segments(&self) -> usize {
        self.read.len() + self.write.len() + self.reply.len()
    }

    /// Makes room for `n` regions, and as many segments in each chunk. Does not sleep.
    pub(crate) fn reserve(&mut self, n: usize) -> Result {
        // The list that is grown last tells whether all were grown.
        if self.reply.capacity() >= n {
            return Ok(());
        }
        let flags = GFP_NOWAIT;
        self.regions.reserve(n, flags)?;
        for list in [&mut self.read, &mut self.write, &mut self.reply] {
            list.reserve(n.saturating_sub(list.len()), flags)?;
        }
        Ok(())
    }
}
