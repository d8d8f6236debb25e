// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Memory regions, typed by state.
//!
//! ```text
//!               chain posted with Send           a message has invalidated the rkey
//!   Idle ------> Mapped ------> Registered -----------------------------------------> Idle
//!    ^             |              |  | otherwise: LocalInv posted           completed |
//!    +- not posted +              |  +---------------> Invalidating -----------------|
//!                                 +-- tear-down, both queues drained --> Dead         v
//! ```
//!
//! A [`Region`] is the right to use one memory region; only a [`Registered`] one has an rkey that
//! a peer may hold. Any of them may be found dead: the tear-down of its queue pair took the
//! region from the device after both queues were drained, so no peer can reach the memory.

#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
pub(super) mod tests;

use crate::kapi::{
    bindings,
    ib::{
        gate::Poster,
        mr::{
            Access,
            Covered,
            Mr,
            NotMapped,
            RemoteKey, //
        },
    },
    page::ExtentIter, //
};
use core::marker::PhantomData;
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// State: covers nothing.
pub(crate) struct Idle;
/// State: covers memory, but no registration was posted.
pub(crate) struct Mapped;
/// State: the registration was posted; the peer may hold the rkey.
pub(crate) struct Registered;
/// State: the local invalidation was posted, at that position of the send queue.
pub(crate) struct Invalidating(u64);

/// Proof that local invalidations have ended well: all that were posted to one queue pair below a
/// position of its send queue.
pub(crate) struct Invalidated {
    /// The number of the queue pair.
    owner: u64,
    end: u64,
}

impl Invalidated {
    /// Creates the proof.
    ///
    /// # Safety
    ///
    /// A request of the queue pair of that number must have completed well, at the last position
    /// before `end` or behind it.
    pub(super) unsafe fn new(owner: u64, end: u64) -> Self {
        Self { owner, end }
    }
}

/// A key that a completed Receive said to be invalidated, for as long as that message is at hand,
/// and once: some time later the same key may be another region's.
///
/// # Invariants
///
/// The device has worked off the registration with that key, and lets no peer use it any more.
pub(crate) struct InvalidatedKey<'a> {
    key: u32,
    /// The number of the queue pair.
    owner: u64,
    _message: PhantomData<&'a ()>,
}

impl InvalidatedKey<'_> {
    /// Creates the proof.
    ///
    /// # Safety
    ///
    /// The queue pair of that number must have received the key with a message that stays at hand,
    /// on a device that [`checks_keys`], and there must be no other proof of that.
    ///
    /// [`checks_keys`]: super::device::DeviceLimits::checks_keys
    pub(super) unsafe fn new(key: u32, owner: u64) -> Self {
        // INVARIANT: Such a device looks at it before it says so.
        Self {
            key,
            owner,
            _message: PhantomData,
        }
    }

    /// Returns the number of the queue pair that received it.
    pub(crate) fn owner(&self) -> u64 {
        self.owner
    }
}

/// The right to use one memory region, in state `S`.
pub(crate) struct Region<S> {
    mr: Arc<Mr>,
    key: RemoteKey,
    access: Access,
    state: S,
}

impl<S> Region<S> {
    fn into_state<T>(self, state: T) -> Region<T> {
        Region {
            mr: self.mr,
            key: self.key,
            access: self.access,
            state,
        }
    }

    /// Returns whether tear-down has taken the region from the device.
    pub(crate) fn is_dead(&self) -> bool {
        self.mr.is_dead()
    }

    /// Returns the number of the queue pair that it belongs to.
    pub(crate) fn owner(&self) -> u64 {
        self.mr.owner
    }

    /// Returns the number of the region, for trace events.
    pub(crate) fn id(&self) -> u32 {
        self.mr.id
    }

    /// Returns whether that is its key.
    pub(crate) fn is_invalidated_by(&self, key: &InvalidatedKey<'_>) -> bool {
        (self.owner(), self.key.rkey) == (key.owner, key.key)
    }

    /// Returns what it covers.
    pub(crate) fn covered(&self) -> Covered {
        Covered {
            id: self.id(),
            elements: self.mr.mapped(),
            key: self.key,
            access: self.access,
        }
    }
}

impl Region<Idle> {
    /// Creates the token.
    ///
    /// # Safety
    ///
    /// It must be the only [`Region`] of `mr`.
    pub(super) unsafe fn new(mr: Arc<Mr>) -> Self {
        Self {
            mr,
            key: RemoteKey::default(),
            access: Access::RemoteRead,
            state: Idle,
        }
    }

    /// Gives up the right to use it.
    pub(super) fn into_mr(self) -> Arc<Mr> {
        self.mr
    }

    /// Covers as many of the pieces as fit into one region, and takes them from `pieces`.
    ///
    /// The peer's address space for it starts at `tag` in the upper half, so that no address of the
    /// kernel gets on the wire. May sleep, as drivers may. `EINVAL` for a region of another queue
    /// pair than the poster's, `ENOBUFS` when the memory cannot be mapped, or placed, now; `EIO`
    /// when the device refuses it.
    pub(crate) fn map(
        self,
        poster: &Poster<'_>,
        pieces: &mut ExtentIter<'_>,
        access: Access,
        tag: u32,
    ) -> Result<Region<Mapped>, (NotMapped, Self)> {
        if poster.number() != self.owner() {
            return Err((NotMapped::nothing(EINVAL), self));
        }
        // SAFETY: The region is idle and this its only token. The tear-down deregisters the regions
        // of its queue pair after all posters have left, and this one is still there.
        match unsafe { self.mr.cover(pieces, access, tag) } {
            Ok(key) => {
                let mut mapped = self.into_state(Mapped);
                mapped.key = key;
                mapped.access = access;
                Ok(mapped)
            }
            Err(e) => Err((e, self)),
        }
    }
}

impl Region<Mapped> {
    /// Returns how a peer names it.
    pub(crate) fn key(&self) -> RemoteKey {
        self.key
    }

    /// Gives the memory back: nothing was posted. `tell` is told what was covered.
    pub(crate) fn unmap(self, tell: impl FnOnce(Covered)) -> Region<Idle> {
        // SAFETY: The region was not registered since it was mapped, so no peer can reach it.
        unsafe { self.mr.uncover(tell) };
        self.into_state(Idle)
    }

    /// Returns the request that registers it, but for what all requests have.
    pub(super) fn registration(&self) -> bindings::ib_reg_wr {
        bindings::ib_reg_wr {
            mr: self.mr.as_raw(),
            key: self.key.rkey,
            access: self.access.as_raw() as i32,
            ..Default::default()
        }
    }

    /// Counts the registration as posted: it was, or may have been.
    pub(super) fn posted(self) -> Region<Registered> {
        self.into_state(Registered)
    }
}

impl Region<Registered> {
    /// Returns the key that a peer may hold.
    pub(crate) fn rkey(&self) -> u32 {
        self.key.rkey
    }

    /// Takes the memory back, since a completed Receive said that this key was invalidated.
    ///
    /// Gives the region back as it was when the key is another; else `tell` is told what was
    /// covered.
    pub(crate) fn invalidated_by(
        self,
        key: InvalidatedKey<'_>,
        tell: impl FnOnce(Covered),
    ) -> Result<Region<Idle>, Self> {
        if !self.is_invalidated_by(&key) {
            return Err(self);
        }
        // SAFETY: By the type invariant of the key, which was used for this registration alone.
        unsafe { self.mr.uncover(tell) };
        Ok(self.into_state(Idle))
    }

    /// Counts the local invalidation as posted at that position.
    ///
    /// # Safety
    ///
    /// No other request may be at that position of the send queue of the region's queue pair, ever.
    pub(super) unsafe fn invalidation_posted(self, position: u64) -> Region<Invalidating> {
        self.into_state(Invalidating(position))
    }
}

impl Region<Invalidating> {
    /// Takes the memory back, if `done` says that the local invalidation has completed well: else
    /// it stays as it was. `tell` is told what was covered.
    pub(crate) fn completed(
        self,
        done: &Invalidated,
        tell: impl FnOnce(Covered),
    ) -> Result<Region<Idle>, Self> {
        if self.owner() != done.owner || self.state.0 >= done.end {
            return Err(self);
        }
        // SAFETY: It was posted at a position below one at which a request of the same queue pair
        // has completed well; a queue pair works off such requests in order, and none after one
        // that failed.
        unsafe { self.mr.uncover(tell) };
        Ok(self.into_state(Idle))
    }
}
