// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! How many memory regions the messages of a connection need at most.

#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
#[path = "../../kunit/region_plan.rs"]
mod tests;

use crate::transport::unfit::Unfit;
use core::num::NonZero;
use kernel::page::PAGE_SIZE;

/// Pages of the largest payload: 1 MiB that begins anywhere in a page.
pub(crate) const PAYLOAD_PAGES: u32 = (1 << 20) / PAGE_SIZE as u32 + 1;
/// Segments of the largest payload, at most. Every server takes sixteen (RFC 8267, section 6.4.2),
/// and so many a payload has that begins with a page; where regions are of 64 KiB, one that does
/// not has one more.
const SEGMENTS: u32 = 17;
/// Pages that a region has to cover for that.
const LEAST_PAGES: u32 = PAYLOAD_PAGES.div_ceil(SEGMENTS);

/// What the regions of a connection cover.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RegionPlan {
    /// Of one region: LEAST_PAGES to PAYLOAD_PAGES, 16 to 257 where a page is of 4 KiB.
    pages: u32,
    /// Regions of the largest payload that begins with a page.
    aligned: u32,
    /// The same, wherever it begins.
    payload: u32,
    /// Regions more of a payload whose pieces do not join, in front of its whole pages and behind
    /// them.
    breaks: u32,
}

impl RegionPlan {
    /// For a device whose regions cover up to `device` pages, of which `allowed` are to be used; 0
    /// for all of them.
    ///
    /// An error when that is too little.
    pub(crate) fn new(device: u32, allowed: u32) -> Result<Self, Unfit> {
        let most = if allowed == 0 { PAYLOAD_PAGES } else { allowed };
        let pages = device.min(most).min(PAYLOAD_PAGES);
        let enough = NonZero::new(pages).filter(|pages| pages.get() >= LEAST_PAGES);
        let pages = enough.ok_or(Unfit::FewPages {
            pages,
            needed: LEAST_PAGES,
        })?;
        let payload = PAYLOAD_PAGES.div_ceil(pages.get());
        Ok(Self {
            pages: pages.get(),
            aligned: (PAYLOAD_PAGES - 1).div_ceil(pages.get()),
            payload,
            breaks: 0,
        })
    }

    /// For a device whose bounce buffers may lose the place of a piece in its page.
    pub(crate) fn bounced(self) -> Self {
        Self { breaks: 2, ..self }
    }

    /// Pages that one region covers.
    pub(crate) fn pages(&self) -> u32 {
        self.pages
    }

    /// Regions of the largest payload that begins with a page, as those of the page cache do.
    pub(crate) fn aligned(&self) -> u32 {
        self.aligned
    }

    /// Segments of a chunk that is one payload: its regions, and one for XDR padding.
    pub(crate) fn segments(&self) -> usize {
        (self.payload + self.breaks) as usize + 1
    }

    /// Regions of a whole message: its head and its tail may need one each, or two where they go
    /// over the edge of a page and their pieces do not join.
    pub(crate) fn message(&self) -> u32 {
        self.payload + 2 + 2 * self.breaks
    }

    /// Regions more of a message out of which `n` parts were taken, each of which leaves a gap.
    pub(crate) fn gaps(&self, n: u32) -> u32 {
        (1 + self.breaks).saturating_mul(n)
    }

    /// Regions of one RPC, for a Call and a Reply.
    pub(crate) fn rpc(&self) -> u32 {
        2 * self.message()
    }
}
