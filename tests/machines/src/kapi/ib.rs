// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! A device that has limits, events and keys, and does nothing.

use crate::kapi::sys::address::SocketAddress;
use kernel::prelude::*;

#[derive(Clone, Copy, Debug)]
pub(crate) struct DeviceLimits {
    pub(crate) max_qp_wr: u32,
    pub(crate) max_cqe: u32,
    pub(crate) registers: bool,
    pub(crate) max_region_pages: u32,
    pub(crate) max_regions: u32,
    pub(crate) max_rdma_reads: u8,
    pub(crate) max_rdma_reads_begun: u8,
    pub(crate) max_read_elements: u32,
    pub(crate) max_send_elements: u32,
    pub(crate) sg_gaps: bool,
    pub(crate) bounces: bool,
    pub(crate) iwarp: bool,
    pub(crate) ib_or_roce: bool,
    pub(crate) wr_per_rdma_ctx: u32,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct QpSizes {
    pub(crate) max_send_wr: u32,
    pub(crate) max_recv_wr: u32,
    pub(crate) max_send_sge: u32,
    pub(crate) max_rdma_ctxs: u32,
    pub(crate) max_reads: u32,
    pub(crate) max_regs: u32,
    pub(crate) region_pages: u32,
    pub(crate) sg_gaps: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Part {
    CompletionQueue,
    ProtectionDomain,
    QueuePair,
    Region,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CmEventKind {
    AddressResolved,
    AddressError,
    RouteResolved,
    RouteError,
    Established,
    ConnectError,
    Unreachable,
    Rejected,
    Stale,
    Disconnected,
    DeviceRemoval,
    AddressChange,
    Other,
}

pub(crate) struct CmEvent<'a> {
    pub(crate) kind: CmEventKind,
    pub(crate) status: i32,
    pub(crate) private_data: &'a [u8],
}

impl CmEvent<'_> {
    pub(crate) fn peer(&self) -> SocketAddress {
        SocketAddress::for_test(0)
    }

    pub(crate) fn device(&self) -> Option<()> {
        None
    }
}

pub(crate) trait CmHandler: Send + Sync + 'static {
    fn event(&self, event: CmEvent<'_>);
}

pub(crate) struct RecvBuf;

/// A key that a peer has invalidated.
pub(crate) struct InvalidatedKey<'a>(pub(crate) &'a u32);

/// Regions, of which each has its key and is registered.
#[derive(Default)]
pub(crate) struct Regions(pub(crate) KVec<u32>);

impl Regions {
    pub(crate) fn mapped(&self) -> &[u32] {
        &self.0
    }

    pub(crate) fn registered(&self) -> &[u32] {
        &self.0
    }

    pub(crate) fn have(&self, key: &InvalidatedKey<'_>) -> bool {
        self.0.contains(key.0)
    }
}
