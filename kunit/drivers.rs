// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! What drivers of real adapters say of their devices (`tests/kernel/adapter/adapter_profiles.c`
//! says where that is from), and the software devices.

use crate::kapi::ib::DeviceLimits;

/// A device whose queues hold so much.
pub(crate) fn limits(requests: u32, completions: u32) -> DeviceLimits {
    DeviceLimits {
        max_qp_wr: requests,
        max_cqe: completions,
        registers: true,
        max_region_pages: 512,
        max_regions: 65536,
        max_rdma_reads: 1,
        max_rdma_reads_begun: 1,
        max_read_elements: 1,
        max_send_elements: 2,
        sg_gaps: false,
        bounces: false,
        iwarp: false,
        ib_or_roce: true,
        wr_per_rdma_ctx: 0,
    }
}

/// Name; requests and completions of a queue; pages of a region; elements of a request, and of an
/// RDMA Read; whether it is an iWARP device.
type Driver = (&'static str, [u32; 5], bool);

/// The least of each.
pub(crate) const WORST: &str = "the worst of all";
const DRIVERS: &[Driver] = &[
    ("mlx5", [8192, 4_194_303, 65536, 30, 30], false),
    ("mlx4", [16351, 4_194_303, 511, 32, 30], false),
    ("bnxt_re", [4351, 8_388_607, 512, 13, 13], false),
    ("irdma", [4063, 1_048_574, 262_144, 13, 13], false),
    ("irdma, iWARP", [4063, 1_048_574, 262_144, 13, 13], true),
    ("irdma, X722", [895, 1_048_574, 262_144, 3, 1], true),
    ("hns", [32768, 4_194_304, 512, 64, 64], false),
    ("cxgb4", [8190, 65518, 128, 17, 1], true),
    ("qedr", [32767, 8_388_480, 16383, 4, 4], false),
    ("erdma", [8192, 1_048_576, 512, 6, 1], true),
    ("rxe", [1_048_576, 32767, 512, 32, 32], false),
    ("siw", [32768, 102_400, 512, 6, 1], true),
    (WORST, [895, 1024, 16, 2, 1], false),
];

/// The devices of all drivers, with their names.
pub(crate) fn all() -> impl Iterator<Item = (&'static str, DeviceLimits)> {
    DRIVERS.iter().map(|(name, numbers, iwarp)| {
        let [requests, completions, pages, elements, read] = *numbers;
        let device = DeviceLimits {
            max_region_pages: pages,
            max_send_elements: elements,
            max_read_elements: read,
            iwarp: *iwarp,
            ib_or_roce: !*iwarp,
            wr_per_rdma_ctx: if *iwarp { 3 } else { 0 },
            ..limits(requests, completions)
        };
        (*name, device)
    })
}
