// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The driver of the fake device: what ib_core calls.

#![expect(
    clippy::missing_safety_doc,
    reason = "ib_core alone calls these, with valid objects of a fake device"
)]

use crate::kapi::{
    bindings,
    ib::{
        dma_track,
        fake::books::{
            Books,
            Posted,
            Refusal,
            Request, //
        },
    },
};
use core::{
    ffi::c_void,
    mem::size_of, //
};
use kernel::{
    ffi::{
        c_int,
        c_uint, //
    },
    prelude::*, //
};

/// The device as it is allocated, with room for the driver.
#[repr(C)]
pub(super) struct Raw {
    device: bindings::ib_device,
    pub(super) books: *const Books,
}

/// A region as it is allocated, with what the driver knows of its pages.
#[repr(C)]
struct RawMr {
    core: bindings::ib_mr,
    room: u32,
    pages: u32,
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
    books.drain_receives();
}

unsafe extern "C" fn drain_sq(qp: *mut bindings::ib_qp) {
    let books = books!(qp);
    books.ask(Request::DrainSends);
    books.drain_sends();
}

unsafe extern "C" fn alloc_mr(
    pd: *mut bindings::ib_pd,
    _: bindings::ib_mr_type,
    pages: u32,
) -> *mut bindings::ib_mr {
    let books = books!(pd);
    let rc = books.ask(Request::AllocMr);
    if rc != 0 {
        return Error::from_errno(rc).to_ptr();
    }
    let flags = bindings::GFP_KERNEL | bindings::__GFP_ZERO;
    // SAFETY: Allocating has no requirement.
    let mr = unsafe { bindings::kmalloc(size_of::<RawMr>(), flags) }.cast::<RawMr>();
    if mr.is_null() {
        return ENOMEM.to_ptr();
    }
    let mut records = books.records.lock();
    records.last_key += 0x100;
    // SAFETY: Allocated above; all of its fields may be zero.
    unsafe {
        (*mr).core.rkey = records.last_key;
        (*mr).core.lkey = records.last_key;
        (*mr).room = pages;
    }
    mr.cast()
}

unsafe extern "C" fn dereg_mr(mr: *mut bindings::ib_mr, _: *mut bindings::ib_udata) -> c_int {
    let books = books!(mr);
    let rc = books.ask(Request::DeregMr);
    books.records.lock().mapped_at_dereg = dma_track::count();
    // Freed in any case: nobody would come back for it.
    // SAFETY: Allocated by `alloc_mr`, and not used after this call.
    unsafe { bindings::kfree(mr.cast::<c_void>()) };
    rc
}

unsafe extern "C" fn set_page(mr: *mut bindings::ib_mr, _: u64) -> c_int {
    // SAFETY: Allocated by `alloc_mr`, and used by one caller at a time.
    let mr = unsafe { &mut *mr.cast::<RawMr>() };
    if mr.pages == mr.room {
        return ENOMEM.to_errno();
    }
    mr.pages += 1;
    0
}

unsafe extern "C" fn map_mr_sg(
    mr: *mut bindings::ib_mr,
    sg: *mut bindings::scatterlist,
    elements: c_int,
    offset: *mut c_uint,
) -> c_int {
    // As those do that allocate memory for this.
    kernel::task::might_sleep();
    let books = books!(mr);
    let rc = books.ask(Request::MapMr);
    if rc != 0 {
        return rc;
    }
    let at_most = books.records.lock().place_at_most;
    if at_most == 0 {
        // As hns_roce does when it has no memory, before it looks at anything.
        return 0;
    }
    let elements = elements.min(at_most as c_int);
    // SAFETY: The region and the list are valid, and the list has as many elements.
    unsafe {
        if (*mr).type_ != bindings::ib_mr_type_IB_MR_TYPE_SG_GAPS {
            (*mr.cast::<RawMr>()).pages = 0;
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

/// What is to be known of a send request.
///
/// # Safety
///
/// It must be a valid one.
unsafe fn posted_send(qp: *mut bindings::ib_qp, wr: *const bindings::ib_send_wr) -> Posted {
    // SAFETY: The request is valid, as the caller promises.
    let (opcode, flags) = unsafe { ((*wr).opcode, (*wr).send_flags) };
    let (key, access) = match opcode {
        bindings::ib_wr_opcode_IB_WR_REG_MR => {
            let registration = wr.cast::<bindings::ib_reg_wr>();
            // SAFETY: One that registers memory is an `ib_reg_wr`, which begins with an
            // `ib_send_wr`.
            unsafe { ((*registration).key, (*registration).access) }
        }
        bindings::ib_wr_opcode_IB_WR_LOCAL_INV | bindings::ib_wr_opcode_IB_WR_SEND_WITH_INV => {
            // SAFETY: With these opcodes the member of the union is the key.
            (unsafe { (*wr).ex.invalidate_rkey }, 0)
        }
        _ => (0, 0),
    };
    // SAFETY: The request is valid, as the caller promises.
    let (elements, list) = unsafe { ((*wr).num_sge, (*wr).sg_list) };
    // SAFETY: The list has so many elements.
    let sge = (elements != 0).then(|| unsafe { &*list });
    let signaled = bindings::ib_send_flags_IB_SEND_SIGNALED as c_int;
    Posted {
        qp,
        // SAFETY: The request is valid, as the caller promises; ib_core's users name an entry or
        // none.
        entry: unsafe { (*wr).__bindgen_anon_1.wr_cqe },
        opcode,
        signaled: flags & signaled != 0,
        key,
        access,
        sge: sge.map_or((0, 0, 0), |sge| (sge.addr, sge.length, sge.lkey)),
    }
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
        if refusal == Some(Refusal::After(taken)) {
            // SAFETY: ib_core has room for the one that was not taken.
            unsafe { *bad = wr };
            return ENOMEM.to_errno();
        }
        // SAFETY: The chain is of valid requests.
        let posted = unsafe { posted_send(qp, wr) };
        if records.sends.push(posted, GFP_ATOMIC).is_err() {
            pr_err!("# the fake device has no memory\n");
        }
        taken += 1;
        // SAFETY: The chain is of valid requests, and this is one of them.
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
        if refusal == Some(Refusal::After(taken)) {
            // SAFETY: ib_core has room for the one that was not taken.
            unsafe { *bad = wr };
            return ENOMEM.to_errno();
        }
        // SAFETY: The chain is of valid requests, of one element each.
        let (entry, sge) = unsafe { ((*wr).__bindgen_anon_1.wr_cqe, &*(*wr).sg_list) };
        let posted = Posted {
            qp,
            entry,
            opcode: 0,
            signaled: true,
            key: 0,
            access: 0,
            sge: (sge.addr, sge.length, sge.lkey),
        };
        if records.receives.push(posted, GFP_ATOMIC).is_err() {
            pr_err!("# the fake device has no memory\n");
        }
        taken += 1;
        // SAFETY: The chain is of valid requests, and this is one of them.
        wr = unsafe { (*wr).next };
    }
    match refusal {
        Some(Refusal::Nameless) => EIO.to_errno(),
        _ => 0,
    }
}

/// What the driver does.
pub(super) fn operations() -> bindings::ib_device_ops {
    bindings::ib_device_ops {
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
    }
}
