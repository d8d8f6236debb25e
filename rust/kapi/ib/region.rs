// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Memory regions, typed by state.
//!
//! ```text
//!               chain posted with Send           a message has invalidated the rkey
//!   Idle ──────> Mapped ──────> Registered ─────────────────────────────────────────> Idle
//!    ^             │              │  │ otherwise: LocalInv posted           completed │
//!    └─ not posted ┘              │  └───────────────> Invalidating ─────────────────┤
//!                                 └── tear-down, both queues drained ──> Dead         v
//! ```
//!
//! A [`Region`] is the right to use one memory region; only a [`Registered`] one has an rkey that
//! a peer may hold. Any of them may be found dead: the tear-down of its queue pair took the
//! region from the device after both queues were drained, so no peer can reach the memory.

#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
mod tests;

use crate::kapi::{
    bindings,
    ib::mr::{
        Access,
        Covered,
        Mr,
        NotMapped,
        RemoteKey, //
    },
    page::Pieces, //
};
use core::marker::PhantomData;
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// State: covers nothing.
pub(super) struct Idle;
/// State: covers memory, but no registration was posted.
pub(super) struct Mapped;
/// State: the registration was posted; the peer may hold the rkey.
pub(super) struct Registered;
/// State: the local invalidation was posted.
pub(super) struct Invalidating;

/// What a posted registration needs to know.
pub(super) struct Registration {
    pub(super) mr: *mut bindings::ib_mr,
    pub(super) rkey: u32,
    pub(super) access: Access,
}

/// What a posted local invalidation needs to know.
#[derive(Clone, Copy)]
pub(super) struct Invalidation {
    pub(super) rkey: u32,
    /// The number of the region, for trace events.
    pub(super) region: u32,
}

/// The right to use one memory region, in state `S`.
pub(super) struct Region<S> {
    mr: Arc<Mr>,
    key: RemoteKey,
    access: Access,
    _state: PhantomData<S>,
}

impl<S> Region<S> {
    fn into_state<T>(self) -> Region<T> {
        Region {
            mr: self.mr,
            key: self.key,
            access: self.access,
            _state: PhantomData,
        }
    }

    /// Whether tear-down has taken the region from the device.
    pub(super) fn is_dead(&self) -> bool {
        self.mr.is_dead()
    }

    /// The number of the region, for trace events.
    pub(super) fn id(&self) -> u32 {
        self.mr.id
    }

    /// What it covers.
    pub(super) fn covered(&self) -> Covered {
        Covered {
            id: self.id(),
            elements: self.mr.mapped(),
            key: self.key,
            direction: self.access.direction(),
        }
    }
}

impl Region<Idle> {
    /// # Safety
    ///
    /// It must be the only [`Region`] of `mr`.
    pub(super) unsafe fn new(mr: Arc<Mr>) -> Self {
        Self {
            mr,
            key: RemoteKey::default(),
            access: Access::RemoteRead,
            _state: PhantomData,
        }
    }

    /// Covers as many of the pieces as fit into one region, and takes them from `pieces`.
    ///
    /// The peer's address space for it starts at `tag` in the upper half, so that no address of
    /// the kernel gets on the wire. May sleep, as drivers may. `ENOBUFS` when the memory cannot be
    /// mapped, or placed, now; `EIO` when the device refuses it.
    ///
    /// # Safety
    ///
    /// [`Mr::deregister`] must not have begun, and must not begin before this has returned.
    #[inline]
    pub(super) unsafe fn map(
        self,
        pieces: &mut Pieces<'_>,
        sg_gaps: bool,
        access: Access,
        tag: u32,
    ) -> Result<Region<Mapped>, (NotMapped, Self)> {
        // SAFETY: The region is idle and this its only token; nobody deregisters it, as the caller promises.
        match unsafe { self.mr.cover(pieces, sg_gaps, access, tag) } {
            Ok(key) => {
                let mut mapped = self.into_state::<Mapped>();
                mapped.key = key;
                mapped.access = access;
                Ok(mapped)
            }
            Err(e) => Err((e, self)),
        }
    }
}

impl Region<Mapped> {
    /// How a peer names it.
    pub(super) fn key(&self) -> RemoteKey {
        self.key
    }

    /// Gives the memory back: nothing was posted. `tell` is told what was covered.
    pub(super) fn unmap(self, tell: impl FnOnce(Covered)) -> Region<Idle> {
        self.mr.uncover(tell);
        self.into_state()
    }

    /// What its registration names, for as long as nobody deregisters it.
    pub(super) fn registration(&self) -> Registration {
        Registration {
            mr: self.mr.as_raw(),
            rkey: self.key.rkey,
            access: self.access,
        }
    }

    /// The registration was posted, or may have been.
    pub(super) fn posted(self) -> Region<Registered> {
        self.into_state()
    }
}

impl Region<Registered> {
    /// The key that a peer may hold.
    pub(super) fn rkey(&self) -> u32 {
        self.key.rkey
    }

    /// A completed Receive said that this key was invalidated: the memory is ours again.
    ///
    /// Gives the region back as it was when the key is another; else `tell` is told what was covered.
    #[inline]
    pub(super) fn invalidated_by(
        self,
        rkey: u32,
        tell: impl FnOnce(Covered),
    ) -> Result<Region<Idle>, Self> {
        if self.rkey() != rkey {
            return Err(self);
        }
        self.mr.uncover(tell);
        Ok(self.into_state())
    }

    /// What its local invalidation names.
    pub(super) fn invalidation(&self) -> Invalidation {
        Invalidation {
            rkey: self.rkey(),
            region: self.id(),
        }
    }

    /// The local invalidation was posted.
    pub(super) fn invalidation_posted(self) -> Region<Invalidating> {
        self.into_state()
    }
}

impl Region<Invalidating> {
    /// The local invalidation has completed well. `tell` is told what was covered.
    pub(super) fn completed(self, tell: impl FnOnce(Covered)) -> Region<Idle> {
        self.mr.uncover(tell);
        self.into_state()
    }
}
