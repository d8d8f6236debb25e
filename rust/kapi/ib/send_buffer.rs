// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Buffers that are filled and sent, and those whom the tear-down waits for.

use crate::kapi::{
    ib::{
        buffer::DmaBuffer,
        handler::Handler,
        mr::{
            Access,
            RemoteKey, //
        },
        qp::Target,
        queue_pair::QueuePair,
        region::{
            Mapped,
            Region, //
        },
        regions::Regions,
        send_queue::{
            Reply,
            SendQueue,
            Work, //
        },
        trace::not_mapped,
        transfer::NewTransfer, //
    },
    page::Pieces,
    trace::{
        self,
        CompletionId,
        TaskId, //
    },
};
use kernel::prelude::*;
use xdr::Segment;

/// How a chunk names what a region covers.
pub(super) fn segment(key: RemoteKey) -> Segment {
    Segment {
        handle: key.rkey,
        length: key.length,
        offset: key.iova,
    }
}

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
        let number = queue.next_id();
        Ok((Self(qp), queue.id_of(number), queue.ring.target()))
    }

    /// Makes a buffer, since there was none. If it cannot be made, the one that stayed back.
    #[cold]
    fn make_buffer(&self) -> Result<DmaBuffer> {
        self.0
            .make_send_buffer()
            .or_else(|e| self.0.send.lock().not_made().ok_or(e))
    }

    /// As [`SendBuffer::map`].
    #[inline(always)]
    pub(super) fn map(
        &self,
        regions: &mut Regions,
        pieces: &mut Pieces<'_>,
        access: Access,
        tag: u32,
        task: impl Fn() -> TaskId,
    ) -> Result<Segment> {
        let config = self.0.config();
        regions.belong_to(self.0.number)?;
        // They have to fit into one post.
        if regions.count() >= config.regions_per_call as usize {
            return Err(EMSGSIZE);
        }
        if regions.room() == 0 {
            return Err(ENOBUFS);
        }
        let region = self.0.send.lock().take_region().ok_or(EAGAIN)?;
        // SAFETY: The tear-down deregisters the regions of its queue pair after all posters have left, and
        // this one is still there.
        match unsafe { region.map(pieces, config.sg_gaps, access, tag) } {
            Ok(mapped) => {
                trace::xprtrdma_mr_map(|| (task(), mapped.covered().into()));
                let segment = segment(mapped.key());
                // There is room, by the check above.
                let _ = regions.mapped.push_within_capacity(mapped);
                Ok(segment)
            }
            Err((why, region)) => {
                not_mapped(&why);
                self.0.send.lock().give_back_region(region, false);
                Err(why.error)
            }
        }
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

    /// What its Send is called in trace events. Takes the lock of the send queue.
    pub(crate) fn id(&self) -> CompletionId {
        match (&self.buffer, &self.poster) {
            (Some(buffer), Some(poster)) => poster.owner().send.lock().id_of(buffer.id),
            _ => CompletionId::default(),
        }
    }

    /// The bytes to fill.
    pub(crate) fn bytes(&mut self) -> &mut [u8] {
        match &mut self.buffer {
            Some(buffer) => buffer.as_mut_slice(),
            None => &mut [],
        }
    }

    /// Covers pieces with one more region of `regions`, as many as fit, and says how a chunk of the
    /// message names it. May sleep.
    ///
    /// `tag` goes into the upper half of the peer's address. `EINVAL` if there are regions of another
    /// queue pair, `EAGAIN` when no region is idle,
    /// `EMSGSIZE` when the RPC may have no more, `ENOBUFS` when `regions` has no room for it or the
    /// memory cannot be mapped now, `EIO` when the device refuses it. `task` is that of the RPC.
    #[inline(always)]
    pub(crate) fn map(
        &self,
        regions: &mut Regions,
        pieces: &mut Pieces<'_>,
        access: Access,
        tag: u32,
        task: impl Fn() -> TaskId,
    ) -> Result<Segment> {
        let poster = self.poster.as_ref().ok_or(EINVAL)?;
        poster.map(regions, pieces, access, tag, task)
    }

    /// How a Write chunk of the message names room for `len` bytes of XDR padding, for a task. None if
    /// that was not provided, or is not needed.
    pub(crate) fn padding(&self, len: usize, task: impl Fn() -> TaskId) -> Option<Segment> {
        let poster = self.poster.as_ref().filter(|_| len != 0)?;
        poster.owner().padding(len, task)
    }

    /// Posts RDMA Writes, if any, and the Send of the first `len` bytes in one chain; it waits for room
    /// if there is none, without the caller. `invalidate` is a key of the peer's. A failure is reported
    /// with `tag`.
    ///
    /// `EMSGSIZE` if that is more than the send queue ever holds, `ENOTCONN` when the connection is
    /// going. If the device refuses it, [`Handler::failed`] is called.
    #[inline(always)]
    pub(crate) fn reply(
        self,
        len: usize,
        tag: Option<u32>,
        invalidate: Option<u32>,
        transfer: Option<NewTransfer<'_, H>>,
        may_be_refused: bool,
    ) -> Result {
        let owner = self.poster.as_ref().ok_or(EINVAL)?.0;
        let transfer = match transfer {
            Some(transfer) => Some(transfer.into_transfer(owner)?),
            None => None,
        };
        // One without requests gives its memory back here, and not under the lock of the queue.
        let transfer = transfer.filter(|transfer| transfer.requests() != 0);
        let (buffer, poster) = self.into_parts()?;
        let len = len.min(buffer.len());
        let reply = Reply {
            buffer,
            len,
            invalidate,
            transfer,
            tag,
            may_be_refused,
        };
        QueuePair::submit(poster, Work::Reply(reply))
    }

    /// Posts the registration of the mapped regions and the Send of the first `len` bytes, in one
    /// chain, for a task.
    ///
    /// The regions count as registered even after an error, when nobody knows what was posted: then
    /// the connection must be dropped. `EINVAL` if they are another queue pair's, and stay as they are.
    pub(crate) fn post(
        self,
        len: usize,
        regions: &mut Regions,
        task: impl Fn() -> TaskId,
    ) -> Result {
        let poster = self.poster.as_ref().ok_or(EINVAL)?;
        if !regions.mapped.is_empty() && !regions.are_of(poster.0) {
            return Err(EINVAL);
        }
        let result = self.send(&regions.mapped, len, task);
        regions.posted();
        result
    }

    /// Posts the Send of the first `len` bytes alone, for a task or none. After an error the
    /// connection must be dropped.
    pub(crate) fn post_message(self, len: usize, task: impl Fn() -> TaskId) -> Result {
        self.send(&[], len, task)
    }

    fn send(self, mapped: &[Region<Mapped>], len: usize, task: impl Fn() -> TaskId) -> Result {
        let (buffer, poster) = self.into_parts()?;
        let len = len.min(buffer.len());
        let posted = poster.post(|queue| queue.post_send(mapped, buffer, len, task));
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
