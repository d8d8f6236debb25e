// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Connection private data.

use super::{
    put,
    require,
    Check, //
};
use crate::{
    vectors,
    InlineSize,
    PrivateData,
    Pulls, //
};

/// Checks the message both ways, and what is no message (RFC 8797, section 4).
pub fn check_private_data() -> Check {
    let decoded = PrivateData::decode(vectors::PRIVATE_DATA).ok_or("the message decodes")?;
    require(decoded.remote_invalidation, "R bit")?;
    require(decoded.send_size.bytes() == 4096, "send size")?;
    require(decoded.receive_size.bytes() == 8192, "receive size")?;
    let mut space = [0xff; 9];
    require(decoded.encode(&mut space) == Ok(8), "encoded length")?;
    require(
        space.get(..8) == Some(vectors::PRIVATE_DATA) && space.last() == Some(&0xff),
        "encoded octets",
    )?;
    require(
        PrivateData::DEFAULT.encode(&mut space) == Ok(8)
            && space.get(..8) == Some(&[0xf6, 0xab, 0x0e, 0x18, 1, 0, 0, 0]),
        "reserved bits and unset fields are zero",
    )?;

    for len in 0..8 {
        let part = vectors::PRIVATE_DATA.get(..len).ok_or("prefix")?;
        require(
            PrivateData::decode(part).is_none(),
            "a part of the message is none",
        )?;
    }
    require(
        PrivateData::decode(&[0xf6, 0xab, 0x0e, 0x18, 2, 1, 3, 7]).is_none(),
        "unknown format version",
    )?;
    require(
        PrivateData::decode(&[0x18, 0x0e, 0xab, 0xf6, 1, 1, 3, 7]).is_none(),
        "Format Identifier in the wrong octet order",
    )?;
    let reserved = PrivateData::decode(&[0xf6, 0xab, 0x0e, 0x18, 1, 0xfe, 0, 0xff]);
    require(
        reserved
            == Some(PrivateData {
                remote_invalidation: false,
                send_size: InlineSize::MIN,
                receive_size: InlineSize::MAX,
                pulls: Pulls::NONE,
            }),
        "reserved bits are ignored",
    )?;
    require(
        PrivateData::DEFAULT == PrivateData::default()
            && PrivateData::DEFAULT.receive_size.bytes() == 1024,
        "a silent peer has 1024 octets",
    )
}

/// Checks that the Format Identifier may be at any offset, and more may follow (RFC 8797,
/// section 5.2).
pub fn check_private_data_search() -> Check {
    let wanted = PrivateData::decode(vectors::PRIVATE_DATA);
    for offset in 0..=48 {
        let mut space = [0xf6; 56];
        let end = 8_usize.saturating_add(offset);
        let field = space.get_mut(offset..end).ok_or("room")?;
        put(field, vectors::PRIVATE_DATA)?;
        require(
            PrivateData::decode(&space) == wanted,
            "message among others",
        )?;
        let received = space.get(..end).ok_or("prefix")?;
        require(
            PrivateData::decode(received) == wanted,
            "message at the end",
        )?;
        let cut = space.get(..end.saturating_sub(1)).ok_or("prefix")?;
        require(
            PrivateData::decode(cut).is_none(),
            "message cut off at the end",
        )?;
    }
    Ok(())
}

/// Checks sizes in units of 1024, and the thresholds that follow (RFC 8797, section 4.2).
pub fn check_inline_size() -> Check {
    for (bytes, represented) in [
        (0, 1024),
        (1023, 1024),
        (1024, 1024),
        (2047, 1024),
        (2048, 2048),
        (4096, 4096),
        (8191, 7168),
        (262_143, 261_120),
        (262_144, 262_144),
        (u32::MAX, 262_144),
    ] {
        require(
            InlineSize::from_bytes(bytes).bytes() == represented,
            "size as represented",
        )?;
    }
    let own = PrivateData {
        remote_invalidation: true,
        send_size: InlineSize::from_bytes(8192),
        receive_size: InlineSize::from_bytes(16384),
        pulls: Pulls::NONE,
    };
    let peer = PrivateData {
        remote_invalidation: false,
        send_size: InlineSize::from_bytes(32768),
        receive_size: InlineSize::from_bytes(4096),
        pulls: Pulls::NONE,
    };
    require(
        own.send_threshold(&peer) == 4096,
        "the peer's receive size rules",
    )?;
    require(
        own.receive_threshold(&peer) == 16384,
        "the own receive size rules",
    )?;
    require(
        own.send_threshold(&PrivateData::DEFAULT) == 1024,
        "a silent peer receives 1024 octets",
    )
}

/// Checks that the block behind the message is found wherever that is, and taken for none where
/// anything of it is not known.
pub fn check_pulls() -> Check {
    let [pull, provide] = [(true, false), (false, true)].map(|(may_pull, may_provide)| Pulls {
        may_pull,
        may_provide,
    });
    let decoded = PrivateData::decode(vectors::PRIVATE_DATA_PULLS).ok_or("the message decodes")?;
    require(decoded.pulls == pull, "the block")?;
    let mut space = [0xff; PrivateData::MAX_SIZE];
    require(decoded.encode(&mut space) == Ok(16), "encoded length")?;
    require(space == *vectors::PRIVATE_DATA_PULLS, "encoded octets")?;
    let plain = PrivateData::decode(vectors::PRIVATE_DATA).ok_or("the message decodes")?;
    require(plain.pulls == Pulls::NONE, "no block")?;

    let says = |at: usize, octet: u8| {
        let mut changed = [0; PrivateData::MAX_SIZE];
        put(&mut changed, vectors::PRIVATE_DATA_PULLS)?;
        *changed.get_mut(at).ok_or("an octet")? = octet;
        let data = PrivateData::decode(&changed).ok_or("the message decodes")?;
        let same = data.receive_size == plain.receive_size;
        require(same, "the block spoils nothing")?;
        Ok(data.pulls)
    };
    require(says(13, 2)? == provide, "provides")?;
    require(
        says(13, 3)?
            == Pulls {
                may_pull: true,
                may_provide: true,
            },
        "both",
    )?;
    require(says(13, 0)? == Pulls::NONE, "neither")?;
    require(says(13, 5)? == Pulls::NONE, "a flag that is not known")?;
    require(says(13, 0x81)? == Pulls::NONE, "the highest flag")?;
    require(says(12, 2)? == Pulls::NONE, "another version")?;
    require(says(11, 0)? == Pulls::NONE, "not its magic number")?;
    require(
        says(14, 0xff)? == pull && says(15, 0xff)? == pull,
        "reserved octets are ignored",
    )?;
    check_pulls_place()
}

/// Checks private data that ends inside the block.
fn check_pulls_place() -> Check {
    let wanted = PrivateData::decode(vectors::PRIVATE_DATA_PULLS);
    let mut space = [0xf6; 56];
    let field = space.get_mut(40..56).ok_or("room")?;
    put(field, vectors::PRIVATE_DATA_PULLS)?;
    require(PrivateData::decode(&space) == wanted, "at the end")?;
    for end in 48..56 {
        let cut = space.get(..end).ok_or("prefix")?;
        let data = PrivateData::decode(cut).ok_or("the message decodes")?;
        require(data.pulls == Pulls::NONE, "a part of the block is none")?;
    }
    let other = PrivateData {
        pulls: Pulls {
            may_pull: false,
            may_provide: true,
        },
        ..PrivateData::DEFAULT
    };
    let puller = wanted.ok_or("the message decodes")?;
    require(
        puller.pulls_from(&other),
        "what one may do the other has to say, too",
    )?;
    require(!other.pulls_from(&puller), "the directions are apart")?;
    require(
        !puller.pulls_from(&PrivateData::DEFAULT),
        "a silent peer does neither",
    )
}
