// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! What both ends post, and how it comes back.

mod requester;
mod responder;

pub(super) use self::responder::{
    PostOutcome,
    Work, //
};

use crate::{
    kapi::{
        ib::{
            DmaBuffer,
            Locked,
            Posted,
            RwCtx,
            SendDone, //
        },
        trace::CompletionId, //
    },
    transport::{
        endpoint::{
            Endpoint,
            Handler,
            Parts, //
        },
        send_queue::{
            Owned,
            UNSIGNALED_RUN, //
        },
        trace::{
            self,
            WrKind, //
        },
    },
};
use kernel::prelude::*;
use xdr::Role;

/// The send queue of an endpoint, locked.
pub(super) type Sending<'a, H> = Locked<'a, Parts<H>>;

impl<H: Handler> Sending<'_, H> {
    /// What trace events call the requests of that buffer, transfer or region.
    #[inline]
    pub(super) fn id_of(&self, number: u32) -> CompletionId {
        CompletionId::new(self.qp().cqs().0, number)
    }

    /// Slots that neither hold a request nor wait for the invalidation of a registered region.
    #[inline]
    pub(super) fn sq_avail(&self) -> usize {
        let avail = self.ring().sq_avail();
        avail.saturating_sub(self.reserved) as usize
    }

    /// Takes a buffer for a Call, if there is one and room for the longest. What comes back by
    /// itself has room beside that, and for another Call: so it never waits for a Reply.
    #[inline(always)]
    pub(super) fn get_call_buffer(&mut self) -> Result<Option<DmaBuffer>> {
        let beside = match self.longest_read {
            0 => 0,
            // It may be the word to the server that has given back the Call's credit: that goes
            // first, though there may be room for the Call already.
            _ if self.has_pending() && self.ring().is_open() => return Err(EAGAIN),
            longest => longest + self.longest_call,
        };
        self.get_buffer_beside(beside)
    }

    /// Takes a buffer for another Send, if there is one and room that is not a Call's.
    #[inline(always)]
    pub(super) fn get_buffer(&mut self) -> Result<Option<DmaBuffer>> {
        self.get_buffer_beside(0)
    }

    #[inline(always)]
    fn get_buffer_beside(&mut self, beside: u32) -> Result<Option<DmaBuffer>> {
        if !self.ring().is_open() {
            return Err(ENOTCONN);
        }
        // What a responder posts waits for room by itself.
        let room = (self.longest_call + beside) as usize;
        if H::ROLE == Role::Requester && self.sq_avail() < room {
            return Err(EAGAIN);
        }
        self.take_buffer()
    }

    /// Takes a buffer for a Send that waits for room by itself.
    #[inline(always)]
    pub(super) fn take_buffer(&mut self) -> Result<Option<DmaBuffer>> {
        if !self.ring().is_open() {
            return Err(ENOTCONN);
        }
        // As long as more can be made, one stays back for when they cannot.
        let back = usize::from(self.made < self.limit);
        if self.buffers.len() > back {
            return Ok(self.buffers.pop());
        }
        if self.made == self.limit {
            return Err(EAGAIN);
        }
        // The caller makes one, outside the lock.
        self.made += 1;
        Ok(None)
    }

    /// Takes a buffer of the pool, if there is one and room for a Send.
    pub(super) fn get_pooled(&mut self) -> Option<DmaBuffer> {
        if !self.ring().is_open() || self.sq_avail() < self.longest_call as usize {
            return None;
        }
        let buffer = self.buffers.pop()?;
        self.short = true;
        Some(buffer)
    }

    /// Whether the chain of `n` requests is to be signaled; keeps count.
    fn signal(&mut self, n: usize, must: bool) -> bool {
        self.unsignaled += n as u32;
        // At least one chain in every half of the queue is signaled, whatever their lengths, and
        // the last buffer must come back: there may be no memory for another.
        let last = self.buffers.is_empty() && (self.short || self.made == self.limit);
        let quarter = self.unsignaled as usize >= self.ring().capacity() / 4;
        if must || last || quarter || self.unsignaled >= UNSIGNALED_RUN {
            self.unsignaled = 0;
            self.short = false;
            return true;
        }
        false
    }

    /// Retires what was done, and hands out the cookies among it, without the lock.
    pub(super) fn retire(mut self, done: &SendDone) -> Self {
        let told = done.wc().is_ok() && trace::tells_of_ends(H::ROLE);
        let qp = self.qp();
        loop {
            let (ring, queue) = self.parts();
            let handed = ring.retire(done, |posted, transfer| {
                if told {
                    tell_of_end(qp, posted);
                }
                if let Some(buffer) = posted.buffer.take() {
                    queue.put_buffer(buffer);
                }
                let cookie = matches!(
                    posted.owned,
                    Some(Owned::Cookie { .. } | Owned::Withdrawn { .. })
                );
                if cookie || transfer.is_some() {
                    return Some((posted.owned.take(), transfer));
                }
                // No other has anything to drop.
                core::mem::forget(posted.owned.take());
                None
            });
            match handed {
                Some((owned, transfer)) => self = self.hand_out(owned, transfer, done),
                None => return self,
            }
        }
    }

    /// Hands out what a retired slot had, without the lock.
    #[inline(never)]
    fn hand_out(
        self,
        owned: Option<Owned<H::Cookie>>,
        transfer: Option<KBox<RwCtx>>,
        done: &SendDone,
    ) -> Self {
        let qp = self.qp();
        if let (
            Some(transfer),
            Some(Owned::Write {
                transfer: number, ..
            }),
        ) = (&transfer, &owned)
        {
            trace::released(H::ROLE, self.id_of(*number), transfer);
        }
        drop(self);
        if let Some(transfer) = transfer {
            // Its pages go outside the lock.
            drop(transfer);
        }
        match owned {
            Some(Owned::Cookie { cookie, .. }) => {
                qp.handler().invalidated(qp, cookie, done.invalidated());
            }
            Some(Owned::Withdrawn { number }) => qp.withdrawn(number, done.invalidated()),
            _ => (),
        }
        qp.lock()
    }

    /// What the request at a position is for, and what it is called in trace events.
    pub(super) fn kind_of(&self, position: u64) -> Option<(WrKind, CompletionId)> {
        name(self.qp(), self.ring().posted_at(position)?)
    }

    /// For whom the request at a position is.
    pub(super) fn xid_of(&self, position: u64) -> Option<u32> {
        match self.ring().posted_at(position)?.owned.as_ref()? {
            Owned::Send { xid } | Owned::Write { xid, .. } => *xid,
            Owned::Region { .. } | Owned::Cookie { .. } | Owned::Withdrawn { .. } => None,
        }
    }
}

/// Tells who listens of the end of a request.
#[cold]
fn tell_of_end<H: Handler>(endpoint: &Endpoint<H>, posted: &Posted<Owned<H::Cookie>>) {
    if let Some((kind, id)) = name(endpoint, posted) {
        trace::ended(H::ROLE, kind, id);
    }
}

/// What a request is for, and what it is called in trace events.
fn name<H: Handler>(
    endpoint: &Endpoint<H>,
    posted: &Posted<Owned<H::Cookie>>,
) -> Option<(WrKind, CompletionId)> {
    let (kind, number) = match posted.owned.as_ref()? {
        Owned::Send { .. } => (WrKind::Send, posted.buffer.as_ref().map_or(0, |b| b.id)),
        Owned::Write {
            transfer,
            reply_chunk,
            last,
            ..
        } => (
            WrKind::Write {
                reply_chunk: *reply_chunk,
                last: *last,
            },
            *transfer,
        ),
        Owned::Region {
            region,
            registers: true,
        } => (WrKind::Registration, *region),
        Owned::Region { region, .. } => (WrKind::Invalidation, *region),
        Owned::Cookie { region, waiter, .. } => (WrKind::LastInvalidation(*waiter), *region),
        Owned::Withdrawn { number } => (WrKind::Invalidation, *number),
    };
    Some((kind, CompletionId::new(endpoint.cqs().0, number)))
}
