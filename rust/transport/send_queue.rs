// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The state of an endpoint beside the ring of posted work, under the ring's lock: free buffers and
//! regions, and the work that waits for its turn.

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
        flow::Flow,
        plan::{
            longest_call,
            Plan, //
        },
        provided::ProvidedTable,
        work::Work, //
    },
};
use kernel::prelude::*;

/// The pools of an endpoint, and who waits.
///
/// # Invariants
///
/// `reserved` slots of the ring are for the invalidations of registered regions.
pub(crate) struct SendQueue<C> {
    pub(crate) flow: Flow,
    /// The last number that was given to a buffer or a transfer.
    last_id: u32,
    /// The slots for the longest Call, by [`longest_call`].
    pub(super) longest_call: u32,
    /// The requests of the longest RDMA Reads of a requester; zero if it has none.
    pub(super) longest_read: u32,
    pub(super) reserved: u32,
    pub(super) pending: Fifo<Work<C>>,
    /// A request has failed.
    lost: bool,
    pub(super) unsignaled: u32,
    pub(super) buffers: KVVec<DmaBuffer>,
    pub(super) made: u32,
    pub(super) limit: u32,
    /// A buffer could not be made: the last one must come back soon.
    pub(super) short: bool,
    idle: KVec<Region<Idle>>,
    /// The number of regions, idle or not.
    regions: u32,
    pub(super) provided: ProvidedTable,
}

impl<C> SendQueue<C> {
    /// Creates the pools of an endpoint of these sizes, which are empty. May sleep.
    pub(super) fn new(plan: &Plan, flow: Flow) -> Result<Self> {
        let limit = plan.send_buffers;
        // Whatever waits has a message that is being read for, or a buffer, or takes a Reply back.
        let pending = match plan.qp.max_reads {
            0 if !flow.counts_messages() => 0,
            reads => reads.saturating_add(limit).saturating_add(plan.provided) as usize,
        };
        Ok(Self {
            flow,
            last_id: 0,
            longest_call: longest_call(plan.qp.max_regs).saturating_add(plan.qp.more_sends),
            longest_read: plan.longest_read,
            reserved: 0,
            pending: Fifo::with_capacity(pending)?,
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

    /// Returns a number that no other buffer or transfer has.
    pub(super) fn next_id(&mut self) -> u32 {
        self.last_id = self.last_id.wrapping_add(1);
        self.last_id
    }

    /// Returns the number of buffers that nobody has, made or not.
    pub(super) fn free_buffers(&self) -> u32 {
        let idle = self.buffers.len() as u32;
        self.limit.saturating_sub(self.made).saturating_add(idle)
    }

    /// Takes the buffer that stayed back, if it is still there, since a new one could not be made.
    pub(super) fn not_made(&mut self) -> Option<DmaBuffer> {
        self.made -= 1;
        self.short = true;
        self.buffers.pop()
    }

    /// Takes a buffer back that was not posted, or has been sent.
    #[inline]
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

    /// Adds the expected region, or notes that it could not be made.
    pub(super) fn add_region(&mut self, region: Option<Region<Idle>>) {
        match region {
            Some(region) => self.put_region(region, false),
            None => self.regions -= 1,
        }
    }

    /// Takes the idle region that was not used for longest, to be deregistered.
    pub(super) fn give_up_region(&mut self) -> Option<Region<Idle>> {
        let region = self.idle.remove(0).ok()?;
        self.regions -= 1;
        Some(region)
    }

    /// Returns whether there are regions, idle or not.
    pub(super) fn has_regions(&self) -> bool {
        self.regions != 0
    }

    /// Returns the number of idle regions.
    pub(super) fn idle_regions(&self) -> usize {
        self.idle.len()
    }

    /// Returns whether any work waits for its turn.
    pub(super) fn has_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Notes that the connection is lost, by the peer or this end. Returns whether that is new.
    pub(super) fn lose(&mut self) -> bool {
        !core::mem::replace(&mut self.lost, true)
    }

    /// Takes the work that waits for its turn, for the tear-down.
    pub(super) fn take_pending(&mut self) -> Fifo<Work<C>> {
        core::mem::take(&mut self.pending)
    }

    /// Takes the provided Replies, for the tear-down.
    pub(super) fn take_provided(&mut self) -> ProvidedTable {
        core::mem::take(&mut self.provided)
    }

    /// Takes all pooled buffers and idle regions, for the tear-down.
    pub(super) fn take_pools(&mut self) -> (KVVec<DmaBuffer>, KVec<Region<Idle>>) {
        (
            core::mem::take(&mut self.buffers),
            core::mem::take(&mut self.idle),
        )
    }
}
