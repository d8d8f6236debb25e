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
            Shape, //
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
        credits::Credit,
        send_buffer::SendBuffer, //
    },
};
use kernel::prelude::*;
use xdr::{
    Encoder,
    MIN_HEADER, //
};

/// Sends a Call. The RPC layer has locked the transport. May sleep as the task may.
///
/// Errors as [`crate::kapi::sunrpc::Transport::send`].
pub(crate) fn send(connection: &Connection, xprt: &Xprt, rqst: Rqst<'_, Call>) -> Result {
    // A Call is sent once on a connection: a second one would upset the credits, and the server
    // might execute it twice (RFC 8166, section 3.3.1).
    if rqst.connect_cookie() == xprt.connect_cookie() {
        return Err(ENOTCONN);
    }
    // The server may be slow with it again. Who is innocent of that comes first.
    if rqst.call().was_overdue() && rqst.put_last() {
        return Err(EBADSLT);
    }
    if !rqst.get_credit() {
        return Err(EBADSLT);
    }

    let requester = connection.handler();
    let reply_expected = rqst.reply_expected();
    let (credit, wanted) = requester.get_credit(rqst.xid())?;
    let mut credit = Some(credit);
    if let Err(e) = send_with_credit(connection, xprt, rqst, (&mut credit, wanted)) {
        if let Some(credit) = credit {
            requester.credits.lock().put(credit);
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

/// Sends a Call; the RPC has the credit from when it is posted.
fn send_with_credit(
    connection: &Connection,
    xprt: &Xprt,
    rqst: Rqst<'_, Call>,
    (credit, wanted_receives): (&mut Option<Credit>, Option<u32>),
) -> Result {
    let requester = connection.handler();
    if let Some(wanted) = wanted_receives {
        requester.make_receives(connection, wanted)?;
    }
    let mut buffer = requester.call_buffer(connection).inspect_err(|e| {
        trace::xprtrdma_prepsend_failed(|| (rqst.task().id(), rqst.xid(), *e));
    })?;

    let call = rqst.call();
    let mut state = call.state.lock();
    state.begin(rqst.xid())?;
    let (call_len, room) = (rqst.send_buf().len(), room(requester, &rqst, &mut state));
    if chunks::fit_inline(call_len, room, &requester.thresholds()) {
        let len = encode(requester, &rqst, buffer.bytes())
            .inspect_err(|e| not_encoded(requester, xprt, &rqst, *e))?;
        // A Reply that comes at once waits for the lock.
        let task = rqst.sent();
        state.sent(requester.id, credit.take());
        let posted = buffer.post(len, None, || task.id());
        return posted.map_err(|_| ENOTCONN);
    }
    // Regions are posted, or given back, before the tear-down takes them from the device.
    let poster = connection.enter()?;
    // Covering memory may sleep. Nobody looks at what is offered before the Call is sent; the RPC
    // layer keeps the request until this function returns, and does not send it twice at once.
    let mut offer = state.offer.take().ok_or(ENOTCONN)?;
    drop(state);
    let what = (&mut *offer, room);
    let encoded = encode_with_chunks(requester, &rqst, what, (&mut buffer, &poster));
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

/// A Call could not be encoded; if for want of regions, it waits for them.
#[cold]
fn not_encoded(requester: &Requester, xprt: &Xprt, rqst: &Rqst<'_, Call>, error: Error) {
    requester.shared.stats.failed_marshal.add(1);
    if error == EAGAIN {
        trace::xprtrdma_nomrs_err(|| (rqst.task().id(), *requester.loss.address()));
        requester.note_regions_short();
        xprt.wait_for_space();
    }
    trace::xprtrdma_marshal_failed(|| (rqst.task().id(), rqst.xid(), error));
}

/// Covers `pieces` with as many regions as it takes, for a chunk. May sleep.
#[inline(always)]
fn add_chunk(
    (buffer, poster): (&SendBuffer<'_, Requester>, &Poster<'_>),
    rqst: &Rqst<'_, Call>,
    offer: &mut Offer,
    pieces: &mut ExtentIter<'_>,
    chunk: Chunk,
) -> Result {
    let (access, xid) = (chunk.access(), rqst.xid());
    let task = || rqst.task().id();
    let mut left = pieces.remaining();
    while left != 0 {
        let segment = buffer.map(poster, &mut offer.regions, pieces, access, xid, task)?;
        offer
            .segments(chunk)
            .push_within_capacity(segment)
            .map_err(|_| ENOBUFS)?;
        left = pieces.remaining();
        offered(rqst, chunk, &offer.regions, left == 0);
    }
    Ok(())
}

/// Writes a message without chunks into `to`. Returns its length.
fn encode(requester: &Requester, rqst: &Rqst<'_, Call>, to: &mut [u8]) -> Result<usize> {
    let call = rqst.send_buf();
    requester.shared.stats.pulled_up(&call);
    let header = Encoder::msg(to, rqst.xid(), requester.max_calls).no_chunks();
    let header = header.map_err(|_| EMSGSIZE)?;
    let body = to.get_mut(header..).ok_or(EMSGSIZE)?;
    let copied = copy(&call, 0, call.len(), body)?;
    encoded(rqst, header, Arguments::Inline, Results::Inline);
    Ok(header + copied)
}

/// As [`encode`], for a message that does not fit inline one way or the other: decides on the
/// chunks and maps their regions. May sleep.
///
/// `EAGAIN` when regions are short, `ENOBUFS` when memory is, `EMSGSIZE` when the RPC needs more
/// than there can be.
#[inline(never)]
fn encode_with_chunks(
    requester: &Requester,
    rqst: &Rqst<'_, Call>,
    (offer, room): (&mut Offer, usize),
    (buffer, poster): (&mut SendBuffer<'_, Requester>, &Poster<'_>),
) -> Result<usize> {
    let thresholds = requester.thresholds();
    // What it has may be from a connection of larger regions. Without memory for that many as
    // this one may need, fewer may do.
    let _ = offer.reserve(requester.plan.rpc() as usize);
    let shape = shape(rqst, room);
    let results = chunks::results(&shape, &thresholds);
    map_results(requester, rqst, offer, (buffer, poster), results)?;
    let arguments = chunks::arguments(&shape, &thresholds, offer.write.len(), offer.reply.len());
    map_arguments(requester, rqst, offer, (buffer, poster), arguments)?;

    let to = buffer.bytes();
    let (xid, position) = (rqst.xid(), shape.call_head);
    let header = header(offer, xid, arguments, position, requester.max_calls, to)?;
    let body = to.get_mut(header..).ok_or(EMSGSIZE)?;
    let copied = copy_inline(requester, &rqst.send_buf(), &shape, arguments, body)?;
    // Chunks of more segments than were counted on may leave it too little room.
    if header + copied > thresholds.send {
        return Err(EMSGSIZE);
    }
    encoded(rqst, header, arguments, results);
    Ok(header + copied)
}

/// Bytes of the longest Reply that has to find room here: none where a long one would be pulled.
#[inline(always)]
fn room(requester: &Requester, rqst: &Rqst<'_, Call>, state: &mut CallState) -> usize {
    let room = rqst.receive_buf().buflen();
    let inline = MIN_HEADER.saturating_add(room) <= requester.thresholds().receive;
    if inline || !requester.pulls_replies() {
        return room;
    }
    choose_room(requester, rqst, state, room)
}

/// As [`room`], of a Reply that may be too long to come inline.
#[inline(never)]
fn choose_room(
    requester: &Requester,
    rqst: &Rqst<'_, Call>,
    state: &mut CallState,
    room: usize,
) -> usize {
    let placed = rqst.receive_buf().is_read_target() && rqst.may_place_directly();
    let Some(procedure) = rqst.counted_procedure().filter(|_| !placed) else {
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

/// What the choice of chunks depends on.
fn shape(rqst: &Rqst<'_, Call>, room: usize) -> Shape {
    let (call, reply) = (rqst.send_buf(), rqst.receive_buf());
    Shape {
        call: call.len(),
        call_head: call.head_len(),
        call_pages: call.page_len(),
        call_is_write: call.is_write_source(),
        reply: room,
        reply_pages: reply.page_len(),
        reply_is_read: reply.is_read_target(),
        may_place_directly: rqst.may_place_directly(),
    }
}

/// Maps the regions of the chunk that the results go through, if there is one. Errors as
/// [`encode_with_chunks`].
fn map_results(
    requester: &Requester,
    rqst: &Rqst<'_, Call>,
    offer: &mut Offer,
    (buffer, poster): (&SendBuffer<'_, Requester>, &Poster<'_>),
    results: Results,
) -> Result {
    let (stats, reply) = (&requester.shared.stats, rqst.receive_buf());
    let (mut pieces, chunk) = match results {
        Results::Inline => return Ok(()),
        Results::WriteChunk => (reply.page_pieces(), Chunk::Write),
        Results::ReplyChunk => (reply.pieces(), Chunk::Reply),
    };
    let mut bytes = pieces.remaining();
    add_chunk((buffer, poster), rqst, offer, &mut pieces, chunk)?;
    if let Chunk::Write = chunk {
        let padding = buffer.padding(chunks::pad(reply.page_len()), || rqst.task().id());
        if let Some(segment) = padding {
            let pushed = offer.write.push_within_capacity(segment);
            pushed.map_err(|_| ENOBUFS)?;
            bytes += segment.length as usize;
        }
        stats.write_segments.add(offer.write.len() as u64);
    } else {
        stats.reply_segments.add(offer.reply.len() as u64);
    }
    stats.offered_bytes.add(bytes as u64);
    Ok(())
}

/// The same, of the arguments.
fn map_arguments(
    requester: &Requester,
    rqst: &Rqst<'_, Call>,
    offer: &mut Offer,
    (buffer, poster): (&SendBuffer<'_, Requester>, &Poster<'_>),
    arguments: Arguments,
) -> Result {
    let (stats, call) = (&requester.shared.stats, rqst.send_buf());
    let (mut pieces, position) = match arguments {
        Arguments::Inline => return Ok(()),
        Arguments::ReadChunk => (call.page_pieces()?, call.head_len()),
        Arguments::PositionZero => (call.pieces()?, 0),
    };
    add_chunk(
        (buffer, poster),
        rqst,
        offer,
        &mut pieces,
        Chunk::Read(position),
    )?;
    stats.read_segments.add(offer.read.len() as u64);
    if let Arguments::PositionZero = arguments {
        stats.long_calls.add(1);
    }
    Ok(())
}

/// Copies what of a Call follows the header. Returns how much that is.
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
            // The pad of the argument goes with it (RFC 8166, section 3.4.5.2), if the RPC layer
            // has put it in front of the tail.
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

/// Writes the transport header. Returns its length.
fn header(
    offer: &Offer,
    xid: u32,
    arguments: Arguments,
    position: usize,
    credits: u32,
    to: &mut [u8],
) -> Result<usize> {
    let mut reads = match arguments {
        Arguments::PositionZero => Encoder::nomsg(to, xid, credits),
        _ => Encoder::msg(to, xid, credits),
    };
    match arguments {
        Arguments::Inline => (),
        Arguments::ReadChunk => {
            let position = u32::try_from(position).map_err(|_| EMSGSIZE)?;
            reads.read_chunk(position, &offer.read);
        }
        Arguments::PositionZero => reads.read_chunk(0, &offer.read),
    }
    let mut writes = reads.end_reads();
    if !offer.write.is_empty() {
        writes.write_chunk(&offer.write);
    }
    let reply = writes.end_writes();
    let encoded = if offer.reply.is_empty() {
        reply.no_reply_chunk()
    } else {
        reply.reply_chunk(&offer.reply)
    };
    encoded.map_err(|_| EMSGSIZE)
}
