// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Replies that return what was offered.

use super::{
    call,
    malformed::{
        patched,
        SPACE, //
    },
    message,
    require,
    Check, //
};
use crate::{
    vectors,
    Message,
    Offer,
    ReadList,
    ReplyPlace::{
        self,
        Inline,
        ReplyChunk, //
    },
    Version,
    MIN_HEADER, //
};

/// A Call, the octets written into its Write chunks, the place of its results, and the Reply.
type Case = (
    &'static [u8],
    &'static [u32],
    ReplyPlace<'static>,
    &'static [u8],
);

const REPLIES: &[Case] = &[
    (vectors::SHORT_CALL, &[], Inline, vectors::SHORT_REPLY),
    (
        vectors::WRITE_LIST,
        &[3000, 0],
        Inline,
        vectors::WRITE_LIST_RETURNED,
    ),
    // What is not mentioned is not used, and what is not used need not be there.
    (
        vectors::WRITE_LIST,
        &[3000],
        Inline,
        vectors::WRITE_LIST_RETURNED,
    ),
    (
        vectors::ONE_WRITE_CHUNK,
        &[5000, 0, 0],
        Inline,
        vectors::ONE_WRITE_CHUNK_RETURNED,
    ),
    (
        vectors::REPLY_CHUNK,
        &[],
        ReplyChunk(8200),
        vectors::LONG_REPLY,
    ),
];

/// Calls, and results that are more than was offered.
const TOO_MUCH: &[(&[u8], &[u32], ReplyPlace<'_>)] = &[
    (vectors::SHORT_CALL, &[1], Inline),
    (vectors::SHORT_CALL, &[], ReplyChunk(24)),
    (vectors::WRITE_LIST, &[7169], Inline),
    (vectors::WRITE_LIST, &[7168, 769], Inline),
    (vectors::WRITE_LIST, &[7168, 768, 1], Inline),
    (vectors::WRITE_LIST, &[], ReplyChunk(24)),
    (vectors::REPLY_CHUNK, &[1], ReplyChunk(24)),
    (vectors::REPLY_CHUNK, &[], ReplyChunk(8293)),
];

/// Checks that a Reply returns every chunk of the Call, with the octets that were written (RFC
/// 8166, sections 3.4.6 and 4.3), or is not made.
pub fn check_offer() -> Check {
    let mut space = [0; SPACE];
    for &(bytes, written, place, expected) in REPLIES {
        let offer = call(bytes)?.offer();
        let credits = expected.get(11).copied().map_or(0, u32::from);
        let written = || written.iter().copied();
        let len = offer.returned_size(Version::One).saturating_add(MIN_HEADER);
        require(
            offer.encode_reply(&mut space, vectors::XID, credits, written(), place) == Ok(len),
            "length of a Reply's header",
        )?;
        require(space.get(..len) == expected.get(..len), "a Reply's header")?;
        let (room, behind) = space.split_at_mut_checked(len).ok_or("a long vector")?;
        behind.fill(0x5a);
        require(
            offer.encode_reply(room, vectors::XID, credits, written(), place) == Ok(len),
            "just enough room",
        )?;
        require(
            behind.iter().all(|octet| *octet == 0x5a),
            "what is behind the header is left alone",
        )?;
        for less in 0..len {
            let room = room.get_mut(..less).ok_or("less room")?;
            let reply = offer.encode_reply(room, vectors::XID, credits, written(), place);
            require(reply.is_err(), "too little room")?;
        }
    }
    for &(bytes, written, place) in TOO_MUCH {
        let written = written.iter().copied();
        let reply = call(bytes)?
            .offer()
            .encode_reply(&mut space, vectors::XID, 1, written, place);
        require(reply.is_err(), "more than was offered")?;
    }
    check_unused_reply_chunk()?;
    check_parts()
}

/// Checks that a Reply chunk that is not used comes back empty.
fn check_unused_reply_chunk() -> Check {
    let mut space = [0; SPACE];
    let offer = call(vectors::REPLY_CHUNK)?.offer();
    let len = offer
        .encode_reply(&mut space, vectors::XID, 64, [], Inline)
        .map_err(|_| "an inline Reply")?;
    let mut expected = [0; SPACE];
    let inline = [(3, 0), (11, 0), (15, 0)];
    let expected = patched(vectors::LONG_REPLY, &inline, &mut expected)?;
    require(space.get(..len) == Some(expected), "an unused Reply chunk")
}

/// Checks the segments of offers, and that a message that is cut has none.
fn check_parts() -> Check {
    for (bytes, segments) in [
        (vectors::SHORT_CALL, 0),
        (vectors::ONE_WRITE_CHUNK, 2),
        (vectors::LONG_CALL, 1),
        (vectors::WRITE_LIST, 5),
        (vectors::REPLY_CHUNK, 0),
    ] {
        let offer = call(bytes)?.offer();
        require(
            offer.writes.segment_count() == segments,
            "segments of a Write list",
        )?;
    }
    for &(name, bytes) in vectors::VALID {
        if let Message::Call(call) = message(bytes)? {
            require(ReadList::find(bytes) == Some(call.reads), name)?;
        }
    }
    require(ReadList::find(&[]).is_none(), "no list")?;
    let cut = vectors::REPLY_CHUNK.get(..67).ok_or("a long vector")?;
    require(Offer::find(cut).is_none(), "a message that is shorter")?;
    require(Offer::find(&[]).is_none(), "no message")
}
