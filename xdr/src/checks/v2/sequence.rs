// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Messages that continue others, and what may come between.

use super::{
    accepts_next,
    refuses_next,
    require,
    with_word,
    Check,
    BOUNDS, //
};
use crate::{
    v2::{
        Bounds,
        Receiver, //
    },
    vectors::v2 as vectors,
    DecodeError, //
};

/// Returns a receiver that has the first fragment of a Call.
fn continued() -> Result<Receiver, &'static str> {
    let mut receiver = Receiver::new(BOUNDS);
    require(!receiver.is_in_message(), "nothing has come")?;
    accepts_next(&mut receiver, vectors::FIRST_FRAGMENT, "a first fragment")?;
    require(receiver.is_in_message(), "more is to come")?;
    Ok(receiver)
}

/// Checks what may come between two fragments, and between properties that are not the last: a
/// GRANT and an error. Anything else is refused, and the next fragment is accepted still.
pub fn check_sequence() -> Check {
    let mut receiver = continued()?;
    let mut space = [0; 256];
    let other_xid = with_word(vectors::SECOND_FRAGMENT, 0, 1, &mut space)?;
    for (name, bytes) in [
        ("a fragment of another Call", other_xid),
        ("a Reply", vectors::REPLY),
        ("a fragment of a Reply", vectors::FIRST_OF_REPLY),
        ("a Call in a Call chunk", vectors::EXTERNAL_CALL),
        ("properties", vectors::FINAL),
        (
            "properties that are not the last",
            vectors::MIDDLE_PROPERTIES,
        ),
    ] {
        refuses_next(&mut receiver, bytes, DecodeError::Sequence, name)?;
    }
    accepts_next(&mut receiver, vectors::GRANT, "a GRANT between")?;
    for error in vectors::ERRORS {
        accepts_next(&mut receiver, error, "an error between")?;
    }
    // What nobody knows is refused for that, and breaks nothing.
    let unknown = with_word(vectors::GRANT, 3, 14, &mut space)?;
    let reason = DecodeError::Procedure(14);
    refuses_next(&mut receiver, unknown, reason, "an unknown type between")?;
    let other = with_word(vectors::CALL, 1, 1, &mut space)?;
    let reason = DecodeError::Version(1);
    refuses_next(&mut receiver, other, reason, "another version between")?;
    accepts_next(&mut receiver, vectors::SECOND_FRAGMENT, "the second")?;
    accepts_next(&mut receiver, vectors::LAST_FRAGMENT, "the last")?;
    accepts_next(&mut receiver, vectors::FINAL, "properties behind it")?;
    check_properties_in_order()
}

/// Checks the order of the messages that bring properties.
fn check_properties_in_order() -> Check {
    let mut receiver = Receiver::new(BOUNDS);
    let not_last = vectors::MIDDLE_PROPERTIES;
    accepts_next(&mut receiver, not_last, "properties")?;
    accepts_next(&mut receiver, vectors::GRANT, "a GRANT between")?;
    let error = vectors::ERRORS.first().ok_or("an error")?;
    accepts_next(&mut receiver, error, "an error between")?;
    let calls = [vectors::CALL, vectors::REPLY, vectors::FIRST_FRAGMENT];
    for bytes in calls {
        refuses_next(&mut receiver, bytes, DecodeError::Sequence, "RPC between")?;
    }
    let rest = vectors::SECOND_FRAGMENT;
    refuses_next(
        &mut receiver,
        rest,
        DecodeError::Discarded,
        "the rest of it",
    )?;
    accepts_next(&mut receiver, not_last, "more properties")?;
    accepts_next(&mut receiver, vectors::FINAL, "the last properties")?;
    for bytes in [vectors::FINAL, not_last] {
        let claim = "properties after the last";
        refuses_next(&mut receiver, bytes, DecodeError::Sequence, claim)?;
    }
    accepts_next(&mut receiver, vectors::CALL, "a Call after all")?;

    // The limit is on all messages together.
    let octets = not_last.len().saturating_add(vectors::FINAL.len());
    let room = u32::try_from(octets).map_err(|_| "few octets")?;
    for (property_octets, fits) in [(room, true), (room.saturating_sub(1), false)] {
        let bounds = Bounds {
            property_octets,
            ..BOUNDS
        };
        let mut receiver = Receiver::new(bounds);
        accepts_next(&mut receiver, not_last, "properties")?;
        let last = receiver.receive(vectors::FINAL);
        let reason = last.err().map(|refused| refused.reason);
        let expected = (!fits).then_some(DecodeError::PropertyOctets);
        require(reason == expected, "octets of all properties")?;
        let claim = "properties after the last, even if they were refused";
        refuses_next(&mut receiver, vectors::FINAL, DecodeError::Sequence, claim)?;
    }
    Ok(())
}

/// Checks that `rdma_remaining` has to fit, and that the rest of a message that was refused is
/// discarded until another comes.
pub fn check_remaining() -> Check {
    let mut space = [0; 256];
    for remaining in [0, 1, 20, 28, 32, u32::MAX] {
        let mut receiver = continued()?;
        let bytes = with_word(vectors::SECOND_FRAGMENT, 4, remaining, &mut space)?;
        let reason = DecodeError::Remaining(remaining);
        refuses_next(&mut receiver, bytes, reason, "what remains")?;
        check_discards(&mut receiver)?;
    }
    // Of the first one, zero, and more than a message may have.
    let longest = BOUNDS.call_octets.saturating_sub(20);
    for (remaining, fits) in [
        (0, false),
        (longest, true),
        (longest.saturating_add(1), false),
        (u32::MAX, false),
    ] {
        let mut receiver = Receiver::new(BOUNDS);
        let bytes = with_word(vectors::FIRST_FRAGMENT, 4, remaining, &mut space)?;
        let found = receiver.receive(bytes).err().map(|refused| refused.reason);
        let expected = (!fits).then_some(DecodeError::Remaining(remaining));
        require(found == expected, "octets of the whole message")?;
    }
    let longest = BOUNDS.reply_octets.saturating_sub(20);
    for (remaining, fits) in [(longest, true), (longest.saturating_add(1), false)] {
        let mut receiver = Receiver::new(BOUNDS);
        let bytes = with_word(vectors::FIRST_OF_REPLY, 4, remaining, &mut space)?;
        let fitted = receiver.receive(bytes).is_ok();
        require(fitted == fits, "octets of a whole Reply")?;
    }
    check_unaligned()?;
    // All that is left, and still not the last.
    let mut receiver = Receiver::new(BOUNDS);
    let bytes = with_word(vectors::FIRST_FRAGMENT, 4, 20, &mut space)?;
    accepts_next(&mut receiver, bytes, "a first fragment")?;
    let bytes = with_word(vectors::FIRST_FRAGMENT, 4, 0, &mut space)?;
    let reason = DecodeError::Remaining(0);
    refuses_next(&mut receiver, bytes, reason, "nothing is left")?;
    // A first one that is refused.
    let mut receiver = Receiver::new(BOUNDS);
    refuses_next(&mut receiver, bytes, reason, "nothing is to come")?;
    check_discards(&mut receiver)?;
    check_few_fragments()?;
    // An end of the wrong length is the end nevertheless.
    for (name, bytes) in [
        ("an end too long", vectors::CALL),
        ("an end too early", vectors::LAST_FRAGMENT),
    ] {
        let mut receiver = continued()?;
        refuses_next(&mut receiver, bytes, reason, name)?;
        accepts_next(&mut receiver, vectors::CALL, "a Call of the same XID")?;
    }
    check_rest_beside_another()
}

/// Checks that there is a limit to the number of fragments, and that the first has two words.
fn check_few_fragments() -> Check {
    let mut receiver = Receiver::new(Bounds {
        fragments: 1,
        ..BOUNDS
    });
    accepts_next(&mut receiver, vectors::FIRST_FRAGMENT, "one fragment")?;
    let second = vectors::SECOND_FRAGMENT;
    let reason = DecodeError::Remaining(24);
    refuses_next(&mut receiver, second, reason, "a second fragment")?;
    let mut receiver = Receiver::new(Bounds {
        fragments: 0,
        ..BOUNDS
    });
    let reason = DecodeError::Remaining(32);
    refuses_next(
        &mut receiver,
        vectors::FIRST_FRAGMENT,
        reason,
        "no fragment",
    )?;
    let mut receiver = Receiver::new(BOUNDS);
    let one = vectors::FIRST_FRAGMENT.get(..27).ok_or("seven octets")?;
    let reason = DecodeError::ShortPayload;
    refuses_next(&mut receiver, one, reason, "less than two words")?;
    let mut receiver = Receiver::new(BOUNDS);
    let two = vectors::FIRST_FRAGMENT.get(..28).ok_or("two words")?;
    accepts_next(&mut receiver, two, "two words")
}

/// Checks that a fragment may end at any octet, behind the first word of it.
fn check_unaligned() -> Check {
    let mut space = [0; 256];
    let first = with_word(vectors::FIRST_FRAGMENT, 4, 33, &mut space)?;
    let first = first.get(..39).ok_or("a fragment of 19 octets")?;
    let mut receiver = Receiver::new(BOUNDS);
    accepts_next(&mut receiver, first, "19 octets")?;
    let mut space = [0; 256];
    let second = with_word(vectors::SECOND_FRAGMENT, 4, 28, &mut space)?;
    let second = second.get(..25).ok_or("a fragment of 5 octets")?;
    accepts_next(&mut receiver, second, "5 octets")?;
    let third = vectors::FIRST_FRAGMENT.get(..23).ok_or("3 octets")?;
    refuses_next(&mut receiver, third, DecodeError::Truncated, "3 octets")
}

/// Checks that no fragment of the refused Call is taken until its end, or until another message
/// comes that is none of them.
fn check_discards(receiver: &mut Receiver) -> Check {
    let mut other = receiver.clone();
    for bytes in [
        vectors::SECOND_FRAGMENT,
        vectors::FIRST_FRAGMENT,
        vectors::LAST_FRAGMENT,
    ] {
        accepts_next(receiver, vectors::GRANT, "a GRANT")?;
        let claim = "the rest of a refused Call";
        refuses_next(receiver, bytes, DecodeError::Discarded, claim)?;
    }
    accepts_next(receiver, vectors::FIRST_FRAGMENT, "a Call behind the end")?;
    for bytes in [vectors::EXTERNAL_CALL, vectors::FIRST_FRAGMENT] {
        accepts_next(&mut other, bytes, "a Call without an end before it")?;
    }
    Ok(())
}

/// Checks that a message whose fragments come among those of another is refused once, and the rest
/// of it discarded, while the other goes on.
fn check_rest_beside_another() -> Check {
    let mut receiver = continued()?;
    let reply = vectors::FIRST_OF_REPLY;
    let claim = "a Reply among the fragments of a Call";
    refuses_next(&mut receiver, reply, DecodeError::Sequence, claim)?;
    accepts_next(&mut receiver, vectors::SECOND_FRAGMENT, "the Call goes on")?;
    let claim = "the rest of the Reply";
    refuses_next(&mut receiver, reply, DecodeError::Discarded, claim)?;
    let last = vectors::LAST_OF_REPLY;
    refuses_next(&mut receiver, last, DecodeError::Discarded, claim)?;
    let claim = "a whole Reply among the fragments";
    refuses_next(&mut receiver, vectors::REPLY, DecodeError::Sequence, claim)?;
    accepts_next(&mut receiver, vectors::LAST_FRAGMENT, "the Call's end")?;
    accepts_next(&mut receiver, reply, "a Reply behind it")
}
