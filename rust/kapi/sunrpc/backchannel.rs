// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Reverse-direction Calls (RFC 8167): requests that carry a Call of the server to the callback
//! service, and its Reply back.
//!
//! C header: [`include/linux/sunrpc/bc_xprt.h`](srctree/include/linux/sunrpc/bc_xprt.h)

use crate::kapi::{
    bindings,
    sunrpc::xprt::Xprt,
    sys::bit::test_bit, //
};
use core::{
    mem::offset_of,
    ptr::NonNull, //
};
use kernel::{
    container_of,
    new_spinlock,
    page::PAGE_SIZE,
    prelude::*,
    sync::SpinLock, //
};

/// Bytes of the longest Call or Reply in the reverse direction that has memory here: no chunks
/// carry one (RFC 8167, section 5.3).
pub(crate) const MAX_REVERSE: usize = PAGE_SIZE;

/// A reverse request with its memory.
#[repr(C)]
struct Slot {
    rqst: bindings::rpc_rqst,
    /// The Call as received.
    call: KVVec<u8>,
    /// Room for the Reply.
    reply: KVVec<u8>,
    /// The connection that the Call came by, as the transport counts them.
    connection: u64,
    /// Its Reply was sent.
    answered: bool,
}

/// Owns a slot.
struct OwnedSlot(NonNull<Slot>);

// SAFETY: A slot that is owned is used by nobody else.
unsafe impl Send for OwnedSlot {}

impl OwnedSlot {
    fn new() -> Result<Self> {
        let slot = KBox::new(
            Slot {
                // SAFETY: All zeroes is what the RPC layer makes of a fresh request.
                rqst: unsafe { core::mem::zeroed() },
                call: KVVec::zeroed(MAX_REVERSE, GFP_KERNEL)?,
                reply: KVVec::zeroed(MAX_REVERSE, GFP_KERNEL)?,
                connection: 0,
                answered: false,
            },
            GFP_KERNEL,
        )?;
        Ok(Self(NonNull::from(KBox::leak(slot))))
    }

    /// Makes the request one of that transport, with a Call of at most
    /// [`MAX_REVERSE`] bytes, as received.
    fn fill(
        &mut self,
        xprt: &Xprt,
        xid: u32,
        call: &[u8],
        connection: u64,
    ) -> *mut bindings::rpc_rqst {
        // SAFETY: The slot is owned, and borrowed exclusively.
        let slot = unsafe { self.0.as_mut() };
        if let Some(to) = slot.call.get_mut(..call.len()) {
            to.copy_from_slice(call);
        }
        slot.connection = connection;
        slot.answered = false;
        let (head, room) = (slot.call.as_mut_ptr(), slot.reply.as_mut_ptr());
        let rqst = &mut slot.rqst;
        // SAFETY: All zeroes is what the RPC layer makes of a fresh request.
        *rqst = unsafe { core::mem::zeroed() };
        rqst.rq_xprt = xprt.as_raw();
        rqst.rq_xid = xid.to_be();
        rqst.rq_bc_pa_state = 1 << bindings::RPC_BC_PA_IN_USE;
        // The credits of the two directions are apart (RFC 8167, section 4.1). With a unit of the
        // congestion window, which it has not taken, its Reply does not wait where the window is
        // full.
        rqst.rq_cong = 1;
        rqst.rq_rcv_buf.head[0].iov_base = head.cast();
        rqst.rq_rcv_buf.head[0].iov_len = call.len();
        rqst.rq_rcv_buf.len = call.len() as u32;
        rqst.rq_rcv_buf.buflen = call.len() as u32;
        rqst.rq_private_buf.len = call.len() as u32;
        rqst.rq_snd_buf.head[0].iov_base = room.cast();
        rqst.rq_snd_buf.head[0].iov_len = MAX_REVERSE;
        rqst.rq_snd_buf.buflen = MAX_REVERSE as u32;
        self.0.as_ptr().cast()
    }
}

impl Drop for OwnedSlot {
    fn drop(&mut self) {
        // SAFETY: Leaked by `new`, and owned.
        drop(unsafe { KBox::from_raw(self.0.as_ptr()) });
    }
}

/// The requests that are not in use.
struct Slots {
    /// Between setup and destruction. The callback service need not be there otherwise.
    open: bool,
    free: KVec<OwnedSlot>,
}

/// The reverse requests of one transport.
#[pin_data]
pub(super) struct Backchannel {
    #[pin]
    slots: SpinLock<Slots>,
}

impl Backchannel {
    pub(super) fn new() -> impl PinInit<Self> {
        let slots = Slots {
            open: false,
            free: KVec::new(),
        };
        pin_init!(Self { slots <- new_spinlock!(slots, "rpcrdma_backchannel") })
    }

    /// Whether a request is of the backchannel: those have the mark.
    ///
    /// # Safety
    ///
    /// It must be valid.
    pub(super) unsafe fn is_reverse(rqst: *const bindings::rpc_rqst) -> bool {
        // SAFETY: The caller's request is valid.
        let state = unsafe { &raw const (*rqst).rq_bc_pa_state };
        // SAFETY: The word is part of that request.
        unsafe { test_bit(bindings::RPC_BC_PA_IN_USE, state) }
    }

    /// Makes requests until `n` are there that are not in use. May sleep.
    pub(super) fn setup(&self, n: usize) -> Result {
        while self.slots.lock().free.len() < n {
            let slot = OwnedSlot::new()?;
            self.slots.lock().free.push(slot, GFP_ATOMIC)?;
        }
        self.slots.lock().open = true;
        Ok(())
    }

    /// Frees the requests that are not in use. No more are handed to the callback service when this
    /// returns, and those that come back are freed.
    pub(super) fn destroy(&self) {
        let mut slots = self.slots.lock();
        slots.open = false;
        let free = core::mem::take(&mut slots.free);
        drop(slots);
        drop(free);
    }

    /// Hands a Call to the callback service; false if there is none. Does not sleep.
    ///
    /// `ENOBUFS` when all requests are in use, `EMSGSIZE` when the Call is longer than
    /// [`MAX_REVERSE`].
    pub(super) fn receive(
        &self,
        xprt: &Xprt,
        xid: u32,
        call: &[u8],
        connection: u64,
    ) -> Result<bool> {
        if call.len() > MAX_REVERSE {
            return Err(EMSGSIZE);
        }
        // Held until the service has it, so that none is handed over after `destroy`.
        let mut slots = self.slots.lock();
        if !slots.open {
            return Ok(false);
        }
        let mut slot = slots.free.pop().ok_or(ENOBUFS)?;
        let rqst = slot.fill(xprt, xid, call, connection);
        // SAFETY: The request is one of this transport, and is the service's alone if it takes it:
        // the slot is forgotten then. A service that is set is there: whoever ends it has the
        // backchannel destroyed before, which waits for the lock, and nothing is handed over then,
        // whether the service is still set or not.
        let taken = unsafe { xprt.enqueue_reverse_request(rqst) };
        if taken {
            core::mem::forget(slot);
        } else {
            // It was there before.
            let _ = slots.free.push_within_capacity(slot);
        }
        Ok(taken)
    }

    /// The Reply of a request is about to be sent.
    ///
    /// # Safety
    ///
    /// As for [`Self::connection_of`], and only by its sender.
    pub(super) unsafe fn note_answered(rqst: *mut bindings::rpc_rqst) {
        // SAFETY: What `receive` handed out is in a slot, and only who sends its Reply uses this.
        unsafe { (*container_of!(rqst, Slot, rqst)).answered = true };
    }

    /// The connection that the Call of a request came by.
    ///
    /// # Safety
    ///
    /// `rqst` must be one that [`Self::receive`] handed out, and not given back yet.
    pub(super) unsafe fn connection_of(rqst: *mut bindings::rpc_rqst) -> u64 {
        // SAFETY: What `receive` handed out is in a slot; this does not change until it is given
        // back.
        unsafe { (*container_of!(rqst, Slot, rqst)).connection }
    }

    /// The RPC layer is done with a request. Returns its connection, and whether its Reply was
    /// sent.
    ///
    /// # Safety
    ///
    /// `rqst` must be one that [`Self::receive`] handed out, and not be used afterwards.
    pub(super) unsafe fn put(&self, rqst: *mut bindings::rpc_rqst) -> (u64, bool) {
        // SAFETY: What `receive` handed out is in a slot, which is ours again, since the RPC layer
        // is done with it.
        let (slot, end) = unsafe {
            let slot = container_of!(rqst, Slot, rqst);
            let end = ((*slot).connection, (*slot).answered);
            (OwnedSlot(NonNull::new_unchecked(slot)), end)
        };
        let mut slots = self.slots.lock();
        if slots.open {
            // Without memory to keep it, it is freed: there will be one fewer.
            let _ = slots.free.push(slot, GFP_ATOMIC);
        }
        end
    }
}

impl Xprt {
    /// Puts a reverse Reply that is to be sent in front of all else. False where there is none, or
    /// it is there.
    ///
    /// The RPC layer puts it behind requests that have a unit of the congestion window, as those
    /// have that were sent on an earlier connection.
    pub(crate) fn put_reverse_first(&self) -> bool {
        self.with_queue_lock(|xprt| {
            // SAFETY: The transport is valid while it is borrowed.
            let queue = unsafe { &raw mut (*xprt).xmit_queue };
            // SAFETY: The lock that protects the queue is held, here and below.
            let first = unsafe { (*queue).next };
            let mut next = first;
            while next != queue {
                // SAFETY: What is in the queue is part of a request, and valid while it is there.
                let is_reverse = unsafe {
                    Backchannel::is_reverse(container_of!(next, bindings::rpc_rqst, rq_xmit))
                };
                if is_reverse {
                    // SAFETY: It is in the queue, where it may be anywhere.
                    unsafe { bindings::list_move(next, queue) };
                    return next != first;
                }
                // SAFETY: As a part of the queue it has a successor.
                next = unsafe { (*next).next };
            }
            false
        })
    }
}

const _: () = assert!(offset_of!(Slot, rqst) == 0);

#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
mod tests;
