// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Messages that the RPC layer has encoded: they are read, and nothing is written there.

#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
mod tests;

use crate::kapi::{
    bindings,
    page::{
        Covers,
        ExtentIter,
        PageList, //
    },
    sunrpc::xdr_buf::XdrBuf, //
};
use core::{
    ops::Deref,
    ptr::NonNull, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// An encoded message, to be read.
#[derive(Clone, Copy)]
pub(crate) struct Encoded<'a>(XdrBuf<'a>);

impl<'a> Encoded<'a> {
    pub(super) fn new(buf: XdrBuf<'a>) -> Self {
        Self(buf)
    }

    /// Bytes of the message.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Bytes of the head.
    pub(crate) fn head_len(&self) -> usize {
        self.0.head().iov_len
    }

    /// Bytes of the pages.
    pub(crate) fn page_len(&self) -> usize {
        self.0.page_len()
    }

    /// Bytes of the tail.
    pub(crate) fn tail_len(&self) -> usize {
        self.0.tail().iov_len
    }

    /// The pages are the source of a write: an argument that may be placed directly.
    pub(crate) fn is_write_source(&self) -> bool {
        self.0.flags() & bindings::XDRBUF_WRITE != 0
    }

    /// Copies `to.len()` bytes of the message, from `offset`.
    #[inline]
    pub(crate) fn copy_to(&self, offset: usize, to: &mut [u8]) -> Result {
        self.0.copy_to(offset, to)
    }
}

/// An encoded Call, which regions may cover for a peer to read.
///
/// # Invariants
///
/// The message is what the request `rqst` sends, which is valid for `'a`. Its memory stays as long
/// as `covers` counts any, and so does that; but what the request has had made for an encrypted
/// message may go before.
pub(crate) struct EncodedCall<'a> {
    message: Encoded<'a>,
    rqst: *mut bindings::rpc_rqst,
    covers: NonNull<Covers>,
}

impl<'a> Deref for EncodedCall<'a> {
    type Target = Encoded<'a>;

    fn deref(&self) -> &Encoded<'a> {
        &self.message
    }
}

impl<'a> EncodedCall<'a> {
    /// # Safety
    ///
    /// All must be as the type invariant says.
    #[inline]
    pub(super) unsafe fn new(
        message: Encoded<'a>,
        rqst: *mut bindings::rpc_rqst,
        covers: NonNull<Covers>,
    ) -> Self {
        // INVARIANT: The contract of this function is the type invariant.
        Self {
            message,
            rqst,
            covers,
        }
    }

    /// Keeps the pages that the request has had made for an encrypted message. It lets go of them
    /// when it is encoded anew, which may be while a region covers them: nothing of the request's
    /// waits for that. `ENOBUFS` when memory is short.
    fn kept(&self) -> Result<Option<Arc<PageList>>> {
        let rqst = self.rqst;
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
        unsafe { PageList::share(core::slice::from_raw_parts(pages, n)) }.map(Some)
    }

    #[inline(always)]
    fn pieces_of(&self, all: bool) -> Result<ExtentIter<'a>> {
        let keepers = (self.kept()?, self.covers);
        // SAFETY: By the type invariant: where the message is encrypted `kept` has its pages.
        Ok(unsafe { self.message.0.pieces(all, keepers) })
    }

    /// The whole message as pieces for a region. Does not sleep; `ENOBUFS` when memory is short.
    pub(crate) fn pieces(&self) -> Result<ExtentIter<'a>> {
        self.pieces_of(true)
    }

    /// The pages alone as pieces for a region. Does not sleep; `ENOBUFS` when memory is short.
    #[inline]
    pub(crate) fn page_pieces(&self) -> Result<ExtentIter<'a>> {
        self.pieces_of(false)
    }
}
