// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The memory into which the RPC layer encodes a Call and from which it decodes a Reply.
//!
//! In front of it stands a reference to the transport's state of the RPC, so that one finds the
//! other without a table.

use super::super::bindings;
use core::{
    mem::size_of,
    ptr::NonNull, //
};
use kernel::{
    prelude::*,
    sync::{
        Arc,
        ArcBorrow, //
    },
};

/// In front of the memory; a multiple of the alignment that `kmalloc` gives.
#[repr(C, align(16))]
struct Prefix<C> {
    call: *const C,
}

/// Allocates `len` bytes and puts `call` in front. Sleeps as the RPC task may.
pub(super) fn allocate<C>(len: usize, call: Arc<C>) -> Result<NonNull<u8>> {
    let size = len.checked_add(size_of::<Prefix<C>>()).ok_or(ENOMEM)?;
    // SAFETY: Allocating has no further requirement.
    let raw = unsafe { bindings::kmalloc(size, bindings::rpc_task_gfp_mask()) };
    let prefix = NonNull::new(raw.cast::<Prefix<C>>()).ok_or(ENOMEM)?;
    // SAFETY: The allocation has room for the prefix and is aligned for it.
    unsafe {
        prefix.write(Prefix {
            call: Arc::into_raw(call),
        });
        Ok(prefix.add(1).cast())
    }
}

/// The state in front of the memory.
///
/// # Safety
///
/// `data` must be of [`allocate`] with the same `C`, and not freed for `'a`.
pub(super) unsafe fn call_of<'a, C>(data: *mut u8) -> ArcBorrow<'a, C> {
    // SAFETY: By contract the prefix is in front, and holds a reference.
    unsafe { ArcBorrow::from_raw((*data.cast::<Prefix<C>>().sub(1)).call) }
}

/// Frees the memory and returns what was in front.
///
/// # Safety
///
/// As for [`call_of`], and `data` is not used afterwards.
pub(super) unsafe fn free<C>(data: *mut u8) -> Arc<C> {
    // SAFETY: By contract; the reference was put there by `allocate`, and is taken once.
    unsafe {
        let prefix = data.cast::<Prefix<C>>().sub(1);
        let call = Arc::from_raw((*prefix).call);
        bindings::kfree(prefix.cast());
        call
    }
}
