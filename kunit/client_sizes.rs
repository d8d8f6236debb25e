// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Protects: a client can use the device of any driver, at full depth where it has the queues for
//! that; of others the log says what is missing.

use super::*;
use crate::kunit::{
    claim,
    drivers,
    same, //
};
use kernel::prelude::*;

/// Name; requests and Receives; elements; registrations of an RPC; pages of a region; send
/// buffers; requests of the longest RDMA Reads: of 128 RPCs, and of Replies that are pulled.
const PLANS: &[(&str, [u32; 7])] = &[
    ("mlx5", [508, 161, 4, 6, 257, 284, 77]),
    ("irdma, iWARP", [495, 161, 1, 6, 257, 284, 64]),
    ("cxgb4", [767, 161, 1, 10, 128, 284, 64]),
    (drivers::WORST, [895, 161, 1, 38, 16, 284, 283]),
];

#[kunit_tests(rpcrdma_client_sizes)]
mod suite {
    use super::*;

    #[test]
    fn as_much_as_it_has_always_been() -> Result {
        for (name, expected) in PLANS {
            let (_, device) = drivers::all().find(|one| one.0 == *name).ok_or(ENOENT)?;
            let (plan, _) = super::plan(&device, 128, 0, true)?;
            let qp = &plan.qp;
            let found = [
                qp.max_send_wr,
                qp.max_recv_wr,
                qp.max_send_sge,
                qp.max_regs,
                qp.region_pages,
                plan.send_buffers,
                plan.longest_read,
            ];
            same(name, found, *expected)?;
            same("contexts", qp.max_rdma_ctxs, 16)?;
            let (without, _) = super::plan(&device, 128, 0, false)?;
            same("contexts", without.qp.max_rdma_ctxs, 0)?;
            same("send buffers", without.send_buffers, 156)?;
        }
        Ok(())
    }

    #[test]
    fn no_room_to_pull() -> Result {
        // The RDMA Reads of one Reply, two Calls, a run without a completion, and the drain.
        let least = 77 + 2 * longest_call(6) + UNSIGNALED_RUN + 1;
        for (queue, pulls) in [(least - 1, false), (least, true)] {
            let device = DeviceLimits {
                max_send_elements: 4,
                max_read_elements: 4,
                ..drivers::limits(queue, 8192)
            };
            let (plan, _) = super::plan(&device, 128, 0, true)?;
            same("pulls", plan.longest_read != 0, pulls)?;
            same("sends", plan.qp.max_send_wr, queue)?;
        }
        Ok(())
    }

    #[test]
    fn any_driver_will_do() -> Result {
        for (name, device) in drivers::all() {
            for (pages, requests) in [(0, 1), (0, 128), (0, 16384), (17, 128)] {
                let (plan, regions) = super::plan(&device, requests, pages, false)
                    .inspect_err(|reason| pr_err!("# {name}: {reason:?}\n"))?;
                let qp = &plan.qp;
                claim(qp.region_pages <= device.max_region_pages, "pages")?;
                claim(
                    qp.max_send_wr > 2 * regions.rpc(),
                    "room for one RPC of any kind",
                )?;
                // A queue of more places would be used for more Calls.
                let most = device.max_qp_wr.min(device.max_cqe) - REVERSE_SLOTS - RECEIVE_BATCH - 1;
                same("RPCs", plan.rpcs, requests.min(most))?;
            }
        }
        Ok(())
    }

    #[test]
    fn the_longest_reply_can_be_pulled() -> Result {
        for (name, device) in drivers::all() {
            let (plan, regions) = super::plan(&device, 128, 0, true)?;
            if plan.longest_read == 0 {
                // Its queue is too short.
                same("too short", name, drivers::WORST)?;
                same("reads", plan.qp.max_reads, 0)?;
                continue;
            }
            same("reads", plan.qp.max_reads, plan.rpcs)?;
            // One that begins within a page, in one segment.
            let elements = plan.qp.max_send_sge * plan.longest_read;
            claim(device.iwarp || PAYLOAD_PAGES < elements, "its pages")?;
            let calls = 2 * longest_call(regions.rpc());
            let beside = plan.qp.max_send_wr.saturating_sub(plan.longest_read);
            claim(calls < beside, "beside a Call and another")?;
            let added = plan.qp.max_rdma_ctxs * device.wr_per_rdma_ctx;
            let queue = device.max_qp_wr.min(device.max_cqe);
            claim(plan.qp.max_send_wr + added <= queue, "what the core adds")?;
        }
        Ok(())
    }

    #[test]
    fn what_is_missing() -> Result {
        let device = drivers::limits(8192, 8192);
        let refused = |device: DeviceLimits| super::plan(&device, 128, 0, true).err();
        let plain = DeviceLimits {
            registers: false,
            ..device
        };
        same("refused", refused(plain), Some(Unsupported::CannotRegister))?;
        let shallow = DeviceLimits {
            max_region_pages: 15,
            ..device
        };
        let expected = Unsupported::FewPages {
            pages: 15,
            needed: 16,
        };
        same("refused", refused(shallow), Some(expected))?;
        // Of one region for a payload, and one each for a head and a tail, both ways: four requests
        // each, and a drain.
        let short = drivers::limits(29, 8192);
        let expected = Unsupported::ShortQueues {
            requests: 29,
            completions: 8192,
            needed: 35,
        };
        same("refused", refused(short), Some(expected))
    }
}
