// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! What an endpoint gets, by the limits of its device and what its end demands: queues, buffers and
//! memory regions. None of the limits is taken to make sense.

#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
#[path = "../../kunit/segments.rs"]
mod segments;
#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
#[path = "../../kunit/plan.rs"]
mod tests;

use crate::{
    kapi::ib::{
        DeviceLimits,
        Part,
        QpSizes, //
    },
    transport::{
        chunk_limits::ChunkLimits,
        unsupported::Unsupported, //
    },
};
use core::num::NonZero;
use kernel::{
    page::PAGE_SIZE,
    prelude::*, //
};

/// Pages of the largest payload: 1 MiB that begins anywhere in a page.
pub(crate) const PAYLOAD_PAGES: u32 = (1 << 20) / PAGE_SIZE as u32 + 1;
/// Segments of the largest payload, at most. Every server takes sixteen (RFC 8267, section 6.4.2),
/// and a payload that begins with a page has no more; where regions are of 64 KiB, another has one
/// more.
const SEGMENTS: u32 = 17;
/// Pages that a region has to cover for that.
const LEAST_PAGES: u32 = PAYLOAD_PAGES.div_ceil(SEGMENTS);

/// Work requests that may go unsignaled in a row.
///
/// Every one of them may hold a send buffer, so the buffers must exceed the calls by as many: more
/// would cost memory, fewer a wakeup more often.
pub(crate) const UNSIGNALED_RUN: u32 = 12;
/// Sends that others may post while a Call is being made that has seen room: one that asks whether
/// the server is there, and one from the handler of received messages.
const OTHER_SENDS: u32 = 2;

/// Returns the room in the send queue that a Call of up to `registrations` waits for: for these and
/// their invalidations, the Send, and what others send meanwhile.
pub(crate) fn longest_call(registrations: u32) -> u32 {
    registrations
        .saturating_mul(2)
        .saturating_add(1 + OTHER_SENDS)
}

/// Returns the entries that a queue can hold: each has a completion queue of its own.
pub(crate) fn max_queue(device: &DeviceLimits) -> u32 {
    device.max_qp_wr.min(device.max_cqe)
}

/// Returns the work requests that ib_core adds to a send queue for `rdma_ctxs` contexts.
pub(crate) fn added_sends(device: &DeviceLimits, rdma_ctxs: u32) -> u32 {
    device.wr_per_rdma_ctx.saturating_mul(rdma_ctxs)
}

/// Describes the queues that one end of a connection demands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Demand {
    /// RPCs at once; fewer will do.
    pub(crate) rpcs: u32,
    /// Receives beside one for each RPC.
    pub(crate) more_receives: u32,
    /// Work requests that the send queue must have room for.
    pub(crate) least_sends: u32,
    /// Work requests that the send queue should have room for.
    pub(crate) usual_sends: u32,
    /// Contexts for RDMA Reads and Writes, see [`QpSizes`].
    pub(crate) rdma_ctxs: u32,
}

/// Describes what an endpoint gets.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Plan {
    pub(crate) qp: QpSizes,
    /// RPCs at once: one at least.
    pub(crate) rpcs: u32,
    /// Send buffers, at most; made as they are needed.
    pub(crate) send_buffers: u32,
    /// Bytes of a send buffer.
    pub(crate) send_size: usize,
    /// Bytes of a receive buffer.
    pub(crate) receive_size: usize,
    /// Work requests of the longest RDMA Reads that pull one Reply, beside which a requester's
    /// Calls leave room; 0 where it pulls none, and for a responder.
    pub(crate) longest_read: u32,
    /// Replies that a responder provides at once.
    pub(crate) provided: u32,
}

impl Plan {
    /// Plans queues that are as long as demanded, as far as the device has so much. They are for
    /// Sends and Receives alone, and there are no send buffers yet.
    pub(crate) fn new(device: &DeviceLimits, demand: &Demand) -> Result<Self, Unsupported> {
        let (queue, added) = (max_queue(device), added_sends(device, demand.rdma_ctxs));
        let least_sends = demand.least_sends.saturating_add(added);
        let least_receives = demand.more_receives.saturating_add(1);
        let least = least_sends.max(least_receives);
        // The drain of each queue needs one entry more.
        if queue <= least {
            return Err(Unsupported::ShortQueues {
                requests: device.max_qp_wr,
                completions: device.max_cqe,
                needed: least.saturating_add(1),
            });
        }
        let usual_sends = demand.usual_sends.max(demand.least_sends);
        let rpcs = demand.rpcs.clamp(1, queue - least_receives);
        Ok(Self {
            qp: QpSizes {
                max_send_wr: usual_sends.saturating_add(1).min(queue - added),
                max_recv_wr: rpcs + demand.more_receives,
                max_send_sge: 1,
                max_rdma_ctxs: demand.rdma_ctxs,
                sg_gaps: device.sg_gaps,
                ..QpSizes::default()
            },
            rpcs,
            ..Self::default()
        })
    }

    /// Halves the pages of a region, or the RPCs at once, since the device has refused a part of
    /// this plan. Returns what it has refused; as an error where nothing is left to ask for.
    pub(super) fn halve(
        &self,
        part: Part,
        error: Error,
        device: &mut DeviceLimits,
        rpcs: &mut u32,
    ) -> Result<Unsupported, Unsupported> {
        let qp = &self.qp;
        let (size, asked, limit) = match part {
            Part::Region => (
                qp.region_pages,
                qp.region_pages,
                &mut device.max_region_pages,
            ),
            // Both queues are longer than what a single RPC needs by what others need.
            _ => (qp.max_send_wr.max(qp.max_recv_wr), qp.max_recv_wr, rpcs),
        };
        *limit = asked.min(*limit) / 2;
        let refused = Unsupported::Refused { part, size, error };
        match *limit {
            0 => Err(refused),
            _ => Ok(refused),
        }
    }
}

/// Counts the regions that messages need at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RegionCounts {
    /// Pages of one region: LEAST_PAGES to PAYLOAD_PAGES, 16 to 257 where a page is of 4 KiB.
    pub(crate) pages: u32,
    /// Regions of the largest payload that begins with a page, as those of the page cache do.
    pub(crate) aligned: u32,
    /// Regions of the largest payload, wherever it begins.
    payload: u32,
    /// Regions more of a payload whose pieces do not join, in front of its whole pages and behind
    /// them: bounce buffers may lose the place of a piece in its page.
    breaks: u32,
}

impl RegionCounts {
    /// Counts for regions of as many pages as the device has and `allowed` says, where 0 allows
    /// all. An error when that is too little.
    pub(crate) fn new(device: &DeviceLimits, allowed: u32) -> Result<Self, Unsupported> {
        let most = if allowed == 0 { PAYLOAD_PAGES } else { allowed };
        let pages = device.max_region_pages.min(most).min(PAYLOAD_PAGES);
        let enough = NonZero::new(pages).filter(|pages| pages.get() >= LEAST_PAGES);
        let pages = enough.ok_or(Unsupported::FewPages {
            pages,
            needed: LEAST_PAGES,
        })?;
        Ok(Self {
            pages: pages.get(),
            aligned: (PAYLOAD_PAGES - 1).div_ceil(pages.get()),
            payload: PAYLOAD_PAGES.div_ceil(pages.get()),
            breaks: if device.bounces { 2 } else { 0 },
        })
    }

    /// Returns the segments of a chunk that is one payload: its regions, and one for XDR padding.
    pub(crate) fn segments(&self) -> usize {
        (self.payload + self.breaks) as usize + 1
    }

    /// Returns the bytes of the longest payload that has a chunk within limits: its pieces may
    /// begin and end within a segment, and the padding may have one. A page at least.
    pub(crate) fn payload_within(&self, limits: &ChunkLimits) -> usize {
        let others = 2 + self.breaks as usize;
        let segments = limits.left(0).min(self.message() as usize);
        let region = self.pages as usize * PAGE_SIZE;
        let longest = limits.segment_bytes.min(region);
        let most = segments.saturating_sub(others).saturating_mul(longest);
        most.clamp(PAGE_SIZE, PAYLOAD_PAGES as usize * PAGE_SIZE)
    }

    /// Returns whether parts of a message that follow each other have one chunk within limits,
    /// beside others of `used` segments. A part is an offset in a page and a length in bytes.
    pub(crate) fn may_cover(
        &self,
        parts: &[(usize, usize)],
        limits: &ChunkLimits,
        used: usize,
    ) -> bool {
        let segments = parts.iter().map(|part| self.segments_of(*part, limits));
        let breaks = self.breaks as usize * parts.len().saturating_sub(1);
        let most = limits.left(used).min(self.message() as usize);
        segments.fold(breaks, usize::saturating_add) <= most
    }

    /// Returns the most segments of a part within limits.
    fn segments_of(&self, (offset, len): (usize, usize), limits: &ChunkLimits) -> usize {
        let region = self.pages as usize * PAGE_SIZE;
        match limits.segment_bytes >= region {
            true => offset.saturating_add(len).div_ceil(region),
            // Of a region that begins within a page, a part of a page is lost.
            false => len.div_ceil(limits.segment_bytes.clamp(1, region - PAGE_SIZE)),
        }
    }

    /// Returns the regions of a whole message: its head and its tail may need one each, or two
    /// where they go over the edge of a page and their pieces do not join.
    pub(crate) fn message(&self) -> u32 {
        self.payload + 2 + 2 * self.breaks
    }

    /// Returns the regions more of a message out of which `n` parts were taken, each of which
    /// leaves a gap.
    pub(crate) fn gaps(&self, n: u32) -> u32 {
        (1 + self.breaks).saturating_mul(n)
    }

    /// Returns the regions of one RPC, for a Call and a Reply.
    pub(crate) fn rpc(&self) -> u32 {
        2 * self.message()
    }
}
