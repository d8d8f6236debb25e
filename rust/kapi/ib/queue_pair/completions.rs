// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! What the worker of the completion queues calls.

use crate::kapi::{
    bindings,
    ib::{
        handler::{
            Failure,
            Handler,
            QueuePairEvent,
            Received, //
        },
        queue_pair::QueuePair,
        trace::{
            self,
            Fault, //
        },
    },
};
use core::{
    cell::Cell,
    ffi::c_void, //
};
use xdr::Role;

impl<H: Handler> QueuePair<H> {
    /// Called by the completion queue's worker for each completed entry of the send ring.
    ///
    /// # Safety
    ///
    /// To be called by ib_core alone, for an entry of this type's ring.
    pub(super) unsafe extern "C" fn send_done(cq: *mut bindings::ib_cq, wc: *mut bindings::ib_wc) {
        // SAFETY: The context points to the queue pair by the type invariant, and the drain in
        // `shutdown` waits for this function.
        let this = unsafe { &*(*cq).cq_context.cast::<Self>().cast_const() };
        // SAFETY: The completion is valid for the time of this call; entry and status are valid
        // members whatever the status.
        let (entry, status) = unsafe { ((*wc).__bindgen_anon_1.wr_cqe, (*wc).status) };
        let ok = this.is_ok(status);

        let send = this.send.lock();
        let position = send.ring.position_of(entry);
        let tag = position.and_then(|position| send.tag_of(position));
        if !ok {
            if let Some((purpose, id)) = position.and_then(|position| send.purpose_of(position)) {
                // SAFETY: The completion is valid for the time of this call.
                trace::send_failed(H::ROLE, purpose, id, Fault::of(unsafe { &*wc }));
            }
        }
        drop(send);
        if let Some(position) = position {
            this.retire(position + 1, ok);
        }
        this.make_room((!ok).then_some(Failure { status, tag }));
    }

    /// Whether a request ended well. After the first that did not the connection is lost.
    #[inline]
    fn is_ok(&self, status: u32) -> bool {
        let ok = status == bindings::ib_wc_status_IB_WC_SUCCESS;
        if !ok {
            self.lose();
        }
        ok
    }

    /// A request failed.
    #[cold]
    fn lose(&self) {
        // Before anything that failed is taken out of the queue, by this worker or the other's.
        let mut send = self.send.lock();
        if send.lose() {
            let only = send.alone();
            drop(send);
            self.handler.lost(only);
        }
    }

    /// There is room in the send queue: who waits for it comes next.
    fn make_room(&self, failure: Option<Failure>) {
        if let Some(failure) = failure {
            return self.handler.failed(failure);
        }
        let turns = self.send.lock().next_turns();
        match turns {
            Err(_) => self.handler.failed(Failure::post()),
            Ok(last) if last || H::ROLE == Role::Requester => self.handler.send_space(self),
            Ok(_) => (),
        }
    }

    /// Called by the completion queue's worker for the last of a message's RDMA Reads.
    ///
    /// # Safety
    ///
    /// To be called by ib_core alone, for a read entry of this type's ring.
    pub(super) unsafe extern "C" fn read_done(cq: *mut bindings::ib_cq, wc: *mut bindings::ib_wc) {
        // SAFETY: The context points to the queue pair by the type invariant, and the drain in
        // `shutdown` waits for this function.
        let this = unsafe { &*(*cq).cq_context.cast::<Self>().cast_const() };
        // SAFETY: The completion is valid for the time of this call; entry and status are valid
        // members whatever the status.
        let (entry, status) = unsafe { ((*wc).__bindgen_anon_1.wr_cqe, (*wc).status) };
        let ok = this.is_ok(status);
        let mut send = this.send.lock();
        let tag = send.tag_of_read(entry);
        let read = send.end_read(entry, ok);
        drop(send);
        if let Some(read) = read {
            if !ok {
                // SAFETY: The completion is valid for the time of this call.
                trace::read_failed(read.transfer.id(), Fault::of(unsafe { &*wc }));
            }
            this.end_read(read, ok);
        }
        this.make_room((!ok).then_some(Failure { status, tag }));
    }

    /// Called by the completion queue's worker for one of a message's RDMA Reads before the last,
    /// which failed.
    ///
    /// # Safety
    ///
    /// To be called by ib_core alone, for a read entry of this type's ring.
    pub(super) unsafe extern "C" fn read_failed(
        cq: *mut bindings::ib_cq,
        wc: *mut bindings::ib_wc,
    ) {
        // SAFETY: The context points to the queue pair by the type invariant, and the drain in
        // `shutdown` waits for this function.
        let this = unsafe { &*(*cq).cq_context.cast::<Self>().cast_const() };
        // SAFETY: The completion is valid for the time of this call; entry and status are valid
        // members whatever the status.
        let (entry, status) = unsafe { ((*wc).__bindgen_anon_1.wr_cqe, (*wc).status) };
        this.is_ok(status);
        let send = this.send.lock();
        let tag = send.tag_of_read(entry);
        if let Some(id) = send.id_of_read(entry) {
            // SAFETY: The completion is valid for the time of this call.
            trace::read_failed(id, Fault::of(unsafe { &*wc }));
        }
        drop(send);
        this.handler.failed(Failure { status, tag });
    }

    /// Called by the completion queue's worker for each completed Receive.
    ///
    /// # Safety
    ///
    /// To be called by ib_core alone, for an entry of this type's receive queue.
    pub(super) unsafe extern "C" fn receive_done(
        cq: *mut bindings::ib_cq,
        wc: *mut bindings::ib_wc,
    ) {
        // SAFETY: The context points to the queue pair by the type invariant, and the drain in
        // `shutdown` waits for this function.
        let this = unsafe { &*(*cq).cq_context.cast::<Self>().cast_const() };
        // SAFETY: The completion is valid for the time of this call; entry and status are valid
        // members whatever the status.
        let (entry, status) = unsafe { ((*wc).__bindgen_anon_1.wr_cqe, (*wc).status) };
        let ok = this.is_ok(status);
        let (len, invalidated) = if ok {
            // SAFETY: After a success all members are valid; the key is when the flag is set.
            unsafe {
                let flag = bindings::ib_wc_flags_IB_WC_WITH_INVALIDATE as i32;
                let key = ((*wc).wc_flags & flag != 0).then(|| (*wc).ex.invalidate_rkey);
                ((*wc).byte_len as usize, key)
            }
        } else {
            (0, None)
        };

        let mut recv = this.recv.lock();
        let Some((index, bytes)) = recv.complete(entry, len) else {
            return;
        };
        let id = recv.id_of(index);
        drop(recv);
        if ok {
            trace::received(H::ROLE, id, len as u32);
        } else {
            // SAFETY: The completion is valid for the time of this call.
            trace::receive_failed(H::ROLE, id, Fault::of(unsafe { &*wc }));
        }
        let kept = Cell::new(false);
        if ok {
            // SAFETY: The bytes are in that buffer. It is given back below, after the handler has
            // ended, which cannot keep the object longer, and not if it was kept.
            let message = unsafe { Received::new(this, (index, id), bytes, invalidated, &kept) };
            this.handler.received(this, message);
        }
        if !kept.get() {
            let last = this.recv.lock().give_back(index);
            this.given_back(last);
        }
        if !ok {
            this.handler.failed(Failure { status, tag: None });
        }
    }

    /// Called by the device when it has something to say of the queue pair. Any context.
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
        let event = unsafe { QueuePairEvent::new(event) };
        this.handler.device_event(&event);
    }
}
