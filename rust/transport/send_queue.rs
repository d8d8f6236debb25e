// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! What an endpoint has beside the ring of posted work, under its lock: buffers and regions that
//! are free, and what waits for its turn.

use crate::{
    kapi::{
        ib::{
            DmaBuffer,
            Idle,
            Region, //
        },
        sys::fifo::Fifo, //
    },
    transport::{
        provided::ProvidedTable,
        work::Work, //
    },
};
use kernel::prelude::*;

/// How many work requests may go unsignaled in a row.
///
/// Every one of them may hold a send buffer, so the buffers must exceed the calls by as many: more
/// would cost memory, fewer a wakeup more often.
pub(crate) const UNSIGNALED_RUN: u32 = 12;
/// Sends of those who do not hold the transport, while a Call is being made that has seen room:
/// one that asks whether the server is there, and one from the handler of received messages.
const OTHER_SENDS: u32 = 2;
/// Replies with RDMA Writes that may still be on their way when the device calls them done.
const LATEST_WRITES: usize = 4;

/// Room that a Call of up to so many registrations wants to see: for these and their
/// invalidations, the Send, and what others send meanwhile.
pub(crate) fn longest_call(registrations: u32) -> u32 {
    registrations
        .saturating_mul(2)
        .saturating_add(1 + OTHER_SENDS)
}

/// The pools of an endpoint, and who waits.
///
/// # Invariants
///
/// `reserved` slots of the ring are for the invalidations of registered regions.
pub(crate) struct SendQueue<C> {
    /// The last number that was given to a buffer or a transfer.
    last_id: u32,
    /// Room for the longest Call, by [`longest_call`].
    pub(super) longest_call: u32,
    /// Requests of the longest RDMA Reads of a requester, none if it has none.
    pub(super) longest_read: u32,
    pub(super) reserved: u32,
    pub(super) pending: Fifo<Work<C>>,
    /// For whom the latest RDMA Writes were, and Sends that may be refused.
    pub(super) written: [Option<u32>; LATEST_WRITES],
    /// A request has failed.
    lost: bool,
    pub(super) unsignaled: u32,
    pub(super) buffers: KVVec<DmaBuffer>,
    pub(super) made: u32,
    pub(super) limit: u32,
    /// Somebody could not make a buffer, or may not: the last one must come back soon.
    pub(super) short: bool,
    idle: KVec<Region<Idle>>,
    /// Regions, idle or not.
    regions: u32,
    pub(super) provided: ProvidedTable,
}

impl<C> SendQueue<C> {
    /// For Calls of `registrations` at most, `limit` buffers, RDMA Reads of `reads` messages, and
    /// so many Replies that are provided at once. May sleep.
    pub(super) fn new(
        (registrations, longest_read): (u32, u32),
        limit: u32,
        reads: u32,
        provided: u32,
    ) -> Result<Self> {
        // Whatever waits has a message that is being read for, or a buffer, or takes a Reply back.
        let pending = match reads {
            0 => 0,
            reads => reads.saturating_add(limit).saturating_add(provided) as usize,
        };
        Ok(Self {
            last_id: 0,
            longest_call: longest_call(registrations),
            longest_read,
            reserved: 0,
            pending: Fifo::with_capacity(pending)?,
            written: [None; LATEST_WRITES],
            lost: false,
            unsignaled: 0,
            buffers: KVVec::with_capacity(limit as usize, GFP_KERNEL)?,
            made: 0,
            limit,
            short: false,
            idle: KVec::new(),
            regions: 0,
            provided: ProvidedTable::default(),
        })
    }

    /// A number that no other buffer or transfer has.
    pub(super) fn next_id(&mut self) -> u32 {
        self.last_id = self.last_id.wrapping_add(1);
        self.last_id
    }

    /// The buffer that its taker was to make could not be made: the one that stayed back, if it is
    /// still there.
    pub(super) fn not_made(&mut self) -> Option<DmaBuffer> {
        self.made -= 1;
        self.short = true;
        self.buffers.pop()
    }

    /// Takes a buffer back that was not posted, or has been sent.
    #[inline(always)]
    pub(super) fn put_buffer(&mut self, buffer: DmaBuffer) {
        // There is always room until the tear-down has taken the pool: the vector has the capacity
        // for all buffers that can be made.
        if let Err(e) = self.buffers.push_within_capacity(buffer) {
            self.not_put(e.0);
        }
    }

    #[cold]
    fn not_put(&mut self, buffer: DmaBuffer) {
        drop(buffer);
        self.made -= 1;
    }

    /// Takes an idle region.
    pub(super) fn get_region(&mut self) -> Option<Region<Idle>> {
        self.idle.pop()
    }

    /// Takes back a region that is not registered; `reserved` says whether a slot for its
    /// invalidation was reserved and not used.
    pub(super) fn put_region(&mut self, region: Region<Idle>, reserved: bool) {
        self.reserved -= u32::from(reserved && self.reserved != 0);
        // There is always room: `expect_region` made it.
        let _ = self.idle.push_within_capacity(region);
    }

    /// Makes room for one more region, if there are less than `most`. Does not sleep.
    pub(super) fn expect_region(&mut self, most: u32) -> Result<bool> {
        if self.regions >= most {
            return Ok(false);
        }
        let all = self.regions as usize + 1;
        let more = all.saturating_sub(self.idle.len());
        self.idle.reserve(more, GFP_NOWAIT)?;
        self.regions += 1;
        Ok(true)
    }

    /// The region that was expected is there, or will not be.
    pub(super) fn add_region(&mut self, region: Option<Region<Idle>>) {
        match region {
            Some(region) => self.put_region(region, false),
            None => self.regions -= 1,
        }
    }

    /// Takes the idle region that was not used for longest, which is to be no more.
    pub(super) fn give_up_region(&mut self) -> Option<Region<Idle>> {
        let region = self.idle.remove(0).ok()?;
        self.regions -= 1;
        Some(region)
    }

    /// Whether there are regions, idle or not.
    pub(super) fn has_regions(&self) -> bool {
        self.regions != 0
    }

    /// How many regions are idle.
    pub(super) fn idle_regions(&self) -> usize {
        self.idle.len()
    }

    /// Whether anybody waits for a turn.
    pub(super) fn has_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// The connection is lost, by the peer or by this end. Returns whether that is news.
    pub(super) fn lose(&mut self) -> bool {
        !core::mem::replace(&mut self.lost, true)
    }

    /// Takes what waits for its turn, for tear-down.
    pub(super) fn take_pending(&mut self) -> Fifo<Work<C>> {
        core::mem::take(&mut self.pending)
    }

    /// Takes what is provided, for tear-down.
    pub(super) fn take_provided(&mut self) -> ProvidedTable {
        core::mem::take(&mut self.provided)
    }

    /// Takes all pooled buffers and idle regions, for tear-down.
    pub(super) fn take_pools(&mut self) -> (KVVec<DmaBuffer>, KVec<Region<Idle>>) {
        (
            core::mem::take(&mut self.buffers),
            core::mem::take(&mut self.idle),
        )
    }
}
