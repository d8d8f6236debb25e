// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The regions of one message, which can be looked at together: whether a peer can reach memory of
//! it.

#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
mod tests;

use crate::kapi::{
    ib::{
        gate::Poster,
        mr::{
            Access,
            Covered,
            NotMapped,
            RemoteKey, //
        },
        region::{
            Idle,
            Invalidated,
            InvalidatedKey,
            Invalidating,
            Mapped,
            Region,
            Registered, //
        },
        ring::Chain, //
    },
    page::ExtentIter,
    sys::warn::warn_if, //
};
use kernel::{
    alloc::Flags,
    prelude::*, //
};

/// The regions of one message, from the one that is mapped first to the last that is idle again.
///
/// Dropped while a peer can reach memory, it says so in the log: that memory may be reused.
///
/// # Invariants
///
/// - `mapped` are of one queue pair.
/// - Each list has room for all regions.
pub(crate) struct Regions {
    mapped: KVec<Region<Mapped>>,
    registered: KVec<Region<Registered>>,
    invalidating: KVec<Region<Invalidating>>,
}

impl Drop for Regions {
    fn drop(&mut self) {
        let fenced = self.drop_dead();
        warn_if(!fenced);
    }
}

impl Regions {
    /// Makes room for `n` regions. May sleep as `flags` say.
    pub(crate) fn new(n: usize, flags: Flags) -> Result<Self> {
        Ok(Self {
            mapped: KVec::with_capacity(n, flags)?,
            registered: KVec::with_capacity(n, flags)?,
            invalidating: KVec::with_capacity(n, flags)?,
        })
    }

    /// Makes room for `n` regions in all, where there is less. May sleep as `flags` say.
    pub(crate) fn reserve(&mut self, n: usize, flags: Flags) -> Result {
        self.mapped
            .reserve(n.saturating_sub(self.mapped.len()), flags)?;
        self.registered
            .reserve(n.saturating_sub(self.registered.len()), flags)?;
        self.invalidating
            .reserve(n.saturating_sub(self.invalidating.len()), flags)?;
        Ok(())
    }

    /// Returns the number of regions.
    pub(crate) fn len(&self) -> usize {
        self.mapped.len() + self.registered.len() + self.invalidating.len()
    }

    /// Returns the number of regions that there is more room for: each may come to be in any of the
    /// lists.
    pub(crate) fn avail(&self) -> usize {
        let least = self.mapped.capacity().min(self.registered.capacity());
        let least = least.min(self.invalidating.capacity());
        least.saturating_sub(self.len())
    }

    /// Returns the regions that are mapped, and not registered.
    pub(crate) fn mapped(&self) -> &[Region<Mapped>] {
        &self.mapped
    }

    /// Returns whether regions are mapped for another queue pair than that of this number.
    pub(crate) fn others_than(&self, owner: u64) -> bool {
        let one = self.mapped.first();
        one.is_some_and(|region| region.owner() != owner)
    }

    /// Returns the regions that are registered, and not being invalidated.
    pub(crate) fn registered(&self) -> &[Region<Registered>] {
        &self.registered
    }

    /// Returns whether the key is that of one that is registered, or being invalidated.
    pub(crate) fn have(&self, key: &InvalidatedKey<'_>) -> bool {
        let mut registered = self.registered.iter();
        let mut invalidating = self.invalidating.iter();
        registered.any(|region| region.is_invalidated_by(key))
            || invalidating.any(|region| region.is_invalidated_by(key))
    }

    /// Covers as many of the pieces as fit into one more region, and says what it covers, as
    /// [`Region::map`]. `ENOBUFS`, too, without room for it, `EINVAL` beside regions of another
    /// queue pair. The region comes back where nothing was mapped.
    pub(crate) fn map(
        &mut self,
        region: Region<Idle>,
        poster: &Poster<'_>,
        (pieces, access, tag): (&mut ExtentIter<'_>, Access, u32),
    ) -> Result<RemoteKey, (NotMapped, Region<Idle>)> {
        if self.avail() == 0 {
            return Err((NotMapped::nothing(ENOBUFS), region));
        }
        // INVARIANT: So it is of the same queue pair as all of them.
        if self.others_than(region.owner()) {
            return Err((NotMapped::nothing(EINVAL), region));
        }
        let mapped = region.map(poster, pieces, access, tag)?;
        let key = mapped.key();
        // There is room, by the check above.
        let _ = self.mapped.push_within_capacity(mapped);
        Ok(key)
    }

    /// Gives a mapped region back, if there is one: nothing was posted. `tell` is told what was
    /// covered.
    pub(crate) fn unmap(&mut self, tell: impl FnOnce(Covered)) -> Option<Region<Idle>> {
        Some(self.mapped.pop()?.unmap(tell))
    }

    /// Adds the registrations of all that are mapped to a chain. `owned` says what their slots own.
    pub(crate) fn register<T, R>(
        &mut self,
        chain: &mut Chain<'_, T, R>,
        mut owned: impl FnMut(&Region<Mapped>) -> Option<T>,
    ) {
        for region in self.mapped.drain_all() {
            let owned = owned(&region);
            // All three lists have room for all regions.
            let _ = self
                .registered
                .push_within_capacity(chain.reg_mr(region, owned));
        }
    }

    /// Adds the local invalidations of all that are registered to a chain. `owned` says what their
    /// slots own.
    pub(crate) fn invalidate<T, R>(
        &mut self,
        chain: &mut Chain<'_, T, R>,
        mut owned: impl FnMut(&Region<Registered>) -> Option<T>,
    ) {
        for region in self.registered.drain_all() {
            let owned = owned(&region);
            // All three lists have room for all regions.
            let _ = self
                .invalidating
                .push_within_capacity(chain.local_inv(region, owned));
        }
    }

    /// Gives the region back whose key that is, if there is one. `was` is told before which it was,
    /// and `tell` what it covered.
    pub(crate) fn invalidated_by(
        &mut self,
        key: InvalidatedKey<'_>,
        was: impl FnOnce(&Region<Registered>),
        tell: impl FnOnce(Covered),
    ) -> Option<Region<Idle>> {
        let is_it = |region: &Region<Registered>| region.is_invalidated_by(&key);
        let found = self.registered.iter().position(is_it)?;
        let region = self.registered.remove(found).ok()?;
        was(&region);
        match region.invalidated_by(key, tell) {
            Ok(idle) => Some(idle),
            Err(region) => {
                let _ = self.registered.push_within_capacity(region);
                None
            }
        }
    }

    /// Gives a region back whose local invalidation has ended well, as `done` says, if there is
    /// one. `tell` is told what was covered.
    pub(crate) fn completed(
        &mut self,
        done: &Invalidated,
        tell: impl FnOnce(Covered),
    ) -> Option<Region<Idle>> {
        // The last one was posted last.
        match self.invalidating.pop()?.completed(done, tell) {
            Ok(idle) => Some(idle),
            Err(region) => {
                let _ = self.invalidating.push_within_capacity(region);
                None
            }
        }
    }

    /// Lets go of the regions that tear-down has taken from the device. Returns whether there is
    /// none then, as [`Self::is_fenced`].
    pub(crate) fn drop_dead(&mut self) -> bool {
        self.mapped.retain(|region| !region.is_dead());
        self.registered.retain(|region| !region.is_dead());
        self.invalidating.retain(|region| !region.is_dead());
        self.is_fenced()
    }

    /// Returns whether there is none: no peer can reach the memory.
    pub(crate) fn is_fenced(&self) -> bool {
        // One that is mapped is undone with the connection: the device may write to the memory
        // then.
        self.len() == 0
    }
}
