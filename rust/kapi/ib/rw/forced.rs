// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Whether the core registers memory for every RDMA Read and Write, since it was told to
//! (`ib_core.force_mr=1`, for tests of that way).

use crate::kapi::{
    bindings,
    ib::{
        device::fast_pages,
        gate::Target, //
    },
};
use kernel::{
    error::to_result,
    page::PAGE_SIZE,
    prelude::*, //
};

/// Finds out whether the core does that, and then provides `contexts` regions for it. May sleep.
///
/// # Safety
///
/// The queue pair must be valid, and nobody else may use it before this has returned.
pub(in crate::kapi::ib) unsafe fn registers_always(target: Target, contexts: u32) -> Result<bool> {
    // SAFETY: The queue pair is valid, as the caller promises.
    if !unsafe { registers_for_writes(target) }? {
        return Ok(false);
    }
    // SAFETY: The queue pair is valid, as the caller promises, and so is its device.
    let (device, provided) = unsafe {
        let qp = target.qp;
        let iwarp = bindings::rdma_protocol_iwarp((*qp).device, target.port);
        ((*qp).device, iwarp)
    };
    // With iWARP the core has provided them, as it does whenever it has to register for Reads.
    if !provided {
        let kind = bindings::ib_mr_type_IB_MR_TYPE_MEM_REG;
        // SAFETY: The device is valid; the list was initialised with the queue pair, is empty and
        // used by nobody. The core destroys what is in it with the queue pair.
        to_result(unsafe {
            let (pages, pool) = (fast_pages(device), &raw mut (*target.qp).rdma_mrs);
            bindings::ib_mr_pool_init(target.qp, pool, contexts as i32, kind, pages, 0)
        })?;
    }
    Ok(true)
}

/// Whether the core takes a region for an RDMA Write, too, even of one page.
///
/// # Safety
///
/// The queue pair must be valid.
unsafe fn registers_for_writes(target: Target) -> Result<bool> {
    let Target { qp, port } = target;
    // SAFETY: The queue pair is valid, as the caller promises, and so is its device.
    if unsafe { bindings::rdma_rw_max_send_wr((*qp).device, port, 1, 0) } == 1 {
        return Ok(false);
    }
    // There is no other way to be told: the parameter is the core's own, and some devices have
    // regions for other reasons.
    // SAFETY: Allocating has no requirement.
    let page = unsafe { bindings::alloc_page(bindings::GFP_KERNEL) };
    if page.is_null() {
        return Err(ENOMEM);
    }
    let len = PAGE_SIZE as u32;
    let element = bindings::bio_vec {
        bv_page: page,
        bv_len: len,
        bv_offset: 0,
    };
    let iter = bindings::bvec_iter {
        bi_size: len,
        ..Default::default()
    };
    let write = bindings::dma_data_direction::DMA_TO_DEVICE;
    let mut context = bindings::rdma_rw_ctx::default();
    // SAFETY: The queue pair is valid, as the caller promises; context and element stay where they
    // are until the context is destroyed below. Nothing is posted.
    let requests = unsafe {
        bindings::rdma_rw_ctx_init_bvec(&mut context, qp, port, &element, 1, iter, 0, 0, write)
    };
    if requests >= 0 {
        // SAFETY: Initialised above with the same, and not used any more.
        unsafe { bindings::rdma_rw_ctx_destroy_bvec(&mut context, qp, port, &element, 1, write) };
    }
    // SAFETY: Allocated above, and nobody uses it any more.
    unsafe { bindings::put_page(page) };
    match to_result(requests) {
        // The registration is a request of its own.
        Ok(()) => Ok(requests > 1),
        // The pool is empty.
        Err(e) if e == EAGAIN => Ok(true),
        Err(e) => Err(e),
    }
}
