// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Buffers that are filled and sent, and those whom the tear-down waits for.

use super::super::sys::trace::{
    CompletionId,
    TaskId, //
};
use super::{
    buffer::DmaBuffer,
    handler::Handler,
    queue_pair::QueuePair,
    region::{
        Armed,
        Region, //
    },
    send_queue::{
        Reply,
        SendQueue,
        Target,
        Work, //
    },
    transfer::NewTransfer, //
};
use kernel::prelude::*;

/// Somebody whom tear-down waits for.
///
/// # Invariants
///
/// It is counted in `lent` of the queue pair's send queue.
pub(super) struct Poster<'a, H: Handler>(&'a QueuePair<H>);

impl<'a, H: Handler> Poster<'a, H> {
    /// `ENOTCONN` when the connection is being torn down.
    pub(super) fn enter(qp: &'a QueuePair<H>) -> Result<Self> {
        qp.send.lock().enter()?;
        // INVARIANT: Counted above.
        Ok(Self(qp))
    }

    /// As [`Self::enter`], for a transfer: with a name for it in trace events, and where it is to be
    /// posted. The queue pair is valid as long as the poster has not left.
    pub(super) fn enter_for_transfer(qp: &'a QueuePair<H>) -> Result<(Self, CompletionId, Target)> {
        let mut queue = qp.send.lock();
        queue.enter()?;
        // INVARIANT: Counted above.
        Ok((Self(qp), queue.next_id(), queue.target()))
    }

    /// Makes a buffer, since there was none. If it cannot be made, the one that stayed back.
    #[cold]
    fn make_buffer(&self) -> Result<DmaBuffer> {
        self.0
            .make_send_buffer()
            .or_else(|e| self.0.send.lock().not_made().ok_or(e))
    }

    /// The queue pair.
    pub(super) fn owner(&self) -> &'a QueuePair<H> {
        self.0
    }

    /// Posts, and leaves under the same lock. After an error the poster has not left.
    #[inline(always)]
    pub(super) fn post<R, E>(
        self,
        post: impl FnOnce(&mut SendQueue<H::Cookie>) -> Result<R, E>,
    ) -> Result<R, (E, Self)> {
        let qp = self.0;
        let mut queue = qp.send.lock();
        match post(&mut queue) {
            Ok(posted) => {
                core::mem::forget(self);
                let last = queue.leave();
                drop(queue);
                qp.poster_left(last);
                Ok(posted)
            }
            Err(e) => {
                drop(queue);
                Err((e, self))
            }
        }
    }
}

impl<H: Handler> Drop for Poster<'_, H> {
    fn drop(&mut self) {
        let last = self.0.send.lock().leave();
        self.0.poster_left(last);
    }
}

/// A buffer for one Send, and the right to post it: tear-down waits until it is posted or dropped.
pub(crate) struct SendBuffer<'a, H: Handler> {
    buffer: Option<DmaBuffer>,
    /// None once it is posted. Goes after the buffer: then the tear-down takes the pool.
    poster: Option<Poster<'a, H>>,
}

impl<'a, H: Handler> SendBuffer<'a, H> {
    /// Takes a buffer. May sleep to allocate one.
    ///
    /// `ENOTCONN` when the connection is being torn down, `EAGAIN` when all are in use: then
    /// [`Handler::send_space`] will be called.
    #[inline(always)]
    pub(super) fn take(qp: &'a QueuePair<H>) -> Result<Self> {
        let buffer = qp.send.lock().take_buffer()?;
        // INVARIANT: Counted by the call above.
        let poster = Poster(qp);
        let buffer = match buffer {
            Some(buffer) => buffer,
            None => poster.make_buffer()?,
        };
        Ok(Self {
            buffer: Some(buffer),
            poster: Some(poster),
        })
    }

    /// Takes a buffer that is there already, if any. Does not sleep.
    pub(super) fn take_pooled(qp: &'a QueuePair<H>) -> Option<Self> {
        let buffer = qp.send.lock().take_pooled()?;
        // INVARIANT: Counted by the call above.
        Some(Self {
            buffer: Some(buffer),
            poster: Some(Poster(qp)),
        })
    }

    /// What its Send is called in trace events.
    pub(crate) fn id(&self) -> CompletionId {
        self.buffer
            .as_ref()
            .map(|buffer| buffer.id)
            .unwrap_or_default()
    }

    /// The bytes to fill.
    pub(crate) fn bytes(&mut self) -> &mut [u8] {
        match &mut self.buffer {
            Some(buffer) => buffer.as_mut_slice(),
            None => &mut [],
        }
    }

    /// Posts RDMA Writes and the Send of the first `len` bytes in one chain, or lets them wait for
    /// room. `invalidate` is a key of the peer's. A failure is reported with `tag`.
    #[inline(always)]
    pub(super) fn reply(
        self,
        len: usize,
        tag: Option<u32>,
        invalidate: Option<u32>,
        transfer: Option<NewTransfer<'_, H>>,
    ) -> Result {
        let owner = self.poster.as_ref().ok_or(EINVAL)?.0;
        let transfer = match transfer {
            Some(transfer) => Some(transfer.into_transfer(owner)?),
            None => None,
        };
        let (buffer, poster) = self.into_parts()?;
        let len = len.min(buffer.len());
        let reply = Reply {
            buffer,
            len,
            invalidate,
            transfer,
            tag,
        };
        QueuePair::submit(poster, Work::Reply(reply))
    }

    /// Posts registrations and the Send of the first `len` bytes, for a task or none.
    pub(super) fn post(
        self,
        armed: &[Region<Armed>],
        len: usize,
        task: impl Fn() -> TaskId,
    ) -> Result {
        let (buffer, poster) = self.into_parts()?;
        let len = len.min(buffer.len());
        let posted = poster.post(|queue| queue.post_send(armed, buffer, len, task));
        posted.map_err(|(e, _)| e)
    }

    #[inline(always)]
    fn into_parts(mut self) -> Result<(DmaBuffer, Poster<'a, H>)> {
        let parts = self.take_parts();
        // Nothing is left in it.
        core::mem::forget(self);
        parts
    }

    #[inline(always)]
    fn take_parts(&mut self) -> Result<(DmaBuffer, Poster<'a, H>)> {
        let (buffer, poster) = (self.buffer.take(), self.poster.take());
        Ok((buffer.ok_or(EINVAL)?, poster.ok_or(EINVAL)?))
    }
}

impl<H: Handler> Drop for SendBuffer<'_, H> {
    fn drop(&mut self) {
        if let Ok((buffer, poster)) = self.take_parts() {
            let Ok(()) = poster.post(|queue| {
                queue.give_back_buffer(buffer);
                Ok::<(), core::convert::Infallible>(())
            });
        }
    }
}
