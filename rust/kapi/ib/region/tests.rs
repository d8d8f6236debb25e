// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Protects: memory goes back only when no peer can reach it and is unmapped once; each use of a
//! region has a key of its own; no address of the kernel gets on the wire; one region covers what
//! a device can place, no more and no less.

mod kept;
mod pieces;

use crate::{
    kapi::ib::{
        buffer::Direction,
        fake::{
            self,
            cover,
            Balance,
            Device,
            Memory,
            Payload,
            Pd, //
        },
        mr::Mr,
        region::*,
        regions::Regions, //
    },
    kunit::{
        claim,
        same, //
    },
};
use kernel::page::PAGE_SIZE;

/// Bytes of a page, as regions count them.
const PAGE: u32 = PAGE_SIZE as u32;
const TAG: u32 = 0xfeed_beef;

/// A region, and memory to cover.
struct Bench {
    mr: Arc<Mr>,
    memory: Memory,
    balance: Balance,
    // They go in this order.
    _pd: Pd,
    device: Device,
}

impl Bench {
    /// Of eight pages at most.
    fn new(gaps: bool) -> Result<Self> {
        Self::with_pages(8, gaps)
    }

    fn with_pages(pages: u32, gaps: bool) -> Result<Self> {
        let balance = Balance::begin();
        let device = Device::new()?;
        let pd = device.pd()?;
        // SAFETY: Both stay until `end` or `drop` has deregistered the region.
        let mr = unsafe { Mr::new(pd.as_ptr(), device.as_ptr(), pages, gaps)? };
        Ok(Self {
            mr,
            memory: Memory::new(8)?,
            balance,
            _pd: pd,
            device,
        })
    }

    fn idle(&self) -> Region<Idle> {
        // SAFETY: A test has one of them at a time.
        unsafe { Region::new(self.mr.clone()) }
    }

    /// Covers three pages, all of them but 100 bytes at each end.
    fn map(&self, region: Region<Idle>) -> Result<Region<Mapped>> {
        let mut pieces = self
            .memory
            .pieces((0, 0), (100, 3 * PAGE_SIZE - 200), (0, 0))?;
        cover(region, &mut pieces, false, Access::RemoteWrite, TAG).map_err(|(e, _)| e)
    }

    /// The same, as if its registration had been posted.
    fn register(&self, region: Region<Idle>) -> Result<Region<Registered>> {
        Ok(self.map(region)?.posted())
    }

    /// Checks that nothing is mapped and nothing left.
    fn end(&self) -> Result {
        let _ = self.mr.deregister(drop);
        self.balance.more(0)?;
        let made = self.device.count(fake::Request::AllocMr);
        same("freed", self.device.count(fake::Request::DeregMr), made)
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = self.mr.deregister(drop);
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
        same("key", registration.rkey, key.rkey)?;
        claim(
            registration.access == Access::RemoteWrite,
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
            Access::RemoteRead.direction() == Direction::ToDevice
                && Access::RemoteWrite.direction() == Direction::FromDevice,
            "directions",
        )
    }

    #[test]
    fn no_kernel_address_on_the_wire() -> Result {
        let bench = Bench::new(false)?;
        let mut region = bench.idle();
        for (offset, tag) in [(0, 0), (0, 1), (100, u32::MAX), (PAGE_SIZE - 1, TAG)] {
            let mut pieces = bench.memory.pieces((0, 0), (offset, PAGE_SIZE), (0, 0))?;
            let mapped =
                cover(region, &mut pieces, false, Access::RemoteRead, tag).map_err(|(e, _)| e)?;
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
            registered = match registered.invalidated_by(other, drop) {
                Ok(_) => return claim(false, "another key says nothing of this region"),
                Err(registered) => registered,
            };
            bench.balance.more(1)?;
        }
        let idle = registered.invalidated_by(key, drop);
        claim(idle.is_ok(), "its own key does")?;
        bench.balance.more(0)?;
        bench.end()
    }

    #[test]
    fn local_invalidation() -> Result {
        let bench = Bench::new(false)?;
        let invalidating = bench.register(bench.idle())?.invalidation_posted();
        // It is not over before the completion.
        bench.balance.more(1)?;
        let idle = invalidating.completed(drop);
        bench.balance.more(0)?;
        let _ = bench.map(idle)?.unmap(drop);
        bench.end()
    }

    #[test]
    fn no_region_to_be_had() -> Result {
        let balance = Balance::begin();
        let device = Device::new()?;
        let pd = device.pd()?;
        for gaps in [false, true] {
            device.refuse(fake::Request::AllocMr, 0);
            // SAFETY: There is no region to deregister.
            let made = unsafe { Mr::new(pd.as_ptr(), device.as_ptr(), 8, gaps) };
            same("error", made.err(), Some(ENOMEM))?;
        }
        drop(pd);
        device.expect_nothing_left()?;
        balance.end()
    }

    #[test]
    fn nothing_to_cover() -> Result {
        let bench = Bench::new(false)?;
        let mut pieces = bench.memory.pieces((0, 0), (0, 0), (0, 0))?;
        let mapped = cover(bench.idle(), &mut pieces, false, Access::RemoteRead, TAG);
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
        region = cover(region, &mut pieces, false, Access::RemoteRead, TAG)
            .map_err(|(e, _)| e)?
            .unmap(drop);
        bench.device.refuse(fake::Request::MapMr, 0);
        // For want of memory, in two ways, and because the list is bad.
        for (placed, error) in [(100, ENOBUFS), (0, ENOBUFS), (u32::MAX, EIO)] {
            bench.device.place_at_most(placed);
            let mut pieces = bench.memory.pieces((0, 0), (0, 2 * PAGE_SIZE), (0, 0))?;
            region = match cover(region, &mut pieces, false, Access::RemoteRead, TAG) {
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
                let mapped = cover(region, &mut pieces, false, Access::RemoteRead, TAG)
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
        let _ = bench.mr.deregister(drop);
        claim(idle.is_dead(), "dead")?;
        bench.end()
    }

    #[test]
    fn dead_when_mapped() -> Result {
        let bench = Bench::new(false)?;
        let mapped = bench.map(bench.idle())?;
        let _ = bench.mr.deregister(drop);
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
        let _ = bench.mr.deregister(drop);
        bench.balance.more(0)?;
        claim(registered.is_dead(), "dead")?;
        let key = registered.rkey();
        let idle = registered.invalidated_by(key, drop);
        claim(idle.is_ok(), "a late word of the peer is no harm")?;
        bench.end()
    }

    #[test]
    fn dead_when_invalidating() -> Result {
        let bench = Bench::new(false)?;
        let invalidating = bench.register(bench.idle())?.invalidation_posted();
        let _ = bench.mr.deregister(drop);
        bench.balance.more(0)?;
        claim(invalidating.is_dead(), "dead")?;
        let _ = invalidating.completed(drop);
        bench.end()
    }

    #[test]
    fn unmapped_after_the_device_let_go() -> Result {
        let bench = Bench::new(false)?;
        let registered = bench.register(bench.idle())?;
        let _ = bench.mr.deregister(drop);
        let _ = bench.mr.deregister(drop);
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

    #[test]
    fn room_for_more_regions() -> Result {
        let bench = Bench::new(false)?;
        let mut regions = Regions::new(1, GFP_KERNEL)?;
        let mapped = bench.map(bench.idle())?;
        let _ = regions.mapped.push_within_capacity(mapped);
        same("room", regions.room(), 0)?;
        for (wanted, room) in [(1, 0), (36, 35), (2, 35), (36, 35)] {
            regions.make_room(wanted, GFP_KERNEL)?;
            same("room", regions.room(), room)?;
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
        same("room", regions.room(), 3)?;
        claim(regions.fenced().is_some(), "without regions it is fenced")?;

        let mapped = first.map(first.idle())?;
        let _ = regions.mapped.push_within_capacity(mapped);
        same("room", regions.room(), 2)?;
        claim(regions.fenced().is_some(), "no peer knows of this one yet")?;

        for region in regions.mapped.drain_all() {
            let _ = regions.registered.push_within_capacity(region.posted());
        }
        claim(regions.fenced().is_none(), "a registered one is in the way")?;
        let invalidating = second.register(second.idle())?.invalidation_posted();
        let _ = regions.invalidating.push_within_capacity(invalidating);
        same("room", regions.room(), 1)?;
        claim(regions.fenced().is_none(), "two are in the way")?;

        regions.drop_dead();
        claim(regions.fenced().is_none(), "they are alive")?;
        let _ = first.mr.deregister(drop);
        regions.drop_dead();
        same("room", regions.room(), 2)?;
        claim(regions.fenced().is_none(), "one is alive")?;
        let _ = second.mr.deregister(drop);
        regions.drop_dead();
        same("room", regions.room(), 3)?;
        claim(regions.fenced().is_some(), "both are dead")?;
        drop(regions);
        second.end()?;
        first.end()
    }
}
