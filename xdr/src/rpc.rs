// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! What a transport has to know of an RPC message: its first two words, and what a Call is for.

use crate::wire::Reader;

/// Octets of the shortest RPC Call header (RFC 5531, section 9): XID, `msg_type`, RPC version,
/// program, version, procedure, and a credential and a verifier without body.
pub const MIN_CALL_HEADER: u32 = 40;

/// Of the RPC protocol itself (RFC 5531, section 9).
const RPC_VERSION: u32 = 2;

/// Who sent an RPC message (`msg_type`; RFC 5531, section 9).
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
    pub const SIZE: usize = 8;

    /// Looks at the first words of a Payload stream; `None` when it is shorter than they are.
    #[inline]
    pub const fn peek(payload: &[u8]) -> Option<Self> {
        match payload.first_chunk::<{ Self::SIZE }>() {
            Some(&[x0, x1, x2, x3, t0, t1, t2, t3]) => Some(Self {
                xid: u32::from_be_bytes([x0, x1, x2, x3]),
                msg_type: u32::from_be_bytes([t0, t1, t2, t3]),
            }),
            None => None,
        }
    }

    /// `None` when `msg_type` is neither `CALL` nor `REPLY`.
    #[inline]
    pub const fn direction(&self) -> Option<Direction> {
        match self.msg_type {
            0 => Some(Direction::Call),
            1 => Some(Direction::Reply),
            _ => None,
        }
    }
}

/// What the header of an RPC Call says of the procedure (RFC 5531, section 9).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallHeader {
    /// Number of the program.
    pub program: u32,
    /// Its version.
    pub version: u32,
    /// Number of the procedure.
    pub procedure: u32,
    /// The arguments are under integrity or privacy (RFC 2203, section 5.3.3).
    pub wrapped: bool,
    /// Octets of the header, that is, up to the arguments.
    pub size: usize,
}

/// The flavor of a credential whose fourth word is the service.
const RPCSEC_GSS: u32 = 6;

/// A Call of procedure 0, which has neither arguments nor results, without credential
/// (RFC 5531, sections 9 and 10).
pub fn null_call(xid: u32, program: u32, version: u32) -> [u8; MIN_CALL_HEADER as usize] {
    let mut call = [0; MIN_CALL_HEADER as usize];
    // The type is 0, and so is the procedure, the flavors and the lengths of their bodies.
    let words = [xid, 0, RPC_VERSION, program, version];
    for (to, word) in call.chunks_exact_mut(4).zip(words) {
        to.copy_from_slice(&word.to_be_bytes());
    }
    call
}

impl CallHeader {
    /// Whether the service of an RPCSEC_GSS credential is integrity (2) or privacy (3).
    fn gss_wraps(credential: &[u8]) -> bool {
        let mut reader = Reader::new(credential);
        // Version, procedure, sequence number.
        let service = reader.items(3, 4).and_then(|_| reader.word());
        matches!(service, Ok(2 | 3))
    }

    /// Takes a flavor and what it says (RFC 5531, section 8.2).
    #[inline(always)]
    fn auth<'a>(reader: &mut Reader<'a>) -> Option<(u32, &'a [u8])> {
        let mut fixed = Reader::new(reader.array::<8>().ok()?);
        let (flavor, octets) = (fixed.word().ok()?, fixed.count().ok()?);
        Some((flavor, reader.items(octets.div_ceil(4), 4).ok()?))
    }

    /// Looks at the beginning of a Payload stream; `None` when it is no Call with a whole header.
    #[inline]
    pub fn peek(payload: &[u8]) -> Option<Self> {
        const FIXED: usize = RpcPrefix::SIZE + 16;
        let mut reader = Reader::new(payload);
        let fixed = reader.array::<FIXED>().ok()?;
        if RpcPrefix::peek(fixed)?.direction() != Some(Direction::Call) {
            return None;
        }
        let (_prefix, fixed) = fixed.split_first_chunk::<{ RpcPrefix::SIZE }>()?;
        let mut fixed = Reader::new(fixed);
        // The version of RPC itself is for the RPC layer to judge.
        let _rpc_version = fixed.word().ok()?;
        let (program, version, procedure) =
            (fixed.word().ok()?, fixed.word().ok()?, fixed.word().ok()?);
        let (flavor, body) = Self::auth(&mut reader)?;
        let _verifier = Self::auth(&mut reader)?;
        Some(Self {
            program,
            version,
            procedure,
            wrapped: flavor == RPCSEC_GSS && Self::gss_wraps(body),
            size: payload.len().checked_sub(reader.rest().len())?,
        })
    }
}
