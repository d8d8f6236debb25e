// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! One end of a connection, as large as its device allows.

#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
#[path = "../../kunit/endpoint.rs"]
mod tests;

use crate::{
    kapi::ib::{
        CmId,
        DeviceLimits,
        Handler,
        NotMade,
        QueuePair,
        QueuePairConfig,
        Refused, //
    },
    transport::unfit::Unfit, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// Makes the queue pair of an id whose address and route are resolved, with what `sizes` and `handler`
/// make of its device's limits and of up to `requests` messages at once. A device may refuse sizes that
/// are within its limits, when it has no memory, or where one limit depends on another: then it is asked
/// for room for half the messages, or for half the pages of a region.
///
/// `tell` is told why the device is of no use. May sleep.
pub(crate) fn make<H: Handler, S, I: PinInit<H>>(
    mut id: CmId<H::Cm>,
    device: DeviceLimits,
    requests: u32,
    sizes: impl Fn(&DeviceLimits, u32) -> Result<(QueuePairConfig, S), Unfit>,
    handler: impl Fn(&S) -> Result<I>,
    tell: impl Fn(Unfit),
) -> Result<Arc<QueuePair<H>>> {
    let mut ask = Ask::new(device, requests);
    loop {
        let (config, made) = sizes(&ask.device, ask.requests)
            .map_err(|unfit| ask.refusal.unwrap_or(unfit))
            .inspect_err(|unfit| tell(*unfit))?;
        match QueuePair::new(id, config, handler(&made)?) {
            Ok(qp) => return Ok(qp),
            Err(NotMade::Failed(e)) => return Err(e),
            Err(NotMade::Refused(back, what, error)) => {
                id = back;
                ask.less(what, &config, error)
                    .inspect_err(|unfit| tell(*unfit))?;
            }
        }
    }
}

/// What a device is asked for.
struct Ask {
    /// What it is taken for.
    device: DeviceLimits,
    /// Messages at once.
    requests: u32,
    /// What it has refused last.
    refusal: Option<Unfit>,
}

impl Ask {
    fn new(device: DeviceLimits, requests: u32) -> Self {
        Self {
            device,
            requests,
            refusal: None,
        }
    }

    /// It has refused so much: half of it, or an error where that is nothing.
    fn less(&mut self, what: Refused, config: &QueuePairConfig, error: Error) -> Result<(), Unfit> {
        let (size, asked, limit) = match what {
            // Both queues are longer than what a single message needs by what others need.
            Refused::Queues => (
                config.send_entries.max(config.receives),
                config.receives,
                &mut self.requests,
            ),
            Refused::Regions => (
                config.region_pages,
                config.region_pages,
                &mut self.device.max_region_pages,
            ),
        };
        *limit = asked.min(*limit) / 2;
        let refusal = Unfit::Refuses { what, size, error };
        self.refusal = Some(refusal);
        if *limit == 0 {
            return Err(refusal);
        }
        Ok(())
    }
}
