// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The RPC layer's message buffers: a head, an array of pages, and a tail.

#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
mod tests;

use crate::kapi::{
    bindings,
    page::{
        Covers,
        ExtentIter,
        Kept, //
    },
};
use core::{
    marker::PhantomData,
    ptr::NonNull, //
};
use kernel::{
    error::to_result,
    page::PAGE_SIZE,
    prelude::*,
    sync::Arc, //
};

/// A message of the RPC layer, borrowed from its request.
///
/// # Invariants
///
/// `raw` points to a buffer whose head, pages and tail are memory of the lengths that it says, and
/// stay so for `'a`; and as long as `covers` counts any, if there is that. Nobody else changes the
/// buffer's fields for `'a`. A request in `sender` is valid for `'a`, and the buffer is what it
/// sends.
pub(crate) struct XdrBuf<'a> {
    raw: *mut bindings::xdr_buf,
    sender: Option<NonNull<bindings::rpc_rqst>>,
    /// Where regions are counted that cover memory of it.
    covers: Option<NonNull<Covers>>,
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
            sender: None,
            covers: None,
            _request: PhantomData,
        }
    }

    /// What a request sends.
    ///
    /// # Safety
    ///
    /// `rqst` must be valid for `'a`, and its `rq_snd_buf` as the type invariant says.
    pub(super) unsafe fn to_send(rqst: NonNull<bindings::rpc_rqst>) -> Self {
        // SAFETY: Valid by the contract of this function.
        let raw = unsafe { &raw mut (*rqst.as_ptr()).rq_snd_buf };
        // INVARIANT: As the contract of this function says.
        Self {
            raw,
            sender: Some(rqst),
            covers: None,
            _request: PhantomData,
        }
    }

    /// The same, for regions to cover. What its request has had made for an encrypted message may
    /// go before.
    ///
    /// # Safety
    ///
    /// All other memory of it must stay as long as `covers` counts any, and so must that.
    #[inline]
    pub(super) unsafe fn covered(self, covers: NonNull<Covers>) -> Self {
        // INVARIANT: As the contract of this function says.
        Self {
            covers: Some(covers),
            ..self
        }
    }

    /// Keeps the pages that the request has had made for an encrypted message. It lets go of them
    /// when it is encoded anew, which may be while a region covers them: nothing of the request's
    /// waits for that. `ENOBUFS` when memory is short.
    fn kept(&self) -> Result<Option<Arc<Kept>>> {
        let Some(sender) = self.sender else {
            return Ok(None);
        };
        let rqst = sender.as_ptr();
        // SAFETY: Valid by the type invariant. Who encodes the message writes these, and is done.
        let (encrypted, pages, n) = unsafe {
            (
                (*rqst).rq_release_snd_buf.is_some(),
                (*rqst).rq_enc_pages,
                (*rqst).rq_enc_pages_num,
            )
        };
        if !encrypted {
            return Ok(None);
        }
        let n = usize::try_from(n).map_err(|_| EIO)?;
        // SAFETY: A request that has pages to let go of has an array of so many, with a reference
        // to each, until it is encoded anew or ends, which it is not while it is being sent.
        unsafe { Kept::pages(core::slice::from_raw_parts(pages, n)) }.map(Some)
    }

    /// The head.
    fn head(&self) -> bindings::kvec {
        // SAFETY: Valid by the type invariant, and changed by nobody else.
        unsafe { (*self.raw).head[0] }
    }

    /// The tail.
    fn tail(&self) -> bindings::kvec {
        // SAFETY: Valid by the type invariant, and changed by nobody else.
        unsafe { (*self.raw).tail[0] }
    }

    fn flags(&self) -> u32 {
        // SAFETY: Valid by the type invariant, and changed by nobody else.
        unsafe { (*self.raw).flags }
    }

    /// Where the pages begin: the array, and so many bytes from the beginning of its first page.
    fn pages(&self) -> (*mut *mut bindings::page, usize) {
        // SAFETY: Valid by the type invariant, and changed by nobody else.
        unsafe { ((*self.raw).pages, (*self.raw).page_base as usize) }
    }

    /// Bytes of the encoded message; meaningful for a message to send.
    pub(crate) fn len(&self) -> usize {
        // SAFETY: Valid by the type invariant, and changed by nobody else.
        unsafe { (*self.raw).len as usize }
    }

    /// Bytes of room; meaningful for a message to receive.
    pub(crate) fn buflen(&self) -> usize {
        // SAFETY: Valid by the type invariant, and changed by nobody else.
        unsafe { (*self.raw).buflen as usize }
    }

    /// Bytes of the head.
    pub(crate) fn head_len(&self) -> usize {
        self.head().iov_len
    }

    /// Bytes of the pages.
    pub(crate) fn page_len(&self) -> usize {
        // SAFETY: Valid by the type invariant, and changed by nobody else.
        unsafe { (*self.raw).page_len as usize }
    }

    /// Bytes of the tail.
    pub(crate) fn tail_len(&self) -> usize {
        self.tail().iov_len
    }

    /// The pages are the target of a read: a result that may be placed directly.
    pub(crate) fn is_read_target(&self) -> bool {
        self.flags() & bindings::XDRBUF_READ != 0
    }

    /// The pages are the source of a write: an argument that may be placed directly.
    pub(crate) fn is_write_source(&self) -> bool {
        self.flags() & bindings::XDRBUF_WRITE != 0
    }

    /// The room is a guess: who made it looks for `EOVERFLOW`, and may ask again with more room.
    /// Only a kernel with `Documentation/patches` in it has such consumers.
    pub(crate) fn buflen_is_guess(&self) -> bool {
        // SAFETY: Valid by the type invariant; it is only read.
        unsafe { bindings::xdr_buf_room_is_guess(self.raw) }
    }

    /// Copies `to.len()` bytes of the message, from `offset`.
    #[inline]
    pub(crate) fn copy_to(&self, offset: usize, to: &mut [u8]) -> Result {
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

    /// Copies in as much of a received message as there is room for, and says how many bytes that
    /// were.
    ///
    /// As over TCP, whoever decodes a message that was cut off sees what is missing. It is cut off
    /// at a multiple of four, since the RPC layer refuses any other length. `EIO` when there is no
    /// room at all.
    #[inline]
    pub(crate) fn receive(&mut self, message: &[u8]) -> Result<usize> {
        let room = self.head_len() + self.page_len() + self.tail_len();
        let len = if message.len() <= room {
            message.len()
        } else {
            room & !3
        };
        // To the RPC layer, no bytes would mean that no Reply came.
        let part = message.get(..len).filter(|part| !part.is_empty());
        let part = part.ok_or(EIO)?;
        // SAFETY: The buffer is as the type invariant says; the function checks the length against
        // it, and only reads the source.
        to_result(unsafe {
            bindings::write_bytes_to_xdr_buf(
                self.raw,
                0,
                part.as_ptr().cast_mut().cast(),
                part.len() as u32,
            )
        })
        .map_err(|_| EIO)?;
        Ok(part.len())
    }

    /// Makes a message of `len` bytes one of whole words, since the RPC layer refuses any other.
    /// Returns its length.
    ///
    /// A sender that forgets the padding of the last item (RFC 4506, section 3) means zeros.
    /// Without room for them the message is cut off, as [`Self::receive`] does.
    pub(super) fn complete_word(&mut self, len: usize) -> usize {
        let missing = len.wrapping_neg() & 3;
        let room = self.head_len() + self.page_len() + self.tail_len();
        if missing > room.saturating_sub(len) {
            return len & !3;
        }
        let zeros = [0u8; 3];
        // SAFETY: The buffer is as the type invariant says; the function checks place and length
        // against it, and reads fewer bytes of the source than it has.
        let written = unsafe {
            bindings::write_bytes_to_xdr_buf(
                self.raw,
                len as u32,
                zeros.as_ptr().cast_mut().cast(),
                missing as u32,
            )
        };
        if written == 0 {
            len + missing
        } else {
            len & !3
        }
    }

    /// Makes sure that there is a page behind every byte of the pages. Does not sleep.
    ///
    /// Some callers leave it to the transport to allocate them, which TCP does as data arrive;
    /// here the peer writes them. `ENOBUFS` when memory is short.
    pub(crate) fn fill_sparse_pages(&mut self) -> Result {
        if self.flags() & bindings::XDRBUF_SPARSE_PAGES == 0 || self.page_len() == 0 {
            return Ok(());
        }
        let (pages, base) = self.pages();
        let first = base / PAGE_SIZE;
        let end = (base + self.page_len()).div_ceil(PAGE_SIZE);
        for i in first..end {
            // SAFETY: The array reaches to the end of the pages by the type invariant. An entry
            // without a page is for the transport to fill, by the meaning of the flag.
            unsafe {
                let slot = pages.add(i);
                if (*slot).is_null() {
                    *slot = bindings::alloc_page(bindings::GFP_NOWAIT | bindings::__GFP_ZERO);
                }
                if (*slot).is_null() {
                    return Err(ENOBUFS);
                }
            }
        }
        Ok(())
    }

    /// The whole message as pieces for a region. Does not sleep; `ENOBUFS` when memory is short.
    pub(crate) fn pieces(&self) -> Result<ExtentIter<'a>> {
        let (head, tail) = (self.head(), self.tail());
        self.pieces_with(
            (head.iov_base.cast(), head.iov_len),
            (tail.iov_base.cast(), tail.iov_len),
        )
    }

    /// The pages alone as pieces for a region. Does not sleep; `ENOBUFS` when memory is short.
    #[inline]
    pub(crate) fn page_pieces(&self) -> Result<ExtentIter<'a>> {
        self.pieces_with((core::ptr::null(), 0), (core::ptr::null(), 0))
    }

    /// The pages, between a head and a tail that are empty or those of the buffer.
    #[inline(always)]
    fn pieces_with(
        &self,
        head: (*const u8, usize),
        tail: (*const u8, usize),
    ) -> Result<ExtentIter<'a>> {
        let kept = self.kept()?;
        let (pages, base) = self.pages();
        let keepers = (kept, self.covers);
        // SAFETY: Head, pages and tail are memory of these lengths for `'a` by the type invariant;
        // sunrpc allocates head and tail in the direct map. It lets go of pages while `covers`
        // counts any only where `kept` has them.
        Ok(unsafe { ExtentIter::new(head, (pages, base, self.page_len()), tail, keepers) })
    }

    /// Shortens the head to `len` bytes: what follows in the pages was placed directly.
    pub(super) fn trim_head(&mut self, len: usize) {
        let old = self.head_len();
        if len < old {
            let room = self.buflen().saturating_sub(old - len);
            // SAFETY: Valid, and nobody else changes it, by the type invariant.
            unsafe {
                (*self.raw).head[0].iov_len = len;
                (*self.raw).buflen = room as u32;
            }
        }
    }

    /// Makes the head at least `len` bytes long, at the cost of the tail, which moves back. What is
    /// in that is lost.
    ///
    /// `EIO` when there is no room, or the tail is not behind the head, as `xdr_inline_pages()`
    /// puts it.
    ///
    /// # Safety
    ///
    /// From the beginning of the head on there must be `room` bytes that nobody else has.
    pub(super) unsafe fn stretch_head(&mut self, len: usize, room: usize) -> Result {
        let (head, tail) = (self.head(), self.tail());
        let Some(more) = len.checked_sub(head.iov_len) else {
            return Ok(());
        };
        let behind = head.iov_base.wrapping_byte_add(head.iov_len);
        let left = room.checked_sub(len).ok_or(EIO)?;
        if tail.iov_base != behind {
            return Err(EIO);
        }
        let tail_len = tail.iov_len.min(left);
        let all = len + self.page_len() + tail_len;
        // SAFETY: Valid, and nobody else changes it, by the type invariant. The caller promises
        // that the bytes that head and tail have now are nobody else's.
        unsafe {
            (*self.raw).head[0].iov_len = len;
            (*self.raw).tail[0].iov_base = behind.wrapping_byte_add(more);
            (*self.raw).tail[0].iov_len = tail_len;
            (*self.raw).buflen = all as u32;
        }
        Ok(())
    }
}
