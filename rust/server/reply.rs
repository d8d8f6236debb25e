// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! From the result of a request to its Reply.

#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
#[path = "../../kunit/plan.rs"]
mod tests;

use super::{
    arrival::Message,
    connection::{
        Answer,
        Connection,
        Responder,
        UNTOLD, //
    },
    request::{
        Outline,
        Request, //
    },
    segments::Rest,
    trace::returned, //
};
use crate::kapi::{
    ib::{
        NewTransfer,
        TransferKind, //
    },
    sunrpc::{
        Payload,
        SvcRqst,
        XdrBuf, //
    },
    sys::{
        svc_sysctl::{
            count,
            Counter, //
        },
        trace::{
            self,
            CompletionId, //
        },
    },
};
use kernel::prelude::*;
use xdr::{
    encode_plain,
    Encoder,
    Offer,
    WriteChunk,
    MIN_HEADER, //
};

/// Sends the Reply. From a service thread; may sleep.
#[inline]
pub(super) fn send(
    connection: &Connection,
    (message, outline): Request,
    payloads: &mut [Payload],
    rqst: &mut SvcRqst<'_>,
) -> Result {
    let ready = if outline.offers_nothing() {
        prepare_plain(connection, &outline, rqst)
    } else {
        prepare(connection, &message, &outline, payloads, rqst)
    };
    // The Receive goes back before the Reply that lets the client use it again.
    let used = connection.give_back(message);
    match ready.and_then(|ready| connection.reply(ready, used, rqst.threads())) {
        // The client asked for more than it offered room for (RFC 8166, section 4.5.3).
        Err(e) if e == EMSGSIZE => connection.send_chunk_error(outline.xid),
        Err(e) => {
            connection.close();
            return Err(e);
        }
        Ok(()) => (),
    }
    Ok(())
}

/// Fills a buffer with the Reply to a Call that offers nothing for it. `EMSGSIZE` if that is too long
/// to be inline.
#[inline]
fn prepare_plain<'c>(
    connection: &'c Connection,
    outline: &Outline,
    rqst: &mut SvcRqst<'_>,
) -> Result<Answer<'c>> {
    let mut buffer = connection.qp.send_buffer()?;
    let result = rqst.result();
    let len = MIN_HEADER + result.len();
    if len > connection.send_threshold {
        return Err(EMSGSIZE);
    }
    let room = encode_plain(buffer.bytes(), outline.xid, UNTOLD).map_err(|_| EMSGSIZE)?;
    result.copy_to(0, room.get_mut(..result.len()).ok_or(EMSGSIZE)?)?;
    trace::svcrdma_send_pullup(|| (buffer.id(), MIN_HEADER as u32, result.len() as u32));
    Ok(Answer {
        buffer,
        len,
        tag: Some(outline.xid),
        invalidate: outline.key,
        transfer: None,
    })
}

/// Fills a buffer with the Reply to a Call that was received as `message`, and prepares the RDMA
/// Writes.
#[inline(never)]
fn prepare<'c>(
    connection: &'c Connection,
    message: &Message,
    outline: &Outline,
    payloads: &mut [Payload],
    rqst: &mut SvcRqst<'_>,
) -> Result<Answer<'c>> {
    let offer = outline.offer(message)?;
    let result = rqst.result();
    for payload in payloads.iter_mut() {
        *payload = corrected(&result, *payload);
    }
    let plan = Plan::new(message.id(), outline, &offer, payloads, result.len())?;
    plan.prepare(connection, rqst)
}

/// Where a payload really begins: for READLINK of NFS 4 the service names the place of the count in
/// front of it.
fn corrected(result: &XdrBuf<'_>, payload: Payload) -> Payload {
    let has_count = |offset: usize| {
        let mut word = [0; 4];
        let read = result.copy_to(offset, &mut word);
        read.is_ok() && u32::from_be_bytes(word) as usize == payload.length
    };
    let before = payload.offset.checked_sub(4);
    if payload.length == 0 || before.is_some_and(has_count) || !has_count(payload.offset) {
        return payload;
    }
    Payload {
        offset: payload.offset.saturating_add(4),
        ..payload
    }
}

/// `EMSGSIZE` if a chunk of the Call, received as `id`, has no room for so much.
fn must_fit(id: CompletionId, len: usize, chunk: &WriteChunk<'_>) -> Result {
    let missing = len.saturating_sub(chunk.length() as usize);
    if missing == 0 {
        return Ok(());
    }
    let segments = chunk.segment_count() as u32;
    trace::svcrdma_small_wrch_err(|| (id, missing as u32, segments, segments));
    Err(EMSGSIZE)
}

/// What goes where.
struct Plan<'a> {
    /// What the Receive of the Call is called in trace events.
    received: CompletionId,
    outline: &'a Outline,
    offer: &'a Offer<'a>,
    /// Bytes of the result.
    len: usize,
    /// The payloads that have a chunk, in order. Those without length are not placed there.
    payloads: &'a [Payload],
}

impl<'a> Plan<'a> {
    /// Pairs the payloads of a result of `len` bytes with the Write chunks, and leaves those that are
    /// not to be placed without length. `EMSGSIZE` if a chunk is too short.
    fn new(
        received: CompletionId,
        outline: &'a Outline,
        offer: &'a Offer<'a>,
        payloads: &'a mut [Payload],
        len: usize,
    ) -> Result<Self> {
        let with_chunk = payloads.len().min(offer.writes.chunk_count());
        let mut end = 0;
        // A payload keeps the place of its chunk, used or not (RFC 8267, section 6.4.1).
        for (payload, chunk) in payloads.iter_mut().zip(offer.writes.chunks()) {
            let behind = payload.offset.checked_add(payload.length).ok_or(EMSGSIZE)?;
            // The service may take back what it has encoded, when it finds no room for the rest; and
            // what has an empty chunk is wanted inline (RFC 8166, section 4.3.2.3).
            if behind > len || chunk.segment_count() == 0 {
                payload.length = 0;
            } else if payload.offset < end {
                return Err(EINVAL);
            } else {
                end = behind;
            }
            must_fit(received, payload.length, &chunk)?;
        }
        Ok(Self {
            received,
            outline,
            offer,
            len,
            payloads: payloads.get(..with_chunk).unwrap_or(&[]),
        })
    }

    /// The payloads, each with its chunk.
    fn placed(&self) -> impl Iterator<Item = (&'a Payload, WriteChunk<'a>)> {
        self.payloads.iter().zip(self.offer.writes.chunks())
    }

    /// Calls `each` with offset and length of what stays in the Payload stream.
    fn stream(&self, mut each: impl FnMut(usize, usize) -> Result) -> Result {
        let mut at = 0;
        for payload in self.payloads {
            if payload.length == 0 {
                continue;
            }
            // In order, since padding is less than a word, and payloads begin at words.
            each(at, payload.offset.saturating_sub(at))?;
            // The padding leaves the stream with its payload (RFC 8166, section 3.4.4.4).
            at = payload
                .offset
                .saturating_add(payload.length.next_multiple_of(4))
                .min(self.len);
        }
        each(at, self.len.saturating_sub(at))
    }

    fn stream_len(&self) -> Result<usize> {
        let mut len = 0;
        self.stream(|_, n| {
            len += n;
            Ok(())
        })?;
        Ok(len)
    }

    /// Writes the header. `long` is the length of a Payload stream in the Reply chunk.
    fn header(&self, to: &mut [u8], long: Option<usize>) -> Result<usize> {
        let encoder = match long {
            Some(_) => Encoder::nomsg(to, self.outline.xid, UNTOLD),
            None => Encoder::msg(to, self.outline.xid, UNTOLD),
        };
        let mut writes = encoder.end_reads();
        let mut payloads = self.payloads.iter();
        for chunk in self.offer.writes.chunks() {
            let written = payloads.next().map_or(0, |payload| payload.length);
            writes.write_chunk(chunk.filled(written as u32).ok_or(EMSGSIZE)?);
        }
        let end = writes.end_writes();
        let encoded = match self.offer.reply_chunk {
            Some(chunk) => {
                let written = long.unwrap_or(0);
                end.reply_chunk(chunk.filled(written as u32).ok_or(EMSGSIZE)?)
            }
            None => end.no_reply_chunk(),
        };
        encoded.map_err(|_| EMSGSIZE)
    }

    /// Says which chunks the header returns. `long` is the length of what is in the Reply chunk.
    fn trace_returned(&self, id: CompletionId, long: usize) {
        let mut payloads = self.payloads.iter();
        for chunk in self.offer.writes.chunks() {
            let written = payloads.next().map_or(0, |payload| payload.length);
            returned(id, chunk.filled(written as u32).into_iter().flatten());
        }
        if let Some(chunk) = self.offer.reply_chunk {
            returned(id, chunk.filled(long as u32).into_iter().flatten());
        }
    }

    /// Fills a buffer, and prepares the RDMA Writes.
    fn prepare<'c>(
        &self,
        connection: &'c Connection,
        rqst: &mut SvcRqst<'_>,
    ) -> Result<Answer<'c>> {
        let mut buffer = connection.qp.send_buffer()?;
        let stream = self.stream_len()?;
        let header = self.header(buffer.bytes(), None)?;
        let (len, long) = if header + stream <= connection.send_threshold {
            let (to, result) = (buffer.bytes(), rqst.result());
            let mut at = header;
            self.stream(|offset, n| {
                let room = to.get_mut(at..at + n).ok_or(EMSGSIZE)?;
                at += n;
                result.copy_to(offset, room)
            })?;
            trace::svcrdma_send_pullup(|| (buffer.id(), header as u32, stream as u32));
            (header + stream, None)
        } else {
            let chunk = self.offer.reply_chunk.ok_or(EMSGSIZE)?;
            must_fit(self.received, stream, &chunk)?;
            let header = self.header(buffer.bytes(), Some(stream))?;
            if header > connection.send_threshold {
                return Err(EMSGSIZE);
            }
            (header, Some(chunk))
        };
        if trace::on::svcrdma_encode_wseg() {
            self.trace_returned(buffer.id(), long.map_or(0, |_| stream));
        }
        let transfer = self.writes(connection, rqst, long)?;
        if transfer.is_some() {
            count(Counter::Write);
        }
        Ok(Answer {
            buffer,
            len,
            tag: Some(self.outline.xid),
            invalidate: self.outline.key,
            transfer,
        })
    }

    /// Prepares the RDMA Writes, if there are any.
    fn writes<'c>(
        &self,
        connection: &'c Connection,
        rqst: &mut SvcRqst<'_>,
        long: Option<WriteChunk<'a>>,
    ) -> Result<Option<NewTransfer<'c, Responder>>> {
        if long.is_none() && self.payloads.iter().all(|payload| payload.length == 0) {
            return Ok(None);
        }
        let chunks = Iterator::chain(self.placed().map(|(_, chunk)| chunk), long);
        let segments: usize = chunks.map(|chunk| chunk.segment_count()).sum();
        // The Payload stream has a piece more than payloads were taken out of it.
        let parts = segments + self.payloads.len() + 1;
        let result = rqst.take_result()?;
        let mut transfer = connection.qp.transfer(TransferKind::Write, result, parts)?;
        for (payload, chunk) in self.placed() {
            Rest::new(chunk.segments()).add(&mut transfer, payload.offset, payload.length)?;
        }
        if let Some(chunk) = long {
            transfer.begin_reply_chunk();
            let mut rest = Rest::new(chunk.segments());
            self.stream(|offset, n| rest.add(&mut transfer, offset, n))?;
        }
        Ok(Some(transfer))
    }
}
