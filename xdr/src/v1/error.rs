// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! `RDMA_ERROR`: which message is answered with it, and how it is written and read.

use crate::{
    v1::header::{
        RDMA_ERROR,
        VERSION, //
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
    RdmaError,
    Rejected,
    Role, //
};

/// `rdma_err` (RFC 8166, section 4.1.2); the value is fixed for all versions.
const ERR_VERS: u32 = 1;
/// `rdma_err` (RFC 8166, section 4.1.2).
const ERR_CHUNK: u32 = 2;

impl ErrorMessage {
    /// Writes the message to the front of `buffer`. Returns its length in octets.
    pub fn encode(&self, buffer: &mut [u8]) -> Result<usize, EncodeError> {
        let mut writer = Writer::new(buffer);
        let header = FixedHeader {
            xid: self.xid,
            version: self.version,
            credits: self.credits,
            procedure: RDMA_ERROR,
        };
        header.write(&mut writer);
        match self.error {
            RdmaError::Version { low, high } => {
                writer.words([ERR_VERS, low, high]);
            }
            // It has one code for all other reasons.
            _ => writer.words([ERR_CHUNK]),
        }
        writer.finish()
    }

    /// Decodes what follows the fixed fields in `header`.
    ///
    /// `ERR_VERS` is fixed for all versions, so a peer that does not speak version 1 may send it
    /// under its own version number; `ERR_CHUNK` is version 1's.
    pub(super) fn decode(
        header: &FixedHeader,
        reader: &mut Reader<'_>,
    ) -> Result<Self, DecodeError> {
        let mut word = || reader.word().map_err(|_| DecodeError::UnknownError);
        let error = match word()? {
            ERR_VERS => RdmaError::Version {
                low: word()?,
                high: word()?,
            },
            ERR_CHUNK if header.version == VERSION => RdmaError::Chunk,
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

/// Returns the lowest and the highest version that the sender of an `ERR_VERS` supports; `None` of
/// other messages. It is the same in all versions (RFC 8166, section 4.5.1).
pub fn peek_err_vers(message: &[u8]) -> Option<(u32, u32)> {
    let mut reader = Reader::new(message);
    let header = FixedHeader::read(&mut reader).ok()?;
    match reader.words() {
        Ok([ERR_VERS, low, high]) if header.procedure == RDMA_ERROR => Some((low, high)),
        _ => None,
    }
}

impl DecodeError {
    /// Returns the error that a responder answers a Call with that has this fault; `None` when it
    /// sends nothing at all (RFC 8166, section 4.5).
    pub const fn answer(&self) -> Option<RdmaError> {
        match self {
            Self::Short | Self::Done | Self::UnknownError => None,
            Self::Version(_) => Some(RdmaError::Version {
                low: VERSION,
                high: VERSION,
            }),
            _ => Some(RdmaError::Chunk),
        }
    }
}

impl Rejected {
    /// Returns the error that the RFC wants answered; `None` when it wants nothing sent.
    ///
    /// `role` is the part that this receiver plays where the message itself does not tell: it is a
    /// requester if a Call of its own awaits a Reply of that XID. A requester discards silently
    /// whatever it finds wrong in a Reply (RFC 8166, section 4.5).
    pub const fn answer(&self, role: Role) -> Option<RdmaError> {
        match (self.direction, role) {
            (Some(Direction::Call), _) | (None, Role::Responder) => self.reason.answer(),
            (Some(Direction::Reply), _) | (None, Role::Requester) => None,
        }
    }

    /// Returns the `RDMA_ERROR` message to send, if any: XID and version are those of the refused
    /// message (RFC 8166, section 4.5), `credits` is the responder's grant.
    pub fn error_message(&self, role: Role, credits: u32) -> Option<ErrorMessage> {
        let header = self.header?;
        Some(ErrorMessage {
            xid: header.xid,
            version: header.version,
            credits,
            error: self.answer(role)?,
        })
    }
}
