// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! What is posted to a send queue, and what a slot of its ring owns.

use crate::{
    kapi::ib::{
        DmaBuffer,
        Reading,
        RwCtx, //
    },
    transport::provided::{
        Provided,
        Withdrawal, //
    },
};
use kernel::{
    prelude::*,
    time::{
        Instant,
        Monotonic, //
    },
};
use xdr::Direction;

/// Who waits for local invalidations.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Waiter {
    /// A Reply, to be given to its RPC.
    Reply,
    /// The task of an RPC that ends.
    Task,
}

/// What a slot of the ring owns beside a buffer: what its request is for.
pub(crate) enum Owned<C> {
    /// The Send of a message, for the RPC with that XID.
    Send { xid: Option<u32> },
    /// An RDMA Write of a transfer of that number, for a Write chunk or the Reply chunk; the last
    /// of those.
    Write {
        xid: Option<u32>,
        transfer: u32,
        reply_chunk: bool,
        last: bool,
    },
    /// A registration, or a local invalidation, of the region of that number.
    Region { region: u32, registers: bool },
    /// The last local invalidation of a chain, which brings the cookie back.
    Cookie {
        cookie: C,
        region: u32,
        waiter: Waiter,
    },
    /// The last local invalidation of a Reply that is withdrawn, of that number.
    Withdrawn { number: u32 },
}

/// Who wants to know of the end of RDMA Reads.
pub(crate) struct Read<C> {
    pub(super) xid: Option<u32>,
    pub(super) cookie: C,
    /// The number of the transfer.
    pub(super) number: u32,
    /// When they were posted, if somebody asks.
    pub(super) posted: Option<Instant<Monotonic>>,
}

/// RDMA Writes before a Reply.
pub(super) struct Writes {
    /// Not without requests.
    pub(super) transfer: KBox<RwCtx>,
    pub(super) number: u32,
    /// How many requests come before those for the Reply chunk.
    pub(super) reply_chunk_from: usize,
}

/// The Send of a message, with what is posted in front of it.
pub(super) struct Message {
    pub(super) buffer: DmaBuffer,
    pub(super) len: usize,
    /// That of its credit word.
    pub(super) direction: Option<Direction>,
    pub(super) xid: Option<u32>,
    /// A key of the peer's.
    pub(super) invalidate: Option<u32>,
    pub(super) writes: Option<Writes>,
    /// A Reply for the peer to pull: this message has its header alone.
    pub(super) provided: Option<KBox<Provided>>,
    /// The peer may have no room for the Send itself.
    pub(super) may_be_refused: bool,
}

impl Message {
    /// Creates one of which nothing is known but its bytes, the first `len` of the buffer.
    #[inline]
    pub(super) fn new(buffer: DmaBuffer, len: usize, direction: Option<Direction>) -> Self {
        Self {
            len: len.min(buffer.len()),
            buffer,
            direction,
            xid: None,
            invalidate: None,
            writes: None,
            provided: None,
            may_be_refused: false,
        }
    }

    /// Returns the number of its RDMA Writes.
    #[inline]
    pub(super) fn writes(&self) -> usize {
        self.writes.as_ref().map_or(0, |w| w.transfer.requests())
    }
}

/// What comes of a post: an error, with what the device was not asked to take.
pub(super) type PostResult<T> = Result<(), (Error, Option<T>)>;

/// What is posted in one go, when it is its turn.
pub(super) enum Work<C> {
    Message(Message),
    Reads(Reading<Read<C>>),
    Withdrawal(Withdrawal),
}

impl<C> Work<C> {
    /// Returns the number of its buffer or transfer, by which trace events call it.
    pub(super) fn number(&self) -> u32 {
        match self {
            Self::Message(message) => message.buffer.id,
            Self::Reads(reading) => reading.owned.number,
            Self::Withdrawal(withdrawal) => withdrawal.number,
        }
    }

    /// Returns the number of its work requests.
    #[inline]
    pub(super) fn requests(&self) -> usize {
        match self {
            Self::Message(message) => {
                let provided = message.provided.as_ref();
                message.writes() + provided.map_or(0, |p| p.registrations()) + 1
            }
            Self::Reads(reading) => reading.transfer.requests(),
            Self::Withdrawal(withdrawal) => withdrawal.registered,
        }
    }
}
