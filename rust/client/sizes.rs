// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! What a connection has, by what its device can do.

#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
#[path = "../../kunit/client_sizes.rs"]
mod tests;

use crate::{
    client::region_plan::RegionPlan,
    kapi::ib::DeviceLimits,
    transport::{
        credits::RECEIVE_BATCH,
        queues::{
            Queues,
            Wish, //
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
}

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
        let longest = 4 * (plan.rpc() + 1);
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
        Ok(Self { plan, queues })
    }
}
