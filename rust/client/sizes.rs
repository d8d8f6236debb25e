// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! What a connection has, by what its device can do.

#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
#[path = "../../kunit/client_sizes.rs"]
mod tests;

use crate::{
    kapi::ib::{
        DeviceLimits,
        QpSizes, //
    },
    transport::{
        flow::credits::RECEIVE_BATCH,
        plan::{
            added_sends,
            longest_call,
            max_queue,
            Demand,
            Plan,
            RegionCounts,
            PAYLOAD_PAGES,
            UNSIGNALED_RUN, //
        },
        unsupported::Unsupported, //
    },
};

/// Reverse Calls that a server may have under way at once: the credits that we grant it.
pub(crate) const REVERSE_SLOTS: u32 = 16;

/// Elements of an RDMA Read: few, since every work request has room for as many.
const PULL_ELEMENTS: u32 = 4;
/// Segments of a Reply of the largest payload that there is room to read from at once. Fewer bytes
/// may be in more.
const PULL_SEGMENTS: u32 = 8;
/// Segments that are read at once by devices that have to register memory for that.
const PULL_CONTEXTS: u32 = 16;

/// Plans a connection of up to `rpcs` Calls at once, with regions of up to `pages` pages, 0 for as
/// many as the device has. If it `pulls`, it pulls Replies as far as the device has room for that.
pub(super) fn plan(
    device: &DeviceLimits,
    rpcs: u32,
    pages: u32,
    pulls: bool,
) -> Result<(Plan, RegionCounts), Unsupported> {
    if !device.registers {
        return Err(Unsupported::CannotRegister);
    }
    let regions = RegionCounts::new(device, pages)?;
    // A Call as a rule: a Send, and the registration and invalidation of a payload. And twice the
    // longest: one is made, another is to be.
    let usual = 1 + 2 * regions.aligned;
    let longest = 2 * longest_call(regions.rpc());
    let demand = Demand {
        rpcs,
        more_receives: REVERSE_SLOTS + RECEIVE_BATCH,
        least_sends: longest,
        usual_sends: usual
            .saturating_mul(rpcs)
            .saturating_add(REVERSE_SLOTS + longest),
        rdma_ctxs: 0,
    };
    let mut plan = Plan::new(device, &demand)?;
    plan.qp.max_regs = regions.rpc();
    plan.qp.region_pages = regions.pages;
    plan.send_buffers = rpcs + REVERSE_SLOTS + UNSIGNALED_RUN;
    if pulls && add_pulls(&mut plan, device, longest) {
        // Each RPC may have a Reply pulled, and be sent again for the next, before the server is
        // told.
        plan.send_buffers += rpcs;
    }
    Ok((plan, regions))
}

/// Adds what it takes to pull Replies, if the device has room for the RDMA Reads of one beside
/// `calls` work requests.
fn add_pulls(plan: &mut Plan, device: &DeviceLimits, calls: u32) -> bool {
    let elements = match device.iwarp {
        // A sink that has to be registered is one element.
        true => 1,
        false => device.max_send_elements.min(device.max_read_elements),
    };
    let elements = elements.clamp(1, PULL_ELEMENTS);
    let longest_read = longest_read(device.iwarp, elements);
    let most = max_queue(device).saturating_sub(added_sends(device, PULL_CONTEXTS));
    let sends = plan.qp.max_send_wr.saturating_add(longest_read).min(most);
    if sends < longest_read + calls + UNSIGNALED_RUN + 1 {
        return false;
    }
    plan.longest_read = longest_read;
    plan.qp = QpSizes {
        max_send_wr: sends,
        max_send_sge: elements,
        max_rdma_ctxs: PULL_CONTEXTS,
        max_reads: plan.rpcs,
        ..plan.qp
    };
    true
}

/// Returns the work requests of the RDMA Reads of one Reply.
fn longest_read(iwarp: bool, elements: u32) -> u32 {
    match iwarp {
        // A sink is registered, read into, and invalidated; and one of two regions.
        true => 4 * PULL_CONTEXTS,
        // Each segment may begin and end within a page, and end within a request.
        false => (PAYLOAD_PAGES + 2 + 2 * PULL_SEGMENTS).div_ceil(elements) + PULL_SEGMENTS,
    }
}
