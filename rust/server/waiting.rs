// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The items of a connection that wait for service threads. The queue drops no item itself: that
//! takes the lock of the Receives, and the caller holds the queue's lock.

use crate::{
    kapi::{
        ib::RecvBuf,
        page::TransferMemory,
        sys::fifo::Fifo, //
    },
    server::request::Request,
    transport::continued::Kept, //
};
use kernel::prelude::*;
use xdr::{
    v2::Undecoded,
    DecodeError, //
};

/// The place of memory that was read.
#[derive(Clone, Copy)]
pub(crate) enum Place {
    /// At a position of the Payload stream, which begins at an offset of the message.
    Within { offset: usize, position: usize },
    /// The whole Payload stream.
    LongCall,
}

/// A Call whose Read chunks are being read.
pub(crate) struct PendingRead {
    pub(super) request: Request,
    pub(super) place: Place,
    /// What was read; none before that.
    pub(super) memory: Option<TransferMemory>,
}

impl PendingRead {
    /// Creates a Call of which nothing was read yet. May sleep.
    pub(super) fn new(request: Request, place: Place) -> Result<KBox<Self>> {
        let reading = Self {
            request,
            place,
            memory: None,
        };
        Ok(KBox::new(reading, GFP_KERNEL)?)
    }
}

/// The last message of a Call or a Reply that came in several, with the others.
pub(crate) struct Continued {
    pub(super) message: RecvBuf,
    pub(super) undecoded: Undecoded,
    pub(super) front: KBox<Kept>,
}

/// An item that a connection has received for a service thread.
pub(crate) enum RecvItem {
    /// A message, just received.
    Message(RecvBuf),
    /// The last message of a Call or a Reply that came in several.
    Continued(KBox<Continued>),
    /// One that was refused as it arrived, and why.
    Refused(RecvBuf, DecodeError),
    /// Nothing: a message with this XID has begun version 2, and is to be answered.
    Negotiated(u32),
    /// A Call, with the contents of its Read chunks. In a box, since few have any, and every item
    /// has the size of the largest.
    ReadDone(KBox<PendingRead>),
}

/// The items that wait for service threads.
#[derive(Default)]
pub(super) struct Waiting {
    arrivals: Fifo<RecvItem>,
    /// The number of Calls whose RDMA Reads are outstanding.
    reading: u32,
    /// The number of times that RDMA Reads were begun.
    begun: u64,
    /// Calls that need regions which others are using.
    stalled: Fifo<RecvItem>,
    /// The number of stalled Calls, from the first on, that may be tried again.
    again: usize,
}

/// The state of the queue when a Call's RDMA Reads began.
pub(super) struct ReadTicket {
    /// No other Call was being read.
    alone: bool,
    begun: u64,
}

impl Waiting {
    /// Creates a queue with room for `receives` messages, which are all that can be received before
    /// any are given back. May sleep.
    pub(super) fn new(receives: usize) -> Result<Self> {
        Ok(Self {
            arrivals: Fifo::with_capacity(receives)?,
            stalled: Fifo::with_capacity(receives)?,
            ..Self::default()
        })
    }

    /// Adds an item. Gives it back if there is no room.
    #[inline]
    pub(super) fn arrived(&mut self, arrival: RecvItem) -> Result<(), RecvItem> {
        self.arrivals.push(arrival).map(|_| ())
    }

    /// Takes the next item; stalled Calls that can be tried again go first.
    #[inline]
    pub(super) fn next(&mut self) -> Option<RecvItem> {
        if self.again == 0 {
            return self.arrivals.pop();
        }
        self.again -= 1;
        self.stalled.pop()
    }

    /// Returns whether there is no next item.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.again == 0 && self.arrivals.is_empty()
    }

    /// Begins the RDMA Reads of a Call.
    pub(super) fn begin_read(&mut self) -> ReadTicket {
        let alone = self.reading == 0;
        self.reading += 1;
        self.begun = self.begun.wrapping_add(1);
        ReadTicket {
            alone,
            begun: self.begun,
        }
    }

    /// Ends the RDMA Reads of a Call. Returns whether stalled Calls can be tried again.
    pub(super) fn end_read(&mut self) -> bool {
        self.reading = self.reading.saturating_sub(1);
        self.again = self.stalled.len();
        self.again != 0
    }

    /// Returns whether no other Call was being read when `turn` was issued, or since.
    pub(super) fn was_alone(&self, turn: &ReadTicket) -> bool {
        turn.alone && turn.begun == self.begun
    }

    /// Stalls a Call until RDMA Reads of others have ended. Gives it back if there is no room.
    pub(super) fn stall(&mut self, call: RecvItem) -> Result<(), RecvItem> {
        let stalled = self.stalled.push(call).map(|_| ());
        if self.reading == 0 {
            // They have ended meanwhile.
            self.again = self.stalled.len();
        }
        stalled
    }
}
