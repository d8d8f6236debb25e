// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Protects: memory goes back only when no peer can reach it and is unmapped once; each use of a
//! region has a key of its own; no address of the kernel gets on the wire; one region covers what
//! a device can place, no more and no less.

mod kept;
mod pieces;

use crate::{
    kapi::ib::{
        fake::{
            self,
            Balance,
            Device,
            Domain,
            Memory,
            Payload, //
        },
        mr::Mr,
        region::*, //
    },
    kunit::{
        claim,
        same, //
    },
};
use kernel::{
    dma::DataDirection,
    page::PAGE_SIZE, //
};

/// Bytes of a page, as regions count them.
const PAGE: u32 = PAGE_SIZE as u32;
const TAG: u32 = 0xfeed_beef;
/// Of a local invalidation.
const POSITION: u64 = 70;

/// A region, and memory to cover.
pub(in crate::kapi::ib) struct Bench {
    mr: Arc<Mr>,
    pub(in crate::kapi::ib) memory: Memory,
    balance: Balance,
    // They go in this order.
    pub(in crate::kapi::ib) domain: Domain,
    device: Device,
}

impl Bench {
    /// Of eight pages at most.
    pub(in crate::kapi::ib) fn new(gaps: bool) -> Result<Self> {
        Self::with_pages(8, gaps)
    }

    fn with_pages(pages: u32, gaps: bool) -> Result<Self> {
        let balance = Balance::begin();
        let device = Device::new()?;
        let domain = Domain::new(&device)?;
        // SAFETY: Both stay until `end` or `drop` has deregistered the region.
        let mr = unsafe { Mr::new(domain.objects(&device), domain.number(), pages, gaps)? };
        Ok(Self {
            mr,
            memory: Memory::new(8)?,
            balance,
            domain,
            device,
        })
    }

    pub(in crate::kapi::ib) fn idle(&self) -> Region<Idle> {
        // SAFETY: A test has one of them at a time.
        unsafe { Region::new(self.mr.clone()) }
    }

    /// Covers as many of the pieces as fit into one region.
    fn cover(
        &self,
        region: Region<Idle>,
        pieces: &mut ExtentIter<'_>,
        access: Access,
        tag: u32,
    ) -> Result<Region<Mapped>, (Error, Region<Idle>)> {
        let poster = match self.domain.enter() {
            Ok(poster) => poster,
            Err(e) => return Err((e, region)),
        };
        let mapped = region.map(&poster, pieces, access, tag);
        mapped.map_err(|(why, region)| (why.error, region))
    }

    /// The same, as if its local invalidation had been posted.
    pub(in crate::kapi::ib) fn invalidating(
        &self,
        region: Region<Registered>,
    ) -> Region<Invalidating> {
        // SAFETY: No test has a peer that could use the memory.
        unsafe { region.invalidation_posted(POSITION) }
    }

    /// A message has said that it invalidated that key.
    pub(in crate::kapi::ib) fn invalidated(&self, rkey: u32) -> InvalidatedKey<'_> {
        InvalidatedKey::test(rkey, self.domain.number())
    }

    /// A local invalidation has ended well, and with it all in front of the position.
    pub(in crate::kapi::ib) fn completed(&self, end: u64) -> Invalidated {
        // SAFETY: No test has a peer that could use the memory.
        unsafe { Invalidated::new(self.domain.number(), end) }
    }

    /// Covers three pages, all of them but 100 bytes at each end.
    pub(in crate::kapi::ib) fn map(&self, region: Region<Idle>) -> Result<Region<Mapped>> {
        let mut pieces = self
            .memory
            .pieces((0, 0), (100, 3 * PAGE_SIZE - 200), (0, 0))?;
        self.cover(region, &mut pieces, Access::RemoteWrite, TAG)
            .map_err(|(e, _)| e)
    }

    /// The same, as if its registration had been posted.
    pub(in crate::kapi::ib) fn register(&self, region: Region<Idle>) -> Result<Region<Registered>> {
        Ok(self.map(region)?.posted())
    }

    pub(in crate::kapi::ib) fn deregister(&self) {
        // SAFETY: No test posts anything, or covers anything with a region that it has
        // deregistered.
        let _ = unsafe { self.mr.deregister() };
    }

    /// Checks that nothing is mapped and nothing left.
    pub(in crate::kapi::ib) fn end(&self) -> Result {
        self.deregister();
        self.balance.more(0)?;
        let made = self.device.count(fake::Request::AllocMr);
        same("freed", self.device.count(fake::Request::DeregMr), made)
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        self.deregister();
    }
}

impl InvalidatedKey<'_> {
    /// Returns the key alone.
    pub(crate) fn rkey(self) -> u32 {
        self.key
    }

    /// Creates one that `owner` might have received.
    pub(crate) fn test(key: u32, owner: u64) -> Self {
        // SAFETY: No test has a peer that could use the memory.
        unsafe { Self::new(key, owner) }
    }
}

#[kunit_tests(rpcrdma_region)]
mod suite {
    use super::*;

    #[test]
    fn map_and_unmap() -> Result {
        let bench = Bench::new(false)?;
        let mapped = bench.map(bench.idle())?;
        bench.balance.more(1)?;
        let key = mapped.key();
        same("length", key.length, 3 * PAGE - 200)?;
        let registration = mapped.registration();
        same("key", registration.key, key.rkey)?;
        claim(
            registration.access == Access::RemoteWrite.as_raw() as i32,
            "access as it was mapped for",
        )?;
        let _ = mapped.unmap(drop);
        bench.end()
    }

    #[test]
    fn access_rights() -> Result {
        let (read, write) = (Access::RemoteRead.as_raw(), Access::RemoteWrite.as_raw());
        // The values are those of the verbs.
        same("for a Read chunk", read, 4)?;
        same("for a Write chunk", write, 2 | 1)?;
        claim(
            Access::RemoteRead.direction() == DataDirection::ToDevice
                && Access::RemoteWrite.direction() == DataDirection::FromDevice,
            "directions",
        )
    }

    #[test]
    fn no_kernel_address_on_the_wire() -> Result {
        let bench = Bench::new(false)?;
        let mut region = bench.idle();
        for (offset, tag) in [(0, 0), (0, 1), (100, u32::MAX), (PAGE_SIZE - 1, TAG)] {
            let mut pieces = bench.memory.pieces((0, 0), (offset, PAGE_SIZE), (0, 0))?;
            let mapped = bench
                .cover(region, &mut pieces, Access::RemoteRead, tag)
                .map_err(|(e, _)| e)?;
            let expected = u64::from(tag) << 32 | offset as u64;
            same("offset of the segment", mapped.key().iova, expected)?;
            region = mapped.unmap(drop);
        }
        bench.end()
    }

    #[test]
    fn each_use_has_another_key() -> Result {
        let bench = Bench::new(false)?;
        let mut region = bench.idle();
        let mut keys = KVec::new();
        // The driver's own key was never ours to give.
        keys.push(0x4200_0100, GFP_KERNEL)?;
        // Its lowest byte is all that changes.
        for _ in 0..255 {
            let mapped = bench.map(region)?;
            let key = mapped.key().rkey;
            same("the region's part of the key", key & !0xff, 0x4200_0100)?;
            claim(!keys.contains(&key), "the key is new")?;
            keys.push(key, GFP_KERNEL)?;
            region = mapped.unmap(drop);
        }
        let key = bench.map(region)?.key().rkey;
        claim(keys.last() != Some(&key), "the key is not the last one")?;
        bench.end()
    }

    #[test]
    fn remote_invalidation() -> Result {
        let bench = Bench::new(false)?;
        let registered = bench.register(bench.idle())?;
        let key = registered.rkey();
        let mut registered = registered;
        for other in [0, key - 1, key + 1, key ^ 0x100, u32::MAX] {
            registered = match registered.invalidated_by(bench.invalidated(other), drop) {
                Ok(_) => return claim(false, "another key says nothing of this region"),
                Err(registered) => registered,
            };
            bench.balance.more(1)?;
        }
        let idle = registered.invalidated_by(bench.invalidated(key), drop);
        claim(idle.is_ok(), "its own key does")?;
        bench.balance.more(0)?;
        bench.end()
    }

    #[test]
    fn local_invalidation() -> Result {
        let bench = Bench::new(false)?;
        let invalidating = bench.invalidating(bench.register(bench.idle())?);
        // It is not over before the completion.
        let Err(invalidating) = invalidating.completed(&bench.completed(POSITION), drop) else {
            return claim(false, "what is in front of it says nothing");
        };
        bench.balance.more(1)?;
        let idle = invalidating.completed(&bench.completed(POSITION + 1), drop);
        bench.balance.more(0)?;
        let _ = bench.map(idle.map_err(|_| EINVAL)?)?.unmap(drop);
        bench.end()
    }

    #[test]
    fn no_region_to_be_had() -> Result {
        let balance = Balance::begin();
        let device = Device::new()?;
        let domain = Domain::new(&device)?;
        for sg_gaps in [false, true] {
            device.refuse(fake::Request::AllocMr, 0);
            // SAFETY: There is no region to deregister.
            let made = unsafe { Mr::new(domain.objects(&device), domain.number(), 8, sg_gaps) };
            same("error", made.err(), Some(ENOMEM))?;
        }
        drop(domain);
        device.expect_nothing_left()?;
        balance.end()
    }

    #[test]
    fn nothing_to_cover() -> Result {
        let bench = Bench::new(false)?;
        let mut pieces = bench.memory.pieces((0, 0), (0, 0), (0, 0))?;
        let mapped = bench.cover(bench.idle(), &mut pieces, Access::RemoteRead, TAG);
        same("error", mapped.err().map(|(e, _)| e), Some(EINVAL))?;
        bench.end()
    }

    #[test]
    fn device_refuses_the_memory() -> Result {
        let mut bench = Bench::new(false)?;
        bench.memory.reorder(&[4, 2, 0])?;
        let mut region = bench.idle();
        // The region has a length from before, and a longer one.
        let mut pieces = bench.memory.pieces((0, 0), (0, 3 * PAGE_SIZE), (0, 0))?;
        region = bench
            .cover(region, &mut pieces, Access::RemoteRead, TAG)
            .map_err(|(e, _)| e)?
            .unmap(drop);
        bench.device.refuse(fake::Request::MapMr, 0);
        // For want of memory, in two ways, and because the list is bad.
        for (placed, error) in [(100, ENOBUFS), (0, ENOBUFS), (u32::MAX, EIO)] {
            bench.device.place_at_most(placed);
            let mut pieces = bench.memory.pieces((0, 0), (0, 2 * PAGE_SIZE), (0, 0))?;
            region = match bench.cover(region, &mut pieces, Access::RemoteRead, TAG) {
                Ok(_) => return claim(false, "it is not covered"),
                Err((e, region)) => {
                    same("error", e, error)?;
                    region
                }
            };
            bench.balance.more(0)?;
        }
        // Nothing sticks to the region.
        bench.device.place_at_most(3);
        let mapped = bench.map(region)?;
        bench.balance.more(1)?;
        let _ = mapped.unmap(drop);
        bench.end()
    }

    #[test]
    fn device_takes_fewer_pieces() -> Result {
        for placed in [1, 2] {
            let mut bench = Bench::new(false)?;
            bench.memory.reorder(&[4, 2, 0])?;
            bench.device.place_at_most(placed);
            let mut pieces = bench.memory.pieces((0, 0), (100, 2 * PAGE_SIZE), (0, 0))?;
            let mut region = bench.idle();
            // Where each piece begins, and what is left behind those that one region covers.
            let ends = [PAGE_SIZE - 100, 2 * PAGE_SIZE - 100, 2 * PAGE_SIZE];
            let mut covered = 0;
            while covered != 2 * PAGE_SIZE {
                let left = ends.iter().filter(|end| **end > covered);
                let end = left.clone().take(placed as usize).last().ok_or(EINVAL)?;
                let taken = left.count().min(placed as usize);
                let mapped = bench
                    .cover(region, &mut pieces, Access::RemoteRead, TAG)
                    .map_err(|(e, _)| e)?;
                same("length", mapped.key().length as usize, end - covered)?;
                same("remaining", pieces.remaining(), 2 * PAGE_SIZE - end)?;
                // What is not covered is not mapped either.
                same("mapped", mapped.mr.mapped() as usize, taken)?;
                bench.balance.more(1)?;
                covered = *end;
                region = mapped.unmap(drop);
                bench.balance.more(0)?;
            }
            drop(region);
            bench.end()?;
        }
        Ok(())
    }

    #[test]
    fn dead_when_idle() -> Result {
        let bench = Bench::new(false)?;
        let idle = bench.idle();
        claim(!idle.is_dead(), "alive")?;
        bench.deregister();
        claim(idle.is_dead(), "dead")?;
        bench.end()
    }

    #[test]
    fn dead_when_mapped() -> Result {
        let bench = Bench::new(false)?;
        let mapped = bench.map(bench.idle())?;
        bench.deregister();
        bench.balance.more(0)?;
        // The memory is not unmapped a second time.
        let idle = mapped.unmap(drop);
        claim(idle.is_dead(), "dead")?;
        bench.end()
    }

    #[test]
    fn dead_when_registered() -> Result {
        let bench = Bench::new(false)?;
        let registered = bench.register(bench.idle())?;
        bench.deregister();
        bench.balance.more(0)?;
        claim(registered.is_dead(), "dead")?;
        let key = registered.rkey();
        let idle = registered.invalidated_by(bench.invalidated(key), drop);
        claim(idle.is_ok(), "a late word of the peer is no harm")?;
        bench.end()
    }

    #[test]
    fn dead_when_invalidating() -> Result {
        let bench = Bench::new(false)?;
        let invalidating = bench.invalidating(bench.register(bench.idle())?);
        bench.deregister();
        bench.balance.more(0)?;
        claim(invalidating.is_dead(), "dead")?;
        let _ = invalidating.completed(&bench.completed(POSITION + 1), drop);
        bench.end()
    }

    #[test]
    fn unmapped_after_the_device_let_go() -> Result {
        let bench = Bench::new(false)?;
        let registered = bench.register(bench.idle())?;
        bench.deregister();
        bench.deregister();
        drop(registered);
        same("freed", bench.device.count(fake::Request::DeregMr), 1)?;
        if cfg!(CONFIG_RPCRDMA_DEBUG) {
            let mapped = bench.device.mapped_at_dereg();
            claim(
                mapped > fake::mappings(),
                "the memory was mapped when the region was taken from the device",
            )?;
        }
        bench.end()
    }
}
