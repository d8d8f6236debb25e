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
use core::ptr::NonNull;
use kernel::{
    error::to_result,
    page::PAGE_SIZE,
    prelude::*,
    sync::Arc,
    types::Opaque, //
};

/// A message buffer of the RPC layer, borrowed from its request: an encoded message to read, or
/// room for one.
///
/// # Invariants
///
/// Head, pages and tail are memory of the lengths that the buffer says, and stay so while it is
/// borrowed. Nobody else changes its fields meanwhile.
#[repr(transparent)]
pub(crate) struct XdrBuf(Opaque<bindings::xdr_buf>);

impl XdrBuf {
    /// Borrows a buffer.
    ///
    /// # Safety
    ///
    /// `raw` must be as the type invariant says, for `'a`.
    pub(super) unsafe fn from_raw<'a>(raw: *mut bindings::xdr_buf) -> &'a Self {
        // INVARIANT: The contract of this function is the type invariant.
        // SAFETY: Valid by the contract of this function; the type is transparent, and opaque.
        unsafe { &*raw.cast() }
    }

    pub(super) fn as_raw(&self) -> *mut bindings::xdr_buf {
        self.0.get()
    }

    /// Returns the fields of the buffer as they are now.
    pub(super) fn fields(&self) -> bindings::xdr_buf {
        // SAFETY: Valid by the type invariant, and changed by nobody else.
        unsafe { self.as_raw().read() }
    }

    /// Returns the length of the encoded message; of room it says nothing.
    pub(crate) fn len(&self) -> usize {
        self.fields().len as usize
    }

    /// Returns the length of the room for a message; of one to send it says nothing.
    pub(crate) fn buflen(&self) -> usize {
        self.fields().buflen as usize
    }

    /// Returns the length of the head.
    pub(crate) fn head_len(&self) -> usize {
        self.fields().head[0].iov_len
    }

    /// Returns the length of the pages.
    pub(crate) fn page_len(&self) -> usize {
        self.fields().page_len as usize
    }

    /// Returns the offset of the pages' first byte in its page.
    pub(crate) fn page_offset(&self) -> usize {
        self.fields().page_base as usize % PAGE_SIZE
    }

    /// Returns the length of the tail.
    pub(crate) fn tail_len(&self) -> usize {
        self.fields().tail[0].iov_len
    }

    /// Returns the length of head, pages and tail together.
    pub(super) fn room(&self) -> usize {
        self.head_len() + self.page_len() + self.tail_len()
    }

    /// Returns whether the pages are the target of a read: a result that may be placed directly.
    pub(crate) fn is_read_target(&self) -> bool {
        self.fields().flags & bindings::XDRBUF_READ != 0
    }

    /// Returns whether the pages are the source of a write: an argument that may be placed
    /// directly.
    pub(crate) fn is_write_source(&self) -> bool {
        self.fields().flags & bindings::XDRBUF_WRITE != 0
    }

    /// Copies `to.len()` bytes of the message, from `offset`.
    #[inline]
    pub(crate) fn copy_to(&self, offset: usize, to: &mut [u8]) -> Result {
        if to.is_empty() {
            return Ok(());
        }
        let (from, to, len) = (self.as_raw(), to.as_mut_ptr().cast(), to.len() as u32);
        // SAFETY: The buffer is as the type invariant says; the function checks offset and length
        // against it. The target is as long as that.
        to_result(unsafe { bindings::read_bytes_from_xdr_buf(from, offset as u32, to, len) })
            .map_err(|_| EIO)
    }

    /// Returns the pages as pieces for a region, and, if they are `all`, the head in front of them
    /// and the tail behind.
    ///
    /// # Safety
    ///
    /// As long as `covers` counts any, that and the memory must stay; but the pages, and the tail
    /// in one of them, may go before if `kept` has them.
    #[inline(always)]
    pub(super) unsafe fn pieces(
        &self,
        all: bool,
        kept: Option<Arc<PageList>>,
        covers: NonNull<Covers>,
    ) -> ExtentIter<'_> {
        let buf = self.fields();
        let end = |end: bindings::kvec| match all {
            true => (end.iov_base.cast_const().cast(), end.iov_len),
            false => (core::ptr::null(), 0),
        };
        let pages = buf.pages.cast_const();
        let paged = (pages, buf.page_base as usize, buf.page_len as usize);
        let keepers = (kept, Some(covers));
        // SAFETY: Head, pages and tail are memory of these lengths by the type invariant; sunrpc
        // allocates head and tail in the direct map. The rest the caller promises.
        unsafe { ExtentIter::new(end(buf.head[0]), paged, end(buf.tail[0]), keepers) }
    }
}
