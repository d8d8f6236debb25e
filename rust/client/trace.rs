// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The requester's trace events.

use crate::{
    client::{
        call::Call,
        chunks::{
            Arguments,
            Results, //
        },
        connection::{
            Connection,
            Requester, //
        },
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

/// Reports the version of a connection.
pub(super) fn version(connection: &Connection) {
    trace::xprtrdma_version(|| {
        let (version, why) = (connection.version().number(), connection.why());
        (*connection.handler().loss.address(), version, why as u32)
    });
}

/// Reports that a connection between two addresses is up.
pub(super) fn negotiated(connection: &Connection, own: SocketAddress, server: SocketAddress) {
    trace::xprtrdma_inline_thresh(|| {
        let (send, receive) = (connection.longest_send(), connection.longest_receive());
        // Chunks reduce it by their length in the header.
        let longest = connection.thresholds();
        (
            send as u32,
            receive as u32,
            longest.send as u32,
            longest.receive as u32,
            own,
            server,
        )
    });
}

/// Reports that the region mapped last became a segment of a chunk, and whether it is the last one.
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

/// Reports that a Call was encoded, with a header of `header` bytes.
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

/// Reports the expected form of the Reply to a Call of this kind, with `room` bytes for it.
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

/// Reports that a Reply of `len` bytes is about to be pulled, or cannot be.
pub(super) fn pull(rqst: &PinnedRqst<Call>, xid: u32, len: usize, result: Result) {
    trace::xprtrdma_pull(|| (rqst.task().id(), xid, len as u32, trace::status(result)));
}

/// Reports the end of a pull of `len` bytes.
pub(super) fn pulled(rqst: &PinnedRqst<Call>, xid: u32, len: usize, result: Result) {
    trace::xprtrdma_pulled(|| (rqst.task().id(), xid, len as u32, trace::status(result)));
}

/// Reports that the server is told of a pulled Reply, and of its key to be invalidated, if any; or
/// that it cannot be told.
pub(super) fn done(xid: u32, key: Option<u32>, result: Result) {
    trace::xprtrdma_done(|| (xid, key.unwrap_or(0), trace::status(result)));
}

/// Reports a Reply with its grant, for an RPC that waits for it.
#[inline]
pub(super) fn answered(requester: &Requester, rqst: &PinnedRqst<Call>, xid: u32, credits: u32) {
    trace::xprtrdma_reply(|| {
        let grant = credits.min(requester.max_calls).max(1);
        (rqst.task().id(), xid, grant)
    });
}

/// Reports the segments of the chunks that a Reply returns.
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

/// Reports that the server cannot answer a Call.
pub(super) fn failed(rqst: &PinnedRqst<Call>, message: &ErrorMessage) {
    match message.error {
        RdmaError::Version { low, high } => {
            trace::xprtrdma_err_vers(|| (rqst.task().id(), message.xid, low, high));
        }
        _ => trace::xprtrdma_err_chunk(|| (rqst.task().id(), message.xid)),
    }
}

/// Reports a malformed message for an RPC.
pub(super) fn misunderstood(rqst: &PinnedRqst<Call>, reason: DecodeError, message: &[u8]) {
    if reason == DecodeError::UnknownError {
        trace::xprtrdma_err_unrecognized(|| {
            let xid = FixedHeader::peek(message).map_or(0, |header| header.xid);
            // The error code follows the header.
            let rest = message.get(FixedHeader::SIZE..).unwrap_or(&[]);
            let error = rest.first_chunk().copied().map_or(0, u32::from_be_bytes);
            (rqst.task().id(), xid, error)
        });
    }
}

/// Reports that a message is refused.
pub(super) fn refused(requester: &Requester, reason: DecodeError, message: &[u8]) {
    match reason {
        DecodeError::Short => trace::xprtrdma_reply_short_err(|| header(requester, message)),
        DecodeError::Version(_) => trace::xprtrdma_reply_vers_err(|| header(requester, message)),
        _ => unfit(requester, message),
    }
}

/// Reports a malformed message, or a Reply that does not match its Call.
pub(super) fn unfit(requester: &Requester, message: &[u8]) {
    trace::xprtrdma_reply_hdr_err(|| header(requester, message));
}

/// Reports a Reply that no RPC waits for.
pub(super) fn unexpected(requester: &Requester, message: &[u8]) {
    trace::xprtrdma_reply_rqst_err(|| header(requester, message));
}

/// Returns the server's address, and the XID, version and procedure of the message.
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
