// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Results of a service thread.

use crate::kapi::{
    bindings,
    page::{
        PageList,
        TransferMemory, //
    },
    sunrpc::xdr_buf::XdrBuf,
};
use core::marker::PhantomData;
use kernel::{
    page::PAGE_SIZE,
    prelude::*, //
};

/// A request whose result a service thread sends.
///
/// # Invariants
///
/// `raw` is a valid request of the running thread, whose result the RPC layer has encoded, as long
/// as this lives: its head, pages and tail are in the first of the thread's `rq_maxpages` result
/// pages.
pub(crate) struct SvcReply<'a> {
    raw: *mut bindings::svc_rqst,
    _thread: PhantomData<&'a ()>,
}

impl SvcReply<'_> {
    /// Borrows a request.
    ///
    /// # Safety
    ///
    /// `raw` must be as the type invariant says, for the life of the result.
    pub(super) unsafe fn from_raw(raw: *mut bindings::svc_rqst) -> Self {
        // INVARIANT: The contract of this function is the type invariant.
        Self {
            raw,
            _thread: PhantomData,
        }
    }

    /// Returns the number of service threads.
    pub(crate) fn threads(&self) -> u32 {
        // SAFETY: The request is valid by the type invariant, and the service stays while one of
        // its threads runs. Others change the word.
        unsafe { (&raw const (*(*self.raw).rq_server).sv_nrthreads).read_volatile() }
    }

    /// Returns whether the request is of that version of a program.
    pub(crate) fn is_of(&self, program: u32, version: u32) -> bool {
        // SAFETY: Valid by the type invariant, and the running thread's.
        unsafe {
            let rqst = self.raw;
            (*rqst).rq_prog == program && (*rqst).rq_vers == version
        }
    }

    /// Lets the argument's bytes go: the RPC layer is done with them.
    pub(super) fn forget_argument(&mut self) {
        // SAFETY: Valid by the type invariant, and the running thread's.
        unsafe {
            let arg = &raw mut (*self.raw).rq_arg;
            (*arg).head[0] = bindings::kvec::default();
            (*arg).tail[0] = bindings::kvec::default();
            (*arg).page_len = 0;
            (*arg).len = 0;
        }
    }

    /// Returns the result, to be read. It has no bytes any more once it was taken, though its
    /// length stays.
    pub(crate) fn result(&mut self) -> &XdrBuf {
        // SAFETY: Head, pages and tail are in the thread's pages by the type invariant, and stay as
        // long as the request is borrowed here: only `take_result` takes them away.
        unsafe { XdrBuf::from_raw(&raw mut (*self.raw).rq_res) }
    }

    /// Takes the result out of the thread's hands. May sleep.
    pub(crate) fn take_result(&mut self) -> Result<TransferMemory> {
        let (rqst, res) = (self.raw, self.result().fields());
        let (base, len) = (res.page_base as usize, res.page_len as usize);
        let (first, used) = self.used()?;
        let ends =
            [res.head, res.tail].map(|[end]| (end.iov_base.cast_const().cast(), end.iov_len));
        let pages = self.pages().get_mut(..used).ok_or(EIO)?;
        // SAFETY: The first `used` result pages hold the result, which `used()` has checked. The
        // RPC layer fills again what is below `rq_next_page`, which is set below, and leaves out
        // those that became empty when it lets them go.
        let list = unsafe { PageList::take(pages) };
        // After a failure some are gone, too.
        // SAFETY: Valid by the type invariant, and the running thread's.
        unsafe {
            (*rqst).rq_next_page = (*rqst).rq_respages.wrapping_add(used);
            (*rqst).rq_res.head[0].iov_len = 0;
            (*rqst).rq_res.page_len = 0;
            (*rqst).rq_res.tail[0].iov_len = 0;
        }
        TransferMemory::with_ends(list?, ends, first, base, len)
    }

    /// Returns the result pages.
    fn pages(&mut self) -> &mut [*mut bindings::page] {
        let rqst = self.raw;
        // SAFETY: There are as many by the type invariant, and they are the running thread's.
        unsafe { core::slice::from_raw_parts_mut((*rqst).rq_respages, (*rqst).rq_maxpages) }
    }

    /// Returns in which of the result pages the pages of the result begin, and how many the result
    /// has taken. `EIO` if it is not in the thread's pages.
    fn used(&mut self) -> Result<(usize, usize)> {
        const ENTRY: usize = core::mem::size_of::<*mut bindings::page>();
        let res = self.result().fields();
        let (base, len) = (res.page_base as usize, res.page_len as usize);
        let (begin, most) = (self.pages().as_ptr() as usize, self.pages().len());
        // SAFETY: Valid by the type invariant, and the running thread's.
        let next = unsafe { (*self.raw).rq_next_page };
        // Not all encoders say how many pages they have used: the checksum of krb5i may be in one
        // more.
        let next = (next as usize).saturating_sub(begin) / ENTRY;
        let offset = (res.pages as usize).checked_sub(begin);
        let first = match offset.map(|bytes| bytes / ENTRY) {
            _ if len == 0 => 0,
            Some(first) if first < most => first,
            // READLINK of NFS 2 has a pointer of its own to the one page.
            _ if base.saturating_add(len) <= PAGE_SIZE => {
                // SAFETY: The result has a page where it has bytes, by the type invariant.
                let page = unsafe { *res.pages };
                let mut all = self.pages().iter();
                all.position(|entry| *entry == page).ok_or(EIO)?
            }
            _ => return Err(EIO),
        };
        let end = match len {
            0 => 0,
            _ => first.saturating_add(base.saturating_add(len).div_ceil(PAGE_SIZE)),
        };
        let used = next.max(end);
        if used > most {
            return Err(EIO);
        }
        Ok((first, used))
    }
}
