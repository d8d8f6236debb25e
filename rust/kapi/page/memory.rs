// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Memory of a transfer, which nobody has to lend for as long as that takes.

use crate::kapi::page::{
    Extent,
    ExtentIter,
    Keepers,
    Kept,
    MsgPages,
    PageRun,
    ReadPages, //
};
use core::{
    marker::PhantomData,
    num::NonZero, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};

impl ExtentIter<'static> {
    /// A message as pieces for regions, which keep it as long as they cover any. May sleep.
    pub(crate) fn of_message(message: MsgPages) -> Result<Self> {
        let runs = message.pieces().runs;
        let kept = Arc::new(Kept::Message { _message: message }, GFP_KERNEL)?;
        // INVARIANT: Neither the pages nor the list of them move, and `kept` has both.
        Ok(Self {
            runs,
            kept: Some(kept),
            covers: None,
            writable: false,
            _memory: PhantomData,
        })
    }
}

/// Pieces of a message that something keeps.
///
/// # Invariants
///
/// All runs name memory that is valid as long as `keepers` are there, and nobody else's as long if
/// it is `writable`.
pub(crate) struct KeptExtents {
    runs: [Extent; 3],
    /// Only to be dropped.
    _keepers: Keepers,
    /// As with an [`ExtentIter`].
    writable: bool,
}

// SAFETY: The pointers are into memory that the keepers keep, who may be used from any thread.
unsafe impl Send for KeptExtents {}

impl KeptExtents {
    /// What is left of `pieces`. `EINVAL` if nothing keeps it.
    pub(crate) fn new(pieces: &ExtentIter<'_>) -> Result<Self> {
        if !pieces.is_kept() {
            return Err(EINVAL);
        }
        // INVARIANT: By that of `pieces`, which may go.
        Ok(Self {
            runs: pieces.runs,
            _keepers: pieces.keep(),
            writable: pieces.writable,
        })
    }

    /// Bytes of it.
    pub(crate) fn len(&self) -> usize {
        self.pieces().remaining()
    }

    fn pieces(&self) -> ExtentIter<'_> {
        // INVARIANT: Valid as long as this is borrowed.
        ExtentIter {
            runs: self.runs,
            kept: None,
            covers: None,
            writable: self.writable,
            _memory: PhantomData,
        }
    }
}

/// Memory that RDMA Reads fill, or RDMA Writes send.
pub(crate) enum TransferMemory {
    /// Its pages belong to whom this belongs.
    Pages(MsgPages),
    /// It is another's, who keeps it meanwhile.
    Kept(KeptExtents),
}

impl Default for TransferMemory {
    fn default() -> Self {
        Self::Pages(MsgPages::default())
    }
}

impl From<KeptExtents> for TransferMemory {
    fn from(extents: KeptExtents) -> Self {
        Self::Kept(extents)
    }
}

impl From<MsgPages> for TransferMemory {
    #[inline(always)]
    fn from(pages: MsgPages) -> Self {
        Self::Pages(pages)
    }
}

impl TransferMemory {
    /// Bytes of it.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Pages(pages) => pages.len(),
            Self::Kept(extents) => extents.len(),
        }
    }

    /// Whether RDMA Reads may fill it.
    #[inline]
    pub(in crate::kapi) fn is_writable(&self) -> bool {
        match self {
            Self::Pages(pages) => pages.is_writable(),
            Self::Kept(extents) => extents.writable,
        }
    }

    /// Calls `each` for the bytes from `offset` on, up to where they go on elsewhere, `n` at most,
    /// as [`ExtentIter::take`] does. Returns how many that are, none behind the last.
    #[inline]
    pub(in crate::kapi) fn take_at(
        &self,
        offset: usize,
        n: usize,
        longest: NonZero<u32>,
        each: impl FnMut(PageRun<'_>) -> bool,
    ) -> Result<usize> {
        let pieces = match self {
            Self::Pages(pages) => pages.pieces(),
            Self::Kept(extents) => extents.pieces(),
        };
        let Some(run) = pieces.into_run(offset, n) else {
            return Ok(0);
        };
        // SAFETY: The memory is valid by the invariants of both.
        unsafe { run.each(longest, each) }?;
        Ok(run.len)
    }

    /// As [`MsgPages::into_read_pages`]; none of memory that is another's.
    pub(crate) fn into_read_pages(self) -> Option<ReadPages> {
        match self {
            Self::Pages(pages) => pages.into_read_pages(),
            Self::Kept(_) => None,
        }
    }
}
