// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! A Reply between the message that it came in and its place.

use crate::{
    client::{
        call::{
            Call,
            Placed, //
        },
        chunks,
        connection::Requester,
        loss::LossReason,
        offer::Offer,
        settle::bad_reply, //
    },
    kapi::{
        sunrpc::PinnedRqst,
        trace::xprtrdma_fixup, //
    },
    transport::header::inline_len,
};
use kernel::prelude::*;
use xdr::{
    Inline,
    Limits,
    Reply,
    ReplyPayload, //
};

/// Bounds on what a server may send. What has a Read list is a reverse Call, which is refused
/// whatever is in it, or a Reply that it provides: few will do. Of the others there may be as many
/// as a Receive can hold, so that the Payload stream behind them tells what it is; what was offered
/// bounds those of a Reply further.
pub(super) const LIMITS: Limits = Limits {
    read_segments: 64,
    read_chunks: 16,
    write_chunks: usize::MAX,
    write_segments: usize::MAX,
    chunk_segments: usize::MAX,
    ..Limits::floor(u32::MAX)
};

/// A Reply that was found well formed, and is not in its place yet.
pub(super) enum Answer<'a> {
    /// There is nothing to place: the length of the Reply.
    Ready(usize),
    /// The server cannot answer: the error for the RPC, and whether it may be for want of room.
    Refused { error: Error, room: bool },
    /// The inline part of the Reply; the server has written that many bytes into the Write chunk.
    Inline { part: Inline<'a>, written: usize },
    /// It has to be pulled; the same.
    Provided { written: usize },
}

impl<'a> Answer<'a> {
    /// Compares a Reply with what was offered, and with the room for it.
    #[inline(always)]
    pub(super) fn check(
        requester: &Requester,
        offer: &Offer,
        reply: &Reply<'a>,
    ) -> Result<Self, &'static str> {
        let written = if offer.write.is_empty() {
            reply.nothing_written().map(|()| 0)
        } else {
            reply.written(&offer.write)
        };
        let long = if offer.reply.is_empty() {
            reply.no_reply_written().map(|()| 0)
        } else {
            reply.reply_written(&offer.reply)
        };
        let written = written.map_err(|e| e.as_str())? as usize;
        let long = long.map_err(|e| e.as_str())? as usize;

        let part = match &reply.payload {
            ReplyPayload::Inline(part) => *part,
            ReplyPayload::Provided(_) if !requester.pulls_replies() => {
                let reason = "it is to be pulled, which was not agreed on";
                bad_reply(requester, Some(reply.xid), reason);
                return Ok(Self::Refused {
                    error: EIO,
                    room: false,
                });
            }
            ReplyPayload::Provided(chunk) => {
                if written != 0 && chunks::pad(chunk.length() as usize) != 0 {
                    return Err("part of a word in front of a Write chunk");
                }
                requester.shared.stats.written_bytes.add(written as u64);
                return Ok(Self::Provided { written });
            }
            ReplyPayload::ReplyChunk if written != 0 => {
                return Err("Write chunk used beside a Reply chunk");
            }
            ReplyPayload::ReplyChunk if offer.reply.is_empty() => {
                return Err("long reply where no Reply chunk was offered");
            }
            // The chunk covers the room for the Reply, in its order.
            ReplyPayload::ReplyChunk => {
                requester.shared.stats.written_bytes.add(long as u64);
                return Ok(Self::Ready(long));
            }
        };
        // Whoever decodes it would take what is left of a word for the first bytes of the payload.
        if written != 0 && chunks::pad(part.bytes.len()) != 0 {
            return Err("part of a word in front of a Write chunk");
        }
        requester.shared.stats.written_bytes.add(written as u64);
        Ok(Self::Inline { part, written })
    }

    /// Whether its place is memory that a chunk of the RPC covers. Then it can be put there only
    /// when the chunk's regions are fenced (RFC 8166, section 4.4.1).
    pub(super) fn overlaps_chunks(&self, rqst: &PinnedRqst<Call>, offer: &Offer) -> bool {
        match self {
            Self::Ready(_) | Self::Refused { .. } | Self::Provided { .. } => false,
            Self::Inline { part, written } => {
                let (inline, head) = (part.bytes.len(), rqst.receive_buf().head_len());
                // In front of what was written it is all in the head.
                let pages = *written == 0 && !offer.write.is_empty();
                chunks::overlaps(inline, head, pages, !offer.reply.is_empty())
            }
        }
    }

    /// Whether the Reply was too long to come inline. None of an error.
    pub(super) fn is_long(&self, threshold: usize) -> Option<bool> {
        match self {
            Self::Ready(len) => Some(inline_len(*len) > threshold),
            Self::Inline { .. } => Some(false),
            Self::Provided { .. } => Some(true),
            Self::Refused { .. } => None,
        }
    }

    /// Puts it where it belongs.
    #[inline]
    pub(super) fn place(&self, requester: &Requester, rqst: &PinnedRqst<Call>) -> Placed {
        match *self {
            Self::Ready(len) => Placed {
                result: Ok(len),
                head: None,
            },
            Self::Refused { error, .. } => Placed::failed(error),
            // It is pulled before.
            Self::Provided { .. } => Placed::failed(EIO),
            Self::Inline { part, written } => place_inline(requester, rqst, part.bytes, written),
        }
    }
}

/// Puts the inline part of a Reply where it belongs, as far as the consumer has room for it.
#[inline(always)]
pub(super) fn place_inline(
    requester: &Requester,
    rqst: &PinnedRqst<Call>,
    bytes: &[u8],
    written: usize,
) -> Placed {
    // The payload is the last result of every consumer that asks for a Write chunk, so all that is
    // in front of it belongs into the head. That is too short for a verifier that is longer than
    // those that the RPC layer has seen of this flavor.
    if written != 0 {
        if let Err(e) = rqst.stretch_head(bytes.len()) {
            return Placed::failed(e);
        }
    }
    let mut room = rqst.receive_buf();
    let head = room.head_len();
    let received = room.receive(bytes);
    let beyond = received.unwrap_or(0).saturating_sub(head);
    requester.shared.stats.fixup_bytes.add(beyond as u64);
    if beyond != 0 {
        xprtrdma_fixup(|| {
            let (pages, tail) = (room.page_len() as u32, room.tail_len());
            (rqst.task().id(), beyond, head, pages, tail)
        });
    }
    // Behind a head that is shorter than was planned for the payload follows at once.
    let short = written != 0 && bytes.len() < head;
    Placed {
        result: received.map(|len| chunks::reply_len(len, written)),
        head: short.then_some(bytes.len()),
    }
}

/// Gives an RPC its result: no peer can reach its memory any more.
#[inline(always)]
pub(super) fn complete(requester: &Requester, mut rqst: PinnedRqst<Call>, placed: Placed) {
    if let Some(head) = placed.head {
        rqst.trim_head(head);
    }
    if rqst.complete(placed.result).is_err() {
        not_fenced(requester);
    }
}

/// A region still covers memory of an RPC with its Reply: it is sent again on another connection,
/// when those of this one are gone.
#[cold]
fn not_fenced(requester: &Requester) {
    requester.loss.report(LossReason::NotFenced);
}
