// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The send ring: every posted work request has a slot, and the slot owns what the request uses.
//!
//! Requests of a reliable connection complete in order, so a completion at one position retires
//! every slot up to it, and most requests need no completion of their own. RDMA Reads alone, of a
//! responder, complete out of order with some devices: they have no slot in the ring.

mod requester;
mod responder;
#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
mod tests;

pub(super) use self::responder::{
    Read,
    Reply,
    Turn,
    Work, //
};

use crate::kapi::{
    bindings,
    ib::{
        buffer::DmaBuffer,
        region::{
            Idle,
            Mr,
            Region, //
        },
        trace::{
            Purpose,
            Waiter, //
        },
        transfer::Transfer, //
    },
    sys::fifo::Fifo,
    trace::CompletionId, //
};
use core::mem::MaybeUninit;
use kernel::{
    error::to_result,
    prelude::*,
    sync::Arc, //
};

/// How many work requests may go unsignaled in a row.
///
/// Every one of them may hold a send buffer, so the buffers must exceed the calls by as many: more would
/// cost memory, fewer a wakeup more often.
pub(crate) const UNSIGNALED_RUN: u32 = 12;
/// Replies with RDMA Writes that may still be on their way when the device calls them done.
const LATEST_WRITES: usize = 4;

/// A completion handler.
pub(super) type Done = unsafe extern "C" fn(*mut bindings::ib_cq, *mut bindings::ib_wc);

/// The completion handlers of a send queue.
pub(super) struct Handlers {
    /// Of the slots.
    pub(super) done: Done,
    /// Of the last RDMA Read of a message.
    pub(super) read_done: Done,
    /// Of those before, which are not signaled, so only when they fail.
    pub(super) read_failed: Done,
}

/// Where requests are posted: a queue pair, and the port of its device.
#[derive(Clone, Copy)]
pub(super) struct Target {
    pub(super) qp: *mut bindings::ib_qp,
    pub(super) port: u32,
}

/// Who may post.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Gate {
    /// Nobody yet.
    New,
    /// Everybody.
    Open,
    /// Only local invalidations: replies that were received before the end still need them.
    Fencing,
    /// Nobody.
    Closed,
}

/// What a slot owns until its request is retired.
#[derive(Default)]
enum Held<C> {
    #[default]
    Nothing,
    Buffer(DmaBuffer),
    /// RDMA Writes that go before a Reply.
    Transfer(KBox<Transfer>),
    /// Nothing; but trace events know what the request is for.
    Region {
        purpose: Purpose,
        id: CompletionId,
    },
    /// `whole` says whether all of the chain was posted that the cookie is for.
    Cookie {
        cookie: C,
        whole: bool,
        waiter: Waiter,
        id: CompletionId,
    },
}

/// What comes back when a slot is retired.
pub(super) enum Retired<C> {
    /// To be dropped outside the lock.
    Transfer(KBox<Transfer>),
    /// `whole` says whether all of the cookie's chain was posted; it ended at `end`.
    Cookie { cookie: C, whole: bool, end: u64 },
}

/// Room for one work request of a chain.
///
/// # Invariants
///
/// `registration.wr` is the first member, so that a pointer to it is one to `plain`.
#[repr(C)]
union WorkRequest {
    plain: bindings::ib_send_wr,
    registration: bindings::ib_reg_wr,
}

/// The ring, its pools, and room for one chain.
///
/// # Invariants
///
/// - Positions `tail..head` are posted and not retired; each has a slot and the completion entry of
///   the same index, which do not move. That of `tail` is `oldest`, and the others follow it around
///   the ring. Slots without position hold nothing.
/// - `head - tail + reserved + reads <= slots.len()`, which is one less than the device's queue
///   holds (the drain needs one). `reads` counts the requests of all of `reading`, each of which
///   has the entry of `read_entries` with its index.
/// - `qp` is valid while `gate` is `Open` or `Fencing`.
/// - `lent` counts the posters: buffers in their hands, and makers of regions.
pub(super) struct SendQueue<C> {
    qp: *mut bindings::ib_qp,
    port: u32,
    lkey: u32,
    /// For trace events: the number of the completion queue, and the last one given away.
    completion_queue: u32,
    last_id: u32,
    pub(super) gate: Gate,
    slots: KVVec<Held<C>>,
    entries: KVVec<bindings::ib_cqe>,
    head: u64,
    tail: u64,
    oldest: usize,
    reserved: u32,
    reads: u32,
    reading: KVVec<Option<Read<C>>>,
    /// Where there is none in `reading`.
    not_reading: KVVec<u32>,
    read_entries: KVVec<bindings::ib_cqe>,
    /// Of those RDMA Reads that are not the last of their message.
    earlier_entries: KVVec<bindings::ib_cqe>,
    /// For whom the request of each slot is; empty unless this is a responder's.
    tags: KVVec<Option<u32>>,
    turns: Fifo<Work<C>>,
    /// For whom the latest RDMA Writes were, and Sends that may be refused.
    written: [Option<u32>; LATEST_WRITES],
    /// A request has failed.
    lost: bool,
    unsignaled: u32,
    chain: KVec<MaybeUninit<WorkRequest>>,
    element: bindings::ib_sge,
    buffers: KVVec<DmaBuffer>,
    pub(super) made: u32,
    limit: u32,
    /// Somebody could not make a buffer, or may not: the last one must come back soon.
    short: bool,
    pub(super) lent: u32,
    idle: KVec<Region<Idle>>,
    regions: KVec<Arc<Mr>>,
}

// SAFETY: The raw pointers are to objects of ib_core that may be used from any thread, and are
// used under the lock that holds this object.
unsafe impl<C: Send> Send for SendQueue<C> {}

impl<C> SendQueue<C> {
    /// Room for `slots` work requests, `chain` of them in one post, `limit` buffers, and RDMA Reads
    /// of `reads` messages, none for a requester. The queue is closed until [`Self::open`]. May sleep.
    pub(super) fn new(slots: u32, chain: u32, limit: u32, reads: u32) -> Result<Self> {
        let mut queue = Self {
            qp: core::ptr::null_mut(),
            port: 0,
            lkey: 0,
            completion_queue: 0,
            last_id: 0,
            gate: Gate::New,
            slots: KVVec::with_capacity(slots as usize, GFP_KERNEL)?,
            entries: KVVec::with_capacity(slots as usize, GFP_KERNEL)?,
            head: 0,
            tail: 0,
            oldest: 0,
            reserved: 0,
            reads: 0,
            reading: KVVec::new(),
            not_reading: KVVec::new(),
            read_entries: KVVec::new(),
            earlier_entries: KVVec::new(),
            tags: KVVec::new(),
            turns: Fifo::default(),
            written: [None; LATEST_WRITES],
            lost: false,
            unsignaled: 0,
            chain: KVec::with_capacity(chain as usize, GFP_KERNEL)?,
            element: bindings::ib_sge::default(),
            buffers: KVVec::with_capacity(limit as usize, GFP_KERNEL)?,
            made: 0,
            limit,
            short: false,
            lent: 0,
            idle: KVec::new(),
            regions: KVec::new(),
        };
        for _ in 0..slots {
            queue.slots.push(Held::Nothing, GFP_KERNEL)?;
        }
        for _ in 0..chain {
            queue.chain.push(MaybeUninit::uninit(), GFP_KERNEL)?;
        }
        queue.make_room_for_reads(reads, slots)?;
        Ok(queue)
    }

    /// Lets posters in.
    ///
    /// # Safety
    ///
    /// The queue pair must be valid, with a send queue of more entries than this has slots, until
    /// [`Gate::Closed`] is set. The handlers must expect completions of this queue's entries.
    pub(super) unsafe fn open(
        &mut self,
        target: Target,
        lkey: u32,
        completion_queue: u32,
        handlers: &Handlers,
    ) -> Result {
        let reads = self.reading.len();
        for (entries, n, done) in [
            (&mut self.entries, self.slots.len(), handlers.done),
            (&mut self.read_entries, reads, handlers.read_done),
            (&mut self.earlier_entries, reads, handlers.read_failed),
        ] {
            for _ in 0..n {
                entries
                    .push_within_capacity(bindings::ib_cqe { done: Some(done) })
                    .map_err(|_| EINVAL)?;
            }
        }
        self.qp = target.qp;
        self.port = target.port;
        self.lkey = lkey;
        self.completion_queue = completion_queue;
        self.gate = Gate::Open;
        Ok(())
    }

    /// Where it posts. The queue pair is valid as long as somebody is in.
    pub(super) fn target(&self) -> Target {
        Target {
            qp: self.qp,
            port: self.port,
        }
    }

    /// A name for trace events that no other buffer or transfer has.
    pub(super) fn next_id(&mut self) -> CompletionId {
        self.last_id = self.last_id.wrapping_add(1);
        self.id_of(self.last_id)
    }

    /// What trace events call the requests of that buffer, transfer or region.
    fn id_of(&self, number: u32) -> CompletionId {
        CompletionId::new(self.completion_queue, number)
    }

    /// The index of the slot whose completion entry is at `entry`.
    pub(super) fn index_of(&self, entry: *const bindings::ib_cqe) -> Option<usize> {
        let offset = (entry as usize).checked_sub(self.entries.as_ptr() as usize)?;
        let index = offset / core::mem::size_of::<bindings::ib_cqe>();
        (index < self.entries.len()).then_some(index)
    }

    /// The slot of a position that is not retired. At most all others are in front of it, so it is
    /// less than two rounds away.
    fn slot_of(&self, position: u64) -> usize {
        let slot = self
            .oldest
            .wrapping_add(position.wrapping_sub(self.tail) as usize);
        slot.checked_sub(self.slots.len()).unwrap_or(slot)
    }

    /// Slots that neither hold a request nor wait for the invalidation of a registered region.
    fn room(&self) -> u64 {
        let used = self.head - self.tail + u64::from(self.reserved) + u64::from(self.reads);
        (self.slots.len() as u64).saturating_sub(used)
    }

    /// The longest chain of one call: its registrations, their invalidations, and the Send.
    fn longest_call(&self) -> u64 {
        2 * self.chain.len() as u64
    }

    /// Takes a buffer for a Send, if there is one and room for the longest chain.
    #[inline(always)]
    pub(super) fn take_buffer(&mut self) -> Result<Option<DmaBuffer>> {
        if self.gate != Gate::Open {
            return Err(ENOTCONN);
        }
        // What a responder posts waits for room by itself.
        if !self.takes_turns() && self.room() < self.longest_call() {
            return Err(EAGAIN);
        }
        // As long as more can be made, one stays back for when they cannot.
        let back = usize::from(self.made < self.limit);
        if self.buffers.len() > back {
            self.lent += 1;
            return Ok(self.buffers.pop());
        }
        if self.made == self.limit {
            return Err(EAGAIN);
        }
        // The caller makes one, outside the lock.
        self.made += 1;
        self.lent += 1;
        Ok(None)
    }

    /// The buffer that [`Self::take_buffer`] has left to its caller could not be made: the one that
    /// stayed back, if it is still there.
    pub(super) fn not_made(&mut self) -> Option<DmaBuffer> {
        self.made -= 1;
        self.short = true;
        self.buffers.pop()
    }

    /// Lets somebody in who makes a region; tear-down waits for them as for posters.
    pub(super) fn enter(&mut self) -> Result {
        if self.gate != Gate::Open {
            return Err(ENOTCONN);
        }
        self.lent += 1;
        Ok(())
    }

    /// A poster leaves. Whether that is the last one whom the tear-down waits for.
    pub(super) fn leave(&mut self) -> bool {
        self.lent -= 1;
        self.lent == 0 && self.gate != Gate::Open
    }

    /// Takes a buffer of the pool, if there is one and room for a Send.
    pub(super) fn take_pooled(&mut self) -> Option<DmaBuffer> {
        if self.gate != Gate::Open || self.room() < self.longest_call() {
            return None;
        }
        let buffer = self.buffers.pop()?;
        self.lent += 1;
        self.short = true;
        Some(buffer)
    }

    pub(super) fn give_back_buffer(&mut self, buffer: DmaBuffer) {
        // There is always room: the vector has the capacity for all buffers that can be made.
        if self.buffers.push_within_capacity(buffer).is_err() {
            self.made -= 1;
        }
    }

    /// Writes the header of the work request that gets a slot.
    fn request(&self, slot: usize, opcode: u32, signaled: bool) -> bindings::ib_send_wr {
        let mut wr = bindings::ib_send_wr {
            opcode,
            ..Default::default()
        };
        // The entry does not move: the vector is never resized after `open`.
        wr.__bindgen_anon_1.wr_cqe = self.entries.as_ptr().wrapping_add(slot).cast_mut();
        if signaled {
            wr.send_flags = bindings::ib_send_flags_IB_SEND_SIGNALED;
        }
        wr
    }

    /// Writes the work request at chain index `i`, which the callers have found to be there.
    fn write_request(&mut self, i: usize, request: WorkRequest) {
        if let Some(room) = self.chain.get_mut(i) {
            room.write(request);
        }
    }

    /// Lets a slot own what its request uses; it is that of a position from the head on.
    fn hold(&mut self, slot: usize, held: Held<C>) {
        if let Some(slot) = self.slots.get_mut(slot) {
            // Nothing is forgotten: such a slot holds nothing, by the type invariant.
            core::mem::forget(core::mem::replace(slot, held));
        }
    }

    /// Links the first `n` requests and posts them. Returns how many the device took.
    ///
    /// The result is an error unless it took all.
    fn post_chain(&mut self, n: usize) -> (usize, Result) {
        let first: *mut bindings::ib_send_wr = self.chain.as_mut_ptr().cast();
        let mut next: *mut bindings::ib_send_wr = core::ptr::null_mut();
        let requests = self.chain.get_mut(..n).unwrap_or(&mut []);
        for request in requests.iter_mut().rev() {
            let this: *mut bindings::ib_send_wr = request.as_mut_ptr().cast();
            // SAFETY: The callers have written the first `n` requests; all begin with `plain`.
            unsafe { (*this).next = next };
            next = this;
        }
        let mut bad: *const bindings::ib_send_wr = core::ptr::null();
        // SAFETY: The queue pair is valid while the gate is open or fencing, which the callers
        // have checked under the lock. The chain is linked and ends with a null `next`; it and what
        // it points to (completion entries, the scatter element) live until the call returns,
        // which is as long as ib_core needs the requests; the entries live longer.
        let result = to_result(unsafe { bindings::ib_post_send(self.qp, first, &mut bad) });
        let taken = match result {
            Ok(()) => n,
            // Without a word on which failed, suppose that the device has them all.
            Err(_) => self
                .chain
                .iter()
                .take(n)
                .position(|request| core::ptr::eq(request.as_ptr().cast(), bad))
                .unwrap_or(n),
        };
        (taken, result)
    }

    /// Whether the chain of `n` requests is to be signaled; keeps count.
    fn signal(&mut self, n: usize, must: bool) -> bool {
        self.unsignaled += n as u32;
        // At least one chain in every half of the queue is signaled, whatever their lengths, and
        // the last buffer must come back: there may be no memory for another.
        let last = self.buffers.is_empty() && (self.short || self.made == self.limit);
        let quarter = u64::from(self.unsignaled) >= self.slots.len() as u64 / 4;
        if must || last || quarter || self.unsignaled >= UNSIGNALED_RUN {
            self.unsignaled = 0;
            self.short = false;
            return true;
        }
        false
    }

    /// The position that occupies the slot, if it is posted.
    pub(super) fn position_of(&self, index: usize) -> Option<u64> {
        let ahead = match index.checked_sub(self.oldest) {
            Some(ahead) => ahead,
            None => (index + self.slots.len()).checked_sub(self.oldest)?,
        };
        let position = self.tail + ahead as u64;
        (position < self.head).then_some(position)
    }

    /// The end of what is posted.
    pub(super) fn head(&self) -> u64 {
        self.head
    }

    /// Retires slots below `end`, up to the first that holds more than a buffer, which it returns;
    /// the memory of a transfer was taken from the device. If they ended well, `each` is told what
    /// trace events have to say of each request.
    ///
    /// To be called again until it returns none.
    pub(super) fn retire(
        &mut self,
        end: u64,
        ok: bool,
        each: impl Fn(Purpose, CompletionId),
    ) -> Option<Retired<C>> {
        let each = |purpose, id| {
            if ok {
                each(purpose, id);
            }
        };
        while self.tail < end.min(self.head) {
            let held = self.slots.get_mut(self.oldest).map(core::mem::take);
            self.oldest = self.slot_of(self.tail + 1);
            self.tail += 1;
            match held.unwrap_or_default() {
                Held::Nothing => (),
                Held::Buffer(buffer) => {
                    each(Purpose::Send, buffer.id);
                    self.give_back_buffer(buffer);
                }
                Held::Transfer(mut transfer) => {
                    if ok {
                        transfer.trace_written();
                    }
                    // Here, since outside of the lock the queue pair may be gone.
                    transfer.unmap();
                    return Some(Retired::Transfer(transfer));
                }
                Held::Region { purpose, id } => each(purpose, id),
                Held::Cookie {
                    cookie,
                    whole,
                    waiter,
                    id,
                } => {
                    each(invalidation(whole, waiter), id);
                    let end = self.tail;
                    return Some(Retired::Cookie { cookie, whole, end });
                }
            }
        }
        None
    }

    /// Takes an idle region.
    pub(super) fn take_region(&mut self) -> Option<Region<Idle>> {
        self.idle.pop()
    }

    /// Takes back a region that is not registered; `reserved` says whether a slot for its
    /// invalidation was reserved and not used.
    pub(super) fn give_back_region(&mut self, region: Region<Idle>, reserved: bool) {
        self.reserved -= u32::from(reserved && self.reserved != 0);
        // There is always room: `add_region` made it.
        let _ = self.idle.push_within_capacity(region);
    }

    /// Adds a region to the table. On an error the region must be killed by the caller.
    pub(super) fn add_region(&mut self, mr: Arc<Mr>) -> Result {
        // SAFETY: The region was made for this table, and nobody has a token for it yet.
        let token = unsafe { Region::new(mr.clone()) };
        let all = self.regions.len() + 1;
        let more = all.saturating_sub(self.idle.len());
        self.idle.reserve(more, GFP_NOWAIT | __GFP_NOWARN)?;
        self.regions.push(mr, GFP_NOWAIT | __GFP_NOWARN)?;
        self.idle.push_within_capacity(token).map_err(|_| ENOMEM)?;
        Ok(())
    }

    /// How many regions there are, idle or not.
    pub(super) fn region_count(&self) -> u32 {
        self.regions.len() as u32
    }

    /// How many regions are idle.
    pub(super) fn idle_regions(&self) -> usize {
        self.idle.len()
    }

    /// Takes the whole table, for tear-down.
    pub(super) fn take_all_regions(&mut self) -> (KVec<Arc<Mr>>, KVec<Region<Idle>>) {
        (
            core::mem::take(&mut self.regions),
            core::mem::take(&mut self.idle),
        )
    }

    /// Takes all pooled buffers, for tear-down.
    pub(super) fn take_all_buffers(&mut self) -> KVVec<DmaBuffer> {
        core::mem::take(&mut self.buffers)
    }
}

/// What the last invalidation is for of those that were posted of a chain, the whole or not.
fn invalidation(whole: bool, waiter: Waiter) -> Purpose {
    if whole {
        Purpose::LastInvalidation(waiter)
    } else {
        Purpose::Invalidation
    }
}
