// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! A responder over a device without hardware, and what it tells its user.

use crate::{
    kapi::ib::Received,
    transport::{
        endpoint::Arrival,
        flow::{
            credits::Credits,
            grant::Grant,
            Flow, //
        },
        tests::{
            flow,
            transfer::*,
            NOTHING, //
        },
    },
};
use xdr::v2::Bounds;

pub(super) const FLUSHED: u32 = numbers::FLUSHED;
pub(super) const BROKEN: u32 = numbers::REMOTE_ACCESS;
/// What Replies are tagged with; RDMA Reads by their cookie in addition.
pub(super) const TAG: u32 = 100;
pub(super) const WRITE: u32 = numbers::WRITE;
pub(super) const SEND: u32 = numbers::SEND;
pub(super) const SEND_WITH_INV: u32 = numbers::SEND_WITH_INV;
pub(super) const REG: u32 = numbers::REG;
pub(super) const READ: u32 = numbers::READ;

pub(super) const PLAN: Plan = Plan {
    qp: QpSizes {
        max_send_wr: 33,
        max_recv_wr: 8,
        max_send_sge: 4,
        max_rdma_ctxs: 8,
        max_reads: 2,
        max_regs: 4,
        more_sends: 0,
        region_pages: 2,
        sg_gaps: false,
    },
    rpcs: 1,
    send_buffers: 24,
    send_size: 1024,
    receive_size: 256,
    longest_read: 0,
    provided: 2,
};

/// What a handler was told.
pub(super) struct Told {
    pub(super) kept: KVec<RecvBuf>,
    pub(super) reads: KVec<(u32, bool)>,
    pub(super) memory: KVec<TransferMemory>,
    /// Those who are at fault.
    pub(super) failures: KVec<Option<u32>>,
    pub(super) sq_full: u32,
    pub(super) space: u32,
    /// How often the peer has broken the protocol.
    pub(super) broken: u32,
}

/// Keeps all messages.
#[pin_data]
pub(super) struct Keeper {
    #[pin]
    pub(super) told: SpinLock<Told>,
}

/// Of the connection manager nothing is expected.
pub(super) struct Silent;

impl CmHandler for Silent {
    fn event(&self, _: CmEvent<'_>) {}
}

impl Handler for Keeper {
    type Cookie = u32;
    type Cm = Silent;
    const ROLE: Role = Role::Responder;

    fn bounds(&self) -> &Bounds {
        &NOTHING
    }

    fn broken(&self, _: &Endpoint<Self>) {
        self.told.lock().broken += 1;
    }

    fn received(&self, _: &Endpoint<Self>, message: Received<'_>, arrival: Arrival) {
        let Arrival::Message = arrival else {
            return;
        };
        let _ = self.told.lock().kept.push(message.keep(), GFP_ATOMIC);
    }

    fn drained(&self) {
        let kept = core::mem::take(&mut self.told.lock().kept);
        drop(kept);
    }

    fn read_ended(&self, _: &Endpoint<Self>, cookie: u32, memory: TransferMemory, ok: bool) {
        let mut told = self.told.lock();
        let _ = told.reads.push((cookie, ok), GFP_ATOMIC);
        let _ = told.memory.push(memory, GFP_ATOMIC);
    }

    fn sq_space(&self, _: &Endpoint<Self>) {
        self.told.lock().space += 1;
    }

    fn sq_full(&self) {
        self.told.lock().sq_full += 1;
    }

    fn failed(&self, failure: WcError) {
        let faulting_xid = failure.faulting_xid();
        let _ = self.told.lock().failures.push(faulting_xid, GFP_ATOMIC);
    }
}

/// A responder over a device without hardware.
pub(super) struct Bench {
    pub(super) qp: Arc<Endpoint<Keeper>>,
    pub(super) pages: Pages,
    pub(super) balance: Balance,
    pub(super) device: Device,
}

pub(super) const PAGES: usize = 4;

impl Bench {
    pub(super) fn new() -> Result<Self> {
        Self::with(flow)
    }

    /// One that speaks the version that the first message says.
    pub(super) fn of_any_version() -> Result<Self> {
        Self::with(|| Flow::new(Credits::new(0, 8, false)?, Grant::new(8), Some(&NOTHING)))
    }

    fn with(flow: impl Fn() -> Result<Flow>) -> Result<Self> {
        let balance = Balance::begin();
        let device = Device::new()?;
        let told = Told {
            kept: KVec::new(),
            reads: KVec::new(),
            memory: KVec::new(),
            failures: KVec::new(),
            sq_full: 0,
            space: 0,
            broken: 0,
        };
        let id = device.id(Arc::new(Silent, GFP_KERNEL)?)?;
        let keeper = pin_init!(Keeper { told <- new_spinlock!(told, "rpcrdma_test_told") });
        Ok(Self {
            qp: bring_up::as_planned(id, PLAN, flow()?, keeper).map_err(|_| EINVAL)?,
            pages: Pages::new(PAGES)?,
            balance,
            device,
        })
    }

    /// A transfer of 100 bytes to or from each of `parts` segments.
    pub(super) fn transfer(
        &self,
        kind: TransferKind,
        parts: usize,
    ) -> Result<RwBuilder<'_, Keeper>> {
        let memory = self.pages.gather(PAGES * PAGE_SIZE)?;
        let mut transfer = self.qp.transfer(kind, memory, parts)?;
        for i in 0..parts {
            transfer.add(100 * i, 100, &segment(i as u32))?;
        }
        Ok(transfer)
    }

    /// Posts a Reply behind `writes` RDMA Writes.
    pub(super) fn reply(&self, writes: usize) -> Result {
        let transfer = match writes {
            0 => None,
            n => Some(self.transfer(TransferKind::Write, n)?),
        };
        let mut buffer = self.qp.send_buffer(Purpose::Message)?;
        buffer.set_xid(TAG);
        if let Some(transfer) = transfer {
            buffer.write(transfer);
        }
        send(buffer, 50)
    }

    pub(super) fn read(&self, parts: usize, cookie: u32) -> Result {
        self.transfer(TransferKind::Read, parts)?
            .read(Some(TAG + cookie), cookie)
    }

    /// Checks opcodes of what is posted, and that no more than the last is signaled.
    pub(super) fn expect_posted(&self, opcodes: &[u32]) -> Result {
        let mut found = KVec::new();
        for i in 0..self.device.sends() {
            let posted = self.device.send(i)?;
            let last = i + 1 == opcodes.len();
            same("signaled", posted.signaled, last)?;
            found.push(posted.opcode, GFP_KERNEL)?;
        }
        same("posted", &found[..], opcodes)
    }

    pub(super) fn told(&self, reads: &[(u32, bool)], failures: &[Option<u32>]) -> Result {
        let told = self.qp.handler().told.lock();
        same("reads", &told.reads[..], reads)?;
        same("failures", &told.failures[..], failures)
    }

    /// Lets go of the memory that came back.
    pub(super) fn forget_memory(&self) {
        let memory = core::mem::take(&mut self.qp.handler().told.lock().memory);
        drop(memory);
    }

    pub(super) fn end(self) -> Result {
        let Self {
            qp,
            pages,
            balance,
            device,
        } = self;
        drop(qp);
        same("references", pages.references(), 0)?;
        device.expect_nothing_left()?;
        drop(device);
        balance.end()
    }
}

pub(super) fn segment(handle: u32) -> Segment {
    Segment {
        handle,
        length: 100,
        offset: 0x1000,
    }
}
