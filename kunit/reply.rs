// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Protects: no Reply ends the delay of the next connection, and a credit comes back with a bad
//! one, too.

use super::*;
use crate::{
    client::{
        call::ConnectionId,
        cm_state::CmState,
        loss::LossNotifier,
        xprt::ClientXprt, //
    },
    kapi::{
        sunrpc::Unmounted,
        sys::address::SocketAddress, //
    },
    kunit::{
        claim,
        drivers,
        same, //
    },
    transport::{
        flow::credits::{
            Credit,
            Credits, //
        },
        plan::RegionCounts, //
    },
};

/// The requester's part of a connection that is not up.
struct Bench {
    // They go in this order.
    requester: Pin<KBox<Requester>>,
    credits: Credits,
    mount: Unmounted<ClientXprt>,
}

impl Bench {
    fn new() -> Result<Self> {
        let mount = Unmounted::<ClientXprt>::new()?;
        let shared = mount.transport().state().clone();
        let loss = LossNotifier::new(shared.clone(), SocketAddress::for_test(1))?;
        let cm = CmState::new(loss.clone())?;
        let regions = RegionCounts::new(&drivers::limits(8192, 8192), 0)?;
        let (id, program) = (ConnectionId(1), (100_003, 4));
        let requester = Requester::new(shared, id, program, loss, cm, 8, regions)?;
        Ok(Self {
            requester: KBox::pin_init(requester, GFP_KERNEL)?,
            credits: Credits::new(1, 8, true)?,
            mount,
        })
    }

    /// A Reply that is not well formed has come.
    fn bad_reply(&self) {
        self.requester.loss.report(LossReason::BadMessage);
    }

    /// Takes a credit for a Call. None when all are in use.
    fn call(&mut self) -> Option<Credit> {
        self.credits.get(1)
    }

    /// A Reply has come.
    fn reply(&mut self, back: Option<Credit>, grant: Option<u32>) {
        let changed = self.credits.answered(back, grant);
        self.requester.set_window(changed);
    }
}

#[kunit_tests(rpcrdma_reply)]
mod suite {
    use super::*;

    #[test]
    fn no_reply_ends_the_delay() -> Result {
        let mut bench = Bench::new()?;
        let credit = bench.call();
        claim(credit.is_some(), "a Call")?;
        bench.mount.attempted();
        let delay = bench.mount.backoff();
        claim(delay != 0, "the next connection has to wait")?;
        // A server that answers one and dies of the next would be asked in a loop.
        bench.reply(credit, Some(8));
        same("after a good one", bench.mount.backoff(), delay)?;
        bench.bad_reply();
        same("after a bad one", bench.mount.backoff(), delay)
    }

    #[test]
    fn a_credit_comes_back_with_a_bad_reply() -> Result {
        let mut bench = Bench::new()?;
        let credit = bench.call();
        claim(credit.is_some(), "a Call")?;
        claim(bench.call().is_none(), "no other")?;
        bench.bad_reply();
        bench.reply(credit, None);
        claim(bench.call().is_some(), "the next")?;
        // Without a grant there is one Call at a time (RFC 8166, section 3.3.3).
        claim(bench.call().is_none(), "and no other")
    }
}
