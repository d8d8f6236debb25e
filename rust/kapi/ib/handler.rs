// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! What a queue pair tells its user.

use crate::kapi::{
    bindings,
    ib::{
        cm::CmHandler,
        device::DeviceName,
        queue_pair::QueuePair,
        recv_queue::KeptReceive,
        regions::Invalidated,
        rw::Fetched, //
    },
    sys::memalloc::MemoryScope,
    trace::CompletionId, //
};
use core::{
    cell::Cell,
    ffi::CStr,
    marker::PhantomData,
    ptr::NonNull, //
};
use kernel::prelude::*;
use xdr::Role;

/// What a queue pair tells its user. All are called in process context, from the work queue of
/// the completion queues: they must not sleep on memory and must not wait for the tear-down.
pub(crate) trait Handler: Sized + Send + Sync + 'static {
    /// What comes back with the completion of local invalidations, or of RDMA Reads.
    type Cookie: Send + 'static;
    /// Receives the events of the id.
    type Cm: CmHandler;
    /// Which end this is; trace events have names of one of them.
    const ROLE: Role;

    /// The scope in which memory for buffers is to be had, if not as the task has it anyway.
    fn memory_scope(&self) -> Option<MemoryScope> {
        None
    }
    /// A message was received.
    fn received(&self, qp: &QueuePair<Self>, message: Received<'_, Self>);
    /// Nothing will be received any more: what was kept of it must go, or the tear-down waits. May
    /// sleep.
    fn no_more(&self) {}
    /// Local invalidations have ended, well if that is `done`; after a failure nothing is known of the
    /// regions until [`Self::fenced`].
    fn invalidated(&self, qp: &QueuePair<Self>, cookie: Self::Cookie, done: Option<Invalidated>) {
        let _ = (qp, cookie, done);
    }
    /// All regions are dead: no peer can reach what they covered. From the tear-down; may sleep.
    fn fenced(&self) {}
    /// RDMA Reads have ended, well or not; here is their memory. Also from the tear-down.
    fn read_ended(&self, qp: &QueuePair<Self>, cookie: Self::Cookie, memory: Fetched, ok: bool) {
        let _ = (qp, cookie, memory, ok);
    }
    /// Send buffers or room in the send queue came back; to a responder, so much that nothing waits
    /// any more.
    fn send_space(&self, qp: &QueuePair<Self>);
    /// Something waits for room in the send queue. Must not call the queue pair.
    fn starved(&self) {}
    /// A work request ended in an error: the connection is lost.
    fn failed(&self, failure: Failure);
    /// The first of them did. `only` is the tag of the one transfer that may have been under way, if
    /// it was just one.
    fn lost(&self, only: Option<u32>) {
        let _ = only;
    }
    /// The end of the connection begins; `told` says whether there was one, so that the peer learns
    /// of it. From the tear-down; may sleep.
    fn disconnected(&self, told: Result) {
        let _ = told;
    }
    /// The device has something to say of the queue pair. Any context, also with interrupts off.
    fn device_event(&self, event: &QueuePairEvent<'_>) {
        let _ = event;
    }
}

/// What a device says of a queue pair, for the time of the call.
pub(crate) struct QueuePairEvent<'a>(&'a bindings::ib_event);

impl<'a> QueuePairEvent<'a> {
    /// # Safety
    ///
    /// `event` must be one that a device reports, valid for `'a`.
    pub(super) unsafe fn new(event: *mut bindings::ib_event) -> Self {
        // SAFETY: The caller promises that it is valid for `'a`; nobody writes to it meanwhile.
        Self(unsafe { &*event })
    }

    /// What it is, as the verbs number it.
    pub(crate) fn number(&self) -> u32 {
        self.0.event
    }

    /// Whether it is one that the in-tree module calls fatal. As a rule work requests fail after those,
    /// but a device that is at fault itself may never say so.
    pub(crate) fn is_fatal(&self) -> bool {
        !matches!(
            self.0.event,
            bindings::ib_event_type_IB_EVENT_PATH_MIG
                | bindings::ib_event_type_IB_EVENT_COMM_EST
                | bindings::ib_event_type_IB_EVENT_SQ_DRAINED
                | bindings::ib_event_type_IB_EVENT_QP_LAST_WQE_REACHED
        )
    }

    /// Which device says so.
    pub(crate) fn device(&self) -> DeviceName {
        // SAFETY: An event of a queue pair names it, even where ib_core itself makes the event and names
        // no device; a queue pair has a valid device.
        unsafe { DeviceName::of((*self.0.element.qp).device) }
    }
}

/// How a work request failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Failure {
    pub(super) status: u32,
    pub(super) tag: Option<u32>,
}

impl Failure {
    /// A post failed.
    pub(super) fn post() -> Self {
        Self {
            status: bindings::ib_wc_status_IB_WC_GENERAL_ERR,
            tag: None,
        }
    }

    /// What the status means.
    pub(crate) fn words(&self) -> &'static str {
        // SAFETY: The function takes any number, and returns a constant string.
        let words = unsafe { CStr::from_char_ptr(bindings::ib_wc_status_msg(self.status)) };
        words.to_str().unwrap_or("unknown")
    }

    /// Whether the status only says that the connection had ended before.
    pub(crate) fn is_flush(&self) -> bool {
        self.status == bindings::ib_wc_status_IB_WC_WR_FLUSH_ERR
    }

    /// The tag of the request, if the request itself was at fault, and not the link or the peer's
    /// state.
    pub(crate) fn culprit(&self) -> Option<u32> {
        let at_fault = matches!(
            self.status,
            bindings::ib_wc_status_IB_WC_REM_ACCESS_ERR
                | bindings::ib_wc_status_IB_WC_REM_INV_REQ_ERR
                | bindings::ib_wc_status_IB_WC_REM_OP_ERR
                | bindings::ib_wc_status_IB_WC_LOC_LEN_ERR
                | bindings::ib_wc_status_IB_WC_LOC_PROT_ERR
        );
        self.tag.filter(|_| at_fault)
    }
}

/// A received message, in the completion handler.
///
/// # Invariants
///
/// `bytes` are in the buffer `index` of the queue pair, which is in the completion handler's hands and
/// stays there as long as this object does.
pub(crate) struct Received<'a, H: Handler> {
    bytes: NonNull<[u8]>,
    invalidated: Option<u32>,
    qp: &'a QueuePair<H>,
    index: u32,
    id: CompletionId,
    kept: &'a Cell<bool>,
}

impl<'a, H: Handler> Received<'a, H> {
    /// # Safety
    ///
    /// `bytes` must be in the buffer `index`, which [`RecvQueue::complete`] has put into the caller's
    /// hands: it must not be given back as long as the object exists, nor at all if that sets `kept`.
    ///
    /// [`RecvQueue::complete`]: super::recv_queue::RecvQueue::complete
    pub(super) unsafe fn new(
        qp: &'a QueuePair<H>,
        (index, id): (u32, CompletionId),
        bytes: NonNull<[u8]>,
        invalidated: Option<u32>,
        kept: &'a Cell<bool>,
    ) -> Self {
        // INVARIANT: As the caller promises.
        Self {
            bytes,
            invalidated,
            qp,
            index,
            id,
            kept,
        }
    }

    /// The bytes received, no more.
    #[inline(always)]
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: By the type invariant nobody else uses the buffer as long as this object exists.
        unsafe { self.bytes.as_ref() }
    }

    /// The key that the peer invalidated with this message.
    #[inline(always)]
    pub(crate) fn invalidated(&self) -> Option<InvalidatedKey<'_>> {
        let owner = self.qp.number;
        self.invalidated.map(|key| InvalidatedKey {
            key,
            owner,
            _message: PhantomData,
        })
    }

    /// Keeps the message, and so its receive buffer.
    pub(crate) fn keep(self) -> KeptReceive<H> {
        self.kept.set(true);
        // SAFETY: By the type invariant the bytes are in that buffer. It is not given back, since it was
        // marked as kept, and this object ends here.
        unsafe { KeptReceive::new(self.qp, self.index, self.id, self.bytes) }
    }
}

/// A key that a completed Receive said to be invalidated, for as long as that message is at hand: some
/// time later the same key may be another region's.
#[derive(Clone, Copy)]
pub(crate) struct InvalidatedKey<'a> {
    key: u32,
    /// The number of the queue pair.
    owner: u64,
    _message: PhantomData<&'a ()>,
}

impl InvalidatedKey<'_> {
    /// The key, if that queue pair has received it.
    #[inline(always)]
    pub(super) fn of<H: Handler>(self, qp: &QueuePair<H>) -> Option<u32> {
        (self.owner == qp.number).then_some(self.key)
    }

    /// A key that `owner` might have received.
    #[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
    pub(super) fn test<H: Handler>(key: u32, owner: &QueuePair<H>) -> Self {
        Self {
            key,
            owner: owner.number,
            _message: PhantomData,
        }
    }
}
