// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The ring of posted work: every work request has a slot, which owns what the request uses.
//!
//! Requests of a reliable connection complete in order, so a completion at one position retires
//! every slot up to it, and most requests need no completion of their own. RDMA Reads alone
//! complete out of order with some devices: they have no slot in the ring, but a place of their
//! own.

mod chain;
mod cqe;
mod reads;
#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
mod tests;
mod wr;

pub(super) use self::cqe::{
    Done,
    Handlers, //
};
pub(crate) use self::{
    chain::{
        Chain,
        SEND_SIGNALED, //
    },
    reads::{
        Reading,
        Reads, //
    },
};

use self::{
    cqe::Cqes,
    wr::WorkRequest, //
};
use crate::kapi::{
    bindings,
    ib::{
        buffer::DmaBuffer,
        gate::Target,
        node::Node,
        region::Invalidated,
        rw::RwCtx,
        wc::Wc, //
    },
    sys::fifo::Fifo, //
};
use kernel::{
    error::to_result,
    prelude::*, //
};

/// The state of a ring, from where most can be posted to where least can.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum RingState {
    /// Everything.
    Open,
    /// Only local invalidations: what was received before the end still needs them.
    Draining,
    /// Nothing.
    Closed,
    /// Nothing yet.
    New,
}

/// The property of a slot whose request is posted.
pub(crate) struct Posted<T> {
    /// The buffer that it sends from.
    pub(crate) buffer: Option<DmaBuffer>,
    pub(crate) owned: Option<T>,
}

impl<T> Default for Posted<T> {
    fn default() -> Self {
        Self {
            buffer: None,
            owned: None,
        }
    }
}

/// A request has completed, so all in front of it have.
pub(crate) struct SendDone {
    /// The number of the queue pair.
    owner: u64,
    end: u64,
    wc: Wc,
}

impl SendDone {
    /// Creates the proof.
    ///
    /// # Safety
    ///
    /// The request in front of the position `end` of that queue pair must have completed so, or the
    /// queue pair must be gone.
    pub(super) unsafe fn new(owner: u64, end: u64, wc: Wc) -> Self {
        Self { owner, end, wc }
    }

    /// Returns how it ended.
    pub(crate) fn wc(&self) -> Wc {
        self.wc
    }

    /// Returns its position.
    pub(crate) fn position(&self) -> u64 {
        self.end.saturating_sub(1)
    }

    /// Returns proof that local invalidations in front of it have ended well, if it has.
    pub(crate) fn invalidated(&self) -> Option<Invalidated> {
        // SAFETY: It has completed well.
        let proof = || unsafe { Invalidated::new(self.owner, self.end) };
        self.wc.is_ok().then(proof)
    }
}

/// The ring, and room for one chain.
///
/// `T` is what a slot owns beside the memory that its request uses, `R` the same of RDMA Reads.
///
/// # Invariants
///
/// - Positions `tail..head` are posted, or were to be by a chain that was given up, and not
///   retired; each has a slot and the completion entry of the same index. That of `tail` is
///   `oldest`, and the others follow it around the ring. Slots without position hold nothing, but
///   for those of a [`Chain`] that is being made, or was forgotten.
/// - `head - tail` and the requests of all `reads` are `avail` less than `slots.len()`, which is
///   one less than the device's queue holds (the drain needs one).
/// - `target` is valid while `state` is `Open` or `Draining`; it is of the queue pair with the
///   number `owner`.
/// - `state` is `Closed` from the beginning of a chain to its post, and stays so after a post that
///   failed or a chain that was given up: nothing is posted any more, so that no completion is of a
///   request behind one that the device may not have taken. It never goes back but then.
pub(crate) struct Ring<T, R> {
    target: Target,
    owner: u64,
    lkey: u32,
    state: RingState,
    avail: u32,
    slots: KVVec<Posted<T>>,
    /// The transfers of RDMA Writes, each with the position of the last: nothing behind that uses
    /// it. The last of them may be of a chain that is being made, or was forgotten, whose positions
    /// are behind the head.
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
    /// Makes room on `node` for `slots` work requests, `chain` of them in one post beside those of
    /// a transfer, and for the RDMA Reads of `reads` transfers; without any there can be no RDMA
    /// Writes either. Nothing can be posted until [`Self::open`]. May sleep.
    pub(super) fn new(
        owner: u64,
        (slots, chain, reads): (u32, u32, u32),
        handlers: &Handlers,
        node: Node,
    ) -> Result<Self> {
        // Behind each of them is a Send.
        let writes = if reads == 0 { 0 } else { slots as usize / 2 };
        let mut ring = Self {
            target: Target {
                qp: core::ptr::null_mut(),
                port: 0,
            },
            owner,
            lkey: 0,
            state: RingState::New,
            avail: slots,
            slots: node.room_for(slots as usize)?,
            writes: Fifo::with_capacity(writes)?,
            entries: Cqes::new(slots, handlers.done)?,
            head: 0,
            tail: 0,
            oldest: 0,
            chain: KVec::with_capacity(chain as usize, GFP_KERNEL)?,
            reads: Reads::new(reads, handlers)?,
        };
        for _ in 0..slots {
            ring.slots.push(Posted::default(), GFP_KERNEL)?;
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
    /// The queue pair must be that of the number `owner` and valid, with a send queue of more
    /// entries than this has slots, until [`Self::close`] with [`RingState::Closed`]. `lkey` must
    /// be that of its protection domain. The handlers must expect completions of this ring's
    /// entries.
    pub(super) unsafe fn open(&mut self, target: Target, lkey: u32) {
        // INVARIANT: The caller promises that it is valid.
        self.target = target;
        self.lkey = lkey;
        self.state = RingState::Open;
    }

    /// Lets no more be posted from here on than in that state.
    pub(super) fn close(&mut self, state: RingState) {
        // INVARIANT: It is no less than it was, and so no `target` is needed that was not.
        self.state = self.state.max(state);
    }

    /// Returns whether nothing could be posted yet.
    pub(super) fn is_new(&self) -> bool {
        self.state == RingState::New
    }

    /// Returns the number of work requests that there is room for in all.
    pub(crate) fn capacity(&self) -> usize {
        self.slots.len()
    }

    /// Returns the number of those of a chain, beside those of a transfer.
    pub(crate) fn longest_chain(&self) -> usize {
        self.chain.len()
    }

    /// Returns the number of slots that hold no request.
    pub(crate) fn sq_avail(&self) -> u32 {
        self.avail
    }

    /// Returns whether everything can be posted.
    pub(crate) fn is_open(&self) -> bool {
        self.state == RingState::Open
    }

    /// Returns whether something can be posted.
    fn can_post(&self) -> bool {
        matches!(self.state, RingState::Open | RingState::Draining)
    }

    /// Returns the slot of a position that is not retired. At most all others are in front of it,
    /// so it is less than two rounds away.
    fn slot_of(&self, position: u64) -> usize {
        let slot = self
            .oldest
            .wrapping_add(position.wrapping_sub(self.tail) as usize);
        slot.checked_sub(self.slots.len()).unwrap_or(slot)
    }

    /// Returns the position whose completion entry is at `entry`, if it is posted.
    pub(super) fn position_of(&self, entry: *const bindings::ib_cqe) -> Option<u64> {
        let index = self.entries.index_of(entry)?;
        let ahead = match index.checked_sub(self.oldest) {
            Some(ahead) => ahead,
            None => (index + self.slots.len()).checked_sub(self.oldest)?,
        };
        let position = self.tail + ahead as u64;
        (position < self.head).then_some(position)
    }

    /// Returns what the slot of a position has that is posted.
    pub(crate) fn posted_at(&self, position: u64) -> Option<&Posted<T>> {
        self.slots.get(self.slot_of(position))
    }

    /// Returns the RDMA Reads that are under way.
    pub(crate) fn reads(&self) -> &Reads<R> {
        &self.reads
    }

    /// Takes back the RDMA Reads whose last completion entry is at `entry`: they have ended. Their
    /// memory was taken from the device.
    pub(super) fn end_read(&mut self, entry: *const bindings::ib_cqe) -> Option<Reading<R>> {
        let mut reading = self.reads.end(entry)?;
        // INVARIANT: They are not in `reads` any more.
        self.avail += reading.transfer.requests() as u32;
        // Here, since outside of the lock the queue pair may be gone.
        reading.transfer.unmap();
        Some(reading)
    }

    /// Takes RDMA Reads whose end was not reported, for tear-down.
    pub(super) fn take_read(&mut self) -> Option<Reading<R>> {
        let reading = self.reads.take()?;
        // INVARIANT: They are not in `reads` any more.
        self.avail += reading.transfer.requests() as u32;
        Some(reading)
    }

    /// Lets a slot own what its request uses; it is that of a position from the head on.
    fn hold(&mut self, slot: usize, posted: Posted<T>) {
        if let Some(slot) = self.slots.get_mut(slot) {
            *slot = posted;
        }
    }

    /// Counts the slots in front of that position, for which there is room, as posted.
    fn go_to(&mut self, end: u64) {
        self.avail = self.avail.saturating_sub((end - self.head) as u32);
        self.head = end;
    }

    /// Hands a list of requests to the device.
    ///
    /// # Safety
    ///
    /// [`Self::can_post`] must have been true when the lock was taken, and `state` be what it was
    /// then. The list must be linked and end with a null `next`, and what it points to must live
    /// until the call returns; completion entries, and memory that it names, until the requests
    /// complete or the queue pair is gone.
    unsafe fn post_list(&mut self, first: *mut bindings::ib_send_wr) -> Result {
        let mut bad: *const bindings::ib_send_wr = core::ptr::null();
        // SAFETY: The queue pair is valid while the state is open or draining, as the caller has
        // seen under the lock; which promises the rest.
        let posted = to_result(unsafe { bindings::ib_post_send(self.target.qp, first, &mut bad) });
        if posted.is_err() {
            // INVARIANT: Nobody knows what of it the device has: it comes back with the tear-down.
            self.state = RingState::Closed;
        }
        posted
    }

    /// Counts the oldest slot as free.
    fn pass_oldest(&mut self) {
        let next = self.oldest.wrapping_add(1);
        self.oldest = if next < self.slots.len() { next } else { 0 };
        self.tail = self.tail.wrapping_add(1);
        self.avail = self.avail.wrapping_add(1);
    }

    /// Takes back the transfer whose last RDMA Write is that of the tail, if there is one. Its
    /// memory was taken from the device.
    fn take_writes(&mut self) -> Option<KBox<RwCtx>> {
        let (last, _) = self.writes.first()?;
        if *last != self.tail {
            return None;
        }
        let (_, mut transfer) = self.writes.pop()?;
        // Here, since outside of the lock the queue pair may be gone.
        transfer.unmap();
        Some(transfer)
    }

    /// Takes the memory of all transfers from the device, for tear-down: the queue is drained.
    pub(super) fn unmap_transfers(&mut self) {
        for (_, transfer) in self.writes.iter_mut() {
            transfer.unmap();
        }
        self.reads.unmap();
    }
}

/// The right to post to a ring, and to take back what was posted. The ring itself stays where it
/// is: two could be exchanged otherwise.
pub(crate) struct RingMut<'a, T, R>(pub(super) &'a mut Ring<T, R>);

impl<'a, T, R> RingMut<'a, T, R> {
    /// Begins a chain of at most `n` requests.
    ///
    /// `ENOTCONN` in a state in which nothing can be posted, or after a post that has failed;
    /// `EAGAIN` without room for them.
    pub(crate) fn begin(self, n: usize) -> Result<Chain<'a, T, R>> {
        if !self.0.can_post() {
            return Err(ENOTCONN);
        }
        if n > self.0.chain.len() || n > self.0.avail as usize {
            return Err(EAGAIN);
        }
        Ok(Chain::new(self.0, n))
    }

    /// Begins a chain behind the RDMA Writes of a transfer, as [`Self::begin`]; the slot of each
    /// owns what goes with it. `EINVAL` if it has none, or is for another queue pair, or reads; or
    /// if there is no room for any. What is given back was not posted.
    pub(crate) fn begin_behind(
        self,
        transfer: KBox<RwCtx>,
        each: impl Fn(usize) -> Option<T>,
        n: usize,
    ) -> Result<Chain<'a, T, R>, (Error, KBox<RwCtx>)> {
        let writes = transfer.requests();
        let ours = transfer.is_for(self.0.owner) && transfer.writes();
        if !self.0.is_open() {
            return Err((ENOTCONN, transfer));
        }
        if !ours || writes == 0 || self.0.writes.is_full() {
            return Err((EINVAL, transfer));
        }
        if writes + n > self.0.avail as usize {
            return Err((EAGAIN, transfer));
        }
        match self.begin(n) {
            Ok(chain) => Ok(chain.behind(transfer, each)),
            Err(e) => Err((e, transfer)),
        }
    }

    /// Posts the RDMA Reads of a transfer, for which there must be room: see [`Reads::is_full`].
    ///
    /// Errors as those of [`Self::begin_behind`], with what was not posted; or the device's own,
    /// and then all of it counts as posted.
    pub(crate) fn post_reads(self, reading: Reading<R>) -> Result<(), (Error, Option<Reading<R>>)> {
        let ring = self.0;
        if !ring.is_open() {
            return Err((ENOTCONN, Some(reading)));
        }
        if !reading.transfer.is_for(ring.owner) || reading.transfer.writes() {
            return Err((EINVAL, Some(reading)));
        }
        let requests = reading.transfer.requests() as u32;
        let Some(avail) = ring.avail.checked_sub(requests) else {
            return Err((EAGAIN, Some(reading)));
        };
        let first = ring.reads.begin(reading).map_err(|(e, r)| (e, Some(r)))?;
        // INVARIANT: They are in `reads`.
        ring.avail = avail;
        // SAFETY: Checked above. The requests are those of a transfer that stays in `reads`, as
        // their entries do.
        unsafe { ring.post_list(first) }.map_err(|e| (e, None))
    }

    /// Retires the slots up to what was done, until `each` returns something, which this returns
    /// then. It is given what a slot has, and a transfer if that was the last of its RDMA Writes,
    /// whose memory was taken from the device. What it drops is dropped under the lock.
    pub(crate) fn retire<B>(
        self,
        done: &SendDone,
        mut each: impl FnMut(Posted<T>, Option<KBox<RwCtx>>) -> Option<B>,
    ) -> Option<B> {
        let ring = self.0;
        if done.owner != ring.owner {
            return None;
        }
        for _ in ring.tail..done.end.min(ring.head) {
            let transfer = ring.take_writes();
            let posted = core::mem::take(ring.slots.get_mut(ring.oldest)?);
            ring.pass_oldest();
            let found = each(posted, transfer);
            if found.is_some() {
                return found;
            }
        }
        None
    }
}
