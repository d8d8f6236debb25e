// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Headers, encoded.

use super::{
    first,
    require,
    Check, //
};
use crate::{
    v2::{
        encode_fragment,
        encode_grant,
        encode_plain,
        encode_reply,
        Received, //
    },
    vectors::{
        v2 as vectors,
        XID, //
    },
    Direction,
    EncodeError,
    Encoder,
    Message,
    Offer,
    Segment, //
};

/// Checks that a Reply returns the chunks of its Call, what cannot be written, and that a buffer
/// too small says how much is needed.
pub fn check_encode() -> Check {
    let Ok(Received::Message {
        message: Message::Call(call),
        ..
    }) = first(vectors::CHUNKS)
    else {
        return Err("a Call");
    };
    let offer = call.offer();
    let mut space = [0; 256];
    let mut reply = |written: &[Option<u32>], in_chunk| {
        let written = written.iter().copied();
        encode_reply(&mut space, XID, 43, &offer, written, in_chunk).map(|length| (space, length))
    };
    let (bytes, length) = reply(&[Some(0), Some(4196)], None).map_err(|_| "a Reply")?;
    require(length == 68, "the length of the header")?;
    require(
        bytes.get(..length) == vectors::CHUNKS_RETURNED.get(..length),
        "the chunks as they came, with the octets that were written",
    )?;

    // A chunk for which there is no result is empty; one for an item of no octets keeps its
    // segments.
    let (bytes, length) = reply(&[None, None], None).map_err(|_| "a Reply")?;
    require(length == 36, "two empty chunks")?;
    let words = [0, 0, 0, 1, 0, 0, 0, 0];
    require(bytes.get(16..24) == Some(&words), "the first")?;
    require(bytes.get(24..32) == Some(&words), "the second")?;
    let (_, length) = reply(&[Some(0)], None).map_err(|_| "a Reply")?;
    require(length == 68, "an unused chunk")?;

    let (bytes, length) = reply(&[], Some(8)).map_err(|_| "a Reply")?;
    require(length == 92, "a Reply in the Reply chunk")?;
    let handle_and_length = [0x55, 0x55, 0x55, 0x55, 0, 0, 0, 8];
    require(
        bytes.get(76..84) == Some(&handle_and_length),
        "the octets in the Reply chunk",
    )?;
    for (written, in_chunk) in [
        (&[Some(1)][..], None),
        (&[None, Some(5001)], None),
        (&[None, None, Some(1)], None),
        (&[], Some(8193)),
    ] {
        let refused = reply(written, in_chunk).err();
        require(refused == Some(EncodeError::Written), "more than there is")?;
    }
    let none = Offer::default();
    require(
        encode_reply(&mut space, XID, 1, &none, [], Some(8)) == Err(EncodeError::NoPayload),
        "no Reply chunk",
    )?;
    check_plain()?;
    check_calls()
}

/// Checks that a header without chunks is that of three lists that are not present.
fn check_plain() -> Check {
    let (mut plain, mut lists) = ([0x5a; 40], [0x5a; 40]);
    let length = encode_plain(&mut plain, Direction::Call, XID, 7);
    let encoder = Encoder::call_inline(&mut lists, XID, 7, 0);
    let listed = encoder.end_reads().end_writes().no_reply_chunk();
    require((length, plain) == (listed, lists), "a Call without chunks")?;
    require(length == Ok(32), "its length")?;
    let (mut plain, mut lists) = ([0x5a; 40], [0x5a; 40]);
    let length = encode_plain(&mut plain, Direction::Reply, XID, 7);
    let listed = encode_reply(&mut lists, XID, 7, &Offer::default(), [], None);
    require((length, plain) == (listed, lists), "a Reply without chunks")?;
    require(length == Ok(20), "its length")?;
    for (direction, needed) in [(Direction::Call, 32), (Direction::Reply, 20)] {
        let mut small = [0; 19];
        let refused = Err(EncodeError::NoRoom { needed, room: 19 });
        require(
            encode_plain(&mut small, direction, XID, 1) == refused,
            "too little room",
        )?;
    }
    Ok(())
}

fn check_calls() -> Check {
    let mut space = [0; 256];
    let segment = Segment {
        handle: 1,
        length: 64,
        offset: 0x1000,
    };
    let none: [Segment; 0] = [];
    let empty = Encoder::call_external(&mut space, XID, 1, 0, none);
    let length = empty.end_reads().end_writes().reply_chunk([segment]);
    require(length == Err(EncodeError::NoPayload), "no Call chunk")?;
    let mut encoder = Encoder::call_external(&mut space, XID, 1, 1, [segment]);
    encoder.read_chunk(0, [segment]);
    let length = encoder.end_reads().end_writes().no_reply_chunk();
    require(
        length == Err(EncodeError::Position(0)),
        "a Read chunk at Position zero beside a Call chunk",
    )?;
    let mut encoder = Encoder::call_inline(&mut space, XID, 1, 1);
    encoder.read_chunk(0, [segment]);
    let length = encoder.end_reads().end_writes().no_reply_chunk();
    require(
        length == Err(EncodeError::Position(0)),
        "a Read chunk at Position zero beside a Payload stream",
    )?;
    let mut small = [0; 31];
    let encoder = Encoder::call_inline(&mut small, XID, 1, 0);
    let needed = encoder.end_reads().end_writes().no_reply_chunk();
    let refused = Err(EncodeError::NoRoom {
        needed: 32,
        room: 31,
    });
    require(needed == refused, "the smallest header of a Call")?;
    let mut small = [0; 15];
    let refused = Err(EncodeError::NoRoom {
        needed: 16,
        room: 15,
    });
    require(encode_grant(&mut small, 1) == refused, "a GRANT")?;
    let refused = Err(EncodeError::NoRoom {
        needed: 20,
        room: 15,
    });
    let length = encode_fragment(&mut small, Direction::Reply, XID, 1, 4);
    require(length == refused, "a fragment")
}
