// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! RPC messages, as far as a transport has to know them.

use crate::{
    wire::{
        Reader,
        Writer, //
    },
    DecodeError, //
};

/// Octets of the shortest RPC Call header (RFC 5531, section 9): XID, `msg_type`, RPC version,
/// program, version, procedure, and a credential and a verifier without body.
pub(crate) const MIN_CALL_HEADER: u32 = 40;

/// Version of the RPC protocol itself (RFC 5531, section 9).
const RPC_VERSION: u32 = 2;

/// Direction of an RPC message (`msg_type`; RFC 5531, section 9).
///
/// On a bidirectional connection both ends receive both kinds, and whether the credit field of a
/// message is a request or a grant follows from this (RFC 8167, section 4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// `CALL` = 0.
    Call,
    /// `REPLY` = 1.
    Reply,
}

/// XID and `msg_type`, the two words that every RPC message begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RpcPrefix {
    /// Transaction ID.
    pub xid: u32,
    /// The `msg_type` word as received.
    pub msg_type: u32,
}

impl RpcPrefix {
    /// Octets of the two words.
    pub const SIZE: u32 = 8;

    /// Reads the first words of a Payload stream; `None` when it is shorter than they are.
    pub fn peek(payload: &[u8]) -> Option<Self> {
        Self::read(&mut Reader::new(payload)).ok()
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let [xid, msg_type] = reader.words()?;
        Ok(Self { xid, msg_type })
    }

    /// Returns who sent the message; `None` when `msg_type` is neither `CALL` nor `REPLY`.
    pub const fn direction(&self) -> Option<Direction> {
        match self.msg_type {
            0 => Some(Direction::Call),
            1 => Some(Direction::Reply),
            _ => None,
        }
    }
}

/// Procedure and size that the header of an RPC Call states (RFC 5531, section 9).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CallHeader {
    /// Number of the program.
    pub(crate) program: u32,
    /// Its version.
    pub(crate) version: u32,
    /// Number of the procedure.
    pub(crate) procedure: u32,
    /// The arguments are under integrity or privacy (RFC 2203, section 5.3.3).
    pub(crate) wrapped: bool,
    /// Octets of the header, that is, up to the arguments.
    pub(crate) size: usize,
}

/// Flavor of a credential whose fourth word is the service (RFC 2203, section 5).
const RPCSEC_GSS: u32 = 6;

/// Returns a Call of procedure 0, which has neither arguments nor results, without credential
/// (RFC 5531, sections 9 and 10).
pub fn null_call(xid: u32, program: u32, version: u32) -> [u8; MIN_CALL_HEADER as usize] {
    let mut call = [0; MIN_CALL_HEADER as usize];
    // The type is 0, and so is the procedure, the flavors and the lengths of their bodies.
    Writer::new(&mut call).words([xid, 0, RPC_VERSION, program, version]);
    call
}

impl CallHeader {
    /// Reads the beginning of a Payload stream; `None` when it is no Call with a whole header.
    pub(crate) fn peek(payload: &[u8]) -> Option<Self> {
        match RpcPrefix::peek(payload)?.direction()? {
            Direction::Call => Self::read(Reader::new(payload)).ok(),
            Direction::Reply => None,
        }
    }

    fn read(start: Reader<'_>) -> Result<Self, DecodeError> {
        let mut reader = start;
        let _prefix = RpcPrefix::read(&mut reader)?;
        // The version of RPC itself is for the RPC layer to judge.
        let [_rpc_version, program, version, procedure] = reader.words()?;
        let (flavor, body) = auth(&mut reader)?;
        let _verifier = auth(&mut reader)?;
        Ok(Self {
            program,
            version,
            procedure,
            wrapped: flavor == RPCSEC_GSS && gss_wraps(body),
            size: reader.since(start).len(),
        })
    }
}

/// Takes a flavor and its body (RFC 5531, section 8.2).
fn auth<'a>(reader: &mut Reader<'a>) -> Result<(u32, &'a [u8]), DecodeError> {
    let (flavor, octets) = (reader.word()?, reader.count()?);
    Ok((flavor, reader.items(octets.div_ceil(4), 4)?))
}

/// Returns whether the service of an RPCSEC_GSS credential is integrity (2) or privacy (3).
fn gss_wraps(credential: &[u8]) -> bool {
    let mut reader = Reader::new(credential);
    // Version, procedure, sequence number.
    let service = reader.items(3, 4).and_then(|_| reader.word());
    matches!(service, Ok(2 | 3))
}
