// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The parts of a result: which chunk each goes into, and what is inline.

#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
#[path = "../../kunit/reply_layout.rs"]
mod tests;

use crate::{
    kapi::{
        ib::TransferKind,
        page::{
            ExtentIter,
            TransferMemory, //
        },
        sunrpc::{
            Payload,
            SvcReply,
            XdrBuf, //
        },
        sys::counters::{
            count,
            Counter, //
        },
        trace::{
            self,
            CompletionId, //
        },
    },
    server::{
        connection::{
            Connection,
            Responder, //
        },
        pulls::Pulls,
        request::ReplyCtx,
        trace::returned,
        unsent::Unsent, //
    },
    transport::{
        header::{
            Direction,
            Reason,
            ReplyPlace, //
        },
        provided::Provided,
        segment_cursor::SegmentCursor,
        send_buffer::SendBuffer,
        transfer::RwBuilder, //
    },
};
use kernel::prelude::*;
use xdr::{
    v2::Fragments,
    Offer,
    WriteChunk, //
};

/// Bytes of a Reply chunk in a header: a word that it is there, its count, and one segment.
const LEAST_REPLY_CHUNK: usize = 24;

/// Checks that a chunk of the Call, received as `id`, has room for `len` bytes. `EMSGSIZE` if not.
fn must_fit(id: impl Fn() -> CompletionId, len: usize, chunk: &WriteChunk<'_>) -> Result {
    let missing = len.saturating_sub(chunk.length() as usize);
    if missing == 0 {
        return Ok(());
    }
    let segments = chunk.segment_count() as u32;
    trace::svcrdma_small_wrch_err(|| (id(), missing as u32, segments, segments));
    Err(EMSGSIZE)
}

/// The places of the parts of a result.
#[derive(Clone, Copy)]
pub(super) struct ReplyLayout<'a> {
    ctx: &'a ReplyCtx,
    offer: &'a Offer<'a>,
    /// The length of the result in bytes.
    len: usize,
    /// The payloads that have a chunk, in order; a payload of length zero is not placed in it.
    payloads: &'a [Payload],
    /// The length of the Payload stream in bytes: the result without the placed payloads.
    stream_len: usize,
}

impl<'a> ReplyLayout<'a> {
    /// Pairs the payloads of a result of `len` bytes with the Write chunks, and sets the length of
    /// payloads that are not placed to zero. Fails if a chunk is too short. `received` names the
    /// Receive of the Call in trace events.
    #[inline]
    pub(super) fn new(
        received: impl Fn() -> CompletionId + Copy,
        ctx: &'a ReplyCtx,
        offer: &'a Offer<'a>,
        payloads: &'a mut [Payload],
        len: usize,
    ) -> Result<Self, Unsent> {
        let with_chunk = payloads.len().min(offer.writes.chunk_count());
        let mut end = 0;
        let (mut at, mut stream_len) = (0, 0usize);
        // A payload keeps the place of its chunk, used or not (RFC 8267, section 6.4.1).
        for (number, chunk) in (1..).zip(offer.writes.chunks()) {
            let Some(payload) = payloads.get_mut(number - 1) else {
                break;
            };
            let last = payload.offset.checked_add(payload.length).ok_or(EMSGSIZE)?;
            // The service may take encoded data back, when it finds no room for the rest; and an
            // empty chunk asks for its payload inline (RFC 8166, section 4.3.2.3).
            if last > len || chunk.segment_count() == 0 {
                payload.length = 0;
            }
            if payload.length == 0 {
                continue;
            }
            if payload.offset < end {
                return Err(EINVAL.into());
            }
            end = last;
            let (index, needed) = (number as u32, payload.length as u32);
            must_fit(received, payload.length, &chunk)
                .map_err(|_| Unsent::Refused(Reason::WriteRoom { index, needed }))?;
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

    /// Returns why a Reply is not sent that [`Self::prepare`] has failed to make. A longer Reply
    /// chunk helps only if `room` bytes of the header are enough for one.
    #[cold]
    pub(super) fn unsent(&self, room: usize, error: Error) -> Unsent {
        let offered = self.offer.reply_chunk.map_or(0, |chunk| chunk.length());
        let needed = self.stream_len as u32;
        let helps = needed > offered && room >= LEAST_REPLY_CHUNK;
        match error {
            EMSGSIZE if helps => Unsent::Refused(Reason::ReplyRoom { needed }),
            _ => error.into(),
        }
    }

    /// Returns the payloads, each with its chunk.
    fn placed(&self) -> impl Iterator<Item = (&'a Payload, WriteChunk<'a>)> {
        self.payloads.iter().zip(self.offer.writes.chunks())
    }

    /// Calls `each` with the offset and length of each part of the Payload stream.
    #[inline]
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

    /// Writes the header. Returns the room behind it.
    #[inline]
    fn header<'b>(
        &self,
        buffer: &'b mut SendBuffer<'_, Responder>,
        place: ReplyPlace<'_>,
    ) -> Result<&'b mut [u8]> {
        buffer.set_xid(self.ctx.xid);
        buffer.invalidate(self.ctx.key);
        buffer.reply(self.ctx.xid, self.offer, self.written(), place)
    }

    /// Returns the number of bytes that go into each Write chunk.
    fn written(&self) -> impl Iterator<Item = u32> + 'a {
        self.payloads.iter().map(|payload| payload.length as u32)
    }

    /// Traces the chunks that the header returns, with `long` bytes in the Reply chunk.
    #[cold]
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

    /// Fills a buffer, and prepares the RDMA Writes. Returns the number of bytes behind the header.
    #[inline]
    pub(super) fn prepare<'c>(
        &self,
        connection: &'c Connection,
        buffer: &mut SendBuffer<'c, Responder>,
        received: impl Fn() -> CompletionId + Copy,
        rqst: &mut SvcReply<'_>,
    ) -> Result<usize> {
        let size = connection.qp.returned_size(self.offer);
        let whole = size.saturating_add(self.stream_len);
        let longest = connection.longest_inline(self.offer.reply_chunk.is_some());
        let long = if whole <= longest {
            let room = self.header(buffer, ReplyPlace::Inline)?;
            self.copy_stream(room, rqst)?;
            trace::svcrdma_send_pullup(|| {
                let header = buffer.header_len() as u32;
                (buffer.id(), header, self.stream_len as u32)
            });
            None
        } else {
            let chunk = self.offer.reply_chunk.filter(|_| size <= longest);
            if chunk.is_none_or(|chunk| self.stream_len > chunk.length() as usize) {
                if let Some(pulls) = connection.pulls() {
                    self.provided(connection, pulls, buffer, rqst)?;
                    return Ok(0);
                }
                let header = buffer.plain_size(Direction::Reply) + size;
                let fragments = connection.qp.split(header, self.stream_len);
                if let Some(fragments) = fragments.filter(|f| connection.qp.may_fill(f)) {
                    return self.continued(connection, buffer, fragments, rqst);
                }
                must_fit(received, self.stream_len, &chunk.ok_or(EMSGSIZE)?)?;
            }
            self.header(buffer, ReplyPlace::ReplyChunk(self.stream_len as u32))?;
            if buffer.header_len() > connection.qp.longest_send() {
                return Err(EMSGSIZE);
            }
            chunk
        };
        let len = long.map_or(self.stream_len, |_| 0);
        if trace::on::svcrdma_encode_wseg() {
            self.trace_returned(buffer.id(), long.map_or(0, |_| self.stream_len));
        }
        if long.is_some() || !self.places_nothing() {
            buffer.write(self.writes(connection, rqst, long)?);
        }
        Ok(len)
    }

    /// Fills buffers for a Reply in several messages, as [`Self::prepare`].
    #[cold]
    fn continued<'c>(
        &self,
        connection: &'c Connection,
        buffer: &mut SendBuffer<'c, Responder>,
        fragments: Fragments,
        rqst: &mut SvcReply<'_>,
    ) -> Result<usize> {
        self.header(buffer, ReplyPlace::Inline)?;
        let result = rqst.result();
        let copy = |at, to: &mut [u8]| self.copy_part(result, at, to);
        let len = buffer.continued(Direction::Reply, self.ctx.xid, fragments, copy);
        // Other Replies have taken the buffers meanwhile.
        let len = len.map_err(|e| if e == ENOBUFS { EMSGSIZE } else { e })?;
        if !self.places_nothing() {
            buffer.write(self.writes(connection, rqst, None)?);
        }
        Ok(len)
    }

    /// Copies the bytes of the Payload stream from `at` on.
    fn copy_part(&self, result: &XdrBuf, mut at: usize, mut to: &mut [u8]) -> Result {
        self.stream(|offset, n| {
            let skipped = at.min(n);
            at -= skipped;
            let len = (n - skipped).min(to.len());
            let (part, rest) = core::mem::take(&mut to).split_at_mut(len);
            to = rest;
            result.copy_to(offset + skipped, part)
        })?;
        to.is_empty().then_some(()).ok_or(EMSGSIZE)
    }

    /// Copies the Payload stream behind the header.
    #[inline]
    fn copy_stream(&self, mut rest: &mut [u8], rqst: &mut SvcReply<'_>) -> Result {
        let result = rqst.result();
        self.stream(|offset, n| {
            let (room, behind) = core::mem::take(&mut rest)
                .split_at_mut_checked(n)
                .ok_or(EMSGSIZE)?;
            rest = behind;
            result.copy_to(offset, room)
        })
    }

    /// Returns whether no payload goes into a Write chunk.
    #[inline]
    fn places_nothing(&self) -> bool {
        self.payloads.iter().all(|payload| payload.length == 0)
    }

    /// Prepares the RDMA Writes, of which there is at least one.
    fn writes<'c>(
        &self,
        connection: &'c Connection,
        rqst: &mut SvcReply<'_>,
        long: Option<WriteChunk<'a>>,
    ) -> Result<RwBuilder<'c, Responder>> {
        let parts = self.placed_parts() + long.map_or(0, |c| c.segment_count());
        let result = rqst.take_result()?;
        let transfer = connection.qp.transfer(TransferKind::Write, result, parts)?;
        let mut transfer = self.place(transfer)?;
        if let Some(chunk) = long {
            transfer.begin_reply_chunk();
            let mut rest = SegmentCursor::new(chunk.segments());
            self.stream(|offset, n| rest.add(&mut transfer, offset, n))?;
        }
        Ok(transfer)
    }

    /// Returns the most parts of memory that go into segments: the payloads, and the parts of the
    /// Payload stream, which is cut into one part more than there are payloads.
    fn placed_parts(&self) -> usize {
        self.offer.writes.segment_count() + self.payloads.len() + 1
    }

    /// Adds the payloads to a transfer, each to its Write chunk.
    #[inline]
    fn place<'c>(
        &self,
        mut transfer: RwBuilder<'c, Responder>,
    ) -> Result<RwBuilder<'c, Responder>> {
        for (payload, chunk) in self.placed() {
            SegmentCursor::new(chunk.segments()).add(
                &mut transfer,
                payload.offset,
                payload.length,
            )?;
        }
        Ok(transfer)
    }

    /// Prepares a Reply for the client to pull, since it is too long for the offered chunks; its
    /// header goes into `buffer`. `EMSGSIZE` if too many others are not pulled yet. May sleep.
    #[cold]
    fn provided<'c>(
        &self,
        connection: &'c Connection,
        pulls: &Pulls<Responder>,
        buffer: &mut SendBuffer<'c, Responder>,
        rqst: &mut SvcReply<'_>,
    ) -> Result {
        let prepared = self.provide(connection, pulls, buffer, rqst);
        trace::svcrdma_provide(|| {
            let provided = buffer.provided().filter(|_| prepared.is_ok());
            let segments = provided.map_or(0, Provided::registrations);
            let (length, result) = (self.stream_len as u32, trace::status(prepared));
            (buffer.id(), self.ctx.xid, segments as u32, length, result)
        });
        prepared.inspect_err(|e| {
            if *e == EMSGSIZE {
                count(Counter::PullsRefused);
            }
        })
    }

    fn provide<'c>(
        &self,
        connection: &'c Connection,
        pulls: &Pulls<Responder>,
        buffer: &mut SendBuffer<'c, Responder>,
        rqst: &mut SvcReply<'_>,
    ) -> Result {
        let (qp, limits, xid) = (&connection.qp, &pulls.limits, self.ctx.xid);
        let result = rqst.take_result()?;
        // Payloads in Write chunks are held with it.
        let share = pulls.share(result.memory())?;
        let mut provided = qp.provide(xid, share, pulls.end(), limits)?;
        let pieces = ExtentIter::of_message(result)?;
        self.stream(|offset, n| {
            let mut part = pieces.first(offset.saturating_add(n));
            part.skip(offset);
            provided.add(&mut part)
        })?;
        self.header(buffer, ReplyPlace::Provided(provided.segments()))?;
        if buffer.header_len() > connection.qp.longest_send() {
            return Err(EMSGSIZE);
        }
        if !self.places_nothing() {
            let memory = TransferMemory::kept(&pieces)?;
            let transfer = qp.transfer(TransferKind::Write, memory, self.placed_parts())?;
            buffer.write(self.place(transfer)?);
        }
        buffer.provide(provided)?;
        // The RDMA_DONE for it takes a Receive without a credit.
        connection.receive_one_more(limits.replies)
    }
}
