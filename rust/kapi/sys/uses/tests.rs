// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Protects: who waits until nobody uses a thing goes on after the last use, and none begins
//! afterwards.

use crate::{
    kapi::sys::{
        uses::*,
        workqueue::{
            work_class,
            DelayedWork,
            OwnedQueue,
            Timer,
            WorkItem, //
        },
    },
    kunit::{
        claim,
        same, //
    },
};
use kernel::{
    sync::{
        atomic::{
            Acquire,
            Release, //
        },
        Arc, //
    },
    time::{
        delay::fsleep,
        Delta, //
    },
};

/// Waits on another thread.
struct Waiter {
    uses: Arc<Uses>,
    over: Arc<Atomic<u32>>,
}

impl WorkItem for Waiter {
    fn run(&self, _: Timer<'_>) {
        self.uses.wait();
        self.over.store(1, Release);
    }
}

#[kunit_tests(rpcrdma_uses)]
mod suite {
    use super::*;

    #[test]
    fn none_after_it_is_closed() -> Result {
        let uses = Arc::pin_init(Uses::new(), GFP_KERNEL)?;
        let (one, two) = (uses.get(), uses.get());
        claim(one.is_some() && two.is_some(), "open")?;
        same("users", uses.close(), 2)?;
        claim(uses.get().is_none(), "closed")?;
        drop(one);
        same("users", uses.close(), 1)?;
        drop(two);
        uses.wait();
        claim(uses.get().is_none(), "still closed")
    }

    #[test]
    fn waits_for_the_last() -> Result {
        let uses = Arc::pin_init(Uses::new(), GFP_KERNEL)?;
        let over = Arc::new(Atomic::new(0), GFP_KERNEL)?;
        let waiter = Waiter {
            uses: uses.clone(),
            over: over.clone(),
        };
        let queue = OwnedQueue::new(c"rpcrdma_test", GFP_KERNEL)?;
        let class = work_class!(c"rpcrdma_test_uses");
        let work = DelayedWork::new(queue, class, waiter, GFP_KERNEL)?;
        let (one, two) = (uses.get(), uses.get());
        claim(work.queue(0), "queued")?;
        while uses.get().is_some() {
            fsleep(Delta::from_millis(1));
        }
        drop(one);
        fsleep(Delta::from_millis(50));
        same("over", over.load(Acquire), 0)?;
        drop(two);
        for _ in 0..10_000 {
            if over.load(Acquire) != 0 {
                break;
            }
            fsleep(Delta::from_millis(1));
        }
        same("over", over.load(Acquire), 1)?;
        drop(work);
        Ok(())
    }
}
