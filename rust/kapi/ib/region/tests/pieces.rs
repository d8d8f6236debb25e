// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Protects: one region covers what a device can place, no more and no less.

use crate::kapi::ib::region::tests::*;
use core::num::NonZero;

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
/// region, and for each region the elements: in which page they begin, where there, and their
/// length.
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
        let (filled, bytes) = pieces.fill(usize::MAX, &mut sg, gaps, NonZero::<u32>::MIN);
        same("elements", filled, region.len())?;
        pieces.skip(bytes);
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
    let filled = pieces.fill(usize::MAX, &mut sg, gaps, NonZero::<u32>::MIN);
    same("elements and bytes of nothing", filled, (0, 0))
}

fn join(memory: &Memory, joining: &Joining) -> Result {
    let &(_, paged, longest, pages, expected) = joining;
    let longest = NonZero::new(longest).ok_or(EINVAL)?;
    let mut pieces = memory.pieces((0, 0), paged, (0, 0))?;
    let mut sg = KVec::<bindings::scatterlist>::zeroed(pages, GFP_KERNEL)?;
    // SAFETY: The vector has as many elements.
    unsafe { bindings::sg_init_table(sg.as_mut_ptr(), pages as u32) };
    for region in expected {
        let (filled, bytes) = pieces.fill(usize::MAX, &mut sg, false, longest);
        same("elements", filled, region.len())?;
        pieces.skip(bytes);
        for (sg, (page, offset, len)) in sg.iter().zip(region.iter()) {
            let addr = memory.addr() + (page * PAGE_SIZE) as u64 + u64::from(*offset);
            same("element", element(sg), (addr, *offset, *len))?;
        }
        let last = sg.last().map(|sg| sg.page_link & bindings::SG_END as usize);
        same("end of the list", last, Some(bindings::SG_END as usize))?;
    }
    same("remaining", pieces.remaining(), 0)
}

#[kunit_tests(rpcrdma_region_pieces)]
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
        let pieces = memory.pieces((100, 3 * PAGE_SIZE), (0, 0), (0, 0))?;
        let mut sg = KVec::<bindings::scatterlist>::zeroed(8, GFP_KERNEL)?;
        let longest = NonZero::new(3).ok_or(EINVAL)?;
        let filled = pieces.fill(usize::MAX, &mut sg, false, longest);
        same("elements and bytes", filled, (2, 3 * PAGE_SIZE))?;
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
                let mapped = bench
                    .cover(region, &mut pieces, Access::RemoteRead, TAG)
                    .map_err(|(e, _)| e)?;
                let taken = before - pieces.remaining();
                same("length", mapped.key().length as usize, taken)?;
                region = mapped.unmap(drop);
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
                let mapped = bench
                    .cover(region, &mut pieces, Access::RemoteRead, TAG)
                    .map_err(|(e, _)| e)?;
                let taken = before - pieces.remaining();
                same("length", mapped.key().length as usize, taken)?;
                covered += taken;
                region = mapped.unmap(drop);
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
                let mapped = bench
                    .cover(region, &mut pieces, Access::RemoteWrite, TAG)
                    .map_err(|(e, _)| e)?;
                regions += 1;
                covered += mapped.key().length as usize;
                region = mapped.unmap(drop);
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
                    let mapped = bench
                        .cover(bench.idle(), &mut pieces, Access::RemoteRead, TAG)
                        .map_err(|(e, _)| e)?;
                    same("length", mapped.key().length as usize, len)?;
                    let _ = mapped.unmap(drop);
                    bench.end()?;
                }
            }
        }
        Ok(())
    }
}
