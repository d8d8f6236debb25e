// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! A device without hardware, for the suites of this directory.
//!
//! ib_core and rdma_cm run over it as over any other: they allocate, count and track its objects,
//! and warn when one is left over. Only the driver is made up. It writes down what it is asked
//! for, refuses when a test wants it to, and completes what was posted when a test says so.

use super::super::{
    bindings,
    page::Pieces,
    sunrpc::Net, //
};
use super::{
    cm::{
        CmHandler,
        CmId, //
    },
    ledger,
};
use crate::kunit::{
    claim,
    same, //
};
use core::{
    ffi::c_void,
    mem::size_of,
    ptr::NonNull, //
};
use kernel::{
    error::from_err_ptr,
    ffi::{
        c_int,
        c_uint, //
    },
    new_spinlock,
    page::PAGE_SIZE,
    prelude::*,
    sync::{
        Arc,
        SpinLock, //
    },
};

/// The key by which the fake device lets its own memory be used.
pub(super) const LKEY: u32 = 0x1234;

/// What a driver is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Request {
    AllocPd,
    DeallocPd,
    CreateCq,
    DestroyCq,
    CreateQp,
    ModifyQp,
    DestroyQp,
    AllocMr,
    DeregMr,
    MapMr,
    DrainReceives,
    DrainSends,
}

/// How a post ends that the device does not take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Refusal {
    /// It takes so many requests and names the next.
    After(usize),
    /// It takes all of them, reports an error, and names none.
    Nameless,
}

/// A work request that was posted and is not completed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Posted {
    qp: *mut bindings::ib_qp,
    /// Its completion entry.
    pub(super) entry: *mut bindings::ib_cqe,
    pub(super) opcode: u32,
    pub(super) signaled: bool,
    /// The key that it registers or invalidates.
    pub(super) key: u32,
    pub(super) access: i32,
    pub(super) sge: (u64, u32, u32),
}

// SAFETY: The pointers are used while their queue pair lives, under the lock of the books or by
// the one test.
unsafe impl Send for Posted {}

struct Records {
    done: KVec<Request>,
    refuse: Option<(Request, u32)>,
    refuse_post: Option<Refusal>,
    sends: KVec<Posted>,
    receives: KVec<Posted>,
    posts: u32,
    place_at_most: u32,
    last_key: u32,
    mapped_at_dereg: usize,
    deliver_in_drain: u32,
}

/// What the driver knows.
#[pin_data]
struct Books {
    #[pin]
    records: SpinLock<Records>,
}

impl Books {
    /// Writes a request down. Zero, or an errno if a test wants it refused.
    fn ask(&self, request: Request) -> c_int {
        let mut records = self.records.lock();
        if let Some((refused, after)) = records.refuse {
            if refused == request {
                records.refuse = after.checked_sub(1).map(|after| (request, after));
                if records.refuse.is_none() {
                    return ENOMEM.to_errno();
                }
            }
        }
        match records.done.push(request, GFP_ATOMIC) {
            Ok(()) => 0,
            Err(_) => ENOMEM.to_errno(),
        }
    }

    /// Completes the oldest posted send request. False when there is none.
    fn complete_send(&self, status: u32) -> bool {
        let Ok(posted) = self.records.lock().sends.remove(0) else {
            return false;
        };
        if posted.signaled || status != bindings::ib_wc_status_IB_WC_SUCCESS {
            // SAFETY: The queue pair lives while something is posted to it.
            let cq = unsafe { (*posted.qp).send_cq };
            complete(cq, posted, status, 0, None);
        }
        true
    }

    /// Completes the oldest posted Receive. False when there is none.
    fn complete_receive(&self, status: u32, len: u32, key: Option<u32>) -> bool {
        let Ok(posted) = self.records.lock().receives.remove(0) else {
            return false;
        };
        // SAFETY: As in `complete_send`.
        let cq = unsafe { (*posted.qp).recv_cq };
        complete(cq, posted, status, len, key);
        true
    }
}

/// Does what a completion queue's worker does with one completion.
fn complete(cq: *mut bindings::ib_cq, posted: Posted, status: u32, len: u32, key: Option<u32>) {
    let mut wc = bindings::ib_wc {
        status,
        byte_len: len,
        qp: posted.qp,
        ..Default::default()
    };
    wc.__bindgen_anon_1.wr_cqe = posted.entry;
    if let Some(key) = key {
        wc.wc_flags = bindings::ib_wc_flags_IB_WC_WITH_INVALIDATE as c_int;
        wc.ex.invalidate_rkey = key;
    }
    // SAFETY: The entry was posted and not completed, so it is valid. It is called as ib_core
    // calls it: with its queue and a completion that is valid for the time of the call.
    unsafe {
        if let Some(done) = (*posted.entry).done {
            done(cq, &mut wc);
        }
    }
}

/// The device as it was allocated, with room for the driver.
#[repr(C)]
struct Raw {
    device: bindings::ib_device,
    books: *const Books,
}

/// What a driver is told of its objects; a macro, since their types have nothing in common.
macro_rules! books {
    ($object:expr) => {
        // SAFETY: ib_core calls the driver with valid objects of our device, which keeps the
        // books for as long as it lives.
        unsafe { &*(*(*$object).device.cast::<Raw>()).books }
    };
}

unsafe extern "C" fn alloc_pd(pd: *mut bindings::ib_pd, _: *mut bindings::ib_udata) -> c_int {
    books!(pd).ask(Request::AllocPd)
}

unsafe extern "C" fn dealloc_pd(pd: *mut bindings::ib_pd, _: *mut bindings::ib_udata) -> c_int {
    books!(pd).ask(Request::DeallocPd)
}

unsafe extern "C" fn create_cq(
    cq: *mut bindings::ib_cq,
    _: *const bindings::ib_cq_init_attr,
    _: *mut bindings::uverbs_attr_bundle,
) -> c_int {
    books!(cq).ask(Request::CreateCq)
}

unsafe extern "C" fn destroy_cq(cq: *mut bindings::ib_cq, _: *mut bindings::ib_udata) -> c_int {
    books!(cq).ask(Request::DestroyCq)
}

unsafe extern "C" fn req_notify_cq(
    _: *mut bindings::ib_cq,
    _: bindings::ib_cq_notify_flags,
) -> c_int {
    0
}

unsafe extern "C" fn create_qp(
    qp: *mut bindings::ib_qp,
    _: *mut bindings::ib_qp_init_attr,
    _: *mut bindings::ib_udata,
) -> c_int {
    books!(qp).ask(Request::CreateQp)
}

unsafe extern "C" fn modify_qp(
    qp: *mut bindings::ib_qp,
    _: *mut bindings::ib_qp_attr,
    _: c_int,
    _: *mut bindings::ib_udata,
) -> c_int {
    books!(qp).ask(Request::ModifyQp)
}

unsafe extern "C" fn destroy_qp(qp: *mut bindings::ib_qp, _: *mut bindings::ib_udata) -> c_int {
    books!(qp).ask(Request::DestroyQp)
}

unsafe extern "C" fn drain_rq(qp: *mut bindings::ib_qp) {
    let books = books!(qp);
    books.ask(Request::DrainReceives);
    // What came before the end is delivered still.
    let len = core::mem::take(&mut books.records.lock().deliver_in_drain);
    if len != 0 {
        books.complete_receive(bindings::ib_wc_status_IB_WC_SUCCESS, len, None);
    }
    while books.complete_receive(bindings::ib_wc_status_IB_WC_WR_FLUSH_ERR, 0, None) {}
}

unsafe extern "C" fn drain_sq(qp: *mut bindings::ib_qp) {
    let books = books!(qp);
    books.ask(Request::DrainSends);
    while books.complete_send(bindings::ib_wc_status_IB_WC_WR_FLUSH_ERR) {}
}

unsafe extern "C" fn alloc_mr(
    pd: *mut bindings::ib_pd,
    _: bindings::ib_mr_type,
    _: u32,
) -> *mut bindings::ib_mr {
    let books = books!(pd);
    let rc = books.ask(Request::AllocMr);
    if rc != 0 {
        return Error::from_errno(rc).to_ptr();
    }
    let flags = bindings::GFP_KERNEL | bindings::__GFP_ZERO;
    // SAFETY: Allocating has no requirement.
    let mr = unsafe { bindings::kmalloc(size_of::<bindings::ib_mr>(), flags) };
    let mr = mr.cast::<bindings::ib_mr>();
    if mr.is_null() {
        return ENOMEM.to_ptr();
    }
    let mut records = books.records.lock();
    records.last_key += 0x100;
    // SAFETY: Allocated above; all of its fields may be zero.
    unsafe {
        (*mr).rkey = records.last_key;
        (*mr).lkey = records.last_key;
    }
    mr
}

unsafe extern "C" fn dereg_mr(mr: *mut bindings::ib_mr, _: *mut bindings::ib_udata) -> c_int {
    let books = books!(mr);
    let rc = books.ask(Request::DeregMr);
    books.records.lock().mapped_at_dereg = ledger::count();
    // Freed in any case: nobody would come back for it.
    // SAFETY: Allocated by `alloc_mr`, and not used after this call.
    unsafe { bindings::kfree(mr.cast::<c_void>()) };
    rc
}

unsafe extern "C" fn set_page(_: *mut bindings::ib_mr, _: u64) -> c_int {
    0
}

unsafe extern "C" fn map_mr_sg(
    mr: *mut bindings::ib_mr,
    sg: *mut bindings::scatterlist,
    elements: c_int,
    offset: *mut c_uint,
) -> c_int {
    let books = books!(mr);
    let rc = books.ask(Request::MapMr);
    if rc != 0 {
        return rc;
    }
    let at_most = books.records.lock().place_at_most;
    let elements = elements.min(at_most as c_int);
    // SAFETY: The region and the list are valid, and the list has as many elements.
    unsafe {
        if (*mr).type_ != bindings::ib_mr_type_IB_MR_TYPE_SG_GAPS {
            // What drivers use: it places elements up to the first that does not join.
            return bindings::ib_sg_to_pages(mr, sg, elements, offset, Some(set_page));
        }
        (*mr).iova = (*sg).dma_address;
        (*mr).length = (0..elements as usize)
            .map(|i| u64::from((*sg.add(i)).length))
            .sum();
    }
    elements
}

unsafe extern "C" fn post_send(
    qp: *mut bindings::ib_qp,
    first: *const bindings::ib_send_wr,
    bad: *mut *const bindings::ib_send_wr,
) -> c_int {
    let mut records = books!(qp).records.lock();
    let refusal = records.refuse_post.take();
    records.posts += 1;
    let mut wr = first;
    let mut taken = 0;
    while !wr.is_null() {
        // SAFETY: The chain is of valid requests; one that registers memory is an `ib_reg_wr`,
        // which begins with an `ib_send_wr`. A union member is read as the opcode says.
        let posted = unsafe {
            if refusal == Some(Refusal::After(taken)) {
                *bad = wr;
                return ENOMEM.to_errno();
            }
            let (key, access) = match (*wr).opcode {
                bindings::ib_wr_opcode_IB_WR_REG_MR => {
                    let registration = wr.cast::<bindings::ib_reg_wr>();
                    ((*registration).key, (*registration).access)
                }
                bindings::ib_wr_opcode_IB_WR_LOCAL_INV => ((*wr).ex.invalidate_rkey, 0),
                _ => (0, 0),
            };
            let sge = match (*wr).num_sge {
                0 => (0, 0, 0),
                _ => {
                    let sge = &*(*wr).sg_list;
                    (sge.addr, sge.length, sge.lkey)
                }
            };
            let signaled = bindings::ib_send_flags_IB_SEND_SIGNALED as c_int;
            Posted {
                qp,
                entry: (*wr).__bindgen_anon_1.wr_cqe,
                opcode: (*wr).opcode,
                signaled: (*wr).send_flags & signaled != 0,
                key,
                access,
                sge,
            }
        };
        if records.sends.push(posted, GFP_ATOMIC).is_err() {
            pr_err!("# the fake device has no memory\n");
        }
        taken += 1;
        // SAFETY: As above.
        wr = unsafe { (*wr).next };
    }
    match refusal {
        Some(Refusal::Nameless) => EIO.to_errno(),
        _ => 0,
    }
}

unsafe extern "C" fn post_recv(
    qp: *mut bindings::ib_qp,
    first: *const bindings::ib_recv_wr,
    bad: *mut *const bindings::ib_recv_wr,
) -> c_int {
    let mut records = books!(qp).records.lock();
    let refusal = records.refuse_post.take();
    records.posts += 1;
    let mut wr = first;
    let mut taken = 0;
    while !wr.is_null() {
        // SAFETY: The chain is of valid requests.
        let posted = unsafe {
            if refusal == Some(Refusal::After(taken)) {
                *bad = wr;
                return ENOMEM.to_errno();
            }
            let sge = &*(*wr).sg_list;
            Posted {
                qp,
                entry: (*wr).__bindgen_anon_1.wr_cqe,
                opcode: 0,
                signaled: true,
                key: 0,
                access: 0,
                sge: (sge.addr, sge.length, sge.lkey),
            }
        };
        if records.receives.push(posted, GFP_ATOMIC).is_err() {
            pr_err!("# the fake device has no memory\n");
        }
        taken += 1;
        // SAFETY: As above.
        wr = unsafe { (*wr).next };
    }
    match refusal {
        Some(Refusal::Nameless) => EIO.to_errno(),
        _ => 0,
    }
}

/// A device without hardware.
pub(super) struct Device {
    raw: NonNull<bindings::ib_device>,
    ports: KVec<bindings::ib_port_data>,
    books: Arc<Books>,
}

impl Device {
    /// Makes a device. May sleep.
    pub(super) fn new() -> Result<Self> {
        let records = Records {
            done: KVec::with_capacity(64, GFP_KERNEL)?,
            refuse: None,
            refuse_post: None,
            sends: KVec::with_capacity(64, GFP_KERNEL)?,
            receives: KVec::with_capacity(64, GFP_KERNEL)?,
            posts: 0,
            place_at_most: i32::MAX as u32,
            last_key: 0x4200_0000,
            mapped_at_dereg: 0,
            deliver_in_drain: 0,
        };
        let books = Arc::pin_init(
            pin_init!(Books {
                records <- new_spinlock!(records, "rpcrdma_fake_device"),
            }),
            GFP_KERNEL,
        )?;
        // Ports count from 1.
        let mut ports = KVec::with_capacity(2, GFP_KERNEL)?;
        for _ in 0..2 {
            let mut port = bindings::ib_port_data::default();
            // An iWARP connection needs the least of a device.
            port.immutable.core_cap_flags =
                bindings::RDMA_CORE_CAP_IW_CM | bindings::RDMA_CORE_CAP_PROT_IWARP;
            ports.push(port, GFP_KERNEL)?;
        }
        let ops = bindings::ib_device_ops {
            post_send: Some(post_send),
            post_recv: Some(post_recv),
            drain_rq: Some(drain_rq),
            drain_sq: Some(drain_sq),
            req_notify_cq: Some(req_notify_cq),
            alloc_pd: Some(alloc_pd),
            dealloc_pd: Some(dealloc_pd),
            create_cq: Some(create_cq),
            destroy_cq: Some(destroy_cq),
            create_qp: Some(create_qp),
            modify_qp: Some(modify_qp),
            destroy_qp: Some(destroy_qp),
            alloc_mr: Some(alloc_mr),
            dereg_mr: Some(dereg_mr),
            map_mr_sg: Some(map_mr_sg),
            size_ib_pd: size_of::<bindings::ib_pd>(),
            size_ib_cq: size_of::<bindings::ib_cq>(),
            size_ib_qp: size_of::<bindings::ib_qp>(),
            ..Default::default()
        };
        // SAFETY: The initial network namespace always exists. The size is that of the struct
        // that begins with the device.
        let raw = unsafe { bindings::_ib_alloc_device(size_of::<Raw>(), &raw mut bindings::init_net) };
        let raw = NonNull::new(raw).ok_or(ENOMEM)?;
        // SAFETY: The device was allocated above and is known to nobody else. ib_core copies the
        // operations. The ports stay until `drop` takes them from the device. Without a device
        // for DMA, ib_core maps memory at its own address.
        unsafe {
            bindings::ib_set_device_ops(raw.as_ptr(), &ops);
            let device = &mut *raw.as_ptr();
            device.port_data = ports.as_mut_ptr();
            device.phys_port_cnt = 1;
            device.num_comp_vectors = 1;
            device.local_dma_lkey = LKEY;
            device.attrs.kernel_cap_flags =
                u64::from(bindings::ib_kernel_cap_flags_IBK_LOCAL_DMA_LKEY);
            (*raw.as_ptr().cast::<Raw>()).books = Arc::as_ptr(&books);
        }
        Ok(Self { raw, ports, books })
    }

    pub(super) fn as_ptr(&self) -> NonNull<bindings::ib_device> {
        self.raw
    }

    /// Refuses a request of this kind, after it granted `after` more of them.
    pub(super) fn refuse(&self, request: Request, after: u32) {
        self.books.records.lock().refuse = Some((request, after));
    }

    /// Refuses the next post.
    pub(super) fn refuse_post(&self, refusal: Refusal) {
        self.books.records.lock().refuse_post = Some(refusal);
    }

    /// Takes the next post, whatever was said.
    pub(super) fn refuse_post_no_more(&self) {
        self.books.records.lock().refuse_post = None;
    }

    /// Places no more elements of a list in a region than so many.
    pub(super) fn place_at_most(&self, elements: u32) {
        self.books.records.lock().place_at_most = elements;
    }

    /// How often a request of this kind was granted.
    pub(super) fn count(&self, request: Request) -> usize {
        let records = self.books.records.lock();
        records.done.iter().filter(|r| **r == request).count()
    }

    /// How many calls posted something, or tried to.
    pub(super) fn posts(&self) -> u32 {
        self.books.records.lock().posts
    }

    /// Checks all requests granted.
    pub(super) fn expect_all(&self, expected: &[Request]) -> Result {
        let records = self.books.records.lock();
        same("what the driver was asked for", &records.done[..], expected)
    }

    /// Checks the requests granted since the last one of `first`.
    pub(super) fn expect_since(&self, first: Request, expected: &[Request]) -> Result {
        let records = self.books.records.lock();
        let begin = records.done.iter().rposition(|r| *r == first);
        let found = records.done.get(begin.unwrap_or(0)..).unwrap_or(&[]);
        same("what the driver was asked for", found, expected)
    }

    /// The send request posted as the `i`th of those that are not completed.
    pub(super) fn send(&self, i: usize) -> Result<Posted> {
        self.books.records.lock().sends.get(i).copied().ok_or(ENOENT)
    }

    /// The Receive posted as the `i`th of those that are not completed.
    pub(super) fn receive(&self, i: usize) -> Result<Posted> {
        let records = self.books.records.lock();
        records.receives.get(i).copied().ok_or(ENOENT)
    }

    /// Takes the oldest posted Receive from the device, without completing it.
    pub(super) fn take_receive(&self) -> Result<Posted> {
        let mut records = self.books.records.lock();
        records.receives.remove(0).map_err(|_| ENOENT)
    }

    /// How many mappings there were when a region was last taken from the device.
    pub(super) fn mapped_at_dereg(&self) -> usize {
        self.books.records.lock().mapped_at_dereg
    }

    /// How many send requests are posted and not completed.
    pub(super) fn sends(&self) -> usize {
        self.books.records.lock().sends.len()
    }

    /// How many Receives are posted and not completed.
    pub(super) fn receives(&self) -> usize {
        self.books.records.lock().receives.len()
    }

    /// Lets the device forget what was posted.
    pub(super) fn forget(&self) {
        let mut records = self.books.records.lock();
        records.sends.clear();
        records.receives.clear();
    }

    /// Completes the oldest `n` posted send requests well.
    pub(super) fn complete_sends(&self, n: usize) -> Result {
        for _ in 0..n {
            let done = self.books.complete_send(bindings::ib_wc_status_IB_WC_SUCCESS);
            claim(done, "something is posted")?;
        }
        Ok(())
    }

    /// Ends the oldest posted send request with an error.
    pub(super) fn fail_send(&self, status: u32) -> Result {
        claim(self.books.complete_send(status), "something is posted")
    }

    /// Completes the oldest posted Receive with a message, and perhaps a key.
    pub(super) fn deliver(&self, message: &[u8], key: Option<u32>) -> Result {
        let (addr, room, _) = self.receive(0)?.sge;
        claim(message.len() <= room as usize, "the message fits")?;
        // SAFETY: Without a device for DMA the address is that of the memory, which is posted.
        unsafe {
            core::ptr::copy_nonoverlapping(message.as_ptr(), addr as *mut u8, message.len())
        };
        let status = bindings::ib_wc_status_IB_WC_SUCCESS;
        self.books.complete_receive(status, message.len() as u32, key);
        Ok(())
    }

    /// Completes the oldest posted Receive when the drain of the receive queue begins.
    pub(super) fn deliver_in_drain(&self, len: u32) {
        self.books.records.lock().deliver_in_drain = len;
    }

    /// Ends the oldest posted Receive with an error.
    pub(super) fn fail_receive(&self, status: u32) -> Result {
        // The length means nothing then.
        let done = self.books.complete_receive(status, u32::MAX, None);
        claim(done, "something is posted")
    }

    /// Checks that everything was given back to the driver, and that nothing is posted.
    pub(super) fn expect_nothing_left(&self) -> Result {
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
    pub(super) fn pd(&self) -> Result<Pd> {
        // SAFETY: The device is valid.
        let pd = from_err_ptr(unsafe { bindings::ib_alloc_pd(self.raw.as_ptr(), 0) })?;
        Ok(Pd(NonNull::new(pd).ok_or(ENOMEM)?))
    }

    /// Makes an id that is bound to the device, as if address and route were resolved.
    pub(super) fn id<E: CmHandler>(&self, handler: Arc<E>) -> Result<CmId<E>> {
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
pub(super) fn unbound_id<E: CmHandler>(handler: Arc<E>) -> Result<CmId<E>> {
    // SAFETY: The initial network namespace always exists; the type is transparent.
    let net = unsafe { &*(&raw const bindings::init_net).cast::<Net>() };
    CmId::new(net, handler)
}

/// A protection domain.
pub(super) struct Pd(NonNull<bindings::ib_pd>);

impl Pd {
    pub(super) fn as_ptr(&self) -> NonNull<bindings::ib_pd> {
        self.0
    }
}

impl Drop for Pd {
    fn drop(&mut self) {
        // SAFETY: Valid, and what was made in it is gone.
        unsafe { bindings::ib_dealloc_pd(self.0.as_ptr()) };
    }
}

/// A queue pair that one can post to, and no more.
pub(super) struct PlainQp(KBox<bindings::ib_qp>);

impl PlainQp {
    pub(super) fn new(device: &Device) -> Result<Self> {
        let mut qp = KBox::init(pin_init::init_zeroed::<bindings::ib_qp>(), GFP_KERNEL)?;
        qp.device = device.as_ptr().as_ptr();
        Ok(Self(qp))
    }

    pub(super) fn as_raw(&self) -> *mut bindings::ib_qp {
        (&raw const *self.0).cast_mut()
    }
}

/// A completion handler for entries whose completion no test lets happen.
///
/// # Safety
///
/// None.
pub(super) unsafe extern "C" fn ignore(_: *mut bindings::ib_cq, _: *mut bindings::ib_wc) {}

/// Memory such as the RPC layer's.
pub(super) struct Memory {
    data: NonNull<u8>,
    len: usize,
    pages: KVec<*mut bindings::page>,
}

impl Memory {
    /// `pages` pages, one behind the other; a power of two.
    pub(super) fn new(pages: usize) -> Result<Self> {
        let len = pages.next_power_of_two() * PAGE_SIZE;
        // SAFETY: Allocating has no requirement.
        let data = unsafe { bindings::kmalloc(len, bindings::GFP_KERNEL) };
        let data = NonNull::new(data.cast::<u8>()).ok_or(ENOMEM)?;
        let mut memory = Self {
            data,
            len,
            pages: KVec::new(),
        };
        // Memory of a power of two is aligned to its size.
        same("alignment", data.as_ptr() as usize % PAGE_SIZE, 0)?;
        for i in 0..len / PAGE_SIZE {
            // SAFETY: The address is of the allocation above.
            let page = unsafe { bindings::virt_to_page(data.as_ptr().add(i * PAGE_SIZE).cast()) };
            memory.pages.push(page, GFP_KERNEL)?;
        }
        Ok(memory)
    }

    /// The address of the first byte.
    pub(super) fn addr(&self) -> u64 {
        self.data.as_ptr() as u64
    }

    /// A head, pages and a tail, each at (offset, length) of this memory.
    pub(super) fn pieces(
        &self,
        head: (usize, usize),
        paged: (usize, usize),
        tail: (usize, usize),
    ) -> Result<Pieces<'_>> {
        for (offset, len) in [head, paged, tail] {
            claim(offset + len <= self.len, "the piece is of this memory")?;
        }
        let at = |(offset, len): (usize, usize)| {
            let addr = self.data.as_ptr().wrapping_add(offset).cast_const();
            (addr, len)
        };
        // SAFETY: All is of this memory, checked above, which the result borrows.
        Ok(unsafe { Pieces::new(at(head), self.pages.as_ptr(), paged.0, paged.1, at(tail)) })
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: Allocated in `new`; nothing borrows it any more.
        unsafe { bindings::kfree(self.data.as_ptr().cast::<c_void>()) };
    }
}

/// How many mappings are not undone; 0 where no ledger is kept.
pub(super) fn mappings() -> usize {
    ledger::count()
}

/// Checks at the end of a test that the ledger of mappings is as it was at the start.
pub(super) struct Balance(usize);

impl Balance {
    pub(super) fn begin() -> Self {
        Self(ledger::count())
    }

    pub(super) fn end(self) -> Result {
        same("DMA mappings", ledger::count(), self.0)
    }

    /// Checks that there are `n` mappings more than at the start.
    pub(super) fn more(&self, n: usize) -> Result {
        if cfg!(CONFIG_RPCRDMA_DEBUG) {
            return same("DMA mappings", ledger::count(), self.0 + n);
        }
        Ok(())
    }
}
