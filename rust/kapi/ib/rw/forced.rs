// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Whether the core registers memory for every RDMA Read and Write, since it was told to
//! (`ib_core.force_mr=1`, for tests of that way).

use crate::kapi::{
    bindings,
    ib::gate::Target, //
};
use kernel::{
    error::to_result,
    page::PAGE_SIZE,
    prelude::*, //
};

/// Returns whether the core takes a region for an RDMA Write, too, even of one page. May sleep.
///
/// # Safety
///
/// The queue pair must be valid.
pub(in crate::kapi::ib) unsafe fn is_forced(target: Target) -> Result<bool> {
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
