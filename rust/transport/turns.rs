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
        trace::CompletionId, //
    },
    transport::{
        continued::MOST_MESSAGES,
        endpoint::{
            Endpoint,
            Handler,
            Sending,
            WcError, //
        },
        plan::UNSIGNALED_RUN,
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
use kernel::prelude::*;
use xdr::Role;

/// The outcome of a request to post.
enum Turn {
    /// It is posted.
    Posted,
    /// It waits for its turn.
    Waits,
    /// The device refused it, or part of it: the connection is to be dropped.
    Failed,
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

    /// Returns whether all that `work` needs beside room is free.
    #[inline]
    fn is_ready(&self, work: &Work<H::Cookie>) -> bool {
        match work {
            Work::Message(message) => {
                let (charge, sends) = (message.charge, message.sends() as u32);
                charge.is_none_or(|charge| self.flow.may_post(charge, sends))
            }
            Work::Reads(_) => !self.ring().reads().is_full(),
            Work::Withdrawal(_) => true,
        }
    }

    /// Returns the place of the work whose turn it is.
    #[inline]
    fn first_ready(&self) -> Option<usize> {
        let mut places = 0..self.pending.len();
        places.find(|place| {
            let work = self.pending.get(*place);
            work.is_some_and(|work| self.is_ready(work))
        })
    }

    #[inline]
    fn has_room(&self, work: &Work<H::Cookie>) -> bool {
        work.requests() + self.reserved_for_call() <= self.sq_avail()
    }

    /// Posts the work, or takes it to let it wait for its turn. `EMSGSIZE` if it is too much for
    /// the queue. What is left of it was not posted. Does not sleep.
    #[inline]
    fn post_or_queue(&mut self, given: &mut Option<Work<H::Cookie>>) -> Result<Turn> {
        let work = given.as_mut().ok_or(EINVAL)?;
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
        if !first || !self.is_ready(work) || !self.has_room(work) {
            return self.queue(given);
        }
        match self.post(work) {
            Err(_) if work.is_posted() => Ok(Turn::Failed),
            posted => posted.map(|()| Turn::Posted),
        }
    }

    /// Lets the work wait for its turn.
    #[cold]
    fn queue(&mut self, given: &mut Option<Work<H::Cookie>>) -> Result<Turn> {
        let work = given.take().ok_or(EINVAL)?;
        trace::waiting(H::ROLE, Waiting::Begins, || self.trace_sq(work.number()));
        match self.pending.push(work) {
            Ok(_) => Ok(Turn::Waits),
            Err(work) => {
                *given = Some(work);
                Err(ENOBUFS)
            }
        }
    }

    /// Posts waiting work in turn, as far as there is room. Returns whether some waited and none is
    /// left. After an error the connection is to be dropped; what is left of the work that comes
    /// with it was not posted.
    fn post_pending(&mut self) -> Result<bool, Work<H::Cookie>> {
        let waited = self.has_pending();
        while self.ring().is_open() {
            let Some(mut work) = self.take_next() else {
                break;
            };
            trace::waiting(H::ROLE, Waiting::Ends, || self.trace_sq(work.number()));
            if self.post(&mut work).is_err() {
                return Err(work);
            }
        }
        Ok(waited && !self.has_pending())
    }

    /// Takes the work whose turn it is, if there is room for it.
    fn take_next(&mut self) -> Option<Work<H::Cookie>> {
        let place = self.first_ready()?;
        if !self.has_room(self.pending.get(place)?) {
            return None;
        }
        self.pending.remove(place)
    }

    /// Posts the work. After an error, what is not left of it counts as posted, since its state is
    /// unknown: the tear-down flushes it.
    #[inline]
    fn post(&mut self, work: &mut Work<H::Cookie>) -> Result {
        let number = work.number();
        let posted = match work {
            Work::Message(message) => self.post_message(message),
            Work::Reads(reading) => self.post_reads(reading),
            Work::Withdrawal(withdrawal) => self.post_withdrawal(withdrawal),
        };
        posted.inspect_err(|e| {
            trace::waiting(H::ROLE, Waiting::NotPosted(*e), || self.trace_sq(number));
        })
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

    /// Posts the work, now or when its turn comes. After an error it was not, and will not be.
    #[inline]
    pub(super) fn post_or_queue(&self, work: Work<H::Cookie>) -> Result {
        let mut given = Some(work);
        let posted = self.lock().post_or_queue(&mut given);
        match posted {
            Ok(Turn::Posted) => Ok(()),
            Ok(Turn::Waits) => {
                self.handler().sq_full();
                Ok(())
            }
            // It is unknown how much of it the device has: it comes back with the tear-down.
            Ok(Turn::Failed) => {
                self.post_failed();
                Ok(())
            }
            Err(e) => {
                if let Some(Work::Message(message)) = given {
                    self.not_posted(message);
                }
                Err(e)
            }
        }
    }

    /// Posts waiting work, since there is room in the send queue; or reports that the connection is
    /// lost. Not with the lock of an RPC held.
    pub(crate) fn make_room(&self) {
        self.lock().make_room();
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
        let fragments = message.fragments.into_iter().flat_map(KBox::into_inner);
        let fragments = fragments.map(|(buffer, _)| buffer);
        for buffer in Iterator::chain(fragments, message.buffer) {
            self.lock().put_buffer(buffer);
        }
    }
}
