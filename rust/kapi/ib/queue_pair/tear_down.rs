// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The end of a connection, in one order, by one thread.

use crate::kapi::{
    bindings,
    ib::{
        handler::Handler,
        hardware::Hardware,
        queue_pair::QueuePair,
        regions::Invalidated,
        ring::{
            QpState,
            Reading, //
        },
        rw::RwCtx,
        send_queue::{
            Read,
            Retired,
            Work, //
        },
        trace, //
    },
};

impl<H: Handler> QueuePair<H> {
    /// Ends the connection and lets everything go. May sleep, for as long as the adapter takes to
    /// flush its queues. Returns when all is gone, whoever did it.
    ///
    /// Never to be called from a completion or connection manager handler: it waits for them.
    pub(crate) fn shutdown(&self) {
        let mut send = self.send.lock();
        match send.ring.state {
            // It did not come up all the way: nobody can have posted.
            QpState::New => return,
            QpState::Open => send.ring.state = QpState::Draining,
            QpState::Draining | QpState::Closed => {
                drop(send);
                self.ended.wait();
                return;
            }
        }
        let lent = send.lent;
        drop(send);
        self.recv.lock().open = false;
        if let Some(forced) = self.forced() {
            forced.came_back();
        }
        if lent != 0 {
            self.posters_left.wait();
        }

        self.handler.disconnected(self.disconnect());
        // Receives first: their handlers may still post local invalidations.
        self.drain(bindings::ib_drain_rq);
        self.send.lock().ring.state = QpState::Closed;
        self.drain(bindings::ib_drain_sq);
        self.end_transfers();
        // A device that is dying may fail to drain: without its queues it uses nothing either.
        if let Some(hw) = &mut *self.hardware.lock() {
            hw.destroy_queues();
        }
        let head = self.send.lock().ring.head();
        self.retire(head, false);
        loop {
            let read = self.send.lock().ring.take_read();
            match read {
                Some(read) => self.end_read(read, false),
                None => break,
            }
        }
        self.let_kept_go();

        // Nothing is posted any more, and nobody posts.
        let (regions, idle) = self.send.lock().take_all_regions();
        drop(idle);
        for mr in &regions {
            trace::deregister(mr);
        }
        if let Some(padding) = self.padding.as_ref() {
            padding.deregister();
        }
        self.handler.fenced();
        let send_buffers = self.send.lock().take_all_buffers();
        drop(send_buffers);
        let receive_buffers = self.recv.lock().take_all();
        drop(receive_buffers);

        let hardware = self.hardware.lock().take();
        drop(hardware);
        self.ended.complete_all();
    }

    /// Waits until all received messages that were kept are given back.
    fn let_kept_go(&self) {
        self.handler.no_more();
        let mut recv = self.recv.lock();
        recv.ending = true;
        let kept = recv.kept;
        drop(recv);
        if kept != 0 {
            self.kept_left.wait();
        }
    }

    /// Takes the memory of transfers from the device while the queue pair is still there; the
    /// memory itself stays until the device can use it in no case.
    fn end_transfers(&self) {
        let mut turns = self.send.lock().take_turns();
        while let Some(work) = turns.pop() {
            match work {
                Work::Read(read) => self.end_read(read, false),
                Work::Reply(reply) => drop(reply),
            }
        }
        self.send.lock().ring.unmap_transfers();
    }

    pub(super) fn end_read(&self, read: Reading<Read<H::Cookie>>, ok: bool) {
        let memory = RwCtx::into_fetched(read.transfer);
        self.handler.read_ended(self, read.owned.cookie, memory, ok);
    }

    /// Waits until the adapter has completed all that was posted to one of the queues.
    fn drain(&self, queue: unsafe extern "C" fn(*mut bindings::ib_qp)) {
        let Some(qp) = self.hardware.lock().as_ref().and_then(Hardware::qp) else {
            return;
        };
        // SAFETY: Only `shutdown` destroys the queue pair, and it is running this.
        unsafe { queue(qp) };
    }

    /// Retires slots below `end` and hands out the cookies among them.
    pub(super) fn retire(&self, end: u64, ok: bool) {
        loop {
            let each = |purpose, id| trace::ended(H::ROLE, purpose, id);
            let each = (ok && trace::tells_of_ends(H::ROLE)).then_some(each);
            let retired = self.send.lock().retire(end, ok, each);
            match retired {
                Some(Retired::Cookie { cookie, end }) => {
                    let owner = self.number;
                    let done = ok.then_some(Invalidated { owner, end });
                    self.handler.invalidated(self, cookie, done)
                }
                Some(Retired::Transfer(transfer)) => drop(transfer),
                None => break,
            }
        }
    }
}
