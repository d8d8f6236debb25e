// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Errors, and what they answer.

use super::{
    first,
    reencode,
    refuses,
    require,
    with_word,
    Check,
    BOUNDS, //
};
use crate::{
    v2::{
        answer,
        encode_error,
        Received, //
    },
    vectors::v2 as vectors,
    DecodeError,
    Direction,
    ErrorMessage,
    FixedHeader,
    Limits,
    Message,
    RdmaError,
    Rejected, //
};

/// Checks that each code has its arguments, and that what is none of them is discarded.
pub fn check_errors() -> Check {
    let named = [
        RdmaError::Version { low: 1, high: 2 },
        RdmaError::BadXdr,
        RdmaError::BadPropertyValue,
        RdmaError::InvalidHeaderType,
        RdmaError::InvalidContinuation,
        RdmaError::ReadChunks { max: 2 },
        RdmaError::WriteChunks { max: 1 },
        RdmaError::Segments { max: 16 },
        RdmaError::WriteResource {
            index: 1,
            needed: 65536,
        },
        RdmaError::ReplyResource { needed: 12345 },
        RdmaError::VersionMismatch,
        RdmaError::System,
    ];
    require(named.len() == vectors::ERRORS.len(), "a vector of each")?;
    for (bytes, error) in vectors::ERRORS.iter().zip(named) {
        let Ok(Received::Message {
            message: Message::Error(found),
            ..
        }) = first(bytes)
        else {
            return Err("an error");
        };
        require(found.error == error, "the error of its code")?;
        require(found.credits == 7, "the credits of an error")?;
        let header = FixedHeader::peek(bytes).ok_or("a prefix")?;
        let mut space = [0; 28];
        let length = reencode(&header, &Received::error(found), &mut space);
        require(length == Ok(bytes.len()), "the length of an error")?;
        require(space.starts_with(bytes), "the octets of an error")?;
        for end in 16..bytes.len() {
            let cut = bytes.get(..end).ok_or("a shorter error")?;
            refuses(cut, DecodeError::UnknownError, "a shorter error")?;
        }
    }
    let mut space = [0; 28];
    let bad_xdr = vectors::ERRORS.get(1).ok_or("a second error")?;
    for code in [0, 12, 99, 101, u32::MAX] {
        let bytes = with_word(bad_xdr, 4, code, &mut space)?;
        refuses(bytes, DecodeError::UnknownError, "another code")?;
    }
    check_errors_of_1()
}

/// Checks errors of version 1, of which only what is the same in all versions is taken.
fn check_errors_of_1() -> Check {
    let mut space = [0; 28];
    let bad_xdr = vectors::ERRORS.get(1).ok_or("a second error")?;
    let other = with_word(bad_xdr, 1, 1, &mut space)?;
    refuses(other, DecodeError::UnknownError, "ERR_CHUNK of version 1")?;
    require(
        first(vectors::ERR_VERS_OF_1).is_ok(),
        "ERR_VERS of a server of version 1",
    )?;
    // What version 1 says of a header that it cannot parse.
    let message = ErrorMessage {
        xid: 1,
        version: 2,
        credits: 3,
        error: RdmaError::Chunk,
    };
    let length = encode_error(&message, &mut space);
    require(length == Ok(20), "an error of one word")?;
    require(space.get(16..20) == Some(&[0, 0, 0, 2]), "ERR_BAD_XDR")
}

/// Faults of messages of either direction, and the error that answers them.
const ALWAYS: &[(DecodeError, Option<RdmaError>)] = &[
    (DecodeError::Short, None),
    (DecodeError::UnknownError, None),
    (DecodeError::Discarded, None),
    (DecodeError::Version(1), Some(RdmaError::VersionMismatch)),
    (
        DecodeError::Procedure(99),
        Some(RdmaError::InvalidHeaderType),
    ),
    (DecodeError::Sequence, Some(RdmaError::InvalidContinuation)),
];

/// Faults of Calls and of properties, and the error that answers them.
const OF_CALLS: &[(DecodeError, Option<RdmaError>)] = &[
    (
        DecodeError::Remaining(1),
        Some(RdmaError::InvalidContinuation),
    ),
    (
        DecodeError::PropertyOctets,
        Some(RdmaError::InvalidContinuation),
    ),
    (
        DecodeError::PropertyValue(2),
        Some(RdmaError::BadPropertyValue),
    ),
    (DecodeError::Truncated, Some(RdmaError::BadXdr)),
    (DecodeError::Discriminator(2), Some(RdmaError::BadXdr)),
    (DecodeError::SegmentWraps, Some(RdmaError::BadXdr)),
    (DecodeError::PositionOrder(4), Some(RdmaError::BadXdr)),
    (DecodeError::CallChunkPosition(4), Some(RdmaError::BadXdr)),
    (DecodeError::InvHandle(1), Some(RdmaError::BadXdr)),
    (DecodeError::NoPayload, Some(RdmaError::BadXdr)),
    (DecodeError::ShortPayload, Some(RdmaError::BadXdr)),
    (DecodeError::XidMismatch, Some(RdmaError::BadXdr)),
    (DecodeError::MsgType(1), Some(RdmaError::BadXdr)),
    (
        DecodeError::ReadChunks,
        Some(RdmaError::ReadChunks { max: 2 }),
    ),
    (
        DecodeError::WriteChunks,
        Some(RdmaError::WriteChunks { max: 1 }),
    ),
    (
        DecodeError::ReadSegments,
        Some(RdmaError::Segments { max: 3 }),
    ),
    (
        DecodeError::WriteSegments,
        Some(RdmaError::Segments { max: 5 }),
    ),
    (
        DecodeError::ChunkSegments,
        Some(RdmaError::Segments { max: 4 }),
    ),
    (DecodeError::ReadChunkBytes, Some(RdmaError::System)),
    (DecodeError::ReadListBytes, Some(RdmaError::System)),
    (DecodeError::WriteChunkBytes, Some(RdmaError::System)),
    (DecodeError::ReplyChunkBytes, Some(RdmaError::System)),
];

/// Checks which error each fault of a Call has for an answer, and that a Reply has one only where
/// it may not come.
pub fn check_answers() -> Check {
    let limits = Limits {
        read_segments: 3,
        read_chunks: 2,
        write_chunks: 1,
        write_segments: 5,
        chunk_segments: 4,
        ..BOUNDS.calls
    };
    let found = |reason, direction| {
        let rejected = Rejected {
            header: None,
            direction,
            reason,
        };
        answer(&rejected, &limits)
    };
    let (call, reply) = (Some(Direction::Call), Some(Direction::Reply));
    for &(reason, error) in ALWAYS {
        for direction in [None, call, reply] {
            require(found(reason, direction) == error, reason.as_str())?;
        }
    }
    for &(reason, error) in OF_CALLS {
        require(found(reason, call) == error, reason.as_str())?;
        require(found(reason, None) == error, reason.as_str())?;
        require(found(reason, reply).is_none(), reason.as_str())?;
    }
    check_no_chunks_taken()
}

/// Checks that an end that takes no chunks in Calls says so (the draft, section 4.6.4).
fn check_no_chunks_taken() -> Check {
    use DecodeError as Reason;
    let none = Limits {
        read_segments: 0,
        read_chunks: 0,
        write_chunks: 0,
        write_segments: 0,
        chunk_segments: 0,
        ..BOUNDS.calls
    };
    let reads = RdmaError::ReadChunks { max: 0 };
    let writes = RdmaError::WriteChunks { max: 0 };
    for (reason, error) in [
        (Reason::ReadSegments, reads),
        (Reason::ReadChunks, reads),
        (Reason::WriteChunks, writes),
        (Reason::WriteSegments, writes),
        (Reason::ChunkSegments, writes),
    ] {
        let rejected = Rejected {
            header: None,
            direction: Some(Direction::Call),
            reason,
        };
        require(answer(&rejected, &none) == Some(error), reason.as_str())?;
    }
    Ok(())
}
