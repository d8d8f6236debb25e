// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Message Continuation (the draft, section 6.6.2): the rules of `rdma_remaining`, of the sender
//! and of the receiver.

use core::num::NonZeroU32;

use crate::{
    DecodeError,
    Direction, //
};

/// The split of a Payload stream into fragments, of which the last is an `INLINE`.
///
/// An iterator over the others: for each `MIDDLE` the octets of the stream that it takes, and its
/// `rdma_remaining`. Each is whole words, the first of them two at least, and leaves one for the
/// next, since `rdma_rpc_first_word` is a part of every header that a fragment follows.
///
/// All fields are multiples of four.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragments {
    remaining: u32,
    room: NonZeroU32,
    last_room: u32,
}

impl Fragments {
    /// Splits `payload` octets, a multiple of four as all XDR, and more than two words as every RPC
    /// message. `room` is that behind the header of a `MIDDLE`, `last_room` that behind the header
    /// of the `INLINE`, which has the chunk lists. `None` if there is no room for two words in the
    /// former or for one in the latter.
    pub fn new(payload: u32, room: u32, last_room: u32) -> Option<Self> {
        if payload & 3 != 0 || payload < 12 || room < 8 || last_room < 4 {
            return None;
        }
        Some(Self {
            remaining: payload,
            room: NonZeroU32::new(room & !3)?,
            last_room: last_room & !3,
        })
    }

    /// Returns the number of messages that are to be sent, the `INLINE` with them: the credits that
    /// the sender needs.
    pub fn messages(&self) -> u32 {
        let more = self.remaining.saturating_sub(self.last_room);
        let rest = u32::from(more % self.room != 0);
        (more / self.room).saturating_add(rest).saturating_add(1)
    }

    /// Returns the octets of the stream that were not taken: those of the `INLINE`, when all others
    /// were.
    pub const fn left(&self) -> u32 {
        self.remaining
    }
}

impl Iterator for Fragments {
    type Item = (u32, u32);

    fn next(&mut self) -> Option<(u32, u32)> {
        if self.remaining <= self.last_room {
            return None;
        }
        let length = self.room.get().min(self.remaining.saturating_sub(4));
        self.remaining = self.remaining.saturating_sub(length);
        Some((length, self.remaining))
    }
}

/// The longest RPC message that comes in fragments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Longest {
    /// Octets of its Payload stream.
    pub(super) octets: u32,
    /// Messages that bring fragments, without the last.
    pub(super) fragments: u32,
}

/// The part of an RPC message that has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Arrived {
    /// Octets of its Payload stream.
    octets: u32,
    /// `rdma_remaining`: those that are to come, at least one.
    remaining: u32,
    /// The number of fragments.
    fragments: u32,
}

impl Arrived {
    /// Begins with a first fragment of `length` octets.
    pub(super) const fn first(
        length: u32,
        remaining: u32,
        longest: &Longest,
    ) -> Result<Self, DecodeError> {
        let whole = length.saturating_add(remaining);
        if whole > longest.octets {
            return Err(DecodeError::Remaining(remaining));
        }
        let none = Self {
            octets: 0,
            remaining: whole,
            fragments: 0,
        };
        none.add(length, remaining, longest)
    }

    /// Adds a fragment of `length` octets that is not the last.
    pub(super) const fn add(
        &self,
        length: u32,
        remaining: u32,
        longest: &Longest,
    ) -> Result<Self, DecodeError> {
        match self.remaining.checked_sub(length) {
            Some(left) if left == remaining && left != 0 && self.fragments < longest.fragments => {
                Ok(Self {
                    octets: self.octets.saturating_add(length),
                    remaining,
                    fragments: self.fragments.saturating_add(1),
                })
            }
            _ => Err(DecodeError::Remaining(remaining)),
        }
    }

    /// Ends with a fragment of `length` octets.
    pub(super) const fn end(&self, length: u32) -> Result<(), DecodeError> {
        if length != self.remaining {
            return Err(DecodeError::Remaining(0));
        }
        Ok(())
    }

    /// Returns the octets of its Payload stream.
    pub(super) const fn octets(&self) -> u32 {
        self.octets
    }
}

/// What the fragments of one RPC message have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stream {
    /// `rdma_xid`.
    pub(super) xid: u32,
    /// Call or Reply.
    pub(super) direction: Direction,
}

/// What the peer has begun to send, and not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Begun {
    /// Nothing.
    Nothing,
    /// An RPC message, and what is here of it.
    Message(Stream, Arrived),
    /// Transport properties, in so many octets of messages.
    Properties(u32),
}
