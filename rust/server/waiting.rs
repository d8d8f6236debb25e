// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! What came by a connection and waits for service threads. Nothing is dropped in the queue, since
//! that takes the lock of the Receives, and the one around this is held.

use crate::{
    kapi::{
        ib::RecvBuf,
        page::TransferMemory,
        sys::fifo::Fifo, //
    },
    server::request::Request, //
};
use kernel::prelude::*;

/// Where the memory that was read belongs.
#[derive(Clone, Copy)]
pub(crate) enum Place {
    /// At a position of the Payload stream, which begins at an offset of the message.
    Within { offset: usize, position: usize },
    /// It is the Payload stream.
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
    /// Creates one of which nothing was read yet. May sleep.
    pub(super) fn new(request: Request, place: Place) -> Result<KBox<Self>> {
        let reading = Self {
            request,
            place,
            memory: None,
        };
        Ok(KBox::new(reading, GFP_KERNEL)?)
    }
}

/// What a connection has received for a service thread.
pub(crate) enum RecvItem {
    /// A message, just received.
    Message(RecvBuf),
    /// A Call, with the contents of its Read chunks. In a box, since few have any, and every item
    /// has the size of the largest.
    ReadDone(KBox<PendingRead>),
}

/// What waits for service threads.
#[derive(Default)]
pub(super) struct Waiting {
    arrivals: Fifo<RecvItem>,
    /// Calls whose RDMA Reads are under way.
    reading: u32,
    /// How often that began.
    begun: u64,
    /// Calls that need regions which others are using.
    stalled: Fifo<RecvBuf>,
    /// How many of these, from the first on, may be tried again.
    again: usize,
}

/// Who was reading when somebody began.
pub(super) struct ReadTicket {
    /// Nobody.
    alone: bool,
    begun: u64,
}

impl Waiting {
    /// With room for so many messages, which are as many as can be received before others are given
    /// back. May sleep.
    pub(super) fn new(receives: usize) -> Result<Self> {
        Ok(Self {
            arrivals: Fifo::with_capacity(receives)?,
            stalled: Fifo::with_capacity(receives)?,
            ..Self::default()
        })
    }

    /// Something came. Gives it back if there is no room.
    #[inline]
    pub(super) fn arrived(&mut self, arrival: RecvItem) -> Result<(), RecvItem> {
        self.arrivals.push(arrival).map(|_| ())
    }

    /// What came next; what can be tried again came before.
    #[inline]
    pub(super) fn next(&mut self) -> Option<RecvItem> {
        if self.again == 0 {
            return self.arrivals.pop();
        }
        self.again -= 1;
        self.stalled.pop().map(RecvItem::Message)
    }

    /// Whether there is no next one.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.again == 0 && self.arrivals.is_empty()
    }

    /// RDMA Reads are about to be prepared.
    pub(super) fn begin_read(&mut self) -> ReadTicket {
        let alone = self.reading == 0;
        self.reading += 1;
        self.begun = self.begun.wrapping_add(1);
        ReadTicket {
            alone,
            begun: self.begun,
        }
    }

    /// Somebody's RDMA Reads have ended. Returns whether something can be tried again.
    pub(super) fn end_read(&mut self) -> bool {
        self.reading = self.reading.saturating_sub(1);
        self.again = self.stalled.len();
        self.again != 0
    }

    /// Whether nobody else was reading from that turn on.
    pub(super) fn was_alone(&self, turn: &ReadTicket) -> bool {
        turn.alone && turn.begun == self.begun
    }

    /// Lets a Call wait until others have ended. Gives it back if there is no room.
    pub(super) fn stall(&mut self, message: RecvBuf) -> Result<(), RecvBuf> {
        let stalled = self.stalled.push(message).map(|_| ());
        if self.reading == 0 {
            // They have meanwhile.
            self.again = self.stalled.len();
        }
        stalled
    }
}
