// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Memory to send from and to receive into, and whether all of it was unmapped.

use crate::{
    kapi::{
        bindings,
        ib::dma_track,
        page::{
            Covers,
            ExtentIter,
            PageList,
            TransferMemory, //
        },
    },
    kunit::{
        claim,
        same, //
    },
};
use core::{
    ffi::c_void,
    ptr::NonNull, //
};
use kernel::{
    page::PAGE_SIZE,
    prelude::*,
    sync::atomic::Relaxed, //
};

/// Memory such as the RPC layer's.
pub(crate) struct Memory {
    data: NonNull<u8>,
    len: usize,
    pages: KVec<*mut bindings::page>,
}

impl Memory {
    /// `pages` pages, one behind the other, which may have users of their own.
    pub(crate) fn new(pages: usize) -> Result<Self> {
        let len = pages * PAGE_SIZE;
        // SAFETY: Allocating has no requirement.
        let data = unsafe { bindings::alloc_pages_exact(len, bindings::GFP_KERNEL) };
        let data = NonNull::new(data.cast::<u8>()).ok_or(ENOMEM)?;
        let mut memory = Self {
            data,
            len,
            pages: KVec::new(),
        };
        for i in 0..len / PAGE_SIZE {
            // SAFETY: The address is of the allocation above.
            let page = unsafe { bindings::virt_to_page(data.as_ptr().add(i * PAGE_SIZE).cast()) };
            memory.pages.push(page, GFP_KERNEL)?;
        }
        Ok(memory)
    }

    /// The address of the first byte.
    pub(crate) fn addr(&self) -> u64 {
        self.data.as_ptr() as u64
    }

    /// Puts the pages of a payload in another order.
    pub(crate) fn reorder(&mut self, order: &[usize]) -> Result {
        let mut pages = KVec::with_capacity(order.len(), GFP_KERNEL)?;
        for i in order {
            let page = self.pages.get(*i).copied().ok_or(EINVAL)?;
            pages.push(page, GFP_KERNEL)?;
        }
        self.pages = pages;
        Ok(())
    }

    /// The first `len` bytes of the payload's pages, with references of their own.
    pub(crate) fn gather(&self, len: usize) -> Result<TransferMemory> {
        gather(&self.pages, len)
    }

    /// Its pages.
    pub(crate) fn pages(&self) -> &[*mut bindings::page] {
        &self.pages
    }

    /// A head, pages and a tail, each at (offset, length) of this memory.
    pub(crate) fn pieces(
        &self,
        head: (usize, usize),
        paged: (usize, usize),
        tail: (usize, usize),
    ) -> Result<ExtentIter<'_>> {
        for (offset, len) in [head, paged, tail] {
            claim(offset + len <= self.len, "the piece is of this memory")?;
        }
        let at = |(offset, len): (usize, usize)| {
            let addr = self.data.as_ptr().wrapping_add(offset).cast_const();
            (addr, len)
        };
        let paged = (self.pages.as_ptr(), paged.0, paged.1);
        let keepers = (None, Some(covers()));
        // SAFETY: All is of this memory, checked above, which the result borrows. Nobody minds what
        // is written there.
        Ok(unsafe { ExtentIter::new(at(head), paged, at(tail), keepers).for_writes() })
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: Allocated in `new`; nothing borrows it any more.
        unsafe { bindings::free_pages_exact(self.data.as_ptr().cast::<c_void>(), self.len) };
    }
}

/// A payload of many pages. They are all the same one, since nobody looks into them.
pub(crate) struct Payload {
    pages: KVec<*mut bindings::page>,
    base: usize,
    len: usize,
    _memory: Memory,
}

impl Payload {
    /// `len` bytes that begin `base` bytes into the first page.
    pub(crate) fn new(base: usize, len: usize) -> Result<Self> {
        let memory = Memory::new(1)?;
        let page = memory.pages.first().copied().ok_or(ENOMEM)?;
        let n = (base + len).div_ceil(PAGE_SIZE);
        Ok(Self {
            pages: KVec::from_elem(page, n, GFP_KERNEL)?,
            base,
            len,
            _memory: memory,
        })
    }

    pub(crate) fn pieces(&self) -> ExtentIter<'_> {
        let none = (core::ptr::null(), 0);
        // SAFETY: The array has as many pages, all of which are of the memory that stays as long.
        // Nobody minds what is written there.
        unsafe {
            let paged = (self.pages.as_ptr(), self.base, self.len);
            ExtentIter::new(none, paged, none, (None, Some(covers()))).for_writes()
        }
    }
}

/// Where regions are counted that cover memory of tests.
static COVERS: Covers = Covers::new();

fn covers() -> NonNull<Covers> {
    NonNull::from(&COVERS)
}

/// How many mappings are not undone; 0 where no ledger is kept.
pub(crate) fn mappings() -> usize {
    dma_track::count()
}

/// Checks at the end of a test that the ledger of mappings is as it was at the start.
pub(crate) struct Balance {
    mappings: usize,
    faults: u32,
}

impl Balance {
    pub(crate) fn begin() -> Self {
        Self {
            mappings: dma_track::count(),
            faults: dma_track::FAULTS.load(Relaxed),
        }
    }

    pub(crate) fn end(self) -> Result {
        self.more(0)
    }

    /// Checks that there are `n` mappings more than at the start.
    pub(crate) fn more(&self, n: usize) -> Result {
        if cfg!(CONFIG_RPCRDMA_DEBUG) {
            same("DMA mappings", dma_track::count(), self.mappings + n)?;
        }
        let faults = dma_track::FAULTS.load(Relaxed);
        same("wrong unmappings", faults, self.faults)
    }
}

/// The first `len` bytes of pages that the caller has, with references of their own.
fn gather(pages: &[*mut bindings::page], len: usize) -> Result<TransferMemory> {
    let mut entries = KVec::new();
    entries.extend_from_slice(pages, GFP_KERNEL)?;
    for page in &entries {
        // SAFETY: The page is valid, since the caller has it.
        unsafe { bindings::get_page(*page) };
    }
    // SAFETY: The references were taken above.
    TransferMemory::new(unsafe { PageList::take(&mut entries)? }, len)
}

/// Pages, each with a reference that the test keeps.
pub(crate) struct Pages(KVec<*mut bindings::page>);

impl Pages {
    /// `n` pages.
    pub(crate) fn new(n: usize) -> Result<Self> {
        let mut pages = Self(KVec::with_capacity(n, GFP_KERNEL)?);
        for _ in 0..n {
            // SAFETY: No precondition.
            let page = unsafe { bindings::alloc_page(bindings::GFP_KERNEL) };
            claim(!page.is_null(), "there is memory")?;
            pages.0.push(page, GFP_KERNEL)?;
        }
        Ok(pages)
    }

    /// The first `len` bytes, with references of their own.
    pub(crate) fn gather(&self, len: usize) -> Result<TransferMemory> {
        gather(&self.0, len)
    }

    /// How many references there are to the pages beside the test's.
    pub(crate) fn references(&self) -> usize {
        // SAFETY: The pages are valid, since the test has references.
        let count = |page: &*mut bindings::page| unsafe { bindings::page_count(*page) } as usize;
        self.0.iter().map(count).sum::<usize>() - self.0.len()
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        for page in &self.0 {
            // SAFETY: Allocated in `new`.
            unsafe { bindings::put_page(*page) };
        }
    }
}
