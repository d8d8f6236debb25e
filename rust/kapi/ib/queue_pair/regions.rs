// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The memory regions of a queue pair, between their making and their end.

use crate::kapi::ib::{
    mr::Mr,
    qp_resources::QpResources,
    queue_pair::{
        Consumer,
        QueuePair, //
    },
    region::{
        Idle,
        Region, //
    },
};
use kernel::{
    prelude::*,
    sync::Arc, //
};

impl<C: Consumer> QueuePair<C> {
    /// Makes a region of the size that is wanted, if any are, and lets it go: only then it shows
    /// whether the device has such. May sleep.
    pub(super) fn try_region(&self, hw: &QpResources<C::Cm>) -> Result {
        let (pages, sg_gaps) = (self.sizes.region_pages, self.sizes.sg_gaps);
        if pages == 0 {
            return Ok(());
        }
        let objects = (hw.pd().ok_or(ENODEV)?, hw.id().device()?);
        // SAFETY: Both are valid, and stay so until the end of this function.
        let mr = unsafe { Mr::new(objects, self.number(), pages, sg_gaps) }?;
        // SAFETY: Nobody else knows of it.
        unsafe { self.deregister(&mr) };
        Ok(())
    }

    /// Takes a region from the device. May sleep.
    ///
    /// # Safety
    ///
    /// As [`Mr::deregister`].
    pub(super) unsafe fn deregister(&self, mr: &Mr) {
        // SAFETY: The caller promises what that asks for.
        if let Some((covered, result)) = unsafe { mr.deregister() } {
            self.consumer.deregistered(covered, result);
        }
    }

    /// Allocates a region. May sleep.
    pub(crate) fn alloc_mr(&self) -> Result<Region<Idle>> {
        self.make_mr(self.sizes.region_pages, self.sizes.sg_gaps)
    }

    /// Allocates a region of a single page. May sleep.
    pub(crate) fn alloc_small_mr(&self) -> Result<Region<Idle>> {
        self.make_mr(1, false)
    }

    fn make_mr(&self, pages: u32, sg_gaps: bool) -> Result<Region<Idle>> {
        // Not under the lock of `hardware`: the end of the connection needs it, and may give the
        // memory back that is waited for here.
        let poster = self.enter()?;
        let objects = (poster.objects().pd, poster.objects().device);
        // SAFETY: Both are valid, and stay so until `shutdown` has deregistered all regions of the
        // table; it waits for posters before it begins to let them go.
        let mr = unsafe { Mr::new(objects, self.number(), pages, sg_gaps) }?;
        let flags = GFP_NOWAIT;
        let listed = self.send.lock().regions.push(mr.clone(), flags);
        if let Err(e) = listed {
            // Not under the lock: it may sleep.
            // SAFETY: Nobody else knows of it.
            unsafe { self.deregister(&mr) };
            return Err(e.into());
        }
        // SAFETY: It was made above, and has no other token.
        Ok(unsafe { Region::new(mr) })
    }

    /// Takes a region from the device, before the tear-down does. Nothing if that has begun, or it
    /// is another queue pair's. May sleep.
    pub(crate) fn dealloc_mr(&self, region: Region<Idle>) {
        let Ok(_poster) = self.enter() else { return };
        let mr = region.into_mr();
        let mut send = self.send.lock();
        let regions = &mut send.regions;
        let Some(at) = regions.iter().position(|one| Arc::ptr_eq(one, &mr)) else {
            return;
        };
        let last = regions.len() - 1;
        regions.swap(at, last);
        let listed = regions.pop();
        drop(send);
        drop(listed);
        // SAFETY: Its only token was idle, and is no more: so it covers nothing, and nobody else
        // can. The tear-down, which waits for posters, does not find it.
        unsafe { self.deregister(&mr) };
    }
}
