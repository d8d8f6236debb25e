// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The private data that peers exchange while they connect (RFC 8797).

use crate::{
    wire::Writer,
    EncodeError, //
};

/// The Format Identifier (RFC 8797, section 4).
const FORMAT: [u8; 4] = 0xf6ab_0e18_u32.to_be_bytes();
/// The format version (RFC 8797, section 4).
const FORMAT_VERSION: u8 = 1;
/// The R bit (RFC 8797, section 4.1); the other bits of its octet are reserved.
const REMOTE_INVALIDATION: u8 = 1;

/// Size of an inline buffer: 1024 to 262144 octets in steps of 1024 (RFC 8797, section 4.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct InlineSize(u8);

impl InlineSize {
    /// 1024 octets, what every peer can receive (RFC 8166, section 3.3.3).
    pub const MIN: Self = Self(0);
    /// 262144 octets.
    pub const MAX: Self = Self(u8::MAX);

    /// The largest size that a buffer of `bytes` octets holds, clamped to the range that can be
    /// represented.
    #[inline]
    pub const fn from_bytes(bytes: u32) -> Self {
        match (bytes >> 10).saturating_sub(1) {
            // The pattern bounds the value to eight bits.
            kilo @ 0..=0xff => Self(kilo as u8),
            _ => Self::MAX,
        }
    }

    /// The size in octets.
    #[inline]
    pub const fn bytes(self) -> u32 {
        // At most 256 times 1024.
        (self.0 as u32).saturating_add(1) << 10
    }
}

/// A Private Data message of format version 1 (RFC 8797, section 4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PrivateData {
    /// The R bit: the sender supports remote invalidation (section 4.1).
    pub remote_invalidation: bool,
    /// The most that the sender transmits in one RDMA Send.
    pub send_size: InlineSize,
    /// The most that the sender receives with one RDMA Receive.
    pub receive_size: InlineSize,
}

impl PrivateData {
    /// Octets on the wire.
    pub const SIZE: usize = 8;

    /// What a peer that says nothing counts as having said (RFC 8797, section 5.1): 1024 octets
    /// both ways, no remote invalidation.
    pub const DEFAULT: Self = Self {
        remote_invalidation: false,
        send_size: InlineSize::MIN,
        receive_size: InlineSize::MIN,
    };

    /// Finds the message in received private data.
    ///
    /// `bytes` is what was received, by its real length; a lower layer may have put its own data
    /// in front, so the Format Identifier is searched for at every octet (RFC 8797, section 5.2),
    /// and what follows the eight octets is ignored. `None` when there is no whole message of a
    /// known version: the peer then counts as [`DEFAULT`](Self::DEFAULT).
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        bytes.windows(Self::SIZE).find_map(|window| match *window {
            [m0, m1, m2, m3, FORMAT_VERSION, flags, send, receive]
                if [m0, m1, m2, m3] == FORMAT =>
            {
                Some(Self {
                    remote_invalidation: flags & REMOTE_INVALIDATION != 0,
                    send_size: InlineSize(send),
                    receive_size: InlineSize(receive),
                })
            }
            _ => None,
        })
    }

    /// The message as it goes on the wire.
    #[inline]
    pub const fn to_wire(&self) -> [u8; Self::SIZE] {
        let [m0, m1, m2, m3] = FORMAT;
        let flags = if self.remote_invalidation {
            REMOTE_INVALIDATION
        } else {
            0
        };
        [
            m0,
            m1,
            m2,
            m3,
            FORMAT_VERSION,
            flags,
            self.send_size.0,
            self.receive_size.0,
        ]
    }

    /// Writes the message to the front of `buffer`. Returns its length in octets.
    #[inline]
    pub fn encode(&self, buffer: &mut [u8]) -> Result<usize, EncodeError> {
        let mut writer = Writer::new(buffer);
        writer.array(&self.to_wire());
        EncodeError::check_room(&writer)
    }

    /// Inline threshold in octets from this end to `peer`: the smaller of the own send size and
    /// the peer's receive size (RFC 8797, section 4.2).
    #[inline]
    pub fn send_threshold(&self, peer: &Self) -> u32 {
        self.send_size.min(peer.receive_size).bytes()
    }

    /// Inline threshold in octets from `peer` to this end.
    #[inline]
    pub fn receive_threshold(&self, peer: &Self) -> u32 {
        peer.send_threshold(self)
    }
}
