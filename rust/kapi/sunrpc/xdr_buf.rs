// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The RPC layer's message buffers: a head, an array of pages, and a tail.

use crate::kapi::{
    bindings,
    page::{
        Covers,
        ExtentIter,
        PageList, //
    },
};
use core::{
    marker::PhantomData,
    ptr::NonNull, //
};
use kernel::{
    error::to_result,
    prelude::*,
    sync::Arc, //
};

/// A message buffer of the RPC layer, borrowed from its request.
///
/// # Invariants
///
/// `raw` points to a buffer whose head, pages and tail are memory of the lengths that it says, and
/// stay so for `'a`. Nobody else changes the buffer's fields for `'a`.
#[derive(Clone, Copy)]
pub(super) struct XdrBuf<'a> {
    raw: *mut bindings::xdr_buf,
    _request: PhantomData<&'a ()>,
}

impl<'a> XdrBuf<'a> {
    /// # Safety
    ///
    /// `raw` must be as the type invariant says.
    pub(super) unsafe fn from_raw(raw: *mut bindings::xdr_buf) -> Self {
        // INVARIANT: The contract of this function is the type invariant.
        Self {
            raw,
            _request: PhantomData,
        }
    }

    pub(super) fn as_raw(self) -> *mut bindings::xdr_buf {
        self.raw
    }

    /// The head.
    pub(super) fn head(self) -> bindings::kvec {
        // SAFETY: Valid by the type invariant, and changed by nobody else.
        unsafe { (*self.raw).head[0] }
    }

    /// The tail.
    pub(super) fn tail(self) -> bindings::kvec {
        // SAFETY: Valid by the type invariant, and changed by nobody else.
        unsafe { (*self.raw).tail[0] }
    }

    pub(super) fn flags(self) -> u32 {
        // SAFETY: Valid by the type invariant, and changed by nobody else.
        unsafe { (*self.raw).flags }
    }

    /// Where the pages begin: the array, and so many bytes from the beginning of its first page.
    pub(super) fn pages(self) -> (*mut *mut bindings::page, usize) {
        // SAFETY: Valid by the type invariant, and changed by nobody else.
        unsafe { ((*self.raw).pages, (*self.raw).page_base as usize) }
    }

    /// Bytes of the encoded message; meaningful for a message to send.
    pub(super) fn len(self) -> usize {
        // SAFETY: Valid by the type invariant, and changed by nobody else.
        unsafe { (*self.raw).len as usize }
    }

    /// Bytes of room; meaningful for a message to receive.
    pub(super) fn buflen(self) -> usize {
        // SAFETY: Valid by the type invariant, and changed by nobody else.
        unsafe { (*self.raw).buflen as usize }
    }

    /// Bytes of the pages.
    pub(super) fn page_len(self) -> usize {
        // SAFETY: Valid by the type invariant, and changed by nobody else.
        unsafe { (*self.raw).page_len as usize }
    }

    /// Bytes of head, pages and tail.
    pub(super) fn room(self) -> usize {
        self.head().iov_len + self.page_len() + self.tail().iov_len
    }

    /// Copies `to.len()` bytes of the message, from `offset`.
    #[inline]
    pub(super) fn copy_to(self, offset: usize, to: &mut [u8]) -> Result {
        if to.is_empty() {
            return Ok(());
        }
        // SAFETY: The buffer is as the type invariant says; the function checks offset and
        // length against it.
        to_result(unsafe {
            bindings::read_bytes_from_xdr_buf(
                self.raw,
                offset as u32,
                to.as_mut_ptr().cast(),
                to.len() as u32,
            )
        })
        .map_err(|_| EIO)
    }

    /// The pages as pieces for a region, and, if they are `all`, the head in front of them and the
    /// tail behind.
    ///
    /// # Safety
    ///
    /// As long as `covers` counts any, that and the memory must stay; but the pages, and the tail
    /// in one of them, may go before if `kept` has them.
    #[inline(always)]
    pub(super) unsafe fn pieces(
        self,
        all: bool,
        (kept, covers): (Option<Arc<PageList>>, NonNull<Covers>),
    ) -> ExtentIter<'a> {
        let (pages, base) = self.pages();
        let end = |end: bindings::kvec| match all {
            true => (end.iov_base.cast_const().cast(), end.iov_len),
            false => (core::ptr::null(), 0),
        };
        let paged = (pages.cast_const(), base, self.page_len());
        let keepers = (kept, Some(covers));
        // SAFETY: Head, pages and tail are memory of these lengths for `'a` by the type invariant;
        // sunrpc allocates head and tail in the direct map. The rest the caller promises.
        unsafe { ExtentIter::new(end(self.head()), paged, end(self.tail()), keepers) }
    }
}
