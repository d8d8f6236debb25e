// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Connections for which the core registers memory for every RDMA Read and Write, since it was told
//! to (`ib_core.force_mr=1`, for tests of that way).
//!
//! Such a transfer takes regions of a pool that belongs to the queue pair. Who finds none waits for
//! those of transfers that are under way, so a peer that does not let them end keeps a service thread.

use crate::kapi::{
    bindings,
    ib::{
        device::fast_pages,
        qp::Target, //
    },
    sys::completion::Completion, //
};
use kernel::{
    error::to_result,
    new_mutex,
    page::PAGE_SIZE,
    prelude::*,
    sync::{
        Arc,
        Mutex,
        MutexGuard, //
    },
};

/// The use of a queue pair's pool of regions.
#[pin_data]
pub(super) struct Forced {
    /// One transfer at a time takes regions: none waits for those that another waiter holds.
    #[pin]
    taking: Mutex<()>,
    /// Regions came back, or none will any more.
    #[pin]
    back: Completion,
}

impl Forced {
    /// Finds out whether the core does that, and then provides `contexts` regions. May sleep.
    ///
    /// # Safety
    ///
    /// The queue pair must be valid, and nobody else may use it before this has returned.
    pub(super) unsafe fn detect(target: Target, contexts: u32) -> Result<Option<Arc<Self>>> {
        // SAFETY: The queue pair is valid, as the caller promises.
        if !unsafe { registers_for_writes(target) }? {
            return Ok(None);
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
        let forced = pin_init!(Self {
            taking <- new_mutex!((), "svcrdma_forced"),
            back <- Completion::new(),
        });
        Ok(Some(Arc::pin_init(forced, GFP_KERNEL)?))
    }

    /// From here on nobody else takes regions, until the result is dropped. May sleep.
    pub(super) fn take_turn(&self) -> MutexGuard<'_, ()> {
        self.taking.lock()
    }

    /// Forgets what came back before. For whose turn it is.
    pub(super) fn begin(&self) {
        self.back.reinit();
    }

    /// Waits until something has come back since [`Self::begin`], or the connection goes. Sleeps.
    pub(super) fn wait(&self) {
        self.back.wait();
    }

    /// Something has come back, or the connection goes. Any context.
    pub(super) fn came_back(&self) {
        self.back.complete_all();
    }
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
    // There is no other way to be told: the parameter is the core's own, and some devices have regions
    // for other reasons.
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
    // SAFETY: The queue pair is valid, as the caller promises; context and element stay where they are
    // until the context is destroyed below. Nothing is posted.
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
