// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! A device without hardware, for the suites of this directory.
//!
//! ib_core and rdma_cm run over it as over any other: they allocate, count and track its objects,
//! and warn when one is left over. Only the driver is made up. It writes down what it is asked
//! for, refuses when a test wants it to, and completes what was posted when a test says so.

mod books;
mod driver;
mod memory;

pub(crate) use self::{
    books::{
        Posted,
        Refusal,
        Request, //
    },
    memory::{
        mappings,
        Balance,
        Memory,
        Pages,
        Payload, //
    },
};

use self::{
    books::Books,
    driver::Raw, //
};
use crate::{
    kapi::{
        bindings,
        ib::{
            cm::{
                CmHandler,
                CmId, //
            },
            gate::{
                Gate,
                Objects,
                Poster,
                Target, //
            },
        },
        sys::net::Net, //
    },
    kunit::{
        claim,
        same, //
    },
};
use core::{
    mem::size_of,
    ptr::NonNull, //
};
use kernel::{
    error::from_err_ptr,
    prelude::*,
    sync::Arc, //
};

/// What requests are, and how they end, as the verbs number it.
pub(crate) mod numbers {
    use crate::kapi::bindings;

    pub(crate) const REG: u32 = bindings::ib_wr_opcode_IB_WR_REG_MR;
    pub(crate) const SEND: u32 = bindings::ib_wr_opcode_IB_WR_SEND;
    pub(crate) const SEND_WITH_INV: u32 = bindings::ib_wr_opcode_IB_WR_SEND_WITH_INV;
    pub(crate) const INV: u32 = bindings::ib_wr_opcode_IB_WR_LOCAL_INV;
    pub(crate) const WRITE: u32 = bindings::ib_wr_opcode_IB_WR_RDMA_WRITE;
    pub(crate) const READ: u32 = bindings::ib_wr_opcode_IB_WR_RDMA_READ_WITH_INV;
    pub(crate) const FLUSHED: u32 = bindings::ib_wc_status_IB_WC_WR_FLUSH_ERR;
    pub(crate) const RETRY_EXCEEDED: u32 = bindings::ib_wc_status_IB_WC_RETRY_EXC_ERR;
    pub(crate) const RNR_RETRY_EXCEEDED: u32 = bindings::ib_wc_status_IB_WC_RNR_RETRY_EXC_ERR;
    pub(crate) const REMOTE_ACCESS: u32 = bindings::ib_wc_status_IB_WC_REM_ACCESS_ERR;
}

/// The key by which the fake device lets its own memory be used.
pub(crate) const LKEY: u32 = 0x1234;

/// A device without hardware.
pub(crate) struct Device {
    raw: NonNull<bindings::ib_device>,
    ports: KVec<bindings::ib_port_data>,
    books: Arc<Books>,
}

impl Device {
    /// Makes a device. May sleep.
    pub(crate) fn new() -> Result<Self> {
        let books = Books::new()?;
        // Ports count from 1.
        let mut ports = KVec::with_capacity(2, GFP_KERNEL)?;
        for _ in 0..2 {
            let mut port = bindings::ib_port_data::default();
            // An iWARP connection needs the least of a device.
            port.immutable.core_cap_flags =
                bindings::RDMA_CORE_CAP_IW_CM | bindings::RDMA_CORE_CAP_PROT_IWARP;
            ports.push(port, GFP_KERNEL)?;
        }
        let ops = driver::operations();
        // SAFETY: The initial network namespace always exists. The size is that of the struct
        // that begins with the device.
        let raw =
            unsafe { bindings::_ib_alloc_device(size_of::<Raw>(), &raw mut bindings::init_net) };
        let raw = NonNull::new(raw).ok_or(ENOMEM)?;
        // SAFETY: The device was allocated above. ib_core copies the operations.
        unsafe { bindings::ib_set_device_ops(raw.as_ptr(), &ops) };
        // SAFETY: The device was allocated above, with room for the driver, and is known to nobody
        // else.
        unsafe { (*raw.as_ptr().cast::<Raw>()).books = Arc::as_ptr(&books) };
        // SAFETY: The device was allocated above, and is known to nobody else.
        let device = unsafe { &mut *raw.as_ptr() };
        // They stay until `drop` takes them from the device. Without a device for DMA, ib_core maps
        // memory at its own address.
        device.port_data = ports.as_mut_ptr();
        device.phys_port_cnt = 1;
        device.num_comp_vectors = 1;
        device.local_dma_lkey = LKEY;
        device.attrs.max_sge_rd = 4;
        device.attrs.max_fast_reg_page_list_len = 8;
        device.attrs.kernel_cap_flags = u64::from(bindings::ib_kernel_cap_flags_IBK_LOCAL_DMA_LKEY);
        Ok(Self { raw, ports, books })
    }

    /// Makes one that looks at the keys which a peer invalidates. May sleep.
    pub(crate) fn roce() -> Result<Self> {
        let mut device = Self::new()?;
        for port in device.ports.iter_mut() {
            // Connections are made as before.
            port.immutable.core_cap_flags =
                bindings::RDMA_CORE_CAP_IW_CM | bindings::RDMA_CORE_CAP_PROT_ROCE;
        }
        let extensions = bindings::ib_device_cap_flags_IB_DEVICE_MEM_MGT_EXTENSIONS as u64;
        // SAFETY: The device is valid, and nobody else knows it.
        unsafe { (*device.raw.as_ptr()).attrs.device_cap_flags = extensions };
        Ok(device)
    }

    pub(crate) fn as_ptr(&self) -> NonNull<bindings::ib_device> {
        self.raw
    }

    /// Refuses a request of this kind, after it granted `after` more of them.
    pub(crate) fn refuse(&self, request: Request, after: u32) {
        self.books.records.lock().refuse = Some((request, after));
    }

    /// Refuses the next post.
    pub(crate) fn refuse_post(&self, refusal: Refusal) {
        self.books.records.lock().refuse_post = Some(refusal);
    }

    /// Takes the next post, whatever was said.
    pub(crate) fn refuse_post_no_more(&self) {
        self.books.records.lock().refuse_post = None;
    }

    /// Places no more elements of a list in a region than so many; with none does nothing at all,
    /// and with more than there can be takes the list for a bad one.
    pub(crate) fn place_at_most(&self, elements: u32) {
        self.books.records.lock().place_at_most = elements;
    }

    /// How often a request of this kind was granted.
    pub(crate) fn count(&self, request: Request) -> usize {
        let records = self.books.records.lock();
        records.done.iter().filter(|r| **r == request).count()
    }

    /// How many calls posted something, or tried to.
    pub(crate) fn posts(&self) -> u32 {
        self.books.records.lock().posts
    }

    /// Checks all requests granted.
    pub(crate) fn expect_all(&self, expected: &[Request]) -> Result {
        let records = self.books.records.lock();
        same("what the driver was asked for", &records.done[..], expected)
    }

    /// Checks the requests granted since the last one of `first`.
    pub(crate) fn expect_since(&self, first: Request, expected: &[Request]) -> Result {
        let records = self.books.records.lock();
        let begin = records.done.iter().rposition(|r| *r == first);
        let found = records.done.get(begin.unwrap_or(0)..).unwrap_or(&[]);
        same("what the driver was asked for", found, expected)
    }

    /// The send request posted as the `i`th of those that are not completed.
    pub(crate) fn send(&self, i: usize) -> Result<Posted> {
        self.books
            .records
            .lock()
            .sends
            .get(i)
            .copied()
            .ok_or(ENOENT)
    }

    /// The Receive posted as the `i`th of those that are not completed.
    pub(crate) fn receive(&self, i: usize) -> Result<Posted> {
        let records = self.books.records.lock();
        records.receives.get(i).copied().ok_or(ENOENT)
    }

    /// Takes the oldest posted send request from the device, to be completed later.
    pub(crate) fn take_send(&self) -> Result<Posted> {
        let mut records = self.books.records.lock();
        records.sends.remove(0).map_err(|_| ENOENT)
    }

    /// Completes a request that was taken, well.
    pub(crate) fn complete(&self, posted: Posted) {
        self.books.complete_taken(posted);
    }

    /// Takes the oldest posted Receive from the device, without completing it.
    pub(crate) fn take_receive(&self) -> Result<Posted> {
        let mut records = self.books.records.lock();
        records.receives.remove(0).map_err(|_| ENOENT)
    }

    /// How many mappings there were when a region was last taken from the device.
    pub(crate) fn mapped_at_dereg(&self) -> usize {
        self.books.records.lock().mapped_at_dereg
    }

    /// How many send requests are posted and not completed.
    pub(crate) fn sends(&self) -> usize {
        self.books.records.lock().sends.len()
    }

    /// How many Receives are posted and not completed.
    pub(crate) fn receives(&self) -> usize {
        self.books.records.lock().receives.len()
    }

    /// Lets the device forget what was posted.
    pub(crate) fn forget(&self) {
        let mut records = self.books.records.lock();
        records.sends.clear();
        records.receives.clear();
    }

    /// Completes the oldest `n` posted send requests well.
    pub(crate) fn complete_sends(&self, n: usize) -> Result {
        for _ in 0..n {
            let done = self
                .books
                .complete_send(bindings::ib_wc_status_IB_WC_SUCCESS);
            claim(done, "something is posted")?;
        }
        Ok(())
    }

    /// Ends the oldest posted send request with an error.
    pub(crate) fn fail_send(&self, status: u32) -> Result {
        claim(self.books.complete_send(status), "something is posted")
    }

    /// Completes the oldest posted Receive with a message, and perhaps a key.
    pub(crate) fn deliver(&self, message: &[u8], key: Option<u32>) -> Result {
        let (addr, room, _) = self.receive(0)?.sge;
        claim(message.len() <= room as usize, "the message fits")?;
        // SAFETY: Without a device for DMA the address is that of the memory, which is posted.
        unsafe { core::ptr::copy_nonoverlapping(message.as_ptr(), addr as *mut u8, message.len()) };
        let status = bindings::ib_wc_status_IB_WC_SUCCESS;
        self.books
            .complete_receive(status, message.len() as u32, key);
        Ok(())
    }

    /// Lets the device complete nothing when its queues are drained.
    pub(crate) fn do_not_drain(&self) {
        self.books.records.lock().drains = false;
    }

    /// Completes the oldest posted Receive when the drain of the receive queue begins.
    pub(crate) fn deliver_in_drain(&self, len: u32) {
        self.books.records.lock().deliver_in_drain = len;
    }

    /// Ends the oldest posted Receive with an error.
    pub(crate) fn fail_receive(&self, status: u32) -> Result {
        // The length means nothing then.
        let done = self.books.complete_receive(status, u32::MAX, None);
        claim(done, "something is posted")
    }

    /// Checks that everything was given back to the driver, and that nothing is posted.
    pub(crate) fn expect_nothing_left(&self) -> Result {
        for (made, unmade) in [
            (Request::AllocPd, Request::DeallocPd),
            (Request::CreateCq, Request::DestroyCq),
            (Request::CreateQp, Request::DestroyQp),
            (Request::AllocMr, Request::DeregMr),
        ] {
            if self.count(made) != self.count(unmade) {
                pr_err!("# {made:?} and {unmade:?} do not balance\n");
                return Err(EINVAL);
            }
        }
        same("posted sends", self.sends(), 0)?;
        same("posted receives", self.receives(), 0)
    }

    /// Makes a protection domain.
    pub(crate) fn pd(&self) -> Result<Pd> {
        // SAFETY: The device is valid.
        let pd = from_err_ptr(unsafe { bindings::ib_alloc_pd(self.raw.as_ptr(), 0) })?;
        Ok(Pd(NonNull::new(pd).ok_or(ENOMEM)?))
    }

    /// Makes an id that is bound to the device, as if address and route were resolved.
    pub(crate) fn id<E: CmHandler>(&self, handler: Arc<E>) -> Result<CmId<E>> {
        let id = unbound_id(handler)?;
        // SAFETY: The id is valid and known to nobody else.
        unsafe {
            (*id.as_raw()).device = self.raw.as_ptr();
            (*id.as_raw()).port_num = 1;
        }
        Ok(id)
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        // SAFETY: Nothing of the device is in use any more, as ib_core checks. The ports are not
        // of the kind that it would free.
        unsafe {
            (*self.raw.as_ptr()).port_data = core::ptr::null_mut();
            bindings::ib_dealloc_device(self.raw.as_ptr());
        }
        self.ports.clear();
    }
}

/// Makes an id that is not bound to a device.
pub(crate) fn unbound_id<E: CmHandler>(handler: Arc<E>) -> Result<CmId<E>> {
    // SAFETY: The initial network namespace always exists; the type is transparent.
    let net = unsafe { &*(&raw const bindings::init_net).cast::<Net>() };
    CmId::new(net, handler)
}

/// A protection domain.
pub(crate) struct Pd(NonNull<bindings::ib_pd>);

impl Pd {
    pub(crate) fn as_ptr(&self) -> NonNull<bindings::ib_pd> {
        self.0
    }
}

impl Drop for Pd {
    fn drop(&mut self) {
        // SAFETY: Valid, and what was made in it is gone.
        unsafe { bindings::ib_dealloc_pd(self.0.as_ptr()) };
    }
}

/// What posters enter, over objects of a fake device.
pub(crate) struct Domain {
    gate: Pin<KBox<Gate>>,
    qp: PlainQp,
    // It goes last.
    pd: Pd,
}

impl Domain {
    pub(crate) fn new(device: &Device) -> Result<Self> {
        let (qp, pd) = (PlainQp::new(device)?, device.pd()?);
        let gate = KBox::pin_init(Gate::new(Gate::next_number()), GFP_KERNEL)?;
        let objects = Objects {
            target: Target {
                qp: qp.as_raw(),
                port: 1,
            },
            pd: pd.as_ptr(),
            device: device.as_ptr(),
            id: None,
        };
        // SAFETY: The gate waits for its users before the objects go, and tests keep the device
        // longer.
        unsafe { gate.open(objects) };
        Ok(Self { gate, qp, pd })
    }

    pub(crate) fn enter(&self) -> Result<Poster<'_>> {
        self.gate.enter()
    }

    /// Its number.
    pub(crate) fn number(&self) -> u64 {
        self.gate.number()
    }

    /// Its queue pair.
    pub(crate) fn qp(&self) -> *mut bindings::ib_qp {
        self.qp.as_raw()
    }

    /// Its protection domain, and the device.
    pub(crate) fn objects(
        &self,
        device: &Device,
    ) -> (NonNull<bindings::ib_pd>, NonNull<bindings::ib_device>) {
        (self.pd.as_ptr(), device.as_ptr())
    }
}

/// A queue pair that one can post to, and no more.
pub(crate) struct PlainQp(KBox<bindings::ib_qp>);

impl PlainQp {
    pub(crate) fn new(device: &Device) -> Result<Self> {
        let mut qp = KBox::init(pin_init::init_zeroed::<bindings::ib_qp>(), GFP_KERNEL)?;
        qp.device = device.as_ptr().as_ptr();
        Ok(Self(qp))
    }

    pub(crate) fn as_raw(&self) -> *mut bindings::ib_qp {
        (&raw const *self.0).cast_mut()
    }
}

/// A completion handler for entries whose completion no test lets happen.
///
/// # Safety
///
/// None.
pub(crate) unsafe extern "C" fn ignore(_: *mut bindings::ib_cq, _: *mut bindings::ib_wc) {}
