// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! From an RPC to a posted message.

use crate::{
    client::{
        call::{
            Call,
            CallState, //
        },
        chunks::{
            self,
            Arguments,
            Results,
            Shape,
            Thresholds, //
        },
        connection::{
            Connection,
            Requester, //
        },
        offer::{
            Chunk,
            Offer, //
        },
        reply_history::{
            Expected,
            Kind, //
        },
        stats::Stat,
        trace::{
            encoded,
            mechanism,
            offered, //
        },
    },
    kapi::{
        ib::Poster,
        page::ExtentIter,
        sunrpc::{
            Rqst,
            XdrBuf,
            Xprt, //
        },
        trace, //
    },
    transport::{
        chunk_limits::ChunkLimits,
        flow::credits::Credit,
        header::{
            CallChunks,
            Direction, //
        },
        plan::RegionCounts,
        send_buffer::{
            Purpose,
            SendBuffer, //
        },
    },
};
use kernel::prelude::*;
use xdr::{
    lists_size,
    v2::Fragments, //
};

/// Sends a Call. The RPC layer has locked the transport. May sleep as the task may.
///
/// Errors as [`crate::kapi::sunrpc::Transport::send`].
pub(crate) fn send(connection: &Connection, xprt: &Xprt, rqst: Rqst<'_, Call>) -> Result {
    // A Call that is not refused is sent once on a connection: a second one would upset the
    // credits, and the server might execute it twice (RFC 8166, section 3.3.1).
    if rqst.connect_cookie() == xprt.connect_cookie() {
        return Err(ENOTCONN);
    }
    // The server may be slow with this Call again: others go first.
    if rqst.call().was_overdue() && rqst.put_last() {
        return Err(EBADSLT);
    }
    if !rqst.get_credit() {
        return Err(EBADSLT);
    }

    let requester = connection.handler();
    let reply_expected = rqst.reply_expected();
    let (credit, wanted) = requester.get_credit(connection, rqst.xid())?;
    let mut credit = Some(credit);
    let receives = wanted.map_or(Ok(()), |wanted| requester.make_receives(connection, wanted));
    let sent = receives.and_then(|()| send_with_credit(connection, xprt, rqst, &mut credit));
    if let Err(e) = sent {
        if let Some(credit) = credit {
            connection.put_back(|flow| flow.put_unsent(credit));
        }
        return Err(e);
    }
    requester.busy();
    // The credit of an RPC without a Reply would never come back.
    if reply_expected {
        Ok(())
    } else {
        Err(ENOTCONN)
    }
}

/// Sends a Call; the RPC owns the credit from the post on.
fn send_with_credit(
    connection: &Connection,
    xprt: &Xprt,
    rqst: Rqst<'_, Call>,
    credit: &mut Option<Credit>,
) -> Result {
    let requester = connection.handler();
    // Not moved: it is large.
    let mut buffer = requester.buffer(connection, Purpose::Call);
    let buffer = buffer.as_mut().map_err(|e| {
        trace::xprtrdma_prepsend_failed(|| (rqst.task().id(), rqst.xid(), *e));
        *e
    })?;

    let call = rqst.call();
    let mut state = call.state.lock();
    state.begin(rqst.xid())?;
    let thresholds = connection.thresholds();
    let mut limits = None;
    let mut room = rqst.receive_buf().buflen();
    if room > thresholds.receive {
        let limits = limits.insert(connection.chunk_limits());
        room = offered_room(connection, &rqst, &mut state, limits);
    }
    if chunks::fit_inline(rqst.send_buf().len(), room, &thresholds) {
        let len = encode(requester, &rqst, buffer)
            .inspect_err(|e| not_encoded(requester, xprt, &rqst, *e))?;
        // A Reply that comes at once waits for this lock.
        let task = rqst.sent();
        state.sent(requester.id, credit.take());
        let posted = buffer.post(len, None, || task.id());
        return posted.map_err(|_| ENOTCONN);
    }
    // Regions are posted, or given back, before the tear-down takes them from the device.
    let poster = connection.enter()?;
    // Covering memory may sleep. The offer is not read before the Call is sent; the RPC layer keeps
    // the request until this function returns, and does not send it twice at once.
    let mut offer = state.offer.take().ok_or(ENOTCONN)?;
    drop(state);
    let encoded = Marshal {
        connection,
        requester,
        rqst: &rqst,
        buffer,
        poster: &poster,
        offer: &mut offer,
        limits: limits.unwrap_or_else(|| connection.chunk_limits()),
    }
    .encode(room, &thresholds);
    let mut state = call.state.lock();
    let sent = match encoded {
        Ok(len) => {
            let task = rqst.sent();
            state.sent(requester.id, credit.take());
            buffer
                .post(len, Some(&mut offer.regions), || task.id())
                .map_err(|_| ENOTCONN)
        }
        Err(e) => {
            connection.unmap(&mut offer.regions);
            not_encoded(requester, xprt, &rqst, e);
            Err(e)
        }
    };
    state.offer = Some(offer);
    sent
}

/// Counts and traces a Call that could not be encoded; if regions are short, it waits for them.
#[cold]
fn not_encoded(requester: &Requester, xprt: &Xprt, rqst: &Rqst<'_, Call>, error: Error) {
    requester.shared.stats.add(Stat::FailedMarshal, 1);
    if error == EAGAIN {
        trace::xprtrdma_nomrs_err(|| (rqst.task().id(), *requester.loss.address()));
        xprt.wait_for_space();
        requester.want_regions();
    }
    trace::xprtrdma_marshal_failed(|| (rqst.task().id(), rqst.xid(), error));
}

/// Writes a Call without chunks. Returns the number of bytes after the header.
fn encode(
    requester: &Requester,
    rqst: &Rqst<'_, Call>,
    buffer: &mut SendBuffer<'_, Requester>,
) -> Result<usize> {
    let call = rqst.send_buf();
    requester.shared.stats.pulled_up(&call);
    let body = buffer.plain(Direction::Call, rqst.xid())?;
    let copied = copy(&call, 0, call.len(), body)?;
    encoded(
        rqst,
        buffer.header_len(),
        Arguments::Inline,
        Results::Inline,
    );
    Ok(copied)
}

/// Returns the payload of a message and its padding, as parts for [`RegionCounts::may_cover`].
fn payload_parts(message: &XdrBuf) -> [(usize, usize); 2] {
    let len = message.page_len();
    [(message.page_offset(), len), (0, chunks::pad(len))]
}

/// Returns the same of the whole message.
fn message_parts(message: &XdrBuf) -> [(usize, usize); 3] {
    let pages = (message.page_offset(), message.page_len());
    [(0, message.head_len()), pages, (0, message.tail_len())]
}

/// Returns whether the server takes a Write chunk for the pages of the Reply.
fn takes_write_chunk(rqst: &Rqst<'_, Call>, regions: &RegionCounts, limits: &ChunkLimits) -> bool {
    let reply = rqst.receive_buf();
    let fits = || regions.may_cover(&payload_parts(&reply), limits, 0);
    reply.is_read_target() && limits.write_chunks != 0 && fits()
}

/// Returns whether the server takes a Read chunk for the pages of the Call.
fn takes_read_chunk(rqst: &Rqst<'_, Call>, regions: &RegionCounts, limits: &ChunkLimits) -> bool {
    let call = rqst.send_buf();
    let fits = || regions.may_cover(&payload_parts(&call), limits, 0);
    call.is_write_source() && limits.read_chunks != 0 && fits()
}

/// Returns the bytes that the Call must offer for a Reply that may be too long to come inline: none
/// if a long one would be pulled, or continued, or has no other way to come. For one that is too
/// long for that, the Call is sent once more.
fn offered_room(
    connection: &Connection,
    rqst: &Rqst<'_, Call>,
    state: &mut CallState,
    limits: &ChunkLimits,
) -> usize {
    let requester = connection.handler();
    let room = rqst.receive_buf().buflen();
    if rqst.may_place_directly() && takes_write_chunk(rqst, &requester.regions, limits) {
        return room;
    }
    let whole = message_parts(&rqst.receive_buf());
    if !requester.regions.may_cover(&whole, limits, 0) {
        return 0;
    }
    if !requester.pulls_replies() && !connection.may_continue() {
        return room;
    }
    let Some(procedure) = rqst.counted_procedure() else {
        return room;
    };
    let (program, version) = rqst.program();
    let kind = Kind {
        program,
        version,
        procedure,
        class: Kind::class_of(room),
    };
    state.kind = Some(kind);
    let expected = match state.refused {
        true => Expected::Refused,
        false => requester.shared.history.lock().expected(&kind),
    };
    mechanism(rqst, &kind, room, expected);
    match expected {
        Expected::Unknown | Expected::Short => 0,
        Expected::Long | Expected::Refused => room,
    }
}

/// Returns what the choice of chunks depends on.
fn shape(
    rqst: &Rqst<'_, Call>,
    room: usize,
    regions: &RegionCounts,
    limits: &ChunkLimits,
) -> Shape {
    let (call, reply) = (rqst.send_buf(), rqst.receive_buf());
    Shape {
        call: call.len(),
        call_head: call.head_len(),
        call_pages: call.page_len(),
        call_is_write: takes_read_chunk(rqst, regions, limits),
        reply: room,
        reply_pages: reply.page_len(),
        reply_is_read: takes_write_chunk(rqst, regions, limits),
        may_place_directly: rqst.may_place_directly(),
    }
}

/// Copies the inline part of a Call behind the header. Returns its length.
fn copy_inline(
    requester: &Requester,
    call: &XdrBuf,
    shape: &Shape,
    arguments: Arguments,
    body: &mut [u8],
) -> Result<usize> {
    match arguments {
        Arguments::Inline => {
            requester.shared.stats.pulled_up(call);
            copy(call, 0, shape.call, body)
        }
        Arguments::ReadChunk => {
            let head = copy(call, 0, shape.call_head, body)?;
            // The pad of the argument is left out with it (RFC 8166, section 3.4.5.2), if the RPC
            // layer has put it in front of the tail.
            let skipped = shape.call_pages + chunks::pad(shape.call_pages).min(call.tail_len());
            let tail = shape.call_head + skipped;
            let rest = body.get_mut(head..).ok_or(EMSGSIZE)?;
            Ok(head + copy(call, tail, shape.call.saturating_sub(tail), rest)?)
        }
        Arguments::PositionZero => Ok(0),
    }
}

/// Copies `len` bytes of the message from `offset`.
fn copy(message: &XdrBuf, offset: usize, len: usize, to: &mut [u8]) -> Result<usize> {
    message.copy_to(offset, to.get_mut(..len).ok_or(EMSGSIZE)?)?;
    Ok(len)
}

/// A Call with chunks, while it is encoded.
struct Marshal<'a, 'r, 'b> {
    connection: &'a Connection,
    requester: &'a Requester,
    rqst: &'a Rqst<'r, Call>,
    buffer: &'a mut SendBuffer<'b, Requester>,
    poster: &'a Poster<'b>,
    offer: &'a mut Offer,
    limits: ChunkLimits,
}

impl Marshal<'_, '_, '_> {
    /// Chooses the chunks, maps their regions and writes the message, for a Reply of at most `room`
    /// bytes. Returns the number of bytes after the header. May sleep.
    ///
    /// `EAGAIN` when regions are short, `ENOBUFS` when memory is, or the credits for several
    /// messages, `EMSGSIZE` when the RPC needs more of either than there can be, `EIO` when the
    /// server takes no chunk that would do.
    fn encode(mut self, room: usize, thresholds: &Thresholds) -> Result<usize> {
        // What it has may be from a connection of larger regions. Without memory for that many as
        // this one may need, fewer may do.
        let _ = self.offer.reserve(self.requester.regions.rpc() as usize);
        let shape = shape(self.rqst, room, &self.requester.regions, &self.limits);
        let results = chunks::results(&shape, thresholds);
        self.map_results(results)?;
        let (write, reply) = (self.offer.write.len(), self.offer.reply.len());
        let arguments = chunks::arguments(&shape, thresholds, write, reply);
        let fragments = self.fragments(arguments, &shape, write, reply)?;
        if fragments.is_none() {
            self.map_arguments(arguments)?;
        }

        let call_chunks = CallChunks {
            read: &self.offer.read,
            position: match arguments {
                Arguments::ReadChunk => shape.call_head,
                Arguments::Inline | Arguments::PositionZero => 0,
            },
            write: &self.offer.write,
            reply: &self.offer.reply,
            invalidate: self.requester.handle_to_invalidate(self.offer),
        };
        let (xid, call) = (self.rqst.xid(), self.rqst.send_buf());
        let body = self.buffer.call(xid, &call_chunks)?;
        let copied = match fragments {
            None => copy_inline(self.requester, &call, &shape, arguments, body)?,
            Some(fragments) => {
                self.requester.shared.stats.pulled_up(&call);
                let copy = |at, to: &mut [u8]| call.copy_to(at, to);
                self.buffer
                    .continued(Direction::Call, xid, fragments, copy)?
            }
        };
        let header = self.buffer.header_len();
        // Chunks of more segments than were planned for may leave it too little room.
        if header + copied > self.connection.longest_send() {
            return Err(EMSGSIZE);
        }
        encoded(self.rqst, header, arguments, results);
        Ok(copied)
    }

    /// Returns how the Call is split, if it would go through a chunk as a whole otherwise; without
    /// the credits for that it goes so. If the server takes no such chunk, which it may count as a
    /// Read chunk (section 4.5.1.2 of the draft), it waits with `ENOBUFS` for credits.
    fn fragments(
        &self,
        arguments: Arguments,
        shape: &Shape,
        write: usize,
        reply: usize,
    ) -> Result<Option<Fragments>> {
        if arguments != Arguments::PositionZero {
            return Ok(None);
        }
        let writes = (write != 0).then_some(write);
        let lists = lists_size(0, writes, (reply != 0).then_some(reply));
        let header = self.buffer.plain_size(Direction::Call) + lists;
        let Some(fragments) = self.connection.split(header, shape.call) else {
            return Ok(None);
        };
        if self.connection.may_send_now(&fragments) {
            return Ok(Some(fragments));
        }
        let whole = message_parts(&self.rqst.send_buf());
        let (limits, used) = (&self.limits, self.offer.all_segments());
        let fits = self.requester.regions.may_cover(&whole, limits, used);
        let chunk = limits.read_chunks != 0 && fits;
        // Credits that the server never gives are not waited for.
        let waits = !chunk && self.connection.may_ever_send(&fragments);
        (!waits).then_some(None).ok_or(ENOBUFS)
    }

    /// Maps the regions of the results' chunk, if there is one.
    fn map_results(&mut self, results: Results) -> Result {
        let (stats, reply) = (&self.requester.shared.stats, self.rqst.receive_buf());
        let (mut pieces, chunk, segments) = match results {
            Results::Inline => return Ok(()),
            Results::WriteChunk => (reply.page_pieces(), Chunk::Write, Stat::WriteSegments),
            Results::ReplyChunk => (reply.pieces(), Chunk::Reply, Stat::ReplySegments),
        };
        let mut bytes = pieces.remaining();
        self.add_chunk(&mut pieces, chunk)?;
        if let Chunk::Write = chunk {
            let task = || self.rqst.task().id();
            let padding = self.buffer.padding(chunks::pad(reply.page_len()), task);
            if let Some(segment) = padding {
                let pushed = self.offer.write.push_within_capacity(segment);
                pushed.map_err(|_| ENOBUFS)?;
                bytes += segment.length as usize;
            }
        }
        stats.add(segments, self.offer.segments(chunk).len() as u64);
        stats.add(Stat::OfferedBytes, bytes as u64);
        Ok(())
    }

    /// Maps the regions of the arguments' chunk, if there is one.
    fn map_arguments(&mut self, arguments: Arguments) -> Result {
        let (stats, call) = (&self.requester.shared.stats, self.rqst.send_buf());
        let (mut pieces, position) = match arguments {
            Arguments::Inline => return Ok(()),
            Arguments::ReadChunk => (call.page_pieces()?, call.head_len()),
            Arguments::PositionZero => (call.pieces()?, 0),
        };
        self.add_chunk(&mut pieces, Chunk::Read(position))?;
        stats.add(Stat::ReadSegments, self.offer.read.len() as u64);
        if let Arguments::PositionZero = arguments {
            stats.add(Stat::LongCalls, 1);
        }
        Ok(())
    }

    /// Covers `pieces` with as many regions as necessary, for a chunk. May sleep.
    fn add_chunk(&mut self, pieces: &mut ExtentIter<'_>, chunk: Chunk) -> Result {
        let (access, xid) = (chunk.access(), self.rqst.xid());
        let task = || self.rqst.task().id();
        let (used, longest) = (self.offer.all_segments(), self.limits.segment_bytes);
        while pieces.remaining() != 0 {
            let regions = &mut self.offer.regions;
            let segment = match pieces.remaining() <= longest {
                true => self
                    .buffer
                    .map(self.poster, regions, pieces, access, xid, task)?,
                false => {
                    let mut part = pieces.first(longest);
                    let poster = self.poster;
                    let segment = self
                        .buffer
                        .map(poster, regions, &mut part, access, xid, task)?;
                    pieces.skip(segment.length as usize);
                    segment
                }
            };
            let segments = self.offer.segments(chunk);
            if segments.len() >= self.limits.left(used) {
                return Err(EIO);
            }
            segments
                .push_within_capacity(segment)
                .map_err(|_| ENOBUFS)?;
            let last = pieces.remaining() == 0;
            offered(self.rqst, chunk, &self.offer.regions, last);
        }
        Ok(())
    }
}
