// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The send queue: the ring of posted work, with the buffers and regions that are free for it.

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
    ib::{
        buffer::DmaBuffer,
        mr::Mr,
        qp::Target,
        region::{
            Idle,
            Region, //
        },
        ring::{
            Handlers,
            QpState,
            Retired as FromRing,
            Ring, //
        },
        rw::RwCtx,
        trace::{
            Purpose,
            Waiter, //
        },
    },
    sys::fifo::Fifo,
    trace::CompletionId, //
};
use kernel::{
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

/// What a slot of the ring owns beside a buffer: what its request is for.
pub(super) enum Owned<C> {
    /// The Send of a message, for the RPC with that XID.
    Send { tag: Option<u32> },
    /// An RDMA Write of a transfer of that number, for a Write chunk or the Reply chunk.
    Write {
        tag: Option<u32>,
        transfer: u32,
        reply_chunk: bool,
    },
    /// A registration, or a local invalidation, of the region of that number.
    Region { region: u32, registers: bool },
    /// The last local invalidation of a chain, which brings the cookie back.
    Cookie {
        cookie: C,
        region: u32,
        waiter: Waiter,
    },
}

/// What comes back when a slot is retired.
pub(super) enum Retired<C> {
    /// To be dropped outside the lock.
    Transfer(KBox<RwCtx>),
    /// Its chain ended at `end`.
    Cookie { cookie: C, end: u64 },
}

/// The ring and its pools.
///
/// # Invariants
///
/// - `reserved` slots of the ring are for the invalidations of registered regions.
/// - `lent` counts the posters: buffers in their hands, and makers of regions.
pub(super) struct SendQueue<C> {
    pub(super) ring: Ring<Owned<C>, Read<C>>,
    /// For trace events: the number of the completion queue, and the last one given away.
    completion_queue: u32,
    last_id: u32,
    reserved: u32,
    turns: Fifo<Work<C>>,
    /// For whom the latest RDMA Writes were, and Sends that may be refused.
    written: [Option<u32>; LATEST_WRITES],
    /// A request has failed.
    lost: bool,
    unsignaled: u32,
    buffers: KVVec<DmaBuffer>,
    pub(super) made: u32,
    limit: u32,
    /// Somebody could not make a buffer, or may not: the last one must come back soon.
    short: bool,
    pub(super) lent: u32,
    idle: KVec<Region<Idle>>,
    regions: KVec<Arc<Mr>>,
}

impl<C> SendQueue<C> {
    /// Room for `slots` work requests, `chain` of them in one post, `limit` buffers, and RDMA Reads
    /// of `reads` messages, none for a requester. The queue is closed until [`Self::open`]. May sleep.
    pub(super) fn new(slots: u32, chain: u32, limit: u32, reads: u32) -> Result<Self> {
        // Whatever waits has a message that is being read for, or a buffer.
        let turns = match reads as usize {
            0 => 0,
            reads => reads.saturating_add(limit as usize),
        };
        Ok(Self {
            ring: Ring::new(slots, chain, reads)?,
            completion_queue: 0,
            last_id: 0,
            reserved: 0,
            turns: Fifo::with_capacity(turns)?,
            written: [None; LATEST_WRITES],
            lost: false,
            unsignaled: 0,
            buffers: KVVec::with_capacity(limit as usize, GFP_KERNEL)?,
            made: 0,
            limit,
            short: false,
            lent: 0,
            idle: KVec::new(),
            regions: KVec::new(),
        })
    }

    /// Lets posters in.
    ///
    /// # Safety
    ///
    /// As [`Ring::open`].
    pub(super) unsafe fn open(
        &mut self,
        target: Target,
        lkey: u32,
        completion_queue: u32,
        handlers: &Handlers,
    ) -> Result {
        self.completion_queue = completion_queue;
        // SAFETY: The caller promises what that asks for.
        unsafe { self.ring.open(target, lkey, handlers) }
    }

    /// A number that no other buffer or transfer has.
    pub(super) fn next_id(&mut self) -> u32 {
        self.last_id = self.last_id.wrapping_add(1);
        self.last_id
    }

    /// What trace events call the requests of that buffer, transfer or region.
    pub(super) fn id_of(&self, number: u32) -> CompletionId {
        CompletionId::new(self.completion_queue, number)
    }

    /// Slots that neither hold a request nor wait for the invalidation of a registered region.
    fn room(&self) -> u64 {
        let avail = self.ring.sq_avail();
        avail.saturating_sub(u64::from(self.reserved))
    }

    /// The longest chain of one call: its registrations, their invalidations, and the Send.
    fn longest_call(&self) -> u64 {
        2 * self.ring.longest_chain() as u64
    }

    /// Takes a buffer for a Send, if there is one and room for the longest chain.
    #[inline(always)]
    pub(super) fn take_buffer(&mut self) -> Result<Option<DmaBuffer>> {
        if !self.ring.is_open() {
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
        if !self.ring.is_open() {
            return Err(ENOTCONN);
        }
        self.lent += 1;
        Ok(())
    }

    /// A poster leaves. Whether that is the last one whom the tear-down waits for.
    pub(super) fn leave(&mut self) -> bool {
        self.lent -= 1;
        self.lent == 0 && self.ring.state != QpState::Open
    }

    /// Takes a buffer of the pool, if there is one and room for a Send.
    pub(super) fn take_pooled(&mut self) -> Option<DmaBuffer> {
        if !self.ring.is_open() || self.room() < self.longest_call() {
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

    /// Whether the chain of `n` requests is to be signaled; keeps count.
    fn signal(&mut self, n: usize, must: bool) -> bool {
        self.unsignaled += n as u32;
        // At least one chain in every half of the queue is signaled, whatever their lengths, and
        // the last buffer must come back: there may be no memory for another.
        let last = self.buffers.is_empty() && (self.short || self.made == self.limit);
        let quarter = self.unsignaled as usize >= self.ring.capacity() / 4;
        if must || last || quarter || self.unsignaled >= UNSIGNALED_RUN {
            self.unsignaled = 0;
            self.short = false;
            return true;
        }
        false
    }

    /// Retires slots below `end`, up to the first that holds more than a buffer, which it returns;
    /// the memory of a transfer was taken from the device. `ok` says whether they ended well; `each`, if
    /// there is one, is told what trace events have to say of each request.
    ///
    /// To be called again until it returns none.
    pub(super) fn retire(
        &mut self,
        end: u64,
        ok: bool,
        each: Option<impl Fn(Purpose, CompletionId)>,
    ) -> Option<Retired<C>> {
        while let Some(FromRing { posted, transfer }) = self.ring.retire(end) {
            if let (Some(each), Some(owned)) = (&each, &posted.owned) {
                let (purpose, id) = self.name(owned, posted.buffer.as_ref());
                each(purpose, id);
            }
            if let Some(buffer) = posted.buffer {
                self.give_back_buffer(buffer);
            }
            if let Some(mut transfer) = transfer {
                if ok {
                    transfer.trace_written();
                }
                // Here, since outside of the lock the queue pair may be gone.
                transfer.unmap();
                return Some(Retired::Transfer(transfer));
            }
            if let Some(Owned::Cookie { cookie, .. }) = posted.owned {
                let end = self.ring.tail();
                return Some(Retired::Cookie { cookie, end });
            }
        }
        None
    }

    /// What a request is for, and what it is called in trace events.
    #[inline]
    fn name(&self, owned: &Owned<C>, buffer: Option<&DmaBuffer>) -> (Purpose, CompletionId) {
        let (purpose, number) = match owned {
            Owned::Send { .. } => {
                let number = buffer.map_or(0, |buffer| buffer.id);
                return (Purpose::Send, self.id_of(number));
            }
            Owned::Write {
                transfer,
                reply_chunk: true,
                ..
            } => (Purpose::ReplyChunk, transfer),
            Owned::Write { transfer, .. } => (Purpose::WriteChunk, transfer),
            Owned::Region {
                region,
                registers: true,
            } => (Purpose::Registration, region),
            Owned::Region { region, .. } => (Purpose::Invalidation, region),
            Owned::Cookie { region, waiter, .. } => (Purpose::LastInvalidation(*waiter), region),
        };
        (purpose, self.id_of(*number))
    }

    /// What the request at a position is for, and what it is called in trace events.
    pub(super) fn purpose_of(&self, position: u64) -> Option<(Purpose, CompletionId)> {
        let posted = self.ring.posted_at(position)?;
        let owned = posted.owned.as_ref()?;
        Some(self.name(owned, posted.buffer.as_ref()))
    }

    /// For whom the request at a position is.
    pub(super) fn tag_of(&self, position: u64) -> Option<u32> {
        match self.ring.posted_at(position)?.owned.as_ref()? {
            Owned::Send { tag } | Owned::Write { tag, .. } => *tag,
            Owned::Region { .. } | Owned::Cookie { .. } => None,
        }
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

    /// Adds a region to the table. On an error the region must be deregistered by the caller.
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
