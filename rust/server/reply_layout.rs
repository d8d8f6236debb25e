// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Which part of a result goes into which chunk, and which is inline.

#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
#[path = "../../kunit/reply_layout.rs"]
mod tests;

use crate::{
    kapi::{
        ib::TransferKind,
        sunrpc::{
            Payload,
            SvcReply, //
        },
        trace::{
            self,
            CompletionId, //
        },
    },
    server::{
        connection::{
            Connection,
            ReplySend,
            Responder,
            CREDITS_UNSET, //
        },
        request::ReplyCtx,
        segment_cursor::SegmentCursor,
        trace::returned, //
    },
    transport::transfer::RwBuilder, //
};
use kernel::prelude::*;
use xdr::{
    Offer,
    WriteChunk, //
};

/// `EMSGSIZE` if a chunk of the Call, received as `id` says, has no room for so much.
fn must_fit(id: impl Fn() -> CompletionId, len: usize, chunk: &WriteChunk<'_>) -> Result {
    let missing = len.saturating_sub(chunk.length() as usize);
    if missing == 0 {
        return Ok(());
    }
    let segments = chunk.segment_count() as u32;
    trace::svcrdma_small_wrch_err(|| (id(), missing as u32, segments, segments));
    Err(EMSGSIZE)
}

/// What goes where.
#[derive(Clone, Copy)]
pub(super) struct ReplyLayout<'a> {
    ctx: &'a ReplyCtx,
    offer: &'a Offer<'a>,
    /// Bytes of the result.
    len: usize,
    /// The payloads that have a chunk, in order. Those without length are not placed there.
    payloads: &'a [Payload],
    /// Bytes of the Payload stream: what is not placed.
    stream_len: usize,
}

impl<'a> ReplyLayout<'a> {
    /// Pairs the payloads of a result of `len` bytes with the Write chunks, and leaves those that
    /// are not to be placed without length. `EMSGSIZE` if a chunk is too short. `received` is what
    /// the Receive of the Call is called in trace events.
    #[inline(always)]
    pub(super) fn new(
        received: impl Fn() -> CompletionId + Copy,
        ctx: &'a ReplyCtx,
        offer: &'a Offer<'a>,
        payloads: &'a mut [Payload],
        len: usize,
    ) -> Result<Self> {
        let with_chunk = payloads.len().min(offer.writes.chunk_count());
        let mut end = 0;
        let (mut at, mut stream_len) = (0, 0usize);
        // A payload keeps the place of its chunk, used or not (RFC 8267, section 6.4.1).
        for (payload, chunk) in payloads.iter_mut().zip(offer.writes.chunks()) {
            let last = payload.offset.checked_add(payload.length).ok_or(EMSGSIZE)?;
            // The service may take back what it has encoded, when it finds no room for the rest;
            // and what has an empty chunk is wanted inline (RFC 8166, section 4.3.2.3).
            if last > len || chunk.segment_count() == 0 {
                payload.length = 0;
            }
            if payload.length == 0 {
                continue;
            }
            if payload.offset < end {
                return Err(EINVAL);
            }
            end = last;
            must_fit(received, payload.length, &chunk)?;
            stream_len = stream_len.saturating_add(payload.offset.saturating_sub(at));
            at = payload.behind(len);
        }
        Ok(Self {
            ctx,
            offer,
            len,
            payloads: payloads.get(..with_chunk).unwrap_or(&[]),
            stream_len: stream_len.saturating_add(len.saturating_sub(at)),
        })
    }

    /// The payloads, each with its chunk.
    fn placed(&self) -> impl Iterator<Item = (&'a Payload, WriteChunk<'a>)> {
        self.payloads.iter().zip(self.offer.writes.chunks())
    }

    /// Calls `each` with offset and length of what stays in the Payload stream.
    #[inline(always)]
    fn stream(&self, mut each: impl FnMut(usize, usize) -> Result) -> Result {
        let mut at = 0;
        for payload in self.payloads {
            if payload.length == 0 {
                continue;
            }
            // In order, since padding is less than a word, and payloads begin at words.
            each(at, payload.offset.saturating_sub(at))?;
            at = payload.behind(self.len);
        }
        each(at, self.len.saturating_sub(at))
    }

    /// Writes the header, and returns its length. `long` is the length of a Payload stream in the
    /// Reply chunk.
    #[inline(always)]
    fn header(&self, to: &mut [u8], long: Option<usize>) -> Result<usize> {
        let written = self.payloads.iter().map(|payload| payload.length as u32);
        let long = long.map(|len| len as u32);
        self.offer
            .encode_reply(to, self.ctx.xid, CREDITS_UNSET, written, long)
            .map_err(|_| EMSGSIZE)
    }

    /// Says which chunks the header returns. `long` is the length of what is in the Reply chunk.
    #[cold]
    fn trace_returned(self, id: CompletionId, long: usize) {
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
    #[inline(always)]
    pub(super) fn prepare<'c>(
        &self,
        connection: &'c Connection,
        received: impl Fn() -> CompletionId + Copy,
        rqst: &mut SvcReply<'_>,
    ) -> Result<ReplySend<'c>> {
        let mut buffer = connection.qp.send_buffer()?;
        let size = self.offer.header_size();
        let whole = size.saturating_add(self.stream_len);
        let longest = connection.longest_inline(self.offer.reply_chunk.is_some());
        let long = if whole <= longest {
            self.header(buffer.bytes(), None)?;
            self.copy_stream(size, buffer.bytes(), rqst)?;
            trace::svcrdma_send_pullup(|| (buffer.id(), size as u32, self.stream_len as u32));
            None
        } else if size <= longest {
            let chunk = self.offer.reply_chunk.ok_or(EMSGSIZE)?;
            must_fit(received, self.stream_len, &chunk)?;
            self.header(buffer.bytes(), Some(self.stream_len))?;
            Some(chunk)
        } else {
            return Err(EMSGSIZE);
        };
        let len = long.map_or(whole, |_| size);
        if trace::on::svcrdma_encode_wseg() {
            { *self }.trace_returned(buffer.id(), long.map_or(0, |_| self.stream_len));
        }
        let transfer = if long.is_none() && self.places_nothing() {
            None
        } else {
            // A copy for what is not in line, so that the rest need not be in memory.
            Some({ *self }.writes(connection, rqst, long)?)
        };
        Ok(ReplySend {
            buffer,
            len,
            xid: Some(self.ctx.xid),
            invalidate: self.ctx.key,
            transfer,
        })
    }

    /// Copies the Payload stream to behind a header of so many bytes.
    #[inline(always)]
    fn copy_stream(&self, header: usize, to: &mut [u8], rqst: &mut SvcReply<'_>) -> Result {
        let result = rqst.result();
        let mut rest = to.get_mut(header..).ok_or(EMSGSIZE)?;
        self.stream(
            #[inline(always)]
            |offset, n| {
                let (room, behind) = core::mem::take(&mut rest)
                    .split_at_mut_checked(n)
                    .ok_or(EMSGSIZE)?;
                rest = behind;
                result.copy_to(offset, room)
            },
        )
    }

    /// Whether no payload goes into a Write chunk.
    #[inline(always)]
    fn places_nothing(&self) -> bool {
        self.payloads.iter().all(|payload| payload.length == 0)
    }

    /// Prepares the RDMA Writes, of which there are some.
    #[inline(never)]
    fn writes<'c>(
        self,
        connection: &'c Connection,
        rqst: &mut SvcReply<'_>,
        long: Option<WriteChunk<'a>>,
    ) -> Result<RwBuilder<'c, Responder>> {
        let segments = self.offer.writes.segment_count() + long.map_or(0, |c| c.segment_count());
        // The Payload stream has a piece more than payloads were taken out of it.
        let parts = segments + self.payloads.len() + 1;
        let result = rqst.take_result()?;
        let mut transfer = connection.qp.transfer(TransferKind::Write, result, parts)?;
        for (payload, chunk) in self.placed() {
            SegmentCursor::new(chunk.segments()).add(
                &mut transfer,
                payload.offset,
                payload.length,
            )?;
        }
        if let Some(chunk) = long {
            transfer.begin_reply_chunk();
            let mut rest = SegmentCursor::new(chunk.segments());
            self.stream(|offset, n| rest.add(&mut transfer, offset, n))?;
        }
        Ok(transfer)
    }
}
