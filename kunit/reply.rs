// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Protects: a server that answers badly is not asked again at once, one that answers well is, and
//! a credit comes back with either.

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
        same, //
    },
    transport::region_plan::RegionPlan,
};

/// The requester's part of a connection that is not up.
struct Bench {
    // They go in this order.
    requester: Pin<KBox<Requester>>,
    mount: Unmounted<ClientXprt>,
}

impl Bench {
    fn new() -> Result<Self> {
        let mount = Unmounted::<ClientXprt>::new()?;
        let shared = mount.transport()?.state().clone();
        let loss = LossNotifier::new(shared.xprt.clone(), SocketAddress::for_test(1))?;
        let cm = CmState::new(loss.clone())?;
        let plan = RegionPlan::new(512, 0)?;
        let requester = Requester::new(shared, ConnectionId(1), loss, cm, 8, plan)?;
        Ok(Self {
            requester: KBox::pin_init(requester, GFP_KERNEL)?,
            mount,
        })
    }

    /// A Reply that is not well formed has come.
    fn bad_reply(&self) {
        give_up(&self.requester, LossReason::BadMessage);
    }

    /// Takes a credit for a Call. False when all are in use.
    fn call(&self, xid: u32) -> bool {
        self.requester.credits.lock().get(xid)
    }
}

#[kunit_tests(rpcrdma_reply)]
mod suite {
    use super::*;

    #[test]
    fn the_delay_grows_with_each_bad_reply() -> Result {
        let bench = Bench::new()?;
        same("before", bench.mount.backoff(), 0)?;
        bench.bad_reply();
        let first = bench.mount.backoff();
        claim(first != 0, "the next connection has to wait")?;
        bench.bad_reply();
        same("the second", bench.mount.backoff(), 2 * first)?;
        bench.bad_reply();
        same("the third", bench.mount.backoff(), 4 * first)
    }

    #[test]
    fn a_good_reply_ends_the_delay() -> Result {
        let bench = Bench::new()?;
        claim(bench.call(1), "a Call")?;
        bench.bad_reply();
        settle(&bench.requester, Some(8), Some(1));
        same("after it", bench.mount.backoff(), 0)?;
        bench.bad_reply();
        let first = bench.mount.backoff();
        bench.bad_reply();
        same("it begins anew", bench.mount.backoff(), 2 * first)?;
        // It is as good when it grants what was granted before.
        settle(&bench.requester, Some(8), None);
        same("after that", bench.mount.backoff(), 0)
    }

    #[test]
    fn a_credit_comes_back_with_a_bad_reply_and_the_delay_stays() -> Result {
        let bench = Bench::new()?;
        claim(bench.call(1), "a Call")?;
        claim(!bench.call(2), "no other")?;
        bench.bad_reply();
        let delay = bench.mount.backoff();
        settle(&bench.requester, None, Some(1));
        same("the delay", bench.mount.backoff(), delay)?;
        claim(bench.call(2), "the next")?;
        // Without a grant there is one Call at a time (RFC 8166, section 3.3.3).
        claim(!bench.call(3), "and no other")
    }
}
