// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The memory into which the RPC layer encodes a Call and from which it decodes a Reply.
//!
//! In front of it stands a reference to the transport's state of the RPC, so that one finds the
//! other without a table.

use crate::kapi::{
    bindings,
    page::Covers,
    sunrpc::progress::Progress, //
};
use core::{
    marker::PhantomData,
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

/// Why there is no request to answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NotFound {
    /// No RPC waits for a Reply of this XID.
    Unknown,
    /// One does, but its Call was not sent.
    Unsent,
    /// One waits, and somebody else has its Reply already.
    Answered,
}

/// In front of the memory; a multiple of the alignment that `kmalloc` gives.
#[repr(C, align(16))]
struct Prefix<C> {
    call: *const C,
    len: u32,
    /// Somebody has the Reply of the RPC. Goes by the lock of the transport's request queues.
    claimed: bool,
    progress: Progress,
    /// Regions that cover memory of the RPC.
    covers: Covers,
}

/// Memory for the messages of one RPC, and the transport's state of it.
///
/// # Invariants
///
/// `prefix` is an allocation of `kmalloc`, ours, with `len` bytes behind the prefix; `call` is a
/// reference that the prefix owns.
pub(crate) struct RpcBuffer<C> {
    prefix: NonNull<Prefix<C>>,
    _owns: PhantomData<Arc<C>>,
}

// SAFETY: It owns its memory, and a reference that may be sent to another thread.
unsafe impl<C: Send + Sync> Send for RpcBuffer<C> {}

impl<C> RpcBuffer<C> {
    /// The bytes that an allocation of `size` bytes has room for.
    pub(crate) const fn capacity_of(size: usize) -> usize {
        size.saturating_sub(size_of::<Prefix<C>>())
    }

    /// Where the Reply begins that is behind a Call of so many bytes. Its adapter may write there
    /// while the processor writes to what is in front, so that they share no cache line. None if it
    /// is nowhere.
    pub(super) fn reply_offset(call: usize) -> Option<usize> {
        let prefix = size_of::<Prefix<C>>();
        let end = prefix.checked_add(call)?;
        let aligned = end.checked_next_multiple_of(bindings::ARCH_DMA_MINALIGN)?;
        aligned.checked_sub(prefix)
    }

    /// Allocates `len` bytes, with `call` in front. Sleeps as the RPC task may.
    pub(crate) fn new(len: usize, call: Arc<C>) -> Result<Self> {
        let prefix = Self::allocate(len)?;
        let first = Prefix {
            call: Arc::into_raw(call),
            len: len as u32,
            claimed: false,
            progress: Progress::new(),
            covers: Covers::new(),
        };
        // SAFETY: The allocation has room for the prefix and is aligned for it.
        unsafe { prefix.write(first) };
        // INVARIANT: Allocated and written above.
        Ok(Self {
            prefix,
            _owns: PhantomData,
        })
    }

    /// An allocation with room for `len` bytes behind the prefix, which is not written. The length
    /// fits a `u32`.
    fn allocate(len: usize) -> Result<NonNull<Prefix<C>>> {
        u32::try_from(len).map_err(|_| ENOMEM)?;
        let size = len.checked_add(size_of::<Prefix<C>>()).ok_or(ENOMEM)?;
        // SAFETY: Allocating has no further requirement.
        let raw = unsafe { bindings::kmalloc(size, bindings::rpc_task_gfp_mask()) };
        NonNull::new(raw.cast()).ok_or(ENOMEM)
    }

    /// How many bytes there are.
    pub(crate) fn len(&self) -> usize {
        // SAFETY: Valid by the type invariant.
        unsafe { (*self.prefix.as_ptr()).len as usize }
    }

    /// Makes it `len` bytes, if it has less; what was in it is lost. Sleeps as the RPC task may.
    pub(super) fn grow(&mut self, len: usize) -> Result {
        if len <= self.len() {
            return Ok(());
        }
        let larger = Self::allocate(len)?;
        let old = core::mem::replace(&mut self.prefix, larger);
        // INVARIANT: The reference moves to the new prefix.
        // SAFETY: Both are allocations with room for the prefix; the old one is used no more.
        unsafe {
            larger.write(Prefix {
                call: (*old.as_ptr()).call,
                len: len as u32,
                claimed: false,
                progress: Progress::new(),
                covers: Covers::new(),
            });
            bindings::kfree(old.as_ptr().cast());
        }
        Ok(())
    }

    /// The bytes, for an RPC whose Call was not sent. They are freed by way of [`Self::from_raw`].
    pub(super) fn into_raw(self) -> *mut u8 {
        let this = core::mem::ManuallyDrop::new(self);
        // SAFETY: Valid by the type invariant.
        unsafe { this.prefix.as_ref() }.progress.unsent();
        this.prefix.as_ptr().wrapping_add(1).cast()
    }

    /// Undoes [`Self::into_raw`].
    ///
    /// # Safety
    ///
    /// `data` must be of that, and not be used afterwards.
    pub(super) unsafe fn from_raw(data: *mut u8) -> Self {
        // INVARIANT: The bytes are of one that `into_raw` has taken apart.
        Self {
            // SAFETY: `into_raw` gave out what is behind the prefix.
            prefix: unsafe { NonNull::new_unchecked(data.cast::<Prefix<C>>().sub(1)) },
            _owns: PhantomData,
        }
    }

    /// How many bytes there are from `at` on, which is one of them or the end; 0 for any other
    /// place.
    ///
    /// # Safety
    ///
    /// `data` must be of [`Self::into_raw`] with the same `C`, and not freed during the call.
    pub(super) unsafe fn capacity_from(data: *mut u8, at: *mut u8) -> usize {
        // SAFETY: `into_raw` gave out what is behind the prefix.
        let len = unsafe { (*data.cast::<Prefix<C>>().sub(1)).len } as usize;
        let before = at.addr().checked_sub(data.addr());
        before.map_or(0, |before| len.saturating_sub(before))
    }

    /// The state in front of the bytes.
    ///
    /// # Safety
    ///
    /// `data` must be of [`Self::into_raw`] with the same `C`, and not freed for `'a`.
    pub(super) unsafe fn call_of<'a>(data: *mut u8) -> ArcBorrow<'a, C> {
        // SAFETY: `into_raw` gave out what is behind the prefix, which holds a reference and is not
        // freed for `'a`.
        unsafe { ArcBorrow::from_raw((*data.cast::<Prefix<C>>().sub(1)).call) }
    }

    /// Claims the right to answer the RPC, unless somebody else has it, or the RPC has its error,
    /// or its Call was not sent.
    ///
    /// # Safety
    ///
    /// As for [`Self::call_of`], and the lock of the transport's request queues must be held.
    pub(super) unsafe fn claim(data: *mut u8) -> Result<(), NotFound> {
        // SAFETY: The contract of this function has that of the other one in it.
        let progress = unsafe { Self::progress_of(data) };
        if progress.is_unsent() {
            return Err(NotFound::Unsent);
        }
        // SAFETY: `into_raw` gave out what is behind the prefix. The lock is held, by which the
        // mark goes.
        let claimed = unsafe { &mut (*data.cast::<Prefix<C>>().sub(1)).claimed };
        if progress.has_failed() || core::mem::replace(claimed, true) {
            return Err(NotFound::Answered);
        }
        Ok(())
    }

    /// The Call was sent, and is to be sent again: nobody claims the right to answer it before that
    /// is done. False if somebody has it.
    ///
    /// # Safety
    ///
    /// As for [`Self::claim`].
    #[cold]
    pub(super) unsafe fn withdraw(data: *mut u8) -> bool {
        // SAFETY: `into_raw` gave out what is behind the prefix. The lock is held, by which the
        // mark goes.
        unsafe {
            let claimed = (*data.cast::<Prefix<C>>().sub(1)).claimed;
            if !claimed {
                Self::progress_of(data).unsent();
            }
            !claimed
        }
    }

    /// Undoes [`Self::claim`].
    ///
    /// # Safety
    ///
    /// As for [`Self::claim`], and it must be the caller's claim.
    pub(super) unsafe fn unclaim(data: *mut u8) {
        // SAFETY: `into_raw` gave out what is behind the prefix. The lock is held, by which the
        // mark goes.
        unsafe { (*data.cast::<Prefix<C>>().sub(1)).claimed = false };
    }

    /// How far the RPC is.
    ///
    /// # Safety
    ///
    /// As for [`Self::call_of`].
    #[inline]
    pub(super) unsafe fn progress_of<'a>(data: *mut u8) -> &'a Progress {
        // SAFETY: `into_raw` gave out what is behind the prefix.
        let progress = unsafe { &raw const (*data.cast::<Prefix<C>>().sub(1)).progress };
        // SAFETY: It is not freed for `'a`, and nobody has an exclusive reference to it.
        unsafe { &*progress }
    }

    /// Where the regions are counted that cover memory of the RPC: these bytes, and what else its
    /// messages are in.
    ///
    /// # Safety
    ///
    /// As for [`Self::call_of`].
    #[inline]
    pub(super) unsafe fn covers_of(data: *mut u8) -> NonNull<Covers> {
        // SAFETY: `into_raw` gave out what is behind the prefix.
        unsafe { NonNull::new_unchecked(&raw mut (*data.cast::<Prefix<C>>().sub(1)).covers) }
    }
}

impl<C> Drop for RpcBuffer<C> {
    fn drop(&mut self) {
        // SAFETY: By the type invariant both are ours.
        unsafe {
            drop(Arc::from_raw(self.prefix.as_ref().call));
            bindings::kfree(self.prefix.as_ptr().cast());
        }
    }
}

#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
mod tests;
