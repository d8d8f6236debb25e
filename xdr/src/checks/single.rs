// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Messages with a single chunk take the short way.

use super::{
    call,
    reply,
    require,
    Check,
    AMPLE, //
};
use crate::{
    vectors,
    CallPayload,
    FixedHeader,
    Inline,
    Limits,
    Message,
    ReadSegment,
    ReplyPayload,
    Segment, //
};

/// Nothing may be over the limits, and nothing need be below them.
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

/// The same, of a Write chunk.
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

/// Those that the short way is for, with limits that just let them through.
const SINGLE: &[(&[u8], Limits)] = &[
    (vectors::ONE_READ_SEGMENT, ONE_READ_SEGMENT),
    (vectors::ONE_WRITE_CHUNK, ONE_WRITE_CHUNK),
    (vectors::ONE_WRITE_CHUNK_RETURNED, ONE_WRITE_CHUNK),
];

fn takes_short_way(bytes: &[u8], limits: &Limits) -> bool {
    bytes.split_first_chunk().is_some_and(|(fixed, lists)| {
        Message::with_single_chunk(&FixedHeader::from_wire(fixed), lists, limits).is_some()
    })
}

/// The messages of most READs and WRITEs, and no others, take the short way, and are what they say.
pub fn check_single() -> Check {
    for &(name, bytes) in vectors::VALID {
        let single = SINGLE.iter().any(|&(one, _)| one == bytes);
        require(takes_short_way(bytes, &AMPLE) == single, name)?;
    }
    for (bytes, limits) in SINGLE {
        require(takes_short_way(bytes, limits), "just within the limits")?;
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

/// Whether the Payload stream is the last `len` octets of a message.
fn ends_with(message: &[u8], inline: Inline<'_>, len: usize) -> bool {
    message.get(inline.offset..) == Some(inline.bytes) && inline.bytes.len() == len
}
