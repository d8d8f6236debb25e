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
    mem::{
        size_of,
        ManuallyDrop, //
    },
    ptr::{
        null_mut,
        NonNull, //
    },
};
use kernel::{
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
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
///
/// # Invariants
///
/// `call` is of [`Arc::into_raw`], and this owns its reference.
#[repr(C, align(16))]
pub(super) struct Prefix<C> {
    call: *const C,
    len: u32,
    /// Somebody has the Reply of the RPC. Goes by the lock of the transport's request queues.
    claimed: Atomic<bool>,
    /// How far the RPC is.
    pub(super) progress: Progress,
    /// Regions that cover memory of the RPC: these bytes, and what else its messages are in.
    pub(super) covers: Covers,
}

impl<C> Prefix<C> {
    /// Returns the transport's state of the RPC.
    pub(super) fn call(&self) -> ArcBorrow<'_, C> {
        // SAFETY: By the type invariant there is a reference as long as this is borrowed.
        unsafe { ArcBorrow::from_raw(self.call) }
    }

    /// Claims the right to answer the RPC, unless somebody else has it, or the RPC has its error,
    /// or its Call was not sent.
    ///
    /// # Safety
    ///
    /// The lock of the transport's request queues must be held.
    pub(super) unsafe fn claim(&self) -> Result<(), NotFound> {
        if self.progress.is_unsent() {
            return Err(NotFound::Unsent);
        }
        if self.progress.has_failed() || self.claimed.load(Relaxed) {
            return Err(NotFound::Answered);
        }
        self.claimed.store(true, Relaxed);
        Ok(())
    }

    /// Undoes the caller's [`Self::claim`].
    ///
    /// # Safety
    ///
    /// The lock of the transport's request queues must be held, and the caller have the claim, of
    /// which it makes no use any more.
    pub(super) unsafe fn unclaim(&self) {
        self.claimed.store(false, Relaxed);
    }

    /// Withdraws a Call that was sent, and is to be sent again: nobody claims the right to answer
    /// it before that is done. False if somebody has it.
    ///
    /// # Safety
    ///
    /// The lock of the transport's request queues must be held.
    #[cold]
    pub(super) unsafe fn withdraw(&self) -> bool {
        let claimed = self.claimed.load(Relaxed);
        if !claimed {
            self.progress.unsent();
        }
        !claimed
    }

    /// Returns how many bytes of the memory there are from `at` on, which is one of them or the
    /// end; 0 for any other place.
    pub(super) fn capacity_from(&self, at: *const u8) -> usize {
        let data = (&raw const *self).wrapping_add(1);
        let before = at.addr().checked_sub(data.addr());
        before.map_or(0, |before| (self.len as usize).saturating_sub(before))
    }
}

/// Memory for the messages of one RPC, and the transport's state of it.
///
/// # Invariants
///
/// `prefix` is an allocation of `kmalloc`, ours, with a value and `len` bytes behind it.
pub(crate) struct RpcBuffer<C> {
    prefix: NonNull<Prefix<C>>,
    _owns: PhantomData<Arc<C>>,
}

// SAFETY: It owns its memory, and a reference that may be sent to another thread.
unsafe impl<C: Send + Sync> Send for RpcBuffer<C> {}

impl<C> RpcBuffer<C> {
    /// Returns the length of the memory in an allocation of `size` bytes.
    pub(crate) const fn capacity_of(size: usize) -> usize {
        size.saturating_sub(size_of::<Prefix<C>>())
    }

    /// Returns the offset of the Reply behind a Call of that length, if there is one. The adapter
    /// may write there while the processor writes in front of it, so that they share no cache line.
    pub(super) fn reply_offset(call: usize) -> Option<usize> {
        let prefix = size_of::<Prefix<C>>();
        let end = prefix.checked_add(call)?;
        let aligned = end.checked_next_multiple_of(bindings::ARCH_DMA_MINALIGN)?;
        aligned.checked_sub(prefix)
    }

    /// Allocates `len` bytes, with `call` in front. Sleeps as the RPC task may.
    pub(crate) fn new(len: usize, call: Arc<C>) -> Result<Self> {
        let size = len.checked_add(size_of::<Prefix<C>>()).ok_or(ENOMEM)?;
        let len = u32::try_from(len).map_err(|_| ENOMEM)?;
        // SAFETY: Allocating has no further requirement.
        let raw = unsafe { bindings::kmalloc(size, bindings::rpc_task_gfp_mask()) };
        let prefix = NonNull::new(raw.cast::<Prefix<C>>()).ok_or(ENOMEM)?;
        // INVARIANT: The prefix owns the reference.
        let first = Prefix {
            call: Arc::into_raw(call),
            len,
            claimed: Atomic::new(false),
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

    /// Returns the length of the memory.
    pub(crate) fn len(&self) -> usize {
        // SAFETY: Valid by the type invariant.
        unsafe { self.prefix.as_ref() }.len as usize
    }

    /// Makes it `len` bytes, if it has less; what was in it is lost. Sleeps as the RPC task may.
    pub(super) fn grow(&mut self, len: usize) -> Result {
        if len > self.len() {
            // SAFETY: Valid by the type invariant.
            let call = unsafe { self.prefix.as_ref() }.call().into();
            *self = Self::new(len, call)?;
        }
        Ok(())
    }

    /// Lends the memory to a request whose Call was not sent, the Reply from an offset on.
    ///
    /// # Safety
    ///
    /// The request must be valid, have no memory, and nobody else's to change.
    pub(super) unsafe fn lend(self, rqst: *mut bindings::rpc_rqst, reply_offset: usize) {
        let this = ManuallyDrop::new(self);
        // SAFETY: Valid by the type invariant.
        unsafe { this.prefix.as_ref() }.progress.unsent();
        let data = this.prefix.as_ptr().wrapping_add(1).cast::<u8>();
        // SAFETY: The request is the caller's to change.
        unsafe {
            (*rqst).rq_buffer = data.cast();
            (*rqst).rq_rbuffer = data.wrapping_add(reply_offset).cast();
        }
    }

    /// Takes back what was lent to a request.
    ///
    /// # Safety
    ///
    /// The request must have its memory by [`Self::lend`] with the same `C`, and be nobody else's
    /// to change. Nobody may use the memory, nor the prefix, afterwards.
    pub(super) unsafe fn take_back(rqst: *mut bindings::rpc_rqst) -> Self {
        // SAFETY: The request is the caller's to change. What it has is behind a prefix.
        let prefix = unsafe {
            let data = (*rqst).rq_buffer;
            (*rqst).rq_buffer = null_mut();
            (*rqst).rq_rbuffer = null_mut();
            NonNull::new_unchecked(data.cast::<Prefix<C>>().sub(1))
        };
        // INVARIANT: It was of a value that `lend` has forgotten.
        Self {
            prefix,
            _owns: PhantomData,
        }
    }

    /// Returns what is in front of the memory of a request.
    ///
    /// # Safety
    ///
    /// The request must have its memory by [`Self::lend`] with the same `C`, which is not taken
    /// back for `'a`.
    #[inline]
    pub(super) unsafe fn prefix_of<'a>(rqst: *const bindings::rpc_rqst) -> &'a Prefix<C> {
        // SAFETY: What the request has is behind a prefix, to which nobody has an exclusive
        // reference before it is taken back.
        unsafe { &*(*rqst).rq_buffer.cast::<Prefix<C>>().sub(1) }
    }

    /// Makes a task wait for the Reply to its Call, which was sent.
    ///
    /// # Safety
    ///
    /// The task must be the caller, with a request that has its memory by [`Self::lend`] and is in
    /// the receive queue, the lock of which must be held.
    pub(super) unsafe extern "C" fn wait_for_reply(task: *mut bindings::rpc_task) {
        // SAFETY: The contract of this function is that of the other ones.
        unsafe {
            let prefix = Self::prefix_of((*task).tk_rqstp);
            prefix.progress.wait_for_reply(task);
        }
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
