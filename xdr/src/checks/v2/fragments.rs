// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! A Payload stream in fragments, as its sender makes them.

use super::{
    require,
    Check, //
};
use crate::v2::Fragments;

/// Checks that the fragments are the whole stream, within their room, and as many as the sender has
/// credits for, in rooms of all kinds.
pub fn check_fragments() -> Check {
    require(
        Fragments::new(100, 7, 100).is_none(),
        "no room for two words",
    )?;
    require(Fragments::new(8, 100, 100).is_none(), "no RPC message")?;
    require(
        Fragments::new(100, 100, 3).is_none(),
        "no room for a last word",
    )?;
    require(Fragments::new(102, 100, 100).is_none(), "half a word")?;
    let whole = Fragments::new(100, 40, 100).ok_or("room for a word")?;
    require(
        whole.messages() == 1 && whole.left() == 100,
        "a stream that fits is one message",
    )?;
    for payload in (12..220).step_by(4) {
        for (room, last_room) in [(8, 4), (11, 5), (40, 12), (41, 39)] {
            check_split(payload, room, last_room)?;
        }
    }
    for payload in [4000, 4004, 65536, 1 << 20] {
        check_split(payload, 4080, 4000)?;
    }
    Ok(())
}

fn check_split(payload: u32, room: u32, last_room: u32) -> Check {
    let mut fragments = Fragments::new(payload, room, last_room).ok_or("room for a word")?;
    let messages = fragments.messages();
    let (mut left, mut count) = (payload, 1u32);
    for (length, remaining) in fragments.by_ref() {
        let least = if count == 1 { 8 } else { 4 };
        require(length >= least && length & 3 == 0, "whole words")?;
        require(length <= room, "within the room")?;
        left = left.checked_sub(length).ok_or("more than there is")?;
        require(remaining == left && left >= 4, "what remains")?;
        count = count.saturating_add(1);
    }
    require(fragments.left() == left, "the last has the rest")?;
    require(left <= last_room, "within the last room")?;
    require(count == messages, "messages as said before")
}
