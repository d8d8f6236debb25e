// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! `RDMA_ERROR`, and when it is the answer.

use crate::{
    wire::{
        Reader,
        Writer, //
    },
    Answer,
    DecodeError,
    Direction,
    EncodeError,
    ErrorMessage,
    FixedHeader,
    Procedure,
    RdmaError,
    Rejected,
    Role,
    VERSION, //
};

/// `ERR_VERS` (RFC 8166, section 4.1.2); the value is fixed for all versions.
const ERR_VERS: u32 = 1;
/// `ERR_CHUNK` (RFC 8166, section 4.1.2).
const ERR_CHUNK: u32 = 2;

impl ErrorMessage {
    /// Octets of an `ERR_CHUNK` message, the shortest message of the protocol.
    pub const CHUNK_SIZE: usize = 20;
    /// Octets of an `ERR_VERS` message, the longest `RDMA_ERROR`.
    pub const VERSION_SIZE: usize = 28;

    /// Writes the message to the front of `buffer`. Returns its length in octets.
    #[inline]
    pub fn encode(&self, buffer: &mut [u8]) -> Result<usize, EncodeError> {
        let mut writer = Writer::new(buffer);
        let header = FixedHeader {
            xid: self.xid,
            version: self.version,
            credits: self.credits,
            procedure: Procedure::Error.to_wire(),
        };
        writer.array(&header.to_wire());
        match self.error {
            RdmaError::Version { low, high } => {
                writer.word(ERR_VERS);
                writer.word(low);
                writer.word(high);
            }
            RdmaError::Chunk => writer.word(ERR_CHUNK),
        }
        EncodeError::check_room(&writer)
    }

    /// Decodes what follows the fixed fields in `header`.
    ///
    /// `ERR_VERS` is fixed for all versions, so a peer that does not speak version 1 may send it
    /// under its own version number; `ERR_CHUNK` is version 1's.
    pub(crate) fn decode(
        header: &FixedHeader,
        reader: &mut Reader<'_>,
    ) -> Result<Self, DecodeError> {
        let error = match reader.word()? {
            ERR_VERS => RdmaError::Version {
                low: reader.word()?,
                high: reader.word()?,
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

impl DecodeError {
    /// The answer of a responder that finds this in a Call.
    #[inline]
    pub const fn answer(&self) -> Answer {
        match self {
            Self::Short | Self::Done | Self::UnknownError => Answer::Silence,
            Self::Version(_) => Answer::VersionMismatch {
                low: VERSION,
                high: VERSION,
            },
            _ => Answer::ChunkError,
        }
    }
}

impl Rejected {
    /// What the RFC wants answered.
    ///
    /// `role` is the part that this receiver plays where the message itself does not tell: it is a
    /// requester if a Call of its own awaits a Reply of that XID. A requester discards silently
    /// whatever it finds wrong in a Reply (RFC 8166, section 4.5).
    #[inline]
    pub const fn answer(&self, role: Role) -> Answer {
        let role = match self.direction {
            Some(Direction::Call) => Role::Responder,
            Some(Direction::Reply) => Role::Requester,
            None => role,
        };
        match role {
            Role::Requester => Answer::Silence,
            Role::Responder => self.reason.answer(),
        }
    }

    /// The `RDMA_ERROR` message to send, if any: XID and version are those of the refused message
    /// (RFC 8166, section 4.5), `credits` is the responder's grant.
    #[inline]
    pub const fn error_message(&self, role: Role, credits: u32) -> Option<ErrorMessage> {
        let header = match self.header {
            Some(header) => header,
            None => return None,
        };
        let error = match self.answer(role) {
            Answer::VersionMismatch { low, high } => RdmaError::Version { low, high },
            Answer::ChunkError => RdmaError::Chunk,
            Answer::Silence => return None,
        };
        Some(ErrorMessage {
            xid: header.xid,
            version: header.version,
            credits,
            error,
        })
    }
}
