// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Requests of a service thread.

use crate::kapi::{
    bindings,
    page::{
        PageList,
        TransferMemory, //
    },
    sunrpc::{
        rqst::PinnedRqst,
        svc::link::ReverseXprt, //
    },
};
use core::ptr::NonNull;
use kernel::{
    page::PAGE_SIZE,
    prelude::*, //
};

/// Where the argument of a request is.
pub(crate) enum Argument {
    /// In the bytes received, from `offset` on.
    Inline { offset: usize },
    /// There, too, but for the memory at `position`.
    Reduced {
        offset: usize,
        position: usize,
        memory: TransferMemory,
    },
    /// In memory alone.
    Long { memory: TransferMemory },
}

impl Argument {
    /// What was received from `offset` on, but for the memory at `position` of that.
    ///
    /// Behind no memory is nothing: `svc_defer()` of 7.3-rc7 and before, which puts a request off,
    /// takes a tail without pages for a part of the head, and copies what is in front of that.
    #[inline(always)]
    pub(crate) fn reduced(offset: usize, position: usize, memory: TransferMemory) -> Self {
        match memory.len() {
            0 => Self::Inline { offset },
            _ => Self::Reduced {
                offset,
                position,
                memory,
            },
        }
    }
}

/// What this module has of an RPC in the reverse direction beside its progress: nothing.
pub(super) struct NoState;

/// No bytes.
const NOTHING: NonNull<[u8]> = NonNull::slice_from_raw_parts(NonNull::dangling(), 0);

/// Bytes in front of a position, and from there on; all are in front of one beyond them.
fn split_at(bytes: NonNull<[u8]>, position: usize) -> (NonNull<[u8]>, NonNull<[u8]>) {
    let position = position.min(bytes.len());
    let rest = bytes.len() - position;
    let behind = bytes.as_ptr().cast::<u8>().wrapping_add(position);
    (
        NonNull::slice_from_raw_parts(bytes.cast(), position),
        NonNull::new(behind).map_or(NOTHING, |behind| {
            NonNull::slice_from_raw_parts(behind, rest)
        }),
    )
}

/// A request whose argument a service thread is at work on.
///
/// # Invariants
///
/// `raw` is a valid request of the running thread, with `rq_maxpages` pages for the argument, as
/// long as this lives. `reverse` is that of its connection.
pub(crate) struct SvcRqst<'a> {
    raw: *mut bindings::svc_rqst,
    reverse: &'a ReverseXprt,
}

impl<'a> SvcRqst<'a> {
    /// # Safety
    ///
    /// `raw` must be as the type invariant says, for the life of the result.
    pub(super) unsafe fn from_raw(raw: *mut bindings::svc_rqst, reverse: &'a ReverseXprt) -> Self {
        // INVARIANT: The contract of this function is the type invariant.
        Self { raw, reverse }
    }

    /// The pages for the argument.
    fn pages(&mut self) -> &mut [*mut bindings::page] {
        let rqst = self.raw;
        // SAFETY: There are as many by the type invariant, and they are the running thread's.
        unsafe { core::slice::from_raw_parts_mut((*rqst).rq_pages, (*rqst).rq_maxpages) }
    }

    /// Takes `len` bytes of the thread's memory for an argument that is yet to come: the thread
    /// cannot execute a request before it has got new memory. `EMSGSIZE` if it has not so much.
    /// May sleep.
    #[inline(always)]
    pub(crate) fn take_memory(&mut self, len: usize) -> Result<TransferMemory> {
        let pages = self.pages();
        let n = len.div_ceil(PAGE_SIZE);
        // The last pages are the RPC layer's.
        if n > pages.len().saturating_sub(2) {
            return Err(EMSGSIZE);
        }
        let taken = pages.get_mut(..n).ok_or(EMSGSIZE)?;
        // SAFETY: The thread has filled the array with pages before it takes a request, and fills
        // empty places again, which it is told of below.
        let list = unsafe { PageList::take(taken) };
        let rqst = self.raw;
        // After a failure some are empty, too.
        // SAFETY: Valid by the type invariant, and the running thread's.
        unsafe { (*rqst).rq_pages_nfree = (*rqst).rq_pages_nfree.max(n) };
        TransferMemory::new(list?, len)
    }

    /// Ends the RPC of a Call in the reverse direction that was sent and cannot be served, as the
    /// client says.
    pub(crate) fn fail_reverse(&mut self, xid: u32) {
        self.end_reverse(xid, |_| Err(EIO));
    }

    /// Passes on the Reply to a Call in the reverse direction that was sent. Of one that is longer
    /// than there is room what fits is passed on: the client does not answer again.
    pub(crate) fn complete_reverse(&mut self, xid: u32, reply: &[u8]) {
        self.end_reverse(xid, |rqst| rqst.receive_buf().receive(reply));
    }

    /// Ends the RPC of a Call in the reverse direction, if it still waits, with its result.
    fn end_reverse(
        &mut self,
        xid: u32,
        result: impl FnOnce(&PinnedRqst<NoState>) -> Result<usize>,
    ) {
        self.reverse.with(|xprt| {
            // SAFETY: The transport is one of `ReverseOps`, whose state of an RPC is `NoState`.
            if let Ok(rqst) = unsafe { PinnedRqst::find(xprt, xid) } {
                let result = result(&rqst);
                // No region covers memory of it.
                let _ = rqst.complete(result);
            }
            xprt.space();
        });
    }

    /// Describes the argument to the RPC layer, and returns its length.
    ///
    /// # Safety
    ///
    /// `bytes` must be memory that is the RPC layer's to change until
    /// [`super::SvcReply::forget_argument`], or until it is done with the request.
    pub(super) unsafe fn set_argument(
        &mut self,
        bytes: NonNull<[u8]>,
        argument: Argument,
    ) -> usize {
        let (offset, position, memory) = match argument {
            Argument::Inline { offset } => (offset, usize::MAX, None),
            Argument::Reduced {
                offset,
                position,
                memory,
            } => (offset, position, Some(memory)),
            Argument::Long { memory } => return self.set_long(memory),
        };
        let (_, message) = split_at(bytes, offset);
        let (head, tail) = split_at(message, position);
        let paged = match memory {
            None => 0,
            // What is behind it would be taken for it.
            Some(memory) => match (memory.len(), self.give(memory)) {
                (len, 0) if len != 0 => return 0,
                (_, given) => given,
            },
        };
        self.describe(head, 0, paged, tail)
    }

    fn set_long(&mut self, memory: TransferMemory) -> usize {
        let length = self.give(memory);
        // Of an argument without bytes no page was given, and the thread's may have been taken.
        let page = self.pages().first().and_then(|page| NonNull::new(*page));
        let head = page.and_then(|page| {
            // SAFETY: A page of the array is valid, and of the direct map.
            NonNull::new(unsafe { bindings::page_address(page.as_ptr()) })
        });
        let head = head.map_or(NOTHING, |address| {
            NonNull::slice_from_raw_parts(address.cast(), length.min(PAGE_SIZE))
        });
        self.describe(head, 1, length - head.len(), NOTHING)
    }

    /// Tells the RPC layer that the argument is a head, `paged` bytes of its pages from `first` on,
    /// and a tail. Returns its length.
    fn describe(
        &mut self,
        head: NonNull<[u8]>,
        first: usize,
        paged: usize,
        tail: NonNull<[u8]>,
    ) -> usize {
        let len = head.len() + paged + tail.len();
        let rqst = self.raw;
        // SAFETY: Valid by the type invariant, and the running thread's.
        let arg = unsafe {
            (*rqst).rq_arg.pages = (*rqst).rq_pages.wrapping_add(first);
            &raw mut (*rqst).rq_arg
        };
        // SAFETY: It is a part of the request.
        unsafe {
            (*arg).head[0].iov_base = head.as_ptr().cast();
            (*arg).head[0].iov_len = head.len();
            (*arg).page_base = 0;
            (*arg).page_len = paged as u32;
            (*arg).tail[0].iov_base = tail.as_ptr().cast();
            (*arg).tail[0].iov_len = tail.len();
            (*arg).len = len as u32;
            (*arg).buflen = len as u32;
        }
        len
    }

    /// Puts the memory of an argument in the place of the thread's. Returns its length: none if it
    /// is more than this thread has room for, though another of the service had.
    fn give(&mut self, memory: TransferMemory) -> usize {
        // SAFETY: The thread has filled the array with pages before it takes a request.
        unsafe { memory.put_into(self.pages()) }.unwrap_or(0)
    }
}
