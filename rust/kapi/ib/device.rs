// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! What an RDMA device can do, as far as this transport cares.

#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
mod tests;

use crate::kapi::bindings;
use core::{
    fmt::{
        self,
        Write, //
    },
    num::NonZero, //
};
use kernel::{
    ffi::c_char,
    page::PAGE_SIZE, //
};

/// Holds the limits of one device, copied when an id is bound to it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DeviceLimits {
    /// Work requests that one queue can hold.
    pub(crate) max_qp_wr: u32,
    /// Completion entries that one completion queue can hold.
    pub(crate) max_cqe: u32,
    /// It has the memory-management extensions: memory is registered, and invalidated by the peer,
    /// by work request. There is no other way here to give a peer access to memory.
    pub(crate) registers: bool,
    /// Pages that one memory region can cover.
    pub(crate) max_region_pages: u32,
    /// Memory regions of all its users.
    pub(crate) max_regions: u32,
    /// RDMA Reads that the device can serve at once on one connection.
    pub(crate) max_rdma_reads: u8,
    /// RDMA Reads that the device can begin at once on one connection.
    pub(crate) max_rdma_reads_begun: u8,
    /// Elements of one RDMA Read.
    pub(crate) max_read_elements: u32,
    /// Elements of one work request.
    pub(crate) max_send_elements: u32,
    /// A region may have gaps: elements that begin or end off a page boundary.
    pub(crate) sg_gaps: bool,
    /// What is mapped for it may be bounced.
    pub(crate) bounces: bool,
    /// An iWARP device: the sink of an RDMA Read is registered, and is one element.
    pub(crate) iwarp: bool,
    /// An InfiniBand or a RoCE device.
    pub(crate) ib_or_roce: bool,
    /// Work requests that ib_core adds to a send queue for each RDMA context; none where sinks of
    /// RDMA Reads need no region.
    pub(crate) wr_per_rdma_ctx: u32,
}

impl DeviceLimits {
    /// Returns whether a key that a peer has invalidated is that of a registration which the device
    /// has worked off: it looks at the whole key, as InfiniBand and RoCE have it. Over iWARP a key
    /// may be invalidated before it is valid, and siw looks at a part of it alone. Of other
    /// protocols this is not known.
    #[inline]
    pub(crate) fn checks_keys(&self) -> bool {
        self.registers && self.ib_or_roce
    }

    /// Reads the limits of the device.
    ///
    /// # Safety
    ///
    /// `device` must be a valid device, and `port` one of its ports.
    pub(super) unsafe fn of(device: *const bindings::ib_device, port: u32) -> Self {
        // SAFETY: The device is valid, as the caller promises, and its attributes do not change
        // after it was registered.
        let attrs = unsafe { &(*device).attrs };

        let extensions = bindings::ib_device_cap_flags_IB_DEVICE_MEM_MGT_EXTENSIONS as u64;
        let extended = attrs.device_cap_flags & extensions != 0;
        let reads = limit(attrs.max_qp_rd_atom);
        // SAFETY: The device is valid and has that port, as the caller promises.
        let iwarp = unsafe { bindings::rdma_protocol_iwarp(device, port) };
        let wr_per_rdma_ctx = match iwarp {
            // SAFETY: The device is valid and has that port; what is asked changes nothing of it.
            true => unsafe { bindings::rdma_rw_max_send_wr(device.cast_mut(), port, 1, 0) },
            false => 0,
        };
        Self {
            registers: extended && attrs.max_fast_reg_page_list_len != 0,
            max_qp_wr: limit(attrs.max_qp_wr),
            max_cqe: limit(attrs.max_cqe),
            max_region_pages: attrs.max_fast_reg_page_list_len,
            max_regions: limit(attrs.max_mr),
            max_rdma_reads: u8::try_from(reads).unwrap_or(u8::MAX),
            // Drivers do not agree on which of the two is which.
            max_rdma_reads_begun: u8::try_from(reads.min(limit(attrs.max_qp_init_rd_atom)))
                .unwrap_or(u8::MAX),
            max_read_elements: limit(attrs.max_sge_rd),
            max_send_elements: limit(attrs.max_send_sge),
            sg_gaps: attrs.kernel_cap_flags
                & u64::from(bindings::ib_kernel_cap_flags_IBK_SG_GAPS_REG)
                != 0,
            // SAFETY: The device is valid, as the caller promises.
            bounces: unsafe { longest_piece(device.cast_mut()) }.get() == 1,
            iwarp,
            // SAFETY: The device is valid and has that port, as the caller promises.
            ib_or_roce: unsafe { bindings::rdma_ib_or_roce(device, port) },
            wr_per_rdma_ctx,
        }
    }
}

/// Converts a limit, which has a sign before 7.3.
fn limit(number: impl TryInto<u32>) -> u32 {
    number.try_into().unwrap_or(0)
}

/// Returns the number of pages, one behind the other in memory, that may be mapped for a device as
/// one.
///
/// # Safety
///
/// The device must be valid.
pub(super) unsafe fn longest_piece(device: *mut bindings::ib_device) -> NonZero<u32> {
    // SAFETY: The device is valid, as the caller promises.
    let bytes = unsafe { bindings::ib_dma_max_piece(device) };
    let pages = u32::try_from(bytes / PAGE_SIZE).unwrap_or(u32::MAX);
    NonZero::new(pages).unwrap_or(NonZero::<u32>::MIN)
}

/// Holds a copy of a device's name.
///
/// # Invariants
///
/// The last byte is 0.
pub(crate) struct DeviceName([c_char; bindings::IB_DEVICE_NAME_MAX as usize]);

impl DeviceName {
    /// Copies the name of a device.
    ///
    /// # Safety
    ///
    /// `device` must be a valid device.
    pub(super) unsafe fn of(device: *const bindings::ib_device) -> Self {
        // SAFETY: The device is valid, as the caller promises. The name may be changed meanwhile,
        // which at worst mixes both.
        let mut name = unsafe { (&raw const (*device).name).read_volatile() };
        if let Some(last) = name.last_mut() {
            *last = 0;
        }
        // INVARIANT: Set above.
        Self(name)
    }

    /// Returns the address of the name, which ends with a 0.
    #[inline]
    pub(in crate::kapi) fn as_ptr(&self) -> *const c_char {
        self.0.as_ptr()
    }
}

impl fmt::Display for DeviceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0
            .iter()
            .take_while(|byte| **byte != 0)
            .try_for_each(|byte| f.write_char(char::from(*byte)))
    }
}

/// A port of a device, written as rdma(8) does.
pub(crate) struct PortName {
    pub(super) device: DeviceName,
    pub(super) port: u32,
}

impl fmt::Display for PortName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.device, self.port)
    }
}
