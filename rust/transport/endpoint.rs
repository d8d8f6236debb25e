// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! One end of a connection, as large as its device allows.

#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
#[path = "../../kunit/endpoint.rs"]
mod tests;

use super::unfit::Unfit;
use crate::kapi::ib::{
    CmId,
    DeviceLimits,
    Handler,
    NotMade,
    QueuePair,
    QueuePairConfig,
    Refused, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// Makes the queue pair of an id whose address and route are resolved, with what `sizes` and `handler`
/// make of the device's limits. A device may refuse sizes that are within its limits, when it has no
/// memory, or where one limit depends on another: then it is asked for half.
///
/// `tell` is told why the device is of no use. May sleep.
pub(crate) fn make<H: Handler, S, I: PinInit<H>>(
    mut id: CmId<H::Cm>,
    sizes: impl Fn(&DeviceLimits) -> Result<(QueuePairConfig, S), Unfit>,
    handler: impl Fn(&S) -> Result<I>,
    tell: impl Fn(Unfit),
) -> Result<Arc<QueuePair<H>>> {
    let mut device = id.limits()?;
    let mut refusal = None;
    loop {
        let (config, made) = sizes(&device)
            .map_err(|unfit| refusal.unwrap_or(unfit))
            .inspect_err(|unfit| tell(*unfit))?;
        match QueuePair::new(id, config, handler(&made)?) {
            Ok(qp) => return Ok(qp),
            Err(NotMade::Failed(e)) => return Err(e),
            Err(NotMade::Refused(back, what, error)) => {
                id = back;
                let size = lessen(&mut device, what, &config);
                refusal = Some(Unfit::Refuses { what, size, error });
            }
        }
    }
}

/// Takes a device that has refused so much for one that has half of it. Returns what it has refused.
fn lessen(device: &mut DeviceLimits, refused: Refused, config: &QueuePairConfig) -> u32 {
    let (size, limit) = match refused {
        Refused::Queues => (
            config.send_entries.max(config.receives),
            &mut device.max_qp_wr,
        ),
        Refused::Regions => (config.region_pages, &mut device.max_region_pages),
    };
    *limit = size.min(*limit) / 2;
    size
}
