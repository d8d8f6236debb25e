// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The objects of ib_core and rdma_cm under a queue pair.

use crate::kapi::{
    bindings,
    ib::cm::{
        CmHandler,
        CmId, //
    },
};
use core::{
    ffi::c_void,
    mem::ManuallyDrop,
    ptr::NonNull, //
};
use kernel::{
    error::{
        from_err_ptr,
        to_result, //
    },
    prelude::*, //
};

/// Handles an event of a queue pair, in any context.
pub(super) type EventHandler = unsafe extern "C" fn(*mut bindings::ib_event, *mut c_void);

/// Sizes of a queue pair, by the names that `ib_qp_cap` has for them where it has any.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct QpSizes {
    /// Work requests that the send queue holds, one of which the drain needs. Those that RDMA Reads
    /// need for registered sinks are beside them.
    pub(crate) max_send_wr: u32,
    /// Receive buffers, at most.
    pub(crate) max_recv_wr: u32,
    /// Elements of one work request, at most.
    pub(crate) max_send_sge: u32,
    /// Segments that are transferred at once on devices that have to register memory for that.
    pub(crate) max_rdma_ctxs: u32,
    /// Transfers whose RDMA Reads are under way at once; 0 where there are no transfers.
    pub(crate) max_reads: u32,
    /// Registrations of one chain, at most.
    pub(crate) max_regs: u32,
    /// Sends of one chain beside the last, at most.
    pub(crate) more_sends: u32,
    /// Pages of each region; 0 where there are no regions.
    pub(crate) region_pages: u32,
    /// A region may have gaps between them.
    pub(crate) sg_gaps: bool,
}

/// The part that could not be made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Part {
    CompletionQueue,
    ProtectionDomain,
    QueuePair,
    Region,
}

/// Holds what a queue pair is used by.
pub(super) struct Queues {
    pub(super) qp: *mut bindings::ib_qp,
    /// The key for local memory.
    pub(super) lkey: u32,
    /// The resource tracker's numbers of the completion queues.
    pub(super) send_cq: u32,
    pub(super) recv_cq: u32,
}

/// Makes a completion queue of `entries`, whose handlers get the pointer. May sleep.
///
/// # Safety
///
/// The device must be valid, and the pointer be so for the handlers until the queue is destroyed.
unsafe fn new_cq(
    device: NonNull<bindings::ib_device>,
    pointer: *mut c_void,
    entries: u32,
) -> Result<NonNull<bindings::ib_cq>> {
    // SAFETY: By the contract of this function.
    let cq = from_err_ptr(unsafe {
        bindings::ib_alloc_cq_any(
            device.as_ptr(),
            pointer,
            entries as i32,
            bindings::ib_poll_context_IB_POLL_WORKQUEUE,
        )
    })?;
    NonNull::new(cq).ok_or(ENOMEM)
}

/// Owns the objects, in the order in which they are let go.
///
/// # Invariants
///
/// All pointers are valid, those that are set; the queue pair uses the others, and the id pins
/// the device under all of them. The id has a queue pair if `has_qp`.
pub(super) struct QpResources<E: CmHandler> {
    has_qp: bool,
    recv_cq: Option<NonNull<bindings::ib_cq>>,
    send_cq: Option<NonNull<bindings::ib_cq>>,
    pd: Option<NonNull<bindings::ib_pd>>,
    id: CmId<E>,
}

// SAFETY: These objects may be used from any thread.
unsafe impl<E: CmHandler> Send for QpResources<E> {}

impl<E: CmHandler> QpResources<E> {
    /// Takes an id alone, which is bound to a device.
    pub(super) fn new(id: CmId<E>) -> Self {
        // INVARIANT: Nothing is set.
        Self {
            has_qp: false,
            recv_cq: None,
            send_cq: None,
            pd: None,
            id,
        }
    }

    /// Creates the queues, the protection domain and the queue pair. May sleep. On an error
    /// dropping `self` undoes what was done.
    ///
    /// # Safety
    ///
    /// `context` must be valid for the completion handlers, which find it at their queue, and for
    /// `event`, until [`Self::destroy_queues`] has returned.
    pub(super) unsafe fn make_queues(
        &mut self,
        context: *mut c_void,
        event: EventHandler,
        sizes: &QpSizes,
    ) -> Result<Queues, (Part, Error)> {
        let no_cq = |e| (Part::CompletionQueue, e);
        let device = self.id.device().map_err(no_cq)?;
        let limits = self.id.limits().map_err(no_cq)?;
        // Where none are needed, the core shall make no regions for them either.
        let contexts = match limits.wr_per_rdma_ctx {
            0 => 0,
            _ => sizes.max_rdma_ctxs,
        };
        // The core makes room for them in the queue, but not for their completions.
        let completions = limits
            .wr_per_rdma_ctx
            .checked_mul(contexts)
            .and_then(|added| added.checked_add(sizes.max_send_wr))
            .ok_or((Part::CompletionQueue, EINVAL))?;
        // The drain needs one entry more, as that of the send queue.
        let receives = sizes.max_recv_wr.saturating_add(1);
        // SAFETY: The device is valid, pinned by the id; the caller promises the rest.
        let new_cq = |entries| unsafe { new_cq(device, context, entries) };
        let send_cq = new_cq(completions).map_err(no_cq)?;
        self.send_cq = Some(send_cq);
        let recv_cq = new_cq(receives).map_err(no_cq)?;
        self.recv_cq = Some(recv_cq);

        // SAFETY: The device is valid, pinned by the id.
        let pd = from_err_ptr(unsafe { bindings::ib_alloc_pd(device.as_ptr(), 0) })
            .and_then(|pd| NonNull::new(pd).ok_or(ENOMEM))
            .map_err(|e| (Part::ProtectionDomain, e))?;
        self.pd = Some(pd);

        let mut attr = bindings::ib_qp_init_attr {
            event_handler: Some(event),
            qp_context: context,
            send_cq: send_cq.as_ptr(),
            recv_cq: recv_cq.as_ptr(),
            cap: bindings::ib_qp_cap {
                max_send_wr: sizes.max_send_wr,
                max_recv_wr: receives,
                max_send_sge: sizes.max_send_sge,
                max_recv_sge: 1,
                max_rdma_ctxs: contexts,
                ..Default::default()
            },
            sq_sig_type: bindings::ib_sig_type_IB_SIGNAL_REQ_WR,
            qp_type: bindings::ib_qp_type_IB_QPT_RC,
            port_num: u32::MAX,
            ..Default::default()
        };
        // SAFETY: The id is bound to the device of the protection domain and the queues.
        to_result(unsafe { bindings::rdma_create_qp(self.id.as_raw(), pd.as_ptr(), &mut attr) })
            .map_err(|e| (Part::QueuePair, e))?;
        // INVARIANT: Since the call above.
        self.has_qp = true;
        // SAFETY: The id has a queue pair; the others are valid.
        Ok(unsafe {
            Queues {
                qp: (*self.id.as_raw()).qp,
                lkey: (*pd.as_ptr()).local_dma_lkey,
                send_cq: (*send_cq.as_ptr()).res.id,
                recv_cq: (*recv_cq.as_ptr()).res.id,
            }
        })
    }

    /// Takes the queues from the device: no completion handler runs afterwards. May sleep.
    ///
    /// Both must be drained, or not used.
    pub(super) fn destroy_queues(&mut self) {
        if core::mem::take(&mut self.has_qp) {
            // SAFETY: The id has a queue pair by the type invariant.
            unsafe { bindings::rdma_destroy_qp(self.id.as_raw()) };
        }
        for cq in [self.recv_cq.take(), self.send_cq.take()]
            .into_iter()
            .flatten()
        {
            // SAFETY: Valid by the type invariant, and the queue pair that used it is gone.
            unsafe { bindings::ib_free_cq(cq.as_ptr()) };
        }
    }

    /// Destroys everything but the id, and returns that as it was. May sleep.
    pub(super) fn into_id(mut self) -> CmId<E> {
        self.undo();
        let this = ManuallyDrop::new(self);
        // SAFETY: Read once: `this` is not dropped, and its other fields need not be.
        unsafe { core::ptr::read(&this.id) }
    }

    /// Destroys everything but the id. May sleep.
    fn undo(&mut self) {
        self.destroy_queues();
        if let Some(pd) = self.pd.take() {
            // SAFETY: Valid by the type invariant; its queue pair and its regions are gone.
            unsafe { bindings::ib_dealloc_pd(pd.as_ptr()) };
        }
    }

    /// Returns the id.
    pub(super) fn id(&self) -> &CmId<E> {
        &self.id
    }

    /// Returns the protection domain, once it is made.
    pub(super) fn pd(&self) -> Option<NonNull<bindings::ib_pd>> {
        self.pd
    }

    /// Returns the queue pair, while there is one.
    pub(super) fn qp(&self) -> Option<*mut bindings::ib_qp> {
        // SAFETY: The id is valid, and has a queue pair if `has_qp`.
        self.has_qp.then(|| unsafe { (*self.id.as_raw()).qp })
    }
}

impl<E: CmHandler> Drop for QpResources<E> {
    fn drop(&mut self) {
        self.undo();
        // The id goes last, as a field: it pins the device, and no event handler runs afterwards.
    }
}
