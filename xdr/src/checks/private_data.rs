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
    PrivateData, //
};

/// RFC 8797, section 4: the message both ways, and what is no message.
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
        PrivateData::DEFAULT.to_wire() == [0xf6, 0xab, 0x0e, 0x18, 1, 0, 0, 0],
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
            }),
        "reserved bits are ignored",
    )?;
    require(
        PrivateData::DEFAULT == PrivateData::default()
            && PrivateData::DEFAULT.receive_size.bytes() == 1024,
        "a silent peer has 1024 octets",
    )
}

/// RFC 8797, section 5.2: the Format Identifier may be at any offset, and more may follow.
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

/// RFC 8797, section 4.2: sizes in units of 1024, and the thresholds that follow.
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
    };
    let peer = PrivateData {
        remote_invalidation: false,
        send_size: InlineSize::from_bytes(32768),
        receive_size: InlineSize::from_bytes(4096),
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
