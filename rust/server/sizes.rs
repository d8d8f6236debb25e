// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! What a connection has, by what its device can do, and by what a message may have at most.

#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
#[path = "../../kunit/server_sizes.rs"]
mod tests;

use crate::{
    kapi::{
        ib::DeviceLimits,
        sys::memalloc::total_pages, //
    },
    transport::{
        flow::grant,
        plan::{
            max_queue,
            Demand,
            Plan,
            RegionCounts,
            PAYLOAD_PAGES,
            UNSIGNALED_RUN, //
        },
        provided::ProvidedLimits,
        unsupported::Unsupported, //
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
/// Divides the device's regions: one part may be made for what all clients have provided.
const SHARE_OF_REGIONS: u32 = 4;
/// Divides the machine's pages: one part may be taken by those regions.
const SHARE_OF_MEMORY: usize = 64;
/// Bytes of a region for each page that it can cover: those of its list here.
const BYTES_PER_PAGE: usize = 32;

/// Plans a connection of up to `rpcs` messages at once, of up to `max_message` bytes each. A client
/// that pulls may have up to `provided_bytes` provided, as far as the device can do that.
pub(super) fn plan(
    device: &DeviceLimits,
    rpcs: u32,
    max_message: usize,
    provided_bytes: Option<usize>,
) -> Result<(Plan, Option<ProvidedLimits>), Unsupported> {
    // Sinks of RDMA Reads have to be registered with iWARP, and with nothing else.
    if device.iwarp && !device.registers {
        return Err(Unsupported::CannotRegister);
    }
    let elements = device.max_send_elements.clamp(1, ELEMENTS);
    // And such a sink is one element.
    let fewest = match device.iwarp {
        true => elements,
        false => elements.min(device.max_read_elements).max(1),
    };
    let demand = Demand {
        rpcs,
        more_receives: grant::BESIDE,
        least_sends: longest_chain(max_message, fewest as usize),
        usual_sends: SENDS,
        rdma_ctxs: SEGMENTS as u32,
    };
    let mut plan = Plan::new(device, &demand)?;
    plan.qp.max_send_sge = elements;
    plan.qp.max_reads = plan.rpcs;
    plan.qp.max_regs = 1;
    let provided = provided_bytes
        .filter(|_| device.registers)
        .and_then(|bytes| add_provided(&mut plan, device, max_message, bytes));
    // One for each that is posted, and for each message that may be answered meanwhile.
    plan.send_buffers = plan.qp.max_send_wr.saturating_add(plan.qp.max_recv_wr);
    Ok((plan, provided))
}

/// Adds what it takes to provide as many Replies as there are messages at once, if the device has
/// the Receives for that, else as many as it has. Returns the limits on all of them; none if the
/// regions of the device are too small.
fn add_provided(
    plan: &mut Plan,
    device: &DeviceLimits,
    max_message: usize,
    bytes: usize,
) -> Option<ProvidedLimits> {
    let counts = RegionCounts::new(device, 0).ok()?;
    let left = max_queue(device).saturating_sub(plan.qp.max_recv_wr.saturating_add(1));
    let replies = plan.rpcs.min(left);
    if replies == 0 {
        return None;
    }
    let payloads = max_message.div_ceil(PAYLOAD_PAGES as usize * PAGE_SIZE) as u32;
    let usual = counts.message().saturating_mul(payloads);
    // A payload that is placed leaves a gap.
    let most = usual.saturating_add(counts.gaps(CHUNKS as u32));
    plan.provided = replies;
    plan.qp.max_recv_wr = plan.qp.max_recv_wr.saturating_add(replies);
    plan.qp.max_regs = most.min(SEGMENTS as u32);
    plan.qp.region_pages = counts.pages;
    let by_device = match device.max_regions {
        // It does not say.
        0 => u32::MAX,
        regions => regions / SHARE_OF_REGIONS,
    };
    let region_bytes = counts.pages.max(1) as usize * BYTES_PER_PAGE;
    let by_memory = total_pages() / SHARE_OF_MEMORY * PAGE_SIZE / region_bytes;
    let by_memory = u32::try_from(by_memory).unwrap_or(u32::MAX);
    Some(ProvidedLimits {
        replies,
        // As many again may wait to be invalidated.
        regions: usual.saturating_mul(2 * replies).max(plan.qp.max_regs),
        bytes,
        regions_of_all: by_device.min(by_memory).max(plan.qp.max_regs),
    })
}

/// Returns the work requests that one Reply or Call may need of a queue, by its limits and with
/// `elements` for each request.
fn longest_chain(max_message: usize, elements: usize) -> u32 {
    // Results, and what is left between them, end within segments.
    let parts = LIST_SEGMENTS + SEGMENTS + 2 * CHUNKS + 1;
    // Each part may begin and end within a page.
    let pages = max_message / PAGE_SIZE + 2 * parts;
    // Those of the parts, in the last of which there may be a single element; and the Send.
    let requests = (pages + parts * (elements - 1)) / elements + 1;
    u32::try_from(requests).map_or(u32::MAX, |n| n.saturating_add(UNSIGNALED_RUN))
}
