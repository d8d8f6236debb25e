// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Protects: a server can use the device of any driver, for the largest payload; of others the log
//! says what is missing.

use super::*;
use crate::kunit::{
    claim,
    drivers,
    same, //
};
use kernel::prelude::*;

/// The payload of most servers, and a head; and the largest.
const MESSAGE: usize = (1 << 20) + PAGE_SIZE;
const LARGEST: usize = (4 << 20) + PAGE_SIZE;

/// Name; requests and Receives; elements; registrations of a Reply; pages of a region; send
/// buffers; regions of all Replies: of 64 messages, and of a client that pulls.
const PLANS: &[(&str, [u32; 7])] = &[
    ("mlx5", [255, 162, 30, 19, 257, 417, 384]),
    ("irdma, X722", [399, 162, 3, 19, 257, 561, 384]),
    ("cxgb4", [267, 162, 17, 21, 128, 429, 640]),
    (drivers::WORST, [721, 162, 2, 35, 16, 883, 2432]),
];

#[kunit_tests(rpcrdma_server_sizes)]
mod suite {
    use super::*;

    #[test]
    fn as_much_as_it_has_always_been() -> Result {
        for (name, expected) in PLANS {
            let (_, device) = drivers::all().find(|one| one.0 == *name).ok_or(ENOENT)?;
            let (plan, limits) = super::plan(&device, 64, MESSAGE, Some(5))?;
            let (qp, limits) = (&plan.qp, limits.ok_or(EINVAL)?);
            let found = [
                qp.max_send_wr,
                qp.max_recv_wr,
                qp.max_send_sge,
                qp.max_regs,
                qp.region_pages,
                plan.send_buffers,
                limits.regions,
            ];
            same(name, found, *expected)?;
            same("contexts", (qp.max_rdma_ctxs, qp.max_reads), (64, 64))?;
            same("bytes", limits.bytes, 5)?;
            let (without, limits) = super::plan(&device, 64, MESSAGE, None)?;
            same("limits", limits, None)?;
            same("Receives", without.qp.max_recv_wr, 98)?;
            same("regions", without.qp.region_pages, 0)?;
            same("registrations", without.qp.max_regs, 1)?;
        }
        Ok(())
    }

    #[test]
    fn fewer_are_provided_where_receives_are_few() -> Result {
        let device = DeviceLimits {
            max_send_elements: 30,
            max_read_elements: 30,
            ..drivers::limits(300, 8192)
        };
        for (rpcs, replies) in [(100, 100), (200, 65), (264, 1), (265, 0), (1000, 0)] {
            let (plan, limits) = super::plan(&device, rpcs, MESSAGE, Some(5))?;
            same("Replies", plan.provided, replies)?;
            same("limits", limits.map_or(0, |limits| limits.replies), replies)?;
            claim(plan.qp.max_recv_wr < 300, "Receives, and the drain")?;
        }
        Ok(())
    }

    #[test]
    fn any_driver_will_do() -> Result {
        for (name, device) in drivers::all() {
            for requests in [1, 64, 16384] {
                let (plan, provides) = super::plan(&device, requests, MESSAGE, None)
                    .inspect_err(|reason| pr_err!("# {name}: {reason:?}\n"))?;
                let elements = plan.qp.max_send_sge;
                claim(elements <= device.max_send_elements, "elements")?;
                claim(plan.rpcs <= requests, "messages")?;
                same("provided", (plan.provided, provides), (0, None))?;
                let largest = super::plan(&device, requests, LARGEST, None);
                // Its RDMA Reads have one element each.
                same("for the largest", largest.is_ok(), name != drivers::WORST)?;
            }
        }
        Ok(())
    }

    #[test]
    fn a_payload_fits_the_queue() -> Result {
        let worst = drivers::limits(895, 1024);
        let (plan, _) = super::plan(&worst, 64, MESSAGE, None)?;
        // One element each of RDMA Reads, the Send, and the drain.
        claim(
            plan.qp.max_send_wr as usize > MESSAGE / PAGE_SIZE + 2,
            "all of it",
        )
    }

    #[test]
    fn not_all_regions_are_for_what_is_provided() -> Result {
        for regions in [1, 10_000, u32::MAX, 0] {
            let device = DeviceLimits {
                max_regions: regions,
                ..drivers::limits(8192, 8192)
            };
            let (Plan { qp, provided, .. }, limits) = super::plan(&device, 64, MESSAGE, Some(1))?;
            let limits = limits.ok_or(EINVAL)?;
            same("Replies", (provided, limits.replies), (64, 64))?;
            let all = limits.regions_of_all;
            claim(all >= qp.max_regs, "enough for one")?;
            claim(limits.regions >= qp.max_regs, "enough for one of each")?;
            let part = (regions / 4).max(qp.max_regs);
            claim(regions == 0 || all <= part, "a part of the device's")?;
            let bytes = |regions: u32| regions as usize * qp.region_pages as usize * 32;
            let memory = total_pages() / 64 * PAGE_SIZE;
            claim(bytes(all) <= memory, "a part of the memory")?;
            let whole = (regions != 0 && all == part) || memory < bytes(all + 1);
            claim(whole, "all of either part")?;
        }
        Ok(())
    }

    #[test]
    fn what_is_missing() -> Result {
        let short = drivers::limits(256, 4096);
        let needed = longest_chain(MESSAGE, 1) + 1;
        let expected = Unsupported::ShortQueues {
            requests: 256,
            completions: 4096,
            needed,
        };
        let refused = |device: DeviceLimits| super::plan(&device, 64, MESSAGE, None).err();
        same("refused", refused(short), Some(expected))?;
        let plain = DeviceLimits {
            registers: false,
            ..drivers::limits(8192, 8192)
        };
        same("of RoCE", refused(plain), None)?;
        let iwarp = DeviceLimits {
            iwarp: true,
            ..plain
        };
        same(
            "of iWARP",
            refused(iwarp),
            Some(Unsupported::CannotRegister),
        )
    }
}
