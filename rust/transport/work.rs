// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The work that is posted to a send queue, and what a slot of its ring owns.

use crate::{
    kapi::{
        ib::{
            DmaBuffer,
            Reading,
            RwCtx, //
        },
        trace::TaskId, //
    },
    transport::{
        continued::Front,
        flow::charge::Charge,
        provided::{
            Provided,
            Withdrawal, //
        },
    },
};
use kernel::{
    prelude::*,
    time::{
        Instant,
        Monotonic, //
    },
};

/// The waiter for local invalidations.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Waiter {
    /// A Reply, which completes its RPC then.
    Reply,
    /// The task of an RPC that ends.
    Task,
}

/// What a slot of the ring owns beside a buffer: the purpose of its request.
pub(crate) enum Owned<C> {
    /// The Send of a message, for the RPC with that XID.
    Send { xid: Option<u32> },
    /// An RDMA Write of the transfer with that number, for a Write chunk or the Reply chunk;
    /// whether it is the last for that.
    Write {
        xid: Option<u32>,
        transfer: u32,
        reply_chunk: bool,
        last: bool,
    },
    /// A registration or a local invalidation of the region with that number.
    Region { region: u32, registers: bool },
    /// The last local invalidation of a chain, which brings the cookie back.
    Cookie {
        cookie: C,
        region: u32,
        waiter: Waiter,
    },
    /// The last local invalidation of the withdrawn Reply with that number.
    Withdrawn { number: u32 },
}

/// What RDMA Reads own until they end.
pub(crate) struct Read<C> {
    pub(super) xid: Option<u32>,
    pub(super) cookie: C,
    /// The number of the transfer.
    pub(super) number: u32,
    /// The time when they were posted, if their latency is traced.
    pub(super) posted: Option<Instant<Monotonic>>,
}

/// The RDMA Writes in front of a Reply.
pub(super) struct Writes {
    /// The transfer, which has requests.
    pub(super) transfer: KBox<RwCtx>,
    pub(super) number: u32,
    /// The number of requests before those for the Reply chunk.
    pub(super) reply_chunk_from: usize,
}

/// The Send of a message, with the work that is posted in front of it. What is left in it was not
/// posted.
#[derive(Default)]
pub(super) struct Message {
    pub(super) buffer: Option<DmaBuffer>,
    pub(super) len: usize,
    /// The messages in front of it that have the front of its Payload stream. In a box, since few
    /// messages have any.
    pub(super) front: Option<KBox<Front>>,
    /// How it uses credits; none only before its header is written.
    pub(super) charge: Option<Charge>,
    /// The task that it is for, in trace events.
    pub(super) task: Option<TaskId>,
    pub(super) xid: Option<u32>,
    /// A key of the peer's to be invalidated.
    pub(super) invalidate: Option<u32>,
    pub(super) writes: Option<Writes>,
    /// A Reply for the peer to pull: this message has its header alone.
    pub(super) provided: Option<KBox<Provided>>,
}

impl Message {
    /// Returns the number of its buffer, by which trace events name it.
    pub(super) fn number(&self) -> u32 {
        self.buffer.as_ref().map_or(0, |buffer| buffer.id)
    }

    /// Returns whether it is posted, or may be.
    #[inline]
    pub(super) fn is_posted(&self) -> bool {
        self.buffer.is_none()
    }

    /// Returns the number of its Sends.
    #[inline]
    pub(super) fn sends(&self) -> usize {
        let front = self.front.as_ref();
        front.map_or(0, |front| front.fragments.len()) + 1
    }

    /// Returns the number of its RDMA Writes.
    #[inline]
    pub(super) fn writes(&self) -> usize {
        self.writes.as_ref().map_or(0, |w| w.transfer.requests())
    }
}

/// Work that waits for its turn.
pub(super) enum Work<C> {
    Message(Message),
    Reads(Option<Reading<Read<C>>>),
    Withdrawal(Withdrawal),
}
