// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Messages whose memory stays by references to its pages.

use crate::kapi::{
    bindings,
    page::{
        ExtentIter,
        PageList, //
    },
};
use core::num::NonZero;
use kernel::{
    page::PAGE_SIZE,
    prelude::*, //
};

/// Bytes of the direct map that are gathered with pages.
#[derive(Clone, Copy)]
pub(in crate::kapi) struct HeadTail {
    pub(in crate::kapi) head: (*const u8, usize),
    pub(in crate::kapi) tail: (*const u8, usize),
}

impl HeadTail {
    pub(super) const NONE: Self = Self {
        head: (core::ptr::null(), 0),
        tail: (core::ptr::null(), 0),
    };
}

/// A message whose memory stays by references to its pages.
///
/// # Invariants
///
/// Head and tail are empty or in the pages of the list; `first * PAGE_SIZE + base + len` reaches no
/// further than the list. If it is writable, head and tail are empty, and `first` and `base` zero.
pub(crate) struct MsgPages {
    pages: PageList,
    ends: HeadTail,
    first: usize,
    base: usize,
    len: usize,
    /// The pages are nobody else's.
    writable: bool,
}

// SAFETY: The pointers are into memory that the list of pages keeps.
unsafe impl Send for MsgPages {}

/// Nothing.
impl Default for MsgPages {
    fn default() -> Self {
        // INVARIANT: There are no bytes.
        Self {
            pages: PageList(KVVec::new()),
            ends: HeadTail::NONE,
            first: 0,
            base: 0,
            len: 0,
            writable: false,
        }
    }
}

impl MsgPages {
    /// The first `len` bytes of pages that are nobody else's. `EMSGSIZE` if they have not so many.
    #[inline(always)]
    pub(in crate::kapi) fn new(pages: PageList, len: usize) -> Result<Self> {
        let mut gathered = Self::with_ends(pages, HeadTail::NONE, 0, 0, len)?;
        gathered.writable = true;
        Ok(gathered)
    }

    /// A head, `len` bytes that begin `base` bytes into page `first`, and a tail. `EMSGSIZE` if
    /// they are not all in the pages.
    // Inlined, or all of it would be moved twice.
    #[inline(always)]
    pub(in crate::kapi) fn with_ends(
        pages: PageList,
        ends: HeadTail,
        first: usize,
        base: usize,
        len: usize,
    ) -> Result<Self> {
        let end = base.checked_add(len).ok_or(EMSGSIZE)?;
        let most = pages.0.len().saturating_sub(first) * PAGE_SIZE;
        let within = |(addr, len): (*const u8, usize)| {
            let last = addr.wrapping_add(len.saturating_sub(1));
            let in_one = addr as usize / PAGE_SIZE == last as usize / PAGE_SIZE;
            let holds_last = || in_one || pages.holds(last);
            len == 0 || (len <= PAGE_SIZE && pages.holds(addr) && holds_last())
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
    pub(in crate::kapi) fn is_writable(&self) -> bool {
        self.writable
    }

    /// Bytes of the message.
    pub(crate) fn len(&self) -> usize {
        self.ends.head.1 + self.len + self.ends.tail.1
    }

    /// Bytes of memory that it keeps.
    pub(crate) fn memory(&self) -> usize {
        self.pages.0.len().saturating_mul(PAGE_SIZE)
    }

    /// The message as pieces.
    pub(super) fn pieces(&self) -> ExtentIter<'_> {
        let pages = self.pages.as_ptr().wrapping_add(self.first);
        let (head, tail) = (self.ends.head, self.ends.tail);
        // SAFETY: By the type invariant.
        unsafe { ExtentIter::new(head, (pages, self.base, self.len), tail, (None, None)) }
    }

    /// Copies bytes in, at `offset`. `EMSGSIZE` if there is no room, `EINVAL` if the memory may not
    /// be written to.
    pub(crate) fn copy_from(&mut self, offset: usize, from: &[u8]) -> Result {
        if !self.writable {
            return Err(EINVAL);
        }
        let mut from = from;
        each(self.pieces(), offset, from.len(), |piece| {
            let (part, rest) = from.split_at(piece.len());
            // SAFETY: Both are `piece.len()` bytes; the pages are ours to write to, as the
            // exclusive borrow says.
            unsafe { core::ptr::copy_nonoverlapping(part.as_ptr(), piece.cast(), part.len()) };
            from = rest;
        })
    }

    /// The pages alone, where they are nobody else's, and the message begins at the front of the
    /// first.
    pub(crate) fn into_read_pages(self) -> Option<ReadPages> {
        let Self {
            pages,
            len,
            writable,
            ..
        } = self;
        // INVARIANT: What is writable has neither head nor tail, and begins with the first page.
        writable.then_some(ReadPages { pages, len })
    }
}

/// What RDMA Reads have filled: as small as that can be, since each argument has the room for it.
///
/// # Invariants
///
/// The first `len` bytes are in the pages, which are nobody else's.
pub(crate) struct ReadPages {
    pages: PageList,
    len: usize,
}

impl ReadPages {
    /// Bytes in them.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    fn pieces(&self) -> ExtentIter<'_> {
        let (none, pages) = ((core::ptr::null(), 0), self.pages.as_ptr());
        // SAFETY: By the type invariant.
        unsafe { ExtentIter::new(none, (pages, 0, self.len), none, (None, None)) }
    }

    /// Copies `to.len()` bytes out, from `offset`. `EMSGSIZE` if there are not so many.
    pub(crate) fn copy_to(&self, offset: usize, to: &mut [u8]) -> Result {
        let mut to = to;
        each(self.pieces(), offset, to.len(), |piece| {
            let (part, rest) = core::mem::take(&mut to).split_at_mut(piece.len());
            // SAFETY: Both are `piece.len()` bytes; `part` is borrowed exclusively. An adapter
            // that writes there meanwhile spoils the bytes and nothing else.
            unsafe { core::ptr::copy_nonoverlapping(piece.cast(), part.as_mut_ptr(), part.len()) };
            to = rest;
        })
    }

    /// Puts the pages at the beginning of an array, and lets go of those that were there. Returns
    /// the bytes that are in them. `EINVAL` if there is no room for them: then the array stays as
    /// it is.
    ///
    /// # Safety
    ///
    /// Each entry must be null or a page with a reference that the array's owner lets go.
    pub(in crate::kapi) unsafe fn put_into(
        mut self,
        entries: &mut [*mut bindings::page],
    ) -> Result<usize> {
        // SAFETY: Each entry is null or a page whose reference goes, as the caller promises.
        unsafe { self.pages.put_into(entries) }?;
        Ok(self.len)
    }
}

/// Calls `take` for `len` bytes from `offset` on, piece by piece. `EMSGSIZE` if there are not so
/// many.
fn each(
    mut pieces: ExtentIter<'_>,
    offset: usize,
    len: usize,
    mut take: impl FnMut(*mut [u8]),
) -> Result {
    if len == 0 {
        return Ok(());
    }
    pieces.skip(offset);
    if pieces.remaining() < len {
        return Err(EMSGSIZE);
    }
    // Page by page: the address of a page need not be good for its neighbour, where addresses
    // are tagged.
    pieces.take(len, NonZero::<u32>::MIN, |pattern| {
        pattern.each_page(|page, offset, len| {
            // SAFETY: The page is valid, since the pieces borrow it, and of the direct map: nobody
            // gathers high memory on the machines that this is for.
            let page = unsafe { bindings::page_address(page) }.cast::<u8>();
            take(core::ptr::slice_from_raw_parts_mut(
                page.wrapping_add(offset),
                len,
            ));
        });
        true
    })
}
