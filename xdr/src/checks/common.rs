// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The messages of most RPCs: without chunks, or with one for a payload.

use super::{
    call,
    message,
    reply,
    require,
    Check,
    AMPLE, //
};
use crate::{
    encode_plain,
    vectors,
    CallPayload,
    EncodeError,
    Encoder,
    Inline,
    Limits,
    Message,
    ReadSegment,
    ReplyPayload,
    Segment,
    MIN_HEADER, //
};

/// Returns XID, credits and Payload stream of a message without chunks.
fn bare<'a>(message: &Message<'a>) -> Option<(u32, u32, Inline<'a>)> {
    let (xid, credits, writes, reply_chunk, inline) = match message {
        Message::Call(call) if call.reads.is_empty() => match call.payload {
            CallPayload::Inline(inline) => (
                call.xid,
                call.credits,
                call.writes,
                call.reply_chunk,
                inline,
            ),
            CallPayload::PositionZero(_) => return None,
        },
        Message::Reply(reply) => match reply.payload {
            ReplyPayload::Inline(inline) => (
                reply.xid,
                reply.credits,
                reply.writes,
                reply.reply_chunk,
                inline,
            ),
            ReplyPayload::ReplyChunk | ReplyPayload::Provided(_) => return None,
        },
        _ => return None,
    };
    (writes.is_empty() && reply_chunk.is_none()).then_some((xid, credits, inline))
}

/// Checks that without chunks nothing else is in a message, every other word has to be as it is,
/// and the shortest header is written.
pub fn check_no_chunks() -> Check {
    let mut any = false;
    for &(name, bytes) in vectors::VALID {
        let Some((xid, credits, inline)) = bare(&message(bytes)?) else {
            continue;
        };
        any = true;
        require(inline.offset == MIN_HEADER, name)?;
        require(bytes.get(MIN_HEADER..) == Some(inline.bytes), name)?;

        let mut space = [0x5a; MIN_HEADER + 4];
        let len = encode_plain(&mut space, xid, credits);
        require(len == Ok(MIN_HEADER), name)?;
        let (header, behind) = space.split_at(MIN_HEADER);
        require(
            behind == [0x5a; 4],
            "what is behind the header is left alone",
        )?;
        require(bytes.get(..MIN_HEADER) == Some(header), name)?;

        let mut changed = [0; MIN_HEADER + 8];
        for word in 0..changed.len() / 4 {
            for (to, from) in changed.iter_mut().zip(bytes) {
                *to = *from;
            }
            // Credits may be any.
            let Some(last) = changed
                .get_mut(word.saturating_mul(4).saturating_add(3))
                .filter(|_| word != 2)
            else {
                continue;
            };
            *last ^= 2;
            let refused = Message::decode(&changed, &AMPLE).is_err();
            require(refused, "a word of another value")?;
        }
        let shortest = bytes.get(..MIN_HEADER + 8).ok_or(name)?;
        require(message(shortest).is_ok(), "the shortest payload")?;
        let shorter = bytes.get(..MIN_HEADER + 7).ok_or(name)?;
        require(message(shorter).is_err(), "a shorter payload")?;
    }
    require(any, "there are vectors without chunks")?;
    let mut small = [0; MIN_HEADER - 1];
    let needed = EncodeError::NoRoom {
        needed: MIN_HEADER,
        room: small.len(),
    };
    require(
        encode_plain(&mut small, 1, 1) == Err(needed),
        "too little room",
    )?;
    let mut room = [0; MIN_HEADER];
    require(
        Encoder::nomsg(&mut room, 1, 1)
            .end_reads()
            .end_writes()
            .no_reply_chunk()
            == Err(EncodeError::NoPayload),
        "RDMA_NOMSG without chunks",
    )?;
    check_which()
}

/// Checks that a Call says whether it has chunks.
fn check_which() -> Check {
    require(call(vectors::SHORT_CALL)?.has_no_chunks(), "a short Call")?;
    for bytes in [
        vectors::READ_CHUNK,
        vectors::ONE_WRITE_CHUNK,
        vectors::REPLY_CHUNK,
        vectors::LONG_CALL,
    ] {
        require(!call(bytes)?.has_no_chunks(), "a Call with chunks")?;
    }
    Ok(())
}

/// Limits that one Read segment just meets.
const ONE_READ_SEGMENT: Limits = Limits {
    read_segments: 1,
    read_chunks: 1,
    write_chunks: 0,
    write_segments: 0,
    chunk_segments: 1,
    read_chunk_bytes: 4096,
    read_list_bytes: 4096,
    write_chunk_bytes: 0,
    reply_chunk_bytes: 0,
};

/// Limits that one Write chunk just meets.
const ONE_WRITE_CHUNK: Limits = Limits {
    read_segments: 0,
    read_chunks: 0,
    write_chunks: 1,
    write_segments: 2,
    chunk_segments: 2,
    read_chunk_bytes: 0,
    read_list_bytes: 0,
    write_chunk_bytes: 5096,
    reply_chunk_bytes: 0,
};

/// Checks messages with a single chunk, as NFS READ and WRITE have them.
pub fn check_single_chunk() -> Check {
    for (bytes, limits) in [
        (vectors::ONE_READ_SEGMENT, ONE_READ_SEGMENT),
        (vectors::ONE_WRITE_CHUNK, ONE_WRITE_CHUNK),
        (vectors::ONE_WRITE_CHUNK_RETURNED, ONE_WRITE_CHUNK),
    ] {
        let decoded = Message::decode(bytes, &limits);
        require(decoded.is_ok(), "just within the limits")?;
    }

    let write = call(vectors::ONE_READ_SEGMENT)?;
    let segment = Segment {
        handle: 0xe01,
        length: 4096,
        offset: 0x7f00_1234_5000,
    };
    require(
        write.reads.segments().eq([ReadSegment {
            position: 88,
            segment,
        }]),
        "the Read segment",
    )?;
    require(
        write.xid == vectors::XID && write.credits == 128,
        "fixed fields of a WRITE",
    )?;
    require(
        write.writes.is_empty() && write.reply_chunk.is_none(),
        "no other chunk than the Read chunk",
    )?;
    let CallPayload::Inline(inline) = write.payload else {
        return Err("a WRITE is inline");
    };
    require(ends_with(vectors::ONE_READ_SEGMENT, inline, 88), "a WRITE")?;

    let read = call(vectors::ONE_WRITE_CHUNK)?;
    let CallPayload::Inline(inline) = read.payload else {
        return Err("a READ is inline");
    };
    require(ends_with(vectors::ONE_WRITE_CHUNK, inline, 40), "a READ")?;
    let result = reply(vectors::ONE_WRITE_CHUNK_RETURNED)?;
    let ReplyPayload::Inline(inline) = result.payload else {
        return Err("the Reply is inline");
    };
    require(
        ends_with(vectors::ONE_WRITE_CHUNK_RETURNED, inline, 24),
        "the Reply to a READ",
    )?;
    let chunk = read.writes.chunks().next().ok_or("the Write chunk")?;
    require(
        result.written(chunk.segments()) == Ok(5000),
        "octets in the Write chunk",
    )
}

/// Returns whether the Payload stream is the last `len` octets of a message.
fn ends_with(message: &[u8], inline: Inline<'_>, len: usize) -> bool {
    message.get(inline.offset..) == Some(inline.bytes) && inline.bytes.len() == len
}
