// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The ring of posted work: every work request has a slot, which owns what the request uses.
//!
//! Requests of a reliable connection complete in order, so a completion at one position retires
//! every slot up to it, and most requests need no completion of their own. RDMA Reads alone
//! complete out of order with some devices: they have no slot in the ring, but a place of their own.

mod cqe;
mod reads;
#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
mod tests;
mod wr;

pub(super) use self::{
    cqe::Handlers,
    reads::{
        Reading,
        Reads, //
    },
};

use self::{
    cqe::{
        name,
        Cqes, //
    },
    wr::WorkRequest, //
};
use crate::kapi::{
    bindings,
    ib::{
        buffer::DmaBuffer,
        qp::Target,
        region::{
            Invalidation,
            Mapped,
            Region, //
        },
        rw::RwCtx, //
    },
    sys::fifo::Fifo, //
};
use kernel::{
    error::to_result,
    prelude::*, //
};

/// What can be posted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum QpState {
    /// Nothing yet.
    New,
    /// Everything.
    Open,
    /// Only local invalidations: what was received before the end still needs them.
    Draining,
    /// Nothing.
    Closed,
}

/// What a slot has of a posted request.
pub(super) struct Posted<T> {
    /// What it sends from.
    pub(super) buffer: Option<DmaBuffer>,
    pub(super) owned: Option<T>,
}

impl<T> Posted<T> {
    const NOTHING: Self = Self {
        buffer: None,
        owned: None,
    };
}

/// What a retired slot gives back.
pub(super) struct Retired<T> {
    pub(super) posted: Posted<T>,
    /// It was the last of this transfer's RDMA Writes.
    pub(super) transfer: Option<KBox<RwCtx>>,
}

/// The ring, and room for one chain.
///
/// `T` is what a slot owns beside the memory that its request uses, `R` the same of RDMA Reads.
///
/// # Invariants
///
/// - Positions `tail..head` are posted and not retired; each has a slot and the completion entry of
///   the same index. That of `tail` is `oldest`, and the others follow it around the ring. Slots
///   without position hold nothing, but for those of a [`Chain`] that is being made.
/// - `head - tail` and the requests of all `reads` are no more than `slots.len()`, which is one less than
///   the device's queue holds (the drain needs one).
/// - `target` is valid while `state` is `Open` or `Draining`.
/// - After a post that failed nothing is posted any more, so that no completion is of a request
///   behind one that the device may not have taken.
pub(super) struct Ring<T, R> {
    target: Target,
    lkey: u32,
    pub(super) state: QpState,
    /// A post has failed.
    broken: bool,
    slots: KVVec<Posted<T>>,
    /// The transfers of RDMA Writes, each with the position of the last: nothing behind that uses it.
    writes: Fifo<(u64, KBox<RwCtx>)>,
    entries: Cqes,
    head: u64,
    tail: u64,
    oldest: usize,
    chain: KVec<WorkRequest>,
    reads: Reads<R>,
}

// SAFETY: The raw pointers are to objects of ib_core that may be used from any thread, and are
// used under the lock that holds this object.
unsafe impl<T: Send, R: Send> Send for Ring<T, R> {}

impl<T, R> Ring<T, R> {
    /// Room for `slots` work requests, `chain` of them in one post beside those of a transfer, and for
    /// the RDMA Reads of `reads` transfers; without any there can be no RDMA Writes either. Nothing can
    /// be posted until [`Self::open`]. May sleep.
    pub(super) fn new(slots: u32, chain: u32, reads: u32) -> Result<Self> {
        // Behind each of them is a Send.
        let writes = if reads == 0 { 0 } else { slots as usize / 2 };
        let mut ring = Self {
            target: Target {
                qp: core::ptr::null_mut(),
                port: 0,
            },
            lkey: 0,
            state: QpState::New,
            broken: false,
            slots: KVVec::with_capacity(slots as usize, GFP_KERNEL)?,
            writes: Fifo::with_capacity(writes)?,
            entries: Cqes::new(slots)?,
            head: 0,
            tail: 0,
            oldest: 0,
            chain: KVec::with_capacity(chain as usize, GFP_KERNEL)?,
            reads: Reads::new(reads)?,
        };
        for _ in 0..slots {
            ring.slots.push(Posted::NOTHING, GFP_KERNEL)?;
        }
        for _ in 0..chain {
            ring.chain.push(WorkRequest::default(), GFP_KERNEL)?;
        }
        Ok(ring)
    }

    /// Lets posters in.
    ///
    /// # Safety
    ///
    /// The queue pair must be valid, with a send queue of more entries than this has slots, until
    /// [`QpState::Closed`] is set. `lkey` must be that of its protection domain. The handlers must expect
    /// completions of this ring's entries.
    pub(super) unsafe fn open(&mut self, target: Target, lkey: u32, handlers: &Handlers) -> Result {
        self.entries.open(handlers.done)?;
        self.reads.open(handlers)?;
        // INVARIANT: The caller promises that it is valid.
        self.target = target;
        self.lkey = lkey;
        self.state = QpState::Open;
        Ok(())
    }

    /// Where it posts. The queue pair is valid while the state is open or draining.
    pub(super) fn target(&self) -> Target {
        self.target
    }

    /// The end of what is posted.
    pub(super) fn head(&self) -> u64 {
        self.head
    }

    /// The beginning of what is not retired.
    pub(super) fn tail(&self) -> u64 {
        self.tail
    }

    /// How many work requests there is room for in all.
    pub(super) fn capacity(&self) -> usize {
        self.slots.len()
    }

    /// How many of a chain there is room for, beside those of a transfer.
    pub(super) fn longest_chain(&self) -> usize {
        self.chain.len()
    }

    /// Slots that hold no request.
    pub(super) fn sq_avail(&self) -> u64 {
        let used = self.head - self.tail + u64::from(self.reads.requests());
        (self.slots.len() as u64).saturating_sub(used)
    }

    /// Whether everything can be posted.
    pub(super) fn is_open(&self) -> bool {
        self.state == QpState::Open && !self.broken
    }

    /// Whether something can be posted.
    pub(super) fn can_post(&self) -> bool {
        matches!(self.state, QpState::Open | QpState::Draining) && !self.broken
    }

    /// The slot of a position that is not retired. At most all others are in front of it, so it is
    /// less than two rounds away.
    fn slot_of(&self, position: u64) -> usize {
        let slot = self
            .oldest
            .wrapping_add(position.wrapping_sub(self.tail) as usize);
        slot.checked_sub(self.slots.len()).unwrap_or(slot)
    }

    /// The position whose completion entry is at `entry`, if it is posted.
    pub(super) fn position_of(&self, entry: *const bindings::ib_cqe) -> Option<u64> {
        let index = self.entries.index_of(entry)?;
        let ahead = match index.checked_sub(self.oldest) {
            Some(ahead) => ahead,
            None => (index + self.slots.len()).checked_sub(self.oldest)?,
        };
        let position = self.tail + ahead as u64;
        (position < self.head).then_some(position)
    }

    /// What the slot of a position has that is posted.
    pub(super) fn posted_at(&self, position: u64) -> Option<&Posted<T>> {
        self.slots.get(self.slot_of(position))
    }

    /// Begins a chain of at most `n` requests.
    ///
    /// `ENOTCONN` in a state in which nothing can be posted, or after a post that has failed; `EAGAIN`
    /// without room for so many.
    #[inline(always)]
    pub(super) fn begin(&mut self, n: usize) -> Result<Chain<'_, T, R>> {
        if !self.can_post() {
            return Err(ENOTCONN);
        }
        if n > self.chain.len() || n as u64 > self.sq_avail() {
            return Err(EAGAIN);
        }
        let begin = self.head;
        Ok(Chain {
            ring: self,
            transfer: None,
            begin,
            n: 0,
            most: n,
        })
    }

    /// As [`Self::begin`], behind the RDMA Writes of a transfer; the slot of each owns what goes with it.
    /// `EINVAL` if it has none, or the ring has no room for any. After an error the transfer is dropped.
    pub(super) fn begin_behind(
        &mut self,
        transfer: KBox<RwCtx>,
        each: impl Fn(usize) -> Option<T>,
        n: usize,
    ) -> Result<Chain<'_, T, R>> {
        let writes = transfer.requests();
        if writes == 0 || self.writes.is_full() {
            return Err(EINVAL);
        }
        if (writes + n) as u64 > self.sq_avail() {
            return Err(EAGAIN);
        }
        let mut chain = self.begin(n)?;
        for i in 0..writes {
            let (slot, owned) = (chain.ring.slot_of(chain.begin), each(i));
            let buffer = None;
            chain.ring.hold(slot, Posted { buffer, owned });
            chain.begin += 1;
        }
        chain.transfer = Some(transfer);
        Ok(chain)
    }

    /// Lets a slot own what its request uses; it is that of a position from the head on.
    #[inline(always)]
    fn hold(&mut self, slot: usize, posted: Posted<T>) {
        if let Some(slot) = self.slots.get_mut(slot) {
            // Nothing is forgotten: such a slot holds nothing, by the type invariant.
            core::mem::forget(core::mem::replace(slot, posted));
        }
    }

    /// Links the RDMA Writes of a transfer, whose slots begin at the head, before `last`.
    fn link_writes(
        &mut self,
        mut transfer: KBox<RwCtx>,
        last: *mut bindings::ib_send_wr,
    ) -> *mut bindings::ib_send_wr {
        // SAFETY: The transfer stays in its box, which is in `writes` until what is behind it has
        // completed, or all was flushed.
        let first = unsafe { transfer.link(last, core::ptr::null_mut()) };
        let entry = |i| self.entries.at(self.slot_of(self.head + i as u64));
        // SAFETY: The requests are valid as long as the transfer, and `last` is behind them.
        unsafe { name(first, last, entry) };
        let end = self.head + transfer.requests() as u64;
        // There is a request, and room: the chain was begun only with both.
        let _ = self.writes.push((end.saturating_sub(1), transfer));
        first
    }

    /// Posts the RDMA Reads of a transfer, for which there must be room: see [`Reads::is_full`].
    ///
    /// Errors as those of [`Self::begin`] and [`Chain::post`].
    pub(super) fn post_reads(&mut self, transfer: KBox<RwCtx>, owned: R) -> Result {
        if !self.can_post() {
            return Err(ENOTCONN);
        }
        if transfer.requests() as u64 > self.sq_avail() {
            return Err(EAGAIN);
        }
        let first = self.reads.begin(transfer, owned)?;
        self.post_list(first)
    }

    /// The RDMA Reads that are under way.
    pub(super) fn reads(&self) -> &Reads<R> {
        &self.reads
    }

    /// Takes back the RDMA Reads whose last completion entry is at `entry`: they have ended.
    pub(super) fn end_read(&mut self, entry: *const bindings::ib_cqe) -> Option<Reading<R>> {
        self.reads.end(entry)
    }

    /// Takes RDMA Reads whose end was not reported, for tear-down.
    pub(super) fn take_read(&mut self) -> Option<Reading<R>> {
        self.reads.take()
    }

    /// Hands a list of requests to the device.
    fn post_list(&mut self, first: *mut bindings::ib_send_wr) -> Result {
        let mut bad: *const bindings::ib_send_wr = core::ptr::null();
        // SAFETY: The queue pair is valid while the state is open or draining, which the callers
        // have checked under the lock. The list is linked and ends with a null `next`; it and what
        // it points to (completion entries, scatter elements) live until the call returns,
        // which is as long as ib_core needs the requests; the entries live longer.
        let posted = to_result(unsafe { bindings::ib_post_send(self.target.qp, first, &mut bad) });
        // INVARIANT: Nobody knows what of it the device has: it comes back with the tear-down.
        self.broken |= posted.is_err();
        posted
    }

    /// Takes back what the oldest slot has, if it is below `end`.
    #[inline(always)]
    pub(super) fn retire(&mut self, end: u64) -> Option<Retired<T>> {
        if self.tail >= end.min(self.head) {
            return None;
        }
        let slot = self.slots.get_mut(self.oldest)?;
        // INVARIANT: The slot holds nothing now.
        let posted = core::mem::replace(slot, Posted::NOTHING);
        let transfer = match self.writes.first() {
            Some((last, _)) if *last == self.tail => self.writes.pop(),
            _ => None,
        };
        self.oldest = self.slot_of(self.tail + 1);
        self.tail += 1;
        Some(Retired {
            posted,
            transfer: transfer.map(|(_, transfer)| transfer),
        })
    }

    /// Takes the memory of all transfers from the device, for tear-down: the queue is drained.
    pub(super) fn unmap_transfers(&mut self) {
        for (_, transfer) in self.writes.iter_mut() {
            transfer.unmap();
        }
        self.reads.unmap();
    }
}

/// A chain of work requests that is being made. Dropped, it gives up what was put into it.
///
/// # Invariants
///
/// The slots of `n` positions from `begin` on, and of those between the head and `begin`, may hold
/// something; the first `n` requests of the ring's chain were written. `n` is at most `most`, for which
/// there is room in both.
pub(super) struct Chain<'a, T, R> {
    ring: &'a mut Ring<T, R>,
    /// What has the RDMA Writes before `begin`.
    transfer: Option<KBox<RwCtx>>,
    begin: u64,
    n: usize,
    most: usize,
}

impl<T, R> Chain<'_, T, R> {
    /// Adds a request that `write` writes; its slot owns that. What there is no room for is dropped.
    #[inline(always)]
    fn add(
        &mut self,
        buffer: Option<DmaBuffer>,
        owned: Option<T>,
        write: impl FnOnce(&mut WorkRequest, *mut bindings::ib_cqe),
    ) {
        let slot = self.ring.slot_of(self.begin + self.n as u64);
        let cqe = self.ring.entries.at(slot);
        match self.ring.chain.get_mut(self.n) {
            Some(request) if self.n < self.most => write(request, cqe),
            _ => return,
        }
        // INVARIANT: It was written.
        self.ring.hold(slot, Posted { buffer, owned });
        self.n += 1;
    }

    /// Adds the registration of a region.
    #[inline(always)]
    pub(super) fn reg_mr(&mut self, region: &Region<Mapped>, owned: Option<T>) {
        self.add(None, owned, |request, cqe| request.reg_mr(cqe, region));
    }

    /// Adds a local invalidation.
    #[inline(always)]
    pub(super) fn local_inv(&mut self, invalidation: Invalidation, owned: Option<T>) {
        self.add(None, owned, |request, cqe| {
            request.local_inv(cqe, invalidation)
        });
    }

    /// Adds a Send of the first `len` bytes of the buffer. `invalidate` is a key of the peer's.
    #[inline(always)]
    pub(super) fn send(
        &mut self,
        buffer: DmaBuffer,
        len: usize,
        invalidate: Option<u32>,
        owned: Option<T>,
    ) {
        let len = len.min(buffer.len());
        buffer.sync_for_device(len);
        let element = bindings::ib_sge {
            addr: buffer.dma_addr(),
            length: len as u32,
            lkey: self.ring.lkey,
        };
        self.add(Some(buffer), owned, |request, cqe| {
            request.send(cqe, element, invalidate)
        });
    }

    /// Posts it, the last request signaled if that is said. `EINVAL` if there is none. After another error,
    /// the device's own, all of it counts as posted, and the connection is to be dropped.
    #[inline(always)]
    pub(super) fn post(mut self, signaled: bool) -> Result {
        let (end, transfer) = (self.begin + self.n as u64, self.transfer.take());
        if self.n == 0 {
            return Err(EINVAL);
        }
        let ring = &mut *self.ring;
        let mut next: *mut bindings::ib_send_wr = core::ptr::null_mut();
        let mut flags = match signaled {
            true => bindings::ib_send_flags_IB_SEND_SIGNALED,
            false => 0,
        };
        for request in ring.chain.iter_mut().take(self.n).rev() {
            next = request.link(next, core::mem::take(&mut flags));
        }
        if let Some(transfer) = transfer {
            next = ring.link_writes(transfer, next);
        }
        // INVARIANT: What they use is in their slots. Nothing of it is in front of the head now.
        ring.head = end;
        self.n = 0;
        self.begin = end;
        self.ring.post_list(next)
    }
}

impl<T, R> Drop for Chain<'_, T, R> {
    #[inline(always)]
    fn drop(&mut self) {
        for position in self.ring.head..self.begin + self.n as u64 {
            let slot = self.ring.slot_of(position);
            if let Some(slot) = self.ring.slots.get_mut(slot) {
                *slot = Posted::NOTHING;
            }
        }
    }
}

#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
impl<T, R> Ring<T, R> {
    /// Whether no slot holds anything.
    pub(super) fn holds_nothing(&self) -> bool {
        let nothing = |slot: &Posted<T>| slot.buffer.is_none() && slot.owned.is_none();
        self.slots.iter().all(nothing) && self.writes.is_empty()
    }

    /// The completion entry of a slot, or of what is beside them.
    pub(super) fn entry(&self, slot: isize) -> *const bindings::ib_cqe {
        self.entries.at(0).cast_const().wrapping_offset(slot)
    }
}
