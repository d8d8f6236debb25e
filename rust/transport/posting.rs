// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The chain of each kind of post: its requests, whether it is signaled, and what each slot owns.
//!
//! After an error the connection is to be dropped. Whatever is not left with the poster counts as
//! posted, since its state is unknown: the tear-down flushes it.

use crate::{
    kapi::{
        ib::{
            Chain,
            Reading,
            Regions,
            SEND_SIGNALED, //
        },
        trace::{
            self as events,
            TaskId, //
        }, //
    },
    transport::{
        endpoint::{
            Handler,
            Sending, //
        },
        flow::charge::Charge,
        plan::UNSIGNALED_RUN,
        provided::Withdrawal,
        trace,
        work::{
            Message,
            Owned,
            Read,
            Waiter,
            Writes, //
        },
    },
};
use kernel::prelude::*;
use xdr::{
    FixedHeader,
    Role, //
};

/// A chain of requests of a send queue.
type WrChain<'a, H> = Chain<'a, Owned<<H as Handler>::Cookie>, Read<<H as Handler>::Cookie>>;

impl<H: Handler> Sending<'_, H> {
    /// Decides whether the chain of `n` requests is to be signaled, and counts them.
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

    /// Posts a Call, or another message of a requester, with the registrations of the regions
    /// mapped for it, for a task or none: there is room, since its sender has seen that.
    ///
    /// A slot is reserved for the invalidation of each registered region.
    pub(super) fn post_call(
        &mut self,
        message: &mut Message,
        regions: Option<&mut Regions>,
        task: impl Fn() -> TaskId,
    ) -> Result {
        let mapped = regions.as_deref().map_or(&[][..], Regions::mapped);
        let registrations = mapped.len();
        let n = registrations + message.sends();
        let fits = n <= self.ring().longest_chain() && self.sq_avail() >= n + registrations;
        if !self.ring().is_open() || !fits {
            return Err(ENOTCONN);
        }
        for region in mapped {
            events::xprtrdma_mr_fastreg(|| (task(), region.covered().into()));
        }
        let posted = self.post_chain(message, regions, false, &task);
        if message.is_posted() {
            self.reserved += registrations as u32;
        }
        posted.inspect_err(|e| {
            events::xprtrdma_post_send_err(|| (self.qp().cqs().0, task(), *e));
        })
    }

    /// Posts a message whose turn it is.
    #[inline]
    pub(super) fn post_message(&mut self, message: &mut Message) -> Result {
        let mut provided = message.provided.take();
        // A provided Reply must be withdrawn in time.
        let signaled = provided.is_some();
        let regions = provided
            .as_deref_mut()
            .map(|provided| &mut provided.regions);
        let task = message.task.unwrap_or(TaskId::NONE);
        let posted = self.post_chain(message, regions, signaled, || task);
        match provided {
            // Also if it is unknown what was posted: it goes with the tear-down then.
            Some(provided) if message.is_posted() => self.provided.add(provided),
            provided => message.provided = provided,
        }
        posted
    }

    /// Writes the credit word of a message that is about to be posted. Returns whether a buffer of
    /// it holds memory of others, and is to come back soon. `EINVAL` without a buffer.
    #[inline]
    fn stamp(&mut self, message: &mut Message) -> Result<bool> {
        let (qp, sends) = (self.qp(), message.sends() as u32);
        let buffer = message.buffer.as_mut().ok_or(EINVAL)?;
        let mut in_place = buffer.is_sent_in_place(message.len);
        let Some(charge) = message.charge else {
            return Ok(in_place);
        };
        let word = self.flow.stamp(charge, sends, || qp.posted_receives());
        if charge == Charge::Beside {
            trace::grant(H::ROLE, || (qp.cqs().1, word, true));
        }
        FixedHeader::set_credits(buffer.as_mut_slice(), word);
        if let Some(front) = &mut message.front {
            for (fragment, len) in front.fragments.iter_mut() {
                FixedHeader::set_credits(fragment.as_mut_slice(), word);
                in_place |= fragment.is_sent_in_place(*len);
            }
        }
        Ok(in_place)
    }

    /// Posts RDMA Writes, registrations and the Send of a message in one chain.
    #[inline]
    fn post_chain(
        &mut self,
        message: &mut Message,
        regions: Option<&mut Regions>,
        signaled: bool,
        task: impl Fn() -> TaskId,
    ) -> Result {
        let in_place = self.stamp(message)?;
        let (sends, writes) = (message.sends(), message.writes());
        let n = regions
            .as_deref()
            .map_or(0, |regions| regions.mapped().len())
            + sends;
        let signaled = self.signal(writes + n, signaled || in_place || writes != 0);
        trace::message_posted(H::ROLE, || {
            let flags = if signaled { SEND_SIGNALED } else { 0 };
            (
                self.id_of(message.number()),
                message.invalidate,
                task(),
                flags,
            )
        });
        let mut chain = match message.writes.take() {
            None => self.ring_mut().begin(n)?,
            Some(writes) => self.begin_writes(message, writes, n)?,
        };
        if let Some(regions) = regions {
            // Only these trace events ask for their names.
            let named = H::ROLE == Role::Requester && events::on::xprtrdma_wc_fastreg();
            regions.register(&mut chain, |region| {
                named.then_some(Owned::Region {
                    region: region.id(),
                    registers: true,
                })
            });
        }
        if let Some(front) = message.front.take() {
            for (fragment, len) in KBox::into_inner(front).fragments {
                let owned = Owned::Send { xid: message.xid };
                chain.send(fragment, len, None, Some(owned));
            }
        }
        if let Some(buffer) = message.buffer.take() {
            let owned = Owned::Send { xid: message.xid };
            chain.send(buffer, message.len, message.invalidate, Some(owned));
        }
        chain.post(signaled)
    }

    /// Begins a chain of `n` requests behind RDMA Writes of the message, which go back to it if it
    /// does not begin.
    #[inline(never)]
    fn begin_writes(
        &mut self,
        message: &mut Message,
        writes: Writes,
        n: usize,
    ) -> Result<WrChain<'_, H>> {
        let xid = message.xid;
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
            message.writes = Some(Writes {
                transfer,
                number,
                reply_chunk_from,
            });
            e
        })
    }

    /// Posts RDMA Reads.
    pub(super) fn post_reads(&mut self, reads: &mut Option<Reading<Read<H::Cookie>>>) -> Result {
        let mut reading = reads.take().ok_or(EINVAL)?;
        let id = self.id_of(reading.owned.number);
        reading.owned.posted = trace::read_posted(H::ROLE, id, &reading.transfer);
        self.ring_mut().post_reads(reading).map_err(|(e, left)| {
            *reads = left;
            e
        })
    }

    /// Posts the local invalidations of a Reply that is withdrawn, if it is still in the table.
    pub(super) fn post_withdrawal(&mut self, withdrawal: &mut Withdrawal) -> Result {
        let (number, left) = (withdrawal.number, &mut withdrawal.registered);
        let (ring, pools) = self.parts();
        let Some(regions) = pools.provided.withdrawn_regions(number) else {
            return Ok(());
        };
        let mut chain = ring.begin(*left)?;
        regions.invalidate(&mut chain, |_| {
            *left = left.saturating_sub(1);
            (*left == 0).then_some(Owned::Withdrawn { number })
        });
        let posted = chain.post(true);
        self.unsignaled = 0;
        posted
    }

    /// Posts the registration of a region that is never invalidated, alone.
    pub(super) fn post_registration(&mut self, region: &mut Regions) -> Result {
        if !self.ring().is_open() || self.sq_avail() == 0 {
            return Err(ENOTCONN);
        }
        let signaled = self.signal(1, false);
        let mut chain = self.ring_mut().begin(1)?;
        region.register(&mut chain, |_| None);
        chain.post(signaled)
    }

    /// Posts local invalidations in one chain, the last one signaled; its completion brings back
    /// the cookie.
    ///
    /// Uses the slots that were reserved when the regions were registered. On an error the
    /// connection is to be dropped; the cookie comes back at once if nothing was posted, and
    /// otherwise with the tear-down.
    pub(super) fn post_invalidations(
        &mut self,
        regions: &mut Regions,
        cookie: H::Cookie,
        waiter: Waiter,
    ) -> Result<(), (Error, Option<H::Cookie>)> {
        let n = regions.registered().len();
        let mut chain = match self.ring_mut().begin(n) {
            Ok(chain) if n != 0 => chain,
            _ => return Err((ENOTCONN, Some(cookie))),
        };
        let named = events::on::xprtrdma_wc_li();
        let (mut cookie, mut left) = (Some(cookie), n);
        regions.invalidate(&mut chain, |registered| {
            let region = registered.id();
            left = left.saturating_sub(1);
            // The last one is named by its cookie.
            match cookie.take_if(|_| left == 0) {
                Some(cookie) => Some(Owned::Cookie {
                    cookie,
                    region,
                    waiter,
                }),
                None => named.then_some(Owned::Region {
                    region,
                    registers: false,
                }),
            }
        });
        let posted = chain.post(true);
        self.unsignaled = 0;
        self.reserved = self.reserved.saturating_sub(n as u32);
        posted.map_err(|e| (e, None))
    }
}
