// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! A Reply between the message that it came in and its place, and then its RPC.

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
        sunrpc::PinnedRqst,
        trace::xprtrdma_fixup, //
    },
};
use kernel::prelude::*;
use xdr::{
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

impl Answer {
    /// Compares a Reply with what was offered, and with the room for it.
    pub(super) fn check(
        requester: &Requester,
        rqst: &PinnedRqst<Call>,
        offer: &Offer,
        reply: &Reply<'_>,
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
                let len = part.bytes.len();
                // In front of what was written it is all in the head.
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
        // Whoever decodes it would take what is left of a word for the first bytes of the payload.
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

    /// Puts what is inline in `message` in its place, as far as the consumer has room for it.
    #[inline]
    pub(super) fn place(
        self,
        requester: &Requester,
        rqst: &PinnedRqst<Call>,
        message: &[u8],
    ) -> Self {
        let Self::Inline {
            offset, written, ..
        } = self
        else {
            return self;
        };
        let bytes = message.get(offset..).unwrap_or(&[]);
        // The payload is the last result of every consumer that asks for a Write chunk, so all
        // that is in front of it belongs into the head. That is too short for a verifier that is
        // longer than those that the RPC layer has seen of this flavor.
        if written != 0 {
            if let Err(e) = rqst.stretch_head(bytes.len()) {
                return Self::failed(e);
            }
        }
        let mut room = rqst.receive_buf();
        let head = room.head_len();
        let received = room.receive(bytes);
        let beyond = received.unwrap_or(0).saturating_sub(head);
        requester.shared.stats.add(Stat::FixupBytes, beyond as u64);
        if beyond != 0 {
            xprtrdma_fixup(|| {
                let (pages, tail) = (room.page_len() as u32, room.tail_len());
                (rqst.task().id(), beyond, head, pages, tail)
            });
        }
        // Behind a head that is shorter than was planned for the payload follows at once.
        let short = written != 0 && bytes.len() < head;
        Self::Ready(
            received.map(|len| chunks::reply_len(len, written)),
            short.then_some(bytes.len()),
        )
    }
}

impl WaitingReply {
    /// Ends the RPC with its result: no peer can reach its memory, and none of it is to come.
    pub(super) fn finish(self, connection: &Connection) {
        let requester = connection.handler();
        let Self {
            rqst,
            answer,
            message,
        } = self;
        let answer = answer.place(requester, &rqst, message.as_deref().unwrap_or(&[]));
        if message.is_some() {
            drop(message);
            let credit = rqst.call().state.lock().take_credit(requester.id);
            settle(connection, None, credit);
        }
        complete(requester, rqst, answer);
    }
}

/// Gives an RPC its result: no peer can reach its memory any more.
#[inline]
pub(super) fn complete(requester: &Requester, mut rqst: PinnedRqst<Call>, answer: Answer) {
    // What is not in its place yet never will be.
    let Answer::Ready(result, head) = answer else {
        return;
    };
    if let Some(head) = head {
        rqst.trim_head(head);
    }
    if rqst.complete(result).is_err() {
        // A region still covers memory of it: it is sent again on another connection, when those
        // of this one are gone.
        requester.loss.report(LossReason::NotFenced);
    }
}
