// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The four words that begin every RPC-over-RDMA message.

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

/// The fixed header fields as received, not yet judged (RFC 8166, section 4.2).
///
/// They have the same meaning and place in all versions of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FixedHeader {
    /// `rdma_xid`, a copy of the RPC message's transaction ID (section 4.2.1).
    pub xid: u32,
    /// `rdma_vers` (section 4.2.2).
    pub version: u32,
    /// `rdma_credit`: credits requested in a Call, granted in a Reply (sections 3.3.1 and 4.2.3).
    /// A peer may send any value; whoever acts on it clamps it first.
    pub credits: u32,
    /// `rdma_proc` (section 4.2.4); see [`Procedure::from_wire`].
    pub procedure: u32,
}

impl FixedHeader {
    /// Octets of the fixed fields.
    pub const SIZE: usize = 16;

    /// Looks at the fixed fields; `None` when `message` is shorter than they are.
    #[inline]
    pub const fn peek(message: &[u8]) -> Option<Self> {
        match message.first_chunk::<{ Self::SIZE }>() {
            Some(bytes) => Some(Self::from_wire(bytes)),
            None => None,
        }
    }

    /// Changes `rdma_credit` of an encoded message, which must have fixed fields.
    #[inline]
    pub fn set_credits(message: &mut [u8], credits: u32) {
        if let Some(field) = message.get_mut(8..12) {
            field.copy_from_slice(&credits.to_be_bytes());
        }
    }

    /// Reads the fixed fields.
    #[inline]
    pub const fn from_wire(bytes: &[u8; Self::SIZE]) -> Self {
        let [x0, x1, x2, x3, v0, v1, v2, v3, c0, c1, c2, c3, p0, p1, p2, p3] = *bytes;
        Self {
            xid: u32::from_be_bytes([x0, x1, x2, x3]),
            version: u32::from_be_bytes([v0, v1, v2, v3]),
            credits: u32::from_be_bytes([c0, c1, c2, c3]),
            procedure: u32::from_be_bytes([p0, p1, p2, p3]),
        }
    }

    /// Writes the fixed fields.
    #[inline]
    pub fn to_wire(&self) -> [u8; Self::SIZE] {
        // Words, since the compiler would store octets one by one.
        let words = [self.xid, self.version, self.credits, self.procedure].map(u32::to_be_bytes);
        let mut wire = [0; Self::SIZE];
        wire.copy_from_slice(words.as_flattened());
        wire
    }
}
