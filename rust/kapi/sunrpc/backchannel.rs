// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Reverse-direction Calls (RFC 8167): requests that carry a Call of the server to the callback
//! service, and its Reply back.
//!
//! C header: [`include/linux/sunrpc/bc_xprt.h`](srctree/include/linux/sunrpc/bc_xprt.h)

use crate::kapi::{
    bindings,
    sunrpc::xprt::{
        WaitToSend,
        Xprt, //
    },
    sys::bit::test_bit, //
};
use core::mem::offset_of;
use kernel::{
    alloc::flags::__GFP_NOWARN,
    new_spinlock,
    page::PAGE_SIZE,
    prelude::*,
    sync::SpinLock, //
};

/// Bytes of the longest Call or Reply in the reverse direction that has memory here: no chunks
/// carry one (RFC 8167, section 5.3), but several messages may.
pub(crate) const MAX_REVERSE: usize = 40 << 10;
/// Bytes of one that is not long, as almost all are.
pub(crate) const SHORT_REVERSE: usize = PAGE_SIZE;

/// A reverse request with its memory.
#[repr(C)]
struct Slot {
    rqst: bindings::rpc_rqst,
    /// The Call as received. In the direct map, as the RPC layer wants it.
    call: KVec<u8>,
    /// Room for the Reply, of which the RPC layer uses no more than a page.
    reply: KVec<u8>,
    /// The connection that the Call came by, as the transport counts them.
    connection: u64,
    /// Its Reply was sent.
    answered: bool,
}

// SAFETY: The RPC layer, to which the pointers of a request lead, has nothing of a slot that is
// owned here.
unsafe impl Send for Slot {}

impl Slot {
    /// Allocates a slot for a Call of at most `len` bytes. May sleep.
    fn new(len: usize) -> Result<KBox<Self>> {
        let slot = Self {
            // SAFETY: All zeroes is what the RPC layer makes of a fresh request.
            rqst: unsafe { core::mem::zeroed() },
            call: KVec::zeroed(len, GFP_KERNEL | __GFP_NOWARN)?,
            reply: KVec::zeroed(SHORT_REVERSE, GFP_KERNEL)?,
            connection: 0,
            answered: false,
        };
        Ok(KBox::new(slot, GFP_KERNEL)?)
    }

    /// Returns whether it is for long Calls.
    fn is_long(&self) -> bool {
        self.call.len() > SHORT_REVERSE
    }

    /// Makes the request one of that transport, with a Call that it has room for, as received.
    fn fill<'m>(
        &mut self,
        xprt: &Xprt,
        xid: u32,
        call: impl IntoIterator<Item = &'m [u8]>,
        connection: u64,
    ) {
        let mut len = 0;
        for part in call {
            if let Some(to) = self.call.get_mut(len..len + part.len()) {
                to.copy_from_slice(part);
                len += part.len();
            }
        }
        self.connection = connection;
        self.answered = false;
        let rqst = &mut self.rqst;
        // SAFETY: All zeroes is what the RPC layer makes of a fresh request.
        *rqst = unsafe { core::mem::zeroed() };
        rqst.rq_xprt = xprt.as_raw();
        rqst.rq_xid = xid.to_be();
        rqst.rq_bc_pa_state = 1 << bindings::RPC_BC_PA_IN_USE;
        // The credits of the two directions are apart (RFC 8167, section 4.1). With a unit of the
        // congestion window, which it has not taken, its Reply does not wait where the window is
        // full.
        rqst.rq_cong = 1;
        rqst.rq_rcv_buf.head[0].iov_base = self.call.as_mut_ptr().cast();
        rqst.rq_rcv_buf.head[0].iov_len = len;
        rqst.rq_rcv_buf.len = len as u32;
        rqst.rq_rcv_buf.buflen = len as u32;
        rqst.rq_private_buf.len = len as u32;
        rqst.rq_snd_buf.head[0].iov_base = self.reply.as_mut_ptr().cast();
        rqst.rq_snd_buf.head[0].iov_len = self.reply.len();
        rqst.rq_snd_buf.buflen = self.reply.len() as u32;
    }
}

/// The requests that are not in use.
struct Free {
    short: KVec<KBox<Slot>>,
    /// That for long Calls, which take their turns.
    long: Option<KBox<Slot>>,
    /// Bytes of the longest Call that there is a request for.
    longest: usize,
}

impl Free {
    /// Makes `n` requests, and one for Calls of `longest` bytes if the others are too short for
    /// that, and there is memory for it. May sleep.
    fn new(n: usize, longest: usize) -> Result<Self> {
        let mut short = KVec::with_capacity(n, GFP_KERNEL)?;
        for _ in 0..n {
            short.push(Slot::new(SHORT_REVERSE)?, GFP_KERNEL)?;
        }
        let long = (longest > SHORT_REVERSE).then(|| Slot::new(longest));
        let long = long.and_then(Result::ok);
        let longest = long.as_ref().map_or(SHORT_REVERSE, |slot| slot.call.len());
        Ok(Self {
            short,
            long,
            longest,
        })
    }

    /// Takes a request for a Call of `len` bytes; none if all of these are in use.
    fn take(&mut self, len: usize) -> Option<KBox<Slot>> {
        match len > SHORT_REVERSE {
            true => self.long.take(),
            false => self.short.pop(),
        }
    }

    /// Takes a request back. Does not sleep: without memory to keep it, it is freed, and there will
    /// be one fewer.
    fn put(&mut self, slot: KBox<Slot>) {
        match slot.is_long() {
            true => self.long = Some(slot),
            false => drop(self.short.push(slot, GFP_ATOMIC)),
        }
    }
}

/// The reverse requests of one transport.
#[pin_data]
pub(super) struct Backchannel {
    /// Those that are not in use, between setup and destruction. The callback service need not be
    /// there otherwise.
    #[pin]
    free: SpinLock<Option<Free>>,
}

impl Backchannel {
    /// Creates one that is to be set up.
    pub(super) fn new() -> impl PinInit<Self> {
        pin_init!(Self { free <- new_spinlock!(None, "rpcrdma_backchannel") })
    }

    /// Returns whether a request is of the backchannel, by its mark.
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

    /// Makes `n` requests, and lets Calls come, of at most `longest` bytes. May sleep.
    pub(super) fn setup(&self, n: usize, longest: usize) -> Result {
        let free = Free::new(n, longest)?;
        let before = self.free.lock().replace(free);
        drop(before);
        Ok(())
    }

    /// Returns the bytes of the longest Call that there is a request for.
    pub(super) fn longest(&self) -> usize {
        let free = self.free.lock();
        free.as_ref().map_or(SHORT_REVERSE, |free| free.longest)
    }

    /// Frees the requests that are not in use. No more are handed to the callback service when this
    /// returns, and those that come back are freed.
    pub(super) fn destroy(&self) {
        let free = self.free.lock().take();
        drop(free);
    }

    /// Hands a Call, which is in these parts, to the callback service; false if there is none. Does
    /// not sleep.
    ///
    /// `ENOBUFS` when all requests for it are in use, `EMSGSIZE` when there are none for so long a
    /// Call.
    pub(super) fn receive<'m>(
        &self,
        xprt: &Xprt,
        xid: u32,
        call: impl IntoIterator<Item = &'m [u8], IntoIter: Clone>,
        connection: u64,
    ) -> Result<bool> {
        let call = call.into_iter();
        let len = call.clone().map(<[u8]>::len).sum();
        // Held until the service has it, so that none is handed over after `destroy`.
        let mut free = self.free.lock();
        let Some(free) = &mut *free else {
            return Ok(false);
        };
        if len > free.longest {
            return Err(EMSGSIZE);
        }
        let mut slot = free.take(len).ok_or(ENOBUFS)?;
        slot.fill(xprt, xid, call, connection);
        let slot = KBox::into_raw(slot);
        // SAFETY: The request is one of this transport, and is the service's alone if it takes it.
        // A service that is set is there: whoever ends it has the backchannel destroyed before,
        // which waits for the lock, and nothing is handed over then, whether the service is still
        // set or not.
        let taken = unsafe { xprt.enqueue_reverse_request(slot.cast()) };
        if !taken {
            // SAFETY: Of the box above, and nobody's: the service has not taken it.
            free.put(unsafe { KBox::from_raw(slot) });
        }
        Ok(taken)
    }

    /// Notes that the Reply of a request was sent.
    ///
    /// # Safety
    ///
    /// `rqst` must be one that [`Self::receive`] handed out, and not given back yet; to be called
    /// by its sender alone.
    pub(super) unsafe fn note_answered(rqst: *mut bindings::rpc_rqst) {
        // SAFETY: What `receive` handed out is the first part of a slot, and only the sender of its
        // Reply uses this.
        unsafe { (*rqst.cast::<Slot>()).answered = true };
    }

    /// Returns the connection that the Call of a request came by.
    ///
    /// # Safety
    ///
    /// `rqst` must be one that [`Self::receive`] handed out, and not given back yet.
    pub(super) unsafe fn connection_of(rqst: *mut bindings::rpc_rqst) -> u64 {
        // SAFETY: What `receive` handed out is the first part of a slot; this does not change until
        // it is given back.
        unsafe { (*rqst.cast::<Slot>()).connection }
    }

    /// Takes a request back that the RPC layer is done with. Returns its connection, and whether
    /// its Reply was sent.
    ///
    /// # Safety
    ///
    /// `rqst` must be one that [`Self::receive`] handed out, and not be used afterwards.
    pub(super) unsafe fn put(&self, rqst: *mut bindings::rpc_rqst) -> (u64, bool) {
        // SAFETY: What `receive` handed out is the first part of the box of a slot, which is ours
        // again, since the RPC layer is done with it.
        let slot = unsafe { KBox::from_raw(rqst.cast::<Slot>()) };
        let end = (slot.connection, slot.answered);
        let mut free = self.free.lock();
        if let Some(free) = &mut *free {
            free.put(slot);
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
            // SAFETY: The lock of the queue is held.
            let mut waiting = unsafe { WaitToSend::of(xprt) }.enumerate();
            // SAFETY: A request is valid while it is in the queue, whose lock is held.
            let reverse = waiting.find(|(_, rqst)| unsafe { Backchannel::is_reverse(*rqst) });
            if let Some((_, rqst)) = reverse {
                // SAFETY: It is in the queue, whose lock is held, where it may be anywhere.
                unsafe {
                    bindings::list_move(&raw mut (*rqst).rq_xmit, &raw mut (*xprt).xmit_queue)
                };
            }
            reverse.is_some_and(|(before, _)| before != 0)
        })
    }
}

const _: () = assert!(offset_of!(Slot, rqst) == 0);

#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
mod tests;
