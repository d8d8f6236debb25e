// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Flow control.

use super::{
    require,
    Check, //
};
use crate::v2::{
    Credits,
    Hostile, //
};

/// Checks that the first message waits for nothing and the second for the peer's first, that what
/// is told counts from what was received, and what values nobody may send.
pub fn check_credits() -> Check {
    let mut credits = Credits::new();
    require(credits.available() == 1, "one message at first")?;
    require(
        credits.send(8) == Some(8),
        "nothing received, eight Receives",
    )?;
    require(credits.available() == 0, "no second message")?;
    require(credits.send(8).is_none(), "a second message is not sent")?;

    require(credits.receive(4, false).is_ok(), "a first grant")?;
    require(credits.available() == 3, "four in all, one was sent")?;
    require(credits.send(8) == Some(9), "one received, eight Receives")?;

    check_taken_back()?;
    check_hostile()?;
    check_wrap()
}

/// Checks that credits may be taken back, even of messages that are on their way.
fn check_taken_back() -> Check {
    let mut credits = Credits::new();
    require(credits.receive(10, false).is_ok(), "ten")?;
    require(credits.receive(9, false).is_ok(), "one less")?;
    require(credits.available() == 9, "nine, none was sent")?;
    let mut credits = credits.after_sending(9);
    for value in [8, 5, 0, 0u32.wrapping_sub(2)] {
        require(
            credits.receive(value, false).is_ok(),
            "behind what was sent",
        )?;
        require(credits.available() == 0, "no credit")?;
        require(credits.send(3).is_none(), "no message")?;
        require(credits.send_grant(3).is_none(), "no GRANT")?;
    }
    require(credits.receive(9, false).is_ok(), "all that was sent")?;
    require(credits.send_grant(3).is_some(), "a GRANT beside it")?;
    require(credits.receive(12, false).is_ok(), "more again")?;
    require(credits.available() == 2, "twelve, ten were sent")
}

/// Checks values that nobody may send: they change nothing.
fn check_hostile() -> Check {
    let mut credits = Credits::new();
    require(credits.receive(10, false).is_ok(), "ten")?;
    let mut credits = credits.after_sending(10);
    let before = credits;
    // The window was ten, and a GRANT may be beside it.
    for value in [0u32.wrapping_sub(2), 0x8000_0009, 0x8000_000a, 0x8000_000b] {
        let refused = credits.receive(value, false);
        require(refused == Err(Hostile), "what nobody may send")?;
        require(credits == before, "nothing is changed by it")?;
    }
    require(
        credits.receive(0u32.wrapping_sub(1), true).is_ok(),
        "the least",
    )?;
    require(credits.receive(0x8000_0008, true).is_ok(), "the most")?;
    require(credits.available() == 0x7fff_fffe, "the most credits")
}

/// Checks that all is well where the counters wrap.
fn check_wrap() -> Check {
    let mut credits = Credits::new();
    let (mut limit, mut received) = (1u32, 0u32);
    // Three steps of 2^30 and more are once around.
    for _ in 0..9 {
        limit = limit.wrapping_add(1 << 30);
        require(credits.receive(limit, false).is_ok(), "an advance")?;
        received = received.wrapping_add(1);
        credits = credits.after_sending(1 << 30);
        require(credits.available() == 1, "all but one are used")?;
        let told = credits.after_sending(0).send(5);
        let expected = received.wrapping_add(5);
        require(told == Some(expected), "five Receives")?;
    }
    Ok(())
}

/// Returns whether a GRANT is owed, as who asks first whether it may be.
fn owes(credits: &Credits, advertised: u32, least: u32) -> bool {
    credits.may_owe_grant(least) && credits.owes_grant(advertised.wrapping_add(1), least)
}

/// Checks when a GRANT is sent, that it may be one more than the credits, and never for a GRANT.
pub fn check_grants() -> Check {
    let mut credits = Credits::new();
    require(!owes(&credits, 8, 1), "nothing has come")?;
    require(credits.send(8) == Some(8), "eight Receives")?;
    for messages in 1..=8u32 {
        require(credits.receive(1, false).is_ok(), "a message")?;
        let half = messages >= 4;
        require(
            owes(&credits, 8, 1) == half,
            "half of what was told is used",
        )?;
    }
    require(!owes(&credits, 0, 1), "there is nothing to tell")?;
    require(credits.receive(1, false).is_ok(), "one more than was told")?;
    require(owes(&credits, 8, 1), "it is owed still")?;
    require(owes(&credits, 0, 1), "that one could come again")?;
    require(!credits.owes_grant(0, 1), "without a Receive")?;
    require(credits.tell(0) == 8, "nothing is told without a Receive")?;

    require(credits.available() == 0, "no credit is left")?;
    require(credits.send_grant(8) == Some(17), "nine received")?;
    require(!owes(&credits, 8, 1), "it was sent")?;
    require(credits.send_grant(8).is_none(), "not one more")?;
    require(credits.available() == 0, "the limit is passed by one")?;
    require(credits.receive(1, false).is_ok(), "no credit, again")?;

    // What a GRANT uses is not told by a GRANT, until nothing is left.
    let mut silent = Credits::new();
    require(silent.send(3) == Some(3), "three Receives")?;
    for left in [2, 1, 0] {
        require(silent.receive(9, true).is_ok(), "a GRANT")?;
        require(owes(&silent, 3, 1) == (left == 0), "nothing is left")?;
    }
    require(silent.send_grant(3) == Some(6), "three more")?;
    require(silent.receive(9, true).is_ok(), "a GRANT")?;
    require(!owes(&silent, 3, 1), "two are left")?;
    require(silent.receive(9, false).is_ok(), "another message")?;
    require(owes(&silent, 3, 1), "half is used")?;
    // Who has one Receive does not answer GRANTs, or it would never end.
    let mut one = Credits::new();
    require(one.send(1) == Some(1), "one Receive")?;
    require(one.receive(9, true).is_ok(), "a GRANT")?;
    require(!owes(&one, 1, 1), "a GRANT alone")?;
    require(owes(&one, 2, 1), "two Receives")?;
    check_told()?;
    check_put()?;
    check_least()
}

/// Checks that the peer is told of enough for the longest message, if there is enough, and that a
/// GRANT behind another message does not hide that.
fn check_least() -> Check {
    let mut few = Credits::new();
    require(few.send(6) == Some(6), "six Receives")?;
    require(few.receive(9, false).is_ok(), "a message")?;
    require(!owes(&few, 5, 6), "five are left, and there are five")?;
    require(owes(&few, 6, 6), "five are left, and there are six")?;
    let mut credits = Credits::new();
    require(credits.send(8) == Some(8), "eight Receives")?;
    for (is_grant, is_owed) in [(true, false), (true, false), (true, true)] {
        require(credits.receive(9, is_grant).is_ok(), "a GRANT")?;
        require(owes(&credits, 8, 6) == is_owed, "five are left of six")?;
    }
    require(!owes(&credits, 8, 5), "five are left of five")?;
    require(!owes(&credits, 5, 6), "there are not more")?;
    require(credits.receive(9, false).is_ok(), "another message")?;
    require(owes(&credits, 6, 6), "as many as there are")?;
    require(owes(&credits, 8, 1), "half is used")?;
    require(credits.receive(9, true).is_ok(), "a GRANT behind it")?;
    require(owes(&credits, 8, 1), "it is owed still")?;
    require(credits.send(8).is_some(), "a message says it")?;
    for _ in 0..4 {
        require(credits.receive(9, true).is_ok(), "a GRANT")?;
    }
    require(!owes(&credits, 8, 1), "GRANTs alone have used half")
}

/// Checks that what was told is not taken back, and that a message without a credit value counts.
fn check_told() -> Check {
    let mut credits = Credits::new();
    require(credits.send(11) == Some(11), "eleven Receives")?;
    require(credits.receive(9, false).is_ok(), "a message")?;
    require(credits.send(4) == Some(11), "fewer, but they were told of")?;
    for _ in 0..6 {
        credits.count_received();
    }
    require(owes(&credits, 8, 1), "half of what was told is used")?;
    require(credits.available() == 7, "the credits are as they were")?;
    require(credits.send(5) == Some(12), "seven received, five Receives")?;
    credits.count_received();
    require(!owes(&credits, 5, 1), "four are left")
}

/// Checks that the credit of a message that is not sent is there again.
fn check_put() -> Check {
    let mut credits = Credits::new();
    require(credits.most() == 1, "one credit")?;
    require(!credits.take(2), "not for two messages")?;
    require(credits.take(1) && !credits.take(1), "one credit")?;
    require(credits.may_grant(), "a GRANT beside it")?;
    credits.put(1);
    require(credits.available() == 1, "it is there again")?;
    require(
        credits.take_for_grant() && credits.take_for_grant(),
        "a GRANT beside a GRANT",
    )?;
    require(!credits.may_grant(), "and none beside that")?;
    require(credits.receive(7, false).is_ok(), "seven in all")?;
    require(credits.most() == 5 && credits.take(5), "five more")?;
    require(credits.receive(8, false).is_ok(), "one more")?;
    require(credits.most() == 5, "five were the most")
}
