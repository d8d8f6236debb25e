// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! A new endpoint, as large as its device allows.

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
            Handler,
            Parts, //
        },
        flow::Flow,
        plan::Plan,
        send_queue::SendQueue,
        trace,
        unsupported::Unsupported, //
    },
};
use kernel::{
    prelude::*,
    sync::Arc, //
};
use xdr::Version;

/// Makes the endpoint of an id whose address and route are resolved, as `plan` has it for its
/// device's limits and up to `rpcs` at once, with what `parts` makes of the plan, and of what the
/// end keeps of it. Returns that, too.
///
/// A device may refuse sizes that are within its limits, when it has no memory, or where one limit
/// depends on another: then it is asked for room for half the RPCs, or for half the pages of a
/// region. `report` is told why a device is not supported. May sleep.
pub(crate) fn make<H: Handler, S, I: PinInit<H>>(
    mut id: CmId<H::Cm>,
    mut device: DeviceLimits,
    mut rpcs: u32,
    plan: impl Fn(&DeviceLimits, u32) -> Result<(Plan, S), Unsupported>,
    parts: impl Fn(&Plan, &S) -> Result<(Flow, I)>,
    report: impl Fn(Unsupported),
) -> Result<(Arc<Endpoint<H>>, S)> {
    let fail = |reason: Unsupported| {
        report(reason);
        Error::from(reason)
    };
    let mut refused = None;
    loop {
        let planned = plan(&device, rpcs).map_err(|reason| fail(refused.unwrap_or(reason)));
        let (planned, kept) = planned?;
        let (flow, handler) = parts(&planned, &kept)?;
        match as_planned(id, planned, flow, handler) {
            Ok(endpoint) => return Ok((endpoint, kept)),
            Err(NotMade::Failed(_, e)) => return Err(e),
            Err(NotMade::Forced) => return Err(fail(Unsupported::RegistersAll)),
            Err(NotMade::Refused(back, part, error)) => {
                id = back;
                let halved = planned.halve(part, error, &mut device, &mut rpcs);
                refused = Some(halved.map_err(fail)?);
            }
        }
    }
}

/// Makes an endpoint of the sizes of a plan. May sleep.
pub(super) fn as_planned<H: Handler>(
    id: CmId<H::Cm>,
    plan: Plan,
    flow: Flow,
    handler: impl PinInit<H>,
) -> Result<Arc<Endpoint<H>>, NotMade<H::Cm>> {
    let (port, peer) = (id.port_name()?, id.addresses().1);
    let version = (!flow.counts_messages()).then_some(Version::One);
    let queue = SendQueue::new(&plan, flow)?;
    let parts = Parts::new(plan, port, peer, version, handler);
    QueuePair::new(id, plan.qp, queue, parts).inspect_err(|not_made| {
        if let NotMade::Refused(_, part, e) | NotMade::Failed(Some(part), e) = not_made {
            trace::no_part(H::ROLE, *part, || (peer, *e));
        }
    })
}
