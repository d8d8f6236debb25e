// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Returned chunks against offered ones.

use super::{
    call,
    malformed::{
        patched,
        SPACE, //
    },
    put,
    reply,
    require,
    Check, //
};
use crate::{
    vectors,
    Encoder,
    Message,
    ReplyPayload,
    ReturnError,
    Segment, //
};

const fn segment(handle: u32, length: u32, offset: u64) -> Segment {
    Segment {
        handle,
        length,
        offset,
    }
}

/// An offer of 100, 0 and 50 octets.
const OFFER: [Segment; 3] = [
    segment(1, 100, 0x1000),
    segment(2, 0, 0x2000),
    segment(3, 50, 0x3000),
];

/// Sends `returned` as the Write chunk of a Reply, and compares it with [`OFFER`].
fn written(returned: &[Segment]) -> Result<Result<u32, ReturnError>, &'static str> {
    let mut space = [0; 256];
    let mut encoder = Encoder::msg(&mut space, 7, 1).end_reads();
    encoder.write_chunk(returned);
    let len = encoder
        .end_writes()
        .no_reply_chunk()
        .map_err(|_| "room for the header")?;
    let payload = [0, 0, 0, 7, 0, 0, 0, 1];
    let end = len.saturating_add(payload.len());
    let field = space.get_mut(len..end).ok_or("room for the payload")?;
    put(field, &payload)?;
    let bytes = space.get(..end).ok_or("message")?;
    Ok(reply(bytes)?.written(OFFER))
}

/// Checks that only lengths may change, and the chunk is filled in order (RFC 8166, section 3.4.6).
pub fn check_returned_chunk() -> Check {
    check_lengths()?;
    check_segments()
}

/// Returns a chunk with these lengths.
fn lengths(a: u32, b: u32, c: u32) -> [Segment; 3] {
    [
        segment(1, a, 0x1000),
        segment(2, b, 0x2000),
        segment(3, c, 0x3000),
    ]
}

fn check_lengths() -> Check {
    for (a, c, total) in [
        (0, 0, 0),
        (1, 0, 1),
        (100, 0, 100),
        (100, 1, 101),
        (100, 50, 150),
    ] {
        require(
            written(&lengths(a, 0, c))? == Ok(total),
            "octets in a chunk filled in order",
        )?;
    }
    require(
        written(&lengths(99, 0, 1))? == Err(ReturnError::Hole),
        "a segment after one that is not full",
    )?;
    require(
        written(&lengths(0, 0, 50))? == Err(ReturnError::Hole),
        "a segment after an empty one",
    )?;
    require(
        written(&lengths(101, 0, 0))? == Err(ReturnError::Length),
        "a segment longer than offered",
    )?;
    require(
        written(&lengths(100, 1, 0))? == Err(ReturnError::Length),
        "octets in a segment offered empty",
    )?;
    require(
        written(&lengths(100, 0, u32::MAX - 200))? == Err(ReturnError::Length),
        "the last segment longer than offered",
    )
}

fn check_segments() -> Check {
    let [first, second, third] = lengths(100, 0, 50);
    require(
        written(&[first, second])? == Ok(100) && written(&[first])? == Ok(100),
        "segments that were not used are left out, as by responders of RFC 5666",
    )?;
    require(
        written(&[second, third])? == Err(ReturnError::Handle),
        "a segment left out that is not at the end",
    )?;
    require(
        written(&[first, second, third, segment(4, 0, 0)])? == Err(ReturnError::SegmentCount),
        "a segment added",
    )?;
    let other = Segment { handle: 9, ..third };
    require(
        written(&[first, second, other])? == Err(ReturnError::Handle),
        "another handle",
    )?;
    let other = Segment {
        offset: 0x1001,
        ..first
    };
    require(
        written(&[other, second, third])? == Err(ReturnError::Offset),
        "another offset",
    )?;
    // RFC 8267, section 6.4.1.
    require(
        written(&[])? == Ok(0),
        "an empty chunk for one that was not used",
    )
}

/// Checks lists and Reply chunks of whole Replies.
pub fn check_returned_reply() -> Check {
    check_returned_list()?;
    check_long_reply()?;
    check_unused_reply_chunk()
}

fn check_returned_list() -> Check {
    let offered = call(vectors::WRITE_LIST)?;
    let returned = reply(vectors::WRITE_LIST_RETURNED)?;
    let pairs = offered.writes.chunks().zip(returned.writes.chunks());
    require(
        pairs
            .map(|(offer, chunk)| chunk.written(offer.segments()))
            .eq([Ok(3000), Ok(0)]),
        "octets of both chunks",
    )?;
    let first = offered.writes.chunks().next().ok_or("first Write chunk")?;
    require(
        returned.written(first.segments()) == Err(ReturnError::NotOffered),
        "two chunks where one was offered",
    )?;
    require(
        returned.nothing_written() == Err(ReturnError::NotOffered),
        "chunks where none was offered",
    )?;
    require(
        returned.no_reply_written() == Ok(()),
        "no Reply chunk, as none was offered",
    )?;

    let plain = reply(vectors::SHORT_REPLY)?;
    require(
        plain.written(first.segments()) == Ok(0),
        "a Reply without Write list wrote nothing",
    )?;
    require(plain.nothing_written() == Ok(()), "nothing offered")?;
    require(
        plain.reply_written(OFFER) == Ok(0),
        "an inline Reply need not return the Reply chunk",
    )
}

fn check_long_reply() -> Check {
    let offered = call(vectors::REPLY_CHUNK)?;
    let room = offered.reply_chunk.ok_or("Reply chunk")?;
    let long = reply(vectors::LONG_REPLY)?;
    require(
        long.reply_written(room.segments()) == Ok(8200),
        "octets of a Long Reply",
    )?;
    require(
        long.reply_written(OFFER) == Err(ReturnError::Handle),
        "another Reply chunk than offered",
    )?;
    require(
        long.no_reply_written() == Err(ReturnError::NotOffered),
        "a Reply chunk where none was offered",
    )?;
    require(
        long.reply_written(room.filled(8199).ok_or("8199 octets fit")?) == Err(ReturnError::Length),
        "a Long Reply longer than its chunk",
    )?;
    require(
        long.reply_written(room.segments().take(1)) == Err(ReturnError::SegmentCount),
        "a Reply chunk with a segment added",
    )?;
    let mut space = [0; SPACE];
    let shortest = patched(vectors::LONG_REPLY, &[(11, 8), (15, 0)], &mut space)?;
    require(
        reply(shortest)?.reply_written(room.segments()) == Ok(8),
        "a Long Reply of eight octets",
    )?;
    let no_payload = crate::Reply {
        reply_chunk: None,
        payload: ReplyPayload::ReplyChunk,
        ..long
    };
    require(
        no_payload.reply_written(OFFER) == Err(ReturnError::ShortPayload),
        "a Long Reply without octets",
    )
}

/// Checks that an inline Reply may return the Reply chunk, whose segments are compared all the
/// same.
fn check_unused_reply_chunk() -> Check {
    let mut space = [0; 256];
    let len = Encoder::msg(&mut space, 7, 1)
        .end_reads()
        .end_writes()
        .reply_chunk([segment(1, 0, 0x1000)])
        .map_err(|_| "room for the header")?;
    let end = len.saturating_add(8);
    let field = space.get_mut(len..end).ok_or("room for the payload")?;
    put(field, &[0, 0, 0, 7, 0, 0, 0, 1])?;
    let bytes = space.get(..end).ok_or("message")?;
    require(
        matches!(super::message(bytes)?, Message::Reply(_)),
        "inline Reply with a Reply chunk",
    )?;
    let short = reply(bytes)?;
    require(
        short.reply_written([segment(1, 4096, 0x1000)]) == Ok(0),
        "unused Reply chunk",
    )?;
    require(
        short.reply_written([segment(2, 4096, 0x1000)]) == Err(ReturnError::Handle),
        "unused Reply chunk with another handle",
    )
}
