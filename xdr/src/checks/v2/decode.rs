// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Messages, decoded.

use super::{
    accepts_next,
    first,
    reencode,
    refuses,
    require,
    with_word,
    Check,
    AMPLE,
    BOUNDS,
    NO_CHUNKS, //
};
use crate::{
    v2::{
        Bounds,
        Received,
        Receiver, //
    },
    vectors::{
        v2 as vectors,
        XID, //
    },
    CallPayload,
    DecodeError,
    FixedHeader,
    Limits,
    Message,
    ReplyPayload, //
};

/// Checks that the messages of a connection are what they are made as, that each header encodes to
/// the same octets, and where the Payload streams are.
pub fn check_connection() -> Check {
    let mut receiver = Receiver::new(BOUNDS);
    for &(name, bytes) in vectors::CONNECTION {
        let received = receiver.receive(bytes).map_err(|_| name)?;
        let header = FixedHeader::peek(bytes).ok_or(name)?;
        let mut space = [0; 256];
        let length = reencode(&header, &received, &mut space).map_err(|_| name)?;
        require(bytes.get(..length) == space.get(..length), name)?;
        let payload = match received {
            Received::Fragment(fragment) => Some((fragment.payload, 0)),
            Received::Message { message, before } => match message {
                Message::Call(call) => match call.payload {
                    CallPayload::Inline(inline) => Some((inline, before)),
                    CallPayload::PositionZero(_) => None,
                },
                Message::Reply(reply) => match reply.payload {
                    ReplyPayload::Inline(inline) => Some((inline, before)),
                    ReplyPayload::ReplyChunk | ReplyPayload::Provided(_) => None,
                },
                Message::Error(_) => None,
            },
            Received::Grant(_) | Received::Properties { .. } => None,
        };
        let Some((payload, before)) = payload else {
            require(length == bytes.len(), name)?;
            continue;
        };
        require(payload.offset == length, name)?;
        require(bytes.get(length..) == Some(payload.bytes), name)?;
        let expected = match name {
            "last fragment" => 28,
            "last of a reply" => 20,
            _ => 0,
        };
        require(before == expected, name)?;
    }
    check_external()
}

/// Checks the chunks of a Call in a Call chunk, and of its Reply.
fn check_external() -> Check {
    let Ok(Received::Message {
        message: Message::Call(call),
        before: 0,
    }) = first(vectors::EXTERNAL_CALL)
    else {
        return Err("a Call");
    };
    let CallPayload::PositionZero(chunk) = call.payload else {
        return Err("a Call chunk");
    };
    require(chunk.length() == 4100, "length of the Call chunk")?;
    require(chunk.segment_count() == 2, "segments of the Call chunk")?;
    let mut reads = call.reads.chunks();
    let read = reads.next().ok_or("a Read chunk")?;
    require(read.position() == 200 && read.length() == 512, "Read chunk")?;
    require(reads.next().is_none(), "the Call chunk is no Read chunk")?;
    require(
        call.inv_handle == Some(0x6666_6666),
        "a handle of the Call chunk",
    )?;
    let Ok(Received::Message {
        message: Message::Reply(reply),
        ..
    }) = first(vectors::EXTERNAL_REPLY)
    else {
        return Err("a Reply");
    };
    let octets = reply.reply_chunk.map(|chunk| chunk.length());
    require(octets == Some(5000), "octets in the Reply chunk")
}

/// Checks that no message is accepted when octets at its end are missing, but where they are of the
/// Payload stream.
pub fn check_truncation() -> Check {
    for (name, bytes) in vectors::CONNECTION {
        let mut receiver = Receiver::new(BOUNDS);
        let continued: &[&[u8]] = match *name {
            "second fragment" => &[vectors::FIRST_FRAGMENT],
            "last fragment" => &[vectors::FIRST_FRAGMENT, vectors::SECOND_FRAGMENT],
            "last of a reply" => &[vectors::FIRST_OF_REPLY],
            _ => &[],
        };
        for before in continued {
            require(receiver.receive(before).is_ok(), name)?;
        }
        let header = FixedHeader::peek(bytes).ok_or(*name)?;
        let received = receiver.clone().receive(bytes).map_err(|_| *name)?;
        let mut space = [0; 256];
        let length = reencode(&header, &received, &mut space).map_err(|_| *name)?;
        let has_payload = length < bytes.len();
        let shortest = length.saturating_add(if has_payload { 4 } else { 0 });
        for end in 0..shortest.min(bytes.len()) {
            let cut = bytes.get(..end).ok_or(*name)?;
            require(receiver.clone().receive(cut).is_err(), name)?;
        }
        require(end_is_ignored(&receiver, bytes) != has_payload, name)?;
    }
    Ok(())
}

/// Returns whether a message is the same with octets behind it.
fn end_is_ignored(receiver: &Receiver, bytes: &[u8]) -> bool {
    let mut longer = [0; 260];
    let Some(front) = longer.get_mut(..bytes.len()) else {
        return false;
    };
    if super::super::put(front, bytes).is_err() {
        return false;
    }
    let longer = longer.get(..bytes.len().saturating_add(4));
    let lengths = |bytes: &[u8]| match receiver.clone().receive(bytes) {
        Ok(Received::Fragment(fragment)) => Some(fragment.payload.bytes.len()),
        Ok(Received::Message { message, .. }) => match message {
            Message::Call(call) => match call.payload {
                CallPayload::Inline(inline) => Some(inline.bytes.len()),
                CallPayload::PositionZero(_) => Some(0),
            },
            Message::Reply(reply) => match reply.payload {
                ReplyPayload::Inline(inline) => Some(inline.bytes.len()),
                ReplyPayload::ReplyChunk | ReplyPayload::Provided(_) => Some(0),
            },
            Message::Error(_) => Some(0),
        },
        Ok(_) => Some(0),
        Err(_) => None,
    };
    longer.is_some_and(|longer| lengths(longer) == lengths(bytes))
}

/// A message, the number of a word in it, a value that this may not have, and why.
const MALFORMED: &[(&str, &[u8], usize, u32, DecodeError)] = &[
    ("version 1", vectors::CALL, 1, 1, DecodeError::Version(1)),
    ("version 3", vectors::CALL, 1, 3, DecodeError::Version(3)),
    ("type 3", vectors::CALL, 3, 3, DecodeError::Procedure(3)),
    ("type 14", vectors::CALL, 3, 14, DecodeError::Procedure(14)),
    (
        "Read list of 2",
        vectors::CALL,
        5,
        2,
        DecodeError::Discriminator(2),
    ),
    (
        "Read list goes on",
        vectors::CALL,
        5,
        1,
        DecodeError::Discriminator(100_003),
    ),
    (
        "Write list of 2",
        vectors::REPLY,
        4,
        2,
        DecodeError::Discriminator(2),
    ),
    ("another XID", vectors::CALL, 8, 1, DecodeError::XidMismatch),
    (
        "a Reply in a Call",
        vectors::CALL,
        9,
        1,
        DecodeError::MsgType(1),
    ),
    (
        "a Call in a Reply",
        vectors::REPLY,
        6,
        0,
        DecodeError::MsgType(0),
    ),
    (
        "no such handle",
        vectors::CHUNKS,
        4,
        7,
        DecodeError::InvHandle(7),
    ),
    (
        "Position zero",
        vectors::CHUNKS,
        6,
        0,
        DecodeError::PositionZeroInline,
    ),
    (
        "Position 45",
        vectors::CHUNKS,
        6,
        45,
        DecodeError::PositionUnaligned(45),
    ),
    (
        "Position 36",
        vectors::CHUNKS,
        6,
        36,
        DecodeError::PositionInHeader(36),
    ),
    (
        "descending Positions",
        vectors::CHUNKS,
        6,
        48,
        DecodeError::PositionOrder(44),
    ),
    (
        "Position past the end",
        vectors::CHUNKS,
        12,
        5144,
        DecodeError::PositionPastEnd(5144),
    ),
    (
        "a segment wraps",
        vectors::CHUNKS,
        36,
        u32::MAX,
        DecodeError::SegmentWraps,
    ),
    (
        "Call chunk at 4",
        vectors::EXTERNAL_CALL,
        6,
        4,
        DecodeError::CallChunkPosition(4),
    ),
    (
        "Call chunk at 44",
        vectors::EXTERNAL_CALL,
        6,
        44,
        DecodeError::CallChunkPosition(44),
    ),
    (
        "no Call chunk",
        vectors::EXTERNAL_CALL,
        5,
        0,
        DecodeError::Discriminator(0x6666_6666),
    ),
    (
        "a short Call chunk",
        vectors::EXTERNAL_CALL,
        8,
        0,
        DecodeError::ShortPayload,
    ),
    (
        "no such handle, external",
        vectors::EXTERNAL_CALL,
        4,
        7,
        DecodeError::InvHandle(7),
    ),
    (
        "behind a Call chunk",
        vectors::EXTERNAL_CALL,
        19,
        4104,
        DecodeError::PositionPastEnd(4104),
    ),
    (
        "a Call chunk wraps",
        vectors::EXTERNAL_CALL,
        8,
        u32::MAX,
        DecodeError::ReadChunkBytes,
    ),
    (
        "Read chunk at zero",
        vectors::EXTERNAL_CALL,
        19,
        0,
        DecodeError::PositionZeroInline,
    ),
    (
        "no Reply chunk",
        vectors::EXTERNAL_REPLY,
        5,
        0,
        DecodeError::NoPayload,
    ),
    (
        "a short Reply",
        vectors::EXTERNAL_REPLY,
        8,
        7,
        DecodeError::ShortPayload,
    ),
    ("no octets", &[0; 0], 0, 0, DecodeError::Short),
];

/// Checks words of other values than a message may have, one at a time.
pub fn check_malformed() -> Check {
    use DecodeError as Reason;
    for &(name, bytes, word, value, reason) in MALFORMED {
        let mut space = [0; 256];
        let changed = match bytes {
            [] => bytes,
            _ => with_word(bytes, word, value, &mut space)?,
        };
        refuses(changed, reason, name)?;
    }
    let header = FixedHeader::peek(vectors::CALL).ok_or("a prefix")?;
    require(header.xid == XID, "the XID of the vectors")?;
    refuses(vectors::NO_CALL_CHUNK, Reason::NoPayload, "no Call chunk")?;
    let mut space = [0; 256];
    let least = with_word(vectors::EXTERNAL_REPLY, 8, 8, &mut space)?;
    require(first(least).is_ok(), "the shortest Reply")?;
    let unknown = with_word(vectors::GRANT, 3, 14, &mut space)?;
    require(unknown.len() == 16, "the shortest message")?;
    refuses(unknown, Reason::Procedure(14), "an unknown type alone")?;
    let reply = with_word(vectors::CHUNKS, 4, 0x5555_5555, &mut space)?;
    require(first(reply).is_ok(), "the handle of the Reply chunk")?;
    check_ends()?;
    let short = vectors::CALL.get(..32 + 4).ok_or("a Call of a word")?;
    refuses(short, Reason::ShortPayload, "a Call of one word")?;
    let none = vectors::CALL.get(..32).ok_or("a Call of no word")?;
    refuses(none, Reason::Truncated, "a Call of no word")
}

/// Limits that are just too small for a Call, and why it is refused.
const LIMITED: &[(&str, Limits, &[u8], DecodeError)] = &[
    (
        "octets of a Call chunk",
        Limits {
            read_chunk_bytes: 4095,
            ..AMPLE
        },
        vectors::EXTERNAL_ALONE,
        DecodeError::ReadChunkBytes,
    ),
    (
        "segments of a Call chunk",
        Limits {
            chunk_segments: 0,
            ..AMPLE
        },
        vectors::EXTERNAL_ALONE,
        DecodeError::ChunkSegments,
    ),
    (
        "a Call chunk",
        Limits {
            read_chunks: 0,
            ..AMPLE
        },
        vectors::EXTERNAL_ALONE,
        DecodeError::ReadChunks,
    ),
    (
        "Read segments",
        Limits {
            read_segments: 1,
            ..AMPLE
        },
        vectors::CHUNKS,
        DecodeError::ReadSegments,
    ),
    (
        "Read segments beside a Call chunk",
        Limits {
            read_segments: 2,
            ..AMPLE
        },
        vectors::EXTERNAL_CALL,
        DecodeError::ReadSegments,
    ),
    (
        "Read chunks",
        Limits {
            read_chunks: 0,
            ..AMPLE
        },
        vectors::CHUNKS,
        DecodeError::ReadChunks,
    ),
    (
        "Read chunks beside a Call chunk",
        Limits {
            read_chunks: 1,
            ..AMPLE
        },
        vectors::EXTERNAL_CALL,
        DecodeError::ReadChunks,
    ),
    (
        "octets beside a Call chunk",
        Limits {
            read_list_bytes: 4611,
            ..AMPLE
        },
        vectors::EXTERNAL_CALL,
        DecodeError::ReadListBytes,
    ),
    (
        "Write chunks",
        Limits {
            write_chunks: 1,
            ..AMPLE
        },
        vectors::CHUNKS,
        DecodeError::WriteChunks,
    ),
    (
        "Write segments",
        Limits {
            write_segments: 1,
            ..AMPLE
        },
        vectors::CHUNKS,
        DecodeError::WriteSegments,
    ),
    (
        "segments of a chunk",
        Limits {
            chunk_segments: 1,
            ..AMPLE
        },
        vectors::CHUNKS,
        DecodeError::ChunkSegments,
    ),
    (
        "octets of a Write chunk",
        Limits {
            write_chunk_bytes: 4999,
            ..AMPLE
        },
        vectors::CHUNKS,
        DecodeError::WriteChunkBytes,
    ),
    (
        "octets of a Reply chunk",
        Limits {
            reply_chunk_bytes: 8191,
            ..AMPLE
        },
        vectors::CHUNKS,
        DecodeError::ReplyChunkBytes,
    ),
];

/// Checks that each bound holds, and that what is just within it is accepted.
pub fn check_limits() -> Check {
    for &(name, calls, bytes, reason) in LIMITED {
        let tight = Bounds { calls, ..BOUNDS };
        let found = Receiver::new(tight).receive(bytes);
        require(found.err().map(|r| r.reason) == Some(reason), name)?;
    }
    check_limits_of_replies()?;
    let just = Limits {
        read_segments: 3,
        read_chunks: 2,
        write_chunks: 2,
        write_segments: 2,
        chunk_segments: 2,
        read_chunk_bytes: 5097,
        read_list_bytes: 5097,
        write_chunk_bytes: 5000,
        reply_chunk_bytes: 65536,
    };
    let mut receiver = Receiver::new(Bounds {
        calls: just,
        ..BOUNDS
    });
    for bytes in [vectors::CHUNKS, vectors::EXTERNAL_CALL] {
        require(receiver.receive(bytes).is_ok(), "just within the limits")?;
    }
    Ok(())
}

/// Checks that Replies have limits of their own, and that what every responder takes is within
/// those of version 1 (the binding, section 5.1.2.2).
fn check_limits_of_replies() -> Check {
    let replies = [vectors::CHUNKS_RETURNED, vectors::EXTERNAL_REPLY];
    let calls = [vectors::CHUNKS, vectors::EXTERNAL_CALL];
    for (replies_have, calls_have) in [(NO_CHUNKS, AMPLE), (AMPLE, NO_CHUNKS)] {
        let bounds = Bounds {
            calls: calls_have,
            replies: replies_have,
            ..BOUNDS
        };
        for bytes in replies {
            let fits = Receiver::new(bounds).receive(bytes).is_ok();
            require(fits == (replies_have == AMPLE), "limits of Replies")?;
        }
        for bytes in calls {
            let fits = Receiver::new(bounds).receive(bytes).is_ok();
            require(fits == (calls_have == AMPLE), "limits of Calls")?;
        }
    }
    let floor = Bounds {
        calls: Limits::floor(1 << 20),
        ..BOUNDS
    };
    let taken = Receiver::new(floor).receive(vectors::EXTERNAL_CALL).is_ok();
    require(taken, "a Call chunk, a Read chunk and a Reply chunk")
}

/// Checks Positions at the end of a Payload stream, whole and continued, and that a Call in a Call
/// chunk is not all in the message.
fn check_ends() -> Check {
    let mut space = [0; 256];
    let mut other = [0; 256];
    let one = with_word(vectors::CHUNKS, 6, 48, &mut space)?;
    let behind = with_word(one, 12, 48, &mut other)?;
    refuses(
        behind,
        DecodeError::PositionPastEnd(48),
        "a word behind the end",
    )?;
    for (position, fits) in [(52, true), (56, false)] {
        let mut receiver = Receiver::new(BOUNDS);
        for bytes in [vectors::FIRST_FRAGMENT, vectors::SECOND_FRAGMENT] {
            accepts_next(&mut receiver, bytes, "a fragment")?;
        }
        let last = with_word(vectors::LAST_FRAGMENT, 6, position, &mut space)?;
        let reason = receiver.receive(last).err().map(|refused| refused.reason);
        let expected = (!fits).then_some(DecodeError::PositionPastEnd(position));
        require(reason == expected, "the end of a continued Call")?;
    }
    let Ok(Received::Message {
        message: Message::Call(call),
        ..
    }) = first(vectors::EXTERNAL_ALONE)
    else {
        return Err("a Call");
    };
    require(!call.has_no_chunks(), "a Call chunk is a chunk")
}
