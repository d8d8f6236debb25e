// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The encoder writes the golden vectors, and says what it cannot write.

use super::{
    call,
    message,
    reencode,
    require,
    Check, //
};
use crate::{
    lists_size,
    vectors,
    CallPayload,
    EncodeError,
    Encoder,
    ErrorMessage,
    Message,
    Offer,
    PrivateData,
    RdmaError,
    ReplyPayload,
    Segment,
    MIN_HEADER, //
};

/// More than the longest header among the vectors.
const SPACE: usize = 512;

/// Octet that no encoder writes by itself, to see what it left alone.
const UNTOUCHED: u8 = 0x5a;

/// Returns the octets of the header of a valid message.
fn header_len(message: &Message<'_>, bytes: &[u8]) -> usize {
    match message {
        Message::Call(call) => match call.payload {
            CallPayload::Inline(inline) => inline.offset,
            CallPayload::PositionZero(_) => bytes.len(),
        },
        Message::Reply(reply) => match reply.payload {
            ReplyPayload::Inline(inline) => inline.offset,
            ReplyPayload::ReplyChunk | ReplyPayload::Provided(_) => bytes.len(),
        },
        Message::Error(_) => bytes.len(),
    }
}

/// Checks that every vector decodes, encodes again to the same octets, and nothing is written
/// behind them.
pub fn check_encode_vectors() -> Check {
    for &(name, bytes) in vectors::VALID {
        let message = message(bytes)?;
        let mut space = [UNTOUCHED; SPACE];
        let len = reencode(&message, &mut space).map_err(|_| name)?;
        require(len == header_len(&message, bytes), name)?;
        let (written, behind) = space.split_at_checked(len).ok_or(name)?;
        require(Some(written) == bytes.get(..len), name)?;
        require(behind.iter().all(|&octet| octet == UNTOUCHED), name)?;
        if let Message::Call(call) = &message {
            require(Offer::find(bytes) == Some(call.offer()), name)?;
            let none = call.writes.is_empty() && call.reply_chunk.is_none();
            require(call.offer().is_empty() == none, name)?;
        }
    }
    // Whole chunks from slices give the same header as one segment at a time.
    let segments = [
        Segment {
            handle: 0x1111_1111,
            length: 4096,
            offset: 0x7f00_1234_5000,
        },
        Segment {
            handle: 0x2222_2222,
            length: 4096,
            offset: 0x7f00_2234_5000,
        },
        Segment {
            handle: 0x3333_3333,
            length: 1001,
            offset: 0xffff_ffff_0000_0000,
        },
    ];
    let mut space = [UNTOUCHED; SPACE];
    let mut encoder = Encoder::msg(&mut space, vectors::XID, 128);
    encoder.read_chunk(88, segments.as_slice());
    let len = encoder
        .end_reads()
        .end_writes()
        .no_reply_chunk()
        .map_err(|_| "Read chunk from a slice")?;
    require(
        len == 100 && space.get(..len) == vectors::READ_CHUNK.get(..len),
        "Read chunk from a slice",
    )
}

/// Checks that with too little room the error says how much is needed, and nothing is written
/// outside the room.
pub fn check_encode_room() -> Check {
    for &(name, bytes) in vectors::VALID {
        let message = message(bytes)?;
        let needed = header_len(&message, bytes);
        for room in 0..needed {
            let mut space = [UNTOUCHED; SPACE];
            let buffer = space.get_mut(..room).ok_or(name)?;
            require(
                reencode(&message, buffer) == Err(EncodeError::NoRoom { needed, room }),
                name,
            )?;
            let behind = space.get(room..).ok_or(name)?;
            require(behind.iter().all(|&octet| octet == UNTOUCHED), name)?;
        }
        let mut space = [UNTOUCHED; SPACE];
        let buffer = space.get_mut(..needed).ok_or(name)?;
        require(reencode(&message, buffer) == Ok(needed), name)?;
    }
    let mut small = [0; 7];
    require(
        PrivateData::DEFAULT.encode(&mut small) == Err(EncodeError::NoRoom { needed: 8, room: 7 }),
        "room for private data",
    )?;
    let error = ErrorMessage {
        xid: 1,
        version: 1,
        credits: 1,
        error: RdmaError::Chunk,
    };
    require(
        error.encode(&mut small)
            == Err(EncodeError::NoRoom {
                needed: 20,
                room: 7,
            }),
        "room for an error message",
    )
}

/// Checks that headers that no receiver would accept are not written.
pub fn check_encode_refused() -> Check {
    let segment = [Segment::default()];
    let mut space = [0; SPACE];
    for position in [0, 1, 36, 42, u32::MAX] {
        let mut encoder = Encoder::msg(&mut space, 1, 1);
        encoder.read_chunk(position, segment);
        require(
            encoder.end_reads().end_writes().no_reply_chunk()
                == Err(EncodeError::Position(position)),
            "Position that cannot be used with RDMA_MSG",
        )?;
    }
    let nothing = Encoder::nomsg(&mut space, 1, 1).end_reads().end_writes();
    require(
        nothing.no_reply_chunk() == Err(EncodeError::NoPayload),
        "RDMA_NOMSG without chunks",
    )?;
    let mut encoder = Encoder::nomsg(&mut space, 1, 1);
    encoder.read_chunk(40, segment);
    require(
        encoder.end_reads().end_writes().reply_chunk(segment) == Err(EncodeError::NoPayload),
        "Long Call without a Position Zero Read chunk",
    )?;
    let mut encoder = Encoder::nomsg(&mut space, 1, 1);
    encoder.read_chunk(0, segment);
    require(
        encoder.end_reads().end_writes().no_reply_chunk() == Ok(28 + 24),
        "Long Call",
    )
}

/// Checks that the size that is known beforehand is the size that is written.
pub fn check_header_size() -> Check {
    for &(name, bytes) in vectors::VALID {
        let message = message(bytes)?;
        let (reads, writes, reply_chunk) = match &message {
            Message::Call(call) => {
                let segments = call.reads.segments();
                let count = segments.fold(0, |count: usize, _| count.saturating_add(1));
                (count, call.writes, call.reply_chunk)
            }
            Message::Reply(reply) => (0, reply.writes, reply.reply_chunk),
            Message::Error(_) => continue,
        };
        let size = lists_size(
            reads,
            writes.chunks().map(|chunk| chunk.segment_count()),
            reply_chunk.map(|chunk| chunk.segment_count()),
        );
        require(
            MIN_HEADER.saturating_add(size) == header_len(&message, bytes),
            name,
        )?;
    }
    require(lists_size(0, [], None) == 0, "no chunks")?;
    require(
        lists_size(usize::MAX, [usize::MAX], Some(usize::MAX)) == usize::MAX,
        "sizes do not wrap",
    )
}

/// Checks that a responder fills a Write chunk in segment array order (RFC 8166, section 3.4.6).
pub fn check_filled() -> Check {
    let call = call(vectors::WRITE_LIST)?;
    let chunk = call.writes.chunks().next().ok_or("first Write chunk")?;
    for (bytes, lengths) in [
        (0, [0, 0, 0]),
        (1, [1, 0, 0]),
        (1024, [1024, 0, 0]),
        (3000, [1024, 1976, 0]),
        (7167, [1024, 2048, 4095]),
        (7168, [1024, 2048, 4096]),
    ] {
        let filled = chunk.filled(bytes).ok_or("bytes that fit")?;
        require(
            filled.clone().map(|segment| segment.length).eq(lengths),
            "lengths in array order",
        )?;
        require(
            filled
                .map(|segment| (segment.handle, segment.offset))
                .eq(chunk
                    .segments()
                    .map(|segment| (segment.handle, segment.offset))),
            "handles and offsets are kept",
        )?;
    }
    require(chunk.filled(7169).is_none(), "one octet too many")?;

    // The whole Reply to this Call, from what was decoded.
    let mut space = [0; SPACE];
    let mut encoder = Encoder::msg(&mut space, call.xid, 64).end_reads();
    for (chunk, bytes) in call.writes.chunks().zip([3000, 0]) {
        encoder.write_chunk(chunk.filled(bytes).ok_or("bytes that fit")?);
    }
    let len = encoder
        .end_writes()
        .no_reply_chunk()
        .map_err(|_| "Reply with returned chunks")?;
    require(
        space.get(..len) == vectors::WRITE_LIST_RETURNED.get(..len),
        "Reply with returned chunks",
    )
}
