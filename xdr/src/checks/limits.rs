// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Each limit that a caller sets is kept.

use super::{
    is_over_limit,
    malformed::{
        patched,
        refused,
        SPACE, //
    },
    require,
    Check,
    AMPLE, //
};
use crate::{
    vectors,
    DecodeError,
    Limits, //
};

/// Sets the tightest limit that admits a vector, or one less.
type Lower = fn(&mut Limits, bool);

/// Vectors, and the limits that they are held against.
const TABLE: &[(&[u8], DecodeError, Lower)] = &[
    (vectors::READ_LIST, DecodeError::ReadSegments, |l, fits| {
        l.read_segments = if fits { 4 } else { 3 };
    }),
    (vectors::READ_LIST, DecodeError::ReadChunks, |l, fits| {
        l.read_chunks = if fits { 3 } else { 2 };
    }),
    (
        vectors::READ_CHUNK,
        DecodeError::ChunkSegments,
        |l, fits| {
            l.chunk_segments = if fits { 3 } else { 2 };
        },
    ),
    (
        vectors::WRITE_LIST,
        DecodeError::ChunkSegments,
        |l, fits| {
            l.chunk_segments = if fits { 3 } else { 2 };
        },
    ),
    (
        vectors::REPLY_CHUNK,
        DecodeError::ChunkSegments,
        |l, fits| {
            l.chunk_segments = if fits { 2 } else { 1 };
        },
    ),
    (
        vectors::READ_LIST,
        DecodeError::ReadChunkBytes,
        |l, fits| {
            l.read_chunk_bytes = if fits { 8186 } else { 8185 };
        },
    ),
    (vectors::READ_LIST, DecodeError::ReadListBytes, |l, fits| {
        l.read_list_bytes = if fits { 8198 } else { 8197 };
    }),
    (vectors::WRITE_LIST, DecodeError::WriteChunks, |l, fits| {
        l.write_chunks = if fits { 2 } else { 1 };
    }),
    (
        vectors::WRITE_LIST,
        DecodeError::WriteSegments,
        |l, fits| {
            l.write_segments = if fits { 5 } else { 4 };
        },
    ),
    (
        vectors::WRITE_LIST,
        DecodeError::WriteChunkBytes,
        |l, fits| {
            l.write_chunk_bytes = if fits { 7168 } else { 7167 };
        },
    ),
    (
        vectors::REPLY_CHUNK,
        DecodeError::ReplyChunkBytes,
        |l, fits| {
            l.reply_chunk_bytes = if fits { 8292 } else { 8291 };
        },
    ),
    (
        vectors::ONE_READ_SEGMENT,
        DecodeError::ReadSegments,
        |l, fits| l.read_segments = usize::from(fits),
    ),
    (
        vectors::ONE_READ_SEGMENT,
        DecodeError::ReadChunks,
        |l, fits| l.read_chunks = usize::from(fits),
    ),
    (
        vectors::ONE_READ_SEGMENT,
        DecodeError::ChunkSegments,
        |l, fits| l.chunk_segments = usize::from(fits),
    ),
    (
        vectors::ONE_READ_SEGMENT,
        DecodeError::ReadChunkBytes,
        |l, fits| l.read_chunk_bytes = if fits { 4096 } else { 4095 },
    ),
    (
        vectors::ONE_READ_SEGMENT,
        DecodeError::ReadListBytes,
        |l, fits| l.read_list_bytes = if fits { 4096 } else { 4095 },
    ),
    (
        vectors::ONE_WRITE_CHUNK,
        DecodeError::WriteChunks,
        |l, fits| l.write_chunks = usize::from(fits),
    ),
    (
        vectors::ONE_WRITE_CHUNK,
        DecodeError::WriteSegments,
        |l, fits| l.write_segments = if fits { 2 } else { 1 },
    ),
    (
        vectors::ONE_WRITE_CHUNK,
        DecodeError::ChunkSegments,
        |l, fits| l.chunk_segments = if fits { 2 } else { 1 },
    ),
    (
        vectors::ONE_WRITE_CHUNK,
        DecodeError::WriteChunkBytes,
        |l, fits| l.write_chunk_bytes = if fits { 5096 } else { 5095 },
    ),
];

/// Checks that each limit lets through what it allows and not one more, which is not malformed.
pub fn check_limits() -> Check {
    for &(bytes, reason, lower) in TABLE {
        let mut limits = AMPLE;
        lower(&mut limits, true);
        require(
            refused(bytes, &limits).is_none(),
            "refused at the limit itself",
        )?;
        lower(&mut limits, false);
        let rejected = refused(bytes, &limits).ok_or("accepted over the limit")?;
        require(rejected.reason == reason, "another limit than expected")?;
        require(is_over_limit(&reason), "not told from malformed")?;
    }
    let floor = Limits::floor(1 << 20);
    require(
        refused(vectors::LONG_CALL, &floor).is_none(),
        "the floor of RFC 8267, section 6.4.2, is too low",
    )
}

/// Checks that sums of lengths that do not fit 32 bits are refused, not wrapped.
pub fn check_length_sums() -> Check {
    let mut space = [0; SPACE];
    let huge = [(7, u32::MAX), (13, 2)];
    let bytes = patched(vectors::READ_CHUNK, &huge, &mut space)?;
    require(
        refused(bytes, &AMPLE).is_some_and(|r| r.reason == DecodeError::ReadChunkBytes),
        "Read chunk of 2^32 octets and more",
    )?;
    let huge = [(13, u32::MAX)];
    let bytes = patched(vectors::READ_LIST, &huge, &mut space)?;
    require(
        refused(bytes, &AMPLE).is_some_and(|r| r.reason == DecodeError::ReadListBytes),
        "Read chunks of 2^32 octets and more together",
    )?;
    let huge = [(8, u32::MAX), (12, u32::MAX)];
    let bytes = patched(vectors::WRITE_LIST, &huge, &mut space)?;
    require(
        refused(bytes, &AMPLE).is_some_and(|r| r.reason == DecodeError::WriteChunkBytes),
        "Write chunk of 2^32 octets and more",
    )?;
    let huge = [(8, u32::MAX), (12, 1)];
    let bytes = patched(vectors::ONE_WRITE_CHUNK, &huge, &mut space)?;
    require(
        refused(bytes, &AMPLE).is_some_and(|r| r.reason == DecodeError::WriteChunkBytes),
        "one Write chunk of 2^32 octets",
    )?;
    let huge = [(11, u32::MAX), (15, 1)];
    let bytes = patched(vectors::REPLY_CHUNK, &huge, &mut space)?;
    require(
        refused(bytes, &AMPLE).is_some_and(|r| r.reason == DecodeError::ReplyChunkBytes),
        "Reply chunk of 2^32 octets",
    )
}
