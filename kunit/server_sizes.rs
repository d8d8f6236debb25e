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
/// What the core adds where it registers the memory of 64 transfers: three requests each.
const ADDED: u32 = 3 * SEGMENTS as u32;

#[kunit_tests(rpcrdma_server_sizes)]
mod suite {
    use super::*;

    #[test]
    fn any_driver_will_do() -> Result {
        for (name, device) in drivers::all() {
            let added = if device.iwarp { ADDED } else { 0 };
            for requests in [1, 64, 16384] {
                let sizes = Sizes::new(&device, added, requests, MESSAGE)
                    .inspect_err(|unfit| pr_err!("# {name}: {unfit:?}\n"))?;
                claim(sizes.elements <= device.max_send_elements, "elements")?;
                claim(sizes.queues.messages <= requests, "messages")?;
                let largest = Sizes::new(&device, added, requests, LARGEST);
                // Its RDMA Reads have one element each.
                same("for the largest", largest.is_ok(), name != drivers::WORST)?;
            }
        }
        Ok(())
    }

    #[test]
    fn a_payload_fits_the_queue() -> Result {
        let worst = drivers::limits(895, 1024);
        let sizes = Sizes::new(&worst, 0, 64, MESSAGE)?;
        // One element each of RDMA Reads, the Send, and the drain.
        claim(
            sizes.queues.sends as usize > MESSAGE / PAGE_SIZE + 2,
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
            let sizes = Sizes::new(&device, 0, 64, MESSAGE).map_err(|_| EINVAL)?;
            let provides = sizes.providing(&device, MESSAGE).provides.ok_or(EINVAL)?;
            let all = provides.regions_of_all;
            claim(all >= provides.regions, "enough for one")?;
            let part = (regions / 4).max(provides.regions);
            claim(regions == 0 || all <= part, "a part of the device's")?;
            let pages = all as usize * provides.region.pages as usize / (PAGE_SIZE / 32);
            claim(pages <= total_pages() / 64, "a part of the memory")?;
        }
        Ok(())
    }

    #[test]
    fn what_is_missing() -> Result {
        let short = drivers::limits(256, 4096);
        let needed = longest_chain(MESSAGE, 1) + 1;
        let expected = Unfit::ShortQueues {
            requests: 256,
            completions: 4096,
            needed,
        };
        let refused = |device: DeviceLimits| Sizes::new(&device, 0, 64, MESSAGE).err();
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
        same("of iWARP", refused(iwarp), Some(Unfit::CannotRegister))
    }
}
