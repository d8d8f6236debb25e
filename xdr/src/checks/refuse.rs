// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Truncated messages, and the answers to what is refused.

use super::{
    is_over_limit,
    malformed::{
        patched,
        refused,
        BAD,
        SPACE, //
    },
    require,
    Check,
    AMPLE, //
};
use crate::{
    vectors::{
        self,
        XID, //
    },
    CallPayload,
    DecodeError,
    Direction,
    ErrorMessage,
    Limits,
    Message,
    RdmaError,
    ReplyPayload,
    ReturnError,
    Role, //
};

/// A fault, a valid message, and the words of it that are replaced.
type Patch = (&'static str, &'static [u8], &'static [(usize, u32)]);

/// Checks that every reason has words of its own.
pub fn check_reasons() -> Check {
    use DecodeError::*;
    const REFUSED: &[DecodeError] = &[
        Short,
        Version(2),
        Procedure(5),
        Msgp,
        Done,
        UnknownError,
        Truncated,
        Discriminator(2),
        SegmentWraps,
        PositionUnaligned(2),
        PositionInHeader(4),
        PositionOverlaps(44),
        PositionPastEnd(44),
        PositionZeroInline,
        ReadListInReply,
        NoPayload,
        ShortPayload,
        XidMismatch,
        MsgType(2),
        ReadSegments,
        ReadChunks,
        WriteChunks,
        WriteSegments,
        ChunkSegments,
        ReadChunkBytes,
        ReadListBytes,
        WriteChunkBytes,
        ReplyChunkBytes,
    ];
    const RETURNED: &[ReturnError] = &[
        ReturnError::NotOffered,
        ReturnError::SegmentCount,
        ReturnError::Handle,
        ReturnError::Offset,
        ReturnError::Length,
        ReturnError::Hole,
        ReturnError::ShortPayload,
    ];
    let reasons = || {
        let refused = REFUSED.iter().map(DecodeError::as_str);
        refused.chain(RETURNED.iter().map(ReturnError::as_str))
    };
    for reason in reasons() {
        require(!reason.is_empty(), "a reason without words")?;
        let same = reasons().filter(|other| *other == reason);
        require(same.take(2).nth(1).is_none(), reason)?;
    }
    Ok(())
}

/// Checks that every prefix of every valid message is refused, or is that message with a shorter
/// payload.
pub fn check_truncation() -> Check {
    for &(_, whole) in vectors::VALID {
        let header_len = match Message::decode(whole, &AMPLE) {
            Ok(Message::Call(call)) => match call.payload {
                CallPayload::Inline(inline) => inline.offset,
                CallPayload::PositionZero(_) => whole.len(),
            },
            Ok(Message::Reply(reply)) => match reply.payload {
                ReplyPayload::Inline(inline) => inline.offset,
                ReplyPayload::ReplyChunk | ReplyPayload::Provided(_) => whole.len(),
            },
            Ok(Message::Error(_)) => whole.len(),
            Err(rejected) => return Err(rejected.reason.as_str()),
        };
        for len in 0..whole.len() {
            let part = whole.get(..len).ok_or("prefix")?;
            match Message::decode(part, &AMPLE) {
                Err(rejected) => {
                    require(!is_over_limit(&rejected.reason), "truncated")?;
                    require(
                        len >= 28 || rejected.reason == DecodeError::Short,
                        "a short message is dropped without parsing",
                    )?;
                }
                Ok(Message::Call(call)) => {
                    let CallPayload::Inline(inline) = call.payload else {
                        return Err("truncated Long Call accepted");
                    };
                    require(
                        inline.offset == header_len && Some(inline.bytes) == part.get(header_len..),
                        "payload of a truncated Call",
                    )?;
                }
                Ok(Message::Reply(reply)) => {
                    let ReplyPayload::Inline(inline) = reply.payload else {
                        return Err("truncated Long Reply accepted");
                    };
                    require(
                        inline.offset == header_len && Some(inline.bytes) == part.get(header_len..),
                        "payload of a truncated Reply",
                    )?;
                }
                Ok(Message::Error(_)) => return Err("truncated RDMA_ERROR accepted"),
            }
        }
    }
    Ok(())
}

/// Checks that what has a Read list, as no Reply has (RFC 8166, section 4.3.1), is a Call, whatever
/// else is wrong with it, unless its Payload stream says that it is a Reply.
fn check_read_list_tells_direction() -> Check {
    let mut space = [0; SPACE];
    let told: &[Patch] = &[
        ("a Position", vectors::READ_CHUNK, &[(5, 90)]),
        (
            "a wrapping segment",
            vectors::READ_CHUNK,
            &[(7, 1), (8, u32::MAX), (9, u32::MAX)],
        ),
        ("the end of the Read list", vectors::READ_CHUNK, &[(10, 2)]),
        ("the Write list", vectors::READ_CHUNK, &[(23, 2)]),
        ("the Reply chunk", vectors::READ_CHUNK, &[(24, 2)]),
        ("the msg_type", vectors::READ_CHUNK, &[(26, 2)]),
        (
            "both XID and msg_type",
            vectors::READ_CHUNK,
            &[(25, 1), (26, 2)],
        ),
        ("the Position in RDMA_NOMSG", vectors::LONG_CALL, &[(5, 2)]),
    ];
    for &(claim, base, words) in told {
        let bytes = patched(base, words, &mut space)?;
        let rejected = refused(bytes, &AMPLE).ok_or(claim)?;
        require(rejected.direction == Some(Direction::Call), claim)?;
    }
    let few = Limits {
        read_segments: 2,
        ..AMPLE
    };
    let rejected = refused(vectors::READ_CHUNK, &few).ok_or("over the limit")?;
    require(
        rejected.direction == Some(Direction::Call),
        "what is over a limit is a Call all the same",
    )?;
    let untold: &[Patch] = &[
        (
            "the Read list's own beginning",
            vectors::READ_CHUNK,
            &[(4, 2)],
        ),
        (
            "the Write list of what has no Read list",
            vectors::WRITE_LIST,
            &[(5, 2)],
        ),
    ];
    for &(claim, base, words) in untold {
        let bytes = patched(base, words, &mut space)?;
        let rejected = refused(bytes, &AMPLE).ok_or(claim)?;
        require(rejected.direction.is_none(), claim)?;
    }
    Ok(())
}

/// Checks which fault is answered with which error, and by whom (RFC 8166, section 4.5).
pub fn check_answers() -> Check {
    let mut space = [0; SPACE];
    let versions = Some(RdmaError::Version { low: 1, high: 1 });
    for bad in BAD {
        let bytes = patched(bad.base, bad.words, &mut space)?;
        let rejected = refused(bytes, &AMPLE).ok_or(bad.claim)?;
        let expected = match bad.reason {
            DecodeError::Short | DecodeError::Done | DecodeError::UnknownError => None,
            DecodeError::Version(_) => versions,
            _ if rejected.direction == Some(Direction::Reply) => None,
            _ => Some(RdmaError::Chunk),
        };
        require(rejected.answer(Role::Responder) == expected, bad.claim)?;
        let by_requester = match rejected.direction {
            Some(Direction::Call) => expected,
            _ => None,
        };
        require(rejected.answer(Role::Requester) == by_requester, bad.claim)?;
    }
    check_read_list_tells_direction()?;

    let bytes = patched(vectors::SHORT_CALL, &[(1, 7)], &mut space)?;
    let rejected = refused(bytes, &AMPLE).ok_or("version 7")?;
    require(
        rejected.error_message(Role::Responder, 9)
            == Some(ErrorMessage {
                xid: XID,
                version: 7,
                credits: 9,
                error: RdmaError::Version { low: 1, high: 1 },
            }),
        "ERR_VERS has the version of the failing request",
    )?;
    let rejected = refused(vectors::MSGP, &AMPLE).ok_or("RDMA_MSGP")?;
    require(
        rejected.error_message(Role::Responder, 9)
            == Some(ErrorMessage {
                xid: XID,
                version: 1,
                credits: 9,
                error: RdmaError::Chunk,
            }),
        "ERR_CHUNK for RDMA_MSGP",
    )?;
    require(
        rejected.error_message(Role::Requester, 9).is_none(),
        "a requester discards RDMA_MSGP",
    )?;
    let rejected = refused(vectors::DONE, &AMPLE).ok_or("RDMA_DONE")?;
    require(
        rejected.error_message(Role::Responder, 9).is_none(),
        "RDMA_DONE is discarded by all",
    )
}
