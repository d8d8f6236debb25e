// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Protects: pages that their owner lets go of stay as long as a peer can reach them, and no
//! longer.

use crate::kapi::{
    ib::region::tests::*,
    page::Kept, //
};

/// References to each of the pages that are covered, and to one more.
fn counts(bench: &Bench) -> [i32; PAGES + 1] {
    let mut counts = [0; PAGES + 1];
    for (count, page) in counts.iter_mut().zip(bench.memory.pages()) {
        // SAFETY: A page of the memory, which has it.
        *count = unsafe { bindings::page_count(*page) };
    }
    counts
}

/// Pages that are covered and kept.
const PAGES: usize = 3;
const ALONE: [i32; PAGES + 1] = [1, 1, 1, 1];
const KEPT: [i32; PAGES + 1] = [2, 2, 2, 1];

impl Bench {
    /// As `map`, of pages that are to be kept.
    fn map_kept(&self, region: Region<Idle>) -> Result<Region<Mapped>> {
        let entries = self.memory.pages().get(..PAGES).ok_or(EINVAL)?;
        // SAFETY: Pages of the memory, which has a reference to each.
        let kept = unsafe { Kept::pages(entries) }?;
        let (pages, none) = (entries.as_ptr(), (core::ptr::null(), 0));
        let paged = (pages, 100, PAGES * PAGE_SIZE - 200);
        // SAFETY: Of the pages of the memory.
        let mut pieces = unsafe { ExtentIter::new(none, paged, none, Some(kept)) };
        self.cover(region, &mut pieces, Access::RemoteRead, TAG)
            .map_err(|(e, _)| e)
    }
}

#[kunit_tests(rpcrdma_kept_pages)]
mod suite {
    use super::*;

    #[test]
    fn until_the_region_is_fenced_however_it_is() -> Result {
        let bench = Bench::new(false)?;
        same("before", counts(&bench), ALONE)?;

        let mapped = bench.map_kept(bench.idle())?;
        same("mapped", counts(&bench), KEPT)?;
        let idle = mapped.unmap(drop);
        same("unmapped", counts(&bench), ALONE)?;

        let registered = bench.map_kept(idle)?.posted();
        let rkey = registered.rkey();
        let registered = match registered.invalidated_by(bench.invalidated(rkey ^ 1), drop) {
            Ok(_) => return same("invalidated by another key", true, false),
            Err(registered) => registered,
        };
        same("registered", counts(&bench), KEPT)?;
        let Ok(idle) = registered.invalidated_by(bench.invalidated(rkey), drop) else {
            return same("invalidated", false, true);
        };
        same("remotely invalidated", counts(&bench), ALONE)?;

        let invalidating = bench.invalidating(bench.map_kept(idle)?.posted());
        same("invalidation posted", counts(&bench), KEPT)?;
        let idle = invalidating.completed(&bench.completed(POSITION + 1), drop);
        let idle = idle.map_err(|_| EINVAL)?;
        same("locally invalidated", counts(&bench), ALONE)?;

        let registered = bench.map_kept(idle)?.posted();
        same("registered again", counts(&bench), KEPT)?;
        bench.end()?;
        same("dead", counts(&bench), ALONE)?;
        drop(registered);
        Ok(())
    }

    #[test]
    fn not_when_nothing_was_mapped() -> Result {
        let bench = Bench::new(false)?;
        bench.device.refuse(fake::Request::MapMr, 0);
        let refused = bench.map_kept(bench.idle()).err();
        same("refused", refused, Some(ENOBUFS))?;
        same("after that", counts(&bench), ALONE)?;
        bench.end()
    }
}
