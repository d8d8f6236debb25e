// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The responder's trace events for received messages and returned chunks.

use crate::kapi::{
    ib::RecvBuf,
    trace::{
        self,
        CompletionId, //
    },
};
use xdr::{
    Call,
    CallPayload,
    DecodeError,
    FixedHeader,
    Rejected,
    ReplyPayload,
    Segment, //
};

/// Reports that a received message was decoded, or could not be.
#[inline]
pub(super) fn decoded(message: &RecvBuf, result: &Result<xdr::Message<'_>, Rejected>) {
    match result {
        Ok(xdr::Message::Call(call)) => {
            if trace::on::svcrdma_decode_rseg() || trace::on::svcrdma_decode_wseg() {
                offered(message, &{ *call });
            }
            let header_len = match &call.payload {
                CallPayload::Inline(inline) => Some(inline.offset),
                CallPayload::PositionZero(_) => None,
            };
            request(message, header_len);
        }
        Ok(xdr::Message::Reply(reply)) => {
            let header_len = match &reply.payload {
                ReplyPayload::Inline(inline) => Some(inline.offset),
                ReplyPayload::ReplyChunk | ReplyPayload::Provided(_) => None,
            };
            request(message, header_len);
        }
        Ok(xdr::Message::Error(_)) => trace::svcrdma_decode_drop_err(|| header(message)),
        Err(rejected) => refused(message, rejected.reason),
    }
}

/// Reports a Call or Reply with a header of `header_len` bytes; none if the header is all of it.
#[inline]
pub(super) fn request(message: &RecvBuf, header_len: Option<usize>) {
    trace::svcrdma_decode_rqst(|| {
        let (id, xid, version, credits, procedure) = header(message);
        let len = header_len.unwrap_or(message.bytes().len());
        (id, xid, version, credits, procedure, len as u32)
    });
}

pub(super) fn refused(message: &RecvBuf, reason: DecodeError) {
    match reason {
        DecodeError::Short => {
            trace::svcrdma_decode_short_err(|| (message.into(), message.bytes().len() as u32))
        }
        DecodeError::Version(_) => trace::svcrdma_decode_badvers_err(|| header(message)),
        DecodeError::Procedure(_) | DecodeError::Msgp => {
            trace::svcrdma_decode_badproc_err(|| header(message))
        }
        DecodeError::Done | DecodeError::UnknownError => {
            trace::svcrdma_decode_drop_err(|| header(message))
        }
        _ => trace::svcrdma_decode_parse_err(|| header(message)),
    }
}

/// Returns the fixed fields: XID, version, credits, procedure.
fn header(message: &RecvBuf) -> (CompletionId, u32, u32, u32, u32) {
    // All but the shortest messages have them.
    let header = FixedHeader::peek(message.bytes()).unwrap_or_default();
    let FixedHeader {
        xid,
        version,
        credits,
        procedure,
    } = header;
    (message.into(), xid, version, credits, procedure)
}

/// Reports the segments that a Call offers.
#[cold]
fn offered(message: &RecvBuf, call: &Call<'_>) {
    if trace::on::svcrdma_decode_rseg() {
        for chunk in call.reads.chunks() {
            for (i, s) in chunk.segments().enumerate() {
                trace::svcrdma_decode_rseg(|| {
                    let (id, position) = (message.into(), chunk.position());
                    (id, i as u32, position, s.handle, s.length, s.offset)
                });
            }
        }
    }
    if trace::on::svcrdma_decode_wseg() {
        for chunk in Iterator::chain(call.writes.chunks(), call.reply_chunk) {
            for (i, s) in chunk.segments().enumerate() {
                trace::svcrdma_decode_wseg(|| {
                    (message.into(), i as u32, s.handle, s.length, s.offset)
                });
            }
        }
    }
}

/// Reports the segments of a chunk returned by a Reply, which is sent as `id`.
pub(super) fn returned(id: CompletionId, segments: impl Iterator<Item = Segment>) {
    for (i, s) in segments.enumerate() {
        trace::svcrdma_encode_wseg(|| (id, i as u32, s.handle, s.length, s.offset));
    }
}
