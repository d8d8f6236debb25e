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

    // It may go back as far as to what was sent.
    require(credits.receive(3, false).is_ok(), "one less")?;
    require(credits.available() == 1, "three in all, two were sent")?;
    require(credits.receive(2, false).is_ok(), "no credit any more")?;
    require(credits.available() == 0, "all are used")?;
    let before = credits;
    for value in [1, 0, u32::MAX, 0x8000_0002, 0x8000_0003] {
        let refused = credits.receive(value, false);
        require(refused == Err(Hostile), "what was used is taken back")?;
        require(credits == before, "nothing is changed by it")?;
    }
    require(credits.receive(2, true).is_ok(), "the same again")?;
    require(credits.receive(0x8000_0001, true).is_ok(), "the most")?;
    require(credits.available() == 0x7fff_ffff, "the most credits")?;
    check_wrap()
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

/// Checks when a GRANT is sent, that it may be one more than the credits, and never for a GRANT.
pub fn check_grants() -> Check {
    let mut credits = Credits::new();
    require(!credits.owes_grant(8), "nothing has come")?;
    require(credits.send(8) == Some(8), "eight Receives")?;
    for messages in 1..=8u32 {
        require(credits.receive(1, false).is_ok(), "a message")?;
        let owes = credits.owes_grant(8);
        require(owes == (messages >= 4), "half of what was told is used")?;
    }
    require(credits.receive(1, false).is_ok(), "one more than was told")?;
    require(credits.owes_grant(8), "it is owed still")?;

    require(credits.available() == 0, "no credit is left")?;
    require(credits.send_grant(8) == Some(17), "nine received")?;
    require(!credits.owes_grant(8), "it was sent")?;
    require(credits.send_grant(8).is_none(), "not one more")?;
    require(credits.available() == 0, "the limit is passed by one")?;
    require(credits.receive(1, false).is_ok(), "no credit, again")?;

    // What a GRANT uses is not told by a GRANT.
    let mut silent = Credits::new();
    require(silent.send(2) == Some(2), "two Receives")?;
    for _ in 0..2 {
        require(silent.receive(9, true).is_ok(), "a GRANT")?;
        require(!silent.owes_grant(2), "a GRANT is not answered")?;
    }
    require(silent.receive(9, false).is_ok(), "another message")?;
    require(silent.owes_grant(2), "it is")
}
