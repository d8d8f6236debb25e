// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Calls that the RPC layer has encoded, for regions to cover.

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

/// An encoded Call, which regions may cover for a peer to read.
///
/// # Invariants
///
/// The message is what the request `rqst` sends, which is valid for `'a`. Its memory stays as long
/// as `covers` counts any, and so does that; but what the request has had made for an encrypted
/// message may go before.
pub(crate) struct EncodedCall<'a> {
    message: &'a XdrBuf,
    rqst: *mut bindings::rpc_rqst,
    covers: NonNull<Covers>,
}

impl Deref for EncodedCall<'_> {
    type Target = XdrBuf;

    fn deref(&self) -> &XdrBuf {
        self.message
    }
}

impl<'a> EncodedCall<'a> {
    /// Makes a Call of what a request sends.
    ///
    /// # Safety
    ///
    /// All must be as the type invariant says.
    #[inline]
    pub(super) unsafe fn new(
        message: &'a XdrBuf,
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
        let (pages, n) = unsafe {
            if (*rqst).rq_release_snd_buf.is_none() {
                return Ok(None);
            }
            ((*rqst).rq_enc_pages, (*rqst).rq_enc_pages_num)
        };
        let n = usize::try_from(n).map_err(|_| EIO)?;
        // SAFETY: A request that has pages to let go of has an array of so many, with a reference
        // to each, until it is encoded anew or ends, which it is not while it is being sent.
        unsafe { PageList::share(core::slice::from_raw_parts(pages, n)) }.map(Some)
    }

    #[inline(always)]
    fn pieces_of(&self, all: bool) -> Result<ExtentIter<'a>> {
        let kept = self.kept()?;
        // SAFETY: By the type invariant: where the message is encrypted `kept` has its pages.
        Ok(unsafe { self.message.pieces(all, kept, self.covers) })
    }

    /// Returns the whole message as pieces for a region. Does not sleep; `ENOBUFS` when memory is
    /// short.
    pub(crate) fn pieces(&self) -> Result<ExtentIter<'a>> {
        self.pieces_of(true)
    }

    /// Returns the pages alone as pieces for a region. Does not sleep; `ENOBUFS` when memory is
    /// short.
    #[inline]
    pub(crate) fn page_pieces(&self) -> Result<ExtentIter<'a>> {
        self.pieces_of(false)
    }
}
