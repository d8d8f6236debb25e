// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Messages that break the protocol are refused for the right reason.

use super::{
    is_over_limit,
    put,
    require,
    Check,
    AMPLE, //
};
use crate::{
    vectors::*,
    DecodeError::{
        self,
        *, //
    },
    Limits,
    Message,
    Rejected, //
};

/// More than the longest vector.
pub(super) const SPACE: usize = 512;

/// A valid message, words of it replaced, and why it is then refused.
pub(super) struct Bad {
    pub(super) claim: &'static str,
    pub(super) base: &'static [u8],
    /// Index of a word, and its new value.
    pub(super) words: &'static [(usize, u32)],
    pub(super) reason: DecodeError,
}

const fn bad(
    claim: &'static str,
    base: &'static [u8],
    words: &'static [(usize, u32)],
    reason: DecodeError,
) -> Bad {
    Bad {
        claim,
        base,
        words,
        reason,
    }
}

/// Malformed and unsupported messages. Word 3 is `rdma_proc`, word 4 begins the Read list.
#[rustfmt::skip]
pub(super) const BAD: &[Bad] = &[
    bad("version 0", SHORT_CALL, &[(1, 0)], Version(0)),
    bad("version 2, whatever its procedure", SHORT_CALL, &[(1, 2), (3, 3)], Version(2)),
    bad("undefined procedure", SHORT_CALL, &[(3, 5)], Procedure(5)),
    bad("RDMA_MSGP", MSGP, &[], Msgp),
    bad("RDMA_DONE, and more", SHORT_CALL, &[(3, 3)], Done),
    bad("unknown error code", ERR_VERS, &[(4, 3)], UnknownError),
    bad("ERR_CHUNK of another version", ERR_VERS, &[(4, 2)], UnknownError),
    bad("ERR_CHUNK of 20 octets, of another version", ERR_CHUNK, &[(1, 2)], Short),
    bad("ERR_VERS of 20 octets", ERR_CHUNK, &[(4, 1)], Short),
    bad("RDMA_MSG of 20 octets", ERR_CHUNK, &[(3, 0)], Short),
    bad("Read list discriminator 2", SHORT_CALL, &[(4, 2)], Discriminator(2)),
    bad("Write list discriminator 2^24", SHORT_CALL, &[(5, 1 << 24)], Discriminator(1 << 24)),
    bad("greatest discriminator", SHORT_CALL, &[(6, u32::MAX)], Discriminator(u32::MAX)),
    bad("Read segment wraps", READ_CHUNK, &[(20, u32::MAX), (21, u32::MAX), (19, 1)], SegmentWraps),
    bad("Write segment wraps", WRITE_LIST, &[(9, u32::MAX), (10, u32::MAX)], SegmentWraps),
    bad("Reply segment wraps", REPLY_CHUNK, &[(12, u32::MAX), (13, 0xffff_e001)], SegmentWraps),
    bad("segment count that the message cannot hold", WRITE_LIST, &[(6, 12)], Truncated),
    bad("segment count of 2^32 - 1", WRITE_LIST, &[(6, u32::MAX)], Truncated),
    bad("segment count whose octets wrap 32 bits", REPLY_CHUNK, &[(9, 0x1000_0001)], Truncated),
    bad("Position 90", READ_CHUNK, &[(5, 90)], PositionUnaligned(90)),
    bad("Position 1", READ_CHUNK, &[(5, 1)], PositionUnaligned(1)),
    bad("Position 36 is inside the RPC Call header", READ_CHUNK, &[(5, 36)], PositionInHeader(36)),
    bad("Read chunks overlap", READ_LIST, &[(23, 8236)], PositionOverlaps(8236)),
    bad("Position past the end", READ_LIST, &[(23, 8244)], PositionPastEnd(8244)),
    bad("greatest Position", READ_LIST, &[(23, 0xffff_fffc)], PositionPastEnd(0xffff_fffc)),
    bad("Position past the end of a Long Call", LONG_CALL, &[(17, 4152)], PositionPastEnd(4152)),
    bad("Position Zero Read chunk in RDMA_MSG", READ_LIST, &[(11, 0)], PositionZeroInline),
    bad("Read list in a Reply", READ_LIST, &[(32, 1)], ReadListInReply),
    bad("RDMA_NOMSG without any chunk", SHORT_CALL, &[(3, 1)], NoPayload),
    bad("RDMA_NOMSG with a Write list only", WRITE_LIST, &[(3, 1)], NoPayload),
    bad("RDMA_NOMSG with Read chunks, none of Position zero", READ_LIST, &[(3, 1)], NoPayload),
    bad("Position Zero Read chunk of 7 octets", LONG_CALL, &[(7, 7), (13, 0)], ShortPayload),
    bad("Reply chunk of 7 octets in RDMA_NOMSG", LONG_REPLY, &[(11, 0), (15, 7)], ShortPayload),
    bad("empty Payload stream", ERR_VERS, &[(1, 1), (3, 0), (4, 0), (5, 0), (6, 0)], ShortPayload),
    bad("XID of a Call", SHORT_CALL, &[(7, XID ^ 1)], XidMismatch),
    bad("XID of a Reply", SHORT_REPLY, &[(0, XID ^ 0x8000_0000)], XidMismatch),
    bad("msg_type 2", SHORT_CALL, &[(8, 2)], MsgType(2)),
    // What has a single chunk is looked at as a whole, if it is as it should be.
    bad("one Read segment not present", ONE_READ_SEGMENT, &[(4, 0)], Discriminator(88)),
    bad("one Read segment, Position 90", ONE_READ_SEGMENT, &[(5, 90)], PositionUnaligned(90)),
    bad("one Read segment, Position 36", ONE_READ_SEGMENT, &[(5, 36)], PositionInHeader(36)),
    bad("one Read segment, Position 0", ONE_READ_SEGMENT, &[(5, 0)], PositionZeroInline),
    bad("one Read segment, past the end", ONE_READ_SEGMENT, &[(5, 92)], PositionPastEnd(92)),
    bad("one Read segment wraps", ONE_READ_SEGMENT, &[(8, u32::MAX), (9, u32::MAX)], SegmentWraps),
    bad("one Read segment, end of list 2", ONE_READ_SEGMENT, &[(10, 2)], Discriminator(2)),
    bad("one Read segment, Write list 2", ONE_READ_SEGMENT, &[(11, 2)], Discriminator(2)),
    bad("one Read segment, Reply chunk 2", ONE_READ_SEGMENT, &[(12, 2)], Discriminator(2)),
    bad("one Read segment, XID", ONE_READ_SEGMENT, &[(13, XID ^ 1)], XidMismatch),
    bad("one Read segment in a Reply", ONE_READ_SEGMENT, &[(14, 1)], ReadListInReply),
    bad("one Read segment, msg_type 2", ONE_READ_SEGMENT, &[(14, 2)], MsgType(2)),
    bad("one Write chunk, Read list 2", ONE_WRITE_CHUNK, &[(4, 2)], Discriminator(2)),
    bad("one Write chunk not present", ONE_WRITE_CHUNK, &[(5, 0)], Discriminator(2)),
    bad("one Write chunk too long for the message", ONE_WRITE_CHUNK, &[(6, 6)], Truncated),
    bad("one Write chunk wraps", ONE_WRITE_CHUNK, &[(13, u32::MAX), (14, u32::MAX)], SegmentWraps),
    bad("one Write chunk, end of list 2", ONE_WRITE_CHUNK, &[(15, 2)], Discriminator(2)),
    bad("one Write chunk, Reply chunk 2", ONE_WRITE_CHUNK, &[(16, 2)], Discriminator(2)),
    bad("one Write chunk, XID", ONE_WRITE_CHUNK, &[(17, XID ^ 1)], XidMismatch),
    bad("one Write chunk, msg_type 2", ONE_WRITE_CHUNK, &[(18, 2)], MsgType(2)),
];

/// Copies `base` into `space` and replaces words of it.
pub(super) fn patched<'s>(
    base: &[u8],
    words: &[(usize, u32)],
    space: &'s mut [u8; SPACE],
) -> Result<&'s [u8], &'static str> {
    let bytes = space.get_mut(..base.len()).ok_or("vector too long")?;
    put(bytes, base)?;
    for &(index, value) in words {
        let field = bytes
            .chunks_exact_mut(4)
            .nth(index)
            .ok_or("no such word in the vector")?;
        put(field, &value.to_be_bytes())?;
    }
    Ok(bytes)
}

pub(super) fn refused(bytes: &[u8], limits: &Limits) -> Option<Rejected> {
    Message::decode(bytes, limits).err()
}

/// Checks that each of `BAD` is refused for its reason.
pub fn check_malformed() -> Check {
    let mut space = [0; SPACE];
    for bad in BAD {
        let bytes = patched(bad.base, bad.words, &mut space)?;
        let rejected = refused(bytes, &AMPLE).ok_or(bad.claim)?;
        require(rejected.reason == bad.reason, bad.claim)?;
        require(!is_over_limit(&rejected.reason), bad.claim)?;
        let trusted = rejected.reason != Short;
        require(rejected.header.is_some() == trusted, bad.claim)?;
    }
    // What is just inside: the segment that ends at 2^64 - 1, the Position that is the end.
    let edge = [(12, u32::MAX), (13, 0xffff_dfff)];
    let bytes = patched(REPLY_CHUNK, &edge, &mut space)?;
    require(
        refused(bytes, &AMPLE).is_none(),
        "segment up to 2^64 - 1 is good",
    )?;
    let bytes = patched(LONG_CALL, &[(17, 4148)], &mut space)?;
    require(
        refused(bytes, &AMPLE).is_none(),
        "Position at the end of a Long Call is good",
    )?;
    let bytes = patched(READ_CHUNK, &[(5, 40), (11, 40), (17, 40)], &mut space)?;
    require(
        refused(bytes, &AMPLE).is_none(),
        "Position just after the smallest RPC Call header is good",
    )
}
