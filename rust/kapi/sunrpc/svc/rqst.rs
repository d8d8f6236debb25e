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

/// Says where the argument of a request is.
pub(crate) enum Argument {
    /// In the bytes received, from `offset` on.
    Inline { offset: usize },
    /// There, too, but for the memory at `position` that was given.
    Reduced { offset: usize, position: usize },
    /// In the memory that was given, alone.
    Long,
}

impl Argument {
    /// Describes what was received from `offset` on, but for the `given` bytes at `position`.
    ///
    /// Behind none of these is nothing: `svc_defer()` of 7.3-rc7 and before, which puts a request
    /// off, takes a tail without pages for a part of the head, and copies what is in front of that.
    pub(crate) fn reduced(offset: usize, position: usize, given: usize) -> Self {
        match given {
            0 => Self::Inline { offset },
            _ => Self::Reduced { offset, position },
        }
    }
}

/// The transport's state of an RPC in the reverse direction: none but its progress.
pub(super) struct NoState;

/// A request whose argument a service thread is at work on.
///
/// # Invariants
///
/// `raw` is a valid request of the running thread, with `rq_maxpages` pages for the argument, as
/// long as this lives. `reverse` is that of its connection. The first pages are there that hold
/// `given` bytes, if that says how many.
pub(crate) struct SvcRqst<'a> {
    raw: *mut bindings::svc_rqst,
    reverse: &'a ReverseXprt,
    given: Option<usize>,
}

impl<'a> SvcRqst<'a> {
    /// Borrows a request.
    ///
    /// # Safety
    ///
    /// `raw` must be as the type invariant says, for the life of the result.
    pub(super) unsafe fn from_raw(raw: *mut bindings::svc_rqst, reverse: &'a ReverseXprt) -> Self {
        // INVARIANT: The contract of this function is the type invariant. Nothing is given yet.
        Self {
            raw,
            reverse,
            given: None,
        }
    }

    /// Returns the pages for the argument.
    fn pages(&mut self) -> &mut [*mut bindings::page] {
        let rqst = self.raw;
        // SAFETY: There are as many by the type invariant, and they are the running thread's.
        unsafe { core::slice::from_raw_parts_mut((*rqst).rq_pages, (*rqst).rq_maxpages) }
    }

    /// Takes `len` bytes of the thread's memory for an argument that is yet to come: the thread
    /// cannot execute a request before it has got new memory. `EMSGSIZE` if it has not so much.
    /// May sleep.
    pub(crate) fn take_memory(&mut self, len: usize) -> Result<TransferMemory> {
        // INVARIANT: Pages are taken.
        self.given = None;
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

    /// Ends the RPC of a Call in the reverse direction that was sent, if it still waits, with the
    /// Reply or an error. Of a Reply that is longer than there is room what fits is passed on: the
    /// client does not answer again.
    pub(crate) fn end_reverse<'m>(
        &mut self,
        xid: u32,
        reply: Result<impl IntoIterator<Item = &'m [u8]>>,
    ) {
        self.reverse.with(|xprt| {
            // SAFETY: The transport is one of `ReverseOps`, whose state of an RPC is `NoState`.
            if let Ok(rqst) = unsafe { PinnedRqst::<NoState>::find(xprt, xid) } {
                let result = reply.and_then(|reply| rqst.receive_buf().receive(reply));
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
        let (offset, position, paged) = match (argument, self.given) {
            (Argument::Inline { offset }, _) => (offset, usize::MAX, 0),
            (Argument::Reduced { offset, position }, Some(paged)) => (offset, position, paged),
            (Argument::Long, Some(paged)) => return self.set_long(paged),
            (_, None) => return 0,
        };
        let len = bytes.len();
        let begin = offset.min(len);
        let end = begin.saturating_add(position).min(len);
        let part = |from: usize, to: usize| bindings::kvec {
            iov_base: bytes.cast::<u8>().as_ptr().wrapping_add(from).cast(),
            iov_len: to - from,
        };
        self.describe(part(begin, end), 0, paged, part(end, len))
    }

    fn set_long(&mut self, length: usize) -> usize {
        // Of an argument without bytes no page was given, and the thread's may have been taken.
        let head = match self.pages().first() {
            Some(page) if !page.is_null() => bindings::kvec {
                // SAFETY: A page of the array is valid, and of the direct map.
                iov_base: unsafe { bindings::page_address(*page) },
                iov_len: length.min(PAGE_SIZE),
            },
            _ => bindings::kvec::default(),
        };
        self.describe(head, 1, length - head.iov_len, bindings::kvec::default())
    }

    /// Tells the RPC layer that the argument is a head, `paged` bytes of its pages from `first` on,
    /// and a tail. Returns its length.
    fn describe(
        &mut self,
        head: bindings::kvec,
        first: usize,
        paged: usize,
        tail: bindings::kvec,
    ) -> usize {
        let (len, rqst) = (head.iov_len + paged + tail.iov_len, self.raw);
        // SAFETY: Valid by the type invariant, and the running thread's.
        unsafe {
            let arg = &raw mut (*rqst).rq_arg;
            (*arg).head[0] = head;
            (*arg).pages = (*rqst).rq_pages.wrapping_add(first);
            (*arg).page_base = 0;
            (*arg).page_len = paged as u32;
            (*arg).tail[0] = tail;
            (*arg).len = len as u32;
            (*arg).buflen = len as u32;
        }
        len
    }

    /// Puts the memory of an argument in the place of the thread's. Returns its length. `EINVAL` if
    /// this thread has not as much room as another of the service had.
    pub(crate) fn give(&mut self, memory: TransferMemory) -> Result<usize> {
        let given = match memory.len() {
            0 => 0,
            // SAFETY: The thread has filled the array with pages before it takes a request.
            _ => unsafe { memory.put_into(self.pages()) }?,
        };
        // INVARIANT: They are there now, from the first on.
        self.given = Some(given);
        Ok(given)
    }
}
