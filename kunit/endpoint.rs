// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Protects: a device that refuses what is within its limits is asked for less, and in the end for nothing.

use super::*;
use crate::kunit::{
    drivers::limits,
    same, //
};

const CONFIG: QueuePairConfig = QueuePairConfig {
    send_entries: 300,
    regions_per_call: 3,
    send_buffers: 8,
    send_size: 1024,
    receives: 400,
    receive_size: 1024,
    region_pages: 257,
    sg_gaps: false,
    transfers: None,
};

#[kunit_tests(rpcrdma_endpoint)]
mod suite {
    use super::*;

    #[test]
    fn queues_are_halved() -> Result {
        let mut device = limits(8192, 8192);
        same(
            "refused",
            lessen(&mut device, Refused::Queues, &CONFIG),
            400,
        )?;
        // The longer one of the two that were refused.
        same("requests", device.max_qp_wr, 200)?;
        same("completions", device.max_cqe, 8192)?;
        // One that was asked for more than it has, for whatever reason.
        lessen(&mut device, Refused::Queues, &CONFIG);
        same("requests", device.max_qp_wr, 100)
    }

    #[test]
    fn regions_are_halved() -> Result {
        let mut device = limits(8192, 8192);
        device.max_region_pages = 4096;
        same(
            "refused",
            lessen(&mut device, Refused::Regions, &CONFIG),
            257,
        )?;
        same("pages", device.max_region_pages, 128)?;
        same("requests", device.max_qp_wr, 8192)
    }

    #[test]
    fn it_comes_to_an_end() -> Result {
        let mut device = limits(u32::MAX, 8192);
        let mut config = CONFIG;
        for _ in 0..32 {
            config.send_entries = device.max_qp_wr;
            lessen(&mut device, Refused::Queues, &config);
        }
        same("requests", device.max_qp_wr, 0)
    }
}
