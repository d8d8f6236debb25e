// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Protects: pages that their owner lets go of stay as long as a peer can reach them, and no
//! longer; so long the regions are counted that cover memory of his; and nothing else is covered.

use crate::kapi::{
    ib::region::tests::*,
    page::{
        Covers,
        PageList, //
    },
};
use core::ptr::NonNull;

/// Pages that are covered and kept.
const PAGES: usize = 3;

impl Bench {
    /// As `map`, of pages that are to be kept, of an owner who counts.
    fn map_kept(&self, region: Region<Idle>, covers: &Covers) -> Result<Region<Mapped>> {
        let entries = self.memory.pages().get(..PAGES).ok_or(EINVAL)?;
        // SAFETY: Pages of the memory, which has a reference to each.
        let kept = unsafe { PageList::share(entries) }?;
        self.map_with(
            region,
            (Some(kept), Some(NonNull::from(covers))),
            Access::RemoteRead,
        )
    }

    fn map_with(
        &self,
        region: Region<Idle>,
        keepers: (Option<Arc<PageList>>, Option<NonNull<Covers>>),
        access: Access,
    ) -> Result<Region<Mapped>> {
        let (pages, none) = (self.memory.pages().as_ptr(), (core::ptr::null(), 0));
        let paged = (pages, 100, PAGES * PAGE_SIZE - 200);
        // SAFETY: Of the pages of the memory, which is there as long as regions cover it, as the
        // count is.
        let mut pieces = unsafe { ExtentIter::new(none, paged, none, keepers) };
        self.cover(region, &mut pieces, access, TAG)
            .map_err(|(e, _)| e)
    }

    /// Whether the pages, and not one more, are kept, and a region is counted.
    fn expect_kept(&self, when: &str, covers: &Covers, kept: bool) -> Result {
        let mut counts = [0; PAGES + 1];
        for (count, page) in counts.iter_mut().zip(self.memory.pages()) {
            // SAFETY: A page of the memory, which has it.
            *count = unsafe { bindings::page_count(*page) };
        }
        let n = 1 + i32::from(kept);
        same(when, counts, [n, n, n, 1])?;
        same(when, covers.is_none(), !kept)
    }
}

#[kunit_tests(rpcrdma_kept_pages)]
mod suite {
    use super::*;

    #[test]
    fn until_the_region_is_fenced_however_it_is() -> Result {
        let (covers, bench) = (Covers::new(), Bench::new(false)?);
        bench.expect_kept("before", &covers, false)?;

        let mapped = bench.map_kept(bench.idle(), &covers)?;
        bench.expect_kept("mapped", &covers, true)?;
        let idle = mapped.unmap(drop);
        bench.expect_kept("unmapped", &covers, false)?;

        let registered = bench.map_kept(idle, &covers)?.posted();
        let rkey = registered.rkey();
        let registered = match registered.invalidated_by(bench.invalidated(rkey ^ 1), drop) {
            Ok(_) => return same("invalidated by another key", true, false),
            Err(registered) => registered,
        };
        bench.expect_kept("registered", &covers, true)?;
        let Ok(idle) = registered.invalidated_by(bench.invalidated(rkey), drop) else {
            return same("invalidated", false, true);
        };
        bench.expect_kept("remotely invalidated", &covers, false)?;

        let invalidating = bench.invalidating(bench.map_kept(idle, &covers)?.posted());
        bench.expect_kept("invalidation posted", &covers, true)?;
        let idle = invalidating.completed(&bench.completed(POSITION + 1), drop);
        let idle = idle.map_err(|_| EINVAL)?;
        bench.expect_kept("locally invalidated", &covers, false)?;

        let registered = bench.map_kept(idle, &covers)?.posted();
        bench.expect_kept("registered again", &covers, true)?;
        bench.end()?;
        bench.expect_kept("dead", &covers, false)?;
        drop(registered);
        Ok(())
    }

    #[test]
    fn not_when_nothing_was_mapped() -> Result {
        let (covers, bench) = (Covers::new(), Bench::new(false)?);
        bench.device.refuse(fake::Request::MapMr, 0);
        let refused = bench.map_kept(bench.idle(), &covers).err();
        same("refused", refused, Some(ENOBUFS))?;
        bench.expect_kept("after that", &covers, false)?;
        bench.end()
    }

    #[test]
    fn what_nobody_keeps_is_not_covered() -> Result {
        let (covers, bench) = (Covers::new(), Bench::new(false)?);
        let read = Access::RemoteRead;
        let refused = bench.map_with(bench.idle(), (None, None), read).err();
        same("kept by nobody", refused, Some(EINVAL))?;
        bench.balance.more(0)?;
        let keepers = (None, Some(NonNull::from(&covers)));
        let counted = bench.map_with(bench.idle(), keepers, read)?;
        same("counted", covers.is_none(), false)?;
        let _ = counted.unmap(drop);
        same("after that", covers.is_none(), true)?;
        bench.end()
    }

    #[test]
    fn what_is_lent_to_be_read_is_not_written_to() -> Result {
        let (covers, bench) = (Covers::new(), Bench::new(false)?);
        let keepers = (None, Some(NonNull::from(&covers)));
        let refused = bench.map_with(bench.idle(), keepers, Access::RemoteWrite);
        same("refused", refused.err(), Some(EINVAL))?;
        same("after that", covers.is_none(), true)?;
        bench.balance.more(0)?;
        bench.end()
    }
}
