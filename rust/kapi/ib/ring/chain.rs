// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Work requests that are posted in one call.

use crate::kapi::{
    bindings,
    ib::{
        buffer::DmaBuffer,
        region::{
            Invalidating,
            Mapped,
            Region,
            Registered, //
        },
        ring::{
            cqe::set_cqes,
            wr::{
                Links,
                WorkRequest, //
            },
            Posted,
            Ring,
            RingState, //
        },
        rw::RwCtx, //
    },
};
use kernel::{
    dma::DataDirection,
    prelude::*, //
};

/// The flag of a request that is signaled.
pub(crate) const SEND_SIGNALED: i32 = bindings::ib_send_flags_IB_SEND_SIGNALED;
/// A position at which nothing is ever posted.
const NOWHERE: u64 = u64::MAX;

/// A chain of work requests that is being made. It has to be posted: dropped with requests in it,
/// or forgotten, it leaves a ring to which nothing can be posted any more.
///
/// # Invariants
///
/// - The slots of `n` positions from `begin` on, and of those between the head and `begin`, may
///   hold something; the first `n` requests of the ring's chain were written. `n` is at most
///   `most`, for which there is room in both.
/// - `first` is the first of them, or before it that of a transfer that `writes` of the ring has,
///   whose requests have the positions from the head to `begin`.
/// - The ring could post in `state`, in which it was when this was begun; its lock is held since.
pub(crate) struct Chain<'a, T, R> {
    ring: &'a mut Ring<T, R>,
    first: *mut bindings::ib_send_wr,
    begin: u64,
    n: usize,
    most: usize,
    /// The state that the ring was in, and is when it is posted.
    state: RingState,
    /// Something was added that cannot be posted.
    refused: bool,
}

impl<'a, T, R> Chain<'a, T, R> {
    /// Begins one of at most `most` requests; the ring can post, and has room for them.
    pub(super) fn new(ring: &'a mut Ring<T, R>, most: usize) -> Self {
        let (begin, first) = (ring.head, ring.chain.as_mut_ptr().cast());
        // Until it is posted, or dropped with nothing in it: somebody might forget it.
        let state = core::mem::replace(&mut ring.state, RingState::Closed);
        // INVARIANT: There is nothing in it.
        Self {
            ring,
            first,
            begin,
            n: 0,
            most,
            state,
            refused: false,
        }
    }

    /// Puts it behind the RDMA Writes of a transfer, for which there is room.
    pub(super) fn behind(
        mut self,
        transfer: KBox<RwCtx>,
        each: impl Fn(usize) -> Option<T>,
    ) -> Self {
        let (ring, last, n) = (&mut *self.ring, self.first, transfer.requests());
        let slot = ring.slot_of(self.begin);
        self.begin += n as u64;
        // There is room, so it does not come back.
        if let Ok((_, transfer)) = ring.writes.push((self.begin.saturating_sub(1), transfer)) {
            // SAFETY: The transfer stays in its box, which is in `writes` until what is behind it
            // has completed, or all was flushed.
            self.first = unsafe { transfer.link(last, core::ptr::null_mut()) };
        }
        let slots = ring.slots.len();
        let slot = |i| {
            let slot = slot.wrapping_add(i);
            slot.checked_sub(slots).unwrap_or(slot)
        };
        let entries = &ring.entries;
        // SAFETY: The requests are valid as long as the transfer, and `last` is behind them.
        unsafe { set_cqes(self.first, last, |i| entries.at(slot(i))) };
        for i in 0..n {
            let (buffer, owned) = (None, each(i));
            ring.hold(slot(i), Posted { buffer, owned });
        }
        self
    }

    /// Adds a request that `write` writes, of what belongs to that queue pair; its slot owns that.
    /// Returns its position. Some can be posted always, others not when the end has begun.
    fn add(
        &mut self,
        (ours, always): (bool, bool),
        (buffer, owned): (Option<DmaBuffer>, Option<T>),
        write: impl FnOnce(&mut WorkRequest, Links),
    ) -> u64 {
        let position = self.begin + self.n as u64;
        let slot = self.ring.slot_of(position);
        let cqe = self.ring.entries.at(slot);
        // Who follows it may look at all of the chain.
        let requests = self.ring.chain.as_mut_ptr();
        let next = requests.wrapping_add(self.n).wrapping_add(1).cast();
        match self.ring.chain.get_mut(self.n) {
            Some(request)
                if self.n < self.most && ours && (always || self.state == RingState::Open) =>
            {
                write(request, (cqe, next))
            }
            _ => {
                self.refused = true;
                return NOWHERE;
            }
        }
        // INVARIANT: It was written.
        self.ring.hold(slot, Posted { buffer, owned });
        self.n += 1;
        position
    }

    /// Adds the registration of a region.
    pub(crate) fn reg_mr(
        &mut self,
        region: Region<Mapped>,
        owned: Option<T>,
    ) -> Region<Registered> {
        let ours = region.owner() == self.ring.owner;
        self.add((ours, false), (None, owned), |request, links| {
            request.reg_mr(links, &region)
        });
        region.posted()
    }

    /// Adds a local invalidation.
    pub(crate) fn local_inv(
        &mut self,
        region: Region<Registered>,
        owned: Option<T>,
    ) -> Region<Invalidating> {
        let ours = region.owner() == self.ring.owner;
        let position = self.add((ours, true), (None, owned), |request, links| {
            request.local_inv(links, region.rkey())
        });
        // SAFETY: The chain is posted, with all in it at their positions, or nothing is ever posted
        // again.
        unsafe { region.invalidation_posted(position) }
    }

    /// Adds a Send of the first `len` bytes of the buffer. `invalidate` is a key of the peer's.
    pub(crate) fn send(
        &mut self,
        buffer: DmaBuffer,
        len: usize,
        invalidate: Option<u32>,
        owned: Option<T>,
    ) {
        let len = len.min(buffer.len());
        buffer.sync_for_device(len);
        let ours = buffer.is_for(self.ring.owner, DataDirection::ToDevice);
        let element = bindings::ib_sge {
            addr: buffer.dma_addr(),
            length: len as u32,
            lkey: self.ring.lkey,
        };
        self.add((ours, false), (Some(buffer), owned), |request, links| {
            request.send(links, element, invalidate)
        });
    }

    /// Posts it, the last request signaled if that is said. `EINVAL` if there is none, or one that
    /// was too many, or for another queue pair; else the device's own error. After any all of it
    /// counts as posted, until the tear-down, and but for an empty chain the connection is to be
    /// dropped.
    pub(crate) fn post(self, signaled: bool) -> Result {
        let ring = &mut *self.ring;
        let last = self.n.checked_sub(1).and_then(|n| ring.chain.get_mut(n));
        let Some(last) = last.filter(|_| !self.refused) else {
            return Err(EINVAL);
        };
        last.end(
            core::ptr::null_mut(),
            if signaled { SEND_SIGNALED } else { 0 },
        );
        let end = self.begin + self.n as u64;
        // INVARIANT: What they use is in their slots. Nothing of it is behind the head now.
        ring.go_to(end);
        ring.state = self.state;
        // SAFETY: The ring can post, by the type invariant. All requests were written, each in
        // front of the next one, and the last one with a null `next`; the slots have what they use,
        // and `writes` has the transfer.
        let posted = unsafe { ring.post_list(self.first) };
        // It has nothing any more.
        core::mem::forget(self);
        posted
    }
}

impl<T, R> Drop for Chain<'_, T, R> {
    fn drop(&mut self) {
        if self.n != 0 || self.refused || self.begin != self.ring.head {
            self.give_up();
        } else {
            self.ring.state = self.state;
        }
    }
}

impl<T, R> Chain<'_, T, R> {
    /// Counts what is in it as posted: it comes back with the tear-down, since this is no place to
    /// drop it.
    fn give_up(&mut self) {
        // INVARIANT: The ring is closed, so nothing is posted any more: regions may count as
        // registered that are not.
        self.ring.go_to(self.begin + self.n as u64);
    }
}
