// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The order in which waiting work is posted.
//!
//! Work without room takes its turn, and completions post the next: so nothing polls, no wakeup can
//! be lost, and a lost connection has no task to wake. Only Calls never wait here: the RPC layer
//! holds them back, so the sender of a Call first sees that there is room.
//!
//! Two things may be short: room in the send queue, which all work needs, and what some work needs
//! beside it (RDMA Reads need a place of their own, and messages of version 2 a credit). Room is
//! given first come, first served; work that waits for the other lets pass work that needs none.

use crate::{
    kapi::{
        ib::{
            Reading,
            RwCtx, //
        },
        sys::time::{
            jiffies,
            HZ, //
        },
        trace::CompletionId, //
    },
    transport::{
        continued::{
            Fragment,
            MOST_MESSAGES, //
        },
        endpoint::{
            Endpoint,
            Handler,
            Sending,
            WcError, //
        },
        flow::{
            charge::Charge,
            Flow, //
        },
        plan::UNSIGNALED_RUN,
        provided::Withdrawal,
        send_queue::SendQueue,
        trace::{
            self,
            Waiting, //
        },
        work::{
            Message,
            Read,
            Work, //
        },
    },
};
use kernel::{
    prelude::*,
    time::Jiffies, //
};
use xdr::Role;

/// Work that is posted at once, when it is its turn. What is left in it was not posted.
pub(super) trait Post<H: Handler> {
    /// Returns the number of its buffer or transfer, by which trace events name it.
    fn number(&self) -> u32;

    /// Returns the number of its work requests; none if it is posted, or may be.
    fn requests(&self) -> usize;

    /// Returns whether all that it needs beside room is free.
    fn is_ready(&self, queue: &Sending<'_, H>) -> bool;

    /// Posts it. After an error, what is not left of it counts as posted, since its state is
    /// unknown: the tear-down flushes it.
    fn post(&mut self, queue: &mut Sending<'_, H>) -> Result;

    /// Takes it, to let it wait for its turn.
    fn take(&mut self) -> Work<H::Cookie>;
}

impl<H: Handler> Post<H> for Message {
    fn number(&self) -> u32 {
        self.number()
    }

    #[inline]
    fn requests(&self) -> usize {
        if self.is_posted() {
            return 0;
        }
        let provided = self.provided.as_ref();
        self.writes() + provided.map_or(0, |p| p.registrations()) + self.sends()
    }

    #[inline]
    fn is_ready(&self, queue: &Sending<'_, H>) -> bool {
        let may_post = |charge| queue.flow.may_post(charge, self.sends() as u32);
        self.charge.is_none_or(may_post)
    }

    #[inline]
    fn post(&mut self, queue: &mut Sending<'_, H>) -> Result {
        queue.post_message(self)
    }

    fn take(&mut self) -> Work<H::Cookie> {
        if let Some(front) = &mut self.front {
            front.since = jiffies();
        }
        Work::Message(core::mem::take(self))
    }
}

impl<H: Handler> Post<H> for Option<Reading<Read<H::Cookie>>> {
    fn number(&self) -> u32 {
        self.as_ref().map_or(0, |reading| reading.owned.number)
    }

    fn requests(&self) -> usize {
        self.as_ref().map_or(0, |r| r.transfer.requests())
    }

    fn is_ready(&self, queue: &Sending<'_, H>) -> bool {
        !queue.ring().reads().is_full()
    }

    fn post(&mut self, queue: &mut Sending<'_, H>) -> Result {
        queue.post_reads(self)
    }

    fn take(&mut self) -> Work<H::Cookie> {
        Work::Reads(Option::take(self))
    }
}

impl<H: Handler> Post<H> for Withdrawal {
    fn number(&self) -> u32 {
        self.number
    }

    fn requests(&self) -> usize {
        self.registered
    }

    fn is_ready(&self, _: &Sending<'_, H>) -> bool {
        true
    }

    fn post(&mut self, queue: &mut Sending<'_, H>) -> Result {
        queue.post_withdrawal(self)
    }

    fn take(&mut self) -> Work<H::Cookie> {
        let registered = core::mem::take(&mut self.registered);
        Work::Withdrawal(Withdrawal {
            registered,
            ..*self
        })
    }
}

impl<C> Work<C> {
    /// Returns what is to be posted. What waits is worth a call through a table.
    pub(super) fn as_post<H: Handler<Cookie = C>>(&self) -> &dyn Post<H> {
        match self {
            Self::Message(message) => message,
            Self::Reads(reading) => reading,
            Self::Withdrawal(withdrawal) => withdrawal,
        }
    }

    /// Returns the same, to post it.
    pub(super) fn as_post_mut<H: Handler<Cookie = C>>(&mut self) -> &mut dyn Post<H> {
        match self {
            Self::Message(message) => message,
            Self::Reads(reading) => reading,
            Self::Withdrawal(withdrawal) => withdrawal,
        }
    }
}

/// The time for which a Reply waits for credits at most, if a message of the peer comes then: a
/// good receiver gives new ones before half of the old ones are used (section 4.2.1.1 of the
/// draft).
const PATIENCE: Jiffies = 2 * HZ;

/// The outcome of a request to post.
enum Turn {
    /// It is posted.
    Posted,
    /// It waits for its turn.
    Waits,
    /// The device refused it, or part of it: the connection is to be dropped.
    Failed,
}

impl<C> SendQueue<C> {
    /// Makes an error of a Reply that has waited too long, and lacks the credits of all its
    /// messages: the peer may take fewer than it did. Returns its XID, and the buffers that are not
    /// needed then. None if there is no such Reply.
    fn refuse_overdue(&mut self) -> Option<(u32, KVec<Fragment>)> {
        let (flow, now) = (&self.flow, jiffies());
        // Version 1 has no such Reply, and may have much that waits for room.
        if !flow.counts_messages() {
            return None;
        }
        for work in self.pending.iter_mut() {
            let Work::Message(reply) = work else { continue };
            let Some(charge) = reply.charge else { continue };
            let sends = reply.sends() as u32;
            let front = reply.front.take_if(|front| {
                let overdue = now.wrapping_sub(front.since) >= PATIENCE;
                overdue && charge == Charge::AtPost && !flow.may_post(charge, sends)
            });
            if let Some(front) = front {
                let front = KBox::into_inner(front);
                return Some((reply.refuse_room(front.payload), front.fragments));
            }
        }
        None
    }
}

impl<H: Handler> Sending<'_, H> {
    /// Returns the number of slots that are kept for a Call, whose sender has seen them free.
    #[inline]
    fn reserved_for_call(&self) -> usize {
        match H::ROLE {
            Role::Requester => self.longest_call as usize,
            Role::Responder => 0,
        }
    }

    /// Returns the most requests that one item may have. Unsignaled requests may never make room by
    /// themselves.
    #[inline]
    fn most_requests(&self) -> usize {
        match H::ROLE {
            // Reads, or a Reply to a Call of the server.
            Role::Requester => self.longest_read.max(MOST_MESSAGES) as usize,
            Role::Responder => {
                let capacity = self.ring().capacity();
                capacity.saturating_sub(UNSIGNALED_RUN as usize)
            }
        }
    }

    /// Returns the place of the work whose turn it is.
    #[inline]
    fn first_ready(&self) -> Option<usize> {
        let mut places = 0..self.pending.len();
        places.find(|place| {
            let work = self.pending.get(*place);
            work.is_some_and(|work| work.as_post().is_ready(self))
        })
    }

    #[inline]
    fn has_room(&self, requests: usize) -> bool {
        requests + self.reserved_for_call() <= self.sq_avail()
    }

    /// Posts the work, or takes it to let it wait for its turn. `EMSGSIZE` if it is too much for
    /// the queue. What is left of it was not posted. Does not sleep.
    #[inline]
    fn post_or_queue(&mut self, work: &mut impl Post<H>) -> Result<Turn> {
        if !self.ring().is_open() {
            return Err(ENOTCONN);
        }
        let requests = work.requests();
        if requests == 0 {
            return Err(EINVAL);
        }
        if requests > self.most_requests() {
            return Err(EMSGSIZE);
        }
        let first = self.first_ready().is_none();
        if !first || !work.is_ready(self) || !self.has_room(requests) {
            return self.queue(work);
        }
        let number = work.number();
        match work.post(self) {
            Ok(()) => Ok(Turn::Posted),
            Err(e) => {
                self.trace_not_posted(number, e);
                match work.requests() {
                    0 => Ok(Turn::Failed),
                    _ => Err(e),
                }
            }
        }
    }

    /// Lets the work wait for its turn.
    #[cold]
    fn queue(&mut self, work: &mut impl Post<H>) -> Result<Turn> {
        if self.pending.is_full() {
            return Err(ENOBUFS);
        }
        trace::waiting(H::ROLE, Waiting::Begins, || self.trace_sq(work.number()));
        // There is room.
        let _ = self.pending.push(work.take());
        Ok(Turn::Waits)
    }

    /// Posts waiting work in turn, as far as there is room and credits. Returns whether some waited
    /// and none is left. After an error the connection is to be dropped; what is left of the work
    /// that comes with it was not posted.
    fn post_pending(&mut self) -> Result<bool, Work<H::Cookie>> {
        if !self.has_pending() {
            return Ok(false);
        }
        while let Some((xid, fragments)) = self.refuse_overdue() {
            for (buffer, _) in fragments {
                self.put_buffer(buffer);
            }
            trace::refused(H::ROLE, xid);
        }
        while self.ring().is_open() {
            let Some(mut work) = self.take_next() else {
                break;
            };
            let number = work.as_post::<H>().number();
            trace::waiting(H::ROLE, Waiting::Ends, || self.trace_sq(number));
            if let Err(e) = work.as_post_mut().post(self) {
                self.trace_not_posted(number, e);
                return Err(work);
            }
        }
        Ok(!self.has_pending())
    }

    /// Takes the work whose turn it is, if there is room for it.
    fn take_next(&mut self) -> Option<Work<H::Cookie>> {
        self.next_place()
            .and_then(|place| self.pending.remove(place))
    }

    /// Returns the place of that work.
    fn next_place(&self) -> Option<usize> {
        let place = self.first_ready()?;
        let requests = self.pending.get(place)?.as_post::<H>().requests();
        self.has_room(requests).then_some(place)
    }

    /// Traces that the work with this number was not posted.
    #[cold]
    fn trace_not_posted(&self, number: u32, error: Error) {
        trace::waiting(H::ROLE, Waiting::NotPosted(error), || self.trace_sq(number));
    }

    /// Posts waiting work, since there is room; or reports that the connection is lost.
    pub(super) fn make_room(mut self) {
        let (endpoint, pending) = (self.qp(), self.post_pending());
        drop(self);
        match pending {
            Err(work) => {
                endpoint.turn_away(work);
                endpoint.post_failed();
            }
            Ok(last) if last || H::ROLE == Role::Requester => endpoint.handler().sq_space(endpoint),
            Ok(_) => (),
        }
    }

    /// Returns the state of the queue for a trace event about the work with this number.
    fn trace_sq(&self, number: u32) -> (CompletionId, u32, u32) {
        (
            self.id_of(number),
            self.sq_avail() as u32,
            self.ring().capacity() as u32,
        )
    }
}

impl<H: Handler> Endpoint<H> {
    /// Returns whether work waits for its turn. [`Handler::sq_space`] is called when that changes.
    pub(crate) fn is_send_queue_full(&self) -> bool {
        self.lock().has_pending()
    }

    /// Posts the work, now or when its turn comes. After an error it was not, and will not be: what
    /// is left in it is the caller's to give back.
    #[inline]
    pub(super) fn post_or_queue(&self, work: &mut impl Post<H>) -> Result {
        let turn = self.lock().post_or_queue(work)?;
        match turn {
            Turn::Posted => (),
            Turn::Waits => {
                self.handler().sq_full();
                // The peer may wait, too: for what the message that waits would have told.
                self.grant_if_owed();
            }
            // It is unknown how much of it the device has: it comes back with the tear-down.
            Turn::Failed => self.post_failed(),
        }
        Ok(())
    }

    /// Posts waiting work, since there is room in the send queue; or reports that the connection is
    /// lost. Not with the lock of an RPC held.
    pub(crate) fn make_room(&self) {
        self.lock().make_room();
    }

    /// Takes back credits of what is not sent after all, for which other work may wait. Not with
    /// the lock of an RPC held.
    #[cold]
    pub(crate) fn put_back(&self, put: impl FnOnce(&mut Flow)) {
        let mut queue = self.lock();
        put(&mut queue.flow);
        // Nobody is told of room that there was before.
        if queue.next_place().is_some() {
            queue.make_room();
        }
    }

    /// Reports that work could not be posted: the connection is lost.
    #[cold]
    pub(super) fn post_failed(&self) {
        self.handler().failed(WcError::not_posted());
    }

    /// Gives the waiting work back: turns have ended.
    pub(super) fn turn_away_pending(&self) {
        let mut pending = self.lock().take_pending();
        while let Some(work) = pending.pop() {
            self.turn_away(work);
        }
    }

    /// Gives back work that has waited for its turn, and will not be posted.
    fn turn_away(&self, work: Work<H::Cookie>) {
        match work {
            Work::Message(message) => self.not_posted(message),
            Work::Reads(Some(reading)) => self.give_back_reads(reading, false),
            // The rest of a withdrawal goes with the tear-down.
            Work::Reads(None) | Work::Withdrawal(_) => (),
        }
    }

    /// Gives back the memory of RDMA Reads that have ended or were not posted.
    pub(super) fn give_back_reads(&self, reading: Reading<Read<H::Cookie>>, ok: bool) {
        let Reading { transfer, owned } = reading;
        let memory = RwCtx::into_memory(transfer);
        self.handler().read_ended(self, owned.cookie, memory, ok);
    }

    /// Gives back what is left of a message, which was not posted.
    #[cold]
    pub(super) fn not_posted(&self, message: Message) {
        if let Some(provided) = message.provided {
            self.let_out(provided);
        }
        // Outside the lock.
        drop(message.writes);
        let front = message.front.map(|front| KBox::into_inner(front).fragments);
        let front = front.into_iter().flatten().map(|(buffer, _)| buffer);
        for buffer in Iterator::chain(front, message.buffer) {
            self.lock().put_buffer(buffer);
        }
    }
}
