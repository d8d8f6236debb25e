// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! `RDMA2_ERROR`: which message is answered with it, and how it is written and read.

use crate::{
    v2::{
        header::{
            RDMA2_ERROR,
            VERSION, //
        },
        receiver::Bounds, //
    },
    wire::{
        Reader,
        Writer, //
    },
    DecodeError,
    Direction,
    EncodeError,
    ErrorMessage,
    FixedHeader,
    Limits,
    RdmaError,
    Rejected, //
};

// `rdma_err` (the draft, section 8.4).
const ERR_VERS: u32 = 1;
const ERR_BAD_XDR: u32 = 2;
const ERR_BAD_PROPVAL: u32 = 3;
const ERR_INVAL_HTYPE: u32 = 4;
const ERR_INVAL_CONT: u32 = 5;
const ERR_READ_CHUNKS: u32 = 6;
const ERR_WRITE_CHUNKS: u32 = 7;
const ERR_SEGMENTS: u32 = 8;
const ERR_WRITE_RESOURCE: u32 = 9;
const ERR_REPLY_RESOURCE: u32 = 10;
const ERR_VERS_MISMATCH: u32 = 11;
const ERR_SYSTEM: u32 = 100;

/// Writes an `RDMA2_ERROR` to the front of `buffer`. Returns its length in octets.
pub fn encode_error(message: &ErrorMessage, buffer: &mut [u8]) -> Result<usize, EncodeError> {
    let mut writer = Writer::new(buffer);
    let prefix = FixedHeader {
        xid: message.xid,
        version: message.version,
        credits: message.credits,
        procedure: RDMA2_ERROR,
    };
    prefix.write(&mut writer);
    match message.error {
        RdmaError::Version { low, high } => writer.words([ERR_VERS, low, high]),
        // What version 1 says of a header that cannot be parsed.
        RdmaError::Chunk | RdmaError::BadXdr => writer.words([ERR_BAD_XDR]),
        RdmaError::BadPropertyValue => writer.words([ERR_BAD_PROPVAL]),
        RdmaError::InvalidHeaderType => writer.words([ERR_INVAL_HTYPE]),
        RdmaError::InvalidContinuation => writer.words([ERR_INVAL_CONT]),
        RdmaError::ReadChunks { max } => writer.words([ERR_READ_CHUNKS, max]),
        RdmaError::WriteChunks { max } => writer.words([ERR_WRITE_CHUNKS, max]),
        RdmaError::Segments { max } => writer.words([ERR_SEGMENTS, max]),
        RdmaError::WriteResource { index, needed } => {
            writer.words([ERR_WRITE_RESOURCE, index, needed]);
        }
        RdmaError::ReplyResource { needed } => writer.words([ERR_REPLY_RESOURCE, needed]),
        RdmaError::VersionMismatch => writer.words([ERR_VERS_MISMATCH]),
        RdmaError::System => writer.words([ERR_SYSTEM]),
    }
    writer.finish()
}

impl ErrorMessage {
    /// Decodes what follows the prefix in `header`.
    ///
    /// What says that a version is wrong comes under that version (the draft, section 7), and
    /// `ERR_VERS` is the same in all. Other codes are unknown under another version, as are those
    /// that the draft does not have.
    pub(super) fn decode_2(
        header: &FixedHeader,
        reader: &mut Reader<'_>,
    ) -> Result<Self, DecodeError> {
        let mut word = || reader.word().map_err(|_| DecodeError::UnknownError);
        let error = match word()? {
            ERR_VERS => RdmaError::Version {
                low: word()?,
                high: word()?,
            },
            ERR_VERS_MISMATCH => RdmaError::VersionMismatch,
            _ if header.version != VERSION => return Err(DecodeError::UnknownError),
            ERR_BAD_XDR => RdmaError::BadXdr,
            ERR_BAD_PROPVAL => RdmaError::BadPropertyValue,
            ERR_INVAL_HTYPE => RdmaError::InvalidHeaderType,
            ERR_INVAL_CONT => RdmaError::InvalidContinuation,
            ERR_READ_CHUNKS => RdmaError::ReadChunks { max: word()? },
            ERR_WRITE_CHUNKS => RdmaError::WriteChunks { max: word()? },
            ERR_SEGMENTS => RdmaError::Segments { max: word()? },
            ERR_WRITE_RESOURCE => RdmaError::WriteResource {
                index: word()?,
                needed: word()?,
            },
            ERR_REPLY_RESOURCE => RdmaError::ReplyResource { needed: word()? },
            ERR_SYSTEM => RdmaError::System,
            _ => return Err(DecodeError::UnknownError),
        };
        Ok(Self {
            xid: header.xid,
            version: header.version,
            credits: header.credits,
            error,
        })
    }
}

/// Returns whether a message is an `RDMA2_ERR_BAD_PROPVAL`: the peer has not taken the properties
/// of this end (the draft, section 7.2.2).
pub fn refuses_properties(message: &[u8]) -> bool {
    let mut reader = Reader::new(message);
    FixedHeader::read(&mut reader).is_ok_and(|header| {
        header.version == VERSION
            && header.procedure == RDMA2_ERROR
            && reader.word() == Ok(ERR_BAD_PROPVAL)
    })
}

/// Returns the `RDMA2_ERROR` to send, if any: XID and version are those of the refused message (the
/// draft, section 7). `bounds` are those of its receiver.
pub fn error_message(rejected: &Rejected, bounds: &Bounds, credits: u32) -> Option<ErrorMessage> {
    let header = rejected.header?;
    let limits = match rejected.direction {
        Some(Direction::Reply) => &bounds.replies,
        Some(Direction::Call) | None => &bounds.calls,
    };
    Some(ErrorMessage {
        xid: header.xid,
        version: header.version,
        credits,
        error: answer(rejected, limits)?,
    })
}

/// Returns the error that the draft wants answered (section 7); `None` when it wants nothing sent.
///
/// `limits` are those that the message was decoded with. What is wrong in a Reply is discarded
/// silently, as in version 1, but where the draft says otherwise: a message that may not come
/// there, whatever it is (sections 6.3.3 to 6.3.10).
pub(crate) fn answer(rejected: &Rejected, limits: &Limits) -> Option<RdmaError> {
    use DecodeError as Reason;
    // Told in 32 bits: what is more than that is as good as no limit.
    let told = |limit: usize| u32::try_from(limit).unwrap_or(u32::MAX);
    Some(match rejected.reason {
        Reason::Short | Reason::UnknownError | Reason::Discarded => return None,
        Reason::Version(_) => RdmaError::VersionMismatch,
        Reason::Procedure(_) => RdmaError::InvalidHeaderType,
        Reason::Sequence => RdmaError::InvalidContinuation,
        _ if rejected.direction == Some(Direction::Reply) => return None,
        Reason::Remaining(_) | Reason::PropertyOctets => RdmaError::InvalidContinuation,
        Reason::PropertyValue(_) => RdmaError::BadPropertyValue,
        // An end that takes no chunks says so (sections 4.6.4 and 7.3).
        Reason::ReadSegments | Reason::ReadChunks if limits.read_chunks == 0 => {
            RdmaError::ReadChunks { max: 0 }
        }
        Reason::ReadChunks => RdmaError::ReadChunks {
            max: told(limits.read_chunks),
        },
        Reason::WriteChunks => RdmaError::WriteChunks {
            max: told(limits.write_chunks),
        },
        Reason::ReadSegments => RdmaError::Segments {
            max: told(limits.read_segments),
        },
        Reason::WriteSegments => RdmaError::Segments {
            max: told(limits.write_segments),
        },
        Reason::ChunkSegments => RdmaError::Segments {
            max: told(limits.chunk_segments),
        },
        // The draft has no code for a chunk that is too long.
        Reason::ReadChunkBytes
        | Reason::ReadListBytes
        | Reason::WriteChunkBytes
        | Reason::ReplyChunkBytes => RdmaError::System,
        _ => RdmaError::BadXdr,
    })
}
