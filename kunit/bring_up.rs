// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Protects: a device that refuses what is within its limits is asked for less, and in the end for
//! nothing.

use super::*;
use crate::{
    kapi::ib::RegionSize,
    kunit::{
        drivers::limits,
        same, //
    },
};

const CONFIG: EndpointConfig = EndpointConfig {
    send_entries: 300,
    regions_per_call: 3,
    send_buffers: 8,
    send_size: 1024,
    receives: 400,
    receive_size: 1024,
    region: Some(RegionSize {
        pages: 257,
        sg_gaps: false,
    }),
    transfers: None,
    longest_read: 0,
    provided: 0,
};

#[kunit_tests(rpcrdma_bring_up)]
mod suite {
    use super::*;

    /// What a device without memory is asked for next, or what is said of it.
    fn less(ask: &mut Ask, what: Refused) -> Result<(), Unfit> {
        ask.less(what, &CONFIG, ENOMEM)
    }

    #[test]
    fn messages_are_halved() -> Result {
        let mut ask = Ask::new(limits(8192, 8192), 128);
        for requests in [64, 32, 16, 8, 4, 2, 1] {
            same("refused", less(&mut ask, Refused::Queues), Ok(()))?;
            same("requests", ask.requests, requests)?;
        }
        // The longer one of the queues.
        let refused = Unfit::Refuses {
            what: Refused::Queues,
            size: 400,
            error: ENOMEM,
        };
        same("refused", less(&mut ask, Refused::Queues), Err(refused))?;
        same("queue", ask.device.max_qp_wr, 8192)?;
        same("error", Error::from(refused), ENOMEM)
    }

    #[test]
    fn no_more_is_asked_for_than_was_refused() -> Result {
        let mut ask = Ask::new(limits(8192, 8192), 16384);
        same("refused", less(&mut ask, Refused::Queues), Ok(()))?;
        same("requests", ask.requests, CONFIG.receives / 2)
    }

    #[test]
    fn regions_are_halved() -> Result {
        let mut ask = Ask::new(limits(8192, 8192), 128);
        ask.device.max_region_pages = 4096;
        same("refused", less(&mut ask, Refused::Regions), Ok(()))?;
        same("pages", ask.device.max_region_pages, 128)?;
        same("requests", ask.requests, 128)
    }
}
