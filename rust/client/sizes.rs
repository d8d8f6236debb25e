// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! What a connection has, by what its device can do.

#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
#[path = "../../kunit/client_sizes.rs"]
mod tests;

use crate::{
    kapi::ib::{
        DeviceLimits,
        TransferSizes, //
    },
    transport::{
        flow::credits::RECEIVE_BATCH,
        queues::{
            Queues,
            Wish, //
        },
        region_plan::{
            RegionPlan,
            PAYLOAD_PAGES, //
        },
        send_queue::{
            longest_call,
            UNSIGNALED_RUN, //
        },
        unfit::Unfit, //
    },
};

/// Reverse Calls that a server may have under way at once: the credits that we grant it.
pub(crate) const REVERSE_SLOTS: u32 = 16;

/// Regions and queues.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    pub(super) plan: RegionPlan,
    pub(super) queues: Queues,
    /// Work requests of two Calls of the longest kind.
    longest_calls: u32,
    /// For Replies that are pulled; none if they are not.
    pub(super) pulls: Option<Pulls>,
}

/// What it takes to pull Replies.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pulls {
    /// Work requests of the RDMA Reads of one.
    pub(super) longest_read: u32,
    pub(super) transfers: TransferSizes,
}

/// Elements of an RDMA Read: few, since every work request has room for as many.
const PULL_ELEMENTS: u32 = 4;
/// Segments of a Reply of the largest payload that there is room to read from at once. Fewer bytes
/// may be in more.
const PULL_SEGMENTS: u32 = 8;
/// Segments that are read at once by devices that have to register memory for that.
pub(super) const PULL_CONTEXTS: u32 = 16;

impl Sizes {
    /// For up to `max_requests` Calls at once, with regions of up to `pages` pages, 0 for as many
    /// as the device has.
    pub(super) fn new(device: &DeviceLimits, pages: u32, max_requests: u32) -> Result<Self, Unfit> {
        if !device.registers {
            return Err(Unfit::CannotRegister);
        }
        let plan = RegionPlan::new(device.max_region_pages, pages)?;
        let plan = if device.bounces { plan.bounced() } else { plan };
        // A Call as a rule: a Send, and the registration and invalidation of a payload. And once,
        // the longest.
        let usual = 1 + 2 * plan.aligned();
        let longest = 2 * longest_call(plan.rpc());
        let wish = Wish {
            longest,
            usual: usual
                .saturating_mul(max_requests)
                .saturating_add(REVERSE_SLOTS + longest),
            added: 0,
            messages: max_requests,
            beside: REVERSE_SLOTS + RECEIVE_BATCH,
        };
        let queues = Queues::new(device, &wish)?;
        Ok(Self {
            plan,
            queues,
            longest_calls: longest,
            pulls: None,
        })
    }

    /// So that Replies can be pulled, as far as the device has room for that beside what the core
    /// adds.
    pub(super) fn pulling(mut self, device: &DeviceLimits, added: u32) -> Self {
        let queue = device.max_qp_wr.min(device.max_cqe);
        let elements = match device.iwarp {
            // A sink that has to be registered is one element.
            true => 1,
            false => device.max_send_elements.min(device.max_read_elements),
        };
        let elements = elements.clamp(1, PULL_ELEMENTS);
        let longest = longest_read(device.iwarp, elements);
        // A Call is made, another is to be, and there is a Reply to pull.
        let least = longest + self.longest_calls + UNSIGNALED_RUN + 1;
        let sends = self.queues.sends.saturating_add(longest);
        let sends = sends.min(queue.saturating_sub(added));
        if sends < least {
            return self;
        }
        self.queues.sends = sends;
        self.pulls = Some(Pulls {
            longest_read: longest,
            transfers: TransferSizes {
                elements,
                contexts: PULL_CONTEXTS,
                reads: self.queues.messages,
            },
        });
        self
    }
}

/// Work requests of the RDMA Reads of one Reply.
fn longest_read(iwarp: bool, elements: u32) -> u32 {
    match iwarp {
        // A sink is registered, read into, and invalidated; and one of two regions.
        true => 4 * PULL_CONTEXTS,
        // Each segment may begin and end within a page, and end within a request.
        false => (PAYLOAD_PAGES + 2 + 2 * PULL_SEGMENTS).div_ceil(elements) + PULL_SEGMENTS,
    }
}
