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
        continued::Fragment,
        endpoint::{
            Endpoint,
            Handler,
            Sending, //
        },
        flow::charge::Charge,
        provided::Provided,
        providing::Providing,
        transfer::RwBuilder,
        work::Message, //
    },
};
use kernel::{
    dma::DataDirection,
    prelude::*, //
};
use xdr::{
    Direction,
    Role,
    Segment,
    Version, //
};

/// A message that is being made, with a buffer for its Send and the work that goes with it, which
/// may wait for its turn. The tear-down waits for the buffer before it unmaps its memory; it can be
/// posted until the tear-down has begun.
pub(crate) struct SendBuffer<'a, H: Handler> {
    pub(super) message: Message,
    /// Keeps the tear-down from deregistering the regions of a provided Reply before they are
    /// posted, wait for their turn, or are given back.
    poster: Option<Poster<'a>>,
    endpoint: &'a Endpoint<H>,
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
}

impl<H: Handler> Sending<'_, H> {
    /// Returns the number of slots that have to be free.
    #[inline]
    fn room_for(&self, purpose: Purpose) -> u32 {
        match (H::ROLE, purpose) {
            // Posts of a responder wait for room in the queue.
            (Role::Responder, _) | (_, Purpose::Queued) => 0,
            (_, Purpose::Message) => self.longest_call,
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
        let pooled = self.lock().get_buffer(purpose)?;
        let make = || {
            self.make_send_buffer(match purpose {
                Purpose::Queued => Maker::Handler,
                Purpose::Call | Purpose::Message => Maker::Task,
            })
        };
        let buffer = pooled.map_or_else(make, Ok)?;
        Ok(SendBuffer {
            message: Message {
                buffer: Some(buffer),
                ..Message::default()
            },
            poster: None,
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
    /// Returns its endpoint.
    pub(super) fn endpoint(&self) -> &'a Endpoint<H> {
        self.endpoint
    }

    /// Returns the room behind the header.
    pub(super) fn room(&mut self) -> &mut [u8] {
        let header = self.message.len;
        self.bytes().get_mut(header..).unwrap_or(&mut [])
    }

    /// Makes it a fragment in front of another message, of `len` bytes behind its header.
    pub(super) fn into_fragment(mut self, len: usize) -> Option<Fragment> {
        self.end(len).ok()?;
        let buffer = self.message.buffer.take()?;
        Some((buffer, self.message.len))
    }

    /// Notes that a header of `len` bytes was written, of a message that uses credits so.
    pub(super) fn begin(&mut self, charge: Charge, len: usize) {
        self.message.len = len;
        self.message.charge = Some(charge);
    }

    /// Returns the version of its header.
    #[inline]
    pub(super) fn version(&self) -> Version {
        self.endpoint.version()
    }

    /// Returns the length of a header without chunks.
    pub(crate) fn plain_size(&self, direction: Direction) -> usize {
        self.version().plain_size(direction)
    }

    /// Sets the task that the message is for, in trace events.
    pub(crate) fn set_task(&mut self, task: TaskId) {
        self.message.task = Some(task);
    }

    /// Returns the length of the header.
    pub(crate) fn header_len(&self) -> usize {
        self.message.len
    }

    /// Returns the name of its Send in trace events.
    pub(crate) fn id(&self) -> CompletionId {
        CompletionId::new(self.endpoint.cqs().0, self.message.number())
    }

    /// Returns all bytes of the buffer.
    #[inline]
    pub(super) fn bytes(&mut self) -> &mut [u8] {
        match &mut self.message.buffer {
            Some(buffer) => buffer.as_mut_slice(),
            None => &mut [],
        }
    }

    /// Sets the XID of the RPC, for the report of a failure.
    pub(crate) fn set_xid(&mut self, xid: u32) {
        self.message.xid = Some(xid);
    }

    /// Sets the key of the peer's that the Send invalidates, if there is one.
    pub(crate) fn invalidate(&mut self, key: Option<u32>) {
        self.message.invalidate = key;
    }

    /// Puts RDMA Writes in front of the Send.
    pub(crate) fn write(&mut self, transfer: RwBuilder<'a, H>) {
        self.message.writes = transfer.into_writes();
    }

    /// Returns the number of pieces of memory that are written in front of the Send.
    pub(crate) fn written_pieces(&self) -> usize {
        let writes = self.message.writes.as_ref();
        writes.map_or(0, |writes| writes.transfer.pieces())
    }

    /// Makes it the message of a Reply that the peer is to pull. `ENOTCONN` when the connection
    /// ends.
    pub(crate) fn provide(&mut self, mut reply: Providing<'a, H>) -> Result {
        self.poster = Some(self.endpoint.enter()?);
        self.message.provided = reply.take();
        Ok(())
    }

    /// Returns the Reply that the peer is to pull, if there is one.
    pub(crate) fn provided(&self) -> Option<&Provided> {
        self.message.provided.as_deref()
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

    /// Posts the Send of the header and the `len` bytes that follow it, behind the work with it, in
    /// one chain, once. It waits for its turn without the caller.
    ///
    /// `EMSGSIZE` if that is more than the send queue ever holds, `ENOTCONN` when the connection
    /// ends, `EINVAL` if it was posted before, or has failed to be. If the device refuses it,
    /// [`Handler::failed`] is called.
    #[inline]
    pub(crate) fn send(&mut self, len: usize) -> Result {
        self.end(len)?;
        let sent = self.endpoint.post_or_queue(&mut self.message);
        sent.inspect_err(|_| self.give_back())
    }

    /// Posts the registration of the mapped regions, if there are any, and the Send of the header
    /// and the `len` bytes that follow it, in one chain, once, for a task or none: there is room,
    /// since the buffer is there.
    ///
    /// After an error the connection must be dropped. The regions count as registered if it is
    /// unknown what was posted, and were given back if nothing was. `EINVAL` if they are another
    /// queue pair's, or as [`Self::send`].
    #[inline]
    pub(crate) fn post(
        &mut self,
        len: usize,
        regions: Option<&mut Regions>,
        task: impl Fn() -> TaskId,
    ) -> Result {
        self.end(len)?;
        let (endpoint, message) = (self.endpoint, &mut self.message);
        let posted = match regions {
            Some(regions) => endpoint.post_with(regions, message, task),
            None => endpoint.lock().post_call(message, None, task),
        };
        posted.inspect_err(|_| self.give_back())
    }

    /// Notes that `len` bytes follow the header.
    #[inline]
    fn end(&mut self, len: usize) -> Result {
        let buffer = self.message.buffer.as_ref().ok_or(EINVAL)?;
        let all = self.message.len.saturating_add(len);
        self.message.len = all.min(buffer.len());
        Ok(())
    }

    /// Gives back what was not posted.
    #[cold]
    fn give_back(&mut self) {
        self.endpoint.not_posted(core::mem::take(&mut self.message));
    }
}

impl<H: Handler> Drop for SendBuffer<'_, H> {
    #[inline]
    fn drop(&mut self) {
        if !self.message.is_posted() {
            self.give_back();
        }
    }
}
