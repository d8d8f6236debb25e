// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! What the fixed fields of a header say.

/// The protocol version of this crate (RFC 8166, section 4.2.2).
pub const VERSION: u32 = 1;

/// Octets of the smallest RPC-over-RDMA header that has chunk lists: the fixed fields and three
/// words that say "not present" (RFC 8166, sections 4.5 and 4.7).
pub const MIN_HEADER: usize = 28;

/// The `rdma_proc` field (RFC 8166, section 4.2.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Procedure {
    /// `RDMA_MSG`: chunk lists and a Payload stream follow.
    Msg = 0,
    /// `RDMA_NOMSG`: chunk lists follow, and one of the chunks holds the Payload stream.
    NoMsg = 1,
    /// `RDMA_MSGP`: reserved, never sent (RFC 8166, section 4.6.1).
    Msgp = 2,
    /// `RDMA_DONE`: reserved, never sent (RFC 8166, section 4.6.2).
    Done = 3,
    /// `RDMA_ERROR`: an error code follows.
    Error = 4,
}

impl Procedure {
    /// `None` for a value that version 1 does not define.
    #[inline]
    pub const fn from_wire(value: u32) -> Option<Self> {
        match value {
            0 => Some(Self::Msg),
            1 => Some(Self::NoMsg),
            2 => Some(Self::Msgp),
            3 => Some(Self::Done),
            4 => Some(Self::Error),
            _ => None,
        }
    }

    /// The value on the wire.
    #[inline]
    pub const fn to_wire(self) -> u32 {
        self as u32
    }
}
