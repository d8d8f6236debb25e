// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Work requests that are posted in one call.

use crate::kapi::{
    bindings,
    ib::{
        buffer::{
            Direction,
            DmaBuffer, //
        },
        region::{
            Invalidating,
            Mapped,
            Region,
            Registered, //
        },
        ring::{
            cqe::set_cqes,
            wr::WorkRequest,
            Posted,
            Ring,
            RingState, //
        },
        rw::RwCtx, //
    },
};
use kernel::prelude::*;

/// The flag of a request that is signaled.
pub(crate) const SEND_SIGNALED: i32 = bindings::ib_send_flags_IB_SEND_SIGNALED;
/// A position at which nothing is ever posted.
const NOWHERE: u64 = u64::MAX;

/// A chain of work requests that is being made. It has to be posted: dropped with requests in it, or forgotten,
/// it leaves a ring to which nothing can be posted any more.
///
/// # Invariants
///
/// - The slots of `n` positions from `begin` on, and of those between the head and `begin`, may hold
///   something; the first `n` requests of the ring's chain were written. `n` is at most `most`, for which
///   there is room in both.
/// - With a transfer, as many positions as it has requests are in front of `begin`, and `writes` of the ring has
///   room for it.
/// - The ring could post when it was begun, and its lock is held since.
pub(crate) struct Chain<'a, T, R> {
    ring: &'a mut Ring<T, R>,
    /// What has the RDMA Writes before `begin`.
    transfer: Option<KBox<RwCtx>>,
    begin: u64,
    n: usize,
    most: usize,
    /// Something was added that cannot be posted.
    refused: bool,
}

impl<'a, T, R> Chain<'a, T, R> {
    /// One of at most `most`; the ring can post, and has room for so many.
    #[inline(always)]
    pub(super) fn new(ring: &'a mut Ring<T, R>, most: usize) -> Self {
        let begin = ring.head;
        // Until it is posted, or dropped with nothing in it: somebody might forget it.
        ring.broken = true;
        // INVARIANT: There is nothing in it.
        Self {
            ring,
            transfer: None,
            begin,
            n: 0,
            most,
            refused: false,
        }
    }

    /// The same behind the RDMA Writes of a transfer, for which there is room.
    pub(super) fn behind(
        mut self,
        transfer: KBox<RwCtx>,
        each: impl Fn(usize) -> Option<T>,
    ) -> Self {
        for i in 0..transfer.requests() {
            let (slot, owned) = (self.ring.slot_of(self.begin), each(i));
            let buffer = None;
            self.ring.hold(slot, Posted { buffer, owned });
            self.begin += 1;
        }
        self.transfer = Some(transfer);
        self
    }

    /// Adds a request that `write` writes, of what belongs to that queue pair; its slot owns that. Returns its
    /// position. Some can be posted always, others not when the end has begun.
    #[inline(always)]
    fn add(
        &mut self,
        (ours, always): (bool, bool),
        (buffer, owned): (Option<DmaBuffer>, Option<T>),
        write: impl FnOnce(&mut WorkRequest, *mut bindings::ib_cqe),
    ) -> u64 {
        let position = self.begin + self.n as u64;
        let slot = self.ring.slot_of(position);
        let cqe = self.ring.entries.at(slot);
        match self.ring.chain.get_mut(self.n) {
            Some(request)
                if self.n < self.most && ours && (always || self.ring.state == RingState::Open) =>
            {
                write(request, cqe)
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
    #[inline(always)]
    pub(crate) fn reg_mr(
        &mut self,
        region: Region<Mapped>,
        owned: Option<T>,
    ) -> Region<Registered> {
        let ours = region.owner() == self.ring.owner;
        self.add((ours, false), (None, owned), |request, cqe| {
            request.reg_mr(cqe, &region)
        });
        region.posted()
    }

    /// Adds a local invalidation.
    #[inline(always)]
    pub(crate) fn local_inv(
        &mut self,
        region: Region<Registered>,
        owned: Option<T>,
    ) -> Region<Invalidating> {
        let ours = region.owner() == self.ring.owner;
        let position = self.add((ours, true), (None, owned), |request, cqe| {
            request.local_inv(cqe, region.rkey())
        });
        // SAFETY: The chain is posted, with all in it at their positions, or nothing is ever posted again.
        unsafe { region.invalidation_posted(position) }
    }

    /// Adds a Send of the first `len` bytes of the buffer. `invalidate` is a key of the peer's.
    #[inline(always)]
    pub(crate) fn send(
        &mut self,
        buffer: DmaBuffer,
        len: usize,
        invalidate: Option<u32>,
        owned: Option<T>,
    ) {
        let len = len.min(buffer.len());
        buffer.sync_for_device(len);
        let ours = buffer.is_for(self.ring.owner, Direction::ToDevice);
        let element = bindings::ib_sge {
            addr: buffer.dma_addr(),
            length: len as u32,
            lkey: self.ring.lkey,
        };
        self.add((ours, false), (Some(buffer), owned), |request, cqe| {
            request.send(cqe, element, invalidate)
        });
    }

    /// Posts it, the last request signaled if that is said. `EINVAL` if there is none, or one that was too many,
    /// or for another queue pair; else the device's own error. After any all of it counts as posted, until the
    /// tear-down, and but for an empty chain the connection is to be dropped.
    #[inline(always)]
    pub(crate) fn post(mut self, signaled: bool) -> Result {
        if self.n == 0 || self.refused {
            return Err(EINVAL);
        }
        let (end, transfer) = (self.begin + self.n as u64, self.transfer.take());
        let ring = &mut *self.ring;
        let mut next: *mut bindings::ib_send_wr = core::ptr::null_mut();
        let mut flags = match signaled {
            true => SEND_SIGNALED,
            false => 0,
        };
        for request in ring.chain.iter_mut().take(self.n).rev() {
            next = request.link(next, core::mem::take(&mut flags));
        }
        if let Some(transfer) = transfer {
            next = link_writes(ring, transfer, next);
        }
        // INVARIANT: What they use is in their slots. Nothing of it is behind the head now.
        ring.head = end;
        // SAFETY: The ring can post, by the type invariant. All requests were written and linked above, the last
        // one with a null `next`; the slots have what they use, and `writes` has the transfer.
        let posted = unsafe { ring.post_list(next) };
        // It has nothing any more.
        core::mem::forget(self);
        posted
    }
}

/// Links the RDMA Writes of a transfer, whose slots begin at the head, before `last`.
fn link_writes<T, R>(
    ring: &mut Ring<T, R>,
    transfer: KBox<RwCtx>,
    last: *mut bindings::ib_send_wr,
) -> *mut bindings::ib_send_wr {
    let end = ring.head + transfer.requests() as u64;
    let (first_slot, slots) = (ring.slot_of(ring.head), ring.slots.len());
    // There is a request, and room: the chain was begun only with both.
    let _ = ring.writes.push((end.saturating_sub(1), transfer));
    let Some((_, transfer)) = ring.writes.last_mut() else {
        return last;
    };
    // SAFETY: The transfer stays in its box, which is in `writes` until what is behind it has
    // completed, or all was flushed.
    let first = unsafe { transfer.link(last, core::ptr::null_mut()) };
    let entries = &ring.entries;
    let entry = |i| {
        let slot = first_slot.wrapping_add(i);
        entries.at(slot.checked_sub(slots).unwrap_or(slot))
    };
    // SAFETY: The requests are valid as long as the transfer, and `last` is behind them.
    unsafe { set_cqes(first, last, entry) };
    first
}

impl<T, R> Drop for Chain<'_, T, R> {
    #[inline(always)]
    fn drop(&mut self) {
        if self.n != 0 || self.refused || self.transfer.is_some() {
            self.give_up();
        } else {
            self.ring.broken = false;
        }
    }
}

impl<T, R> Chain<'_, T, R> {
    /// What is in it counts as posted, and comes back with the tear-down: this is no place to drop it.
    #[cold]
    fn give_up(&mut self) {
        if let Some(transfer) = self.transfer.take() {
            // There is a request, and room: the chain was begun only with both.
            let last = self.begin.saturating_sub(1);
            let _ = self.ring.writes.push((last, transfer));
        }
        // INVARIANT: The ring is broken, so nothing is posted any more: regions may count as registered that are not.
        self.ring.head = self.begin + self.n as u64;
    }
}
