// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! What a responder posts: RDMA Reads, Replies with RDMA Writes before them, and what takes back
//! those that it provides; and a requester that pulls them.
//!
//! Who has something to post never waits for room: it takes its turn, and completions post what is
//! next. So nobody polls, no wakeup can be lost, and a lost connection has no one to wake.

use crate::{
    kapi::{
        ib::{
            Chain,
            Reading, //
        },
        trace::CompletionId, //
    },
    transport::{
        endpoint::Handler,
        posting::Sending,
        provided::Withdrawal,
        send_queue::{
            Owned,
            ProvidedReply,
            Read,
            Reply,
            SqPost,
            Writes,
            UNSIGNALED_RUN, //
        },
        trace::{
            self,
            Waiting, //
        },
    },
};
use kernel::prelude::*;
use xdr::Role;

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

/// What is posted in one go.
pub(in crate::transport) trait Work<H: Handler>:
    Into<SqPost<H::Cookie>>
{
    /// The number of its buffer or transfer, which trace events call it by.
    fn number(&self) -> u32;

    /// How many work requests it is.
    fn requests(&self) -> usize;

    /// Whether there is room for it beside the send queue.
    fn is_ready(&self, queue: &Sending<'_, H>) -> bool;

    /// Posts it: there is room. After an error what does not come back counts as posted, since
    /// nobody knows better: the tear-down flushes it.
    fn post(self, queue: &mut Sending<'_, H>) -> Result<(), (Error, Option<Self>)>;
}

impl<H: Handler> Work<H> for Reply {
    #[inline]
    fn number(&self) -> u32 {
        self.buffer.id
    }

    #[inline]
    fn requests(&self) -> usize {
        1 + self.writes.as_ref().map_or(0, |w| w.transfer.requests())
    }

    #[inline]
    fn is_ready(&self, _: &Sending<'_, H>) -> bool {
        true
    }

    #[inline(always)]
    fn post(mut self, queue: &mut Sending<'_, H>) -> Result<(), (Error, Option<Self>)> {
        let writes = self.writes.as_ref().map_or(0, |w| w.transfer.requests());
        let in_place = self.buffer.is_sent_in_place(self.len);
        // What holds memory of others comes back soon.
        let signaled = queue.signal(writes + 1, in_place || writes != 0);
        if self.may_be_refused || writes != 0 {
            queue.note_written(self.xid);
        }
        let key = self.invalidate.unwrap_or(0);
        trace::message_posted(H::ROLE, || queue.id_of(self.buffer.id), key);
        // In line twice, since most have no RDMA Writes.
        let Some(writes) = self.writes.take() else {
            return match queue.ring_mut().begin(1) {
                Ok(chain) => self.send(chain, signaled),
                Err(e) => Err((e, Some(self))),
            };
        };
        match queue.begin_writes(self.xid, writes, 1) {
            Ok(chain) => self.send(chain, signaled),
            Err((e, writes)) => {
                self.writes = Some(writes);
                Err((e, Some(self)))
            }
        }
    }
}

impl Reply {
    /// Posts its Send as the last of a chain.
    #[inline(always)]
    fn send<C>(
        self,
        mut chain: ReplyChain<'_, C>,
        signaled: bool,
    ) -> Result<(), (Error, Option<Self>)> {
        let owned = Owned::Send { xid: self.xid };
        chain.send(self.buffer, self.len, self.invalidate, Some(owned));
        chain.post(signaled).map_err(|e| (e, None))
    }
}

impl<H: Handler> Work<H> for ProvidedReply {
    fn number(&self) -> u32 {
        Work::<H>::number(&self.message)
    }

    fn requests(&self) -> usize {
        Work::<H>::requests(&self.message) + self.provided.registrations()
    }

    fn is_ready(&self, _: &Sending<'_, H>) -> bool {
        true
    }

    fn post(mut self, queue: &mut Sending<'_, H>) -> Result<(), (Error, Option<Self>)> {
        let (requests, key) = (Work::<H>::requests(&self), self.message.invalidate);
        // What is provided is to be withdrawn in time.
        let signaled = queue.signal(requests, true);
        trace::message_posted(
            H::ROLE,
            || queue.id_of(self.message.buffer.id),
            key.unwrap_or(0),
        );
        let n = 1 + self.provided.registrations();
        let mut chain = match self.message.writes.take() {
            None => match queue.ring_mut().begin(n) {
                Ok(chain) => chain,
                Err(e) => return Err((e, Some(self))),
            },
            Some(writes) => {
                queue.note_written(self.message.xid);
                match queue.begin_writes(self.message.xid, writes, n) {
                    Ok(chain) => chain,
                    Err((e, writes)) => {
                        self.message.writes = Some(writes);
                        return Err((e, Some(self)));
                    }
                }
            }
        };
        let Self {
            message,
            mut provided,
        } = self;
        provided.regions.register(&mut chain, |_| None);
        let posted = message.send(chain, signaled);
        // Also if nobody knows what was posted: it goes with the tear-down then.
        queue.provided.add(provided);
        posted.map_err(|(e, _)| (e, None))
    }
}

impl<H: Handler> Work<H> for Withdrawal {
    fn number(&self) -> u32 {
        self.number
    }

    fn requests(&self) -> usize {
        self.registered
    }

    fn is_ready(&self, _: &Sending<'_, H>) -> bool {
        true
    }

    fn post(self, queue: &mut Sending<'_, H>) -> Result<(), (Error, Option<Self>)> {
        let Withdrawal { number, registered } = self;
        let (ring, pools) = queue.parts();
        let Some(regions) = pools.provided.withdrawn_regions(number) else {
            return Ok(());
        };
        let mut chain = ring.begin(registered).map_err(|e| (e, Some(self)))?;
        let mut left = registered;
        regions.invalidate(&mut chain, |_| {
            left = left.saturating_sub(1);
            (left == 0).then_some(Owned::Withdrawn { number })
        });
        let posted = chain.post(true);
        queue.unsignaled = 0;
        posted.map_err(|e| (e, None))
    }
}

impl<H: Handler> Work<H> for Reading<Read<H::Cookie>> {
    fn number(&self) -> u32 {
        self.owned.number
    }

    fn requests(&self) -> usize {
        self.transfer.requests()
    }

    fn is_ready(&self, queue: &Sending<'_, H>) -> bool {
        !queue.ring().reads().is_full()
    }

    fn post(mut self, queue: &mut Sending<'_, H>) -> Result<(), (Error, Option<Self>)> {
        self.owned.posted =
            trace::read_posted(H::ROLE, queue.id_of(self.owned.number), &self.transfer);
        queue.ring_mut().post_reads(self)
    }
}

impl<H: Handler> Work<H> for SqPost<H::Cookie> {
    fn number(&self) -> u32 {
        match self {
            Self::Read(read) => Work::<H>::number(read),
            Self::Reply(reply) => Work::<H>::number(reply),
            Self::ProvidedReply(reply) => Work::<H>::number(reply),
            Self::Withdrawal(withdrawal) => Work::<H>::number(withdrawal),
        }
    }

    fn requests(&self) -> usize {
        match self {
            Self::Read(read) => Work::<H>::requests(read),
            Self::Reply(reply) => Work::<H>::requests(reply),
            Self::ProvidedReply(reply) => Work::<H>::requests(reply),
            Self::Withdrawal(withdrawal) => Work::<H>::requests(withdrawal),
        }
    }

    fn is_ready(&self, queue: &Sending<'_, H>) -> bool {
        match self {
            Self::Read(read) => read.is_ready(queue),
            Self::Reply(reply) => reply.is_ready(queue),
            Self::ProvidedReply(reply) => reply.is_ready(queue),
            Self::Withdrawal(withdrawal) => withdrawal.is_ready(queue),
        }
    }

    fn post(self, queue: &mut Sending<'_, H>) -> Result<(), (Error, Option<Self>)> {
        match self {
            Self::Read(read) => read.post(queue).map_err(|(e, w)| (e, w.map(Self::Read))),
            Self::Reply(reply) => reply.post(queue).map_err(|(e, w)| (e, w.map(Self::Reply))),
            Self::ProvidedReply(reply) => reply
                .post(queue)
                .map_err(|(e, w)| (e, w.map(Self::ProvidedReply))),
            Self::Withdrawal(withdrawal) => withdrawal
                .post(queue)
                .map_err(|(e, w)| (e, w.map(Self::Withdrawal))),
        }
    }
}

impl<H: Handler> Sending<'_, H> {
    /// Room that is not for this: who makes a Call has seen it, and has it until that is posted.
    #[inline(always)]
    fn left_for_a_call(&self) -> usize {
        match H::ROLE {
            Role::Requester => self.longest_call as usize,
            Role::Responder => 0,
        }
    }

    /// How many requests one may have. What is not signaled may never make room by itself.
    #[inline(always)]
    fn most_requests(&self) -> usize {
        match H::ROLE {
            // An RDMA_DONE is a single one.
            Role::Requester => self.longest_read.max(1) as usize,
            Role::Responder => {
                let capacity = self.ring().capacity();
                capacity.saturating_sub(UNSIGNALED_RUN as usize)
            }
        }
    }

    #[inline(always)]
    fn fits(&self, work: &impl Work<H>) -> bool {
        work.is_ready(self) && work.requests() + self.left_for_a_call() <= self.sq_avail()
    }

    /// Posts, or lets it wait for its turn. `EMSGSIZE` when it is too much for the queue. What is
    /// given back was not posted.
    ///
    /// Does not sleep.
    #[inline(always)]
    pub(in crate::transport) fn post_or_queue<W: Work<H>>(
        &mut self,
        work: W,
    ) -> Result<PostOutcome, (Error, SqPost<H::Cookie>)> {
        if !self.ring().is_open() {
            return Err((ENOTCONN, work.into()));
        }
        let requests = work.requests();
        if requests == 0 {
            return Err((EINVAL, work.into()));
        }
        if requests > self.most_requests() {
            return Err((EMSGSIZE, work.into()));
        }
        if self.has_pending() || !self.fits(&work) {
            return self.queue(work.into());
        }
        match self.post_now(work) {
            Ok(()) => Ok(PostOutcome::Posted),
            Err((_, None)) => Ok(PostOutcome::Failed),
            Err((e, Some(work))) => Err((e, work.into())),
        }
    }

    /// Lets it wait for its turn.
    #[cold]
    fn queue(
        &mut self,
        work: SqPost<H::Cookie>,
    ) -> Result<PostOutcome, (Error, SqPost<H::Cookie>)> {
        let state = || self.trace_sq(Work::<H>::number(&work));
        trace::waiting(H::ROLE, Waiting::Begins, state);
        match self.pending.push(work) {
            Ok(_) => Ok(PostOutcome::Waits),
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
                let state = || self.trace_sq(Work::<H>::number(&work));
                trace::waiting(H::ROLE, Waiting::Ends, state);
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

    /// As [`Work::post`].
    #[inline(always)]
    fn post_now<W: Work<H>>(&mut self, work: W) -> Result<(), (Error, Option<W>)> {
        let number = work.number();
        work.post(self).inspect_err(|(e, _)| {
            trace::waiting(H::ROLE, Waiting::NotPosted(*e), || self.trace_sq(number));
        })
    }

    /// The device may call RDMA Writes for that XID, or a Send that may be refused, done when they
    /// are on their way.
    #[cold]
    fn note_written(&mut self, xid: Option<u32>) {
        self.written.rotate_right(1);
        if let Some(latest) = self.written.first_mut() {
            *latest = xid;
        }
    }

    /// Begins a chain of `n` requests for a Reply behind its RDMA Writes.
    #[inline(never)]
    fn begin_writes(
        &mut self,
        xid: Option<u32>,
        writes: Writes,
        n: usize,
    ) -> Result<ReplyChain<'_, H::Cookie>, (Error, Writes)> {
        let Writes {
            transfer,
            number,
            reply_chunk_from,
        } = writes;
        let requests = transfer.requests();
        trace::writes_posted(self.id_of(number), requests, reply_chunk_from);
        let each = |i| {
            let (reply_chunk, next) = (i >= reply_chunk_from, i + 1);
            Some(Owned::Write {
                xid,
                transfer: number,
                reply_chunk,
                last: next == requests || next == reply_chunk_from,
            })
        };
        let begun = self.ring_mut().begin_behind(transfer, each, n);
        begun.map_err(|(e, transfer)| {
            let writes = Writes {
                transfer,
                number,
                reply_chunk_from,
            };
            (e, writes)
        })
    }

    /// The XID of the transfer, or of the Send that may be refused, that may be under way, if there
    /// is one only.
    pub(in crate::transport) fn sole_inflight_xid(&self) -> Option<u32> {
        let reads = self.ring().reads().iter().filter_map(|read| read.owned.xid);
        let mut xids = Iterator::chain(reads, self.written.iter().copied().flatten());
        let first = xids.next()?;
        xids.all(|xid| xid == first).then_some(first)
    }
}
