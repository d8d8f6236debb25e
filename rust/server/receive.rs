// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! From a received message to the argument of a request.

#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
#[path = "../../kunit/arguments.rs"]
mod tests;

use crate::{
    kapi::{
        ib::{
            RecvBuf,
            TransferKind, //
        },
        page::TransferMemory,
        sunrpc::{
            Argument,
            SvcItem,
            SvcRqst, //
        },
        sys::counters::{
            count_all,
            Counter, //
        },
        trace::{
            svcrdma_page_overrun_err,
            svcrdma_read_finished, //
        },
    },
    server::{
        connection::{
            Connection,
            Responder, //
        },
        request::{
            ReplyCtx,
            Request, //
        },
        reverse, trace,
        waiting::{
            Continued,
            PendingRead,
            Place,
            ReadTicket,
            RecvItem, //
        },
    },
    transport::{
        continued::Kept,
        header::{
            Reason,
            Refusal, //
        },
        segment_cursor::SegmentCursor,
        transfer::RwBuilder, //
    },
};
use core::ops::Range;
use kernel::{
    page::PAGE_SIZE,
    prelude::*, //
};
use xdr::{
    v2::{
        rejected_on_arrival,
        Undecoded, //
    },
    Call,
    CallPayload,
    Direction,
    ReadChunk,
    ReadList,
    Rejected,
    Reply,
    ReplyPayload,
    RpcPrefix, //
};

/// The number of bytes of an RPC message that are checked: more than any RPC header has, with all
/// that may precede an argument that may be reduced.
const BEGINNING: usize = 1280;

/// The next step for a received message.
enum Disposition<'c> {
    /// It is a request, whose argument begins at this offset of the message.
    Execute(ReplyCtx, usize),
    /// It is a request, whose argument the thread was given.
    Given(ReplyCtx),
    /// It is a request whose argument must be read.
    Read(RwBuilder<'c, Responder>, ReplyCtx, Place),
    /// It is a request whose argument cannot be read now: all regions are in use.
    Later(u32, ReadTicket),
    /// It must be answered with an error message.
    Refuse(Refusal),
    /// Nothing is left to do.
    Done,
    /// The connection cannot go on.
    Close(Error),
}

impl SvcItem<Connection> for RecvItem {
    #[inline]
    fn request(
        self,
        connection: &Connection,
        rqst: &mut SvcRqst<'_>,
    ) -> Result<Option<(Request, Argument)>> {
        let message = match self {
            RecvItem::Message(message) => message,
            RecvItem::Continued(continued) => {
                return request_continued(connection, continued, rqst)
            }
            RecvItem::ReadDone(reading) => return read_done(connection, reading, rqst),
            RecvItem::Refused(message, reason) => {
                let rejected = rejected_on_arrival(message.bytes(), reason);
                trace::refused(&message, reason);
                let disposition = dispose_rejected(connection, &rejected);
                return settle(connection, message, disposition, rqst);
            }
            RecvItem::Negotiated(xid) => {
                connection.tell_properties(xid);
                return Ok(None);
            }
        };
        let disposition = dispose(connection, &message, Undecoded::default(), None, rqst);
        settle(connection, message, disposition, rqst)
    }
}

/// Makes a request of a message that has others in front of it.
#[inline(never)]
fn request_continued(
    connection: &Connection,
    continued: KBox<Continued>,
    rqst: &mut SvcRqst<'_>,
) -> Result<Option<(Request, Argument)>> {
    let Continued {
        message,
        undecoded,
        front,
    } = &*continued;
    let disposition = dispose(connection, message, *undecoded, Some(front), rqst);
    if let Disposition::Later(xid, turn) = disposition {
        stall(connection, RecvItem::Continued(continued), xid, turn);
        return Ok(None);
    }
    // What is needed of the others was copied.
    let Continued { message, .. } = KBox::into_inner(continued);
    settle(connection, message, disposition, rqst)
}

/// Stalls a Call until RDMA Reads of others have ended. If there are none, there will never be
/// enough regions.
fn stall(connection: &Connection, call: RecvItem, xid: u32, turn: ReadTicket) {
    if let Err(call) = connection.qp.handler().stall(call, turn) {
        drop(call);
        connection.refuse(refusal(xid, Reason::Chunks));
    }
}

/// Carries out the next step for a message.
fn settle(
    connection: &Connection,
    message: RecvBuf,
    disposition: Disposition<'_>,
    rqst: &mut SvcRqst<'_>,
) -> Result<Option<(Request, Argument)>> {
    match disposition {
        Disposition::Execute(ctx, offset) => {
            return Ok(Some(((message, ctx), Argument::Inline { offset })));
        }
        Disposition::Given(ctx) => return Ok(Some(((message, ctx), Argument::Long))),
        Disposition::Read(transfer, ctx, place) => {
            let Ok(reading) = PendingRead::new((message, ctx), place) else {
                // Its regions are freed first: Calls that wait for some are tried again.
                drop(transfer);
                connection.qp.handler().end_read();
                connection.close();
                return Err(ENOMEM);
            };
            return read(connection, transfer, reading, rqst);
        }
        Disposition::Later(xid, turn) => stall(connection, RecvItem::Message(message), xid, turn),
        Disposition::Refuse(refusal) => {
            drop(message);
            connection.refuse(refusal);
        }
        Disposition::Done => {
            drop(message);
            connection.receive_more();
        }
        Disposition::Close(e) => {
            connection.close();
            return Err(e);
        }
    }
    Ok(None)
}

/// Decides the next step for a message, which may have others in front of it.
fn dispose<'c>(
    connection: &'c Connection,
    message: &RecvBuf,
    undecoded: Undecoded,
    front: Option<&Kept>,
    rqst: &mut SvcRqst<'_>,
) -> Disposition<'c> {
    let decoded = connection.qp.decode(message.bytes(), undecoded);
    trace::decoded(message, &decoded);
    match &decoded {
        Ok(xdr::Message::Call(call)) => {
            if connection.qp.handler().is_poisonous(call.xid) {
                return Disposition::Refuse(refusal(call.xid, Reason::Poisonous));
            }
            let ctx = ReplyCtx::new(call, connection.invalidates);
            match (&call.payload, front) {
                (CallPayload::Inline(inline), None) if call.reads.is_empty() => {
                    Disposition::Execute(ctx, inline.offset)
                }
                (CallPayload::Inline(inline), Some(front)) if call.reads.is_empty() => {
                    dispose_continued(message, inline.bytes, front, ctx, rqst)
                }
                _ => dispose_reads(connection, message, call, front, ctx, rqst),
            }
        }
        Ok(xdr::Message::Reply(reply)) => dispose_reply(connection, reply, front, rqst),
        Ok(xdr::Message::Error(error)) => {
            reverse::refused(connection, rqst, error.xid);
            Disposition::Done
        }
        Err(rejected) => dispose_rejected(connection, rejected),
    }
}

/// Decides the next step for a Call in several messages, which is gathered.
#[inline(never)]
fn dispose_continued<'c>(
    message: &RecvBuf,
    last: &[u8],
    front: &Kept,
    ctx: ReplyCtx,
    rqst: &mut SvcRqst<'_>,
) -> Disposition<'c> {
    let len = front.len() + last.len();
    let gathered = take_memory(message, len, rqst).and_then(|mut memory| {
        copy_parts(Some(front), last, 0..len, &mut memory, 0)?;
        rqst.give(memory)
    });
    match gathered {
        Ok(_) => Disposition::Given(ctx),
        Err(EMSGSIZE) => Disposition::Refuse(refusal(ctx.xid, Reason::Chunks)),
        Err(e) => Disposition::Close(e),
    }
}

/// Copies a range of a Payload stream, whose last part is `last`, to an offset of `memory`.
fn copy_parts(
    front: Option<&Kept>,
    last: &[u8],
    mut range: Range<usize>,
    memory: &mut TransferMemory,
    mut at: usize,
) -> Result {
    let front = front.into_iter().flat_map(|front| front.iter());
    for part in Iterator::chain(front, [last]) {
        let n = part.len();
        if let Some(bytes) = part.get(range.start.min(n)..range.end.min(n)) {
            memory.copy_from(at, bytes)?;
            at += bytes.len();
        }
        range = range.start.saturating_sub(n)..range.end.saturating_sub(n);
    }
    match range.end {
        0 => Ok(()),
        _ => Err(EMSGSIZE),
    }
}

/// Decides the next step for a malformed message.
#[inline(never)]
fn dispose_rejected<'c>(connection: &Connection, rejected: &Rejected) -> Disposition<'c> {
    let (_, answer) = connection
        .qp
        .judge(rejected, |xid| reverse::awaits(connection, xid));
    answer.map_or(Disposition::Done, Disposition::Refuse)
}

/// Decides the next step for a Reply to a Call of this end.
#[inline(never)]
fn dispose_reply<'c>(
    connection: &Connection,
    reply: &Reply<'_>,
    front: Option<&Kept>,
    rqst: &mut SvcRqst<'_>,
) -> Disposition<'c> {
    match reply.payload {
        // Calls of this end offer no chunks, so that a Reply with chunks is a bad one.
        ReplyPayload::Inline(inline) => {
            let no_chunks = reply.nothing_written().and(reply.no_reply_written());
            if no_chunks.is_ok() {
                let front = front.into_iter().flat_map(|front| front.iter());
                let parts = Iterator::chain(front, [inline.bytes]);
                reverse::replied(connection, rqst, reply.xid, reply.credits, parts);
            }
            Disposition::Done
        }
        // No Reply chunk was offered, so this is a Call without a message (RFC 8166,
        // section 4.5.2), or a bad Reply.
        ReplyPayload::ReplyChunk | ReplyPayload::Provided(_) => {
            refuse_call(connection, refusal(reply.xid, Reason::Chunks))
        }
    }
}

/// Decides the next step for a message without a direction: an error message is the answer, unless
/// a Call of this end awaits a Reply with its XID. Then it is taken for a bad Reply, which is
/// discarded silently (RFC 8166, sections 4.2.4 and 4.5).
fn refuse_call<'c>(connection: &Connection, refusal: Refusal) -> Disposition<'c> {
    if connection.qp.tells_direction() || reverse::awaits(connection, refusal.xid) {
        Disposition::Done
    } else {
        Disposition::Refuse(refusal)
    }
}

/// Returns the refusal of the Call with this XID.
fn refusal(xid: u32, reason: Reason) -> Refusal {
    Refusal { xid, reason }
}

/// Decides the next step for a Call with Read chunks.
#[inline(never)]
fn dispose_reads<'c>(
    connection: &'c Connection,
    message: &RecvBuf,
    call: &Call<'_>,
    front: Option<&Kept>,
    ctx: ReplyCtx,
    rqst: &mut SvcRqst<'_>,
) -> Disposition<'c> {
    // What is not all at hand is checked when it was read.
    if let (CallPayload::Inline(inline), None) = (&call.payload, front) {
        if !call.reads.reduces_eligible_inline(inline.bytes) {
            return Disposition::Refuse(refusal(call.xid, Reason::NotEligible));
        }
    }
    let handler = connection.qp.handler();
    let turn = handler.begin_read();
    match prepare_reads(connection, message, call, front, rqst) {
        Ok((transfer, place)) => Disposition::Read(transfer, ctx, place),
        // This ends the Reads of this ticket, too.
        Err(e) if e == EAGAIN => Disposition::Later(call.xid, turn),
        Err(e) => {
            handler.end_read();
            if e == EMSGSIZE {
                Disposition::Refuse(refusal(call.xid, Reason::Chunks))
            } else {
                Disposition::Close(e)
            }
        }
    }
}

fn read(
    connection: &Connection,
    transfer: RwBuilder<'_, Responder>,
    mut reading: KBox<PendingRead>,
    rqst: &mut SvcRqst<'_>,
) -> Result<Option<(Request, Argument)>> {
    let (handler, xid) = (connection.qp.handler(), reading.request.1.xid);
    if transfer.is_empty() {
        // All of its chunks are.
        reading.memory = Some(transfer.into_memory());
        handler.end_read();
        return read_done(connection, reading, rqst);
    }
    let reads = transfer.pieces();
    let Err(e) = transfer.read(Some(xid), reading) else {
        count_all(Counter::Read, reads);
        return Ok(None);
    };
    handler.end_read();
    if e == EMSGSIZE {
        connection.refuse(refusal(xid, Reason::Chunks));
        return Ok(None);
    }
    connection.close();
    Err(e)
}

/// Returns a Call that was read completely, with its argument; none if it must not be executed.
fn read_done(
    connection: &Connection,
    reading: KBox<PendingRead>,
    rqst: &mut SvcRqst<'_>,
) -> Result<Option<(Request, Argument)>> {
    let PendingRead {
        request,
        place,
        memory,
    } = KBox::into_inner(reading);
    let right = |memory: &TransferMemory| match place {
        Place::Within { .. } => true,
        Place::LongCall => verify_long_call(&request, memory),
    };
    let argument = match (memory.filter(right), place) {
        (Some(memory), Place::Within { offset, position }) => {
            Argument::reduced(offset, position, rqst.give(memory)?)
        }
        (Some(memory), Place::LongCall) => {
            rqst.give(memory)?;
            Argument::Long
        }
        (None, _) => {
            let (message, ctx) = request;
            drop(message);
            connection.refuse(refusal(ctx.xid, Reason::NotEligible));
            return Ok(None);
        }
    };
    svcrdma_read_finished(|| (&request.0).into());
    Ok(Some((request, argument)))
}

/// Returns whether a message that was read agrees with its header, which came before it.
// Not inlined: its buffer would be on the stack of all requests.
#[inline(never)]
fn verify_long_call((message, ctx): &Request, memory: &TransferMemory) -> bool {
    let mut beginning = [0; BEGINNING];
    let len = memory.len().min(BEGINNING);
    let Some(rpc) = beginning.get_mut(..len) else {
        return false;
    };
    if memory.copy_to(0, rpc).is_err() {
        return false;
    }
    let is_call = RpcPrefix::peek(rpc)
        .is_some_and(|prefix| prefix.xid == ctx.xid && prefix.direction() == Some(Direction::Call));
    let word = |position: u64, _| {
        let mut word = [0; 4];
        let position = usize::try_from(position).ok()?;
        memory.copy_to(position, &mut word).ok()?;
        Some(u32::from_be_bytes(word))
    };
    let reads = ReadList::find(message.bytes());
    is_call && reads.is_some_and(|reads| reads.reduces_eligible(rpc, word))
}

/// Prepares the RDMA Reads for the Read chunks of a Call. `EMSGSIZE` for chunks that cannot be
/// served.
fn prepare_reads<'a>(
    connection: &'a Connection,
    message: &RecvBuf,
    call: &Call<'_>,
    front: Option<&Kept>,
    rqst: &mut SvcRqst<'_>,
) -> Result<(RwBuilder<'a, Responder>, Place)> {
    let mut chunks = call.reads.data_chunks();
    let (first, second) = (chunks.next(), chunks.next());
    match (&call.payload, first, second) {
        (CallPayload::Inline(inline), Some(chunk), None) if front.is_none() => {
            let position = chunk.position() as usize;
            if position > inline.bytes.len() {
                return Err(EMSGSIZE);
            }
            let place = Place::Within {
                offset: inline.offset,
                position,
            };
            let length = chunk.length() as usize;
            let mut memory = take_memory(message, length.next_multiple_of(4), rqst)?;
            pad(&mut memory, length)?;
            Ok((read_one(connection, &chunk, memory)?, place))
        }
        (CallPayload::PositionZero(chunk), None, _) => {
            let memory = take_memory(message, chunk.length() as usize, rqst)?;
            Ok((read_one(connection, chunk, memory)?, Place::LongCall))
        }
        _ => {
            let transfer = read_all(connection, message, call, front, rqst)?;
            Ok((transfer, Place::LongCall))
        }
    }
}

/// Takes memory for what is read for a Call. `EMSGSIZE` if the thread has not so much.
fn take_memory(message: &RecvBuf, len: usize, rqst: &mut SvcRqst<'_>) -> Result<TransferMemory> {
    rqst.take_memory(len).inspect_err(|e| {
        if *e == EMSGSIZE {
            svcrdma_page_overrun_err(|| (message.into(), (len / PAGE_SIZE) as u32));
        }
    })
}

/// Writes the padding of what ends there, which a chunk need not bring along (RFC 8166,
/// section 3.4.5.2). The memory is another request's before.
fn pad(memory: &mut TransferMemory, end: usize) -> Result {
    match end.next_multiple_of(4) - end {
        0 => Ok(()),
        padding => memory.copy_from(end, [0; 3].get(..padding).unwrap_or(&[])),
    }
}

/// Prepares to read one chunk, to the front of the memory.
fn read_one<'a>(
    connection: &'a Connection,
    chunk: &ReadChunk<'_>,
    memory: TransferMemory,
) -> Result<RwBuilder<'a, Responder>> {
    let parts = chunk.segment_count();
    let mut transfer = connection.qp.transfer(TransferKind::Read, memory, parts)?;
    SegmentCursor::new(chunk.segments()).add(&mut transfer, 0, chunk.length() as usize)?;
    Ok(transfer)
}

/// The source of the next bytes of a Payload stream.
enum Source<'a, 'b> {
    /// Read from this chunk.
    Chunk(&'b ReadChunk<'a>),
    /// This number of bytes of the reduced Payload stream.
    Stream(usize),
}

/// Calls `each` for the parts of the unreduced Payload stream in order, with their offsets in it.
/// Returns the length of the whole (RFC 8166, section 3.4.5).
fn run_through<'a>(
    call: &Call<'a>,
    mut left: usize,
    mut each: impl FnMut(usize, Source<'a, '_>) -> Result,
) -> Result<usize> {
    let mut end = 0usize;
    for chunk in call.reads.data_chunks() {
        // A chunk that overlaps the one before it, or begins behind the stream, is malformed.
        let position = chunk.position() as usize;
        let gap = position.checked_sub(end).ok_or(EMSGSIZE)?;
        left = left.checked_sub(gap).ok_or(EMSGSIZE)?;
        each(end, Source::Stream(gap))?;
        each(position, Source::Chunk(&chunk))?;
        let padded = (chunk.length() as usize).next_multiple_of(4);
        end = position.checked_add(padded).ok_or(EMSGSIZE)?;
    }
    each(end, Source::Stream(left))?;
    end.checked_add(left).ok_or(EMSGSIZE)
}

/// Prepares to read several chunks, to their places in the unreduced Payload stream.
fn read_all<'a>(
    connection: &'a Connection,
    message: &RecvBuf,
    call: &Call<'_>,
    front: Option<&Kept>,
    rqst: &mut SvcRqst<'_>,
) -> Result<RwBuilder<'a, Responder>> {
    let (inline, stream) = match &call.payload {
        CallPayload::Inline(inline) => (inline.bytes, None),
        CallPayload::PositionZero(chunk) => (&[][..], Some(chunk)),
    };
    let before = front.map_or(0, Kept::len);
    let reduced = stream.map_or(before + inline.len(), |chunk| chunk.length() as usize);
    let length = run_through(call, reduced, |_, _| Ok(()))?;
    let mut memory = take_memory(message, length, rqst)?;
    // Taking one chunk out of another splits a segment of the latter into two parts.
    let mut parts = stream.map_or(0, ReadChunk::segment_count);
    let mut copied = 0;
    run_through(call, reduced, |offset, source| {
        match source {
            Source::Chunk(chunk) => {
                pad(&mut memory, offset + chunk.length() as usize)?;
                parts += chunk.segment_count();
            }
            Source::Stream(len) => match stream {
                Some(_) => parts += 1,
                None => {
                    let range = copied..copied + len;
                    copy_parts(front, inline, range, &mut memory, offset)?;
                    copied += len;
                }
            },
        }
        Ok(())
    })?;
    let mut transfer = connection.qp.transfer(TransferKind::Read, memory, parts)?;
    let mut stream = stream.map(|chunk| SegmentCursor::new(chunk.segments()));
    run_through(call, reduced, |offset, source| {
        match (source, &mut stream) {
            (Source::Chunk(chunk), _) => {
                let length = chunk.length() as usize;
                SegmentCursor::new(chunk.segments()).add(&mut transfer, offset, length)
            }
            (Source::Stream(len), Some(stream)) => stream.add(&mut transfer, offset, len),
            (Source::Stream(_), None) => Ok(()),
        }
    })?;
    Ok(transfer)
}
