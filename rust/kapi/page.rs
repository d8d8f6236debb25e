// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Memory of the RPC layer, as a list of pieces of pages that an adapter can use.

#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
mod tests;

use super::bindings;
use core::{
    marker::PhantomData,
    ptr::NonNull, //
};
use kernel::{
    page::PAGE_SIZE,
    prelude::*, //
};

/// A run of memory: bytes of the kernel's direct map, or of an array of pages.
#[derive(Clone, Copy)]
enum Run {
    /// `len` bytes at `addr` of the direct map.
    Linear { addr: *const u8, len: usize },
    /// `len` bytes that begin `base` bytes into the first of `pages`.
    Paged {
        pages: *const *mut bindings::page,
        base: usize,
        len: usize,
    },
}

/// A piece of one page.
#[derive(Clone, Copy)]
pub(super) struct Piece {
    pub(super) page: *mut bindings::page,
    pub(super) offset: usize,
    pub(super) len: usize,
}

impl Run {
    const EMPTY: Self = Self::Linear {
        addr: core::ptr::null(),
        len: 0,
    };

    /// The first piece of the run.
    ///
    /// # Safety
    ///
    /// The memory that the run names must be valid.
    unsafe fn first(&self) -> Option<Piece> {
        match *self {
            Self::Linear { len: 0, .. } | Self::Paged { len: 0, .. } => None,
            Self::Linear { addr, len } => {
                let offset = addr as usize % PAGE_SIZE;
                Some(Piece {
                    // SAFETY: The address is of the direct map by contract.
                    page: unsafe { bindings::virt_to_page(addr.cast()) },
                    offset,
                    len: len.min(PAGE_SIZE - offset),
                })
            }
            Self::Paged { pages, base, len } => {
                let offset = base % PAGE_SIZE;
                Some(Piece {
                    // SAFETY: The array reaches to the end of the run by contract.
                    page: unsafe { *pages.add(base / PAGE_SIZE) },
                    offset,
                    len: len.min(PAGE_SIZE - offset),
                })
            }
        }
    }

    /// The run without its first `n` bytes; `n` is at most its length.
    fn skip(self, n: usize) -> Self {
        match self {
            Self::Linear { addr, len } => Self::Linear {
                addr: addr.wrapping_add(n),
                len: len.saturating_sub(n),
            },
            Self::Paged { pages, base, len } => Self::Paged {
                pages,
                base: base.wrapping_add(n),
                len: len.saturating_sub(n),
            },
        }
    }

    fn len(&self) -> usize {
        match *self {
            Self::Linear { len, .. } | Self::Paged { len, .. } => len,
        }
    }
}

/// What is left of a message, or of its payload, for regions to cover.
///
/// # Invariants
///
/// All runs name memory that is valid for `'a`.
pub(crate) struct Pieces<'a> {
    runs: [Run; 3],
    _memory: PhantomData<&'a ()>,
}

impl<'a> Pieces<'a> {
    /// The pieces of a head, an array of pages and a tail, in this order; any may be empty.
    ///
    /// # Safety
    ///
    /// For `'a`: head and tail must be memory of the direct map, and `pages` an array that
    /// reaches `paged_len` bytes beyond `base`.
    pub(super) unsafe fn new(
        head: (*const u8, usize),
        pages: *const *mut bindings::page,
        base: usize,
        paged_len: usize,
        tail: (*const u8, usize),
    ) -> Self {
        // INVARIANT: Valid by the contract of this function.
        Self {
            runs: [
                Run::Linear {
                    addr: head.0,
                    len: head.1,
                },
                Run::Paged {
                    pages,
                    base,
                    len: paged_len,
                },
                Run::Linear {
                    addr: tail.0,
                    len: tail.1,
                },
            ],
            _memory: PhantomData,
        }
    }

    /// Bytes that no region covers yet.
    pub(crate) fn remaining(&self) -> usize {
        self.runs.iter().map(Run::len).sum()
    }

    /// Takes the first piece, of `most` bytes at most.
    pub(super) fn take(&mut self, most: usize) -> Option<Piece> {
        let run = self.runs.iter_mut().find(|run| run.len() != 0)?;
        // SAFETY: The memory is valid by the type invariant.
        let mut piece = unsafe { run.first() }?;
        piece.len = piece.len.min(most);
        let rest = run.skip(piece.len);
        *run = if rest.len() == 0 { Run::EMPTY } else { rest };
        Some(piece)
    }

    /// Bytes of the first run, that is, up to where the memory may go on elsewhere.
    pub(super) fn front(&self) -> usize {
        let first = self.runs.iter().find(|run| run.len() != 0);
        first.map_or(0, Run::len)
    }

    /// Leaves out the first `n` bytes.
    pub(crate) fn skip(&mut self, mut n: usize) {
        for run in &mut self.runs {
            let part = n.min(run.len());
            *run = run.skip(part);
            n -= part;
        }
    }

    /// Takes the whole pages that are first, `most` at most.
    pub(super) fn take_pages(&mut self, most: usize) -> &'a [*mut bindings::page] {
        let Some(run) = self.runs.iter_mut().find(|run| run.len() != 0) else {
            return &[];
        };
        let Run::Paged { pages, base, len } = *run else {
            return &[];
        };
        let n = (len / PAGE_SIZE).min(most);
        if n == 0 || base % PAGE_SIZE != 0 {
            return &[];
        }
        *run = run.skip(n * PAGE_SIZE);
        // SAFETY: The array reaches to the end of the run, and stays so long, by the type invariant.
        unsafe { core::slice::from_raw_parts(pages.add(base / PAGE_SIZE), n) }
    }

    fn take_first(&mut self, fits: impl FnOnce(&Piece) -> bool) -> Option<Piece> {
        let run = self.runs.iter_mut().find(|run| run.len() != 0)?;
        // SAFETY: The memory is valid by the type invariant.
        let piece = unsafe { run.first() }?;
        if !fits(&piece) {
            return None;
        }
        let rest = run.skip(piece.len);
        *run = if rest.len() == 0 { Run::EMPTY } else { rest };
        Some(piece)
    }

    /// Moves pieces into a scatter list, as many as one region can cover, and says how many.
    ///
    /// Unless the device allows gaps, only the first piece may begin, and only the last may end,
    /// off a page boundary.
    pub(super) fn fill(&mut self, sg: &mut [bindings::scatterlist], gaps: bool) -> usize {
        let mut filled = 0;
        let mut open_end = true;
        while let Some(room) = sg.get_mut(filled..) {
            if gaps || open_end {
                let pages = self.take_pages(room.len());
                let n = pages.len();
                if n != 0 {
                    // SAFETY: There are so many elements, of an initialised list, and the pages
                    // are valid by the type invariant.
                    unsafe { bindings::sg_set_pages(room.as_mut_ptr(), pages.as_ptr(), n as u32) };
                    filled += n;
                    open_end = true;
                }
            }
            let Some(element) = sg.get_mut(filled) else {
                break;
            };
            let first = filled == 0;
            let joins = |piece: &Piece| gaps || first || (open_end && piece.offset == 0);
            let Some(piece) = self.take_first(joins) else {
                break;
            };
            // SAFETY: The element is one of an initialised list, the page is valid by the type
            // invariant.
            unsafe {
                bindings::sg_set_page(element, piece.page, piece.len as u32, piece.offset as u32)
            };
            open_end = (piece.offset + piece.len) % PAGE_SIZE == 0;
            filled += 1;
        }
        filled
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
    /// Moves pages out of an array, whose entries become null. `EIO` if one is null before.
    ///
    /// # Safety
    ///
    /// Each entry must be null or a page with a reference that the array's owner lets go.
    pub(super) unsafe fn take(entries: &mut [*mut bindings::page]) -> Result<Self> {
        let mut list = KVVec::with_capacity(entries.len(), GFP_KERNEL)?;
        if entries.iter().any(|entry| entry.is_null()) {
            return Err(EIO);
        }
        // SAFETY: A pointer that is not null has the layout of one that may be.
        let pages = unsafe { &*(core::ptr::from_ref::<[_]>(entries) as *const [NonNull<_>]) };
        // There is room for all.
        list.extend_from_slice(pages, GFP_KERNEL)?;
        entries.fill(core::ptr::null_mut());
        // INVARIANT: By contract.
        Ok(Self(list))
    }

    /// Puts the pages at the beginning of an array, and keeps those that were there instead.
    ///
    /// # Safety
    ///
    /// Each entry must be null or a page with a reference that the array's owner exchanges.
    pub(super) unsafe fn exchange(&mut self, entries: &mut [*mut bindings::page]) {
        let n = self.0.len().min(entries.len());
        let mut kept = 0;
        for (i, entry) in entries.iter_mut().enumerate().take(n) {
            let Some(page) = self.0.get(i).copied() else {
                break;
            };
            let old = core::mem::replace(entry, page.as_ptr());
            // INVARIANT: By contract. The page that this place had is in the array by now.
            if let (Some(old), Some(place)) = (NonNull::new(old), self.0.get_mut(kept)) {
                *place = old;
                kept += 1;
            }
        }
        // What the array had no room for stays here.
        for i in n..self.0.len() {
            self.0.swap(kept, i);
            kept += 1;
        }
        self.0.truncate(kept);
    }

    fn as_ptr(&self) -> *const *mut bindings::page {
        // A pointer that is not null has the layout of one that may be.
        self.0.as_ptr().cast()
    }

    /// Whether the memory at `addr` of the direct map is in one of the pages.
    fn holds(&self, addr: *const u8) -> bool {
        // SAFETY: Only the address is computed with.
        let page = unsafe { bindings::virt_to_page(addr.cast()) };
        self.0.iter().any(|held| held.as_ptr() == page)
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

/// Bytes of the direct map that are gathered with pages.
#[derive(Clone, Copy)]
pub(super) struct Ends {
    pub(super) head: (*const u8, usize),
    pub(super) tail: (*const u8, usize),
}

impl Ends {
    const NONE: Self = Self {
        head: (core::ptr::null(), 0),
        tail: (core::ptr::null(), 0),
    };
}

/// A message whose memory stays by references to its pages.
///
/// # Invariants
///
/// Head and tail are empty or in the pages of the list; `first * PAGE_SIZE + base + len` reaches
/// no further than the list.
pub(crate) struct Gathered {
    pages: PageList,
    ends: Ends,
    first: usize,
    base: usize,
    len: usize,
    /// The pages are nobody else's.
    writable: bool,
}

// SAFETY: The pointers are into memory that the list of pages keeps.
unsafe impl Send for Gathered {}

impl Gathered {
    /// No memory.
    pub(crate) const fn nothing() -> Self {
        // INVARIANT: All is empty.
        Self {
            pages: PageList(KVVec::new()),
            ends: Ends::NONE,
            first: 0,
            base: 0,
            len: 0,
            writable: false,
        }
    }

    /// The first `len` bytes of pages that are nobody else's. `EMSGSIZE` if they have not so many.
    pub(super) fn new(pages: PageList, len: usize) -> Result<Self> {
        Ok(Self {
            writable: true,
            ..Self::with_ends(pages, Ends::NONE, 0, 0, len)?
        })
    }

    /// A head, `len` bytes that begin `base` bytes into page `first`, and a tail. `EMSGSIZE` if
    /// they are not all in the pages.
    pub(super) fn with_ends(
        pages: PageList,
        ends: Ends,
        first: usize,
        base: usize,
        len: usize,
    ) -> Result<Self> {
        let end = base.checked_add(len).ok_or(EMSGSIZE)?;
        let most = pages.0.len().saturating_sub(first) * PAGE_SIZE;
        let within = |(addr, len): (*const u8, usize)| {
            let last = addr.wrapping_add(len.saturating_sub(1));
            len == 0 || (len <= PAGE_SIZE && pages.holds(addr) && pages.holds(last))
        };
        if (len != 0 && end > most) || !within(ends.head) || !within(ends.tail) {
            return Err(EMSGSIZE);
        }
        // INVARIANT: Checked above. What is at most a page, and begins and ends in pages of the
        // list, is in them.
        Ok(Self {
            pages,
            ends,
            first,
            base,
            len,
            writable: false,
        })
    }

    /// Whether the memory may be written to: it is not shared, as with the page cache.
    pub(super) fn is_writable(&self) -> bool {
        self.writable
    }

    /// Bytes of the message.
    pub(crate) fn len(&self) -> usize {
        self.ends.head.1 + self.len + self.ends.tail.1
    }

    /// The message as pieces.
    pub(crate) fn pieces(&self) -> Pieces<'_> {
        // SAFETY: By the type invariant.
        unsafe {
            Pieces::new(
                self.ends.head,
                self.pages.as_ptr().wrapping_add(self.first),
                self.base,
                self.len,
                self.ends.tail,
            )
        }
    }

    /// Copies `to.len()` bytes out, from `offset`. `EMSGSIZE` if there are not so many.
    pub(crate) fn copy_to(&self, offset: usize, to: &mut [u8]) -> Result {
        let mut to = to;
        self.each(offset, to.len(), |piece| {
            let (part, rest) = core::mem::take(&mut to).split_at_mut(piece.len());
            // SAFETY: Both are `piece.len()` bytes; `part` is borrowed exclusively. An adapter
            // that writes there meanwhile spoils the bytes and nothing else.
            unsafe { core::ptr::copy_nonoverlapping(piece.cast(), part.as_mut_ptr(), part.len()) };
            to = rest;
        })
    }

    /// Copies bytes in, at `offset`. `EMSGSIZE` if there is no room, `EINVAL` if the memory may not
    /// be written to.
    pub(crate) fn copy_from(&mut self, offset: usize, from: &[u8]) -> Result {
        if !self.writable {
            return Err(EINVAL);
        }
        let mut from = from;
        self.each(offset, from.len(), |piece| {
            let (part, rest) = from.split_at(piece.len());
            // SAFETY: Both are `piece.len()` bytes; the pages are ours to write to, as the
            // exclusive borrow says.
            unsafe { core::ptr::copy_nonoverlapping(part.as_ptr(), piece.cast(), part.len()) };
            from = rest;
        })
    }

    fn each(&self, offset: usize, len: usize, mut take: impl FnMut(*mut [u8])) -> Result {
        let mut pieces = self.pieces();
        pieces.skip(offset);
        if pieces.remaining() < len {
            return Err(EMSGSIZE);
        }
        let mut left = len;
        while left != 0 {
            let piece = pieces.take(left).ok_or(EMSGSIZE)?;
            left -= piece.len;
            // SAFETY: The page is valid by the type invariant, and of the direct map: nobody
            // gathers high memory on the machines that this is for.
            let page = unsafe { bindings::page_address(piece.page) }.cast::<u8>();
            take(core::ptr::slice_from_raw_parts_mut(
                page.wrapping_add(piece.offset),
                piece.len,
            ));
        }
        Ok(())
    }

    /// The pages alone.
    pub(super) fn into_pages(self) -> PageList {
        self.pages
    }
}
