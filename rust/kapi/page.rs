// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Memory of the RPC layer, as a list of pieces of pages that an adapter can use.

mod covers;
mod list;
mod memory;
#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
mod tests;

pub(crate) use self::memory::TransferMemory;
pub(super) use self::{
    covers::{
        Cover,
        Covers, //
    },
    list::PageList, //
};

use crate::kapi::bindings;
use core::{
    marker::PhantomData,
    num::NonZero,
    ptr::NonNull, //
};
use kernel::{
    page::PAGE_SIZE,
    prelude::*,
    sync::Arc, //
};

/// Pages that are neighbours in the kernel's map of all pages are neighbours in memory.
const FLAT_MAP: bool = cfg!(any(CONFIG_FLATMEM, CONFIG_SPARSEMEM_VMEMMAP));

/// The beginning of a run of memory.
#[derive(Clone, Copy)]
enum Start {
    /// At an address of the direct map.
    Linear(*const u8),
    /// At an offset into an array of pages.
    Paged(*const *mut bindings::page, usize),
}

/// A run of memory: `len` bytes of the kernel's direct map, or of an array of pages.
#[derive(Clone, Copy)]
struct Extent {
    start: Start,
    len: usize,
}

impl Extent {
    /// Returns the offset of the run in its first page.
    fn offset(&self) -> usize {
        match self.start {
            Start::Linear(addr) => addr as usize % PAGE_SIZE,
            Start::Paged(_, base) => base % PAGE_SIZE,
        }
    }

    /// Takes the first `n` bytes out, or all if there are fewer.
    fn take(&mut self, n: usize) -> Self {
        let first = Self {
            len: n.min(self.len),
            ..*self
        };
        match &mut self.start {
            Start::Linear(addr) => *addr = addr.wrapping_add(first.len),
            Start::Paged(_, base) => *base = base.wrapping_add(first.len),
        }
        self.len -= first.len;
        first
    }

    /// Calls `each` with the first page, the offset in it and the length of each piece of the run,
    /// in order. Pages that are neighbours in memory are one piece, of `longest` pages at most.
    /// Stops at the first error, and returns it.
    ///
    /// # Safety
    ///
    /// The memory that the run names must be valid.
    unsafe fn each(
        self,
        longest: NonZero<u32>,
        mut each: impl FnMut(*mut bindings::page, usize, usize) -> Result,
    ) -> Result {
        let longest = longest.get() as usize;
        let (mut offset, mut left) = (self.offset(), self.len);
        let mut next = |page, pages: usize| {
            let len = left.min(pages * PAGE_SIZE - offset);
            each(page, offset, len)?;
            left -= len;
            offset = 0;
            Ok::<_, Error>(len)
        };
        match self.start {
            _ if self.len == 0 => (),
            Start::Linear(addr) => {
                let mut done = 0;
                while done < self.len {
                    let addr = addr.wrapping_add(done);
                    // SAFETY: What the run names is valid, as the caller promises, and such a run
                    // is of the direct map.
                    let page = unsafe { bindings::virt_to_page(addr.cast()) };
                    done += next(page, longest)?;
                }
            }
            Start::Paged(pages, base) => {
                let n = (self.offset() + self.len).div_ceil(PAGE_SIZE);
                // SAFETY: What the run names is valid, as the caller promises: the array reaches to
                // its end.
                let pages = unsafe { core::slice::from_raw_parts(pages.add(base / PAGE_SIZE), n) };
                let neighbours = |a: &*mut bindings::page, b: &*mut bindings::page| {
                    FLAT_MAP && *b == a.wrapping_add(1)
                };
                for piece in pages
                    .chunk_by(neighbours)
                    .flat_map(|row| row.chunks(longest))
                {
                    if let Some(first) = piece.first() {
                        next(*first, piece.len())?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// Memory of a message: a head, an array of pages and a tail, any of which may be empty.
#[derive(Clone, Copy)]
struct Extents([Extent; 3]);

impl Extents {
    /// Returns a head, pages from an offset on and a tail, each with its length.
    fn new(
        head: (*const u8, usize),
        (pages, base, paged_len): (*const *mut bindings::page, usize, usize),
        tail: (*const u8, usize),
    ) -> Self {
        let linear = |(addr, len)| Extent {
            start: Start::Linear(addr),
            len,
        };
        let paged = Extent {
            start: Start::Paged(pages, base),
            len: paged_len,
        };
        Self([linear(head), paged, linear(tail)])
    }

    /// Returns the number of bytes.
    fn len(&self) -> usize {
        self.0.iter().map(|run| run.len).sum()
    }

    /// Takes the first `n` bytes out, or all if there are fewer.
    fn take(&mut self, mut n: usize) -> Self {
        Self(self.0.each_mut().map(|run| {
            let part = run.take(n);
            n -= part.len;
            part
        }))
    }

    /// Returns the run that begins at `offset`, up to where the memory goes on elsewhere, `n` bytes
    /// at most.
    fn run_at(mut self, offset: usize, n: usize) -> Option<Extent> {
        self.take(offset);
        let mut runs = self.0.iter_mut();
        Some(runs.find(|run| run.len != 0)?.take(n))
    }
}

/// The references that keep memory for a region.
pub(super) type Keepers = (Option<Cover>, Option<Arc<PageList>>);

/// The rest of a message, or of its payload, for regions to cover.
///
/// # Invariants
///
/// All extents name memory that is valid for `'a`, or as long as this is there if `kept` keeps it;
/// and as long as there is a reference to `kept` and `covers` counts any, if there are these.
/// `covers` is valid for `'a`, and as long as it counts any. Where it is `writable`, nobody else
/// has the memory as long.
pub(crate) struct ExtentIter<'a> {
    extents: Extents,
    /// Pages that the owner of the message may let go of before.
    kept: Option<Arc<PageList>>,
    /// The count of the regions that the owner waits for.
    covers: Option<NonNull<Covers>>,
    /// It is room: what is written there spoils nothing that others have.
    writable: bool,
    _memory: PhantomData<&'a ()>,
}

impl ExtentIter<'_> {
    /// Returns the pieces of a head, an array of pages and a tail, in this order.
    ///
    /// # Safety
    ///
    /// For the lifetime of the result: head and tail must be memory of the direct map, and `pages`
    /// an array that reaches `paged_len` bytes beyond `base`. Their memory must be valid, too, as
    /// long as there is a reference to `kept`, if that is given, and as long as `covers` counts
    /// any, if that is; so must be `covers`.
    pub(super) unsafe fn new(
        head: (*const u8, usize),
        paged: (*const *mut bindings::page, usize, usize),
        tail: (*const u8, usize),
        (kept, covers): (Option<Arc<PageList>>, Option<NonNull<Covers>>),
    ) -> Self {
        // INVARIANT: Valid by the contract of this function.
        Self {
            extents: Extents::new(head, paged, tail),
            kept,
            covers,
            writable: false,
            _memory: PhantomData,
        }
    }

    /// Returns the same as room for a peer, or an adapter, to write.
    ///
    /// # Safety
    ///
    /// As long as [`Self::new`] wants the memory to be valid, nobody else may have it.
    pub(super) unsafe fn for_writes(self) -> Self {
        // INVARIANT: As the contract of this function says.
        Self {
            writable: true,
            ..self
        }
    }

    /// Returns whether a region may cover the memory: something keeps it, which might go before
    /// otherwise; and for a peer that writes it is room.
    pub(super) fn can_be_covered(&self, for_writes: bool) -> bool {
        (self.covers.is_some() || self.kept.is_some()) && (self.writable || !for_writes)
    }

    /// Returns what a region has to have as long as it covers a part of the memory.
    pub(super) fn keep(&self) -> Keepers {
        // SAFETY: Valid now, and as long as it counts any, by the type invariant.
        let cover = self.covers.map(|covers| unsafe { Cover::new(covers) });
        (cover, self.kept.clone())
    }

    /// Returns the number of bytes that no region covers yet.
    pub(crate) fn remaining(&self) -> usize {
        self.extents.len()
    }

    /// Returns the first `n` bytes, which stay here, too.
    pub(crate) fn first(&self, n: usize) -> Self {
        // INVARIANT: Parts of the same memory, kept by the same.
        Self {
            extents: { self.extents }.take(n),
            kept: self.kept.clone(),
            ..*self
        }
    }

    /// Leaves out the first `n` bytes.
    pub(crate) fn skip(&mut self, n: usize) {
        self.extents.take(n);
    }

    /// Sets the elements of a scatter list to at most the first `most` bytes, as far as one region
    /// can cover them. Returns the number of elements and of bytes. A region covers as many pages
    /// as the list has elements; an element is of `longest` pages at most.
    ///
    /// Unless the device allows gaps, only the first piece may begin, and only the last may end,
    /// off a page boundary.
    pub(super) fn fill(
        &self,
        most: usize,
        sg: &mut [bindings::scatterlist],
        gaps: bool,
        longest: NonZero<u32>,
    ) -> (usize, usize) {
        let (mut pages, mut elements, mut bytes) = (sg.len(), 0, 0);
        let mut whole = true;
        for mut run in { self.extents }.take(most).0 {
            let offset = run.offset();
            if run.len == 0 {
                continue;
            }
            if pages == 0 || !(gaps || bytes == 0 || (whole && offset == 0)) {
                break;
            }
            let part = run.take(pages * PAGE_SIZE - offset);
            let end = offset + part.len;
            pages -= end.div_ceil(PAGE_SIZE);
            whole = end % PAGE_SIZE == 0;
            bytes += part.len;
            // What `sg_set_page()` does, but that it forgets where the list ends.
            let set = |page, offset, len| {
                let element = sg.get_mut(elements).ok_or(EMSGSIZE)?;
                element.page_link = page as usize;
                element.offset = offset as u32;
                element.length = len as u32;
                elements += 1;
                Ok(())
            };
            // Each piece has a page at least that no other of the run has, and all pages were
            // counted: there is an element for each.
            // SAFETY: The memory is valid by the type invariant.
            if unsafe { part.each(longest, set) }.is_err() {
                return (0, 0);
            }
        }
        if let Some(last) = sg.last_mut() {
            last.page_link |= bindings::SG_END as usize;
        }
        (elements, bytes)
    }
}
