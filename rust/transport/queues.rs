// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! How long the queues of a connection are, by the limits of its device, none of which is taken to
//! make sense.

#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
#[path = "../../kunit/queues.rs"]
mod tests;

use crate::{
    kapi::ib::DeviceLimits,
    transport::unfit::Unfit, //
};

/// What a connection would like to have, and what it needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wish {
    /// Work requests that there has to be room for in the send queue.
    pub(crate) longest: u32,
    /// Those that there should be room for.
    pub(crate) usual: u32,
    /// Work requests that the core adds to the send queue.
    pub(crate) added: u32,
    /// Calls, or Replies, that may come at once; fewer will do.
    pub(crate) messages: u32,
    /// Receives beside those.
    pub(crate) beside: u32,
}

/// What it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Queues {
    /// Work requests that the send queue holds, one of which its drain needs, without those that
    /// the core adds.
    pub(crate) sends: u32,
    /// Receives that are posted at once.
    pub(crate) receives: u32,
    /// Calls, or Replies, that may come at once: one at least.
    pub(crate) messages: u32,
}

impl Queues {
    /// As long as is wished, as far as the device has so much.
    pub(crate) fn new(device: &DeviceLimits, wish: &Wish) -> Result<Self, Unfit> {
        // Each queue has a completion queue of its own, and its drain needs one place more.
        let queue = device.max_qp_wr.min(device.max_cqe);
        let sends = wish.longest.saturating_add(wish.added);
        let receives = wish.beside.saturating_add(1);
        let least = sends.max(receives);
        if queue <= least {
            return Err(Unfit::ShortQueues {
                requests: device.max_qp_wr,
                completions: device.max_cqe,
                needed: least.saturating_add(1),
            });
        }
        let usual = wish.usual.max(wish.longest).saturating_add(1);
        let messages = wish.messages.clamp(1, queue - receives);
        Ok(Self {
            sends: usual.min(queue - wish.added),
            receives: messages + wish.beside,
            messages,
        })
    }
}
