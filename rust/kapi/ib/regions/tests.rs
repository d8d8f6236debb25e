// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Protects: memory of a message counts as fenced only when none of its regions can be reached, and
//! a list has room for each region, whatever comes of it.

use crate::{
    kapi::ib::{
        region::tests::Bench,
        regions::*, //
    },
    kunit::{
        claim,
        same, //
    },
};

impl Regions {
    /// Counts the registrations of all that are mapped as posted.
    pub(crate) fn register_unposted(&mut self) {
        for region in self.mapped.drain_all() {
            let _ = self.registered.push_within_capacity(region.posted());
        }
    }
}

#[kunit_tests(rpcrdma_regions)]
mod suite {
    use super::*;

    #[test]
    fn room_for_more_regions() -> Result {
        let bench = Bench::new(false)?;
        let mut regions = Regions::new(1, GFP_KERNEL)?;
        let mapped = bench.map(bench.idle())?;
        let _ = regions.mapped.push_within_capacity(mapped);
        same("room", regions.avail(), 0)?;
        for (wanted, room) in [(1, 0), (36, 35), (2, 35), (36, 35)] {
            regions.reserve(wanted, GFP_KERNEL)?;
            same("room", regions.avail(), room)?;
        }
        // Each of them can come to be in any of the lists.
        claim(regions.registered.capacity() >= 36, "registered")?;
        claim(regions.invalidating.capacity() >= 36, "being invalidated")?;
        for region in regions.mapped.drain_all() {
            let _ = region.unmap(drop);
        }
        bench.end()
    }

    #[test]
    fn regions_of_an_rpc() -> Result {
        let (first, second) = (Bench::new(false)?, Bench::new(false)?);
        let mut regions = Regions::new(3, GFP_KERNEL)?;
        same("room", regions.avail(), 3)?;
        claim(regions.is_fenced(), "without regions it is fenced")?;

        let mapped = first.map(first.idle())?;
        let _ = regions.mapped.push_within_capacity(mapped);
        same("room", regions.avail(), 2)?;
        claim(!regions.is_fenced(), "its memory is mapped")?;

        for region in regions.mapped.drain_all() {
            let _ = regions.registered.push_within_capacity(region.posted());
        }
        claim(!regions.is_fenced(), "a registered one is in the way")?;
        let invalidating = second.invalidating(second.register(second.idle())?);
        let _ = regions.invalidating.push_within_capacity(invalidating);
        same("room", regions.avail(), 1)?;
        claim(!regions.is_fenced(), "two are in the way")?;

        regions.drop_dead();
        claim(!regions.is_fenced(), "they are alive")?;
        first.deregister();
        regions.drop_dead();
        same("room", regions.avail(), 2)?;
        claim(!regions.is_fenced(), "one is alive")?;
        second.deregister();
        regions.drop_dead();
        same("room", regions.avail(), 3)?;
        claim(regions.is_fenced(), "both are dead")?;
        drop(regions);
        second.end()?;
        first.end()
    }
}
