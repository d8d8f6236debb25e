// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Messages without chunks are what they are to those who look at any message.

use super::{
    message,
    require,
    Check, //
};
use crate::{
    encode_plain,
    vectors,
    CallPayload,
    Direction,
    EncodeError,
    Encoder,
    Inline,
    Message,
    Plain,
    ReplyPayload,
    MIN_HEADER, //
};

/// What is behind the header of a message without chunks, and which way it goes.
fn bare<'a>(message: &Message<'a>) -> Option<(u32, u32, Direction, Inline<'a>)> {
    match message {
        Message::Call(call) if call.reads.is_empty() && call.writes.is_empty() => {
            match (&call.payload, call.reply_chunk) {
                (CallPayload::Inline(inline), None) => {
                    Some((call.xid, call.credits, Direction::Call, *inline))
                }
                _ => None,
            }
        }
        Message::Reply(reply) if reply.writes.is_empty() => {
            match (&reply.payload, reply.reply_chunk) {
                (ReplyPayload::Inline(inline), None) => {
                    Some((reply.xid, reply.credits, Direction::Reply, *inline))
                }
                _ => None,
            }
        }
        _ => None,
    }
}

/// Every vector without chunks is plain, with the same meaning, and no other is, nor one that is
/// shorter than the smallest or has a word changed that must be as it is.
pub fn check_plain() -> Check {
    let mut any = false;
    for &(name, bytes) in vectors::VALID {
        let expected = bare(&message(bytes)?);
        let plain = Plain::decode(bytes);
        let same = plain.map(|p| (p.xid, p.credits, p.direction, p.inline));
        require(same == expected, name)?;
        let Some(plain) = plain else { continue };
        any = true;
        require(bare(&plain.message()) == expected, name)?;

        let mut space = [0x5a; MIN_HEADER + 4];
        let room = encode_plain(&mut space, plain.xid, plain.credits).map_err(|_| name)?;
        require(
            *room == [0x5a; 4],
            "what is behind the header is left alone",
        )?;
        require(space.get(..MIN_HEADER) == bytes.get(..MIN_HEADER), name)?;
        let mut other = [0x5a; MIN_HEADER + 4];
        let len = Encoder::msg(&mut other, plain.xid, plain.credits)
            .end_reads()
            .end_writes()
            .no_reply_chunk();
        require(len == Ok(MIN_HEADER) && other == space, name)?;

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
            require(Plain::decode(&changed).is_none(), "a word of another value")?;
        }
        let shortest = bytes.get(..MIN_HEADER + 8).ok_or(name)?;
        require(Plain::decode(shortest).is_some(), "the shortest payload")?;
        let shorter = bytes.get(..MIN_HEADER + 7).ok_or(name)?;
        require(Plain::decode(shorter).is_none(), "a shorter payload")?;
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
    )
}
