// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Truncated messages, and the answers to what is refused.

use super::{
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
    Answer,
    CallPayload,
    DecodeError,
    Direction,
    ErrorMessage,
    Kind,
    Message,
    RdmaError,
    ReplyPayload,
    Role, //
};

/// Every prefix of every valid message is refused, or is that message with a shorter payload.
pub fn check_truncation() -> Check {
    for &(_, whole) in vectors::VALID {
        let header_len = match Message::decode(whole, &AMPLE) {
            Ok(Message::Call(call)) => match call.payload {
                CallPayload::Inline(inline) => inline.offset,
                CallPayload::PositionZero(_) => whole.len(),
            },
            Ok(Message::Reply(reply)) => match reply.payload {
                ReplyPayload::Inline(inline) => inline.offset,
                ReplyPayload::ReplyChunk => whole.len(),
            },
            Ok(Message::Error(_)) => whole.len(),
            Err(rejected) => return Err(rejected.reason.as_str()),
        };
        for len in 0..whole.len() {
            let part = whole.get(..len).ok_or("prefix")?;
            match Message::decode(part, &AMPLE) {
                Err(rejected) => {
                    require(rejected.reason.kind() != Kind::OverLimit, "truncated")?;
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

/// RFC 8166, section 4.5: who answers what.
pub fn check_answers() -> Check {
    let mut space = [0; SPACE];
    let versions = Answer::VersionMismatch { low: 1, high: 1 };
    for bad in BAD {
        let bytes = patched(bad.base, bad.words, &mut space)?;
        let rejected = refused(bytes, &AMPLE).ok_or(bad.claim)?;
        let expected = match bad.reason {
            DecodeError::Short | DecodeError::Done | DecodeError::UnknownError => Answer::Silence,
            DecodeError::Version(_) => versions,
            _ if rejected.direction == Some(Direction::Reply) => Answer::Silence,
            _ => Answer::ChunkError,
        };
        require(rejected.answer(Role::Responder) == expected, bad.claim)?;
        let by_requester = match rejected.direction {
            Some(Direction::Call) => expected,
            _ => Answer::Silence,
        };
        require(rejected.answer(Role::Requester) == by_requester, bad.claim)?;
    }

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
