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

#[kunit_tests(rpcrdma_client_sizes)]
mod suite {
    use super::*;

    #[test]
    fn any_driver_will_do() -> Result {
        for (name, device) in drivers::all() {
            for (pages, requests) in [(0, 1), (0, 128), (0, 16384), (17, 128)] {
                let sizes = Sizes::new(&device, pages, requests)
                    .inspect_err(|unfit| pr_err!("# {name}: {unfit:?}\n"))?;
                let (plan, queues) = (&sizes.plan, &sizes.queues);
                claim(plan.pages() <= device.max_region_pages, "pages")?;
                claim(
                    queues.sends > 2 * plan.rpc(),
                    "room for one RPC of any kind",
                )?;
                // A queue of more places would be used for more Calls.
                let most = device.max_qp_wr.min(device.max_cqe) - REVERSE_SLOTS - RECEIVE_BATCH - 1;
                same("messages", queues.messages, requests.min(most))?;
            }
        }
        Ok(())
    }

    #[test]
    fn the_longest_reply_can_be_pulled() -> Result {
        for (name, device) in drivers::all() {
            let sizes = Sizes::new(&device, 0, 128)?.pulling(&device, 0);
            let Some(pulls) = sizes.pulls else {
                // Its queue is too short.
                same("too short", name, drivers::WORST)?;
                continue;
            };
            // One that begins within a page, in one segment.
            let elements = pulls.transfers.elements * pulls.longest_read;
            claim(device.iwarp || PAYLOAD_PAGES < elements, "its pages")?;
            let calls = 2 * longest_call(sizes.plan.rpc());
            let beside = sizes.queues.sends.saturating_sub(pulls.longest_read);
            claim(calls < beside, "beside a Call and another")?;
        }
        Ok(())
    }

    #[test]
    fn what_is_missing() -> Result {
        let device = drivers::limits(8192, 8192);
        let refused = |device: DeviceLimits| Sizes::new(&device, 0, 128).err();
        let plain = DeviceLimits {
            registers: false,
            ..device
        };
        same("refused", refused(plain), Some(Unfit::CannotRegister))?;
        let shallow = DeviceLimits {
            max_region_pages: 15,
            ..device
        };
        let expected = Unfit::FewPages {
            pages: 15,
            needed: 16,
        };
        same("refused", refused(shallow), Some(expected))?;
        // Of one region for a payload, and one each for a head and a tail, both ways: four requests
        // each, and a drain.
        let short = drivers::limits(29, 8192);
        let expected = Unfit::ShortQueues {
            requests: 29,
            completions: 8192,
            needed: 35,
        };
        same("refused", refused(short), Some(expected))
    }
}
