// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! RDMA Reads and Writes: those of a responder, and of a requester that pulls Replies.

use crate::{
    kapi::{
        ib::{
            Reading,
            RwCtx,
            TransferKind, //
        },
        page::TransferMemory,
        trace::CompletionId, //
    },
    transport::{
        endpoint::{
            Endpoint,
            Handler, //
        },
        memory_retry::MemoryRetry,
        trace,
        work::{
            Read,
            Writes, //
        },
    },
};
use kernel::prelude::*;
use xdr::{
    Role,
    Segment, //
};

/// A transfer that is not posted yet.
pub(crate) struct RwBuilder<'a, H: Handler> {
    pub(super) transfer: KBox<RwCtx>,
    number: u32,
    reply_chunk_from: usize,
    endpoint: &'a Endpoint<H>,
}

impl<H: Handler> Endpoint<H> {
    /// Creates a transfer between `memory` and at most `parts` segments of the peer. May sleep. At
    /// a requester allocation does not wait for memory: it pulls in handlers, and tasks that free
    /// memory wait for these.
    pub(crate) fn transfer(
        &self,
        kind: TransferKind,
        memory: impl Into<TransferMemory>,
        parts: usize,
    ) -> Result<RwBuilder<'_, H>> {
        let memory = memory.into();
        let elements = RwCtx::elements_for(&memory, parts);
        let flags = match H::ROLE {
            Role::Requester => GFP_NOWAIT,
            Role::Responder => GFP_KERNEL,
        };
        let transfer = self.alloc_rw_ctx(kind, memory, parts, flags);
        let transfer = transfer.inspect_err(|e| {
            if *e == ENOMEM {
                trace::no_transfer(H::ROLE, self.cqs().0, elements);
            }
        })?;
        let number = self.lock().next_id();
        Ok(RwBuilder {
            transfer,
            number,
            reply_chunk_from: usize::MAX,
            endpoint: self,
        })
    }

    /// Ends RDMA Reads, whose memory was unmapped.
    pub(super) fn end_read(&self, reading: Reading<Read<H::Cookie>>, ok: bool) {
        let id = CompletionId::new(self.cqs().0, reading.owned.number);
        trace::released(H::ROLE, id, &reading.transfer);
        self.give_back_reads(reading, ok);
    }
}

impl<H: Handler> RwBuilder<'_, H> {
    /// Begins the part of the transfer that is for the Reply chunk.
    pub(crate) fn begin_reply_chunk(&mut self) {
        self.reply_chunk_from = self.transfer.requests();
    }

    /// Adds `len` bytes of the memory, from `offset`, and as many at the front of the peer's
    /// segment. `EMSGSIZE` if there is no room for it, or too little memory; `EAGAIN` if the device
    /// needs regions for it, and all are in use. May sleep; at a responder also while memory is
    /// short for a moment.
    pub(crate) fn add(&mut self, mut offset: usize, mut len: usize, segment: &Segment) -> Result {
        let mut at = (segment.handle, segment.offset);
        let mut retry = MemoryRetry::of(H::ROLE);
        while len != 0 {
            let part = match self.add_part(offset, len, at) {
                Ok(part) => part,
                Err(e) => {
                    retry.wait(e)?;
                    continue;
                }
            };
            // The peer's addresses may wrap around.
            at.1 = at.1.wrapping_add(part as u64);
            offset += part;
            len -= part;
        }
        Ok(())
    }

    #[inline]
    fn add_part(&mut self, offset: usize, len: usize, at: (u32, u64)) -> Result<usize> {
        self.transfer.add(offset, len, at).map_err(|why| {
            trace::not_added(H::ROLE, self.endpoint.cqs().0, at, &why);
            why.error
        })
    }

    /// Returns whether there is nothing to post.
    pub(crate) fn is_empty(&self) -> bool {
        self.transfer.requests() == 0
    }

    /// Returns the number of pieces of memory that were added, each for one segment of the peer.
    pub(crate) fn pieces(&self) -> usize {
        self.transfer.pieces()
    }

    /// Takes the memory back.
    pub(crate) fn into_memory(self) -> TransferMemory {
        RwCtx::into_memory(self.transfer)
    }

    /// Posts the RDMA Reads, or lets them wait for room. [`Handler::read_ended`] brings the cookie
    /// and the memory back, unless this returns an error. A failure is reported with `xid`.
    pub(crate) fn read(self, xid: Option<u32>, cookie: H::Cookie) -> Result {
        let owned = Read {
            xid,
            cookie,
            number: self.number,
            posted: None,
        };
        let transfer = self.transfer;
        let mut reading = Some(Reading { transfer, owned });
        self.endpoint.post_or_queue(&mut reading)
    }

    /// Returns the RDMA Writes, if there are any.
    pub(super) fn into_writes(self) -> Option<Writes> {
        let Self {
            transfer,
            number,
            reply_chunk_from,
            ..
        } = self;
        // Without requests the memory is given back here, and not under the lock of the queue.
        (transfer.requests() != 0).then_some(Writes {
            transfer,
            number,
            reply_chunk_from,
        })
    }
}
