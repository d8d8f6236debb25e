// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! What the worker of the completion queues calls.

use crate::kapi::{
    bindings,
    ib::{
        queue_pair::{
            Consumer,
            QpEvent,
            QueuePair, //
        },
        recv_queue::Received,
        ring::SendDone,
        wc::Wc, //
    },
};
use core::ffi::c_void;

impl<C: Consumer> QueuePair<C> {
    /// Returns the queue pair, the completion entry and the outcome of a request. Tells the user of
    /// the queue pair of a failure.
    ///
    /// # Safety
    ///
    /// ib_core must have called a completion handler of this type's queues with these.
    unsafe fn completed<'a>(
        cq: *mut bindings::ib_cq,
        wc: *mut bindings::ib_wc,
    ) -> (&'a Self, *mut bindings::ib_cqe, Wc) {
        // SAFETY: The context points to the queue pair by the type invariant, and the drain in
        // `shutdown` waits for the completion handler.
        let this = unsafe { &*(*cq).cq_context.cast::<Self>().cast_const() };
        // SAFETY: The completion is valid for the time of the call; entry and status are valid
        // members whatever the status.
        let (entry, wc) = unsafe { ((*wc).__bindgen_anon_1.wr_cqe, Wc::of(&*wc)) };
        if !wc.is_ok() {
            this.consumer.failing(this);
        }
        (this, entry, wc)
    }

    /// Takes a completed entry of the send ring from the completion queue's worker.
    ///
    /// # Safety
    ///
    /// To be called by ib_core alone, for an entry of this type's ring.
    pub(super) unsafe extern "C" fn send_done(cq: *mut bindings::ib_cq, wc: *mut bindings::ib_wc) {
        // SAFETY: ib_core calls this.
        let (this, entry, wc) = unsafe { Self::completed(cq, wc) };
        let queue = this.lock();
        if let Some(position) = queue.ring().position_of(entry) {
            // SAFETY: It has completed so.
            let done = unsafe { SendDone::new(this.number(), position + 1, wc) };
            this.consumer.sent(queue, done);
        }
    }

    /// Takes the last of a transfer's RDMA Reads from the completion queue's worker.
    ///
    /// # Safety
    ///
    /// To be called by ib_core alone, for a read entry of this type's ring.
    pub(super) unsafe extern "C" fn read_done(cq: *mut bindings::ib_cq, wc: *mut bindings::ib_wc) {
        // SAFETY: ib_core calls this.
        let (this, entry, wc) = unsafe { Self::completed(cq, wc) };
        let reading = this.send.lock().ring.end_read(entry);
        if let Some(reading) = reading {
            this.consumer.read(this, reading, wc);
        }
    }

    /// Takes one of a transfer's RDMA Reads before the last from the completion queue's worker,
    /// which failed.
    ///
    /// # Safety
    ///
    /// To be called by ib_core alone, for a read entry of this type's ring.
    pub(super) unsafe extern "C" fn read_failed(
        cq: *mut bindings::ib_cq,
        wc: *mut bindings::ib_wc,
    ) {
        // SAFETY: ib_core calls this.
        let (this, entry, wc) = unsafe { Self::completed(cq, wc) };
        let queue = this.lock();
        if let Some(place) = queue.ring().reads().index_of(entry) {
            this.consumer.read_failed(queue, place, wc);
        }
    }

    /// Takes a completed Receive from the completion queue's worker.
    ///
    /// # Safety
    ///
    /// To be called by ib_core alone, for an entry of this type's receive queue.
    pub(super) unsafe extern "C" fn receive_done(
        cq: *mut bindings::ib_cq,
        wc: *mut bindings::ib_wc,
    ) {
        // SAFETY: ib_core calls this.
        let (this, entry, outcome) = unsafe { Self::completed(cq, wc) };
        let (len, invalidated) = if outcome.is_ok() {
            // SAFETY: After a success all members are valid; the key is when the flag is set.
            unsafe {
                let flag = bindings::ib_wc_flags_IB_WC_WITH_INVALIDATE as i32;
                let key = ((*wc).wc_flags & flag != 0).then(|| (*wc).ex.invalidate_rkey);
                ((*wc).byte_len as usize, key)
            }
        } else {
            (0, None)
        };

        // SAFETY: It has completed, and is told of once. The tear-down waits for messages.
        let Some(message) = (unsafe { this.recv.complete(entry, len) }) else {
            return;
        };
        if outcome.is_ok() {
            // SAFETY: This is its completion.
            let message = unsafe { Received::new(message, invalidated) };
            this.consumer.received(this, message);
        } else {
            let index = message.index();
            drop(message);
            this.consumer.receive_failed(this, index, outcome);
        }
    }

    /// Takes an event of the queue pair from the device. Any context.
    ///
    /// # Safety
    ///
    /// To be called by ib_core alone, with a valid event, for a queue pair of this type.
    pub(super) unsafe extern "C" fn device_event(
        event: *mut bindings::ib_event,
        context: *mut c_void,
    ) {
        // SAFETY: The context points to the queue pair by the type invariant. The device does not
        // call this any more when the queue pair under it has been destroyed, which is before.
        let this = unsafe { &*context.cast::<Self>().cast_const() };
        // SAFETY: The device calls this with an event that is valid for the time of the call.
        let event = unsafe { QpEvent::new(event) };
        if event.is_established() {
            this.tell_established();
        }
        this.consumer.event(&event);
    }

    /// Tells the connection manager that the peer is ready, whose own word for that may be late, or
    /// lost: then it would be a while until it is sent again. Any context.
    fn tell_established(&self) {
        let Ok(poster) = self.enter() else { return };
        if let Some(id) = poster.objects().id {
            let event = bindings::ib_event_type_IB_EVENT_COMM_EST;
            // SAFETY: The id is valid as long as there is the poster. This takes spin locks, with
            // interrupts off, and does not sleep. It fails where the manager knows already.
            unsafe { bindings::rdma_notify(id.as_ptr(), event) };
        }
    }
}
