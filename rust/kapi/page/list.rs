// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Pages with a reference to each.

use crate::kapi::bindings;
use kernel::{
    alloc::flags::__GFP_NOWARN,
    page::PAGE_SIZE,
    prelude::*,
    sync::Arc, //
};

/// Pages, with one reference to each.
///
/// # Invariants
///
/// Each entry is a valid page, and one of its references belongs to this list.
pub(in crate::kapi) struct PageList(KVVec<*mut bindings::page>);

// SAFETY: References to pages may be given back by any thread.
unsafe impl Send for PageList {}
// SAFETY: A shared list does not change, and nothing is done with the pages through it.
unsafe impl Sync for PageList {}

impl PageList {
    /// Returns a list of one new page. May sleep.
    pub(super) fn one() -> Result<Self> {
        let mut list = Self(KVVec::with_capacity(1, GFP_KERNEL)?);
        // SAFETY: Allocating has no requirement.
        let page = unsafe { bindings::alloc_page(bindings::GFP_KERNEL) };
        if page.is_null() {
            return Err(ENOMEM);
        }
        // INVARIANT: Its only reference.
        let _ = list.0.push_within_capacity(page);
        Ok(list)
    }

    /// Moves pages out of an array, whose entries become null. `EIO` if one is null before; those
    /// in front of it are let go.
    ///
    /// # Safety
    ///
    /// Each entry must be null or a page with a reference that the array's owner lets go.
    pub(in crate::kapi) unsafe fn take(entries: &mut [*mut bindings::page]) -> Result<Self> {
        let mut list = Self(KVVec::with_capacity(entries.len(), GFP_KERNEL)?);
        for entry in entries {
            let page = core::mem::replace(entry, core::ptr::null_mut());
            if page.is_null() {
                return Err(EIO);
            }
            // INVARIANT: The reference was the array's, as the caller promises.
            let _ = list.0.push_within_capacity(page);
        }
        Ok(list)
    }

    /// Takes a reference to each page. Does not sleep; `ENOBUFS` when memory is short.
    ///
    /// # Safety
    ///
    /// Each entry must be a valid page with references that others have.
    pub(in crate::kapi) unsafe fn share(entries: &[*mut bindings::page]) -> Result<Arc<Self>> {
        let flags = GFP_NOWAIT | __GFP_NOWARN;
        let list = KVVec::with_capacity(entries.len(), flags);
        let mut list = Self(list.map_err(|_| ENOBUFS)?);
        for entry in entries {
            // SAFETY: A valid page by the contract of this function.
            unsafe { bindings::get_page(*entry) };
            // INVARIANT: A reference was taken.
            let _ = list.0.push_within_capacity(*entry);
        }
        Arc::new(list, flags).map_err(|_| ENOBUFS)
    }

    /// Puts the pages at the beginning of an array, and lets go of those that were there. `EINVAL`
    /// if it has no room for all: then the array stays as it is.
    ///
    /// # Safety
    ///
    /// Each entry must be null or a page with a reference that the array's owner lets go.
    pub(super) unsafe fn put_into(mut self, entries: &mut [*mut bindings::page]) -> Result {
        let places = entries.get_mut(..self.0.len()).ok_or(EINVAL)?;
        places.swap_with_slice(&mut self.0);
        // INVARIANT: The others were the array's, with their references, as the caller promises.
        self.0.retain(|page| !page.is_null());
        Ok(())
    }

    /// Returns the number of pages.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns the array of pages, valid as long as the list is there, even if it is moved.
    pub(super) fn as_ptr(&self) -> *const *mut bindings::page {
        self.0.as_ptr()
    }

    /// Returns whether `len` bytes of the direct map at `addr` are in one of the pages.
    pub(super) fn holds(&self, addr: *const u8, len: usize) -> bool {
        self.0.iter().any(|held| {
            // SAFETY: The page is valid by the type invariant.
            let front = unsafe { bindings::page_address(*held) };
            let offset = (addr as usize).wrapping_sub(front as usize);
            offset < PAGE_SIZE && len <= PAGE_SIZE - offset
        })
    }
}

impl Drop for PageList {
    fn drop(&mut self) {
        if !self.0.is_empty() {
            // SAFETY: The references are ours by the type invariant, and not used any more.
            unsafe { bindings::release_pages(self.0.as_mut_ptr(), self.0.len() as i32) };
        }
    }
}
