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

#[kunit_tests(rpcrdma_server_sizes)]
mod suite {
    use super::*;

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
            let pages = all as usize * qp.region_pages as usize / (PAGE_SIZE / 32);
            claim(pages <= total_pages() / 64, "a part of the memory")?;
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
