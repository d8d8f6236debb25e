// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! A queue pair over a device without hardware, and what it tells its user.

use crate::{
    kapi::{
        ib::{
            QpSizes,
            Received, //
        },
        page::ExtentIter,
        sys::memalloc::MemoryScope,
    },
    transport::{
        endpoint::Arrival,
        plan::Plan,
        tests::{
            endpoint::*, //
            flow,
            NOTHING,
        },
    },
};
use xdr::{
    v2::Bounds,
    Role, //
};

/// An invalidation that is posted by the handler of a Receive.
pub(super) const LATE: u32 = 99;

pub(super) const FLUSHED: u32 = numbers::FLUSHED;
pub(super) const BROKEN: u32 = numbers::RETRY_EXCEEDED;

pub(super) const PLAN: Plan = Plan {
    qp: QpSizes {
        max_send_wr: 33,
        max_recv_wr: 8,
        max_send_sge: 1,
        max_rdma_ctxs: 0,
        max_reads: 0,
        max_regs: 3,
        more_sends: 0,
        region_pages: 8,
        sg_gaps: false,
    },
    rpcs: 1,
    send_buffers: 8,
    send_size: 1024,
    receive_size: 256,
    longest_read: 0,
    provided: 0,
};

/// Regions that are made and let go while a queue pair is made.
pub(super) const TRIED: usize = 1;
/// What the device is asked for when a connection comes up, and when that fails or it goes.
pub(super) const MADE: [Request; 7] = [
    Request::CreateCq,
    Request::CreateCq,
    Request::AllocPd,
    Request::CreateQp,
    Request::ModifyQp,
    Request::AllocMr,
    Request::DeregMr,
];
pub(super) const UNMADE: [Request; 4] = [
    Request::DestroyQp,
    Request::DestroyCq,
    Request::DestroyCq,
    Request::DeallocPd,
];
/// The same of a connection that was up, before its regions go and after.
pub(super) const ENDED: [Request; 5] = [
    Request::DrainReceives,
    Request::DrainSends,
    Request::DestroyQp,
    Request::DestroyCq,
    Request::DestroyCq,
];
pub(super) const LAST: Request = Request::DeallocPd;

/// Counts itself when it goes.
pub(super) struct Gone(Arc<Atomic<u32>>);

impl Drop for Gone {
    fn drop(&mut self) {
        self.0.fetch_add(1, Full);
    }
}

/// Of the connection manager nothing is expected.
pub(super) struct Silent {
    pub(super) _gone: Gone,
}

impl CmHandler for Silent {
    fn event(&self, _: CmEvent<'_>) {}
}

/// What a handler was told.
pub(super) struct Told {
    pub(super) messages: KVec<(usize, Option<u32>)>,
    pub(super) cookies: KVec<(u32, bool)>,
    /// What the last of them has proved.
    pub(super) done: Option<Invalidated>,
    pub(super) spaces: u32,
    pub(super) failures: KVec<u32>,
    /// How often it was asked for a memory scope.
    pub(super) scopes: u32,
}

#[pin_data]
pub(super) struct Listener {
    #[pin]
    pub(super) told: SpinLock<Told>,
    /// Regions that a received message has invalidated.
    #[pin]
    pub(super) regions: SpinLock<Option<Regions>>,
    pub(super) _gone: Gone,
}

impl Handler for Listener {
    type Cookie = u32;
    type Cm = Silent;
    const ROLE: Role = Role::Requester;

    fn memory_scope(&self) -> Option<MemoryScope> {
        self.told.lock().scopes += 1;
        Some(MemoryScope::enter(false))
    }

    fn bounds(&self) -> &Bounds {
        &NOTHING
    }

    fn broken(&self, _: &Endpoint<Self>) {}

    fn received(&self, qp: &Endpoint<Self>, message: Received<'_>, arrival: Arrival) {
        let Arrival::Message = arrival else {
            return;
        };
        let key = message.take_invalidated().map(|key| key.rkey());
        // It is told once.
        let key = key.filter(|_| message.take_invalidated().is_none());
        let noted = (message.bytes().len(), key);
        let _ = self.told.lock().messages.push(noted, GFP_ATOMIC);
        if let Some(regions) = &mut *self.regions.lock() {
            let posted = qp.invalidate(regions, LATE, Waiter::Reply, nobody);
            if posted.is_err() {
                pr_err!("# a late invalidation was not posted\n");
            }
        }
    }

    fn invalidated(&self, _: &Endpoint<Self>, cookie: u32, done: Option<Invalidated>) {
        let mut told = self.told.lock();
        let _ = told.cookies.push((cookie, done.is_some()), GFP_ATOMIC);
        told.done = done;
    }

    fn sq_space(&self, _: &Endpoint<Self>) {
        self.told.lock().spaces += 1;
    }

    fn failed(&self, failure: WcError) {
        let status = failure.wc().status();
        let _ = self.told.lock().failures.push(status, GFP_ATOMIC);
    }
}

/// Makes a queue pair on `id`, if that is possible.
pub(super) fn make(
    id: CmId<Silent>,
    plan: Plan,
    gone: &Arc<Atomic<u32>>,
) -> Result<Arc<Endpoint<Listener>>> {
    try_to_make(id, plan, gone).map_err(error)
}

/// The error alone; the id goes.
pub(super) fn error<E: CmHandler>(not_made: NotMade<E>) -> Error {
    match not_made {
        NotMade::Refused(_, _, e) | NotMade::Failed(_, e) => e,
        NotMade::Forced => EOPNOTSUPP,
    }
}

/// The same, and says what the device has refused.
pub(super) fn try_to_make(
    id: CmId<Silent>,
    plan: Plan,
    gone: &Arc<Atomic<u32>>,
) -> Result<Arc<Endpoint<Listener>>, NotMade<Silent>> {
    let told = Told {
        messages: KVec::new(),
        cookies: KVec::new(),
        done: None,
        spaces: 0,
        failures: KVec::new(),
        scopes: 0,
    };
    let gone = Gone(gone.clone());
    let listener = pin_init!(Listener {
        told <- new_spinlock!(told, "rpcrdma_test_told"),
        regions <- new_spinlock!(None, "rpcrdma_test_regions"),
        _gone: gone,
    });
    bring_up::as_planned(id, plan, flow()?, listener)
}

/// A handler for an id, that counts itself when it goes.
pub(super) fn silent(gone: &Arc<Atomic<u32>>) -> Result<Arc<Silent>> {
    let _gone = Gone(gone.clone());
    Ok(Arc::new(Silent { _gone }, GFP_KERNEL)?)
}

pub(super) fn counter() -> Result<Arc<Atomic<u32>>> {
    Ok(Arc::new(Atomic::new(0), GFP_KERNEL)?)
}

/// A queue pair over a fake device.
pub(super) struct Bench {
    pub(super) qp: Arc<Endpoint<Listener>>,
    pub(super) gone: Arc<Atomic<u32>>,
    pub(super) memory: Memory,
    pub(super) balance: Balance,
    pub(super) device: Device,
}

impl Bench {
    pub(super) fn new() -> Result<Self> {
        Self::on(Device::new)
    }

    /// One over a device that is made so.
    pub(super) fn on(made: impl FnOnce() -> Result<Device>) -> Result<Self> {
        let balance = Balance::begin();
        let device = made()?;
        let gone = counter()?;
        let qp = make(device.id(silent(&gone)?)?, PLAN, &gone)?;
        Ok(Self {
            qp,
            gone,
            memory: Memory::new(8)?,
            balance,
            device,
        })
    }

    /// Covers `n` pages with a region each.
    pub(super) fn map(&self, n: usize) -> Result<Regions> {
        let mut regions = Regions::new(3, GFP_KERNEL)?;
        self.qp.grow_regions(n as u32, u32::MAX)?;
        for i in 0..n {
            let page = (i * PAGE_SIZE, PAGE_SIZE);
            let mut pieces = self.memory.pieces((0, 0), page, (0, 0))?;
            let what = (&mut pieces, Access::RemoteWrite, 7);
            self.qp.map(&self.qp.enter()?, &mut regions, what, nobody)?;
        }
        Ok(regions)
    }

    /// Covers pieces with one more region.
    pub(super) fn map_more(&self, regions: &mut Regions, pieces: &mut ExtentIter<'_>) -> Result {
        let what = (pieces, Access::RemoteRead, 7);
        let poster = self.qp.enter()?;
        self.qp.map(&poster, regions, what, nobody).map(drop)
    }

    /// Posts a call with `n` regions.
    pub(super) fn call(&self, n: usize) -> Result<Regions> {
        let mut regions = self.map(n)?;
        let mut buffer = self.qp.send_buffer(Purpose::Message)?;
        buffer.bytes().fill(0x55);
        post(buffer, 100, Some(&mut regions))?;
        Ok(regions)
    }

    pub(super) fn invalidate(&self, regions: &mut Regions, cookie: u32) -> Result {
        self.invalidation(regions, cookie).map_err(|(e, _)| e)
    }

    /// The same; after an error also the cookie, if it came back.
    pub(super) fn invalidation(
        &self,
        regions: &mut Regions,
        cookie: u32,
    ) -> Result<(), (Error, Option<u32>)> {
        self.qp.invalidate(regions, cookie, Waiter::Task, nobody)
    }

    /// The invalidations that the handler was told of last were those of `regions`.
    pub(super) fn completed(&self, regions: &mut Regions) {
        if let Some(done) = self.qp.handler().told.lock().done.take() {
            self.qp.invalidation_completed(regions, &done);
        }
    }

    /// Posts `n` Receives.
    pub(super) fn receives(&self, n: u32) -> Result {
        self.qp.grow_receives(n)?;
        same("posted", self.qp.post_receives(n)?, n)
    }

    pub(super) fn told(&self, cookies: &[(u32, bool)], failures: &[u32]) -> Result {
        let told = self.qp.handler().told.lock();
        same("cookies", &told.cookies[..], cookies)?;
        same("failures", &told.failures[..], failures)
    }

    /// Checks that the regions are dead after a tear-down, and so no obstacle.
    pub(super) fn expect_dead(&self, mut regions: Regions) -> Result {
        self.qp.unmap(&mut regions);
        regions.drop_dead();
        same("room", regions.avail(), 3)?;
        claim(regions.is_fenced(), "fenced")
    }

    /// Ends the connection and checks what the device was asked for.
    pub(super) fn shut_down(&self, mrs: usize) -> Result {
        self.qp.shutdown();
        let mut expected = KVec::new();
        expected.extend_from_slice(&ENDED, GFP_KERNEL)?;
        for _ in 0..mrs {
            expected.push(Request::DeregMr, GFP_KERNEL)?;
        }
        expected.push(LAST, GFP_KERNEL)?;
        self.device
            .expect_since(Request::DrainReceives, &expected)?;
        self.device.expect_nothing_left()?;
        self.balance.more(0)?;
        // The id is gone, and its handler with it.
        same("gone", self.gone.load(Acquire), 1)
    }

    /// Checks that the queue pair goes when nobody has it any more.
    pub(super) fn end(self) -> Result {
        let Self {
            qp,
            gone,
            memory,
            balance,
            device,
        } = self;
        drop(qp);
        same("gone", gone.load(Acquire), 2)?;
        device.expect_nothing_left()?;
        drop((device, memory));
        balance.end()
    }
}

/// Shuts a queue pair down, on another thread.
pub(super) struct Closer {
    pub(super) qp: Arc<Endpoint<Listener>>,
    pub(super) state: Arc<Atomic<u32>>,
}

pub(super) const CLOSING: u32 = 1;
pub(super) const CLOSED: u32 = 2;

impl WorkItem for Closer {
    fn run(&self, _: Timer<'_>) {
        self.state.store(CLOSING, Release);
        self.qp.shutdown();
        self.state.store(CLOSED, Release);
    }
}

impl Closer {
    pub(super) fn start(
        qp: &Arc<Endpoint<Listener>>,
        queue: &Arc<OwnedQueue>,
    ) -> Result<DelayedWork<Self>> {
        let state = counter()?;
        let qp = qp.clone();
        let class = work_class!(c"rpcrdma_test_closer");
        let work = DelayedWork::new(queue.clone(), class, Self { qp, state }, GFP_KERNEL)?;
        claim(work.queue(0), "queued")?;
        Ok(work)
    }

    pub(super) fn is_closed(&self) -> bool {
        self.state.load(Acquire) == CLOSED
    }
}

/// Waits until something is so, for ten seconds at most.
pub(super) fn wait_for(what: &str, so: impl Fn() -> bool) -> Result {
    for _ in 0..10_000 {
        if so() {
            return Ok(());
        }
        fsleep(Delta::from_millis(1));
    }
    claim(false, what)
}

/// Gives other threads time to do what they should not.
pub(super) fn a_while() {
    fsleep(Delta::from_millis(50));
}
