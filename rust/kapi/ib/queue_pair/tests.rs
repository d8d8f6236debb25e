// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Protects: the verbs know nothing of RPC. A user who only answers each message with the same
//! bytes needs no more than this.

use crate::{
    kapi::{
        bindings,
        ib::{
            fake::Device,
            *, //
        },
    },
    kunit::{
        claim,
        same, //
    },
};
use kernel::{
    dma::DataDirection,
    prelude::*,
    sync::Arc, //
};

const SIZES: QpSizes = QpSizes {
    max_send_wr: 9,
    max_recv_wr: 1,
    max_send_sge: 1,
    max_rdma_ctxs: 0,
    max_reads: 0,
    max_regs: 0,
    more_sends: 0,
    region_pages: 0,
    sg_gaps: false,
};
const LEN: usize = 64;

/// Answers messages.
struct Echo;

impl CmHandler for Echo {
    fn event(&self, _: CmEvent<'_>) {}
}

impl Consumer for Echo {
    type Cm = Self;
    /// Buffers to answer from.
    type Queue = KVec<DmaBuffer>;
    type Posted = ();
    type Read = ();

    fn sent(&self, mut queue: Locked<'_, Self>, done: SendDone) {
        let (ring, buffers) = queue.parts();
        ring.retire(&done, |posted, _| {
            let _ = buffers.push_within_capacity(posted.buffer?);
            None::<()>
        });
    }

    fn received(&self, qp: &QueuePair<Self>, message: Received<'_>) {
        let mut queue = qp.lock();
        if let Some(mut buffer) = queue.pop() {
            let (from, to) = (message.bytes(), buffer.as_mut_slice());
            to.iter_mut().zip(from).for_each(|(to, from)| *to = *from);
            if let Ok(mut chain) = queue.ring_mut().begin(1) {
                chain.send(buffer, from.len(), None, None);
                let _ = chain.post(true);
            }
        }
    }

    fn step(&self, _: &QueuePair<Self>, step: Step<'_, Self>) {
        match step {
            Step::Flushed(queue, done) => self.sent(queue, done),
            Step::Fenced(mut queue) => {
                let buffers = core::mem::take(&mut *queue);
                drop(queue);
                drop(buffers);
            }
            _ => (),
        }
    }

    fn failing(&self, _: &QueuePair<Self>) {}
    fn read(&self, _: &QueuePair<Self>, _: Reading<()>, _: Wc) {}
    fn read_failed(&self, _: Locked<'_, Self>, _: usize, _: Wc) {}
    fn receive_failed(&self, _: &QueuePair<Self>, _: u32, _: Wc) {}
    fn posting_receive(&self, _: &QueuePair<Self>, _: u32) {}
    fn event(&self, _: &QpEvent<'_>) {}
    fn deregistered(&self, _: Covered, _: Result) {}
}

impl<C: Consumer> QueuePair<C> {
    /// Takes back the RDMA Reads whose last completion entry is that.
    pub(crate) fn take_reading(&self, entry: *mut bindings::ib_cqe) -> Option<Reading<C::Read>> {
        self.send.lock().ring.end_read(entry)
    }
}

#[kunit_tests(rpcrdma_ping)]
mod suite {
    use super::*;

    #[test]
    fn each_message_comes_back() -> Result {
        let device = Device::new()?;
        let id = device.id(Arc::new(Echo, GFP_KERNEL)?)?;
        let buffers = KVec::with_capacity(1, GFP_KERNEL)?;
        let qp = QueuePair::new(id, SIZES, buffers, Echo).map_err(|_| EINVAL)?;
        let send = MappedBuffer::new(&qp.enter()?, LEN, DataDirection::ToDevice, Maker::Task)?;
        claim(qp.lock().push_within_capacity(send).is_ok(), "room")?;
        let receive = MappedBuffer::new(&qp.enter()?, LEN, DataDirection::FromDevice, Maker::Task)?;
        claim(qp.add_receive(receive).is_ok(), "room")?;
        for message in [&b"one"[..], b"second"] {
            same("posted", qp.post_receives(1)?, 1)?;
            device.deliver(message, None)?;
            same("answer", device.send(0)?.sge.1, message.len() as u32)?;
            device.complete_sends(1)?;
        }
        qp.shutdown();
        device.expect_nothing_left()
    }
}
