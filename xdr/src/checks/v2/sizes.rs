// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! What is known of a message before it is written, and after it was decoded.

use super::{
    first,
    with_word,
    BOUNDS, //
};
use crate::{
    checks::{
        require,
        Check, //
    },
    peek_err_vers,
    v2::{
        Credits,
        Received,
        Receiver,
        FRAGMENT_HEADER,
        VERSION, //
    },
    vectors::{
        self,
        v2, //
    },
    CallPayload,
    Direction,
    Message,
    Offer,
    ReadList,
    ReplyPayload,
    Version, //
};

/// Checks that the size of a header is known before it is written.
pub fn check_sizes() -> Check {
    require(Version::One.number() == 1, "version 1")?;
    require(Version::Two.number() == VERSION, "version 2")?;
    for bytes in [v2::CALL, v2::REPLY] {
        let (direction, offset) = match first(bytes) {
            Ok(Received::Message { message, .. }) => match message {
                Message::Call(call) => match call.payload {
                    CallPayload::Inline(inline) => (Direction::Call, inline.offset),
                    CallPayload::PositionZero(_) => return Err("an inline Call"),
                },
                Message::Reply(reply) => match reply.payload {
                    ReplyPayload::Inline(inline) => (Direction::Reply, inline.offset),
                    _ => return Err("an inline Reply"),
                },
                Message::Error(_) => return Err("no error"),
            },
            _ => return Err("an RPC message"),
        };
        let size = Version::Two.plain_size(direction);
        require(size == offset, "a header without chunks")?;
        require(Version::One.plain_size(direction) == 28, "in version 1")?;
    }
    let Ok(Received::Fragment(fragment)) = first(v2::FIRST_FRAGMENT) else {
        return Err("a fragment");
    };
    let offset = fragment.payload.offset;
    require(offset == FRAGMENT_HEADER, "the header of a fragment")
}

/// Checks that the lists of a Call are found once more.
pub fn check_found() -> Check {
    for bytes in [v2::CALL, v2::CHUNKS, v2::EXTERNAL_CALL] {
        let Ok(Received::Message {
            message: Message::Call(call),
            ..
        }) = first(bytes)
        else {
            return Err("a Call");
        };
        require(Offer::find(bytes) == Some(call.offer()), "what it offers")?;
        require(ReadList::find(bytes) == Some(call.reads), "its Read list")?;
        let short = bytes.get(..20).ok_or("a longer Call")?;
        require(Offer::find(short).is_none(), "a shorter message")?;
    }
    Ok(())
}

/// Checks which messages count, and of which the credit value is taken.
pub fn check_arrival() -> Check {
    let err_vers = v2::ERRORS.first().ok_or("a first error")?;
    let range = peek_err_vers(err_vers).ok_or("ERR_VERS")?;
    require(range.0 <= range.1, "its range")?;
    let mut space = [0; 28];
    let other = with_word(err_vers, 1, 1, &mut space)?;
    require(peek_err_vers(other) == Some(range), "of any version")?;
    let cut = err_vers.get(..24).ok_or("a longer error")?;
    require(peek_err_vers(cut).is_none(), "without its end")?;
    for bytes in v2::ERRORS.iter().skip(1).chain([&v2::CALL]) {
        require(peek_err_vers(bytes).is_none(), "another message")?;
    }

    let mut credits = Credits::new();
    let uncounted = [&[0; 15], vectors::SHORT_CALL, err_vers];
    for bytes in uncounted {
        require(credits.arrive(bytes).is_ok(), "a message without a value")?;
        require(credits.available() == 1, "the credits stay")?;
    }
    let nine = with_word(v2::GRANT, 2, 9, &mut space)?;
    require(credits.arrive(nine).is_ok(), "a GRANT")?;
    require(credits.available() == 9, "its value")?;
    require(credits.send(3) == Some(7), "all four count")?;
    let far = with_word(v2::GRANT, 2, 0x8000_0000, &mut space)?;
    require(credits.arrive(far).is_err(), "a value that nobody sends")?;
    let arrived = Receiver::new(BOUNDS).arrive(v2::GRANT);
    require(matches!(arrived, Ok(Received::Grant(_))), "a GRANT")
}
