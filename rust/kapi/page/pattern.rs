// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Pages that are to be put into a list of elements, of which one may be several pages.

use super::super::bindings;
use core::mem::size_of;
use kernel::page::PAGE_SIZE;

/// Whether pages that are neighbours in the kernel's map of all pages are neighbours in memory.
const FLAT_MAP: bool = cfg!(any(CONFIG_FLATMEM, CONFIG_SPARSEMEM_VMEMMAP));

/// `len` bytes that begin `offset` bytes into the first of some pages, and go on at the front of each
/// other. Or one piece of memory of that length, of which only the first page is named.
pub(in super::super) struct Pattern<'a> {
    pages: &'a [*mut bindings::page],
    offset: usize,
    len: usize,
    /// Pages that are neighbours in memory are one piece.
    joined: bool,
}

impl<'a> Pattern<'a> {
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

    /// Calls `each` with the part that is in each page: its offset in that, and its length. The last one
    /// is what remains.
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

    /// Has an element set for each piece, with its page, offset and length, and says how many that are.
    /// A piece that goes on in the next page is lengthened by so many bytes after it was set. None if
    /// there are fewer elements than pages, or no page.
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

/// As [`Pattern::put`], of several pages.
// Not inlined: its loop needs few registers, and its callers have none left.
#[inline(never)]
fn join<E>(
    pattern: &Pattern<'_>,
    room: &mut [E],
    set: impl Fn(&mut E, *mut bindings::page, u32, u32),
    lengthen: impl Fn(&mut E, u32),
) -> Option<usize> {
    const WHOLE: u32 = PAGE_SIZE as u32;
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
    let mut next = first.wrapping_byte_add(step);
    let begin = room.as_mut_ptr();
    // Behind the element that was set last.
    let mut end = begin.wrapping_add(1);
    let mut each = |page: *mut bindings::page, len| {
        if page == next {
            // SAFETY: At least one was set.
            lengthen(unsafe { &mut *end.sub(1) }, len);
        } else {
            // SAFETY: There are as many as pages, by the check above, and no more were set than there
            // were pages before.
            set(unsafe { &mut *end }, page, 0, len);
            end = end.wrapping_add(1);
        }
        next = page.wrapping_byte_add(step);
    };
    // Eight at a time: then it is about eight instructions for each.
    let eights = others.chunks_exact(8);
    let odd = eights.remainder();
    for eight in eights {
        if let Ok(eight) = <&[_; 8]>::try_from(eight) {
            eight.iter().for_each(|page| each(*page, WHOLE));
        }
    }
    odd.iter().for_each(|page| each(*page, WHOLE));
    // What remains, a page or less.
    let behind = pattern.offset.wrapping_add(pattern.len);
    let rest = behind.wrapping_sub(1) % PAGE_SIZE + 1;
    each(*last, rest as u32);
    Some((end as usize - begin as usize) / size_of::<E>())
}

/// How many of the pages, from the first on, are one behind the other in memory.
// Not inlined, and eight at a time, for the reasons above.
#[inline(never)]
pub(super) fn in_a_row(pages: &[*mut bindings::page]) -> usize {
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
