// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Memory of the RPC layer, as a list of pieces of pages that an adapter can use.

mod covers;
mod kept;
mod memory;
mod msg_pages;
mod page_run;
#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
pub(crate) mod tests;

pub(super) use self::{
    covers::{
        Cover,
        Covers, //
    },
    kept::Kept,
    msg_pages::HeadTail,
    page_run::PageRun, //
};
pub(crate) use self::{
    memory::{
        KeptExtents,
        TransferMemory, //
    },
    msg_pages::{
        MsgPages,
        ReadPages, //
    },
};

use self::page_run::{
    contiguous_len,
    FLAT_MAP, //
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

/// So many pages in a row are handed on as one piece, without a further look at each.
const MIN_RUN: usize = 8;

/// Where a run of memory begins.
#[derive(Clone, Copy)]
enum Start {
    /// At an address of the direct map.
    Linear(*const u8),
    /// So many bytes into the first page of an array.
    Paged(*const *mut bindings::page, usize),
}

/// A run of memory: `len` bytes of the kernel's direct map, or of an array of pages.
#[derive(Clone, Copy)]
struct Extent {
    start: Start,
    len: usize,
}

impl Extent {
    /// Where in its page the run begins.
    fn offset(&self) -> usize {
        match self.start {
            Start::Linear(addr) => addr as usize % PAGE_SIZE,
            Start::Paged(_, base) => base % PAGE_SIZE,
        }
    }

    /// Takes the first `n` bytes out, or all if there are not so many.
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

    /// Calls `each` for all of the run, in order, with pieces of `longest` pages at most: one at a
    /// time, or all that are left where none can be too long. `EMSGSIZE` if it says false, and then
    /// not again.
    ///
    /// # Safety
    ///
    /// The memory that the run names must be valid.
    #[inline]
    unsafe fn each(
        self,
        longest: NonZero<u32>,
        mut each: impl FnMut(PageRun<'_>) -> bool,
    ) -> Result {
        let longest = longest.get() as usize;
        let (mut offset, mut left) = (self.offset(), self.len);
        let mut take = |pages: &[*mut bindings::page], offset: usize, len: usize| {
            each(PageRun::new(pages, offset, len, longest > 1))
                .then_some(())
                .ok_or(EMSGSIZE)
        };
        match self.start {
            _ if left == 0 => (),
            Start::Linear(mut addr) => {
                while left != 0 {
                    let len = left.min(longest * PAGE_SIZE - offset);
                    // SAFETY: What the run names is valid, as the caller promises, and such a run
                    // is of the direct map.
                    let page = unsafe { bindings::virt_to_page(addr.cast()) };
                    take(&[page], offset, len)?;
                    addr = addr.wrapping_add(len);
                    left -= len;
                    offset = 0;
                }
            }
            Start::Paged(pages, base) => {
                let n = (offset + left).div_ceil(PAGE_SIZE);
                // SAFETY: What the run names is valid, as the caller promises: the array reaches to
                // its end.
                let mut pages =
                    unsafe { core::slice::from_raw_parts(pages.add(base / PAGE_SIZE), n) };
                while !pages.is_empty() {
                    // Then no piece can be too long.
                    if longest == 1 {
                        return take(pages, offset, left);
                    }
                    let n = contiguous_len(pages.get(..longest).unwrap_or(pages));
                    // Where rows are short it takes less to look at each page.
                    if offset == 0 && n < MIN_RUN.min(pages.len()) && pages.len() <= longest {
                        return take(pages, offset, left);
                    }
                    let len = left.min(n * PAGE_SIZE - offset);
                    take(pages.get(..1).unwrap_or(&[]), offset, len)?;
                    left -= len;
                    offset = 0;
                    pages = pages.get(n..).unwrap_or(&[]);
                }
            }
        }
        Ok(())
    }
}

/// What is left of a message, or of its payload, for regions to cover.
///
/// # Invariants
///
/// All runs name memory that is valid for `'a`, or as long as this is there if `kept` keeps it; and
/// as long as there is a reference to `kept` and `covers` counts any, if there are these. `covers`
/// is valid for `'a`, and as long as it counts any. Where it is `writable`, nobody else has the
/// memory as long.
pub(crate) struct ExtentIter<'a> {
    runs: [Extent; 3],
    /// What keeps memory that its owner does not keep for so long.
    kept: Option<Arc<Kept>>,
    /// Where the owner counts the regions that he waits for.
    covers: Option<NonNull<Covers>>,
    /// It is room: what is written there spoils nothing that others have.
    writable: bool,
    _memory: PhantomData<&'a ()>,
}

/// What keeps memory for a region.
pub(super) type Keepers = (Option<Cover>, Option<Arc<Kept>>);

/// What was left of an [`ExtentIter`].
pub(in crate::kapi) struct Mark([Extent; 3]);

impl ExtentIter<'_> {
    /// The pieces of a head, an array of pages and a tail, in this order; any may be empty.
    ///
    /// # Safety
    ///
    /// For the lifetime of the result: head and tail must be memory of the direct map, and `pages`
    /// an array that reaches `paged_len` bytes beyond `base`. Their memory must be valid, too, as
    /// long as there is a reference to `kept`, if that is given, and as long as `covers` counts
    /// any, if that is; so must be `covers`.
    #[inline]
    pub(super) unsafe fn new(
        head: (*const u8, usize),
        (pages, base, paged_len): (*const *mut bindings::page, usize, usize),
        tail: (*const u8, usize),
        (kept, covers): (Option<Arc<Kept>>, Option<NonNull<Covers>>),
    ) -> Self {
        let linear = |(addr, len)| Extent {
            start: Start::Linear(addr),
            len,
        };
        let paged = Extent {
            start: Start::Paged(pages, base),
            len: paged_len,
        };
        // INVARIANT: Valid by the contract of this function.
        Self {
            runs: [linear(head), paged, linear(tail)],
            kept,
            covers,
            writable: false,
            _memory: PhantomData,
        }
    }

    /// The same as room for a peer, or an adapter, to write.
    ///
    /// # Safety
    ///
    /// As long as [`Self::new`] wants the memory to be valid, nobody else may have it.
    #[inline]
    pub(super) unsafe fn for_writes(self) -> Self {
        // INVARIANT: As the contract of this function says.
        Self {
            writable: true,
            ..self
        }
    }

    /// A few bytes of their own, for a peer to write what nobody reads. They stay as long as a
    /// region covers them. May sleep.
    pub(crate) fn scratch() -> Result<Self> {
        let (kept, bytes) = Kept::scratch()?;
        let none = (core::ptr::null(), 0);
        // SAFETY: An allocation is of the direct map, and `kept` has it; there are no pages. Nobody
        // else has it.
        Ok(unsafe {
            Self::new(bytes, (core::ptr::null(), 0, 0), none, (Some(kept), None)).for_writes()
        })
    }

    /// What is left, to go back to.
    #[inline]
    pub(in crate::kapi) fn mark(&self) -> Mark {
        Mark(self.runs)
    }

    /// Goes back to what was left.
    ///
    /// # Safety
    ///
    /// The mark must be this object's.
    pub(in crate::kapi) unsafe fn go_back(&mut self, mark: Mark) {
        // INVARIANT: It was so before.
        self.runs = mark.0;
    }

    /// Whether something keeps the memory for a region. It might go before otherwise.
    #[inline]
    pub(super) fn is_kept(&self) -> bool {
        self.covers.is_some() || self.kept.is_some()
    }

    /// Whether it is room, which a peer or an adapter may write to.
    #[inline]
    pub(super) fn is_writable(&self) -> bool {
        self.writable
    }

    /// What a region has to have as long as it covers a part of it.
    #[inline]
    pub(super) fn keep(&self) -> Keepers {
        // SAFETY: Valid now, and as long as it counts any, by the type invariant.
        let cover = self.covers.map(|covers| unsafe { Cover::new(covers) });
        (cover, self.kept.clone())
    }

    /// Bytes that no region covers yet.
    pub(crate) fn remaining(&self) -> usize {
        self.runs.iter().map(|run| run.len).sum()
    }

    /// The first `n` bytes, which stay here, too.
    pub(crate) fn first(&self, mut n: usize) -> Self {
        let runs = self.runs.map(|mut run| {
            let part = run.take(n);
            n -= part.len;
            part
        });
        // INVARIANT: Parts of the same memory, kept by the same.
        Self {
            runs,
            kept: self.kept.clone(),
            covers: self.covers,
            writable: self.writable,
            _memory: PhantomData,
        }
    }

    /// Leaves out the first `n` bytes.
    pub(crate) fn skip(&mut self, mut n: usize) {
        for run in &mut self.runs {
            n -= run.take(n).len;
        }
    }

    /// Takes bytes from `offset` on, up to where the memory goes on elsewhere, `n` at most.
    #[inline]
    fn into_run(mut self, mut offset: usize, n: usize) -> Option<Extent> {
        self.runs.iter_mut().find_map(|run| {
            offset -= run.take(offset).len;
            (run.len != 0).then(|| run.take(n))
        })
    }

    /// Takes the first `n` bytes, and calls `each` for them, with pieces of `longest` pages at
    /// most, until it says false. `EMSGSIZE` if it does, or if there are not so many bytes.
    pub(super) fn take(
        &mut self,
        mut n: usize,
        longest: NonZero<u32>,
        mut each: impl FnMut(PageRun<'_>) -> bool,
    ) -> Result {
        for run in &mut self.runs {
            let part = run.take(n);
            n -= part.len;
            // SAFETY: The memory is valid by the type invariant.
            unsafe { part.each(longest, &mut each) }?;
        }
        if n != 0 {
            return Err(EMSGSIZE);
        }
        Ok(())
    }

    /// Moves pieces into a scatter list, as much as one region can cover, and says how many. A
    /// region covers as many pages as the list has elements; an element is of `longest` pages at
    /// most.
    ///
    /// Unless the device allows gaps, only the first piece may begin, and only the last may end,
    /// off a page boundary.
    pub(super) fn fill(
        &mut self,
        sg: &mut [bindings::scatterlist],
        gaps: bool,
        longest: NonZero<u32>,
    ) -> usize {
        let all = sg.len();
        let (mut pages, mut free) = (all, &mut *sg);
        let mut open_end = true;
        for run in self.runs.iter_mut().filter(|run| run.len != 0) {
            let offset = run.offset();
            let joins = gaps || free.len() == all || (open_end && offset == 0);
            if pages == 0 || !joins {
                break;
            }
            let part = run.take(pages * PAGE_SIZE - offset);
            let end = offset + part.len;
            pages -= end.div_ceil(PAGE_SIZE);
            open_end = end % PAGE_SIZE == 0;
            let put = |pattern: PageRun<'_>| {
                let room = core::mem::take(&mut free);
                let n = pattern.put(room, set_element, lengthen_element);
                free = n.and_then(|n| room.get_mut(n..)).unwrap_or(&mut []);
                n.is_some()
            };
            // Each piece has a page at least that no other of the run has, and all pages were
            // counted: there is an element for each.
            // SAFETY: The memory is valid by the type invariant.
            if unsafe { part.each(longest, put) }.is_err() {
                return 0;
            }
        }
        let filled = all - free.len();
        if let Some(last) = sg.last_mut() {
            last.page_link |= bindings::SG_END as usize;
        }
        filled
    }
}

/// What `sg_set_page()` does, but that it forgets where the list ends.
#[inline]
fn set_element(
    element: &mut bindings::scatterlist,
    page: *mut bindings::page,
    offset: u32,
    len: u32,
) {
    element.page_link = page as usize;
    element.offset = offset;
    element.length = len;
}

#[inline]
fn lengthen_element(element: &mut bindings::scatterlist, by: u32) {
    // No message is so long that this wraps.
    element.length = element.length.wrapping_add(by);
}

/// Whether none of the entries is null, as can be told at once: their addresses have a bit in
/// common. All addresses of the kernel's map of pages have on most machines; elsewhere nothing is
/// wrong with a false answer.
#[inline(always)]
fn all_present(entries: &[*mut bindings::page; 16]) -> bool {
    let common = entries
        .iter()
        .fold(usize::MAX, |common, entry| common & *entry as usize);
    common != 0
}

/// How many entries of an array come before the first that is null.
#[inline(never)]
fn present(entries: &[*mut bindings::page]) -> usize {
    // As a rule none is, and then sixteen at a time are little more than one instruction for each.
    let many = entries
        .chunks_exact(16)
        .take_while(|some| <&[_; 16]>::try_from(*some).is_ok_and(all_present))
        .count();
    let front = 16 * many;
    let rest = entries.get(front..).unwrap_or(&[]);
    front + rest.iter().take_while(|entry| !entry.is_null()).count()
}

/// Lets go of pages. The entries are of no use afterwards.
///
/// # Safety
///
/// Each entry must be null or a page with a reference that its owner lets go, and nobody may use it
/// then.
unsafe fn release(entries: &mut [*mut bindings::page]) {
    let front = present(entries);
    // SAFETY: None of these is null, so each is a page with a reference that is to go, and nobody
    // uses it afterwards, as the caller promises.
    unsafe { bindings::release_pages(entries.as_mut_ptr(), front as i32) };
    for entry in entries.iter_mut().skip(front) {
        if !entry.is_null() {
            // SAFETY: Not null, it is a page with a reference that is to go, as the caller
            // promises.
            unsafe { bindings::release_pages(entry, 1) };
        }
    }
}

/// Pages, with one reference to each.
///
/// # Invariants
///
/// Each entry is a valid page, and one of its references belongs to this list.
pub(super) struct PageList(KVVec<NonNull<bindings::page>>);

// SAFETY: References to pages may be given back by any thread.
unsafe impl Send for PageList {}

impl PageList {
    /// Moves pages out of an array, whose entries become null. `EIO` if one is null before; those
    /// in front of it are let go.
    ///
    /// # Safety
    ///
    /// Each entry must be null or a page with a reference that the array's owner lets go.
    pub(super) unsafe fn take(entries: &mut [*mut bindings::page]) -> Result<Self> {
        let n = entries.len();
        let mut pages = KVVec::<NonNull<bindings::page>>::with_capacity(n, GFP_KERNEL)?;
        // SAFETY: There is room for all. A pointer that is not null has the layout of one that may
        // be; only those that are not null will count.
        unsafe { core::ptr::copy_nonoverlapping(entries.as_ptr(), pages.as_mut_ptr().cast(), n) };
        let taken = present(entries);
        let cleared = entries.get_mut(..taken).unwrap_or(&mut []);
        cleared.fill(core::ptr::null_mut());
        // SAFETY: So many were written above, and are not null.
        unsafe { pages.inc_len(taken) };
        // INVARIANT: Those are pages with a reference each, as the caller promises, and the array
        // has them no more.
        let list = Self(pages);
        if taken != n {
            return Err(EIO);
        }
        Ok(list)
    }

    /// Puts the pages at the beginning of an array, and lets go of those that were there. `EINVAL`
    /// if it has no room for all.
    ///
    /// # Safety
    ///
    /// Each entry must be null or a page with a reference that the array's owner lets go.
    unsafe fn put_into(&mut self, entries: &mut [*mut bindings::page]) -> Result {
        let places = entries.get_mut(..self.0.len()).ok_or(EINVAL)?;
        // SAFETY: Each is null or a page whose reference goes, as the caller promises. All are
        // overwritten below, so nobody uses them afterwards.
        unsafe { release(places) };
        let (from, n) = (self.as_ptr(), places.len());
        // SAFETY: There are as many of both, and the list has memory of its own.
        unsafe { core::ptr::copy_nonoverlapping(from, places.as_mut_ptr(), n) };
        // INVARIANT: The references are the array's now.
        self.0.clear();
        Ok(())
    }

    fn as_ptr(&self) -> *const *mut bindings::page {
        // A pointer that is not null has the layout of one that may be.
        self.0.as_ptr().cast()
    }

    /// Whether the memory at `addr` of the direct map is in one of the pages.
    fn holds(&self, addr: *const u8) -> bool {
        if !FLAT_MAP {
            return self.reaches(addr);
        }
        // SAFETY: With a flat map of all pages the address is computed with, and nothing looked up.
        let page = unsafe { bindings::virt_to_page(addr.cast()) };
        self.0.iter().any(|held| held.as_ptr() == page)
    }

    /// As [`Self::holds`], whatever map of pages the kernel has, and whatever the address.
    fn reaches(&self, addr: *const u8) -> bool {
        self.0.iter().any(|held| {
            // SAFETY: The page is valid by the type invariant.
            let front = unsafe { bindings::page_address(held.as_ptr()) };
            (addr as usize).wrapping_sub(front as usize) < PAGE_SIZE
        })
    }
}

impl Drop for PageList {
    fn drop(&mut self) {
        if !self.0.is_empty() {
            // SAFETY: The references are ours by the type invariant, and not used any more.
            unsafe { bindings::release_pages(self.0.as_mut_ptr().cast(), self.0.len() as i32) };
        }
    }
}
