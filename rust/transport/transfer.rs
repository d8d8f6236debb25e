// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! RDMA Reads and Writes of a responder.

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
            Handler,
            WcError, //
        },
        patience::Patience,
        posting::{
            PostOutcome,
            Work, //
        },
        send_queue::{
            ProvidedReply,
            Read,
            SqPost,
            Writes, //
        },
        trace, //
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
    /// A transfer between `memory` and at most `parts` segments of the peer. May sleep, but of a
    /// requester does not wait for memory: it pulls in handlers, and those who free memory wait for
    /// these.
    pub(crate) fn transfer(
        &self,
        kind: TransferKind,
        memory: impl Into<TransferMemory>,
        parts: usize,
    ) -> Result<RwBuilder<'_, H>> {
        let memory = memory.into();
        let elements = RwCtx::elements_for(&memory, parts);
        let flags = match H::ROLE {
            Role::Requester => GFP_NOWAIT | __GFP_NOWARN,
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

    /// Whether something waits for room in the send queue. [`Handler::sq_space`] is called when
    /// that changes.
    pub(crate) fn is_send_queue_full(&self) -> bool {
        self.lock().has_pending()
    }

    /// RDMA Reads have ended; their memory was taken from the device.
    pub(super) fn end_read(&self, reading: Reading<Read<H::Cookie>>, ok: bool) {
        let id = CompletionId::new(self.cqs().0, reading.owned.number);
        trace::released(H::ROLE, id, &reading.transfer);
        self.give_back_read(reading, ok);
    }

    /// Gives the memory of RDMA Reads back, which have ended or were not posted.
    fn give_back_read(&self, reading: Reading<Read<H::Cookie>>, ok: bool) {
        let Reading { transfer, owned } = reading;
        let memory = RwCtx::into_memory(transfer);
        self.handler().read_ended(self, owned.cookie, memory, ok);
    }

    /// Has it posted, now or when its turn comes. After an error it was not, and will not be.
    #[inline(always)]
    pub(super) fn post_or_queue(&self, work: impl Work<H>) -> Result {
        let posted = self.lock().post_or_queue(work);
        match posted {
            Ok(PostOutcome::Posted) => Ok(()),
            Ok(PostOutcome::Waits) => {
                self.handler().sq_full();
                Ok(())
            }
            // Nobody knows what of it the device has: it comes back with the tear-down.
            Ok(PostOutcome::Failed) => {
                self.post_failed();
                Ok(())
            }
            Err((e, work)) => {
                self.not_posted(work);
                Err(e)
            }
        }
    }

    /// Something could not be posted: the connection is lost.
    #[cold]
    pub(super) fn post_failed(&self) {
        self.handler().failed(WcError::not_posted());
    }

    /// Nobody takes a turn any more: gives back what waits for one.
    pub(super) fn turn_away_pending(&self) {
        let mut pending = self.lock().take_pending();
        while let Some(work) = pending.pop() {
            self.turned_away(work);
        }
    }

    /// Gives back what had waited for its turn, and will not be posted.
    pub(super) fn turned_away(&self, work: SqPost<H::Cookie>) {
        match work {
            SqPost::Read(read) => self.give_back_read(read, false),
            reply => self.not_posted(reply),
        }
    }

    /// Gives back what was not posted, whose poster hears of that.
    #[cold]
    fn not_posted(&self, work: SqPost<H::Cookie>) {
        match work {
            SqPost::Reply(reply) => {
                // Outside the lock.
                drop(reply.writes);
                self.lock().put_buffer(reply.buffer);
            }
            SqPost::ProvidedReply(ProvidedReply { message, provided }) => {
                self.let_out(provided);
                drop(message.writes);
                self.lock().put_buffer(message.buffer);
            }
            SqPost::Read(read) => drop(read),
            // It goes with the tear-down.
            SqPost::Withdrawal(_) => (),
        }
    }
}

impl<H: Handler> RwBuilder<'_, H> {
    /// What is added from here on is for the Reply chunk.
    pub(crate) fn begin_reply_chunk(&mut self) {
        self.reply_chunk_from = self.transfer.requests();
    }

    /// Adds `len` bytes of the memory, from `offset`, and as many at the front of the peer's
    /// segment. `EMSGSIZE` when there is no room for it, or not so much memory; `EAGAIN` when the
    /// device needs regions for it, and all are in use. May sleep; of a responder also while memory
    /// is short for a moment.
    pub(crate) fn add(&mut self, mut offset: usize, mut len: usize, segment: &Segment) -> Result {
        let mut at = (segment.handle, segment.offset);
        let mut patience = Patience::of(H::ROLE);
        while len != 0 {
            let part = match self.add_part(offset, len, at) {
                Ok(part) => part,
                Err(e) => {
                    patience.wait(e)?;
                    continue;
                }
            };
            // The peer's addresses may end anywhere.
            at.1 = at.1.wrapping_add(part as u64);
            offset += part;
            len -= part;
        }
        Ok(())
    }

    #[inline(always)]
    fn add_part(&mut self, offset: usize, len: usize, at: (u32, u64)) -> Result<usize> {
        self.transfer.add(offset, len, at).map_err(|why| {
            trace::not_added(H::ROLE, self.endpoint.cqs().0, at, &why);
            why.error
        })
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
        self.endpoint.post_or_queue(Reading { transfer, owned })
    }

    /// The RDMA Writes, if there are any.
    pub(super) fn into_writes(self) -> Option<Writes> {
        let Self {
            transfer,
            number,
            reply_chunk_from,
            ..
        } = self;
        // One without requests gives its memory back here, and not under the lock of the queue.
        (transfer.requests() != 0).then_some(Writes {
            transfer,
            number,
            reply_chunk_from,
        })
    }
}
