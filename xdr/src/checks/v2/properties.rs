// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Transport properties.

use super::{
    accepts_next,
    first,
    refuses,
    refuses_next,
    require,
    with_word,
    Check,
    BOUNDS, //
};
use crate::{
    v2::{
        encode_properties,
        Properties,
        PropertySet,
        Received,
        Receiver,
        ReverseSupport, //
    },
    vectors::{
        v2 as vectors,
        XID, //
    },
    DecodeError, //
};

fn set(bytes: &[u8]) -> Result<(PropertySet<'_>, bool), &'static str> {
    match first(bytes) {
        Ok(Received::Properties { set, last }) => Ok((set, last)),
        _ => Err("properties"),
    }
}

/// Checks the defaults, what a message changes of them, and what is no value of a property.
pub fn check_properties() -> Check {
    let default = Properties::default();
    require(
        default.max_send == 4096 && default.min_receive == 4096,
        "default inline thresholds (section 4.2.2)",
    )?;
    require(
        default.segment_bytes == 1_048_576 && default.segments == 16,
        "default segments (table 1)",
    )?;
    require(
        default.reverse == ReverseSupport::None,
        "no default for the reverse direction (section 5.2.5)",
    )?;

    let (others, last) = set(vectors::FINAL)?;
    require(last, "the last properties")?;
    let mut found = default;
    found.apply(&others);
    let said = Properties {
        max_send: 8192,
        min_receive: 8192,
        segment_bytes: 1 << 24,
        segments: 32,
        reverse: ReverseSupport::Continued,
    };
    require(found == said, "what is said")?;
    let mut space = [0; 128];
    let length = encode_properties(&said, &mut space, XID, 33);
    require(length == Ok(vectors::FINAL.len()), "its length")?;
    require(space.starts_with(vectors::FINAL), "its octets")?;

    // The default of one, one that is unknown, and one that is not looked at.
    let (others, last) = set(vectors::MIDDLE_PROPERTIES)?;
    require(!last, "more properties follow")?;
    found.apply(&others);
    let expected = Properties {
        min_receive: 4096,
        ..said
    };
    require(found == expected, "no octets are the default")?;
    let mut unknown = others.iter().skip(1);
    let data = unknown.next().map(|property| property.data);
    require(data == Some(&[1, 2, 3, 4, 5]), "octets without padding")?;
    require(
        set(vectors::NO_PROPERTIES)?.0.iter().next().is_none(),
        "no properties",
    )?;
    let mut found = said;
    found.apply(&set(vectors::DEFAULTS)?.0);
    require(found == default, "no octets are the default of each")?;
    check_reverse()?;
    check_twice()?;
    check_bad_values()
}

/// Checks that of a property that comes twice the last value counts, and that a message with a bad
/// value brings nothing, while the next one does.
fn check_twice() -> Check {
    let mut space = [0; 128];
    let twice = with_word(vectors::FINAL, 14, 4, &mut space)?;
    let mut found = Properties::default();
    found.apply(&set(twice)?.0);
    require(found.segments == 32, "the last value")?;
    let mut receiver = Receiver::new(BOUNDS);
    let bad = with_word(vectors::MIDDLE_PROPERTIES, 7, 2, &mut space)?;
    let reason = DecodeError::PropertyValue(2);
    refuses_next(&mut receiver, bad, reason, "a bad value")?;
    accepts_next(&mut receiver, vectors::FINAL, "the last properties")
}

/// Checks the levels of support for the reverse direction (section 5.2.5).
fn check_reverse() -> Check {
    let mut space = [0; 128];
    for (value, reverse) in [
        (0, ReverseSupport::None),
        (1, ReverseSupport::Simple),
        (2, ReverseSupport::Continued),
        (3, ReverseSupport::General),
    ] {
        let bytes = with_word(vectors::FINAL, 19, value, &mut space)?;
        let mut found = Properties::default();
        found.apply(&set(bytes)?.0);
        require(found.reverse == reverse, "a level of support")?;
        let mut again = [0; 128];
        let length = encode_properties(&found, &mut again, XID, 33);
        // Who has no support does not speak of it.
        let said = if value == 0 { 68 } else { bytes.len() };
        require(length == Ok(said), "its length")?;
        let behind = again.get(20..said) == bytes.get(20..said);
        require(
            behind && again.get(19) == Some(if value == 0 { &4 } else { &5 }),
            "its octets",
        )?;
    }
    Ok(())
}

/// Checks that a bad value is told from a message that cannot be parsed.
fn check_bad_values() -> Check {
    use DecodeError as Reason;
    let mut space = [0; 128];
    for (name, word, value, reason) in [
        ("a fifth level", 19, 4, Reason::PropertyValue(5)),
        ("a small Receive", 10, 1023, Reason::PropertyValue(2)),
        ("segments of no octets", 13, 0, Reason::PropertyValue(3)),
        ("three octets", 9, 3, Reason::PropertyValue(2)),
        ("data past the end", 18, 8, Reason::PropertyValue(5)),
        ("the most data", 18, u32::MAX, Reason::PropertyValue(5)),
        ("one property more", 4, 6, Reason::Truncated),
        ("the most properties", 4, u32::MAX, Reason::Truncated),
    ] {
        let bytes = with_word(vectors::FINAL, word, value, &mut space)?;
        refuses(bytes, reason, name)?;
    }
    let reason = Reason::PropertyValue(5);
    refuses(vectors::SIXTH_IS_BAD, reason, "the sixth of six")?;
    let five = with_word(vectors::MIDDLE_PROPERTIES, 7, 2, &mut space)?;
    refuses(five, Reason::PropertyValue(2), "five octets")?;
    let least = with_word(vectors::FINAL, 10, 1024, &mut space)?;
    require(set(least).is_ok(), "the smallest Receive")?;
    let fewer = with_word(vectors::FINAL, 4, 4, &mut space)?;
    let mut four = set(fewer)?.0.iter();
    require(
        four.nth(3).is_some() && four.next().is_none(),
        "what is behind is ignored",
    )
}
