// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! From the message of a Reply to the RPC's buffers and its result.

use crate::{
    client::{
        call::{
            Answer,
            Call,
            WaitingReply, //
        },
        chunks,
        connection::{
            Connection,
            Requester, //
        },
        loss::LossReason,
        offer::Offer,
        settle::{
            bad_reply,
            settle, //
        },
        stats::Stat, //
    },
    kapi::{
        sunrpc::{
            PinnedRqst,
            MAX_REVERSE, //
        },
        trace::xprtrdma_fixup, //
    },
    transport::{
        continued::{
            Kept,
            MOST_FRAGMENTS, //
        },
        negotiated::PROPERTY_OCTETS,
        plan::PAYLOAD_PAGES, //
    },
};
use kernel::{
    page::PAGE_SIZE,
    prelude::*, //
};
use xdr::{
    v2::Bounds,
    Limits,
    Reply,
    ReplyPayload, //
};

/// Limits on the chunks that a server may send. A message with a Read list is a reverse Call, which
/// is refused whatever the list holds, or a Reply provided for pulling: few segments will do. Any
/// other message may have as many segments as a Receive can hold, so that the Payload stream behind
/// them can be read; the chunks that the Call offered bound the segments of a Reply further.
const LIMITS: Limits = Limits {
    read_segments: 64,
    read_chunks: 16,
    write_chunks: usize::MAX,
    write_segments: usize::MAX,
    chunk_segments: usize::MAX,
    ..Limits::floor(u32::MAX)
};

/// Bounds on what a server may send. In version 2, which tells Calls from Replies, its Calls have
/// no chunks (section 4.6.4 of the draft).
pub(super) const BOUNDS: Bounds = Bounds {
    calls: Limits {
        read_segments: 0,
        read_chunks: 0,
        write_chunks: 0,
        write_segments: 0,
        chunk_segments: 0,
        ..LIMITS
    },
    replies: LIMITS,
    call_octets: MAX_REVERSE as u32,
    reply_octets: (PAYLOAD_PAGES + 1) * PAGE_SIZE as u32,
    fragments: MOST_FRAGMENTS as u32,
    property_octets: PROPERTY_OCTETS,
};

impl Answer {
    /// Checks a Reply against the chunks that were offered and the room for it. `before` bytes of
    /// its Payload stream are in messages before this one.
    pub(super) fn check(
        requester: &Requester,
        rqst: &PinnedRqst<Call>,
        offer: &Offer,
        reply: &Reply<'_>,
        before: usize,
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

        let (answer, stream) = match &reply.payload {
            ReplyPayload::ReplyChunk if written != 0 => {
                return Err("Write chunk used beside a Reply chunk");
            }
            ReplyPayload::ReplyChunk if offer.reply.is_empty() => {
                return Err("long reply where no Reply chunk was offered");
            }
            // The chunk covers the room for the Reply, in its order.
            ReplyPayload::ReplyChunk => (Self::Ready(Ok(long), None), 0),
            ReplyPayload::Provided(_) if !requester.pulls_replies() => {
                let reason = "it is to be pulled, which was not agreed on";
                bad_reply(requester, Some(reply.xid), reason);
                return Ok(Self::failed(EIO));
            }
            ReplyPayload::Provided(chunk) => (Self::Provided { written }, chunk.length() as usize),
            ReplyPayload::Inline(part) => {
                let len = part.bytes.len().saturating_add(before);
                // A Reply that ends in front of the Write chunk's payload is all in the head.
                let pages = written == 0 && !offer.write.is_empty();
                let head = rqst.receive_buf().head_len();
                let inline = Self::Inline {
                    offset: part.offset,
                    written,
                    covered: chunks::overlaps(len, head, pages, !offer.reply.is_empty()),
                };
                (inline, len)
            }
        };
        // The consumer would decode the rest of that word as the first bytes of the payload.
        if written != 0 && chunks::pad(stream) != 0 {
            return Err("part of a word in front of a Write chunk");
        }
        let bytes = match answer {
            Self::Ready(..) => long,
            _ => written,
        };
        requester.shared.stats.add(Stat::WrittenBytes, bytes as u64);
        Ok(answer)
    }

    /// Copies the inline part of `message` into the consumer's buffers, as far as there is room,
    /// behind those of the messages in front of it.
    #[inline]
    pub(super) fn place(
        self,
        requester: &Requester,
        rqst: &PinnedRqst<Call>,
        front: Option<&Kept>,
        message: &[u8],
    ) -> Self {
        let Self::Inline {
            offset, written, ..
        } = self
        else {
            return self;
        };
        let bytes = message.get(offset..).unwrap_or(&[]);
        let len = front.map_or(0, Kept::len).saturating_add(bytes.len());
        // The payload is the last result of every consumer that asks for a Write chunk, so all
        // results in front of it belong into the head. The head is too short if the verifier is
        // longer than the RPC layer has seen for this flavor.
        if written != 0 {
            if let Err(e) = rqst.stretch_head(len) {
                return Self::failed(e);
            }
        }
        let mut room = rqst.receive_buf();
        let head = room.head_len();
        let received = match front {
            None => room.receive([bytes]),
            Some(front) => room.receive(Iterator::chain(front.iter(), [bytes])),
        };
        let beyond = received.unwrap_or(0).saturating_sub(head);
        requester.shared.stats.add(Stat::FixupBytes, beyond as u64);
        if beyond != 0 {
            xprtrdma_fixup(|| {
                let (pages, tail) = (room.page_len() as u32, room.tail_len());
                (rqst.task().id(), beyond, head, pages, tail)
            });
        }
        // The payload follows at once behind a head that is shorter than was planned.
        let short = written != 0 && len < head;
        Self::Ready(
            received.map(|len| chunks::reply_len(len, written)),
            short.then_some(len),
        )
    }
}

impl WaitingReply {
    /// Completes the RPC: no peer can reach its memory, and no part of its Reply is outstanding.
    pub(super) fn finish(self, connection: &Connection) {
        let requester = connection.handler();
        let Self {
            rqst,
            answer,
            message,
        } = self;
        let (front, bytes) = match &message {
            Some(message) => (message.front(), &**message),
            None => (None, &[][..]),
        };
        let answer = answer.place(requester, &rqst, front, bytes);
        if message.is_some() {
            drop(message);
            let credit = rqst.call().state.lock().take_credit(requester.id);
            settle(connection, None, credit);
        }
        complete(requester, rqst, answer);
    }
}

/// Completes an RPC with its result: no peer can reach its memory any more.
#[inline]
pub(super) fn complete(requester: &Requester, mut rqst: PinnedRqst<Call>, answer: Answer) {
    // Only a Reply that is in its place can complete it.
    let Answer::Ready(result, head) = answer else {
        return;
    };
    if let Some(head) = head {
        rqst.trim_head(head);
    }
    if rqst.complete(result).is_err() {
        // A region still covers memory of the RPC: it is sent again on another connection, when the
        // regions of this one are gone.
        requester.loss.report(LossReason::NotFenced);
    }
}
