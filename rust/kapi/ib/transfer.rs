// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! RDMA Reads and Writes of a responder, until they are posted.

#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
mod tests;

use crate::kapi::{
    ib::{
        handler::Handler,
        queue_pair::QueuePair,
        ring::Reading,
        rw::{
            Fetched,
            RwCtx,
            TransferKind, //
        },
        send_buffer::Poster,
        send_queue::{
            Read,
            Work, //
        },
    },
    page::Gathered, //
};
use kernel::{
    prelude::*,
    sync::MutexGuard, //
};
use xdr::Segment;

/// A transfer that is not posted yet.
pub(crate) struct NewTransfer<'a, H: Handler> {
    transfer: KBox<RwCtx>,
    // The queue pair stays as long as this, which goes after the transfer.
    poster: Poster<'a, H>,
    /// The turn to take regions, if the core takes some for all transfers.
    turn: Option<MutexGuard<'a, ()>>,
}

impl<'a, H: Handler> NewTransfer<'a, H> {
    /// For `parts` calls of [`Self::add`]. May sleep.
    pub(super) fn new(
        owner: &'a QueuePair<H>,
        kind: TransferKind,
        memory: Gathered,
        parts: usize,
    ) -> Result<Self> {
        if kind == TransferKind::Read && !memory.is_writable() {
            return Err(EINVAL);
        }
        // The queue pair stays as long as the poster has not left.
        let (poster, id, target) = Poster::enter_for_transfer(owner)?;
        let forced = owner.forced();
        // SAFETY: The queue pair is valid: its owner's `Poster` is held, and outlives the transfer.
        let transfer = unsafe { RwCtx::new(target, kind, memory, parts, id, forced.cloned())? };
        let turn = forced.map(|forced| forced.take_turn());
        Ok(Self {
            transfer,
            poster,
            turn,
        })
    }

    /// What is added from here on is for the Reply chunk.
    pub(crate) fn begin_reply_chunk(&mut self) {
        self.transfer.begin_reply_chunk();
    }

    /// Adds `len` bytes of the memory, from `offset`, and as many at the front of the peer's
    /// segment. `EMSGSIZE` when there is no room for it, or not so much memory; `EAGAIN` when the
    /// device needs regions for it, and all are in use. May sleep.
    pub(crate) fn add(&mut self, mut offset: usize, mut len: usize, segment: &Segment) -> Result {
        let mut segment = *segment;
        while len != 0 {
            let part = match self.turn {
                None => {
                    let at_peer = (segment.handle, segment.offset);
                    self.transfer.add(offset, len, at_peer)?
                }
                Some(_) => self.add_when_free(offset, len, &segment)?,
            };
            // The peer's addresses may end anywhere.
            segment.offset = segment.offset.wrapping_add(part as u64);
            offset += part;
            len -= part;
        }
        Ok(())
    }

    /// As [`RwCtx::add`], but waits where regions are short until others have come back. `EMSGSIZE`
    /// if there will never be enough, `ENOTCONN` when the connection is going.
    #[cold]
    fn add_when_free(&mut self, offset: usize, len: usize, segment: &Segment) -> Result<usize> {
        let owner = self.poster.owner();
        let forced = owner.forced().ok_or(EINVAL)?;
        loop {
            forced.begin();
            if owner.is_ending() {
                return Err(ENOTCONN);
            }
            // Nobody takes any but whose turn it is.
            let alone = self.transfer.is_only_user();
            match self
                .transfer
                .add(offset, len, (segment.handle, segment.offset))
            {
                Err(e) if e == EAGAIN && alone => return Err(EMSGSIZE),
                Err(e) if e == EAGAIN => forced.wait(),
                other => return other,
            }
        }
    }

    /// Whether there is nothing to post.
    pub(crate) fn is_empty(&self) -> bool {
        self.transfer.requests() == 0
    }

    /// How many pieces of memory were added, each for one segment of the peer.
    pub(crate) fn pieces(&self) -> usize {
        self.transfer.pieces()
    }

    /// Takes the memory back.
    pub(crate) fn into_fetched(self) -> Fetched {
        RwCtx::into_fetched(self.transfer)
    }

    /// Posts the RDMA Reads, or lets them wait for room. [`Handler::read_ended`] brings the cookie
    /// and the memory back, unless this returns an error. A failure is reported with `tag`.
    pub(crate) fn read(self, tag: Option<u32>, cookie: H::Cookie) -> Result {
        let Self {
            transfer, poster, ..
        } = self;
        let owned = Read { tag, cookie };
        let read = Reading { transfer, owned };
        QueuePair::submit(poster, Work::Read(read))
    }

    /// The transfer, if it is for that queue pair.
    pub(super) fn into_transfer(self, owner: &QueuePair<H>) -> Result<KBox<RwCtx>> {
        if core::ptr::eq(self.poster.owner(), owner) {
            Ok(self.transfer)
        } else {
            Err(EINVAL)
        }
    }
}
