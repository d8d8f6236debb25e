// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Room that the RPC layer has made for the Reply to a Call.

#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
pub(super) mod tests;

use crate::kapi::{
    bindings,
    page::{
        Covers,
        ExtentIter, //
    },
    sunrpc::xdr_buf::XdrBuf, //
};
use core::{
    ops::Deref,
    ptr::NonNull, //
};
use kernel::{
    error::to_result,
    page::PAGE_SIZE,
    prelude::*, //
};

/// Room for a Reply, which regions may cover for a peer to write.
///
/// # Invariants
///
/// There is a page behind every byte of the pages. Nobody else writes to the memory for `'a`, or
/// lets it go, nor as long as `covers` counts any, which stays as long.
pub(crate) struct Room<'a> {
    buf: &'a XdrBuf,
    covers: NonNull<Covers>,
}

/// Returns whether there is a page behind every byte of the pages: a consumer that leaves it to the
/// transport to allocate them says so.
pub(super) fn is_filled(buf: &XdrBuf) -> bool {
    buf.fields().flags & bindings::XDRBUF_SPARSE_PAGES == 0
}

/// Makes sure that there is a page behind every byte of the pages of room. Does not sleep.
///
/// Some callers leave it to the transport to allocate them, which TCP does as data arrive; here the
/// peer writes them. `ENOBUFS` when memory is short.
///
/// # Safety
///
/// `room` and `copy` must be those of a request as the RPC layer has made them, and nobody else's
/// to change.
#[inline]
pub(super) unsafe fn fill(room: &XdrBuf, copy: &XdrBuf) -> Result {
    if is_filled(room) {
        return Ok(());
    }
    let (pages, base) = (room.fields().pages, room.fields().page_base as usize);
    let end = match room.page_len() {
        0 => 0,
        len => (base + len).div_ceil(PAGE_SIZE),
    };
    for i in base / PAGE_SIZE..end {
        // SAFETY: The array reaches to the end of the pages by the type invariant. An entry without
        // a page is for the transport to fill, by the meaning of the flag.
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
    for buf in [room, copy] {
        // SAFETY: Valid by the type invariant, and nobody else's to change.
        unsafe { (*buf.as_raw()).flags &= !bindings::XDRBUF_SPARSE_PAGES };
    }
    Ok(())
}

impl Deref for Room<'_> {
    type Target = XdrBuf;

    fn deref(&self) -> &XdrBuf {
        self.buf
    }
}

impl<'a> Room<'a> {
    /// Makes room of a buffer.
    ///
    /// # Safety
    ///
    /// Both must be as the type invariant says.
    pub(super) unsafe fn new(buf: &'a XdrBuf, covers: NonNull<Covers>) -> Self {
        // INVARIANT: The contract of this function is the type invariant.
        Self { buf, covers }
    }

    /// Returns whether the room is a guess: its consumer looks for `EOVERFLOW`, and may ask again
    /// with more room. Only a kernel with `Documentation/patches` in it has such consumers.
    pub(crate) fn buflen_is_guess(&self) -> bool {
        // SAFETY: Valid by the type invariant; it is only read.
        unsafe { bindings::xdr_buf_room_is_guess(self.as_raw()) }
    }

    /// Copies in as much of a received message, which is in these parts, as there is room for, and
    /// returns its length.
    ///
    /// As over TCP, whoever decodes a message that was cut off sees what is missing. It is cut off
    /// at a multiple of four, since the RPC layer refuses any other length. `EIO` when there is no
    /// room at all.
    #[inline]
    pub(crate) fn receive<'m>(
        &mut self,
        parts: impl IntoIterator<Item = &'m [u8]>,
    ) -> Result<usize> {
        let (room, mut len) = (self.room(), 0);
        for part in parts {
            let end = match len + part.len() {
                end if end <= room => end,
                _ => room & !3,
            };
            let fits = part.get(..end.saturating_sub(len)).ok_or(EIO)?;
            self.write(len, fits)?;
            len += fits.len();
            if fits.len() < part.len() {
                break;
            }
        }
        // To the RPC layer, no bytes would mean that no Reply came.
        match len {
            0 => Err(EIO),
            len => Ok(len),
        }
    }

    /// Copies bytes in, at `offset`. `EIO` without room for them.
    #[inline]
    fn write(&mut self, offset: usize, from: &[u8]) -> Result {
        let (buf, from, len) = (self.as_raw(), from.as_ptr().cast_mut(), from.len() as u32);
        // SAFETY: The buffer is as the type invariant says, and its memory nobody else's; the
        // function checks place and length against it, and only reads the source.
        to_result(unsafe { bindings::write_bytes_to_xdr_buf(buf, offset as u32, from.cast(), len) })
            .map_err(|_| EIO)
    }

    /// Makes a message of `len` bytes one of whole words, since the RPC layer refuses any other,
    /// and no longer than the room, but for padding. Returns its length.
    ///
    /// A sender that forgets the padding of the last item (RFC 4506, section 3) means zeros.
    /// Without room for them the message is cut off, as [`Self::receive`] does.
    pub(super) fn complete_word(&mut self, len: usize) -> usize {
        let room = self.room();
        let len = len.min(room.next_multiple_of(4));
        let missing = len.wrapping_neg() & 3;
        if missing == 0 {
            return len;
        }
        let zeros = [0u8; 3];
        let zeros = zeros.get(..missing).unwrap_or(&[]);
        if missing <= room.saturating_sub(len) && self.write(len, zeros).is_ok() {
            len + missing
        } else {
            len & !3
        }
    }

    fn pieces_of(&self, all: bool) -> ExtentIter<'a> {
        // SAFETY: By the type invariant.
        unsafe { self.buf.pieces(all, None, self.covers).for_writes() }
    }

    /// Returns the whole room as pieces for a region.
    pub(crate) fn pieces(&self) -> ExtentIter<'a> {
        self.pieces_of(true)
    }

    /// Returns the pages alone as pieces for a region.
    #[inline]
    pub(crate) fn page_pieces(&self) -> ExtentIter<'a> {
        self.pieces_of(false)
    }
}

/// Shortens the head of room to `len` bytes: what follows in the pages was placed directly.
///
/// # Safety
///
/// Nobody else may change the buffer.
pub(super) unsafe fn trim_head(buf: &XdrBuf, len: usize) {
    let less = buf.head_len().saturating_sub(len);
    // SAFETY: Valid by the type invariant, and nobody else changes it.
    unsafe {
        (*buf.as_raw()).head[0].iov_len -= less;
        (*buf.as_raw()).buflen = buf.buflen().saturating_sub(less) as u32;
    }
}

/// Makes the head of room at least `len` bytes long, at the cost of the tail, which moves back.
/// What is in that is lost.
///
/// `EIO` when there is no room, or the tail is not behind the head, as `xdr_inline_pages()` puts
/// it.
///
/// # Safety
///
/// Nobody else may change the buffer. From the beginning of the head on there must be `room` bytes
/// that nobody else has.
pub(super) unsafe fn stretch_head(buf: &XdrBuf, len: usize, room: usize) -> Result {
    let (head, tail) = (buf.fields().head[0], buf.fields().tail[0]);
    let Some(more) = len.checked_sub(head.iov_len) else {
        return Ok(());
    };
    let behind = head.iov_base.wrapping_byte_add(head.iov_len);
    let left = room.checked_sub(len).ok_or(EIO)?;
    if tail.iov_base != behind {
        return Err(EIO);
    }
    let tail_len = tail.iov_len.min(left);
    // SAFETY: Valid by the type invariant, and nobody else changes it. The caller promises that the
    // bytes that head and tail have now are nobody else's.
    unsafe {
        let raw = buf.as_raw();
        (*raw).head[0].iov_len = len;
        (*raw).tail[0].iov_base = behind.wrapping_byte_add(more);
        (*raw).tail[0].iov_len = tail_len;
        (*raw).buflen = buf.room() as u32;
    }
    Ok(())
}
