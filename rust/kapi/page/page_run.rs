// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Pages that are to be put into a list of elements, of which one may be several pages.

use crate::kapi::bindings;
use core::mem::size_of;
use kernel::page::PAGE_SIZE;

/// Whether pages that are neighbours in the kernel's map of all pages are neighbours in memory.
pub(super) const FLAT_MAP: bool = cfg!(any(CONFIG_FLATMEM, CONFIG_SPARSEMEM_VMEMMAP));

/// `len` bytes that begin `offset` bytes into the first of some pages, and go on at the front of
/// each other. Or one piece of memory of that length, of which only the first page is named.
pub(in super::super) struct PageRun<'a> {
    pages: &'a [*mut bindings::page],
    offset: usize,
    len: usize,
    /// Pages that are neighbours in memory are one piece.
    joined: bool,
}

impl<'a> PageRun<'a> {
    pub(super) fn new(
        pages: &'a [*mut bindings::page],
        offset: usize,
        len: usize,
        joined: bool,
    ) -> Self {
        Self {
            pages,
            offset,
            len,
            joined,
        }
    }

    /// Calls `each` with the part that is in each page: its offset in that, and its length. The
    /// last one is what remains.
    pub(super) fn each_page(&self, mut each: impl FnMut(*mut bindings::page, usize, usize)) {
        let Some((last, others)) = self.pages.split_last() else {
            return;
        };
        let (mut offset, mut left) = (self.offset, self.len);
        for page in others {
            let len = left.min(PAGE_SIZE - offset);
            each(*page, offset, len);
            left -= len;
            offset = 0;
        }
        each(*last, offset, left);
    }

    /// Has an element set for each piece, with its page, offset and length, and says how many that
    /// are. A piece that goes on in the next page is lengthened by so many bytes after it was set.
    /// None if there are fewer elements than pages, or no page. What the elements behind those are
    /// is not said.
    #[inline]
    pub(in super::super) fn put<E>(
        &self,
        room: &mut [E],
        set: impl Fn(&mut E, *mut bindings::page, u32, u32),
        lengthen: impl Fn(&mut E, u32),
    ) -> Option<usize> {
        if let [page] = self.pages {
            let (offset, len) = (self.offset as u32, self.len as u32);
            set(room.first_mut()?, *page, offset, len);
            return Some(1);
        }
        join(self, room, set, lengthen)
    }
}

/// Bytes of a page, as elements count them.
const WHOLE: u32 = PAGE_SIZE as u32;

/// As [`PageRun::put`], of several pages.
// Not inlined: its loop needs few registers, and its callers have none left.
#[inline(never)]
fn join<E>(
    pattern: &PageRun<'_>,
    room: &mut [E],
    set: impl Fn(&mut E, *mut bindings::page, u32, u32),
    lengthen: impl Fn(&mut E, u32),
) -> Option<usize> {
    let (first, others) = pattern.pages.split_first()?;
    let (last, others) = others.split_last()?;
    if room.len() < pattern.pages.len() {
        return None;
    }
    let offset = pattern.offset as u32;
    set(room.first_mut()?, *first, offset, WHOLE - offset);
    // No page is at an odd address, so none follows then.
    let step = if FLAT_MAP && pattern.joined {
        size_of::<bindings::page>()
    } else {
        1
    };
    let begin = room.as_mut_ptr();
    // INVARIANT: One is set, and there are as many as pages, each of which is added once.
    let mut elements = Elements {
        end: begin.wrapping_add(1),
        next: first.wrapping_byte_add(step),
        step,
        set,
        lengthen,
    };
    let eights = others.chunks_exact(8);
    let odd = eights.remainder();
    for eight in eights {
        if let Ok(eight) = <&[_; 8]>::try_from(eight) {
            if !elements.add_apart(eight) {
                eight.iter().for_each(|page| elements.add(*page, WHOLE));
            }
        }
    }
    odd.iter().for_each(|page| elements.add(*page, WHOLE));
    // What remains, a page or less.
    let behind = pattern.offset.wrapping_add(pattern.len);
    let rest = behind.wrapping_sub(1) % PAGE_SIZE + 1;
    elements.add(*last, rest as u32);
    Some((elements.end as usize - begin as usize) / size_of::<E>())
}

/// Elements that are being set.
///
/// # Invariants
///
/// The element in front of `end` is set, and from `end` on there is one for each page that is still
/// to be added.
struct Elements<E, S, L> {
    /// Behind the element that was set last.
    end: *mut E,
    /// Where a page has to be to be joined to that.
    next: *mut bindings::page,
    step: usize,
    set: S,
    lengthen: L,
}

impl<E, S, L> Elements<E, S, L>
where
    S: Fn(&mut E, *mut bindings::page, u32, u32),
    L: Fn(&mut E, u32),
{
    /// Adds the first `len` bytes of a page.
    #[inline(always)]
    fn add(&mut self, page: *mut bindings::page, len: u32) {
        if page == self.next {
            // SAFETY: It is set, by the type invariant.
            (self.lengthen)(unsafe { &mut *self.end.sub(1) }, len);
        } else {
            // SAFETY: It is there, by the type invariant.
            (self.set)(unsafe { &mut *self.end }, page, 0, len);
            self.end = self.end.wrapping_add(1);
        }
        self.next = page.wrapping_byte_add(self.step);
    }

    /// Adds pages if none of them is the neighbour of the one before it, and says whether that is
    /// so. If not, none is added.
    // Then it is about six instructions for each.
    #[inline(always)]
    fn add_apart(&mut self, pages: &[*mut bindings::page; 8]) -> bool {
        // SAFETY: They are there, by the type invariant.
        let places = unsafe { &mut *self.end.cast::<[E; 8]>() };
        let mut next = self.next;
        for (page, place) in Iterator::zip(pages.iter().copied(), places) {
            if page == next {
                return false;
            }
            (self.set)(place, page, 0, WHOLE);
            next = page.wrapping_byte_add(self.step);
        }
        self.next = next;
        self.end = self.end.wrapping_add(8);
        true
    }
}

/// How many of the pages, from the first on, are one behind the other in memory.
// Not inlined, and eight at a time, for the reasons above.
#[inline(never)]
pub(super) fn contiguous_len(pages: &[*mut bindings::page]) -> usize {
    let Some(first) = pages.first() else {
        return 0;
    };
    if !FLAT_MAP {
        return 1;
    }
    let mut next = *first;
    let mut follows = |page: &*mut bindings::page| {
        let follows = *page == next;
        if follows {
            next = next.wrapping_add(1);
        }
        follows
    };
    // Then it is little more than three instructions for each.
    let mut eights = pages.chunks_exact(8);
    let all = eights.all(|eight| eight.iter().all(&mut follows));
    let _ = all && eights.remainder().iter().all(&mut follows);
    (next as usize).wrapping_sub(*first as usize) / size_of::<bindings::page>()
}
