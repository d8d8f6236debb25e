// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Errors, and what they answer.

use super::{
    first,
    reencode,
    refuses,
    require,
    with_word,
    Check,
    BOUNDS,
    NO_CHUNKS, //
};
use crate::{
    v2::{
        encode_error,
        error::answer,
        error_message,
        refuses_properties,
        Bounds,
        Received,
        Receiver,
        Undecoded, //
    },
    vectors::{
        v2 as vectors,
        XID, //
    },
    DecodeError,
    Direction,
    ErrorMessage,
    FixedHeader,
    Limits,
    Message,
    RdmaError,
    Rejected,
    Role, //
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
        let received = first(bytes).map_err(|_| "an error")?;
        let Received::Message {
            message: Message::Error(found),
            ..
        } = received
        else {
            return Err("an error");
        };
        require(found.error == error, "the error of its code")?;
        require(found.credits == 7, "the credits of an error")?;
        require(
            refuses_properties(bytes) == (error == RdmaError::BadPropertyValue),
            "whether it is about properties",
        )?;
        let header = FixedHeader::peek(bytes).ok_or("a prefix")?;
        let mut space = [0; 28];
        let length = reencode(&header, &received, &mut space);
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
    for version in [0, 1, 3] {
        let mut third = [0; 28];
        let propval = with_word(vectors::ERRORS.get(2).ok_or("one")?, 1, version, &mut third)?;
        require(!refuses_properties(propval), "an error of another version")?;
        let other = with_word(bad_xdr, 1, version, &mut space)?;
        let reason = DecodeError::UnknownError;
        refuses(other, reason, "ERR_CHUNK of version 1, and its like")?;
    }
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
    let mut space = [0; 256];
    let mut refused = |bytes, word| {
        let bytes = with_word(bytes, word, 1, &mut space)?;
        let rejected = Receiver::new(BOUNDS).receive(bytes).err();
        rejected.ok_or("another XID is accepted")
    };
    let of_call = error_message(&refused(vectors::CALL, 8)?, &BOUNDS, 1);
    require(of_call.is_some(), "a bad Call is answered")?;
    let of_reply = error_message(&refused(vectors::REPLY, 5)?, &BOUNDS, 1);
    require(of_reply.is_none(), "a bad Reply is not")?;
    check_no_chunks_taken()
}

/// Checks that an end that takes no chunks in Calls says so (the draft, section 4.6.4).
fn check_no_chunks_taken() -> Check {
    use DecodeError as Reason;
    let reads = RdmaError::ReadChunks { max: 0 };
    let writes = RdmaError::WriteChunks { max: 0 };
    for (reason, error) in [
        (Reason::ReadSegments, reads),
        (Reason::ReadChunks, reads),
        (Reason::WriteChunks, writes),
    ] {
        let rejected = Rejected {
            header: None,
            direction: Some(Direction::Call),
            reason,
        };
        require(
            answer(&rejected, &NO_CHUNKS) == Some(error),
            reason.as_str(),
        )?;
    }
    check_no_chunks_received(reads, writes)
}

/// Checks that so a client answers each kind of chunk in a Call, and takes those of Replies.
fn check_no_chunks_received(reads: RdmaError, writes: RdmaError) -> Check {
    let bounds = Bounds {
        calls: NO_CHUNKS,
        ..BOUNDS
    };
    for (bytes, error) in [
        (vectors::CHUNKS, reads),
        (vectors::EXTERNAL_CALL, reads),
        (vectors::EMPTY_WRITE_CHUNK, writes),
        (vectors::EMPTY_REPLY_CHUNK, writes),
    ] {
        let rejected = Receiver::new(bounds).receive(bytes).err();
        let rejected = rejected.ok_or("a Call with chunks is accepted")?;
        let message = error_message(&rejected, &bounds, 5).ok_or("an answer")?;
        require(message.error == error, "what a client takes")?;
        require(
            (message.xid, message.version, message.credits) == (XID, 2, 5),
            "the prefix of an answer",
        )?;
    }
    for bytes in [
        vectors::CALL,
        vectors::CHUNKS_RETURNED,
        vectors::EXTERNAL_REPLY,
    ] {
        let claim = "what a client takes";
        require(Receiver::new(bounds).receive(bytes).is_ok(), claim)?;
    }
    Ok(())
}

/// Checks that the answer to a message of another version comes under that, and is understood.
pub fn check_versions() -> Check {
    let mut space = [0; 256];
    for version in [0, 1, 3, u32::MAX] {
        let bytes = with_word(vectors::CALL, 1, version, &mut space)?;
        let rejected = Receiver::new(BOUNDS).receive(bytes).err();
        let late = BOUNDS.decode(bytes, Undecoded::default()).err();
        require(
            late.is_some_and(|late| late.reason == DecodeError::Version(version)),
            "as well where it came before version 2 was agreed on",
        )?;
        let message = error_message(&rejected.ok_or("another version")?, &BOUNDS, 1);
        let message = message.ok_or("an answer")?;
        require(message.version == version, "the version comes back")?;
        let mut answer = [0; 28];
        let length = encode_error(&message, &mut answer).map_err(|_| "an error")?;
        let found = Receiver::new(BOUNDS).receive(answer.get(..length).ok_or("an error")?);
        require(
            matches!(found, Ok(Received::Message { message: Message::Error(error), .. })
                if error.error == RdmaError::VersionMismatch),
            "VERS_MISMATCH is understood under any version",
        )?;
        if version != 2 {
            let grant = with_word(vectors::GRANT, 1, version, &mut space)?;
            let reason = DecodeError::Version(version);
            refuses(grant, reason, "a GRANT of another version")?;
        }
    }
    check_first_exchange()
}

/// Checks the first message of a client: how long it is, what a server of version 1 answers, and
/// that the client understands it (the draft, section 4.3).
fn check_first_exchange() -> Check {
    require(vectors::FINAL.len() <= 1024, "the first message is short")?;
    let rejected = Message::decode(vectors::FINAL, &BOUNDS.calls).err();
    let rejected = rejected.ok_or("version 1 knows no version 2")?;
    let message = rejected
        .error_message(Role::Responder, 32)
        .ok_or("ERR_VERS")?;
    let mut space = [0; 28];
    let length = message.encode(&mut space).map_err(|_| "an error")?;
    let found = Receiver::new(BOUNDS).receive(space.get(..length).ok_or("an error")?);
    let Ok(Received::Message {
        message: Message::Error(error),
        ..
    }) = found
    else {
        return Err("an answer that is not understood");
    };
    require(error.xid == XID && error.version == 2, "its prefix")?;
    require(
        error.error == RdmaError::Version { low: 1, high: 1 },
        "the versions of the server",
    )
}
