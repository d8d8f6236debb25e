// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Protects: memory goes back only when no peer can reach it and is unmapped once; each use of a
//! region has a key of its own; no address of the kernel gets on the wire; one region covers what
//! a device can place, no more and no less.

mod kept;

use crate::{
    kapi::ib::{
        fake::{
            self,
            cover,
            Balance,
            Device,
            Memory,
            Payload,
            Pd, //
        },
        region::*,
        regions::Regions, //
    },
    kunit::{
        claim,
        same, //
    },
};
use kernel::page::PAGE_SIZE;

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
        // SAFETY: Both stay until `end` or `drop` has killed the region.
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
    fn arm(&self, region: Region<Idle>) -> Result<Region<Armed>> {
        let mut pieces = self
            .memory
            .pieces((0, 0), (100, 3 * PAGE_SIZE - 200), (0, 0))?;
        cover(region, &mut pieces, false, Access::RemoteWrite, TAG).map_err(|(e, _)| e)
    }

    /// The same, as if its registration had been posted.
    fn register(&self, region: Region<Idle>) -> Result<Region<Registered>> {
        Ok(self.arm(region)?.posted())
    }

    /// Checks that nothing is mapped and nothing left.
    fn end(&self) -> Result {
        self.mr.kill();
        self.balance.more(0)?;
        let made = self.device.count(fake::Request::AllocMr);
        same("freed", self.device.count(fake::Request::DeregMr), made)
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        self.mr.kill();
    }
}

/// A message: head, pages and tail at (offset, length), the elements of a region, whether gaps
/// may be, and the elements that each region gets.
type Filling = (
    [(usize, usize); 3],
    usize,
    bool,
    &'static [&'static [(u32, u32)]],
);

const FILLINGS: &[Filling] = &[
    // Nothing.
    ([(0, 0), (0, 0), (0, 0)], 8, false, &[]),
    // A head alone, within a page, to its end, and over more.
    ([(100, 200), (0, 0), (0, 0)], 8, false, &[&[(100, 200)]]),
    ([(100, 1), (0, 0), (0, 0)], 8, false, &[&[(100, 1)]]),
    (
        [(100, 2 * PAGE_SIZE), (0, 0), (0, 0)],
        8,
        false,
        &[&[(100, PAGE - 100), (0, PAGE), (0, 100)]],
    ),
    // Pages alone, aligned, and off at both ends.
    (
        [(0, 0), (0, 3 * PAGE_SIZE), (0, 0)],
        8,
        false,
        &[&[(0, PAGE), (0, PAGE), (0, PAGE)]],
    ),
    (
        [(0, 0), (100, 2 * PAGE_SIZE), (0, 0)],
        8,
        false,
        &[&[(100, PAGE - 100), (0, PAGE), (0, 100)]],
    ),
    ([(0, 0), (0, 1), (0, 0)], 8, false, &[&[(0, 1)]]),
    // They begin beyond the first page.
    (
        [(0, 0), (PAGE_SIZE + 100, 10), (0, 0)],
        8,
        false,
        &[&[(100, 10)]],
    ),
    // More than a region has elements for.
    (
        [(0, 0), (0, 3 * PAGE_SIZE), (0, 0)],
        2,
        false,
        &[&[(0, PAGE), (0, PAGE)], &[(0, PAGE)]],
    ),
    (
        [(0, 0), (100, 3 * PAGE_SIZE), (0, 0)],
        2,
        false,
        &[&[(100, PAGE - 100), (0, PAGE)], &[(0, PAGE), (0, 100)]],
    ),
    (
        [(0, 0), (0, 2 * PAGE_SIZE), (0, 0)],
        1,
        false,
        &[&[(0, PAGE)], &[(0, PAGE)]],
    ),
    // A head that ends off a page boundary is a region of its own, unless gaps may be.
    (
        [(10, 50), (0, PAGE_SIZE), (0, 0)],
        8,
        false,
        &[&[(10, 50)], &[(0, PAGE)]],
    ),
    (
        [(10, 50), (0, PAGE_SIZE), (0, 0)],
        8,
        true,
        &[&[(10, 50), (0, PAGE)]],
    ),
    // One that ends on a boundary joins pages that begin on one.
    (
        [(PAGE_SIZE - 50, 50), (0, PAGE_SIZE), (0, 0)],
        8,
        false,
        &[&[(PAGE - 50, 50), (0, PAGE)]],
    ),
    (
        [(PAGE_SIZE - 50, 50), (8, 100), (0, 0)],
        8,
        false,
        &[&[(PAGE - 50, 50)], &[(8, 100)]],
    ),
    // The same of pages and a tail.
    (
        [(0, 0), (0, PAGE_SIZE), (2 * PAGE_SIZE, 4)],
        8,
        false,
        &[&[(0, PAGE), (0, 4)]],
    ),
    (
        [(0, 0), (0, PAGE_SIZE), (2 * PAGE_SIZE + 4, 4)],
        8,
        false,
        &[&[(0, PAGE)], &[(4, 4)]],
    ),
    (
        [(0, 0), (0, 100), (2 * PAGE_SIZE, 4)],
        8,
        false,
        &[&[(0, 100)], &[(0, 4)]],
    ),
    // All three.
    (
        [(10, 50), (8, 100), (7 * PAGE_SIZE + 200, 8)],
        8,
        false,
        &[&[(10, 50)], &[(8, 100)], &[(200, 8)]],
    ),
    (
        [(10, 50), (8, 100), (7 * PAGE_SIZE + 200, 8)],
        8,
        true,
        &[&[(10, 50), (8, 100), (200, 8)]],
    ),
    (
        [(10, 50), (8, 100), (7 * PAGE_SIZE + 200, 8)],
        2,
        true,
        &[&[(10, 50), (8, 100)], &[(200, 8)]],
    ),
    (
        [(10, 50), (0, 2 * PAGE_SIZE), (7 * PAGE_SIZE, 8)],
        8,
        false,
        &[&[(10, 50)], &[(0, PAGE), (0, PAGE), (0, 8)]],
    ),
];

/// The order of the pages of a payload, its offset and length, the pages of an element and of a
/// region, and for each region the elements: in which page they begin, where there, and their length.
type Joining = (
    &'static [usize],
    (usize, usize),
    u32,
    usize,
    &'static [&'static [(usize, u32, u32)]],
);

const ROW: &[usize] = &[0, 1, 2, 3, 4];

const JOININGS: &[Joining] = &[
    // Neighbours, also where the first and the last page are not whole.
    (ROW, (0, 4 * PAGE_SIZE), 99, 8, &[&[(0, 0, 4 * PAGE)]]),
    (ROW, (100, 3 * PAGE_SIZE), 99, 8, &[&[(0, 100, 3 * PAGE)]]),
    (ROW, (0, PAGE_SIZE + 1), 99, 8, &[&[(0, 0, PAGE + 1)]]),
    (ROW, (100, 10), 99, 8, &[&[(0, 100, 10)]]),
    // A gap, a place that comes twice, and an order that goes backwards.
    (
        &[0, 1, 3, 4],
        (100, 4 * PAGE_SIZE - 200),
        99,
        8,
        &[&[(0, 100, 2 * PAGE - 100), (3, 0, 2 * PAGE - 100)]],
    ),
    (
        &[1, 1, 2],
        (0, 3 * PAGE_SIZE),
        99,
        8,
        &[&[(1, 0, PAGE), (1, 0, 2 * PAGE)]],
    ),
    (
        &[2, 1, 0],
        (100, 2 * PAGE_SIZE),
        99,
        8,
        &[&[(2, 100, PAGE - 100), (1, 0, PAGE), (0, 0, 100)]],
    ),
    // Longer than an element may be.
    (
        ROW,
        (0, 5 * PAGE_SIZE),
        2,
        8,
        &[&[(0, 0, 2 * PAGE), (2, 0, 2 * PAGE), (4, 0, PAGE)]],
    ),
    (
        ROW,
        (100, 4 * PAGE_SIZE),
        2,
        8,
        &[&[(0, 100, 2 * PAGE - 100), (2, 0, 2 * PAGE), (4, 0, 100)]],
    ),
    // More pages than a region covers, whatever the number of elements.
    (
        ROW,
        (0, 5 * PAGE_SIZE),
        99,
        4,
        &[&[(0, 0, 4 * PAGE)], &[(4, 0, PAGE)]],
    ),
    (
        ROW,
        (100, 4 * PAGE_SIZE),
        99,
        4,
        &[&[(0, 100, 4 * PAGE - 100)], &[(4, 0, 100)]],
    ),
    (
        &[0, 1, 3, 4],
        (0, 4 * PAGE_SIZE),
        99,
        3,
        &[&[(0, 0, 2 * PAGE), (3, 0, PAGE)], &[(4, 0, PAGE)]],
    ),
];

/// The address, offset and length of an element.
fn element(sg: &bindings::scatterlist) -> (u64, u32, u32) {
    // The lowest bits are flags.
    let page = (sg.page_link & !3) as *const bindings::page;
    // SAFETY: The element was set to a page of the direct map.
    let addr = unsafe { bindings::page_address(page) } as u64;
    (addr + u64::from(sg.offset), sg.offset, sg.length)
}

fn fill(memory: &Memory, filling: &Filling) -> Result {
    let &([head, paged, tail], elements, gaps, expected) = filling;
    let mut pieces = memory.pieces(head, paged, tail)?;
    let mut sg = KVec::<bindings::scatterlist>::zeroed(elements, GFP_KERNEL)?;
    // SAFETY: The vector has as many elements.
    unsafe { bindings::sg_init_table(sg.as_mut_ptr(), elements as u32) };

    // The bytes that have to come, in order.
    let mut runs = [head, paged, tail].into_iter().filter(|run| run.1 != 0);
    let mut run = (0, 0);
    let mut left = head.1 + paged.1 + tail.1;
    for region in expected {
        same("remaining", pieces.remaining(), left)?;
        let filled = pieces.fill(&mut sg, gaps, NonZero::<u32>::MIN);
        same("elements", filled, region.len())?;
        for (sg, expected) in sg.iter().zip(region.iter()) {
            let (addr, offset, len) = element(sg);
            same("offset and length", (offset, len), *expected)?;
            if run.1 == 0 {
                run = runs.next().ok_or(EINVAL)?;
            }
            same("address", addr, memory.addr() + run.0 as u64)?;
            claim(len as usize <= run.1, "an element is of one run")?;
            run = (run.0 + len as usize, run.1 - len as usize);
            left -= len as usize;
        }
    }
    same("remaining", pieces.remaining(), 0)?;
    let filled = pieces.fill(&mut sg, gaps, NonZero::<u32>::MIN);
    same("elements of nothing", filled, 0)
}

fn join(memory: &Memory, joining: &Joining) -> Result {
    let &(_, paged, longest, pages, expected) = joining;
    let longest = NonZero::new(longest).ok_or(EINVAL)?;
    let mut pieces = memory.pieces((0, 0), paged, (0, 0))?;
    let mut sg = KVec::<bindings::scatterlist>::zeroed(pages, GFP_KERNEL)?;
    // SAFETY: The vector has as many elements.
    unsafe { bindings::sg_init_table(sg.as_mut_ptr(), pages as u32) };
    for region in expected {
        let filled = pieces.fill(&mut sg, false, longest);
        same("elements", filled, region.len())?;
        for (sg, (page, offset, len)) in sg.iter().zip(region.iter()) {
            let addr = memory.addr() + (page * PAGE_SIZE) as u64 + u64::from(*offset);
            same("element", element(sg), (addr, *offset, *len))?;
        }
        let last = sg.last().map(|sg| sg.page_link & bindings::SG_END as usize);
        same("end of the list", last, Some(bindings::SG_END as usize))?;
    }
    same("remaining", pieces.remaining(), 0)
}

#[kunit_tests(rpcrdma_region)]
mod suite {
    use super::*;

    #[test]
    fn elements() -> Result {
        let memory = Memory::new(8)?;
        for (i, filling) in FILLINGS.iter().enumerate() {
            fill(&memory, filling).inspect_err(|_| {
                pr_err!("# in filling {i}: {:?}\n", filling.0);
            })?;
        }
        Ok(())
    }

    #[test]
    fn joined_elements() -> Result {
        for (i, joining) in JOININGS.iter().enumerate() {
            let mut memory = Memory::new(8)?;
            memory.reorder(joining.0)?;
            join(&memory, joining).inspect_err(|_| {
                pr_err!("# in joining {i}: {:?} of {:?}\n", joining.1, joining.0);
            })?;
        }
        Ok(())
    }

    #[test]
    fn head_of_many_pages_is_one_element() -> Result {
        let memory = Memory::new(8)?;
        let mut pieces = memory.pieces((100, 3 * PAGE_SIZE), (0, 0), (0, 0))?;
        let mut sg = KVec::<bindings::scatterlist>::zeroed(8, GFP_KERNEL)?;
        let longest = NonZero::new(3).ok_or(EINVAL)?;
        same("elements", pieces.fill(&mut sg, false, longest), 2)?;
        let found = (element(&sg[0]).2, element(&sg[1]).2);
        same("lengths", found, (3 * PAGE - 100, 100))
    }

    #[test]
    fn device_counts_pages() -> Result {
        for (order, (base, len), _, pages, regions) in JOININGS {
            let mut bench = Bench::with_pages(*pages as u32, false)?;
            bench.memory.reorder(order)?;
            let mut pieces = bench.memory.pieces((0, 0), (*base, *len), (0, 0))?;
            let mut region = bench.idle();
            for _ in *regions {
                let before = pieces.remaining();
                let armed = cover(region, &mut pieces, false, Access::RemoteRead, TAG)
                    .map_err(|(e, _)| e)?;
                let taken = before - pieces.remaining();
                same("length", armed.segment().length as usize, taken)?;
                region = armed.disarm();
            }
            same("remaining", pieces.remaining(), 0)?;
            bench.end()?;
        }
        Ok(())
    }

    #[test]
    fn device_places_what_was_filled() -> Result {
        // ib_core's own function for drivers is the referee: it stops at the first element that
        // does not join.
        for ([head, paged, tail], _, gaps, _) in FILLINGS {
            let bench = Bench::new(*gaps)?;
            let mut pieces = bench.memory.pieces(*head, *paged, *tail)?;
            let mut covered = 0;
            let total = pieces.remaining();
            let mut region = bench.idle();
            while pieces.remaining() != 0 {
                let before = pieces.remaining();
                let armed = cover(region, &mut pieces, *gaps, Access::RemoteRead, TAG)
                    .map_err(|(e, _)| e)?;
                let taken = before - pieces.remaining();
                same("length", armed.segment().length as usize, taken)?;
                covered += taken;
                region = armed.disarm();
            }
            same("bytes", covered, total)?;
            bench.end()?;
        }
        Ok(())
    }

    #[test]
    fn regions_of_one_mib() -> Result {
        // Pages of a region, where in a page the payload begins, regions.
        for (pages, base, expected) in [
            (512, PAGE_SIZE - 1, 1),
            (257, 0, 1),
            (257, 1, 1),
            (257, PAGE_SIZE - 1, 1),
            (256, 0, 1),
            (256, 1, 2),
            (256, PAGE_SIZE - 1, 2),
            (30, 0, 9),
            (17, 0, 16),
            (17, 1, 16),
            (17, PAGE_SIZE - 1, 16),
        ] {
            let bench = Bench::with_pages(pages, false)?;
            let payload = Payload::new(base, 256 * PAGE_SIZE)?;
            let mut pieces = payload.pieces();
            let mut region = bench.idle();
            let (mut regions, mut covered) = (0, 0);
            while pieces.remaining() != 0 {
                let armed = cover(region, &mut pieces, false, Access::RemoteWrite, TAG)
                    .map_err(|(e, _)| e)?;
                regions += 1;
                covered += armed.segment().length as usize;
                region = armed.disarm();
            }
            same("regions", (pages, base, regions), (pages, base, expected))?;
            same("bytes", covered, 256 * PAGE_SIZE)?;
            bench.end()?;
        }
        Ok(())
    }

    #[test]
    fn one_region_up_to_one_mib() -> Result {
        for (pages, base) in [(257, PAGE_SIZE - 1), (257, 0), (256, 0)] {
            for n in [1, 2, 15, 16, 17, 64, 128, 255, 256] {
                for len in [n * PAGE_SIZE - 1, n * PAGE_SIZE] {
                    let bench = Bench::with_pages(pages, false)?;
                    let payload = Payload::new(base, len)?;
                    let mut pieces = payload.pieces();
                    let armed = cover(bench.idle(), &mut pieces, false, Access::RemoteRead, TAG)
                        .map_err(|(e, _)| e)?;
                    same("length", armed.segment().length as usize, len)?;
                    let _ = armed.disarm();
                    bench.end()?;
                }
            }
        }
        Ok(())
    }

    #[test]
    fn arm_and_disarm() -> Result {
        let bench = Bench::new(false)?;
        let armed = bench.arm(bench.idle())?;
        bench.balance.more(1)?;
        let segment = armed.segment();
        same("length", segment.length, 3 * PAGE - 200)?;
        let registration = armed.registration();
        same("key", registration.rkey, segment.handle)?;
        claim(
            registration.access == Access::RemoteWrite,
            "access as it was armed for",
        )?;
        let _ = armed.disarm();
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
            let armed =
                cover(region, &mut pieces, false, Access::RemoteRead, tag).map_err(|(e, _)| e)?;
            let expected = u64::from(tag) << 32 | offset as u64;
            same("offset of the segment", armed.segment().offset, expected)?;
            region = armed.disarm();
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
            let armed = bench.arm(region)?;
            let key = armed.segment().handle;
            same("the region's part of the key", key & !0xff, 0x4200_0100)?;
            claim(!keys.contains(&key), "the key is new")?;
            keys.push(key, GFP_KERNEL)?;
            region = armed.disarm();
        }
        let key = bench.arm(region)?.segment().handle;
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
            registered = match registered.invalidated_by(other) {
                Ok(_) => return claim(false, "another key says nothing of this region"),
                Err(registered) => registered,
            };
            bench.balance.more(1)?;
        }
        let idle = registered.invalidated_by(key);
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
        let idle = invalidating.completed();
        bench.balance.more(0)?;
        let _ = bench.arm(idle)?.disarm();
        bench.end()
    }

    #[test]
    fn no_region_to_be_had() -> Result {
        let balance = Balance::begin();
        let device = Device::new()?;
        let pd = device.pd()?;
        for gaps in [false, true] {
            device.refuse(fake::Request::AllocMr, 0);
            // SAFETY: There is no region to kill.
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
        let armed = cover(bench.idle(), &mut pieces, false, Access::RemoteRead, TAG);
        same("error", armed.err().map(|(e, _)| e), Some(EINVAL))?;
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
            .disarm();
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
        let armed = bench.arm(region)?;
        bench.balance.more(1)?;
        let _ = armed.disarm();
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
                let armed = cover(region, &mut pieces, false, Access::RemoteRead, TAG)
                    .map_err(|(e, _)| e)?;
                same("length", armed.segment().length as usize, end - covered)?;
                same("remaining", pieces.remaining(), 2 * PAGE_SIZE - end)?;
                // What is not covered is not mapped either.
                same("mapped", armed.mr.core.lock().mapped as usize, taken)?;
                bench.balance.more(1)?;
                covered = *end;
                region = armed.disarm();
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
        bench.mr.kill();
        claim(idle.is_dead(), "dead")?;
        bench.end()
    }

    #[test]
    fn dead_when_armed() -> Result {
        let bench = Bench::new(false)?;
        let armed = bench.arm(bench.idle())?;
        bench.mr.kill();
        bench.balance.more(0)?;
        // The memory is not unmapped a second time.
        let idle = armed.disarm();
        claim(idle.is_dead(), "dead")?;
        bench.end()
    }

    #[test]
    fn dead_when_registered() -> Result {
        let bench = Bench::new(false)?;
        let registered = bench.register(bench.idle())?;
        bench.mr.kill();
        bench.balance.more(0)?;
        claim(registered.is_dead(), "dead")?;
        let key = registered.rkey();
        let idle = registered.invalidated_by(key);
        claim(idle.is_ok(), "a late word of the peer is no harm")?;
        bench.end()
    }

    #[test]
    fn dead_when_invalidating() -> Result {
        let bench = Bench::new(false)?;
        let invalidating = bench.register(bench.idle())?.invalidation_posted();
        bench.mr.kill();
        bench.balance.more(0)?;
        claim(invalidating.is_dead(), "dead")?;
        let _ = invalidating.completed();
        bench.end()
    }

    #[test]
    fn unmapped_after_the_device_let_go() -> Result {
        let bench = Bench::new(false)?;
        let registered = bench.register(bench.idle())?;
        bench.mr.kill();
        bench.mr.kill();
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
        let armed = bench.arm(bench.idle())?;
        let _ = regions.armed.push_within_capacity(armed);
        same("room", regions.room(), 0)?;
        for (wanted, room) in [(1, 0), (36, 35), (2, 35), (36, 35)] {
            regions.make_room(wanted, GFP_KERNEL)?;
            same("room", regions.room(), room)?;
        }
        // Each of them can come to be in any of the lists.
        claim(regions.registered.capacity() >= 36, "registered")?;
        claim(regions.invalidating.capacity() >= 36, "being invalidated")?;
        for region in regions.armed.drain_all() {
            let _ = region.disarm();
        }
        bench.end()
    }

    #[test]
    fn regions_of_an_rpc() -> Result {
        let (first, second) = (Bench::new(false)?, Bench::new(false)?);
        let mut regions = Regions::new(3, GFP_KERNEL)?;
        same("room", regions.room(), 3)?;
        claim(regions.fenced().is_some(), "without regions it is fenced")?;

        let armed = first.arm(first.idle())?;
        let _ = regions.armed.push_within_capacity(armed);
        same("room", regions.room(), 2)?;
        claim(regions.fenced().is_some(), "no peer knows of this one yet")?;

        for region in regions.armed.drain_all() {
            let _ = regions.registered.push_within_capacity(region.posted());
        }
        claim(regions.fenced().is_none(), "a registered one is in the way")?;
        let invalidating = second.register(second.idle())?.invalidation_posted();
        let _ = regions.invalidating.push_within_capacity(invalidating);
        same("room", regions.room(), 1)?;
        claim(regions.fenced().is_none(), "two are in the way")?;

        regions.bury();
        claim(regions.fenced().is_none(), "they are alive")?;
        first.mr.kill();
        regions.bury();
        same("room", regions.room(), 2)?;
        claim(regions.fenced().is_none(), "one is alive")?;
        second.mr.kill();
        regions.bury();
        same("room", regions.room(), 3)?;
        claim(regions.fenced().is_some(), "both are dead")?;
        drop(regions);
        second.end()?;
        first.end()
    }
}
