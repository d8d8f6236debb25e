// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The private data that peers exchange while they connect: the message of RFC 8797, and behind it
//! a block that says whether they can pull Replies (`Documentation/reliable-reply.rst`).

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

/// First octets of the block behind the message.
const PULLS: [u8; 4] = 0x72a1_c35e_u32.to_be_bytes();
/// Version of that block.
const PULLS_VERSION: u8 = 1;
/// Flags of that block; the other bits must be zero.
const MAY_PULL: u8 = 1;
const MAY_PROVIDE: u8 = 2;

/// Size of an inline buffer: 1024 to 262144 octets in steps of 1024 (RFC 8797, section 4.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct InlineSize(u8);

impl InlineSize {
    /// 1024 octets, what every peer can receive (RFC 8166, section 3.3.3).
    pub const MIN: Self = Self(0);
    /// 262144 octets.
    pub const MAX: Self = Self(u8::MAX);

    /// Returns the largest size that a buffer of `bytes` octets holds, clamped to the range that
    /// can be represented.
    pub const fn from_bytes(bytes: u32) -> Self {
        match (bytes >> 10).saturating_sub(1) {
            // The pattern bounds the value to eight bits.
            kilo @ 0..=0xff => Self(kilo as u8),
            _ => Self::MAX,
        }
    }

    /// Returns the size in octets.
    pub const fn bytes(self) -> u32 {
        // At most 256 times 1024.
        (self.0 as u32).saturating_add(1) << 10
    }
}

/// Ability of a peer to pull Replies, or to provide them for that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pulls {
    /// Pulls Replies, as a requester, from Read chunks that the responder provides.
    pub may_pull: bool,
    /// Provides them, as a responder.
    pub may_provide: bool,
}

impl Pulls {
    /// Neither ability.
    pub const NONE: Self = Self {
        may_pull: false,
        may_provide: false,
    };

    /// Decodes a block at the front of `bytes`. One that is short, of another version or with
    /// unknown flags counts for none.
    fn decode(bytes: &[u8]) -> Self {
        match bytes.first_chunk() {
            Some(&[m0, m1, m2, m3, PULLS_VERSION, flags, _, _])
                if [m0, m1, m2, m3] == PULLS && flags & !(MAY_PULL | MAY_PROVIDE) == 0 =>
            {
                Self {
                    may_pull: flags & MAY_PULL != 0,
                    may_provide: flags & MAY_PROVIDE != 0,
                }
            }
            _ => Self::NONE,
        }
    }

    fn encode(&self, writer: &mut Writer<'_>) {
        let [m0, m1, m2, m3] = PULLS;
        let pull = if self.may_pull { MAY_PULL } else { 0 };
        let provide = if self.may_provide { MAY_PROVIDE } else { 0 };
        writer.bytes(&[m0, m1, m2, m3, PULLS_VERSION, pull | provide, 0, 0]);
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
    /// The block behind it.
    pub pulls: Pulls,
}

impl PrivateData {
    /// Octets on the wire, without the block of [`Pulls`] behind it.
    pub const SIZE: usize = 8;
    /// Octets on the wire with that block.
    pub const MAX_SIZE: usize = 16;

    /// Message that a peer without any counts as having sent (RFC 8797, section 5.1): 1024 octets
    /// both ways, no remote invalidation.
    pub const DEFAULT: Self = Self {
        remote_invalidation: false,
        send_size: InlineSize::MIN,
        receive_size: InlineSize::MIN,
        pulls: Pulls::NONE,
    };

    /// Finds the message in received private data.
    ///
    /// `bytes` is what was received, by its real length; a lower layer may have put its own data
    /// in front, so the Format Identifier is searched for at every octet (RFC 8797, section 5.2),
    /// and what follows the eight octets is ignored, but for the block of [`Pulls`]. `None` when
    /// there is no whole message of a known version: the peer then counts as
    /// [`DEFAULT`](Self::DEFAULT).
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (at, message) = bytes.windows(Self::SIZE).enumerate().find(|(_, window)| {
            matches!(**window, [m0, m1, m2, m3, FORMAT_VERSION, ..] if [m0, m1, m2, m3] == FORMAT)
        })?;
        let behind = bytes.get(at.saturating_add(Self::SIZE)..)?;
        let [.., flags, send, receive] = *message else {
            return None;
        };
        Some(Self {
            remote_invalidation: flags & REMOTE_INVALIDATION != 0,
            send_size: InlineSize(send),
            receive_size: InlineSize(receive),
            pulls: Pulls::decode(behind),
        })
    }

    /// Writes the message to the front of `buffer`, and the block if it says something. Returns
    /// their length in octets, [`Self::MAX_SIZE`] at most.
    pub fn encode(&self, buffer: &mut [u8]) -> Result<usize, EncodeError> {
        let mut writer = Writer::new(buffer);
        let [m0, m1, m2, m3] = FORMAT;
        let flags = if self.remote_invalidation {
            REMOTE_INVALIDATION
        } else {
            0
        };
        let (send, receive) = (self.send_size.0, self.receive_size.0);
        writer.bytes(&[m0, m1, m2, m3, FORMAT_VERSION, flags, send, receive]);
        if self.pulls != Pulls::NONE {
            self.pulls.encode(&mut writer);
        }
        writer.finish()
    }

    /// Returns the inline threshold in octets from this end to `peer`: the smaller of the own send
    /// size and the peer's receive size (RFC 8797, section 4.2).
    pub fn send_threshold(&self, peer: &Self) -> u32 {
        self.send_size.min(peer.receive_size).bytes()
    }

    /// Returns the inline threshold in octets from `peer` to this end.
    pub fn receive_threshold(&self, peer: &Self) -> u32 {
        peer.send_threshold(self)
    }

    /// Returns whether this end pulls Replies from `peer`: it can, and the peer provides them.
    pub const fn pulls_from(&self, peer: &Self) -> bool {
        self.pulls.may_pull && peer.pulls.may_provide
    }
}
