// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Protects: no queue is longer than the device allows, whatever it says of itself; none is too
//! short for what has to fit, or else the device is refused, with the numbers. A device that
//! refuses what is within its limits is asked for less, and in the end for nothing.

use super::*;
use crate::kunit::{
    claim,
    drivers::limits,
    same,
    text_len, //
};
use kernel::prelude::*;

/// Numbers that a device may say, sane or not.
const NUMBERS: &[u32] = &[
    0,
    1,
    2,
    15,
    16,
    17,
    32,
    33,
    34,
    50,
    127,
    128,
    255,
    256,
    257,
    511,
    764,
    1023,
    4096,
    65535,
    1_048_576,
    u32::MAX - 1,
    u32::MAX,
];
const RANDOM: usize = 20_000;
/// As of a client.
const DEMAND: Demand = Demand {
    rpcs: 128,
    more_receives: 34,
    least_sends: 100,
    usual_sends: 200,
    rdma_ctxs: 10,
};

/// A device whose queues hold so much, to whose send queue the core adds one request for each
/// context.
fn device(requests: u32, completions: u32) -> DeviceLimits {
    DeviceLimits {
        wr_per_rdma_ctx: 1,
        ..limits(requests, completions)
    }
}

/// The device has what it is asked for, and it is enough; or it is refused, and has not.
fn judge(device: &DeviceLimits, demand: &Demand) -> Result {
    let queue = device.max_qp_wr.min(device.max_cqe);
    let added = u64::from(device.wr_per_rdma_ctx) * u64::from(demand.rdma_ctxs);
    match Plan::new(device, demand) {
        Ok(Plan { qp, rpcs, .. }) => {
            claim(
                u64::from(qp.max_send_wr) + added <= u64::from(queue),
                "sends",
            )?;
            claim(
                qp.max_send_wr > demand.least_sends,
                "the longest post, and the drain",
            )?;
            claim(qp.max_recv_wr < queue, "receives, and the drain")?;
            claim((1..=demand.rpcs.max(1)).contains(&rpcs), "RPCs")?;
            same("receives", qp.max_recv_wr, rpcs + demand.more_receives)
        }
        Err(Unsupported::ShortQueues { needed, .. }) => {
            claim(queue < needed, "it has too little")?;
            let exact = DeviceLimits {
                max_qp_wr: needed,
                max_cqe: needed,
                ..*device
            };
            // More than there can be has no number.
            claim(
                needed == u32::MAX || Plan::new(&exact, demand).is_ok(),
                "what is needed would do",
            )
        }
        Err(_) => claim(false, "of the queues"),
    }
}

/// The next of a row of numbers without order.
fn next(seed: &mut u64) -> u64 {
    *seed = seed
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    *seed >> 33
}

fn any(seed: &mut u64) -> u32 {
    let n = next(seed) as usize;
    match n % 3 {
        0 => NUMBERS.get(n / 3 % NUMBERS.len()).copied().unwrap_or(0),
        1 => next(seed) as u32 % 2048,
        _ => next(seed) as u32,
    }
}

/// A plan that a device without memory refuses.
fn large() -> Result<Plan> {
    let mut plan = Plan::new(&limits(8192, 8192), &DEMAND)?;
    plan.qp.max_send_wr = 300;
    plan.qp.max_recv_wr = 400;
    plan.qp.region_pages = 257;
    Ok(plan)
}

#[kunit_tests(rpcrdma_plan)]
mod suite {
    use super::*;

    #[test]
    fn within_any_limits() -> Result {
        let mut seed = 18;
        for _ in 0..RANDOM {
            let device = DeviceLimits {
                wr_per_rdma_ctx: any(&mut seed) % 4,
                ..limits(any(&mut seed), any(&mut seed))
            };
            let demand = Demand {
                rpcs: any(&mut seed),
                more_receives: any(&mut seed),
                least_sends: any(&mut seed),
                usual_sends: any(&mut seed),
                rdma_ctxs: any(&mut seed),
            };
            judge(&device, &demand).inspect_err(|_| pr_err!("# {device:?}, {demand:?}\n"))?;
        }
        Ok(())
    }

    #[test]
    fn says_what_is_missing() -> Result {
        let short = Plan::new(&device(110, 4096), &DEMAND).err();
        let expected = Unsupported::ShortQueues {
            requests: 110,
            completions: 4096,
            needed: 111,
        };
        same("short", short, Some(expected))?;
        let enough = Plan::new(&device(111, 111), &DEMAND)?;
        same("sends", enough.qp.max_send_wr, 101)?;
        same("receives", enough.qp.max_recv_wr, 110)?;
        same("RPCs", enough.rpcs, 76)
    }

    #[test]
    fn what_may_do_later_is_told_from_what_never_will() -> Result {
        let short = Plan::new(&limits(1, 1), &DEMAND).err().ok_or(EINVAL)?;
        let refused = Unsupported::Refused {
            part: Part::QueuePair,
            size: 1,
            error: ENOMEM,
        };
        for (reason, error) in [(short, EOPNOTSUPP), (refused, ENOMEM)] {
            claim(text_len(format_args!("{reason}")) != 0, "it is said")?;
            same("error", Error::from(reason), error)?;
        }
        Ok(())
    }

    #[test]
    fn says_what_is_refused() -> Result {
        let said = |part| {
            let (size, error) = (8, ENOMEM);
            let refused = Unsupported::Refused { part, size, error };
            text_len(format_args!("{refused}"))
        };
        // Regions of pages, and queues of requests.
        same("longer by", said(Part::QueuePair) - said(Part::Region), 2)?;
        same(
            "as long",
            said(Part::CompletionQueue),
            said(Part::QueuePair),
        )
    }

    #[test]
    fn rpcs_are_halved() -> Result {
        let (mut device, mut rpcs) = (limits(8192, 8192), 128);
        let plan = large()?;
        for part in [
            Part::CompletionQueue,
            Part::QueuePair,
            Part::CompletionQueue,
            Part::ProtectionDomain,
            Part::QueuePair,
            Part::QueuePair,
            Part::QueuePair,
        ] {
            let half = rpcs / 2;
            let refused = plan.halve(part, ENOMEM, &mut device, &mut rpcs);
            claim(refused.is_ok(), "asked again")?;
            same("RPCs", rpcs, half)?;
        }
        // The longer one of the queues.
        let expected = Unsupported::Refused {
            part: Part::QueuePair,
            size: 400,
            error: ENOMEM,
        };
        let refused = plan.halve(Part::QueuePair, ENOMEM, &mut device, &mut rpcs);
        same("refused", refused, Err(expected))?;
        same("queue", device.max_qp_wr, 8192)
    }

    #[test]
    fn no_more_is_asked_for_than_was_refused() -> Result {
        let (mut device, mut rpcs) = (limits(8192, 8192), 16384);
        let refused = large()?.halve(Part::QueuePair, ENOMEM, &mut device, &mut rpcs);
        claim(refused.is_ok(), "asked again")?;
        same("RPCs", rpcs, 200)
    }

    #[test]
    fn regions_are_halved() -> Result {
        let (mut device, mut rpcs) = (limits(8192, 8192), 128);
        device.max_region_pages = 4096;
        let refused = large()?.halve(Part::Region, ENOMEM, &mut device, &mut rpcs);
        let expected = Unsupported::Refused {
            part: Part::Region,
            size: 257,
            error: ENOMEM,
        };
        same("refused", refused, Ok(expected))?;
        same("pages", device.max_region_pages, 128)?;
        same("RPCs", rpcs, 128)
    }
}
