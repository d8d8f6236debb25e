// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! What a requester posts: registrations with the Send that tells of them, and local invalidations.

use crate::kapi::{
    bindings,
    ib::{
        buffer::DmaBuffer,
        region::{
            Invalidation,
            Mapped,
            Region, //
        },
        send_queue::{
            Owned,
            SendQueue, //
        },
        trace::Waiter, //
    },
    trace::{
        self,
        TaskId, //
    },
};
use kernel::prelude::*;

impl<C> SendQueue<C> {
    /// Posts registrations and a Send of the first `len` bytes of the buffer, in one chain, for a
    /// task or none. The regions are of this queue pair, so they are alive while everything can be posted.
    ///
    /// The registrations each get a slot reserved for the invalidation of their region. On an
    /// error the connection is to be dropped: part of the chain may have been posted.
    pub(in super::super) fn post_send(
        &mut self,
        mapped: &[Region<Mapped>],
        buffer: DmaBuffer,
        len: usize,
        task: impl Fn() -> TaskId,
    ) -> Result {
        let registrations = mapped.len();
        let n = registrations + 1;
        let fits = n <= self.ring.longest_chain() && self.room() >= (n + registrations) as u64;
        if !self.ring.is_open() || !fits {
            self.give_back_buffer(buffer);
            return Err(ENOTCONN);
        }
        for region in mapped {
            trace::xprtrdma_mr_fastreg(|| (task(), region.covered().into()));
        }
        let signaled = self.signal(n, buffer.is_sent_in_place(len));
        trace::xprtrdma_post_send(|| {
            let flag = bindings::ib_send_flags_IB_SEND_SIGNALED;
            (
                self.id_of(buffer.id),
                task(),
                1,
                if signaled { flag } else { 0 },
            )
        });
        // Nobody else asks for their names.
        let named = trace::on::xprtrdma_wc_fastreg();
        let mut chain = self.ring.begin(n)?;
        for region in mapped {
            let (number, registers) = (region.id(), true);
            let owned = named.then_some(Owned::Region {
                region: number,
                registers,
            });
            chain.reg_mr(region, owned);
        }
        chain.send(buffer, len, None, Some(Owned::Send { tag: None }));
        let posted = chain.post(signaled);
        self.reserved += mapped.len() as u32;
        posted.inspect_err(|e| {
            trace::xprtrdma_post_send_err(|| (self.completion_queue, task(), *e));
        })
    }

    /// Posts the registration of a region that is never invalidated, alone.
    ///
    /// On an error the connection is to be dropped: it may have been posted.
    pub(in super::super) fn post_registration(&mut self, region: &Region<Mapped>) -> Result {
        if !self.ring.is_open() || self.room() == 0 {
            return Err(ENOTCONN);
        }
        let signaled = self.signal(1, false);
        let mut chain = self.ring.begin(1)?;
        chain.reg_mr(region, None);
        chain.post(signaled)
    }

    /// Posts local invalidations in one chain, the last one signaled; its completion brings back
    /// the cookie.
    ///
    /// Uses the slots that were reserved when the regions were registered. On an error the
    /// connection is to be dropped; the cookie comes back at once if the device was not asked, and else
    /// with the tear-down.
    pub(in super::super) fn post_invalidations(
        &mut self,
        invalidations: impl ExactSizeIterator<Item = Invalidation>,
        cookie: C,
        waiter: Waiter,
    ) -> Result<(), (Error, Option<C>)> {
        let n = invalidations.len();
        let mut chain = match self.ring.begin(n) {
            Ok(chain) if n != 0 => chain,
            _ => return Err((ENOTCONN, Some(cookie))),
        };
        let named = trace::on::xprtrdma_wc_li();
        let mut cookie = Some(cookie);
        for (i, invalidation) in invalidations.enumerate() {
            let region = invalidation.region;
            // The last one is known anyway.
            let owned = match cookie.take_if(|_| i + 1 == n) {
                Some(cookie) => Some(Owned::Cookie {
                    cookie,
                    region,
                    waiter,
                }),
                None => named.then_some(Owned::Region {
                    region,
                    registers: false,
                }),
            };
            chain.local_inv(invalidation, owned);
        }
        let posted = chain.post(true);
        self.unsignaled = 0;
        self.reserved = self.reserved.saturating_sub(n as u32);
        posted.map_err(|e| (e, None))
    }
}
