// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Requests of a service thread.

use super::super::super::{
    bindings,
    ib::{
        Fetched,
        Handler,
        KeptReceive, //
    },
    page::{
        Ends,
        Gathered,
        PageList, //
    },
};
use super::{
    super::XdrBuf,
    reverse, //
};
use core::{
    marker::PhantomData,
    ptr::NonNull, //
};
use kernel::{
    page::PAGE_SIZE,
    prelude::*, //
};

/// The bytes of a received message.
///
/// # Safety
///
/// The bytes must stay where they are, and as they are, as long as the value lives, even if it is
/// moved.
pub(crate) unsafe trait MessageBytes {
    /// The bytes.
    fn bytes(&self) -> &[u8];
}

// SAFETY: The bytes are in a receive buffer, which does not move and is nobody else's.
unsafe impl<H: Handler> MessageBytes for KeptReceive<H> {
    fn bytes(&self) -> &[u8] {
        KeptReceive::bytes(self)
    }
}

// SAFETY: As those of the message, which nobody replaces: whom a message is handed to gets no
// exclusive reference to it while its bytes are in use.
unsafe impl<M: MessageBytes, T> MessageBytes for (M, T) {
    fn bytes(&self) -> &[u8] {
        self.0.bytes()
    }
}

/// Where the argument of a request is.
pub(crate) enum Argument {
    /// In the bytes received, from `offset` on.
    Inline { offset: usize },
    /// There, too, but for the memory at `position`.
    Reduced {
        offset: usize,
        position: usize,
        memory: Fetched,
    },
    /// In memory alone.
    Long { memory: Fetched },
}

/// A request that a service thread is at work on.
///
/// # Invariants
///
/// `raw` is a valid request of the running thread, with `rq_maxpages` pages for the argument.
pub(crate) struct SvcRqst<'a> {
    raw: NonNull<bindings::svc_rqst>,
    _thread: PhantomData<&'a ()>,
}

impl SvcRqst<'_> {
    /// # Safety
    ///
    /// `raw` must be as the type invariant says, for the life of the result.
    pub(super) unsafe fn from_raw(raw: NonNull<bindings::svc_rqst>) -> Self {
        // INVARIANT: By contract.
        Self {
            raw,
            _thread: PhantomData,
        }
    }

    fn raw(&mut self) -> &mut bindings::svc_rqst {
        // SAFETY: Valid, and the running thread's, by the type invariant.
        unsafe { self.raw.as_mut() }
    }

    /// The pages for the argument.
    fn pages(&mut self) -> &mut [*mut bindings::page] {
        let rqst = self.raw();
        // SAFETY: There are as many by the type invariant.
        unsafe { core::slice::from_raw_parts_mut(rqst.rq_pages, rqst.rq_maxpages) }
    }

    /// How many service threads there are.
    pub(crate) fn threads(&mut self) -> u32 {
        // SAFETY: The service stays while one of its threads runs; a single word.
        unsafe { (&raw const (*self.raw().rq_server).sv_nrthreads).read_volatile() }
    }

    /// Takes `len` bytes of the thread's memory for an argument that is yet to come: the thread
    /// cannot execute a request before it has got new memory. `EMSGSIZE` if it has not so much.
    /// May sleep.
    #[inline(always)]
    pub(crate) fn take_memory(&mut self, len: usize) -> Result<Gathered> {
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
        let rqst = self.raw();
        // After a failure some are empty, too.
        rqst.rq_pages_nfree = rqst.rq_pages_nfree.max(n);
        Gathered::new(list?, len)
    }

    /// The result, to be read. It has no bytes any more once it was taken, though its length stays.
    pub(crate) fn result(&mut self) -> XdrBuf<'_> {
        // SAFETY: The result is the running thread's, as long as the request is borrowed here. Its
        // head, pages and tail are in the thread's pages.
        unsafe { XdrBuf::from_raw(&raw mut self.raw().rq_res) }
    }

    /// Takes the result out of the thread's hands. May sleep.
    pub(crate) fn take_result(&mut self) -> Result<Gathered> {
        const ENTRY: usize = core::mem::size_of::<*mut bindings::page>();
        let rqst = self.raw();
        let begin = rqst.rq_respages as usize;
        let res = &rqst.rq_res;
        let ends = Ends {
            head: (res.head[0].iov_base.cast(), res.head[0].iov_len),
            tail: (res.tail[0].iov_base.cast(), res.tail[0].iov_len),
        };
        let (base, len) = (res.page_base as usize, res.page_len as usize);
        // Not all encoders say how many pages they have used: the checksum of krb5i may be in one
        // more.
        let next = (rqst.rq_next_page as usize).saturating_sub(begin) / ENTRY;
        let offset = (res.pages as usize).checked_sub(begin);
        let first = match offset.map(|bytes| bytes / ENTRY) {
            _ if len == 0 => 0,
            Some(first) if first < rqst.rq_maxpages => first,
            // READLINK of NFS 2 has a pointer of its own to the one page.
            _ if base.saturating_add(len) <= PAGE_SIZE => {
                // SAFETY: The RPC layer's result has a page where it has bytes, and this thread has
                // all `rq_maxpages` result pages.
                unsafe {
                    let all = core::slice::from_raw_parts(rqst.rq_respages, rqst.rq_maxpages);
                    let page = *res.pages;
                    all.iter().position(|entry| *entry == page).ok_or(EIO)?
                }
            }
            _ => return Err(EIO),
        };
        let end = match len {
            0 => 0,
            _ => first.saturating_add(base.saturating_add(len).div_ceil(PAGE_SIZE)),
        };
        let used = next.max(end);
        if used > rqst.rq_maxpages {
            return Err(EIO);
        }
        // The RPC layer fills again what is below this.
        rqst.rq_next_page = rqst.rq_respages.wrapping_add(used);
        // SAFETY: The array of result pages has `rq_maxpages` entries, of which the first `used`
        // hold the result; the RPC layer leaves out those that became empty when it lets them go.
        let list =
            unsafe { PageList::take(core::slice::from_raw_parts_mut(rqst.rq_respages, used)) };
        // After a failure some are gone, too.
        rqst.rq_res.head[0].iov_len = 0;
        rqst.rq_res.page_len = 0;
        rqst.rq_res.tail[0].iov_len = 0;
        Gathered::with_ends(list?, ends, first, base, len)
    }

    /// A Call in the reverse direction cannot be served, says the client.
    pub(crate) fn fail_reverse(&mut self, xid: u32) {
        // SAFETY: As in `complete_reverse`.
        unsafe {
            let xprt = (&raw const (*self.raw().rq_xprt).xpt_bc_xprt).read_volatile();
            if !xprt.is_null() {
                reverse::fail(xprt, xid);
            }
        }
    }

    /// A Reply to a Call in the reverse direction came. False if nobody waits for it, or it is
    /// longer than there is room.
    pub(crate) fn complete_reverse(&mut self, xid: u32, credits: u32, reply: &[u8]) -> bool {
        // SAFETY: The transport of the request stays while that is at work, and with it the
        // reverse one, which is set once.
        unsafe {
            let xprt = (&raw const (*self.raw().rq_xprt).xpt_bc_xprt).read_volatile();
            !xprt.is_null() && reverse::complete(xprt, xid, credits, reply)
        }
    }

    /// Describes the argument to the RPC layer, and returns its length.
    ///
    /// # Safety
    ///
    /// `bytes` must stay where they are until [`Self::forget_argument`], or until the RPC layer is
    /// done with the request.
    pub(super) unsafe fn set_argument(&mut self, bytes: &[u8], argument: Argument) -> usize {
        let (message, position, memory) = match argument {
            Argument::Inline { offset } => (bytes.get(offset..), usize::MAX, None),
            Argument::Reduced {
                offset,
                position,
                memory,
            } => (bytes.get(offset..), position, Some(memory)),
            Argument::Long { memory } => return self.set_long(memory),
        };
        let message = message.unwrap_or(&[]);
        let (head, tail) = message.split_at(position.min(message.len()));
        let paged = memory.map_or(0, |memory| self.give(memory));
        let len = message.len() + paged;
        let rqst = self.raw();
        let arg = &mut rqst.rq_arg;
        arg.head[0].iov_base = head.as_ptr().cast_mut().cast();
        arg.head[0].iov_len = head.len();
        arg.pages = rqst.rq_pages;
        arg.page_base = 0;
        arg.page_len = paged as u32;
        arg.tail[0].iov_base = tail.as_ptr().cast_mut().cast();
        arg.tail[0].iov_len = tail.len();
        arg.len = len as u32;
        arg.buflen = len as u32;
        len
    }

    fn set_long(&mut self, memory: Fetched) -> usize {
        let length = self.give(memory);
        let head = length.min(PAGE_SIZE);
        let rqst = self.raw();
        let arg = &mut rqst.rq_arg;
        // SAFETY: The array begins with a page of the direct map.
        arg.head[0].iov_base = unsafe { bindings::page_address(*rqst.rq_pages) };
        arg.head[0].iov_len = head;
        arg.pages = rqst.rq_pages.wrapping_add(1);
        arg.page_base = 0;
        arg.page_len = (length - head) as u32;
        arg.tail[0].iov_base = core::ptr::null_mut();
        arg.tail[0].iov_len = 0;
        arg.len = length as u32;
        arg.buflen = length as u32;
        length
    }

    /// Puts the memory of an argument in the place of the thread's. Returns its length: none if it is
    /// more than this thread has room for, though another of the service had.
    fn give(&mut self, memory: Fetched) -> usize {
        // SAFETY: The thread has filled the array with pages before it takes a request.
        unsafe { memory.put_into(self.pages()) }.unwrap_or(0)
    }

    /// The argument's bytes may go: the RPC layer has done with them.
    pub(super) fn forget_argument(&mut self) {
        let arg = &mut self.raw().rq_arg;
        for end in [&mut arg.head[0], &mut arg.tail[0]] {
            end.iov_base = core::ptr::null_mut();
            end.iov_len = 0;
        }
        arg.page_len = 0;
        arg.len = 0;
    }
}
