// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The life of a Reply that the peer pulls: its regions, its withdrawal and its end.

use crate::{
    kapi::{
        ib::{
            Access,
            Idle,
            Invalidated,
            InvalidatedKey,
            Poster,
            Region,
            Regions, //
        },
        page::ExtentIter,
        sys::time::{
            is_before,
            HZ, //
        },
    },
    transport::{
        endpoint::{
            Endpoint,
            Handler, //
        },
        memory_retry::MemoryRetry,
        provided::{
            Provided,
            ProvidedLimits,
            Withdrawal, //
        },
        provided_total::ProvidedShare,
        trace::segment,
    },
};
use kernel::{
    prelude::*,
    time::Jiffies, //
};
use xdr::Segment;

/// A Reply that is about to be provided.
pub(crate) struct Providing<'a, H: Handler> {
    provided: Option<KBox<Provided>>,
    segments: KVec<Segment>,
    limits: ProvidedLimits,
    /// Keeps the tear-down from deregistering mapped regions before they are posted or given back.
    poster: Poster<'a>,
    endpoint: &'a Endpoint<H>,
}

impl<H: Handler> Endpoint<H> {
    /// Begins to provide a Reply, for which the bytes of `share` are held, and which the peer may
    /// read until `end`. An earlier Reply with the same XID is withdrawn. `EMSGSIZE` if that is
    /// beyond `limits`. May sleep.
    pub(crate) fn provide(
        &self,
        xid: u32,
        share: ProvidedShare,
        end: Jiffies,
        limits: &ProvidedLimits,
    ) -> Result<Providing<'_, H>> {
        self.withdraw_where(|provided| provided.xid == xid, |_| ());
        let poster = self.enter()?;
        let most = self.plan().qp.max_regs as usize;
        let bytes = share.bytes();
        let mut provided = KBox::new(
            Provided {
                xid,
                number: 0,
                regions: Regions::new(most, GFP_KERNEL)?,
                share,
                end,
                withdrawn: false,
            },
            GFP_KERNEL,
        )?;
        let segments = KVec::with_capacity(most, GFP_KERNEL)?;
        let mut queue = self.lock();
        queue.provided.let_in(bytes, limits)?;
        provided.number = queue.next_id();
        drop(queue);
        Ok(Providing {
            provided: Some(provided),
            segments,
            limits: *limits,
            poster,
            endpoint: self,
        })
    }

    /// Takes or makes an idle region for a Reply with that share. `EMSGSIZE` if all regions within
    /// the limits are in use. May sleep to make one.
    fn region_to_provide(
        &self,
        share: &ProvidedShare,
        limits: &ProvidedLimits,
    ) -> Result<Region<Idle>> {
        let mut may_be_made = true;
        loop {
            let mut queue = self.lock();
            if let Some(region) = queue.get_region() {
                let left = queue.idle_regions();
                queue.provided.idle_left(left);
                return Ok(region);
            }
            drop(queue);
            if !may_be_made {
                return Err(EMSGSIZE);
            }
            let one = share.take_region(limits.regions_of_all)?;
            may_be_made = self.grow_regions(1, limits.regions)? != 0;
            if may_be_made {
                self.lock().provided.add_region(one);
            }
        }
    }

    /// Deregisters the regions that were idle ever since the last call of this function. Returns
    /// whether any regions are left. May sleep.
    pub(crate) fn trim_regions(&self) -> bool {
        let mut queue = self.lock();
        let idle = queue.idle_regions();
        let surplus = queue.provided.long_idle(idle);
        drop(queue);
        for _ in 0..surplus {
            let Some(region) = self.lock().give_up_region() else {
                break;
            };
            self.dealloc_mr(region);
            self.lock().provided.put_region();
        }
        self.lock().has_regions()
    }

    /// Handles the peer's report that it has pulled the Reply with this XID, or does not want it. A
    /// report for no Reply has no effect. `key` is the key that the report has invalidated.
    /// `EINVAL` for a key of another Reply: the connection must go. Does not sleep.
    pub(crate) fn pulled(&self, xid: u32, key: Option<InvalidatedKey<'_>>) -> Result {
        let taken = self.lock().provided.pulled(xid, key.as_ref())?;
        let Some(mut provided) = taken else {
            return Ok(());
        };
        let idle = key.and_then(|key| provided.regions.invalidated_by(key, |_| (), drop));
        if let Some(idle) = idle {
            self.lock().put_region(idle, false);
        }
        if provided.regions.is_fenced() {
            self.let_out(provided);
            return Ok(());
        }
        let number = provided.number;
        let registered = provided.regions.registered().len();
        self.lock().provided.add(provided);
        self.post_or_queue(&mut Withdrawal { number, registered })
    }

    /// Withdraws the Replies that have expired at `now`. Returns their number, and the time when
    /// the next one expires, if there is one. `tell` is called with their XIDs. Does not sleep.
    pub(crate) fn withdraw_overdue(
        &self,
        now: Jiffies,
        tell: impl FnMut(u32),
    ) -> (usize, Option<Jiffies>) {
        let withdrawn = self.withdraw_where(|provided| !is_before(now, provided.end), tell);
        let queue = self.lock();
        let provided = &queue.provided;
        // Some Replies may still wait to be posted.
        let later = || (!provided.is_empty()).then(|| now.wrapping_add(HZ));
        (withdrawn, provided.next_end().or_else(later))
    }

    /// Returns the time when the first Reply expires, if there is one.
    pub(crate) fn first_provided_end(&self) -> Option<Jiffies> {
        self.lock().provided.next_end()
    }

    /// Withdraws one Reply that expires at `end` or before, ahead of time. Returns the number of
    /// bytes held for it. `tell` is called with its XID. Does not sleep.
    pub(crate) fn withdraw_early(&self, end: Jiffies, tell: impl FnOnce(u32)) -> Option<usize> {
        self.withdraw_one(|provided| !is_before(end, provided.end), tell)
    }

    /// Withdraws all `chosen` Replies. Returns their number.
    fn withdraw_where(
        &self,
        chosen: impl Fn(&Provided) -> bool,
        mut tell: impl FnMut(u32),
    ) -> usize {
        let mut withdrawn = 0;
        while self.withdraw_one(&chosen, &mut tell).is_some() {
            withdrawn += 1;
        }
        withdrawn
    }

    /// Withdraws one `chosen` Reply, if there is one, by the invalidation of its regions. Returns
    /// the number of bytes held for it.
    fn withdraw_one(
        &self,
        chosen: impl Fn(&Provided) -> bool,
        tell: impl FnOnce(u32),
    ) -> Option<usize> {
        let (mut withdrawal, xid, bytes) = self.lock().provided.withdraw(chosen)?;
        tell(xid);
        match self.post_or_queue(&mut withdrawal) {
            // If the connection ends, all regions go with it.
            Ok(()) | Err(ENOTCONN) => (),
            // Otherwise it has to end, or the peer could read the Reply as long as it lasts.
            Err(_) => self.post_failed(),
        }
        Some(bytes)
    }

    /// Handles the end of the local invalidations of a withdrawn Reply, a success if there is a
    /// `done`. After a failure the Reply stays until the tear-down has deregistered its regions.
    pub(super) fn withdrawn(&self, number: u32, done: Option<Invalidated>) {
        let Some(done) = done else { return };
        let taken = self
            .lock()
            .provided
            .take(|provided| provided.number == number);
        let Some(mut provided) = taken else { return };
        while let Some(idle) = provided.regions.completed(&done, drop) {
            self.lock().put_region(idle, false);
        }
        self.let_out(provided);
    }

    /// Removes a Reply whose regions are invalid or were never registered.
    pub(super) fn let_out(&self, mut provided: KBox<Provided>) {
        while let Some(idle) = provided.regions.unmap(drop) {
            self.lock().put_region(idle, false);
        }
        self.lock().provided.let_out(&mut provided);
    }
}

impl Provided {
    /// Returns the number of bytes that its regions cover, before they are posted.
    pub(crate) fn bytes(&self) -> usize {
        let mapped = self.regions.mapped().iter();
        mapped
            .map(|region| region.covered().key.length as usize)
            .sum()
    }
}

impl<'a, H: Handler> Providing<'a, H> {
    /// Adds pieces of the Reply, behind those added before. `EMSGSIZE` if that needs more regions
    /// than there can be; otherwise the errors of [`Region::map`]. May sleep.
    pub(crate) fn add(&mut self, pieces: &mut ExtentIter<'_>) -> Result {
        let provided = self.provided.as_mut().ok_or(EINVAL)?;
        let mut retry = MemoryRetry::of(H::ROLE);
        while pieces.remaining() != 0 {
            if provided.regions.avail() == 0 {
                return Err(EMSGSIZE);
            }
            let region = self
                .endpoint
                .region_to_provide(&provided.share, &self.limits)?;
            let what = (&mut *pieces, Access::RemoteRead, provided.xid);
            match provided.regions.map(region, &self.poster, what) {
                Ok(key) => self
                    .segments
                    .push_within_capacity(segment(key))
                    .map_err(|_| EMSGSIZE)?,
                Err((why, region)) => {
                    self.endpoint.lock().put_region(region, false);
                    retry.wait(why.error)?;
                }
            }
        }
        Ok(())
    }

    /// Returns the segments of the Read chunk for the pieces that were added.
    pub(crate) fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// Takes the Reply to post it, while this keeps the tear-down away.
    pub(super) fn take(&mut self) -> Option<KBox<Provided>> {
        self.provided.take()
    }
}

impl<H: Handler> Drop for Providing<'_, H> {
    fn drop(&mut self) {
        if let Some(provided) = self.provided.take() {
            self.endpoint.let_out(provided);
        }
    }
}
