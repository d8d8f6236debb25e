// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! What trace events say of messages.

use crate::{
    client::{
        call::Call,
        chunks::{
            Arguments,
            Results,
            Thresholds, //
        },
        connection::Requester,
        offer::Chunk,
        reply_history::{
            Expected,
            Kind, //
        },
    },
    kapi::{
        ib::Regions,
        sunrpc::{
            PinnedRqst,
            Rqst, //
        },
        sys::address::SocketAddress,
        trace::{
            self,
            Carriage, //
        },
    },
    transport::{
        header::longest_inline,
        registration::last_mapped, //
    },
};
use kernel::prelude::*;
use xdr::{
    DecodeError,
    ErrorMessage,
    FixedHeader,
    RdmaError,
    Reply, //
};

/// A connection is up, from one address to another.
pub(super) fn negotiated(thresholds: &Thresholds, own: SocketAddress, server: SocketAddress) {
    trace::xprtrdma_inline_thresh(|| {
        let Thresholds { send, receive, .. } = *thresholds;
        // With chunks it is less, by what they take in the header.
        let longest = |threshold: usize| longest_inline(threshold) as u32;
        let longest = (longest(send), longest(receive));
        (
            send as u32,
            receive as u32,
            longest.0,
            longest.1,
            own,
            server,
        )
    });
}

/// The region that was mapped last is a segment of a chunk, and the last one or not.
#[inline]
pub(super) fn offered(rqst: &Rqst<'_, Call>, chunk: Chunk, regions: &Regions, last: bool) {
    let segment = || (rqst.task().id(), last_mapped(regions), last);
    match chunk {
        Chunk::Read(position) => trace::xprtrdma_chunk_read(|| {
            let (task, region, last) = segment();
            (task, position as u32, region, last)
        }),
        Chunk::Write => trace::xprtrdma_chunk_write(segment),
        Chunk::Reply => trace::xprtrdma_chunk_reply(segment),
    }
}

/// A Call was encoded, with a header of so many bytes.
#[inline]
pub(super) fn encoded(
    rqst: &Rqst<'_, Call>,
    header: usize,
    arguments: Arguments,
    results: Results,
) {
    trace::xprtrdma_marshal(|| {
        let arguments = match arguments {
            Arguments::Inline => Carriage::Copied,
            Arguments::ReadChunk => Carriage::ReadChunk,
            Arguments::PositionZero => Carriage::PositionZero,
        };
        let results = match results {
            Results::Inline => Carriage::Inline,
            Results::WriteChunk => Carriage::WriteChunk,
            Results::ReplyChunk => Carriage::ReplyChunk,
        };
        let call = rqst.send_buf();
        let parts = [call.head_len(), call.page_len(), call.tail_len()];
        let [head, pages, tail] = parts.map(|len| len as u32);
        let (task, xid) = (rqst.task().id(), rqst.xid());
        (
            task,
            xid,
            header as u32,
            head,
            pages,
            tail,
            arguments,
            results,
        )
    });
}

/// It was decided how the Reply is to come back of a Call of that kind, with so much room.
pub(super) fn mechanism(rqst: &Rqst<'_, Call>, kind: &Kind, room: usize, expected: Expected) {
    trace::xprtrdma_reply_mechanism(|| {
        let (number, offered) = match expected {
            Expected::Unknown => (0, false),
            Expected::Short => (1, false),
            Expected::Long => (2, true),
            Expected::Refused => (3, true),
        };
        let Kind {
            program,
            version,
            procedure,
            ..
        } = *kind;
        let (task, xid) = (rqst.task().id(), rqst.xid());
        (
            task,
            xid,
            program,
            version,
            procedure,
            room as u32,
            number,
            offered,
        )
    });
}

/// A Reply of so many bytes is about to be pulled, or cannot be.
pub(super) fn pull(rqst: &PinnedRqst<Call>, xid: u32, len: usize, result: Result) {
    trace::xprtrdma_pull(|| (rqst.task().id(), xid, len as u32, trace::status(result)));
}

/// So many bytes of a Reply were pulled, or not.
pub(super) fn pulled(rqst: &PinnedRqst<Call>, xid: u32, len: usize, result: Result) {
    trace::xprtrdma_pulled(|| (rqst.task().id(), xid, len as u32, trace::status(result)));
}

/// The server is told that a Reply was pulled, and that key of it is made invalid, or none; or it
/// cannot be told.
pub(super) fn done(xid: u32, key: Option<u32>, result: Result) {
    trace::xprtrdma_done(|| (xid, key.unwrap_or(0), trace::status(result)));
}

/// A Reply has come to an RPC that waits for it, with that grant.
#[inline]
pub(super) fn answered(requester: &Requester, rqst: &PinnedRqst<Call>, xid: u32, credits: u32) {
    trace::xprtrdma_reply(|| {
        let grant = credits.min(requester.max_calls).max(1);
        (rqst.task().id(), xid, grant)
    });
}

/// The segments of the chunks that a Reply returns.
#[inline]
pub(super) fn returned(reply: &Reply<'_>) {
    if trace::on::xprtrdma_decode_seg() {
        for chunk in Iterator::chain(reply.writes.chunks(), reply.reply_chunk) {
            for s in chunk.segments() {
                trace::xprtrdma_decode_seg(|| (s.handle, s.length, s.offset));
            }
        }
    }
}

/// The server cannot answer a Call.
pub(super) fn failed(rqst: &PinnedRqst<Call>, message: &ErrorMessage) {
    match message.error {
        RdmaError::Version { low, high } => {
            trace::xprtrdma_err_vers(|| (rqst.task().id(), message.xid, low, high));
        }
        RdmaError::Chunk => trace::xprtrdma_err_chunk(|| (rqst.task().id(), message.xid)),
    }
}

/// What was received for an RPC is not well formed.
pub(super) fn misunderstood(rqst: &PinnedRqst<Call>, reason: DecodeError, message: &[u8]) {
    if reason == DecodeError::UnknownError {
        trace::xprtrdma_err_unrecognized(|| {
            let xid = FixedHeader::peek(message).map_or(0, |header| header.xid);
            // What it is comes behind the header.
            let rest = message.get(FixedHeader::SIZE..).unwrap_or(&[]);
            let error = rest.first_chunk().copied().map_or(0, u32::from_be_bytes);
            (rqst.task().id(), xid, error)
        });
    }
}

/// A message is refused.
pub(super) fn refused(requester: &Requester, reason: DecodeError, message: &[u8]) {
    match reason {
        DecodeError::Short => trace::xprtrdma_reply_short_err(|| header(requester, message)),
        DecodeError::Version(_) => trace::xprtrdma_reply_vers_err(|| header(requester, message)),
        _ => unfit(requester, message),
    }
}

/// A message is not well formed, or a Reply is no answer to its Call.
pub(super) fn unfit(requester: &Requester, message: &[u8]) {
    trace::xprtrdma_reply_hdr_err(|| header(requester, message));
}

/// Nobody waits for a Reply.
pub(super) fn unexpected(requester: &Requester, message: &[u8]) {
    trace::xprtrdma_reply_rqst_err(|| header(requester, message));
}

/// The server, and of the fixed fields XID, version and procedure.
fn header(requester: &Requester, message: &[u8]) -> (SocketAddress, u32, u32, u32) {
    // All but the shortest messages have them.
    let header = FixedHeader::peek(message).unwrap_or_default();
    let FixedHeader {
        xid,
        version,
        procedure,
        ..
    } = header;
    (*requester.loss.address(), xid, version, procedure)
}
