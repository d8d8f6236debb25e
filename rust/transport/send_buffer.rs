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

/// A buffer for one Send. Its memory stays mapped while the tear-down waits for it; it can be
/// posted as long as that has not begun.
pub(crate) struct SendBuffer<'a, H: Handler> {
    /// None at the end.
    buffer: Option<DmaBuffer>,
    /// Bytes of the header, and the direction of its message.
    header: (usize, Option<Direction>),
    endpoint: &'a Endpoint<H>,
}

/// What goes with a message that waits for its turn.
pub(crate) struct Attached<'a, H: Handler> {
    /// The XID of the RPC, to report a failure with.
    pub(crate) xid: Option<u32>,
    /// A key of the peer's that it invalidates.
    pub(crate) invalidate: Option<u32>,
    /// RDMA Writes in front of it.
    pub(crate) writes: Option<RwBuilder<'a, H>>,
    /// The Reply itself, if the peer is to pull it.
    pub(crate) provided: Option<Providing<'a, H>>,
    /// The peer may have no room for it.
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

/// What a buffer is for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// A Call, which leaves room for what comes back by itself, and goes behind it.
    Call,
    /// Another message. Like a Call it finds room at once where this is a requester.
    Message,
    /// A message that waits for room, from a handler: memory for it is not waited for.
    Queued,
    /// A message that finds room at once, from a handler: only what is in the pool will do.
    Pooled,
}

impl<H: Handler> Sending<'_, H> {
    /// Returns the room that there has to be.
    #[inline]
    fn room_for(&self, purpose: Purpose) -> u32 {
        match (H::ROLE, purpose) {
            // What a responder posts waits for room by itself.
            (Role::Responder, _) | (_, Purpose::Queued) => 0,
            (_, Purpose::Message | Purpose::Pooled) => self.longest_call,
            (_, Purpose::Call) if self.longest_read == 0 => self.longest_call,
            // What comes back by itself has room beside that, and for another Call: so it never
            // waits for a Reply.
            (_, Purpose::Call) => 2 * self.longest_call + self.longest_read,
        }
    }

    /// Takes a buffer. None where the caller is to make one, outside the lock.
    #[inline]
    pub(super) fn get_buffer(&mut self, purpose: Purpose) -> Result<Option<DmaBuffer>> {
        if !self.ring().is_open() {
            return Err(ENOTCONN);
        }
        // What waits may be the word to the server that has given back the Call's credit: that goes
        // first, though there may be room for the Call already.
        let behind = purpose == Purpose::Call && self.longest_read != 0 && self.has_pending();
        if behind || self.sq_avail() < self.room_for(purpose) as usize {
            return Err(EAGAIN);
        }
        if purpose == Purpose::Pooled {
            let buffer = self.buffers.pop().ok_or(EAGAIN)?;
            self.short = true;
            return Ok(Some(buffer));
        }
        // As long as more can be made, one stays back for when they cannot.
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
    /// `EAGAIN` when none can be had now: [`Handler::sq_space`] is called when that changes.
    /// `ENOTCONN` when the connection is going.
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

    /// Makes a buffer, since there was none. If it cannot be made, the one that stayed back.
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

    /// What its Send is called in trace events.
    pub(crate) fn id(&self) -> CompletionId {
        let number = self.buffer.as_ref().map_or(0, |buffer| buffer.id);
        CompletionId::new(self.endpoint.cqs().0, number)
    }

    /// Returns all bytes.
    #[inline]
    pub(super) fn bytes(&mut self) -> &mut [u8] {
        match &mut self.buffer {
            Some(buffer) => buffer.as_mut_slice(),
            None => &mut [],
        }
    }

    /// Covers pieces with one more region of `regions`, as many as fit, and says how a chunk of the
    /// message names it; as [`Endpoint::map`]. The poster is to stay until the message is posted.
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

    /// How a Write chunk of the message names room for `len` bytes of XDR padding, for a task. None
    /// if that was not provided, or is not needed.
    pub(crate) fn padding(&self, len: usize, task: impl Fn() -> TaskId) -> Option<Segment> {
        self.endpoint.padding(len, task)
    }

    /// Posts the Send of the header and the `len` bytes that follow it, behind what goes with it,
    /// in one chain. It waits for its turn without the caller. A failure is reported with the XID.
    ///
    /// `EMSGSIZE` if that is more than the send queue ever holds, `ENOTCONN` when the connection is
    /// going. If the device refuses it, [`Handler::failed`] is called.
    #[inline]
    pub(crate) fn send(self, len: usize, with: Attached<'_, H>) -> Result {
        let Attached {
            xid,
            invalidate,
            writes,
            // Its poster stays until this returns: the tear-down waits for what is mapped.
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
    /// After an error the connection must be dropped. The regions count as registered where nobody
    /// knows what was posted, and were given back where nothing was. `EINVAL` if they are another
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

    /// Returns the message of the header and the `len` bytes that follow it, and whose it is.
    #[inline]
    fn into_message(mut self, len: usize) -> Option<(&'a Endpoint<H>, Message)> {
        let (header, direction) = self.header;
        let buffer = self.buffer.take()?;
        let message = Message::new(buffer, header.saturating_add(len), direction);
        let taken = (self.endpoint, message);
        // Nothing is left in it.
        core::mem::forget(self);
        Some(taken)
    }

    /// It was not posted.
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
