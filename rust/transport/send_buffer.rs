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
    Role,
    Segment, //
};

/// A buffer for one Send. Its memory stays mapped while the tear-down waits for it; it can be
/// posted as long as that has not begun.
pub(crate) struct SendBuffer<'a, H: Handler> {
    /// None at the end.
    buffer: Option<DmaBuffer>,
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

impl<H: Handler> Sending<'_, H> {
    /// Takes a buffer for a Call, if there is one and room for the longest. What comes back by
    /// itself has room beside that, and for another Call: so it never waits for a Reply.
    #[inline(always)]
    pub(super) fn get_call_buffer(&mut self) -> Result<Option<DmaBuffer>> {
        let beside = match self.longest_read {
            0 => 0,
            // It may be the word to the server that has given back the Call's credit: that goes
            // first, though there may be room for the Call already.
            _ if self.has_pending() && self.ring().is_open() => return Err(EAGAIN),
            longest => longest + self.longest_call,
        };
        self.get_buffer_beside(beside)
    }

    /// Takes a buffer for another Send, if there is one and room that is not a Call's.
    #[inline(always)]
    pub(super) fn get_buffer(&mut self) -> Result<Option<DmaBuffer>> {
        self.get_buffer_beside(0)
    }

    #[inline(always)]
    fn get_buffer_beside(&mut self, beside: u32) -> Result<Option<DmaBuffer>> {
        if !self.ring().is_open() {
            return Err(ENOTCONN);
        }
        // What a responder posts waits for room by itself.
        let room = (self.longest_call + beside) as usize;
        if H::ROLE == Role::Requester && self.sq_avail() < room {
            return Err(EAGAIN);
        }
        self.take_buffer()
    }

    /// Takes a buffer for a Send that waits for room by itself.
    #[inline(always)]
    pub(super) fn take_buffer(&mut self) -> Result<Option<DmaBuffer>> {
        if !self.ring().is_open() {
            return Err(ENOTCONN);
        }
        // As long as more can be made, one stays back for when they cannot.
        let back = usize::from(self.made < self.limit);
        if self.buffers.len() > back {
            return Ok(self.buffers.pop());
        }
        if self.made == self.limit {
            return Err(EAGAIN);
        }
        // The caller makes one, outside the lock.
        self.made += 1;
        Ok(None)
    }

    /// Takes a buffer of the pool, if there is one and room for a Send.
    pub(super) fn get_pooled(&mut self) -> Option<DmaBuffer> {
        if !self.ring().is_open() || self.sq_avail() < self.longest_call as usize {
            return None;
        }
        let buffer = self.buffers.pop()?;
        self.short = true;
        Some(buffer)
    }
}

impl<H: Handler> Endpoint<H> {
    /// Takes a buffer to send from. May sleep to make one.
    ///
    /// `EAGAIN` when none can be had now: [`Handler::sq_space`] is called when that changes.
    /// `ENOTCONN` when the connection is going.
    #[inline(always)]
    pub(crate) fn send_buffer(&self) -> Result<SendBuffer<'_, H>> {
        let buffer = self.lock().get_buffer()?;
        self.given_or_made(buffer, Maker::Task)
    }

    /// The same for a Call, which leaves room for what comes back by itself.
    #[inline(always)]
    pub(crate) fn call_buffer(&self) -> Result<SendBuffer<'_, H>> {
        let buffer = self.lock().get_call_buffer()?;
        self.given_or_made(buffer, Maker::Task)
    }

    /// Takes a buffer to send from by [`SendBuffer::send`], which waits for room by itself. Does
    /// not wait for memory to make one; errors as those of [`Self::send_buffer`].
    pub(crate) fn unrestricted_send_buffer(&self) -> Result<SendBuffer<'_, H>> {
        let buffer = self.lock().take_buffer()?;
        self.given_or_made(buffer, Maker::Handler)
    }

    #[inline(always)]
    fn given_or_made(&self, buffer: Option<DmaBuffer>, maker: Maker) -> Result<SendBuffer<'_, H>> {
        let buffer = match buffer {
            Some(buffer) => buffer,
            None => self.make_send_buffer(maker)?,
        };
        Ok(SendBuffer {
            buffer: Some(buffer),
            endpoint: self,
        })
    }

    /// Takes a buffer to send from, if one can be had without sleeping.
    pub(crate) fn pooled_send_buffer(&self) -> Option<SendBuffer<'_, H>> {
        let buffer = self.lock().get_pooled()?;
        Some(SendBuffer {
            buffer: Some(buffer),
            endpoint: self,
        })
    }

    /// Makes a buffer, since there was none. If it cannot be made, the one that stayed back.
    #[cold]
    fn make_send_buffer(&self, maker: Maker) -> Result<DmaBuffer> {
        let _scope = self.handler().memory_scope();
        let size = self.config().send_size;
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
    /// What its Send is called in trace events.
    pub(crate) fn id(&self) -> CompletionId {
        let number = self.buffer.as_ref().map_or(0, |buffer| buffer.id);
        CompletionId::new(self.endpoint.cqs().0, number)
    }

    /// The bytes to fill.
    #[inline(always)]
    pub(crate) fn bytes(&mut self) -> &mut [u8] {
        match &mut self.buffer {
            Some(buffer) => buffer.as_mut_slice(),
            None => &mut [],
        }
    }

    /// Covers pieces with one more region of `regions`, as many as fit, and says how a chunk of the
    /// message names it; as [`Endpoint::map`]. The poster is to stay until the message is posted.
    #[inline(always)]
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

    /// Posts the Send of the first `len` bytes, behind what goes with it, in one chain. It waits
    /// for its turn without the caller. A failure is reported with the XID.
    ///
    /// `EMSGSIZE` if that is more than the send queue ever holds, `ENOTCONN` when the connection is
    /// going. If the device refuses it, [`Handler::failed`] is called.
    #[inline(always)]
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
        let (endpoint, buffer) = self.take().ok_or(EINVAL)?;
        endpoint.post_or_queue(Work::Message(Message {
            xid,
            invalidate,
            writes,
            provided: provided.as_mut().and_then(Providing::take),
            may_be_refused,
            ..Message::new(buffer, len)
        }))
    }

    /// Posts the registration of the mapped regions, if there are any, and the Send of the first
    /// `len` bytes, in one chain, for a task or none: there is room, since the buffer is there.
    ///
    /// After an error the connection must be dropped. The regions count as registered where nobody
    /// knows what was posted, and were given back where nothing was. `EINVAL` if they are another
    /// queue pair's.
    #[inline(always)]
    pub(crate) fn post(
        self,
        len: usize,
        regions: Option<&mut Regions>,
        task: impl Fn() -> TaskId,
    ) -> Result {
        let (endpoint, buffer) = self.take().ok_or(EINVAL)?;
        let message = Message::new(buffer, len);
        match regions {
            Some(regions) => endpoint.post_with(regions, message, task),
            None => endpoint.lock().post_call(message, None, task),
        }
    }

    /// The buffer, and whose it is.
    #[inline(always)]
    fn take(mut self) -> Option<(&'a Endpoint<H>, DmaBuffer)> {
        let taken = (self.endpoint, self.buffer.take()?);
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
