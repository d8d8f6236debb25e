// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! A new endpoint, as large as its device allows.

#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
#[path = "../../kunit/bring_up.rs"]
mod tests;

use crate::{
    kapi::ib::{
        CmId,
        DeviceLimits,
        NotMade,
        QueuePair, //
    },
    transport::{
        endpoint::{
            Endpoint,
            EndpointConfig,
            Handler,
            Parts, //
        },
        flow::Flow,
        send_queue::SendQueue,
        trace,
        unfit::{
            Refused,
            Unfit, //
        }, //
    },
};
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// Makes the endpoint of an id whose address and route are resolved, with what `sizes` and
/// `parts` make of its device's limits and of up to `requests` messages at once. A device may
/// refuse sizes that are within its limits, when it has no memory, or where one limit depends on
/// another: then it is asked for room for half the messages, or for half the pages of a region.
///
/// `tell` is told why the device is of no use. May sleep.
pub(crate) fn make<H: Handler, S, I: PinInit<H>>(
    mut id: CmId<H::Cm>,
    device: DeviceLimits,
    requests: u32,
    sizes: impl Fn(&DeviceLimits, u32) -> Result<(EndpointConfig, S), Unfit>,
    parts: impl Fn(&S) -> Result<(Flow, I)>,
    tell: impl Fn(Unfit),
) -> Result<Arc<Endpoint<H>>> {
    let mut ask = Ask::new(device, requests);
    loop {
        let (config, made) = sizes(&ask.device, ask.requests)
            .map_err(|unfit| ask.refusal.unwrap_or(unfit))
            .inspect_err(|unfit| tell(*unfit))?;
        let (flow, handler) = parts(&made)?;
        match of_size(id, config, flow, handler) {
            Ok(endpoint) => return Ok(endpoint),
            Err(NotMade::Failed(_, e)) => return Err(e),
            Err(NotMade::Forced) => {
                tell(Unfit::RegistersAll);
                return Err(Unfit::RegistersAll.into());
            }
            Err(NotMade::Refused(back, part, error)) => {
                id = back;
                ask.less(part.into(), &config, error)
                    .inspect_err(|unfit| tell(*unfit))?;
            }
        }
    }
}

/// Makes one of that size. May sleep.
pub(super) fn of_size<H: Handler>(
    id: CmId<H::Cm>,
    config: EndpointConfig,
    flow: Flow,
    handler: impl PinInit<H>,
) -> Result<Arc<Endpoint<H>>, NotMade<H::Cm>> {
    let peer = id.addresses().1;
    let reads = config.transfers.map_or(0, |transfers| transfers.reads);
    let queue = SendQueue::new(
        flow,
        (config.regions_per_call, config.longest_read),
        config.send_buffers,
        reads,
        config.provided,
    )?;
    let parts = Parts::new(config, handler);
    QueuePair::new(id, config.qp(), queue, parts).inspect_err(|not_made| {
        if let NotMade::Refused(_, part, e) | NotMade::Failed(Some(part), e) = not_made {
            trace::no_part(H::ROLE, *part, || (peer, *e));
        }
    })
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
    fn less(&mut self, what: Refused, config: &EndpointConfig, error: Error) -> Result<(), Unfit> {
        let (size, asked, limit) = match what {
            // Both queues are longer than what a single message needs by what others need.
            Refused::Queues => (
                config.send_entries.max(config.receives),
                config.receives,
                &mut self.requests,
            ),
            Refused::Regions => {
                let pages = config.region.map_or(0, |region| region.pages);
                (pages, pages, &mut self.device.max_region_pages)
            }
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
