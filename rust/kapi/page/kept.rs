// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Pages that stay longer than their owner keeps them.

use crate::kapi::{
    bindings,
    page::PageList, //
};
use core::ptr::NonNull;
use kernel::{
    alloc::flags::__GFP_NOWARN,
    prelude::*,
    sync::Arc, //
};

/// References to the pages of a message whose owner may let go of them while a peer can reach them.
pub(in crate::kapi) struct KeptPages {
    _pages: PageList,
}

impl KeptPages {
    /// Takes a reference to each page. Does not sleep; `ENOBUFS` when memory is short.
    ///
    /// # Safety
    ///
    /// Each entry must be a valid page with references that others have.
    pub(in crate::kapi) unsafe fn new(entries: &[*mut bindings::page]) -> Result<Arc<Self>> {
        let flags = GFP_NOWAIT | __GFP_NOWARN;
        let mut pages = KVVec::with_capacity(entries.len(), flags).map_err(|_| ENOBUFS)?;
        for entry in entries {
            let page = NonNull::new(*entry).ok_or(EIO)?;
            pages.push_within_capacity(page).map_err(|_| ENOBUFS)?;
        }
        for entry in entries {
            // SAFETY: A valid page by the contract of this function.
            unsafe { bindings::get_page(*entry) };
        }
        // INVARIANT: A reference to each was taken above.
        let _pages = PageList(pages);
        Arc::new(Self { _pages }, flags).map_err(|_| ENOBUFS)
    }
}
