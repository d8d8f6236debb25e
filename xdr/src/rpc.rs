// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The first two words of an RPC message.

/// Octets of the shortest RPC Call header (RFC 5531, section 9): XID, `msg_type`, RPC version,
/// program, version, procedure, and a credential and a verifier without body.
pub const MIN_CALL_HEADER: u32 = 40;

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
