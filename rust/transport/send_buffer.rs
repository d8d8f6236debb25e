// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Buffers that are filled and sent.

use crate::{
    kapi::{
        ib::{
            Access,
            Direction,
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
            Handler, //
        },
        providing::Providing,
        send_queue::{
            ProvidedReply,
            Reply, //
        },
        transfer::RwBuilder, //
    },
};
use kernel::prelude::*;
use xdr::Segment;

/// A buffer for one Send. Its memory stays mapped while the tear-down waits for it; it can be
/// posted as long as that has not begun.
pub(crate) struct SendBuffer<'a, H: Handler> {
    /// None at the end.
    buffer: Option<DmaBuffer>,
    endpoint: &'a Endpoint<H>,
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

    /// Takes a buffer to send from by [`SendBuffer::reply`], which waits for room by itself. Does
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
            .and_then(|poster| self.make_buffer(&poster, size, Direction::ToDevice, maker));
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

    /// Posts RDMA Writes, if any, and the Send of the first `len` bytes in one chain; it waits for
    /// room if there is none, without the caller. `invalidate` is a key of the peer's. A failure is
    /// reported with `xid`.
    ///
    /// `EMSGSIZE` if that is more than the send queue ever holds, `ENOTCONN` when the connection is
    /// going. If the device refuses it, [`Handler::failed`] is called.
    #[inline(always)]
    pub(crate) fn reply(
        self,
        len: usize,
        xid: Option<u32>,
        invalidate: Option<u32>,
        transfer: Option<RwBuilder<'_, H>>,
        may_be_refused: bool,
    ) -> Result {
        let writes = transfer.and_then(RwBuilder::into_writes);
        let (endpoint, buffer) = self.take().ok_or(EINVAL)?;
        let len = len.min(buffer.len());
        let reply = Reply {
            buffer,
            len,
            invalidate,
            writes,
            xid,
            may_be_refused,
        };
        endpoint.post_or_queue(reply)
    }

    /// As [`Self::reply`], with the registrations of what is provided in front of the Send.
    #[cold]
    pub(crate) fn provide(
        self,
        len: usize,
        xid: Option<u32>,
        invalidate: Option<u32>,
        transfer: Option<RwBuilder<'_, H>>,
        mut provided: Providing<'_, H>,
    ) -> Result {
        let writes = transfer.and_then(RwBuilder::into_writes);
        let (endpoint, buffer) = self.take().ok_or(EINVAL)?;
        let Some(provided) = provided.take() else {
            endpoint.lock().put_buffer(buffer);
            return Err(EINVAL);
        };
        let len = len.min(buffer.len());
        let message = Reply {
            buffer,
            len,
            invalidate,
            writes,
            xid,
            may_be_refused: false,
        };
        endpoint.post_or_queue(ProvidedReply { message, provided })
    }

    /// Posts the registration of the mapped regions and the Send of the first `len` bytes, in one
    /// chain, for a task.
    ///
    /// After an error the connection must be dropped. The regions count as registered where nobody
    /// knows what was posted, and were given back where nothing was. `EINVAL` if they are another
    /// queue pair's.
    #[inline]
    pub(crate) fn post(
        self,
        len: usize,
        regions: &mut Regions,
        task: impl Fn() -> TaskId,
    ) -> Result {
        let (endpoint, buffer) = self.take().ok_or(EINVAL)?;
        let len = len.min(buffer.len());
        endpoint.post_with(regions, (buffer, len), task)
    }

    /// Posts the Send of the first `len` bytes alone, for a task or none. After an error the
    /// connection must be dropped.
    #[inline(always)]
    pub(crate) fn post_message(self, len: usize, task: impl Fn() -> TaskId) -> Result {
        let (endpoint, buffer) = self.take().ok_or(EINVAL)?;
        let len = len.min(buffer.len());
        endpoint.lock().post_send(None, (buffer, len), task)
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
