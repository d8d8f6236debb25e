// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Buffers that are filled and sent.

use crate::{
    kapi::{
        ib::{
            Access,
            DmaBuffer,
            Maker,
            Poster,
            Regions, //
        },
        page::ExtentIter,
        trace::{
            CompletionId,
            TaskId, //
        },
    },
    transport::{
        endpoint::{
            Endpoint,
            Handler,
            Sending, //
        },
        providing::Providing,
        transfer::RwBuilder,
        work::{
            Message,
            Work, //
        },
    },
};
use kernel::{
    dma::DataDirection,
    prelude::*, //
};
use xdr::{
    Direction,
    Role,
    Segment, //
};

/// A buffer for one Send. The tear-down waits for it before it unmaps its memory; the buffer can be
/// posted until the tear-down has begun.
pub(crate) struct SendBuffer<'a, H: Handler> {
    /// None only while it is dropped.
    buffer: Option<DmaBuffer>,
    /// The length of the header in bytes, and the direction of its message.
    header: (usize, Option<Direction>),
    endpoint: &'a Endpoint<H>,
}

/// The work that goes with a message, which may wait for its turn.
pub(crate) struct Attached<'a, H: Handler> {
    /// The XID of the RPC, for the report of a failure.
    pub(crate) xid: Option<u32>,
    /// A key of the peer's that the Send invalidates.
    pub(crate) invalidate: Option<u32>,
    /// RDMA Writes in front of the Send.
    pub(crate) writes: Option<RwBuilder<'a, H>>,
    /// The Reply itself, if the peer is to pull it.
    pub(crate) provided: Option<Providing<'a, H>>,
    /// The peer may have no room for the Send.
    pub(crate) may_be_refused: bool,
}

impl<H: Handler> Default for Attached<'_, H> {
    fn default() -> Self {
        Self {
            xid: None,
            invalidate: None,
            writes: None,
            provided: None,
            may_be_refused: false,
        }
    }
}

/// The purpose of a buffer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// A Call, which leaves room for messages that completions post, and goes behind them.
    Call,
    /// Another message. At a requester it finds room at once, like a Call.
    Message,
    /// A message that waits for room, from a handler: allocation does not wait for memory.
    Queued,
    /// A message that finds room at once, from a handler: only a pooled buffer will do.
    Pooled,
}

impl<H: Handler> Sending<'_, H> {
    /// Returns the number of slots that have to be free.
    #[inline]
    fn room_for(&self, purpose: Purpose) -> u32 {
        match (H::ROLE, purpose) {
            // Posts of a responder wait for room in the queue.
            (Role::Responder, _) | (_, Purpose::Queued) => 0,
            (_, Purpose::Message | Purpose::Pooled) => self.longest_call,
            (_, Purpose::Call) if self.longest_read == 0 => self.longest_call,
            // Messages that completions post have room beside that of a Call, and of one more: so
            // they never wait for a Reply.
            (_, Purpose::Call) => 2 * self.longest_call + self.longest_read,
        }
    }

    /// Takes a buffer. None if the caller is to make one, outside the lock.
    #[inline]
    pub(super) fn get_buffer(&mut self, purpose: Purpose) -> Result<Option<DmaBuffer>> {
        if !self.ring().is_open() {
            return Err(ENOTCONN);
        }
        // The waiting message may be the RDMA_DONE of the Reply that has given back this Call's
        // credit: it goes first, though there may be room for the Call already.
        let behind = purpose == Purpose::Call && self.longest_read != 0 && self.has_pending();
        if behind || self.sq_avail() < self.room_for(purpose) as usize {
            return Err(EAGAIN);
        }
        if purpose == Purpose::Pooled {
            let buffer = self.buffers.pop().ok_or(EAGAIN)?;
            self.short = true;
            return Ok(Some(buffer));
        }
        // As long as more can be made, one stays back for when allocation fails.
        let back = usize::from(self.made < self.limit);
        if self.buffers.len() > back {
            return Ok(self.buffers.pop());
        }
        if self.made == self.limit {
            return Err(EAGAIN);
        }
        self.made += 1;
        Ok(None)
    }
}

impl<H: Handler> Endpoint<H> {
    /// Takes a buffer to send from. May sleep to make one for a [`Purpose::Call`] or a
    /// [`Purpose::Message`].
    ///
    /// `EAGAIN` if none is available now: [`Handler::sq_space`] is called when that changes.
    /// `ENOTCONN` when the connection ends.
    #[inline]
    pub(crate) fn send_buffer(&self, purpose: Purpose) -> Result<SendBuffer<'_, H>> {
        let buffer = self.lock().get_buffer(purpose)?;
        let buffer = match buffer {
            Some(buffer) => buffer,
            None => self.make_send_buffer(match purpose {
                Purpose::Queued | Purpose::Pooled => Maker::Handler,
                Purpose::Call | Purpose::Message => Maker::Task,
            })?,
        };
        Ok(SendBuffer {
            buffer: Some(buffer),
            header: (0, None),
            endpoint: self,
        })
    }

    /// Makes a buffer, or if that fails takes the one that stayed back.
    #[cold]
    fn make_send_buffer(&self, maker: Maker) -> Result<DmaBuffer> {
        let _scope = self.handler().memory_scope();
        let size = self.plan().send_size;
        let made = self
            .enter()
            .and_then(|poster| self.make_buffer(&poster, size, DataDirection::ToDevice, maker));
        match made {
            Ok(mut buffer) => {
                buffer.id = self.lock().next_id();
                Ok(buffer)
            }
            Err(e) => self.lock().not_made().ok_or(e),
        }
    }
}

impl<'a, H: Handler> SendBuffer<'a, H> {
    /// Notes that a header of `len` bytes was written, of a message in that direction.
    pub(super) fn begin(&mut self, direction: Direction, len: usize) {
        self.header = (len, Some(direction));
    }

    /// Returns the length of the header.
    pub(crate) fn header_len(&self) -> usize {
        self.header.0
    }

    /// Returns the name of its Send in trace events.
    pub(crate) fn id(&self) -> CompletionId {
        let number = self.buffer.as_ref().map_or(0, |buffer| buffer.id);
        CompletionId::new(self.endpoint.cqs().0, number)
    }

    /// Returns all bytes of the buffer.
    #[inline]
    pub(super) fn bytes(&mut self) -> &mut [u8] {
        match &mut self.buffer {
            Some(buffer) => buffer.as_mut_slice(),
            None => &mut [],
        }
    }

    /// Covers pieces, as many as fit, with one more region of `regions`, and returns its segment;
    /// see [`Endpoint::map`]. The poster must stay until the message is posted.
    #[inline]
    pub(crate) fn map(
        &self,
        poster: &Poster<'_>,
        regions: &mut Regions,
        pieces: &mut ExtentIter<'_>,
        access: Access,
        xid: u32,
        task: impl Fn() -> TaskId,
    ) -> Result<Segment> {
        let what = (pieces, access, xid);
        self.endpoint.map(poster, regions, what, task)
    }

    /// Returns the segment of a Write chunk for `len` bytes of XDR padding, for a task. None if
    /// there is no memory for padding, or none is needed.
    pub(crate) fn padding(&self, len: usize, task: impl Fn() -> TaskId) -> Option<Segment> {
        self.endpoint.padding(len, task)
    }

    /// Posts the Send of the header and the `len` bytes that follow it, behind the work `with` it,
    /// in one chain. It waits for its turn without the caller. A failure is reported with the XID.
    ///
    /// `EMSGSIZE` if that is more than the send queue ever holds, `ENOTCONN` when the connection
    /// ends. If the device refuses it, [`Handler::failed`] is called.
    #[inline]
    pub(crate) fn send(self, len: usize, with: Attached<'_, H>) -> Result {
        let Attached {
            xid,
            invalidate,
            writes,
            // Its poster stays until this returns: the tear-down waits for mapped regions.
            mut provided,
            may_be_refused,
        } = with;
        let writes = writes.and_then(RwBuilder::into_writes);
        let (endpoint, message) = self.into_message(len).ok_or(EINVAL)?;
        endpoint.post_or_queue(Work::Message(Message {
            xid,
            invalidate,
            writes,
            provided: provided.as_mut().and_then(Providing::take),
            may_be_refused,
            ..message
        }))
    }

    /// Posts the registration of the mapped regions, if there are any, and the Send of the header
    /// and the `len` bytes that follow it, in one chain, for a task or none: there is room, since
    /// the buffer is there.
    ///
    /// After an error the connection must be dropped. The regions count as registered if it is
    /// unknown what was posted, and were given back if nothing was. `EINVAL` if they are another
    /// queue pair's.
    #[inline]
    pub(crate) fn post(
        self,
        len: usize,
        regions: Option<&mut Regions>,
        task: impl Fn() -> TaskId,
    ) -> Result {
        let (endpoint, message) = self.into_message(len).ok_or(EINVAL)?;
        match regions {
            Some(regions) => endpoint.post_with(regions, message, task),
            None => endpoint.lock().post_call(message, None, task),
        }
    }

    /// Returns the message of the header and the `len` bytes that follow it, and its endpoint.
    #[inline]
    fn into_message(mut self, len: usize) -> Option<(&'a Endpoint<H>, Message)> {
        let (header, direction) = self.header;
        let buffer = self.buffer.take()?;
        let message = Message::new(buffer, header.saturating_add(len), direction);
        let taken = (self.endpoint, message);
        // Nothing is left to drop.
        core::mem::forget(self);
        Some(taken)
    }

    /// Gives an unposted buffer back.
    #[cold]
    fn put_back(&mut self) {
        if let Some(buffer) = self.buffer.take() {
            self.endpoint.lock().put_buffer(buffer);
        }
    }
}

impl<H: Handler> Drop for SendBuffer<'_, H> {
    #[inline]
    fn drop(&mut self) {
        if self.buffer.is_some() {
            self.put_back();
        }
    }
}
