// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The regions of one RPC, from the post that registers them to the proof that no peer can reach
//! what they cover.

use crate::kapi::{
    ib::{
        handler::{
            Handler,
            InvalidatedKey, //
        },
        queue_pair::QueuePair,
        region::{
            Invalidating,
            Mapped,
            Region,
            Registered, //
        },
        trace::{
            unmapped,
            Waiter, //
        },
    },
    trace::{
        self,
        CoveredRegion,
        TaskId, //
    },
};
use kernel::{
    alloc::Flags,
    prelude::*, //
};

/// The regions of one RPC.
///
/// # Invariants
///
/// - All of them are of the queue pair with the number `owner`.
/// - The local invalidations of those in `invalidating` were posted at positions of its send queue
///   below `until`.
pub(crate) struct Regions {
    pub(super) mapped: KVec<Region<Mapped>>,
    pub(super) registered: KVec<Region<Registered>>,
    pub(super) invalidating: KVec<Region<Invalidating>>,
    owner: u64,
    until: u64,
}

impl Drop for Regions {
    fn drop(&mut self) {
        self.drop_dead();
        // The RPC's memory may be reused while a peer can reach it.
        kernel::warn_on!(self.fenced().is_none());
    }
}

/// Proof that no peer can reach memory of an RPC (RFC 8166, section 4.4.1).
pub(crate) struct Fenced(());

/// Proof that local invalidations have ended well: all that were posted to one queue pair below a
/// position of its send queue.
pub(crate) struct Invalidated {
    /// The number of the queue pair.
    pub(super) owner: u64,
    pub(super) end: u64,
}

impl Regions {
    /// Room for `n` regions. May sleep as `flags` say.
    pub(crate) fn new(n: usize, flags: Flags) -> Result<Self> {
        Ok(Self {
            mapped: KVec::with_capacity(n, flags)?,
            registered: KVec::with_capacity(n, flags)?,
            invalidating: KVec::with_capacity(n, flags)?,
            owner: 0,
            until: 0,
        })
    }

    /// Makes room for `n` regions in all, where there is less. May sleep as `flags` say.
    pub(crate) fn make_room(&mut self, n: usize, flags: Flags) -> Result {
        self.mapped
            .reserve(n.saturating_sub(self.mapped.len()), flags)?;
        self.registered
            .reserve(n.saturating_sub(self.registered.len()), flags)?;
        self.invalidating
            .reserve(n.saturating_sub(self.invalidating.len()), flags)?;
        Ok(())
    }

    /// Only regions of the queue pair with that number come here, until all have gone again. `EINVAL`
    /// if there are others.
    #[inline]
    pub(super) fn belong_to(&mut self, number: u64) -> Result {
        if self.owner != number {
            if self.count() != 0 {
                return Err(EINVAL);
            }
            // INVARIANT: There are none.
            self.owner = number;
        }
        Ok(())
    }

    /// Whether they are of that queue pair.
    #[inline]
    pub(super) fn are_of<H: Handler>(&self, qp: &QueuePair<H>) -> bool {
        self.owner == qp.number
    }

    /// The registration of those that were mapped was posted, or may have been.
    #[inline(always)]
    pub(super) fn posted(&mut self) {
        for region in self.mapped.drain_all() {
            // All three lists have room for all regions of the RPC.
            let _ = self.registered.push_within_capacity(region.posted());
        }
    }

    /// How many regions there are.
    pub(super) fn count(&self) -> usize {
        self.mapped.len() + self.registered.len() + self.invalidating.len()
    }

    /// How many more regions there is room for: each may come to be in any of the lists.
    pub(crate) fn room(&self) -> usize {
        let least = self.mapped.capacity().min(self.registered.capacity());
        let least = least.min(self.invalidating.capacity());
        least.saturating_sub(self.count())
    }

    /// What trace events say of the region that was mapped last.
    pub(crate) fn last_mapped(&self) -> CoveredRegion {
        let last = self.mapped.last().map(Region::covered);
        last.unwrap_or_default().into()
    }

    /// Lets go of the regions that tear-down has taken from the device.
    #[inline]
    pub(crate) fn drop_dead(&mut self) {
        // As a rule there are none any more.
        if self.fenced().is_none() {
            self.drop_those_dead();
        }
    }

    #[cold]
    fn drop_those_dead(&mut self) {
        self.registered.retain(|region| !region.is_dead());
        self.invalidating.retain(|region| !region.is_dead());
    }

    /// Proof that no peer can reach the memory, if so.
    #[inline]
    pub(crate) fn fenced(&self) -> Option<Fenced> {
        let none = self.registered.is_empty() && self.invalidating.is_empty();
        none.then_some(Fenced(()))
    }
}

impl<H: Handler> QueuePair<H> {
    /// Gives mapped regions back: nothing was posted.
    pub(crate) fn unmap(&self, regions: &mut Regions) {
        let ours = regions.are_of(self);
        for region in regions.mapped.drain_all() {
            let idle = region.unmap(unmapped);
            // One of another queue pair is of no use, and goes with that.
            if ours {
                self.send.lock().give_back_region(idle, false);
            }
        }
    }

    /// The region that was remotely invalidated goes to the pool. Returns whether there was one: false,
    /// too, if the regions or the key are another queue pair's.
    pub(crate) fn remotely_invalidated(
        &self,
        regions: &mut Regions,
        key: InvalidatedKey<'_>,
        task: impl Fn() -> TaskId,
    ) -> bool {
        let key = key.of(self).filter(|_| regions.are_of(self));
        let is_it = |region: &Region<_>| Some(region.rkey()) == key;
        let found = regions.registered.iter().position(is_it);
        // As a rule it is the only one, which need not close a gap.
        let region = match found {
            Some(i) if i + 1 == regions.registered.len() => regions.registered.pop(),
            Some(i) => regions.registered.remove(i).ok(),
            None => None,
        };
        let (Some(region), Some(key)) = (region, key) else {
            return false;
        };
        trace::xprtrdma_mr_reminv(|| (task(), region.covered().into()));
        match region.invalidated_by(key, unmapped) {
            Ok(idle) => {
                self.send.lock().give_back_region(idle, true);
                true
            }
            Err(region) => {
                let _ = regions.registered.push_within_capacity(region);
                false
            }
        }
    }

    /// Posts the local invalidation of all registered regions, for which somebody waits.
    ///
    /// [`Handler::invalidated`] brings the cookie back; where nothing could be posted it comes
    /// back here, with the regions as they were. After any error the connection must be dropped.
    /// `EINVAL` if the regions are another queue pair's.
    pub(crate) fn invalidate(
        &self,
        regions: &mut Regions,
        cookie: H::Cookie,
        waiter: Waiter,
        task: impl Fn() -> TaskId,
    ) -> Result<(), (Error, Option<H::Cookie>)> {
        if trace::on::xprtrdma_mr_localinv() {
            for region in regions.registered.iter() {
                trace::xprtrdma_mr_localinv(|| (task(), region.covered().into()));
            }
        }
        if !regions.are_of(self) {
            return Err((EINVAL, Some(cookie)));
        }
        let keys = regions.registered.iter().map(Region::invalidation);
        let mut send = self.send.lock();
        let result = send.post_invalidations(keys, cookie, waiter);
        let until = send.ring.head();
        drop(send);
        if let Err((e, _)) = &result {
            trace::xprtrdma_post_linv_err(|| (task(), *e));
        }
        if !matches!(result, Err((_, Some(_)))) {
            // INVARIANT: They are in front of the head now.
            regions.until = until;
            for region in regions.registered.drain_all() {
                let _ = regions
                    .invalidating
                    .push_within_capacity(region.invalidation_posted());
            }
        }
        result
    }

    /// All regions being invalidated go to the pool, if that is what has ended well.
    pub(crate) fn invalidation_completed(&self, regions: &mut Regions, done: Invalidated) {
        if !regions.are_of(self) || done.owner != self.number || done.end < regions.until {
            return;
        }
        for region in regions.invalidating.drain_all() {
            let idle = region.completed(unmapped);
            self.send.lock().give_back_region(idle, false);
        }
    }
}
