// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! A Call that is to be executed.

use crate::kapi::ib::RecvBuf;
use kernel::prelude::*;
use xdr::{
    Call,
    Offer,
    Segment, //
};

/// The parts of a Call that its Reply needs.
#[derive(Clone, Copy)]
pub(crate) struct ReplyCtx {
    pub(super) xid: u32,
    /// The key of the client's that the Reply invalidates.
    pub(super) key: Option<u32>,
    /// All of the Reply goes inline.
    offers_nothing: bool,
}

/// The keys of a client that Replies invalidate.
#[derive(Clone, Copy)]
pub(super) enum Invalidates {
    /// None: the device does not look at them.
    None,
    /// Those that a Call names, which is said in version 2 alone.
    Named,
    /// Of other Calls as well: the client has said when it connected that it wants that (RFC 8797,
    /// section 4.1).
    Any,
}

impl ReplyCtx {
    /// Creates the context of a decoded Call.
    pub(super) fn new(call: &Call<'_>, keys: Invalidates) -> Self {
        Self {
            xid: call.xid,
            key: match (call.inv_handle, keys) {
                _ if call.has_no_chunks() => None,
                (_, Invalidates::None) | (None, Invalidates::Named) => None,
                (None, Invalidates::Any) => only_key(call),
                (named, _) => named.filter(|handle| *handle != 0),
            },
            offers_nothing: call.offer().is_empty(),
        }
    }

    /// Returns the chunks that the client offers for the Reply to its Call, received as `message`.
    pub(super) fn offer<'a>(&self, message: &'a RecvBuf) -> Result<Offer<'a>> {
        if self.offers_nothing {
            return Ok(Offer::default());
        }
        Offer::find(message.bytes()).ok_or(EINVAL)
    }
}

/// Returns the client's key if all chunks have the same: then the Send can invalidate it. An empty
/// segment (RFC 8166, section 3.4.3) names no memory, and its key does not matter.
pub(super) fn only_key(call: &Call<'_>) -> Option<u32> {
    let mut first = None;
    let mut is_first = |segment: Segment| {
        segment.length == 0 || *first.get_or_insert(segment.handle) == segment.handle
    };
    let only = call.reads.segments().all(|read| is_first(read.segment))
        && call
            .writes
            .chunks()
            .all(|chunk| chunk.segments().all(&mut is_first))
        && call
            .reply_chunk
            .is_none_or(|chunk| chunk.segments().all(&mut is_first));
    first.filter(|_| only)
}

/// The received message of a Call, with its context.
pub(crate) type Request = (RecvBuf, ReplyCtx);
