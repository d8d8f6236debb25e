// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! What a responder posts: RDMA Reads, and Replies with RDMA Writes before them.
//!
//! Who has something to post never waits for room: it takes its turn, and completions post what is
//! next. So nobody polls, no wakeup can be lost, and a lost connection has no one to wake.

use crate::{
    kapi::{
        ib::{
            Chain,
            Reading, //
        },
        trace::{
            self,
            CompletionId, //
        },
    },
    transport::{
        endpoint::Handler,
        posting::Sending,
        send_queue::{
            Owned,
            Read,
            Reply,
            SqPost,
            Writes,
            UNSIGNALED_RUN, //
        },
        trace as events, //
    },
};
use kernel::prelude::*;

/// An error, and what was not posted; without that all of it counts as posted.
type NotPosted<C> = (Error, Option<SqPost<C>>);

/// That of a Reply and what goes before it.
type ReplyChain<'a, C> = Chain<'a, Owned<C>, Read<C>>;

/// What became of it.
pub(in crate::transport) enum PostOutcome {
    /// It is posted.
    Posted,
    /// It waits for room.
    Waits,
    /// The device refused it, or part of it: the connection is to be dropped.
    Failed,
}

impl<H: Handler> Sending<'_, H> {
    /// Whether this is a responder's.
    pub(super) fn queues_work(&self) -> bool {
        self.ring().reads().capacity() != 0
    }

    #[inline]
    fn fits(&self, work: &SqPost<H::Cookie>) -> bool {
        let ready = match work {
            SqPost::Read(_) => !self.ring().reads().is_full(),
            SqPost::Reply(_) => true,
        };
        ready && work.requests() as u64 <= self.sq_avail()
    }

    /// Posts, or lets it wait for its turn. `EMSGSIZE` when it is too much for the queue. What is
    /// given back was not posted.
    ///
    /// Does not sleep.
    pub(in crate::transport) fn post_or_queue(
        &mut self,
        work: SqPost<H::Cookie>,
    ) -> Result<PostOutcome, (Error, SqPost<H::Cookie>)> {
        if !self.ring().is_open() {
            return Err((ENOTCONN, work));
        }
        let requests = work.requests();
        if requests == 0 {
            return Err((EINVAL, work));
        }
        // What is not signaled may never make room by itself.
        if requests
            > self
                .ring()
                .capacity()
                .saturating_sub(UNSIGNALED_RUN as usize)
        {
            return Err((EMSGSIZE, work));
        }
        if self.pending.is_empty() && self.fits(&work) {
            return match self.post_now(work) {
                Ok(()) => Ok(PostOutcome::Posted),
                Err((_, None)) => Ok(PostOutcome::Failed),
                Err((e, Some(work))) => Err((e, work)),
            };
        }
        trace::svcrdma_sq_full(|| self.trace_sq(work.number()));
        match self.pending.push(work) {
            Ok(()) => Ok(PostOutcome::Waits),
            Err(work) => Err((ENOBUFS, work)),
        }
    }

    /// Posts those whose turn it is, as far as there is room. Returns whether nobody waits any more
    /// who did. After an error the connection is to be dropped; what is given back was not posted.
    pub(in crate::transport) fn post_pending(&mut self) -> Result<bool, Option<SqPost<H::Cookie>>> {
        let waited = self.has_pending();
        while self.ring().is_open() {
            match self.pending.first() {
                Some(work) if self.fits(work) => (),
                _ => break,
            }
            if let Some(work) = self.pending.pop() {
                trace::svcrdma_sq_retry(|| self.trace_sq(work.number()));
                self.post_now(work).map_err(|(_, work)| work)?;
            }
        }
        Ok(waited && !self.has_pending())
    }

    /// What trace events say of the queue, beside whom they are about.
    fn trace_sq(&self, number: u32) -> (CompletionId, u32, u32) {
        (
            self.id_of(number),
            self.sq_avail() as u32,
            self.ring().capacity() as u32,
        )
    }

    /// Posts what there is room for. After an error what does not come back counts as posted, since nobody knows
    /// better: the tear-down flushes it.
    fn post_now(&mut self, work: SqPost<H::Cookie>) -> Result<(), NotPosted<H::Cookie>> {
        let number = work.number();
        let result = match work {
            SqPost::Read(read) => self.post_read(read),
            SqPost::Reply(reply) => self.post_reply(reply),
        };
        result.inspect_err(|(e, _)| {
            trace::svcrdma_sq_post_err(|| {
                let (id, room, size) = self.trace_sq(number);
                (id, room, size, *e)
            });
        })
    }

    fn post_read(
        &mut self,
        mut read: Reading<Read<H::Cookie>>,
    ) -> Result<(), NotPosted<H::Cookie>> {
        read.owned.posted = events::read_posted(self.id_of(read.owned.number), &read.transfer);
        let posted = self.ring_mut().post_reads(read);
        posted.map_err(|(e, read)| (e, read.map(SqPost::Read)))
    }

    fn post_reply(&mut self, mut reply: Reply) -> Result<(), NotPosted<H::Cookie>> {
        let writes = reply.writes.as_ref().map_or(0, |w| w.transfer.requests());
        let in_place = reply.buffer.is_sent_in_place(reply.len);
        // What holds memory of others comes back soon.
        let signaled = self.signal(writes + 1, in_place || writes != 0);
        if reply.may_be_refused || writes != 0 {
            self.written.rotate_right(1);
            if let Some(latest) = self.written.first_mut() {
                *latest = reply.xid;
            }
        }
        let invalidate = reply.invalidate;
        trace::svcrdma_post_send(|| (self.id_of(reply.buffer.id), 1, invalidate.unwrap_or(0)));
        match self.begin_reply(&mut reply) {
            Ok(mut chain) => {
                let owned = Owned::Send { xid: reply.xid };
                chain.send(reply.buffer, reply.len, invalidate, Some(owned));
                chain.post(signaled).map_err(|e| (e, None))
            }
            Err(e) => Err((e, Some(SqPost::Reply(reply)))),
        }
    }

    /// Begins the chain of a Reply behind its RDMA Writes, if there are any, and takes those.
    fn begin_reply(&mut self, reply: &mut Reply) -> Result<ReplyChain<'_, H::Cookie>> {
        let Some(Writes {
            transfer,
            number,
            reply_chunk_from,
        }) = reply.writes.take()
        else {
            return self.ring_mut().begin(1);
        };
        let (xid, requests) = (reply.xid, transfer.requests());
        events::writes_posted(self.id_of(number), requests, reply_chunk_from);
        let each = |i| {
            let (reply_chunk, next) = (i >= reply_chunk_from, i + 1);
            Some(Owned::Write {
                xid,
                transfer: number,
                reply_chunk,
                last: next == requests || next == reply_chunk_from,
            })
        };
        let begun = self.ring_mut().begin_behind(transfer, each, 1);
        begun.map_err(|(e, transfer)| {
            reply.writes = Some(Writes {
                transfer,
                number,
                reply_chunk_from,
            });
            e
        })
    }

    /// The XID of the transfer, or of the Send that may be refused, that may be under way, if there is
    /// one only.
    pub(in crate::transport) fn sole_inflight_xid(&self) -> Option<u32> {
        let reads = self.ring().reads().iter().filter_map(|read| read.owned.xid);
        // A device may call an RDMA Write or a Send done when it is on its way.
        let mut xids = Iterator::chain(reads, self.written.iter().copied().flatten());
        let first = xids.next()?;
        xids.all(|xid| xid == first).then_some(first)
    }
}
