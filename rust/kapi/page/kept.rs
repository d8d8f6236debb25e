// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Memory that stays as long as a region covers it, whatever its owner does.

use crate::kapi::{
    bindings,
    page::{
        MsgPages,
        PageList, //
    },
};
use core::{
    mem::size_of,
    ptr::NonNull, //
};
use kernel::{
    prelude::*,
    sync::Arc,
    types::Opaque, //
};

/// What keeps memory while a peer can reach it.
pub(in crate::kapi) enum Kept {
    /// References to the pages of a message whose owner may let go of them before.
    Pages {
        /// Only to be dropped.
        _pages: PageList,
    },
    /// A message that is nobody's but the regions'.
    Message {
        /// Only to be dropped.
        _message: MsgPages,
    },
    /// A few bytes that nobody has use for but the device. Of an allocation of their own: the
    /// processor must not write to what else is in their cache line.
    Scratch {
        /// Only to be dropped.
        _bytes: KBox<Opaque<Scratch>>,
    },
}

/// So much, aligned so that it is within one page.
type Scratch = u32;

// SAFETY: Nobody but a device touches the memory, and the pages may be let go by any thread.
unsafe impl Sync for Kept {}

impl Kept {
    /// A few bytes, and where they are. May sleep.
    pub(super) fn scratch() -> Result<(Arc<Self>, (*const u8, usize))> {
        let bytes = KBox::new(Opaque::new(0), GFP_KERNEL)?;
        let at = bytes.get().cast::<u8>().cast_const();
        let kept = Arc::new(Self::Scratch { _bytes: bytes }, GFP_KERNEL)?;
        Ok((kept, (at, size_of::<Scratch>())))
    }

    /// Takes a reference to each page. Does not sleep; `ENOBUFS` when memory is short.
    ///
    /// # Safety
    ///
    /// Each entry must be a valid page with references that others have.
    pub(in crate::kapi) unsafe fn pages(entries: &[*mut bindings::page]) -> Result<Arc<Self>> {
        let flags = GFP_NOWAIT;
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
        Arc::new(Self::Pages { _pages }, flags).map_err(|_| ENOBUFS)
    }
}
