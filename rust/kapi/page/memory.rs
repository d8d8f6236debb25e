// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Memory that outlives the request that it came from.

use crate::kapi::{
    bindings,
    page::{
        ExtentIter,
        Extents,
        Keepers,
        PageList, //
    },
};
use core::{
    marker::PhantomData,
    num::NonZero, //
};
use kernel::{
    page::PAGE_SIZE,
    prelude::*,
    sync::Arc, //
};

/// The owner of the pages.
enum Owner {
    /// The pages are the memory's own.
    Pages(PageList),
    /// They are another's, which keeps them as long as these are there. Only to be dropped.
    Other { _keepers: Keepers },
}

/// Memory that RDMA Reads fill, or RDMA Writes send, or that is kept for a peer to read.
///
/// # Invariants
///
/// All extents name memory that is valid as long as `owner` is there, and nobody else's as long if
/// it is `writable`. Where pages of its own are writable, they hold the message from the front of
/// the first on.
pub(crate) struct TransferMemory {
    extents: Extents,
    owner: Owner,
    /// What is written there spoils nothing that others have.
    writable: bool,
}

// SAFETY: The pointers are into memory that the owner keeps, which may be used from any thread.
unsafe impl Send for TransferMemory {}

/// No memory.
const NONE: (*const u8, usize) = (core::ptr::null(), 0);

impl Default for TransferMemory {
    fn default() -> Self {
        // INVARIANT: There are no bytes.
        Self {
            extents: Extents::new(NONE, (core::ptr::null(), 0, 0), NONE),
            owner: Owner::Other {
                _keepers: (None, None),
            },
            writable: false,
        }
    }
}

impl TransferMemory {
    /// Returns the first `len` bytes of pages that are nobody else's. `EMSGSIZE` if they have
    /// fewer.
    pub(in crate::kapi) fn new(pages: PageList, len: usize) -> Result<Self> {
        let memory = Self::with_ends(pages, [NONE; 2], 0, 0, len)?;
        // INVARIANT: They were the caller's alone.
        Ok(Self {
            writable: true,
            ..memory
        })
    }

    /// Returns a head, `len` bytes that begin `base` bytes into page `first`, and a tail.
    /// `EMSGSIZE` if they are not all in the pages, each end in one of them.
    pub(in crate::kapi) fn with_ends(
        pages: PageList,
        [head, tail]: [(*const u8, usize); 2],
        first: usize,
        base: usize,
        len: usize,
    ) -> Result<Self> {
        let end = base.checked_add(len).ok_or(EMSGSIZE)?;
        let most = pages.len().saturating_sub(first) * PAGE_SIZE;
        let within = |(addr, len)| len == 0 || pages.holds(addr, len);
        if (len != 0 && end > most) || !within(head) || !within(tail) {
            return Err(EMSGSIZE);
        }
        // INVARIANT: All is in pages that the list keeps, as was checked above; neither they nor
        // the list's array move.
        Ok(Self {
            extents: Extents::new(head, (pages.as_ptr().wrapping_add(first), base, len), tail),
            owner: Owner::Pages(pages),
            writable: false,
        })
    }

    /// Returns what is left of `pieces`. `EINVAL` if nothing keeps it.
    pub(crate) fn kept(pieces: &ExtentIter<'_>) -> Result<Self> {
        if !pieces.can_be_covered(false) {
            return Err(EINVAL);
        }
        // INVARIANT: By that of `pieces`, which may go.
        Ok(Self {
            extents: pieces.extents,
            owner: Owner::Other {
                _keepers: pieces.keep(),
            },
            writable: pieces.writable,
        })
    }

    /// Returns the number of bytes.
    pub(crate) fn len(&self) -> usize {
        self.extents.len()
    }

    /// Returns the number of bytes of the pages that it keeps.
    pub(crate) fn memory(&self) -> usize {
        match &self.owner {
            Owner::Pages(pages) => pages.len().saturating_mul(PAGE_SIZE),
            Owner::Other { .. } => 0,
        }
    }

    /// Returns whether RDMA Reads may fill it: it is not shared, as with the page cache.
    pub(in crate::kapi) fn is_writable(&self) -> bool {
        self.writable
    }

    /// Calls `each` for the bytes from `offset` on, up to where they go on elsewhere, `n` at most,
    /// as [`Extent::each`] does. Returns their number, none behind the last.
    ///
    /// [`Extent::each`]: super::Extent::each
    pub(in crate::kapi) fn take_at(
        &self,
        offset: usize,
        n: usize,
        longest: NonZero<u32>,
        each: impl FnMut(*mut bindings::page, usize, usize) -> Result,
    ) -> Result<usize> {
        let Some(run) = self.extents.run_at(offset, n) else {
            return Ok(0);
        };
        // SAFETY: The memory is valid by the type invariant.
        unsafe { run.each(longest, each) }?;
        Ok(run.len)
    }

    /// Copies bytes in, at `offset`. `EMSGSIZE` if there is no room, `EINVAL` if the memory may not
    /// be written to.
    pub(crate) fn copy_from(&mut self, offset: usize, mut from: &[u8]) -> Result {
        if !self.writable || !matches!(self.owner, Owner::Pages(_)) {
            return Err(EINVAL);
        }
        self.each_part(offset, from.len(), |at, len| {
            let (part, rest) = from.split_at(len);
            // SAFETY: Both are `len` bytes; the pages are ours to write to, as the exclusive borrow
            // says.
            unsafe { core::ptr::copy_nonoverlapping(part.as_ptr(), at, len) };
            from = rest;
        })
    }

    /// Copies `to.len()` bytes out, from `offset`. `EMSGSIZE` if there are fewer.
    pub(crate) fn copy_to(&self, offset: usize, mut to: &mut [u8]) -> Result {
        self.each_part(offset, to.len(), |at, len| {
            let (part, rest) = core::mem::take(&mut to).split_at_mut(len);
            // SAFETY: Both are `len` bytes; `part` is borrowed exclusively. An adapter that writes
            // there meanwhile spoils the bytes and nothing else.
            unsafe { core::ptr::copy_nonoverlapping(at, part.as_mut_ptr(), len) };
            to = rest;
        })
    }

    /// Calls `each` with the address and the length of `len` bytes from `offset` on, page by page.
    /// `EMSGSIZE` if there are fewer.
    fn each_part(&self, offset: usize, len: usize, mut each: impl FnMut(*mut u8, usize)) -> Result {
        let mut extents = self.extents;
        extents.take(offset);
        let part = extents.take(len);
        if part.len() != len {
            return Err(EMSGSIZE);
        }
        for run in part.0 {
            // Page by page: the address of a page need not be good for its neighbour, where
            // addresses are tagged.
            let each = |page: *mut bindings::page, offset, len| {
                // SAFETY: The page is valid by the type invariant, and of the direct map: nobody
                // gathers high memory on the machines that this is for.
                let page = unsafe { bindings::page_address(page) }.cast::<u8>();
                each(page.wrapping_add(offset), len);
                Ok(())
            };
            // SAFETY: The memory is valid by the type invariant.
            unsafe { run.each(NonZero::<u32>::MIN, each) }?;
        }
        Ok(())
    }

    /// Puts the pages at the beginning of an array, and lets go of those that were there. Returns
    /// the number of bytes that are in them. `EINVAL` if there is no room for them, or they are not
    /// this memory's own alone: then the array stays as it is.
    ///
    /// # Safety
    ///
    /// Each entry must be null or a page with a reference that the array's owner lets go.
    pub(in crate::kapi) unsafe fn put_into(
        self,
        entries: &mut [*mut bindings::page],
    ) -> Result<usize> {
        let len = self.len();
        match self.owner {
            // SAFETY: Each entry is null or a page whose reference goes, as the caller promises.
            Owner::Pages(pages) if self.writable => unsafe { pages.put_into(entries) }?,
            _ => return Err(EINVAL),
        }
        Ok(len)
    }
}

impl ExtentIter<'static> {
    /// Returns a message as pieces for regions, which keep it as long as they cover any. May sleep.
    /// `EINVAL` for a message in memory of another.
    pub(crate) fn of_message(message: TransferMemory) -> Result<Self> {
        let Owner::Pages(pages) = message.owner else {
            return Err(EINVAL);
        };
        // INVARIANT: Neither the pages nor the array of them move, and `kept` has both.
        Ok(Self {
            extents: message.extents,
            kept: Some(Arc::new(pages, GFP_KERNEL)?),
            covers: None,
            writable: message.writable,
            _memory: PhantomData,
        })
    }

    /// Returns `len` bytes that nobody has use for, for a peer to write what nobody reads. They are
    /// in a page of their own: the processor must not write to what else is in their cache line.
    /// May sleep.
    pub(crate) fn scratch(len: usize) -> Result<Self> {
        Self::of_message(TransferMemory::new(PageList::one()?, len)?)
    }
}
