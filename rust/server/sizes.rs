// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! What a connection has, by what its device can do, and by what a message may have at most.

#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
#[path = "../../kunit/server_sizes.rs"]
mod tests;

use crate::{
    kapi::{
        ib::{
            DeviceLimits,
            RegionSize, //
        },
        sys::memalloc::total_pages, //
    },
    transport::{
        flow::grant,
        queues::{
            Queues,
            Wish, //
        },
        region_plan::{
            RegionPlan,
            PAYLOAD_PAGES, //
        },
        send_queue::UNSIGNALED_RUN,
        unfit::Unfit, //
    },
};
use kernel::page::PAGE_SIZE;

/// Segments of one chunk.
pub(super) const SEGMENTS: usize = 64;
/// Segments of all Read chunks, and of all Write chunks beside the Reply chunk.
pub(super) const LIST_SEGMENTS: usize = 2 * SEGMENTS;
/// Read chunks, and Write chunks.
pub(super) const CHUNKS: usize = 16;
/// Elements of one work request, at most.
const ELEMENTS: u32 = 30;
/// Work requests that the send queue holds at least, where the device has so many.
const SENDS: u32 = 128;
/// Of the device's regions, one in so many may be made for what all clients have provided.
const SHARE_OF_REGIONS: u32 = 4;
/// Of the machine's memory, one in so many pages may be taken by those.
const SHARE_OF_MEMORY: usize = 64;
/// Bytes of a region for each page that it can cover: those of its list here.
const BYTES_PER_PAGE: usize = 32;

/// Elements and queues.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    /// Of one work request.
    pub(super) elements: u32,
    pub(super) queues: Queues,
    /// What is provided for the client to pull; none if it does not pull.
    pub(super) provides: Option<Provides>,
}

/// What a client may have provided at once.
#[derive(Clone, Copy, Debug)]
pub(super) struct Provides {
    /// Replies.
    pub(super) replies: u32,
    pub(super) region: RegionSize,
    /// Regions of one Reply, at most.
    pub(super) regions: u32,
    /// Regions of all.
    pub(super) all_regions: u32,
    /// And of all clients together.
    pub(super) regions_of_all: u32,
}

impl Sizes {
    /// For messages of up to `max_message` bytes, `max_requests` at once, and a core that adds so
    /// many work requests.
    pub(super) fn new(
        device: &DeviceLimits,
        added: u32,
        max_requests: u32,
        max_message: usize,
    ) -> Result<Self, Unfit> {
        // Sinks of RDMA Reads have to be registered with iWARP, and with nothing else.
        if device.iwarp && !device.registers {
            return Err(Unfit::CannotRegister);
        }
        let elements = device.max_send_elements.clamp(1, ELEMENTS);
        // And such a sink is one element.
        let fewest = match device.iwarp {
            true => elements,
            false => elements.min(device.max_read_elements).max(1),
        };
        let wish = Wish {
            longest: longest_chain(max_message, fewest as usize),
            usual: SENDS,
            added,
            messages: max_requests,
            beside: grant::BESIDE,
        };
        let queues = Queues::new(device, &wish)?;
        Ok(Self {
            elements,
            queues,
            provides: None,
        })
    }

    /// For a client that pulls Replies, too, as far as the device can do that.
    pub(super) fn providing(mut self, device: &DeviceLimits, max_message: usize) -> Self {
        if device.registers {
            self.provides = Provides::new(device, &mut self.queues, max_message);
        }
        self
    }
}

impl Provides {
    /// As many as there are messages at once, if the device has the Receives for that; else as
    /// many as it has. None if it has regions that are too small.
    fn new(device: &DeviceLimits, queues: &mut Queues, max_message: usize) -> Option<Self> {
        let plan = RegionPlan::new(device.max_region_pages, 0).ok()?;
        let plan = if device.bounces { plan.bounced() } else { plan };
        let left = device.max_qp_wr.min(device.max_cqe);
        let left = left.saturating_sub(queues.receives.saturating_add(1));
        let replies = queues.messages.min(left);
        queues.receives = queues.receives.saturating_add(replies);
        let payloads = max_message.div_ceil(PAYLOAD_PAGES as usize * PAGE_SIZE) as u32;
        let usual = plan.message().saturating_mul(payloads);
        // A payload that is placed leaves a gap.
        let most = usual.saturating_add(plan.gaps(CHUNKS as u32));
        let regions = most.min(SEGMENTS as u32);
        let bytes = plan.pages().max(1) as usize * BYTES_PER_PAGE;
        let by_memory = total_pages() / SHARE_OF_MEMORY * PAGE_SIZE / bytes;
        let by_memory = u32::try_from(by_memory).unwrap_or(u32::MAX);
        let by_device = match device.max_regions {
            // It does not say.
            0 => u32::MAX,
            regions => regions / SHARE_OF_REGIONS,
        };
        Some(Self {
            replies,
            region: RegionSize {
                pages: plan.pages(),
                sg_gaps: device.sg_gaps,
            },
            regions,
            // As many again may wait to be invalidated.
            all_regions: usual.saturating_mul(2 * replies).max(regions),
            regions_of_all: by_device.min(by_memory).max(regions),
        })
        .filter(|_| replies != 0)
    }
}

/// Work requests that one Reply or Call may need of a queue, by its limits and with `elements` for
/// each request.
fn longest_chain(max_message: usize, elements: usize) -> u32 {
    // Results, and what is left between them, end within segments.
    let parts = LIST_SEGMENTS + SEGMENTS + 2 * CHUNKS + 1;
    // Each part may begin and end within a page.
    let pages = max_message / PAGE_SIZE + 2 * parts;
    // Those of the parts, in the last of which there may be a single element; and the Send.
    let requests = (pages + parts * (elements - 1)) / elements + 1;
    u32::try_from(requests).map_or(u32::MAX, |n| n.saturating_add(UNSIGNALED_RUN))
}
