// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The fixed fields.

use super::{
    put,
    require,
    Check, //
};
use crate::{
    v1::header::{
        RDMA_DONE,
        RDMA_ERROR,
        RDMA_MSG,
        RDMA_MSGP,
        RDMA_NOMSG, //
    },
    vectors,
    FixedHeader, //
};

/// Checks the numbers of the procedures (RFC 8166, section 4.2.4), and that the credits of a
/// message can be changed, and nothing else of it is.
pub fn check_fixed_header() -> Check {
    let procedures = [RDMA_MSG, RDMA_NOMSG, RDMA_MSGP, RDMA_DONE, RDMA_ERROR];
    require(procedures == [0, 1, 2, 3, 4], "the procedures' numbers")?;

    let mut space = [0; 68];
    put(&mut space, vectors::SHORT_CALL)?;
    FixedHeader::set_credits(&mut space, 0x0102_0304);
    let (before, rest) = vectors::SHORT_CALL.split_at_checked(8).ok_or("two words")?;
    let behind = rest.get(4..).ok_or("a third word")?;
    require(
        space.starts_with(before) && space.ends_with(behind),
        "what is around the credits is left alone",
    )?;
    let stamped = FixedHeader {
        xid: vectors::XID,
        version: 1,
        credits: 0x0102_0304,
        procedure: RDMA_MSG,
    };
    require(
        FixedHeader::peek(&space) == Some(stamped),
        "the new credits",
    )?;
    let mut short = [0x5a; 11];
    FixedHeader::set_credits(&mut short, 1);
    require(short == [0x5a; 11], "a message without credits")
}
