// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! `RDMA_ERROR` messages.

use crate::{
    wire::{
        Reader,
        Writer, //
    },
    DecodeError,
    EncodeError,
    FixedHeader,
    Procedure,
    VERSION, //
};

/// `ERR_VERS` (RFC 8166, section 4.1.2); the value is fixed for all versions.
const ERR_VERS: u32 = 1;
/// `ERR_CHUNK` (RFC 8166, section 4.1.2).
const ERR_CHUNK: u32 = 2;

/// What an `RDMA_ERROR` message reports (RFC 8166, section 4.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RdmaError {
    /// `ERR_VERS`: the responder supports the versions from `low` to `high`, both inclusive
    /// (section 4.5.1). A peer may send any two values.
    Version {
        /// `rdma_vers_low`.
        low: u32,
        /// `rdma_vers_high`.
        high: u32,
    },
    /// `ERR_CHUNK`: the responder could not parse the header or cannot reply (sections 4.5.2 and
    /// 4.5.3).
    Chunk,
}

/// An `RDMA_ERROR` message. It completes the RPC that has its XID (RFC 8166, section 4.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorMessage {
    /// `rdma_xid` of the request that failed.
    pub xid: u32,
    /// `rdma_vers` of the request that failed.
    pub version: u32,
    /// `rdma_credit`: the responder's grant.
    pub credits: u32,
    /// What went wrong.
    pub error: RdmaError,
}

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
