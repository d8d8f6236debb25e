// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The golden vectors decode to what they say.

use super::{
    call,
    error,
    malformed::{
        patched,
        SPACE, //
    },
    reply,
    require,
    Check, //
};
use crate::{
    v1::header::RDMA_MSG,
    vectors,
    CallPayload,
    Direction,
    ErrorMessage,
    FixedHeader,
    RdmaError,
    ReadSegment,
    ReplyPayload,
    RpcPrefix,
    Segment, //
};

const fn segment(handle: u32, length: u32, offset: u64) -> Segment {
    Segment {
        handle,
        length,
        offset,
    }
}

/// Checks messages without chunks: header fields, and the inline Payload stream by offset and
/// length.
pub fn check_short_messages() -> Check {
    let call = call(vectors::SHORT_CALL)?;
    require(call.xid == 0xa1b2_c3d4, "XID of the Call")?;
    require(call.credits == 32, "credits requested")?;
    require(call.reads.is_empty(), "Call without Read list")?;
    require(call.writes.is_empty(), "Call without Write list")?;
    require(call.reply_chunk.is_none(), "Call without Reply chunk")?;
    let CallPayload::Inline(inline) = call.payload else {
        return Err("Call is inline");
    };
    require(inline.offset == 28, "Payload stream follows 28 octets")?;
    require(inline.bytes.len() == 40, "NULL Call has 40 octets")?;
    require(
        RpcPrefix::peek(inline.bytes).is_some_and(|rpc| rpc.xid == call.xid),
        "Payload stream begins with the XID",
    )?;

    let reply = reply(vectors::SHORT_REPLY)?;
    require(reply.xid == 0xa1b2_c3d4, "XID of the Reply")?;
    require(reply.credits == 16, "credits granted")?;
    require(reply.writes.is_empty(), "Reply without Write list")?;
    require(reply.reply_chunk.is_none(), "Reply without Reply chunk")?;
    let ReplyPayload::Inline(inline) = reply.payload else {
        return Err("Reply is inline");
    };
    require(
        inline.offset == 28 && inline.bytes.len() == 24,
        "Payload stream of the Reply",
    )?;

    let fixed = FixedHeader::peek(vectors::SHORT_CALL).ok_or("fixed fields are there")?;
    require(
        fixed.version == 1 && fixed.procedure == RDMA_MSG,
        "version and procedure",
    )
}

/// Checks that `1 PHLOO 1 PHLOO 1 PHLOO 0` is one Read chunk of three segments (RFC 8166,
/// section 4.7).
pub fn check_read_chunk() -> Check {
    let call = call(vectors::READ_CHUNK)?;
    let mut chunks = call.reads.chunks();
    let chunk = chunks.next().ok_or("there is a Read chunk")?;
    require(chunks.next().is_none(), "there is only one Read chunk")?;
    require(chunk.position() == 88, "Position")?;
    require(chunk.length() == 9193, "sum of the lengths")?;
    require(chunk.segment_count() == 3, "number of segments")?;
    require(
        chunk.segments().eq([
            segment(0x1111_1111, 4096, 0x7f00_1234_5000),
            segment(0x2222_2222, 4096, 0x7f00_2234_5000),
            segment(0x3333_3333, 1001, 0xffff_ffff_0000_0000),
        ]),
        "segments in list order",
    )?;
    require(
        call.reads.position_zero().is_none(),
        "no Position Zero Read chunk",
    )?;
    let CallPayload::Inline(inline) = call.payload else {
        return Err("Call is inline");
    };
    require(
        inline.offset == 100 && inline.bytes.len() == 88,
        "Payload stream follows the lists",
    )
}

/// Checks that read segments are grouped by Position, in whatever order they come (RFC 8166,
/// section 4.3.1).
pub fn check_read_list() -> Check {
    let call = call(vectors::READ_LIST)?;
    let list_order = call.reads.segments().map(|entry| entry.position);
    require(list_order.eq([52, 44, 52, 8240]), "list order is kept")?;
    require(
        call.reads.segments().next()
            == Some(ReadSegment {
                position: 52,
                segment: segment(0x52, 8000, 0x1_0000),
            }),
        "first read segment",
    )?;
    let chunks = call.reads.chunks();
    require(
        chunks
            .map(|chunk| (chunk.position(), chunk.length(), chunk.segment_count()))
            .eq([(44, 8, 1), (52, 8186, 2), (8240, 4, 1)]),
        "Read chunks in ascending order of Position",
    )?;
    let second = call.reads.chunks().nth(1).ok_or("three Read chunks")?;
    require(
        second
            .segments()
            .map(|segment| segment.handle)
            .eq([0x52, 0x53]),
        "separated segments of one Position are one chunk",
    )
}

/// Checks `1 3 HLOO HLOO HLOO 1 2 HLOO HLOO 0` (RFC 8166, section 4.7), offered and returned.
pub fn check_write_list() -> Check {
    let call = call(vectors::WRITE_LIST)?;
    require(call.writes.chunk_count() == 2, "number of Write chunks")?;
    let mut chunks = call.writes.chunks();
    let first = chunks.next().ok_or("first Write chunk")?;
    let second = chunks.next().ok_or("second Write chunk")?;
    require(chunks.next().is_none(), "no third Write chunk")?;
    require(first.length() == 7168, "length of the first chunk")?;
    require(
        first.segments().eq([
            segment(0xa01, 1024, 0x1000),
            segment(0xa02, 2048, 0x2000),
            segment(0xa03, 4096, 0x8000_0000_0000_3000),
        ]),
        "segments of the first chunk",
    )?;
    require(
        second.segment_count() == 2 && second.length() == 768,
        "second chunk",
    )?;
    require(
        second
            .segments()
            .eq([segment(0xb01, 512, 0x4000), segment(0xb02, 256, 0x5000)]),
        "segments of the second chunk",
    )?;

    let reply = reply(vectors::WRITE_LIST_RETURNED)?;
    require(
        reply
            .writes
            .chunks()
            .map(|chunk| (chunk.segment_count(), chunk.length()))
            .eq([(3, 3000), (2, 0)]),
        "returned chunks keep their counts",
    )
}

/// Checks `1 2 HLOO HLOO` (RFC 8166, section 4.7), and an empty Write chunk (section 4.3.2.3).
pub fn check_reply_chunk() -> Check {
    let call = call(vectors::REPLY_CHUNK)?;
    require(
        call.writes
            .chunks()
            .map(|chunk| (chunk.segment_count(), chunk.length()))
            .eq([(0, 0)]),
        "empty Write chunk",
    )?;
    require(
        !call.writes.is_empty(),
        "a list of an empty chunk is not empty",
    )?;
    let chunk = call.reply_chunk.ok_or("there is a Reply chunk")?;
    require(
        chunk
            .segments()
            .eq([segment(0xc01, 8192, 0x6000), segment(0xc02, 100, 0x8000)]),
        "segments of the Reply chunk",
    )?;
    require(chunk.length() == 8292, "length of the Reply chunk")
}

/// Checks Long Call and Long Reply (RFC 8166, section 3.5.3).
pub fn check_long_messages() -> Check {
    let call = call(vectors::LONG_CALL)?;
    let CallPayload::PositionZero(chunk) = call.payload else {
        return Err("Long Call is in its Position Zero Read chunk");
    };
    require(
        chunk.position() == 0 && chunk.length() == 4148 && chunk.segment_count() == 2,
        "Position Zero Read chunk",
    )?;
    require(
        call.reads
            .data_chunks()
            .map(|chunk| (chunk.position(), chunk.length()))
            .eq([(1000, 65536)]),
        "the other Read chunk",
    )?;
    require(
        call.reads
            .position_zero()
            .is_some_and(|zero| zero.length() == 4148),
        "Position Zero Read chunk by name",
    )?;

    let reply = reply(vectors::LONG_REPLY)?;
    require(
        matches!(reply.payload, ReplyPayload::ReplyChunk),
        "Long Reply is in its Reply chunk",
    )?;
    require(
        reply
            .reply_chunk
            .is_some_and(|chunk| chunk.length() == 8200),
        "octets in the Reply chunk",
    )?;
    let mut space = [0; SPACE];
    let shortest = patched(vectors::PROVIDED_REPLY, &[(7, 8), (13, 0)], &mut space)?;
    require(self::call(shortest).is_ok(), "Long Call of eight octets")?;
    // Section 4.2.4: what follows the lists is not looked at.
    let mut longer = [0xff; LONGER];
    let call = self::call(followed(vectors::LONG_CALL, &mut longer)?)?;
    require(
        matches!(call.payload, CallPayload::PositionZero(chunk) if chunk.length() == 4148),
        "Long Call with more behind it",
    )?;
    let mut longer = [0xff; LONGER];
    let reply = self::reply(followed(vectors::LONG_REPLY, &mut longer)?)?;
    require(
        matches!(reply.payload, ReplyPayload::ReplyChunk),
        "Long Reply with more behind it",
    )
}

/// Octets of a message with something behind it.
const LONGER: usize = 256;

/// Returns a message with what is in `longer` behind it.
fn followed<'a>(message: &[u8], longer: &'a mut [u8]) -> Result<&'a [u8], &'static str> {
    longer
        .get_mut(..message.len())
        .ok_or("room for the message")?
        .copy_from_slice(message);
    Ok(longer)
}

/// Checks both error messages (RFC 8166, section 4.5); `ERR_VERS` of another version too.
pub fn check_error_messages() -> Check {
    require(
        error(vectors::ERR_VERS)?
            == ErrorMessage {
                xid: vectors::XID,
                version: 2,
                credits: 32,
                error: RdmaError::Version { low: 1, high: 1 },
            },
        "ERR_VERS",
    )?;
    require(
        error(vectors::ERR_VERS_RANGE)?.error == RdmaError::Version { low: 2, high: 3 },
        "ERR_VERS has the lowest version first",
    )?;
    require(
        error(vectors::ERR_CHUNK)?
            == ErrorMessage {
                xid: vectors::XID,
                version: 1,
                credits: 32,
                error: RdmaError::Chunk,
            },
        "ERR_CHUNK of 20 octets",
    )?;
    for message in [vectors::ERR_VERS, vectors::ERR_CHUNK] {
        let mut longer = [0xff; LONGER];
        require(
            error(followed(message, &mut longer)?)? == error(message)?,
            "an error with more behind it",
        )?;
    }
    Ok(())
}

/// Checks that the RPC message tells Call from Reply in either direction (RFC 8167, section 5).
pub fn check_direction() -> Check {
    require(
        call(vectors::REVERSE_CALL)?.credits == 2,
        "a reverse Call is a Call",
    )?;
    let direction = |msg_type| RpcPrefix { xid: 0, msg_type }.direction();
    require(direction(0) == Some(Direction::Call), "CALL")?;
    require(direction(1) == Some(Direction::Reply), "REPLY")?;
    require(direction(2).is_none(), "no third msg_type")?;
    require(
        RpcPrefix::peek(&[0; 7]).is_none(),
        "seven octets are too few",
    )?;
    require(
        FixedHeader::peek(&[0; 15]).is_none(),
        "fifteen octets are too few",
    )
}

/// Checks that what another implementation sends decodes to what it offered and wrote.
pub fn check_in_tree_replies() -> Check {
    let short = reply(vectors::IN_TREE_SHORT_REPLY)?;
    require(short.xid == 0x8aa3_4bed, "XID of the short Reply")?;
    require(short.credits == 128, "credits granted")?;
    require(
        short.nothing_written().is_ok() && short.no_reply_written().is_ok(),
        "no chunk comes back",
    )?;
    let ReplyPayload::Inline(inline) = short.payload else {
        return Err("the short Reply is inline");
    };
    require(inline.bytes.len() == 24, "a NULL Reply has 24 octets")?;

    let long = reply(vectors::IN_TREE_LONG_REPLY)?;
    require(
        matches!(long.payload, ReplyPayload::ReplyChunk),
        "the long Reply is in the Reply chunk",
    )?;
    let offered = [segment(0x29a7, 0x0400, 0x8ba3_4bed_0000_0ac4)];
    require(
        long.reply_written(offered) == Ok(196),
        "196 octets of what was offered are written",
    )?;

    let read = reply(vectors::IN_TREE_READ_REPLY)?;
    let offered = [segment(0x276a, 0x0004_0000, 0xafa3_4bed_0000_0000)];
    require(
        read.written(offered) == Ok(0x0004_0000),
        "the whole Write chunk is written",
    )?;
    let ReplyPayload::Inline(inline) = read.payload else {
        return Err("the rest of the READ Reply is inline");
    };
    require(inline.offset == 52, "one Write segment makes 52 octets")?;
    require(inline.bytes.len() == 104, "the rest has 104 octets")
}
