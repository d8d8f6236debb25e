// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Protects: a page that changes hands has one owner at any time, and what is gathered from pages
//! is in them.

use crate::{
    kapi::page::*,
    kunit::{
        claim,
        same, //
    },
};

/// Neither a head nor a tail.
const NOWHERE: [(*const u8, usize); 2] = [(core::ptr::null(), 0); 2];

/// An array of pages such as a service thread has, each with a reference that the test keeps.
struct Array {
    entries: KVec<*mut bindings::page>,
    pages: KVec<*mut bindings::page>,
}

impl Array {
    fn new(n: usize) -> Result<Self> {
        let mut array = Self {
            entries: KVec::with_capacity(n, GFP_KERNEL)?,
            pages: KVec::with_capacity(n, GFP_KERNEL)?,
        };
        for _ in 0..n {
            // SAFETY: No precondition.
            let page = unsafe { bindings::alloc_page(bindings::GFP_KERNEL | bindings::__GFP_ZERO) };
            claim(!page.is_null(), "there is memory")?;
            // SAFETY: Allocated above.
            unsafe { bindings::get_page(page) };
            array.pages.push(page, GFP_KERNEL)?;
            array.entries.push(page, GFP_KERNEL)?;
        }
        Ok(array)
    }

    fn take(&mut self, n: usize) -> Result<PageList> {
        let entries = self.entries.get_mut(..n).ok_or(EINVAL)?;
        // SAFETY: Each entry is null or has a reference.
        unsafe { PageList::take(entries) }
    }

    /// References to the pages beside the test's.
    fn references(&self) -> usize {
        // SAFETY: The pages are valid, since the test has references.
        let count = |page: &*mut bindings::page| unsafe { bindings::page_count(*page) } as usize;
        self.pages.iter().map(count).sum::<usize>() - self.pages.len()
    }

    fn address(&self, i: usize) -> Result<*const u8> {
        let page = self.pages.get(i).copied().ok_or(EINVAL)?;
        // SAFETY: The page is valid.
        Ok(unsafe { bindings::page_address(page) }.cast())
    }
}

impl Drop for Array {
    fn drop(&mut self) {
        for page in Iterator::chain(self.entries.iter(), self.pages.iter()) {
            if !page.is_null() {
                // SAFETY: The reference is this array's.
                unsafe { bindings::put_page(*page) };
            }
        }
    }
}

#[kunit_tests(rpcrdma_pages)]
mod suite {
    use super::*;

    #[test]
    fn taken_pages_are_the_lists() -> Result {
        let mut array = Array::new(4)?;
        let list = array.take(3)?;
        same(
            "left",
            array.entries.iter().filter(|e| !e.is_null()).count(),
            1,
        )?;
        same("references", array.references(), 4)?;
        same("again", array.take(4).err(), Some(EIO))?;
        drop(list);
        same("references", array.references(), 1)
    }

    #[test]
    fn pieces_end_where_neighbours_end() -> Result {
        let array = Array::new(1)?;
        let first = array.pages.first().copied().ok_or(EINVAL)?;
        // Nobody looks into the pages.
        for n in 1..27 {
            for (broken, other) in (0..n).flat_map(|i| [(i, i), (i, 0), (i, i + 1), (i, 99)]) {
                all_join(n, |i| {
                    first.wrapping_add(if i == broken { other } else { i })
                })?;
            }
        }
        Ok(())
    }

    #[test]
    fn pieces_that_are_apart() -> Result {
        let array = Array::new(1)?;
        let first = array.pages.first().copied().ok_or(EINVAL)?;
        // As above. All are apart but one, or one here and all from there on.
        for n in 1..37 {
            for (near, row) in (0..n).flat_map(|i| [(i, n), (i, i + 3), (n, i)]) {
                all_join(n, |i| {
                    let apart = 2 * i.min(row) + i.saturating_sub(row);
                    first.wrapping_add(apart - usize::from(i == near && i != 0))
                })?;
            }
        }
        Ok(())
    }

    #[test]
    fn pages_in_front_of_a_missing_one() -> Result {
        for n in [1, 15, 16, 17, 40] {
            for missing in 0..n {
                let mut array = Array::new(n)?;
                let place = array.entries.get_mut(missing..missing + 1).ok_or(EINVAL)?;
                // SAFETY: The entry has a reference.
                drop(unsafe { PageList::take(place)? });
                same("taken", array.take(n).err(), Some(EIO))?;
                // What is not in the array any more was let go.
                let left = array.entries.iter().filter(|entry| !entry.is_null());
                same("left", left.count(), array.references())?;
                for (entry, page) in array.entries.iter().zip(&array.pages).skip(missing + 1) {
                    same("behind it", *entry, *page)?;
                }
            }
        }
        Ok(())
    }

    /// As [`joins`], whatever their length may be.
    fn all_join(n: usize, page: impl Fn(usize) -> *mut bindings::page) -> Result {
        let mut row = KVec::with_capacity(n, GFP_KERNEL)?;
        for i in 0..n {
            row.push(page(i), GFP_KERNEL)?;
        }
        for longest in [1, 2, 7, 8, 9, 26, u32::MAX] {
            joins(&row, NonZero::new(longest).ok_or(EINVAL)?)?;
        }
        Ok(())
    }

    /// Checks the pieces of these pages, of which the first and the last are not whole.
    fn joins(row: &[*mut bindings::page], longest: NonZero<u32>) -> Result {
        let (base, len) = (1, row.len() * PAGE_SIZE - 1 - usize::from(row.len() != 1));
        let none = (core::ptr::null(), 0);
        let mut found = KVec::with_capacity(row.len(), GFP_KERNEL)?;
        let extents = Extents::new(none, (row.as_ptr(), base, len), none);
        let pages = extents.run_at(0, len).ok_or(EINVAL)?;
        // SAFETY: The array has as many pages, and nobody looks into them.
        unsafe {
            pages.each(longest, |page, offset, len| {
                // There are no more pieces than pages.
                let put = found.push_within_capacity((page, offset, len));
                put.map_err(|_| EMSGSIZE)
            })
        }?;
        let mut at = base;
        // Up to where the piece before reaches, and in how many bytes it would be full.
        let mut last: Option<(*mut bindings::page, usize)> = None;
        for (page, offset, len) in found {
            same("offset", offset, at % PAGE_SIZE)?;
            let end = offset + len;
            let pages = end.div_ceil(PAGE_SIZE);
            claim(pages <= longest.get() as usize, "not too long")?;
            for i in 0..pages {
                let wanted = row.get(at / PAGE_SIZE + i).copied();
                same("page", Some(page.wrapping_add(i)), wanted)?;
            }
            if let Some((behind, room)) = last {
                claim(room == 0 || page != behind, "not too short")?;
            }
            at += len;
            let room = longest.get() as usize * PAGE_SIZE - end;
            last = Some((page.wrapping_add(pages), room));
        }
        same("bytes", at, base + len)
    }

    #[test]
    fn pages_take_the_places_of_others() -> Result {
        // Some of the places are empty.
        for (n, empty) in [3, 15, 16, 33].into_iter().flat_map(|n| {
            [&[][..], &[0], &[1], &[0, 2], &[0, 1, 2], &[7, 16]].map(|empty| (n, empty))
        }) {
            let mut from = Array::new(n)?;
            let mut to = Array::new(n + 2)?;
            let mut gone = 0;
            for i in empty.iter().filter(|i| **i < n) {
                let list = to.entries.get_mut(*i..*i + 1).ok_or(EINVAL)?;
                // SAFETY: The entry has a reference.
                drop(unsafe { PageList::take(list)? });
                gone += 1;
            }
            let list = from.take(n)?;
            same("before", to.references(), n + 2 - gone)?;
            // SAFETY: Each entry is null or has a reference.
            unsafe { list.put_into(&mut to.entries) }?;
            same("in order", &to.entries[..n], &from.pages[..])?;
            same("those behind", &to.entries[n..], &to.pages[n..])?;
            same("given", from.references(), n)?;
            same("let go", to.references(), 2)?;
            drop(to);
            same("let go", from.references(), 0)?;
        }
        Ok(())
    }

    #[test]
    fn pages_that_find_no_place_are_let_go() -> Result {
        for room in [0, 1, 19] {
            let mut from = Array::new(20)?;
            let mut to = Array::new(room)?;
            let list = from.take(20)?;
            // SAFETY: Each entry has a reference.
            let put = unsafe { list.put_into(&mut to.entries) };
            same("no room", put, Err(EINVAL))?;
            same("as before", &to.entries[..], &to.pages[..])?;
            same("let go", from.references(), 0)?;
            same("kept", to.references(), room)?;
        }
        Ok(())
    }

    #[test]
    fn pages_of_others_are_not_given_away() -> Result {
        let mut to = Array::new(1)?;
        let shared = TransferMemory::with_ends(array_list()?, NOWHERE, 0, 0, PAGE_SIZE)?;
        // SAFETY: The entry has a reference.
        let put = unsafe { shared.put_into(&mut to.entries) };
        same("shared", put, Err(EINVAL))?;
        same("as before", &to.entries[..], &to.pages[..])?;
        let own = TransferMemory::new(array_list()?, 100)?;
        // SAFETY: The entry has a reference, since nothing was put there before.
        let put = unsafe { own.put_into(&mut to.entries) };
        same("own", put, Ok(100))?;
        same("let go", to.references(), 0)
    }

    #[test]
    fn memory_that_is_in_a_page_of_a_list() -> Result {
        let list = array_list()?;
        let mut array = Array::new(1)?;
        let front = array.address(0)?;
        let other = list.holds(front, 1);
        same("before it is there", other, false)?;
        let list = array.take(1)?;
        for (offset, len, holds) in [
            (0, PAGE_SIZE, true),
            (0, PAGE_SIZE + 1, false),
            (1, PAGE_SIZE, false),
            (PAGE_SIZE - 1, 1, true),
            (PAGE_SIZE - 1, 2, false),
            (PAGE_SIZE, 1, false),
            (usize::MAX, 1, false),
            (usize::MAX, 2, false),
        ] {
            same("holds", list.holds(front.wrapping_add(offset), len), holds)?;
        }
        claim(!list.holds(core::ptr::null(), 1), "no memory at all")
    }

    #[test]
    fn gathered_memory_is_in_its_pages() -> Result {
        /// Where head and tail are.
        #[derive(Clone, Copy)]
        enum At {
            Nowhere,
            First(usize, usize),
            Elsewhere,
        }
        use At::*;
        for (head, tail, first, base, len, holds) in [
            (First(0, 100), Nowhere, 1, 0, 2 * PAGE_SIZE, true),
            (First(0, 100), First(100, 50), 1, 200, PAGE_SIZE, true),
            (Nowhere, Nowhere, 0, 0, 3 * PAGE_SIZE, true),
            (Nowhere, Nowhere, 0, 1, 3 * PAGE_SIZE, false),
            (Nowhere, Nowhere, 3, 0, 1, false),
            (Nowhere, Nowhere, 0, usize::MAX, 1, false),
            (Elsewhere, Nowhere, 1, 0, 1, false),
            (Nowhere, Elsewhere, 1, 0, 1, false),
            (First(0, 2 * PAGE_SIZE), Nowhere, 1, 0, 1, false),
        ] {
            let mut array = Array::new(3)?;
            let stranger = Array::new(1)?;
            let place = |at| -> Result<(*const u8, usize)> {
                Ok(match at {
                    Nowhere => (core::ptr::null(), 0),
                    First(offset, len) => (array.address(0)?.wrapping_add(offset), len),
                    Elsewhere => (stranger.address(0)?, 1),
                })
            };
            let ends = [place(head)?, place(tail)?];
            let gathered = TransferMemory::with_ends(array.take(3)?, ends, first, base, len);
            same("gathered", gathered.is_ok(), holds)?;
            drop(gathered);
            same("references", array.references(), 0)?;
        }
        Ok(())
    }

    #[test]
    fn what_is_taken_ends_where_memory_goes_on_elsewhere() -> Result {
        let mut array = Array::new(3)?;
        let (first, second) = (array.address(0)?, array.pages.get(1).copied());
        let ends = [(first.wrapping_add(8), 100), (first.wrapping_add(200), 50)];
        let gathered = TransferMemory::with_ends(array.take(3)?, ends, 1, 10, PAGE_SIZE)?;
        for (offset, n, len, page, within) in [
            (0, 1000, 100, array.pages.first().copied(), 8),
            (99, 1, 1, array.pages.first().copied(), 107),
            (100, usize::MAX, PAGE_SIZE, second, 10),
            (100, 20, 20, second, 10),
            (150, PAGE_SIZE, PAGE_SIZE - 50, second, 60),
            (PAGE_SIZE + 100, 1000, 50, array.pages.first().copied(), 200),
            (PAGE_SIZE + 149, 1000, 1, array.pages.first().copied(), 249),
            (PAGE_SIZE + 150, 1000, 0, None, 0),
            (usize::MAX, 1000, 0, None, 0),
        ] {
            let mut front = None;
            let taken = gathered.take_at(offset, n, NonZero::<u32>::MIN, |page, offset, _| {
                front.get_or_insert((page, offset));
                Ok(())
            })?;
            same("bytes", taken, len)?;
            same("where", front, page.map(|page| (page, within)))?;
        }
        let refused = gathered.take_at(0, 1, NonZero::<u32>::MIN, |_, _, _| Err(EMSGSIZE));
        same("refused", refused, Err(EMSGSIZE))
    }

    #[test]
    fn copies_go_where_they_belong() -> Result {
        let mut array = Array::new(3)?;
        let mut gathered = TransferMemory::new(array.take(3)?, 2 * PAGE_SIZE + 10)?;
        same(
            "past the end",
            gathered.copy_from(2 * PAGE_SIZE + 9, &[1, 2]),
            Err(EMSGSIZE),
        )?;
        gathered.copy_from(PAGE_SIZE - 2, &[1, 2, 3, 4])?;
        let mut found = [0; 6];
        gathered.copy_to(PAGE_SIZE - 3, &mut found)?;
        same("bytes", found, [0, 1, 2, 3, 4, 0])?;
        let shared = TransferMemory::with_ends(array_list()?, NOWHERE, 0, 0, PAGE_SIZE);
        same("shared memory", shared?.copy_from(0, &[1]), Err(EINVAL))
    }

    fn array_list() -> Result<PageList> {
        let mut array = Array::new(1)?;
        array.take(1)
    }
}
