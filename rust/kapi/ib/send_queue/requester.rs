// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! What a requester posts: registrations with the Send that tells of them, and local invalidations.

use crate::kapi::{
    bindings,
    ib::{
        buffer::DmaBuffer,
        region::{
            Armed,
            Invalidation,
            Region,
            Registration, //
        },
        send_queue::{
            Gate,
            Held,
            SendQueue,
            WorkRequest, //
        },
        trace::{
            Purpose,
            Waiter, //
        },
    },
    trace::{
        self,
        TaskId, //
    },
};
use kernel::prelude::*;

impl<C> SendQueue<C> {
    /// Posts registrations and a Send of the first `len` bytes of the buffer, in one chain, for a
    /// task or none. The regions are of this queue pair, so they are alive while its gate is open.
    ///
    /// The registrations each get a slot reserved for the invalidation of their region. On an
    /// error the connection is to be dropped: part of the chain may have been posted.
    pub(in super::super) fn post_send(
        &mut self,
        armed: &[Region<Armed>],
        buffer: DmaBuffer,
        len: usize,
        task: impl Fn() -> TaskId,
    ) -> Result {
        let registrations = armed.len();
        let n = registrations + 1;
        let fits = n <= self.chain.len() && self.room() >= (n + registrations) as u64;
        if self.gate != Gate::Open || !fits {
            self.give_back_buffer(buffer);
            return Err(ENOTCONN);
        }
        for (i, region) in armed.iter().enumerate() {
            trace::xprtrdma_mr_fastreg(|| (task(), region.covered()));
            self.write_registration(i, &region.registration(), false);
        }

        // siw sends unsignaled requests in place and completes them before the peer has them,
        // except from slab memory, which it copies.
        let in_place = len >= kernel::page::PAGE_SIZE && !buffer.is_slab();
        let signaled = self.signal(n, in_place);
        buffer.sync_for_device(len);
        self.element = bindings::ib_sge {
            addr: buffer.dma_addr(),
            length: len as u32,
            lkey: self.lkey,
        };
        let slot = self.slot_of(self.head + registrations as u64);
        let mut wr = self.request(slot, bindings::ib_wr_opcode_IB_WR_SEND, signaled);
        wr.sg_list = &mut self.element;
        wr.num_sge = 1;
        trace::xprtrdma_post_send(|| (buffer.id, task(), 1, wr.send_flags));
        self.write_request(registrations, WorkRequest { plain: wr });

        let (taken, result) = self.post_chain(n);
        if let Err(e) = result {
            trace::xprtrdma_post_send_err(|| (self.completion_queue, task(), e));
        }
        if trace::on::xprtrdma_wc_fastreg() {
            let posted = armed.iter().map(Region::id).take(taken);
            self.name_requests(Purpose::Registration, posted);
        }
        if taken == n {
            self.hold(slot, Held::Buffer(buffer));
        } else {
            self.give_back_buffer(buffer);
        }
        self.head += taken as u64;
        self.reserved += taken.min(registrations) as u32;
        result
    }

    /// Posts the registration of a region that is never invalidated, alone.
    ///
    /// On an error the connection is to be dropped: it may have been posted.
    pub(in super::super) fn post_registration(&mut self, registration: &Registration) -> Result {
        if self.gate != Gate::Open || self.room() == 0 {
            return Err(ENOTCONN);
        }
        let signaled = self.signal(1, false);
        self.write_registration(0, registration, signaled);
        let (taken, result) = self.post_chain(1);
        self.head += taken as u64;
        result
    }

    /// Posts local invalidations in one chain, the last one signaled; its completion brings back
    /// the cookie.
    ///
    /// Uses the slots that were reserved when the regions were registered. On an error the
    /// connection is to be dropped; the cookie comes back with the drain if part of the chain was
    /// posted, at once if nothing was.
    pub(in super::super) fn post_invalidations(
        &mut self,
        invalidations: impl ExactSizeIterator<Item = Invalidation> + Clone,
        cookie: C,
        waiter: Waiter,
    ) -> Result<(), (Error, Option<C>)> {
        let n = invalidations.len();
        if !matches!(self.gate, Gate::Open | Gate::Fencing)
            || n == 0
            || n > self.chain.len()
            || (n as u64) > self.room() + u64::from(self.reserved)
        {
            return Err((ENOTCONN, Some(cookie)));
        }
        for (i, Invalidation { rkey, .. }) in invalidations.clone().enumerate() {
            let last = i + 1 == n;
            let slot = self.slot_of(self.head + i as u64);
            let mut wr = self.request(slot, bindings::ib_wr_opcode_IB_WR_LOCAL_INV, last);
            wr.ex.invalidate_rkey = rkey;
            self.write_request(i, WorkRequest { plain: wr });
        }
        self.unsignaled = 0;
        let (taken, result) = self.post_chain(n);
        self.reserved = self.reserved.saturating_sub(taken as u32);
        let posted = invalidations.map(|each| each.region).take(taken);
        let rest = match posted.clone().last() {
            None => Some(cookie),
            Some(region) => {
                let held = Held::Cookie {
                    cookie,
                    whole: taken == n,
                    waiter,
                    id: self.id_of(region),
                };
                self.hold(self.slot_of(self.head + taken as u64 - 1), held);
                None
            }
        };
        if trace::on::xprtrdma_wc_li() {
            // The last one is known anyway.
            let others = posted.take(taken.saturating_sub(1));
            self.name_requests(Purpose::Invalidation, others);
        }
        self.head += taken as u64;
        result.map_err(|e| (e, rest))
    }

    /// Writes a registration as the work request at chain index `i`.
    fn write_registration(&mut self, i: usize, registration: &Registration, signaled: bool) {
        let slot = self.slot_of(self.head + i as u64);
        let wr = bindings::ib_reg_wr {
            wr: self.request(slot, bindings::ib_wr_opcode_IB_WR_REG_MR, signaled),
            mr: registration.mr,
            key: registration.rkey,
            access: registration.access.as_raw() as i32,
        };
        self.write_request(i, WorkRequest { registration: wr });
    }

    /// Trace events will know the requests from the head on, which are for these regions.
    fn name_requests(&mut self, purpose: Purpose, regions: impl Iterator<Item = u32>) {
        for (i, region) in regions.enumerate() {
            let id = self.id_of(region);
            self.hold(
                self.slot_of(self.head + i as u64),
                Held::Region { purpose, id },
            );
        }
    }
}
