// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! What the fake driver was asked for, what was posted, and what it is to refuse.

use crate::kapi::bindings;
use kernel::{
    ffi::c_int,
    new_spinlock,
    prelude::*,
    sync::{
        Arc,
        SpinLock, //
    },
};

/// What a driver is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Request {
    AllocPd,
    DeallocPd,
    CreateCq,
    DestroyCq,
    CreateQp,
    ModifyQp,
    DestroyQp,
    AllocMr,
    DeregMr,
    MapMr,
    DrainReceives,
    DrainSends,
}

/// How a post ends that the device does not take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Refusal {
    /// It takes so many requests and names the next.
    After(usize),
    /// It takes all of them, reports an error, and names none.
    Nameless,
}

/// A work request that was posted and is not completed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Posted {
    pub(super) qp: *mut bindings::ib_qp,
    /// Its completion entry.
    pub(crate) entry: *mut bindings::ib_cqe,
    pub(crate) opcode: u32,
    pub(crate) signaled: bool,
    /// The key that it registers or invalidates.
    pub(crate) key: u32,
    pub(crate) access: i32,
    pub(crate) sge: (u64, u32, u32),
}

// SAFETY: The pointers are used while their queue pair lives, under the lock of the books or by
// the one test.
unsafe impl Send for Posted {}

pub(super) struct Records {
    pub(super) done: KVec<Request>,
    pub(super) refuse: Option<(Request, u32)>,
    pub(super) refuse_post: Option<Refusal>,
    pub(super) sends: KVec<Posted>,
    pub(super) receives: KVec<Posted>,
    pub(super) posts: u32,
    pub(super) place_at_most: u32,
    pub(super) last_key: u32,
    pub(super) mapped_at_dereg: usize,
    pub(super) deliver_in_drain: u32,
    pub(super) drains: bool,
}

/// What the driver knows.
#[pin_data]
pub(super) struct Books {
    #[pin]
    pub(super) records: SpinLock<Records>,
}

impl Books {
    /// Nothing was asked for yet. May sleep.
    pub(super) fn new() -> Result<Arc<Self>> {
        let records = Records {
            done: KVec::with_capacity(64, GFP_KERNEL)?,
            refuse: None,
            refuse_post: None,
            sends: KVec::with_capacity(64, GFP_KERNEL)?,
            receives: KVec::with_capacity(64, GFP_KERNEL)?,
            posts: 0,
            place_at_most: i32::MAX as u32,
            last_key: 0x4200_0000,
            mapped_at_dereg: 0,
            deliver_in_drain: 0,
            drains: true,
        };
        Arc::pin_init(
            pin_init!(Self {
                records <- new_spinlock!(records, "rpcrdma_fake_device"),
            }),
            GFP_KERNEL,
        )
    }

    /// Writes a request down. Zero, or an errno if a test wants it refused.
    pub(super) fn ask(&self, request: Request) -> c_int {
        let mut records = self.records.lock();
        if let Some((refused, after)) = records.refuse {
            if refused == request {
                records.refuse = after.checked_sub(1).map(|after| (request, after));
                if records.refuse.is_none() {
                    return ENOMEM.to_errno();
                }
            }
        }
        match records.done.push(request, GFP_ATOMIC) {
            Ok(()) => 0,
            Err(_) => ENOMEM.to_errno(),
        }
    }

    /// Ends all posted send requests, if the device is able to.
    pub(super) fn drain_sends(&self) {
        if self.records.lock().drains {
            while self.complete_send(bindings::ib_wc_status_IB_WC_WR_FLUSH_ERR) {}
        }
    }

    /// Ends all posted Receives, if the device is able to. What came before the end is delivered
    /// still.
    pub(super) fn drain_receives(&self) {
        let records = self.records.lock();
        let (drains, len) = (records.drains, records.deliver_in_drain);
        drop(records);
        if len != 0 {
            self.complete_receive(bindings::ib_wc_status_IB_WC_SUCCESS, len, None);
        }
        if drains {
            while self.complete_receive(bindings::ib_wc_status_IB_WC_WR_FLUSH_ERR, 0, None) {}
        }
    }

    /// Completes the oldest posted send request. False when there is none.
    pub(super) fn complete_send(&self, status: u32) -> bool {
        let Ok(posted) = self.records.lock().sends.remove(0) else {
            return false;
        };
        // ib_core expects no more of a request without an entry than that it is not signaled.
        let expected = posted.signaled || status != bindings::ib_wc_status_IB_WC_SUCCESS;
        if expected && !posted.entry.is_null() {
            // SAFETY: The queue pair lives while something is posted to it.
            let cq = unsafe { (*posted.qp).send_cq };
            complete(cq, posted, status, 0, None);
        }
        true
    }

    /// Completes a send request that is not in the books any more, well.
    pub(super) fn complete_taken(&self, posted: Posted) {
        // SAFETY: The queue pair lives while something is posted to it, or was taken to be
        // completed.
        let cq = unsafe { (*posted.qp).send_cq };
        complete(cq, posted, bindings::ib_wc_status_IB_WC_SUCCESS, 0, None);
    }

    /// Completes the oldest posted Receive. False when there is none.
    pub(super) fn complete_receive(&self, status: u32, len: u32, key: Option<u32>) -> bool {
        let Ok(posted) = self.records.lock().receives.remove(0) else {
            return false;
        };
        // SAFETY: The queue pair lives while something is posted to it, or was taken to be
        // completed.
        let cq = unsafe { (*posted.qp).recv_cq };
        complete(cq, posted, status, len, key);
        true
    }
}

/// Does what a completion queue's worker does with one completion.
fn complete(cq: *mut bindings::ib_cq, posted: Posted, status: u32, len: u32, key: Option<u32>) {
    let mut wc = bindings::ib_wc {
        status,
        byte_len: len,
        qp: posted.qp,
        ..Default::default()
    };
    wc.__bindgen_anon_1.wr_cqe = posted.entry;
    if let Some(key) = key {
        wc.wc_flags = bindings::ib_wc_flags_IB_WC_WITH_INVALIDATE as c_int;
        wc.ex.invalidate_rkey = key;
    }
    // SAFETY: The entry was posted and not completed, so it is valid. It is called as ib_core
    // calls it: with its queue and a completion that is valid for the time of the call.
    unsafe {
        if let Some(done) = (*posted.entry).done {
            done(cq, &mut wc);
        }
    }
}
