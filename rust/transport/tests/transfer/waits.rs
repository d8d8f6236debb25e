// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Protects: the tear-down waits for received messages that are kept, and for transfers that are
//! not posted, before anything goes that they need.

use crate::{
    kapi::{
        ib::fake::Request,
        sys::workqueue::{
            work_class,
            DelayedWork,
            OwnedQueue,
            Timer,
            WorkItem, //
        },
    },
    transport::tests::transfer::*,
};
use kernel::{
    sync::atomic::{
        Acquire,
        Atomic,
        Release, //
    },
    time::{
        delay::fsleep,
        Delta, //
    },
};

/// Shuts a queue pair down, on another thread.
struct Closer {
    qp: Arc<Endpoint<Keeper>>,
    closed: Arc<Atomic<u32>>,
}

impl WorkItem for Closer {
    fn run(&self, _: Timer<'_>) {
        self.qp.shutdown();
        self.closed.store(1, Release);
    }
}

/// The tear-down does not end before `let_go` has returned, which is called when it has had time
/// to.
fn waits(bench: &Bench, let_go: impl FnOnce() -> Result) -> Result {
    let closed = Arc::new(Atomic::new(0), GFP_KERNEL)?;
    let closer = Closer {
        qp: bench.qp.clone(),
        closed: closed.clone(),
    };
    let queue = OwnedQueue::new(c"rpcrdma_test", GFP_KERNEL)?;
    let work = DelayedWork::new(queue, work_class!(c"rpcrdma_test_kept"), closer, GFP_KERNEL)?;
    claim(work.queue(0), "queued")?;
    fsleep(Delta::from_millis(50));
    same("closed", closed.load(Acquire), 0)?;
    let_go()?;
    for _ in 0..10_000 {
        if closed.load(Acquire) != 0 {
            break;
        }
        fsleep(Delta::from_millis(1));
    }
    same("closed", closed.load(Acquire), 1)?;
    drop(work);
    Ok(())
}

#[kunit_tests(rpcrdma_waits)]
mod suite {
    use super::*;

    #[test]
    fn for_what_is_kept() -> Result {
        for_a_message(|_, kept| {
            drop(kept);
            Ok(())
        })
    }

    #[test]
    fn for_what_is_returned() -> Result {
        for_a_message(|qp, kept| qp.return_receive(kept, 1).map(|_| ()))
    }

    fn for_a_message(let_go: impl FnOnce(&Endpoint<Keeper>, RecvBuf) -> Result) -> Result {
        let bench = Bench::new()?;
        bench.qp.grow_receives(1)?;
        bench.qp.post_receives(1)?;
        bench.device.deliver(&[1, 2, 3], None)?;
        let kept = bench.qp.handler().told.lock().kept.remove(0);
        waits(&bench, || {
            let Ok(kept) = kept else {
                return Err(EINVAL);
            };
            same("bytes", kept.bytes(), &[1, 2, 3][..])?;
            let_go(&bench.qp, kept)
        })?;
        bench.end()
    }

    #[test]
    fn for_a_transfer_that_is_not_posted() -> Result {
        let bench = Bench::new()?;
        let transfer = bench.transfer(TransferKind::Write, 2)?;
        waits(&bench, || {
            // The queues are drained, but there.
            same("drained", bench.device.count(Request::DrainSends), 1)?;
            same("destroyed", bench.device.count(Request::DestroyQp), 0)?;
            let another = bench.transfer(TransferKind::Write, 1);
            same("another", another.err(), Some(ENOTCONN))?;
            drop(transfer);
            Ok(())
        })?;
        bench.end()
    }

    #[test]
    fn for_no_chain_that_was_begun_and_forgotten() -> Result {
        for forget in [true, false] {
            let bench = Bench::new()?;
            let memory = bench.pages.gather(PAGES * PAGE_SIZE)?;
            let mut transfer = bench
                .qp
                .alloc_rw_ctx(TransferKind::Write, memory, 2, GFP_KERNEL)?;
            let added = transfer.add(0, 100, (1, 0x1000));
            same("added", added.map_err(|why| why.error), Ok(100))?;
            let mut queue = bench.qp.lock();
            let begun = queue.ring_mut().begin_behind(transfer, |_| None, 1);
            let chain = begun.map_err(|(e, _)| e)?;
            if forget {
                core::mem::forget(chain);
            } else {
                drop(chain);
            }
            claim(!queue.ring().is_open(), "nothing can be posted any more")?;
            drop(queue);
            same("posts", bench.device.posts(), 0)?;
            bench.end()?;
        }
        Ok(())
    }

    #[test]
    fn room_for_reads_comes_back() -> Result {
        let bench = Bench::new()?;
        let room = || bench.qp.lock().ring().sq_avail();
        let all = room();
        bench.read(2, 7)?;
        let requests = bench.device.sends() as u32;
        same("beside the Reads", room(), all - requests)?;
        let last = bench.device.send(bench.device.sends() - 1)?;
        bench.device.complete(last);
        same("afterwards", room(), all)?;
        bench.told(&[(7, true)], &[])?;
        bench.forget_memory();
        bench.end()
    }
}
