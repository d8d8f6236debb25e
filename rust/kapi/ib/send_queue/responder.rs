// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! What a responder posts: RDMA Reads, and Replies with RDMA Writes before them.
//!
//! Who has something to post never waits for room: it takes its turn, and completions post what is
//! next. So nobody polls, no wakeup can be lost, and a lost connection has no one to wake.

use crate::kapi::{
    bindings,
    ib::{
        buffer::DmaBuffer,
        ring::Reading,
        rw::RwCtx,
        send_queue::{
            Owned,
            SendQueue,
            UNSIGNALED_RUN, //
        },
    },
    sys::fifo::Fifo,
    trace::{
        self,
        CompletionId, //
    },
};
use kernel::prelude::*;

/// Who wants to know of the end of RDMA Reads.
pub(in super::super) struct Read<C> {
    pub(in super::super) tag: Option<u32>,
    pub(in super::super) cookie: C,
}

/// The Send of a Reply, with the RDMA Writes that go before it.
pub(in super::super) struct Reply {
    pub(in super::super) buffer: DmaBuffer,
    pub(in super::super) len: usize,
    pub(in super::super) invalidate: Option<u32>,
    /// Not without requests.
    pub(in super::super) transfer: Option<KBox<RwCtx>>,
    pub(in super::super) tag: Option<u32>,
    /// The peer may have no room for the Send itself.
    pub(in super::super) may_be_refused: bool,
}

/// What became of it.
pub(in super::super) enum Turn {
    /// It is posted.
    Posted,
    /// It waits for room.
    Waits,
    /// The device refused it, or part of it: the connection is to be dropped.
    Failed,
}

/// What is posted in one go.
pub(in super::super) enum Work<C> {
    Read(Reading<Read<C>>),
    Reply(Reply),
}

impl<C> Work<C> {
    /// How many work requests it is.
    fn requests(&self) -> usize {
        match self {
            Self::Read(read) => read.transfer.requests(),
            Self::Reply(reply) => 1 + reply.transfer.as_ref().map_or(0, |t| t.requests()),
        }
    }
}

impl<C> SendQueue<C> {
    /// Whether this is a responder's.
    pub(super) fn takes_turns(&self) -> bool {
        self.ring.reads().capacity() != 0
    }

    #[inline]
    fn fits(&self, work: &Work<C>) -> bool {
        let ready = match work {
            Work::Read(_) => !self.ring.reads().is_full(),
            Work::Reply(_) => true,
        };
        ready && work.requests() as u64 <= self.room()
    }

    /// Posts, or lets it wait for its turn. `EMSGSIZE` when it is too much for the queue. What is
    /// given back was not posted.
    ///
    /// Does not sleep.
    pub(in super::super) fn submit(&mut self, work: Work<C>) -> Result<Turn, (Error, Work<C>)> {
        if !self.ring.is_open() {
            return Err((ENOTCONN, work));
        }
        let requests = work.requests();
        if requests == 0 {
            return Err((EINVAL, work));
        }
        // What is not signaled may never make room by itself.
        if requests > self.ring.capacity().saturating_sub(UNSIGNALED_RUN as usize) {
            return Err((EMSGSIZE, work));
        }
        if self.turns.is_empty() && self.fits(&work) {
            let posted = self.post_work(work);
            return Ok(posted.map_or(Turn::Failed, |()| Turn::Posted));
        }
        trace::svcrdma_sq_full(|| self.trace_room(self.id_of_work(&work)));
        match self.turns.push(work) {
            Ok(()) => Ok(Turn::Waits),
            Err(work) => Err((ENOBUFS, work)),
        }
    }

    /// Whether anybody waits for a turn.
    pub(in super::super) fn has_waiting(&self) -> bool {
        !self.turns.is_empty()
    }

    /// Posts those whose turn it is, as far as there is room. Returns whether nobody waits any more
    /// who did. After an error the connection is to be dropped.
    pub(in super::super) fn next_turns(&mut self) -> Result<bool> {
        let waited = self.has_waiting();
        while self.ring.is_open() {
            match self.turns.first() {
                Some(work) if self.fits(work) => (),
                _ => break,
            }
            if let Some(work) = self.turns.pop() {
                trace::svcrdma_sq_retry(|| self.trace_room(self.id_of_work(&work)));
                self.post_work(work)?;
            }
        }
        Ok(waited && !self.has_waiting())
    }

    /// What trace events call it.
    #[inline]
    fn id_of_work(&self, work: &Work<C>) -> CompletionId {
        match work {
            Work::Read(read) => read.transfer.id(),
            Work::Reply(reply) => self.id_of(reply.buffer.id),
        }
    }

    /// What trace events say of the queue, beside whom they are about.
    fn trace_room(&self, id: CompletionId) -> (CompletionId, u32, u32) {
        (id, self.room() as u32, self.ring.capacity() as u32)
    }

    fn post_work(&mut self, work: Work<C>) -> Result {
        let id = self.id_of_work(&work);
        let result = match work {
            Work::Read(read) => self.post_read(read),
            Work::Reply(reply) => self.post_reply(reply),
        };
        result.inspect_err(|e| {
            trace::svcrdma_sq_post_err(|| {
                let (id, room, size) = self.trace_room(id);
                (id, room, size, *e)
            });
        })
    }

    /// Posts RDMA Reads, for which there is room. Even after an error they count as posted.
    fn post_read(&mut self, read: Reading<Read<C>>) -> Result {
        let Reading {
            mut transfer,
            owned,
        } = read;
        transfer.trace_post();
        self.ring.post_reads(transfer, owned)
    }

    /// Posts a Reply, for which there is room. Even after an error it counts as posted, since
    /// nobody knows better: the tear-down flushes it.
    fn post_reply(&mut self, reply: Reply) -> Result {
        let Reply {
            buffer,
            len,
            invalidate,
            transfer,
            tag,
            may_be_refused,
        } = reply;
        let writes = transfer.as_ref().map_or(0, |transfer| transfer.requests());
        let in_place = buffer.is_sent_in_place(len);
        // What holds memory of others comes back soon.
        let signaled = self.signal(writes + 1, in_place || writes != 0);
        if may_be_refused || writes != 0 {
            self.written.rotate_right(1);
            if let Some(latest) = self.written.first_mut() {
                *latest = tag;
            }
        }
        trace::svcrdma_post_send(|| (self.id_of(buffer.id), 1, invalidate.unwrap_or(0)));
        let mut chain = match transfer {
            None => self.ring.begin(1)?,
            Some(mut writes) => {
                writes.trace_post();
                let (transfer, reply_chunk) = (writes.id().number(), writes.reply_chunk_from());
                let each = |i| {
                    Some(Owned::Write {
                        tag,
                        transfer,
                        reply_chunk: i >= reply_chunk,
                    })
                };
                self.ring.begin_behind(writes, each, 1)?
            }
        };
        chain.send(buffer, len, invalidate, Some(Owned::Send { tag }));
        chain.post(signaled)
    }

    /// What the RDMA Reads are called in trace events that `entry` belongs to.
    pub(in super::super) fn id_of_read(
        &self,
        entry: *const bindings::ib_cqe,
    ) -> Option<CompletionId> {
        Some(self.ring.reads().at(entry)?.transfer.id())
    }

    /// For whom the RDMA Reads are that `entry` belongs to, the last of a message or not.
    pub(in super::super) fn tag_of_read(&self, entry: *const bindings::ib_cqe) -> Option<u32> {
        self.ring.reads().at(entry)?.owned.tag
    }

    /// The RDMA Reads whose completion entry is at `entry` have ended, well or not; their memory was
    /// taken from the device.
    pub(in super::super) fn end_read(
        &mut self,
        entry: *const bindings::ib_cqe,
        ok: bool,
    ) -> Option<Reading<Read<C>>> {
        let mut read = self.ring.end_read(entry)?;
        if ok {
            read.transfer.trace_read();
        }
        // Here, since outside of the lock the queue pair may be gone.
        read.transfer.unmap();
        Some(read)
    }

    /// The connection is lost, by the peer or by this end. Returns whether that is news.
    pub(in super::super) fn lose(&mut self) -> bool {
        !core::mem::replace(&mut self.lost, true)
    }

    /// The tag of the transfer, or of the Send that may be refused, that may be under way, if there is
    /// one only.
    pub(in super::super) fn alone(&self) -> Option<u32> {
        let reads = self.ring.reads().iter().filter_map(|read| read.owned.tag);
        // A device may call an RDMA Write or a Send done when it is on its way.
        let mut tags = Iterator::chain(reads, self.written.iter().copied().flatten());
        let first = tags.next()?;
        tags.all(|tag| tag == first).then_some(first)
    }

    /// Takes what waits for its turn, for tear-down.
    pub(in super::super) fn take_turns(&mut self) -> Fifo<Work<C>> {
        core::mem::take(&mut self.turns)
    }
}
