// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The end of a connection, in one order, by one thread.
//!
//! What is safe rests on this order, so it stands here, and not with the user of the queue pair,
//! which is asked at each step to let go of what it has.

use crate::kapi::{
    bindings,
    ib::{
        qp_resources::QpResources,
        queue_pair::{
            Consumer,
            QueuePair,
            Step, //
        },
        ring::{
            RingState,
            SendDone, //
        },
        wc::Wc, //
    },
};

impl<C: Consumer> QueuePair<C> {
    /// Ends the connection and lets everything go. May sleep, for as long as the adapter takes to
    /// flush its queues. Returns when all is gone, whoever did it.
    ///
    /// Never to be called from a completion or connection manager handler: it waits for them.
    pub(crate) fn shutdown(&self) {
        if !self.close() {
            return;
        }
        self.consumer.step(self, Step::Closing);
        self.gate.posters.wait();

        let told = self.disconnect();
        self.consumer.step(self, Step::Disconnected(told));
        // Receives first: their handlers may still post local invalidations.
        self.drain(bindings::ib_drain_rq);
        self.send.lock().ring.close(RingState::Closed);
        self.drain(bindings::ib_drain_sq);
        // While the queue pair is still there, without which the core cannot undo the mappings. The
        // memory itself stays until the device can use it in no case, also where the drain has
        // failed.
        self.send.lock().ring.unmap_transfers();
        self.gate.contexts.wait();
        // A device that is dying may fail to drain: without its queues it uses nothing either.
        if let Some(hw) = &mut *self.hardware.lock() {
            hw.destroy_queues();
        }

        self.put_posted();
        self.consumer.step(self, Step::Drained);
        self.recv.wait();
        self.deregister_all();
        self.consumer.step(self, Step::Fenced(self.lock()));
        let receive_buffers = self.recv.queue.lock().take_all();
        drop(receive_buffers);
        self.gate.buffers.wait();

        let hardware = self.hardware.lock().take();
        drop(hardware);
        self.ended.complete_all();
    }

    /// Closes the queues for all but local invalidations and what is posted. Returns false if all
    /// is gone, or nothing was there.
    fn close(&self) -> bool {
        let mut send = self.send.lock();
        if send.ring.is_new() {
            // It did not come up all the way: nobody can have posted.
            return false;
        }
        let somebody_does = core::mem::replace(&mut send.ending, true);
        send.ring.close(RingState::Draining);
        drop(send);
        if somebody_does {
            self.ended.wait();
            return false;
        }
        self.gate.posters.close();
        self.gate.contexts.close();
        self.recv.queue.lock().open = false;
        true
    }

    /// Gives all that was posted back.
    fn put_posted(&self) {
        // SAFETY: The queue pair is gone.
        let done = unsafe { SendDone::new(self.number(), u64::MAX, Wc::FLUSHED) };
        let all = Step::Flushed(self.lock(), done);
        self.consumer.step(self, all);
        loop {
            let reading = self.send.lock().ring.take_read();
            match reading {
                Some(reading) => self.consumer.step(self, Step::ReadFlushed(reading)),
                None => break,
            }
        }
    }

    /// Takes all regions from the device.
    fn deregister_all(&self) {
        let regions = core::mem::take(&mut self.send.lock().regions);
        for mr in &regions {
            // SAFETY: The queue pair is gone, and posters have left, of which the last may have
            // made one.
            unsafe { self.deregister(mr) };
        }
    }

    /// Waits until the adapter has completed all that was posted to one of the queues.
    fn drain(&self, queue: unsafe extern "C" fn(*mut bindings::ib_qp)) {
        let Some(qp) = self.hardware.lock().as_ref().and_then(QpResources::qp) else {
            return;
        };
        // SAFETY: Only `shutdown` destroys the queue pair, and it is running this.
        unsafe { queue(qp) };
    }
}
