// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The trace events of a transfer.

use crate::kapi::{
    ib::rw::{
        RwCtx,
        TransferKind, //
    },
    trace::{
        self,
        CompletionId, //
    },
};
use kernel::time::{
    Instant,
    Monotonic, //
};

impl RwCtx {
    /// What its requests are called in events.
    pub(in super::super) fn id(&self) -> CompletionId {
        self.id
    }

    /// It is about to be posted.
    pub(in super::super) fn trace_post(&mut self) {
        if self.kind == TransferKind::Read {
            if trace::on::svcrdma_wc_read() {
                self.posted = Some(Instant::now());
            }
            trace::svcrdma_post_read_chunk(|| (self.id, self.requests as u32));
        } else {
            self.each_kind_of_chunk(
                |n| trace::svcrdma_post_write_chunk(|| (self.id, n)),
                |n| trace::svcrdma_post_reply_chunk(|| (self.id, n)),
            );
        }
    }

    /// Its RDMA Writes have ended well.
    pub(in super::super) fn trace_written(&self) {
        self.each_kind_of_chunk(
            |_| trace::svcrdma_wc_write(|| self.id),
            |_| trace::svcrdma_wc_reply(|| self.id),
        );
    }

    /// Its RDMA Reads have ended well.
    pub(in super::super) fn trace_read(&self) {
        trace::svcrdma_wc_read(|| {
            // The clock is not read while the event is off, so what was posted then has no time.
            let elapsed = self.posted.as_ref().map(Instant::<Monotonic>::elapsed);
            let latency = elapsed.map_or(0, |elapsed| elapsed.as_micros_ceil());
            let bytes = self.elements.iter().map(|element| element.bv_len).sum();
            (self.id, latency, bytes)
        });
    }

    /// Its memory is about to be taken from the device.
    pub(super) fn trace_release(&self) {
        trace::svcrdma_cc_release(|| (self.id, self.requests as u32));
    }

    /// How many of its requests are not for the Reply chunk: those come first.
    pub(in super::super) fn reply_chunk_from(&self) -> usize {
        self.reply_chunk_from
    }

    /// Calls each with the number of requests, if there are any.
    fn each_kind_of_chunk(&self, write: impl FnOnce(u32), reply: impl FnOnce(u32)) {
        let writes = self.requests.min(self.reply_chunk_from);
        if writes != 0 {
            write(writes as u32);
        }
        if writes != self.requests {
            reply((self.requests - writes) as u32);
        }
    }
}
