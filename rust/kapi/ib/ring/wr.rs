// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! A work request of a chain.

use crate::kapi::{
    bindings,
    ib::region::{
        Mapped,
        Region, //
    },
};

/// Room for a work request, and for what it sends. The request comes first, so that a pointer to
/// one is a pointer to the other.
#[repr(C)]
#[derive(Default)]
pub(super) struct WorkRequest {
    /// The longest of them; the others are the first member alone.
    registration: bindings::ib_reg_wr,
    element: bindings::ib_sge,
}

/// The completion entry of a request, and the request behind it.
pub(super) type Links = (*mut bindings::ib_cqe, *mut bindings::ib_send_wr);

impl WorkRequest {
    /// Becomes another request, not signaled.
    fn set(&mut self, (cqe, next): Links, opcode: u32) -> &mut bindings::ib_send_wr {
        let wr = &mut self.registration.wr;
        wr.next = next;
        wr.send_flags = 0;
        wr.__bindgen_anon_1.wr_cqe = cqe;
        wr.opcode = opcode;
        wr.sg_list = core::ptr::null_mut();
        wr.num_sge = 0;
        wr
    }

    /// Becomes the registration of a region.
    pub(super) fn reg_mr(&mut self, links: Links, region: &Region<Mapped>) {
        self.registration = region.registration();
        self.set(links, bindings::ib_wr_opcode_IB_WR_REG_MR);
    }

    /// Becomes a local invalidation.
    pub(super) fn local_inv(&mut self, links: Links, rkey: u32) {
        let wr = self.set(links, bindings::ib_wr_opcode_IB_WR_LOCAL_INV);
        wr.ex.invalidate_rkey = rkey;
    }

    /// Becomes a Send of `element`. `invalidate` is a key of the peer's.
    pub(super) fn send(
        &mut self,
        links: Links,
        element: bindings::ib_sge,
        invalidate: Option<u32>,
    ) {
        self.element = element;
        let element = &raw mut self.element;
        let wr = self.set(links, bindings::ib_wr_opcode_IB_WR_SEND);
        wr.sg_list = element;
        wr.num_sge = 1;
        if let Some(rkey) = invalidate {
            wr.opcode = bindings::ib_wr_opcode_IB_WR_SEND_WITH_INV;
            wr.ex.invalidate_rkey = rkey;
        }
    }

    /// Becomes the last of its chain, in front of `next`, with these flags.
    pub(super) fn end(&mut self, next: *mut bindings::ib_send_wr, flags: i32) {
        let wr = &mut self.registration.wr;
        wr.next = next;
        wr.send_flags = flags;
    }
}
