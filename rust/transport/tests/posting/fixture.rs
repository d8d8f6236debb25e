// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! A requester over a device without hardware, whose completions are those that a test makes up.

use crate::{
    kapi::ib::{
        fake::Pages,
        Invalidated,
        QpSizes,
        Received,
        TransferKind, //
    },
    transport::{
        endpoint::Arrival,
        tests::{
            flow,
            posting::*,
            NOTHING, //
        },
    },
};
use xdr::{
    v2::Bounds,
    Role,
    Segment, //
};

/// Of the connection manager nothing is expected.
pub(super) struct Silent;

impl CmHandler for Silent {
    fn event(&self, _: CmEvent<'_>) {}
}

/// Keeps the cookies.
#[pin_data]
pub(super) struct Keeper {
    #[pin]
    cookies: SpinLock<KVec<u32>>,
}

impl Handler for Keeper {
    type Cookie = u32;
    type Cm = Silent;
    const ROLE: Role = Role::Requester;

    fn bounds(&self) -> &Bounds {
        &NOTHING
    }

    fn broken(&self, _: &Endpoint<Self>) {}

    fn received(&self, _: &Endpoint<Self>, _: Received<'_>, _: Arrival) {}

    fn invalidated(&self, _: &Endpoint<Self>, cookie: u32, _: Option<Invalidated>) {
        let _ = self.cookies.lock().push(cookie, GFP_ATOMIC);
    }

    fn sq_space(&self, _: &Endpoint<Self>) {}

    fn failed(&self, _: WcError) {}
}

/// A requester over a fake device.
pub(super) struct Bench {
    /// Of the Calls that were posted.
    pub(super) calls: KVec<Regions>,
    pub(super) endpoint: Arc<Endpoint<Keeper>>,
    memory: Memory,
    balance: Balance,
    // It goes last.
    pub(super) device: Device,
}

impl Bench {
    /// With `slots` for requests, for calls of `registrations` at most, with `limit` buffers of
    /// 1024 bytes.
    pub(super) fn new(slots: u32, registrations: u32, limit: u32) -> Result<Self> {
        Self::with_size(slots, registrations, limit, 1024)
    }

    pub(super) fn with_size(
        slots: u32,
        registrations: u32,
        limit: u32,
        send_size: usize,
    ) -> Result<Self> {
        let balance = Balance::begin();
        let device = Device::new()?;
        let plan = Plan {
            qp: QpSizes {
                max_send_wr: slots + 1,
                max_recv_wr: 1,
                max_send_sge: 1,
                max_rdma_ctxs: 2 * slots,
                max_reads: slots,
                max_regs: registrations,
                more_sends: 0,
                region_pages: 1,
                sg_gaps: false,
            },
            rpcs: 1,
            send_buffers: limit,
            send_size,
            receive_size: 256,
            longest_read: 3,
            provided: 0,
        };
        let id = device.id(Arc::new(Silent, GFP_KERNEL)?)?;
        let keeper =
            pin_init!(Keeper { cookies <- new_spinlock!(KVec::new(), "rpcrdma_test_cookies") });
        let endpoint = bring_up::as_planned(id, plan, flow()?, keeper).map_err(|_| EINVAL)?;
        Ok(Self {
            calls: KVec::new(),
            endpoint,
            memory: Memory::new(1)?,
            balance,
            device,
        })
    }

    /// Covers memory with `n` regions.
    pub(super) fn mapped(&self, n: usize) -> Result<Regions> {
        let mut regions = Regions::new(n, GFP_KERNEL)?;
        let poster = self.endpoint.enter()?;
        while self.endpoint.idle_regions() < n {
            self.endpoint.grow_regions(1, u32::MAX)?;
        }
        for _ in 0..n {
            let mut pieces = self.memory.pieces((0, 0), (0, PAGE_SIZE), (0, 0))?;
            let region = self.endpoint.lock().get_region().ok_or(EAGAIN)?;
            let what = (&mut pieces, Access::RemoteRead, 1);
            let key = regions.map(region, &poster, what);
            key.map_err(|(why, _)| why.error)?;
        }
        Ok(regions)
    }

    /// Posts a Send of `len` bytes with `n` registrations.
    pub(super) fn post(&mut self, n: usize, len: usize) -> Result {
        let mut regions = self.mapped(n)?;
        let buffer = match self.endpoint.send_buffer(Purpose::Message) {
            Ok(buffer) => buffer,
            Err(e) => {
                self.endpoint.unmap(&mut regions);
                return Err(e);
            }
        };
        let posted = post(buffer, len, Some(&mut regions));
        self.endpoint.unmap(&mut regions);
        self.calls.push(regions, GFP_KERNEL)?;
        posted
    }

    /// Has RDMA Reads posted until one has to wait, and that one.
    pub(super) fn read_until_one_waits(&self) -> Result {
        for number in 0.. {
            let posted = self.device.sends();
            self.read(number)?;
            if self.device.sends() == posted {
                break;
            }
        }
        Ok(())
    }

    /// Has an RDMA Read posted, or lets it wait.
    pub(super) fn read(&self, number: u32) -> Result {
        let memory = Pages::new(1)?.gather(PAGE_SIZE)?;
        let mut read = self.endpoint.transfer(TransferKind::Read, memory, 1)?;
        let segment = Segment {
            handle: number,
            length: 100,
            offset: 0,
        };
        read.add(0, 100, &segment)?;
        read.read(None, number)
    }

    /// Posts `n` Sends of 100 bytes.
    pub(super) fn sends(&mut self, n: usize) -> Result {
        for _ in 0..n {
            self.post(0, 100)?;
        }
        Ok(())
    }

    /// Posts invalidations of `n` regions. The error and whether the cookie came back at once.
    pub(super) fn invalidate(&mut self, n: usize, cookie: u32) -> Result<(), (Error, Option<u32>)> {
        let mut regions = self.mapped(n).map_err(|e| (e, None))?;
        regions.register_unposted();
        let posted = self.invalidate_those(&mut regions, cookie);
        let _ = self.calls.push(regions, GFP_KERNEL);
        posted
    }

    /// Posts invalidations of these regions.
    pub(super) fn invalidate_those(
        &self,
        regions: &mut Regions,
        cookie: u32,
    ) -> Result<(), (Error, Option<u32>)> {
        let mut queue = self.endpoint.lock();
        queue.post_invalidations(regions, cookie, Waiter::Reply)
    }

    /// Retires everything below `end`; the cookies that came back.
    pub(super) fn retire(&self, end: u64) -> KVec<u32> {
        let done = SendDone::test(self.endpoint.number(), end, Wc::SUCCESS);
        drop(self.endpoint.lock().retire(&done));
        core::mem::take(&mut *self.endpoint.handler().cookies.lock())
    }

    /// Retires all that is posted.
    pub(super) fn retire_all(&self) -> KVec<u32> {
        self.device.forget();
        self.retire(u64::MAX)
    }

    /// How many buffers are in the pool.
    pub(super) fn pooled(&self) -> usize {
        self.endpoint.lock().buffers.len()
    }

    /// Checks the send requests that the device holds: opcode and whether it is signaled.
    pub(super) fn expect(&self, expected: &[(u32, bool)]) -> Result {
        same("requests", self.device.sends(), expected.len())?;
        for (i, expected) in expected.iter().enumerate() {
            let posted = self.device.send(i)?;
            same("request", (posted.opcode, posted.signaled), *expected)?;
        }
        Ok(())
    }

    /// Whether the request that was posted last is signaled.
    pub(super) fn last_is_signaled(&self) -> Result<bool> {
        Ok(self.device.send(self.device.sends() - 1)?.signaled)
    }

    /// Checks that every buffer is in the pool, and that no slot holds anything.
    pub(super) fn expect_all_back(&self, buffers: u32) -> Result {
        let queue = self.endpoint.lock();
        same("buffers made", queue.made, buffers)?;
        same("buffers in the pool", queue.buffers.len(), buffers as usize)?;
        same("tail", queue.ring().tail(), queue.ring().head())?;
        claim(queue.ring().holds_nothing(), "no slot holds anything")
    }

    /// Checks that nothing stays mapped once the endpoint is gone.
    pub(super) fn end(self) -> Result {
        let Self {
            calls,
            endpoint,
            memory,
            balance,
            device,
        } = self;
        device.forget();
        endpoint.shutdown();
        drop((calls, endpoint));
        device.expect_nothing_left()?;
        drop((device, memory));
        balance.end()
    }
}
