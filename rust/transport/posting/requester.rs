// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! What a requester posts: registrations with the Send that tells of them, and local invalidations.

use crate::{
    kapi::{
        ib::{
            DmaBuffer,
            Regions,
            SEND_SIGNALED, //
        },
        trace::{
            self,
            TaskId, //
        },
    },
    transport::{
        endpoint::Handler,
        posting::Sending,
        send_queue::{
            Owned,
            Waiter, //
        },
    },
};
use kernel::prelude::*;

impl<H: Handler> Sending<'_, H> {
    /// Posts the registrations of what is mapped, if there are regions, and a Send of the first
    /// `len` bytes of the buffer, in one chain, for a task or none.
    ///
    /// The registrations each get a slot reserved for the invalidation of their region. On an
    /// error the connection is to be dropped: part of the chain may have been posted.
    pub(in crate::transport) fn post_send(
        &mut self,
        regions: Option<&mut Regions>,
        (buffer, len): (DmaBuffer, usize),
        task: impl Fn() -> TaskId,
    ) -> Result {
        let mapped = regions.as_deref().map_or(&[][..], Regions::mapped);
        let registrations = mapped.len();
        let n = registrations + 1;
        let fits = n <= self.ring().longest_chain() && self.sq_avail() >= n + registrations;
        if !self.ring().is_open() || !fits {
            self.put_buffer(buffer);
            return Err(ENOTCONN);
        }
        for region in mapped {
            trace::xprtrdma_mr_fastreg(|| (task(), region.covered().into()));
        }
        let signaled = self.signal(n, buffer.is_sent_in_place(len));
        trace::xprtrdma_post_send(|| {
            let flags = if signaled { SEND_SIGNALED } else { 0 };
            (self.id_of(buffer.id), task(), 1, flags)
        });
        // Nobody else asks for their names.
        let named = trace::on::xprtrdma_wc_fastreg();
        let mut chain = self.ring_mut().begin(n)?;
        if let Some(regions) = regions {
            regions.register(&mut chain, |region| {
                named.then_some(Owned::Region {
                    region: region.id(),
                    registers: true,
                })
            });
        }
        chain.send(buffer, len, None, Some(Owned::Send { xid: None }));
        let posted = chain.post(signaled);
        self.reserved += registrations as u32;
        posted.inspect_err(|e| {
            trace::xprtrdma_post_send_err(|| (self.qp().cqs().0, task(), *e));
        })
    }

    /// Posts the registration of a region that is never invalidated, alone.
    ///
    /// On an error the connection is to be dropped: it may have been posted.
    pub(in crate::transport) fn post_registration(&mut self, region: &mut Regions) -> Result {
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
    /// connection is to be dropped; the cookie comes back at once if the device was not asked, and
    /// else with the tear-down.
    pub(in crate::transport) fn post_invalidations(
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
        let named = trace::on::xprtrdma_wc_li();
        let (mut cookie, mut left) = (Some(cookie), n);
        regions.invalidate(&mut chain, |registered| {
            let region = registered.id();
            left = left.saturating_sub(1);
            // The last one is known anyway.
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
