// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The regions of one RPC, from the post that registers them to the proof that no peer can reach
//! what they cover; and that of the padding, which is no RPC's.

use crate::{
    kapi::{
        ib::{
            Access,
            Invalidated,
            InvalidatedKey,
            Poster,
            Region,
            Regions,
            Registered, //
        },
        page::ExtentIter,
        trace::{
            self,
            CoveredRegion,
            TaskId, //
        },
    },
    transport::{
        endpoint::{
            Endpoint,
            Handler, //
        },
        padding::Padding,
        trace::{
            not_made,
            not_mapped,
            segment,
            unmapped, //
        },
        work::{
            Message,
            Waiter, //
        },
    },
};
use kernel::prelude::*;
use xdr::Segment;

/// Describes the region that was mapped last, for trace events.
pub(crate) fn last_mapped(regions: &Regions) -> CoveredRegion {
    let last = regions.mapped().last().map(|region| region.covered());
    last.unwrap_or_default().into()
}

impl<H: Handler> Endpoint<H> {
    /// Allocates `n` more regions, but never more than `most` in all. Returns their number; an
    /// error only if there are none. May sleep.
    pub(crate) fn grow_regions(&self, n: u32, most: u32) -> Result<u32> {
        for made in 0..n {
            match self.make_region(most) {
                Err(e) if made == 0 => return Err(e),
                Err(_) | Ok(false) => return Ok(made),
                Ok(true) => (),
            }
        }
        Ok(n)
    }

    /// Allocates a region, unless there are `most`.
    fn make_region(&self, most: u32) -> Result<bool> {
        if !self.lock().expect_region(most)? {
            return Ok(false);
        }
        let made = self.alloc_mr().inspect_err(not_made);
        let result = made.as_ref().map_or_else(|e| Err(*e), |_| Ok(true));
        self.lock().add_region(made.ok());
        result
    }

    /// Returns the number of idle regions.
    pub(crate) fn idle_regions(&self) -> usize {
        self.lock().idle_regions()
    }

    /// Maps as many pieces as fit to one more region of `regions`, for access by the peer. Returns
    /// its segment. May sleep.
    ///
    /// The XID goes into the upper half of the peer's address. `EAGAIN` when no region is idle,
    /// `EMSGSIZE` when the RPC may have no more, `ENOBUFS` when `regions` has no room for it or the
    /// memory cannot be mapped now, `EIO` when the device refuses it, `EINVAL` beside regions of
    /// another queue pair. `task` is that of the RPC.
    #[inline]
    pub(super) fn map(
        &self,
        poster: &Poster<'_>,
        regions: &mut Regions,
        what: (&mut ExtentIter<'_>, Access, u32),
        task: impl Fn() -> TaskId,
    ) -> Result<Segment> {
        // They have to fit into one post.
        if regions.len() >= self.plan().qp.max_regs as usize {
            return Err(EMSGSIZE);
        }
        if regions.avail() == 0 {
            return Err(ENOBUFS);
        }
        let region = self.lock().get_region().ok_or(EAGAIN)?;
        match regions.map(region, poster, what) {
            Ok(key) => {
                trace::xprtrdma_mr_map(|| (task(), last_mapped(regions)));
                Ok(segment(key))
            }
            Err((why, region)) => {
                not_mapped(&why);
                self.lock().put_region(region, false);
                Err(why.error)
            }
        }
    }

    /// Posts the registration of the mapped regions, and a Send behind it; see
    /// [`SendBuffer::post`]. Of regions that stay mapped, since nothing was posted, none may stay
    /// with the RPC: it is sent again on another connection.
    ///
    /// [`SendBuffer::post`]: super::send_buffer::SendBuffer::post
    #[inline]
    pub(super) fn post_with(
        &self,
        regions: &mut Regions,
        message: &mut Message,
        task: impl Fn() -> TaskId,
    ) -> Result {
        let posted = match regions.others_than(self.number()) {
            true => Err(EINVAL),
            false => self.lock().post_call(message, Some(regions), task),
        };
        posted.inspect_err(|_| self.unmap(regions))
    }

    /// Returns mapped regions to the pool: nothing was posted.
    pub(crate) fn unmap(&self, regions: &mut Regions) {
        while let Some(idle) = regions.unmap(unmapped) {
            // One of another queue pair is of no use, and goes with that.
            if idle.owner() == self.number() {
                self.lock().put_region(idle, false);
            }
        }
    }

    /// Returns the region that was remotely invalidated to the pool. None if there is none, or it
    /// or the key is another queue pair's.
    ///
    /// Returns whether somebody waits for the room that was reserved for its local invalidation, of
    /// which no completion tells: [`Self::make_room`] is to follow then.
    pub(crate) fn remotely_invalidated(
        &self,
        regions: &mut Regions,
        key: InvalidatedKey<'_>,
        task: impl Fn() -> TaskId,
    ) -> Option<bool> {
        if key.owner() != self.number() {
            return None;
        }
        let was = |region: &Region<Registered>| {
            trace::xprtrdma_mr_reminv(|| (task(), region.covered().into()));
        };
        let idle = regions.invalidated_by(key, was, unmapped)?;
        let mut queue = self.lock();
        queue.put_region(idle, true);
        Some(queue.has_pending())
    }

    /// Posts the local invalidation of all registered regions, for a waiter.
    ///
    /// [`Handler::invalidated`] brings the cookie back; where nothing could be posted it comes
    /// back here, with the regions as they were. After any error the connection must be dropped.
    /// `EINVAL` if the regions are another queue pair's.
    pub(crate) fn invalidate(
        &self,
        regions: &mut Regions,
        cookie: H::Cookie,
        waiter: Waiter,
        task: impl Fn() -> TaskId,
    ) -> Result<(), (Error, Option<H::Cookie>)> {
        for region in regions.registered() {
            if region.owner() != self.number() {
                return Err((EINVAL, Some(cookie)));
            }
            trace::xprtrdma_mr_localinv(|| (task(), region.covered().into()));
        }
        let result = self.lock().post_invalidations(regions, cookie, waiter);
        if let Err((e, _)) = &result {
            trace::xprtrdma_post_linv_err(|| (task(), *e));
        }
        result
    }

    /// Returns the regions that are being invalidated to the pool, if `done` proves their
    /// invalidation.
    pub(crate) fn invalidation_completed(&self, regions: &mut Regions, done: &Invalidated) {
        while let Some(idle) = regions.completed(done, unmapped) {
            if idle.owner() == self.number() {
                self.lock().put_region(idle, false);
            }
        }
    }

    /// Allocates and registers room for XDR padding behind results. To be called once, when the
    /// connection is up and nobody sends yet: what is sent later finds it registered. May sleep.
    ///
    /// On an error the connection is to be dropped.
    pub(crate) fn provide_padding(&self) -> Result {
        let room = &self.consumer().padding;
        if room.as_ref().is_some() {
            return Err(EINVAL);
        }
        let poster = self.enter()?;
        let region = self.alloc_small_mr().inspect_err(not_made)?;
        let mut padding = Padding::new(region, &poster)?;
        let posted = self.lock().post_registration(padding.region());
        // Whatever came of the post, it stays until the tear-down has taken it from the device.
        room.populate(padding);
        posted
    }

    /// Returns the segment of a Write chunk for `len` bytes of XDR padding. None if there is no
    /// room for it, or none is needed.
    pub(crate) fn padding(&self, len: usize, task: impl Fn() -> TaskId) -> Option<Segment> {
        let padding = self.consumer().padding.as_ref().filter(|_| len != 0)?;
        let covered = padding.covered(len);
        trace::xprtrdma_chunk_wp(|| (task(), covered.into(), true));
        Some(segment(covered.key))
    }
}
