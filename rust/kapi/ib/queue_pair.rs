// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! A reliable connection: queue pair, completion queues, protection domain, and all that they use.

#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
mod tests;

use super::super::{
    bindings,
    page::Pieces,
    sys::completion::Completion, //
};
use super::{
    buffer::{
        Direction,
        DmaBuffer, //
    },
    cm::{
        CmHandler,
        CmId,
        ConnectParams, //
    },
    hardware::Hardware,
    recv_queue::RecvQueue,
    region::{
        Access,
        Mr,
        Region,
        Regions, //
    },
    send_queue::{
        Gate,
        Poster,
        SendBuffer,
        SendQueue, //
    },
};
use core::{
    ffi::CStr,
    ptr::NonNull, //
};
use kernel::{
    new_mutex, new_spinlock,
    prelude::*,
    sync::{
        Arc,
        Mutex,
        SpinLock, //
    },
};
use xdr::Segment;

/// What a queue pair tells its user. All are called in process context, from the work queue of
/// the completion queues: they must not sleep on memory and must not wait for the tear-down.
pub(crate) trait Handler: Sized + Send + Sync + 'static {
    /// What comes back with the completion of local invalidations.
    type Cookie: Send + 'static;
    /// Receives the events of the id.
    type Cm: CmHandler;

    /// A message was received.
    fn received(&self, qp: &QueuePair<Self>, message: Received<'_>);
    /// Local invalidations have ended, well or not; after a failure nothing is known of the
    /// regions until the tear-down.
    fn invalidated(&self, qp: &QueuePair<Self>, cookie: Self::Cookie, ok: bool);
    /// Send buffers or room in the send queue came back.
    fn send_space(&self, qp: &QueuePair<Self>);
    /// A work request ended in an error: the connection is lost. `status` is the kernel's number.
    fn failed(&self, status: u32);
}

/// What the status of a failed work request means.
pub(crate) fn status_words(status: u32) -> &'static str {
    // SAFETY: The function takes any number, and returns a constant string.
    let words = unsafe { CStr::from_char_ptr(bindings::ib_wc_status_msg(status)) };
    words.to_str().unwrap_or("unknown")
}

/// A received message.
pub(crate) struct Received<'a> {
    /// The bytes received, no more.
    pub(crate) bytes: &'a [u8],
    /// The key that the peer invalidated with this message.
    pub(crate) invalidated: Option<InvalidatedKey>,
}

/// A key that a completed Receive said to be invalidated.
#[derive(Clone, Copy)]
pub(crate) struct InvalidatedKey(u32);

/// Sizes of a queue pair.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QueuePairConfig {
    /// Work requests that the send queue holds, one of which the drain needs.
    pub(crate) send_entries: u32,
    /// Registrations of one call, at most.
    pub(crate) regions_per_call: u32,
    /// Send buffers, at most; made as they are needed.
    pub(crate) send_buffers: u32,
    /// Bytes of a send buffer.
    pub(crate) send_size: usize,
    /// Receive buffers, at most; made as they are needed.
    pub(crate) receives: u32,
    /// Bytes of a receive buffer.
    pub(crate) receive_size: usize,
    /// Pages that one region covers.
    pub(crate) region_pages: u32,
    /// Regions may have gaps.
    pub(crate) sg_gaps: bool,
}

/// A queue pair and all that belongs to it.
///
/// Completion handlers borrow it; the drain in [`Self::shutdown`] proves that they have ended.
/// Dropping it shuts it down, which sleeps, so whoever may hold the last reference must be able
/// to sleep and must not be one of its handlers.
///
/// # Invariants
///
/// The completion queues' context points to this object, which does not move (it is in an
/// [`Arc`]) and is not freed before `hardware` is.
#[pin_data(PinnedDrop)]
pub(crate) struct QueuePair<H: Handler> {
    #[pin]
    pub(super) send: SpinLock<SendQueue<H::Cookie>>,
    #[pin]
    recv: SpinLock<RecvQueue>,
    #[pin]
    hardware: Mutex<Option<Hardware<H::Cm>>>,
    #[pin]
    pub(super) posters_left: Completion,
    #[pin]
    ended: Completion,
    config: QueuePairConfig,
    #[pin]
    handler: H,
}

impl<H: Handler> QueuePair<H> {
    /// Makes a queue pair on an id whose address and route are resolved. May sleep.
    pub(crate) fn new(
        id: CmId<H::Cm>,
        config: QueuePairConfig,
        handler: impl PinInit<H>,
    ) -> Result<Arc<Self>> {
        let slots = config.send_entries.checked_sub(1).ok_or(EINVAL)?;
        let send = SendQueue::new(slots, config.regions_per_call + 1, config.send_buffers)?;
        let recv = RecvQueue::new(config.receives)?;
        let qp = Arc::pin_init(
            pin_init!(Self {
                send <- new_spinlock!(send, "rpcrdma_send_queue"),
                recv <- new_spinlock!(recv, "rpcrdma_recv_queue"),
                hardware <- new_mutex!(None, "rpcrdma_hardware"),
                posters_left <- Completion::new(),
                ended <- Completion::new(),
                config,
                handler <- handler,
            }),
            GFP_KERNEL,
        )?;
        qp.bring_up(id)?;
        Ok(qp)
    }

    /// Makes the objects and opens the queues. On an error dropping `self` undoes it.
    fn bring_up(&self, id: CmId<H::Cm>) -> Result {
        let mut guard = self.hardware.lock();
        let hw = guard.insert(Hardware::new(id));
        let context: *const Self = self;
        let (send_entries, recv_entries) = (self.config.send_entries, self.config.receives + 1);
        // SAFETY: The context outlives the queues by the type invariant.
        let (qp, lkey) =
            unsafe { hw.make_queues(context.cast_mut().cast(), send_entries, recv_entries)? };
        // SAFETY: The queue pair stays until both queues were closed, by `shutdown`. It has one
        // entry more than the ring has slots. The callback is for entries of this ring.
        unsafe { self.send.lock().open(qp, lkey, Self::send_done)? };
        // SAFETY: As above.
        unsafe { self.recv.lock().open(qp, lkey, Self::receive_done) };
        Ok(())
    }

    /// The user's part.
    pub(crate) fn handler(&self) -> &H {
        &self.handler
    }

    /// The sizes it was made with.
    pub(crate) fn config(&self) -> &QueuePairConfig {
        &self.config
    }

    /// Starts to connect; the outcome comes as an event of the id. May sleep.
    pub(crate) fn connect(&self, params: &ConnectParams<'_>) -> Result {
        match &*self.hardware.lock() {
            Some(hw) => hw.id().connect(params),
            None => Err(ENOTCONN),
        }
    }

    /// Starts to disconnect: the peer learns of it, and work requests are flushed. May sleep.
    pub(crate) fn disconnect(&self) {
        if let Some(hw) = &*self.hardware.lock() {
            hw.id().disconnect();
        }
    }

    /// Takes a buffer to send from. May sleep.
    ///
    /// `EAGAIN` when none can be had now: [`Handler::send_space`] is called when that changes.
    /// `ENOTCONN` when the connection is going.
    pub(crate) fn send_buffer(&self) -> Result<SendBuffer<'_, H>> {
        SendBuffer::take(self)
    }

    /// Takes a buffer to send from, if one can be had without sleeping.
    pub(crate) fn pooled_send_buffer(&self) -> Option<SendBuffer<'_, H>> {
        SendBuffer::take_pooled(self)
    }

    pub(super) fn make_send_buffer(&self) -> Result<DmaBuffer> {
        let device = self.device().ok_or(ENOTCONN)?;
        // SAFETY: The buffer goes to the send queue, which `shutdown` empties before it lets the
        // device go; it waits for posters before that.
        unsafe { DmaBuffer::new(device, self.config.send_size, Direction::ToDevice) }
    }

    fn device(&self) -> Option<NonNull<bindings::ib_device>> {
        self.hardware.lock().as_ref()?.id().device().ok()
    }

    /// Covers pieces with one more region of `regions`, as many as fit, and says how a chunk
    /// names it.
    ///
    /// `tag` goes into the upper half of the peer's address. `EAGAIN` when no region is idle,
    /// `EMSGSIZE` when the RPC may have no more, `EIO` when the device refuses the memory.
    pub(crate) fn arm(
        &self,
        regions: &mut Regions,
        pieces: &mut Pieces<'_>,
        access: Access,
        tag: u32,
    ) -> Result<Segment> {
        if regions.room() == 0 {
            return Err(EMSGSIZE);
        }
        let region = self.send.lock().take_region().ok_or(EAGAIN)?;
        match region.arm(pieces, self.config.sg_gaps, access, tag) {
            Ok(armed) => {
                let segment = armed.segment();
                // There is room, by the check above.
                let _ = regions.armed.push_within_capacity(armed);
                Ok(segment)
            }
            Err((e, region)) => {
                self.send.lock().give_back_region(region, false);
                Err(e)
            }
        }
    }

    /// Gives armed regions back: nothing was posted.
    pub(crate) fn disarm(&self, regions: &mut Regions) {
        for region in regions.armed.drain_all() {
            let idle = region.disarm();
            self.send.lock().give_back_region(idle, false);
        }
    }

    /// Makes `n` more regions, but never more than `most` in all, and says how many. May sleep.
    ///
    /// An error only if it made none.
    pub(crate) fn grow_regions(&self, n: u32, most: u32) -> Result<u32> {
        let room = most.saturating_sub(self.send.lock().region_count());
        for made in 0..n.min(room) {
            match self.make_region() {
                Err(e) if made == 0 => return Err(e),
                Err(_) => return Ok(made),
                Ok(()) => (),
            }
        }
        Ok(n.min(room))
    }

    fn make_region(&self) -> Result {
        // Not under the lock of `hardware`, which senders need, and which may depend on the memory
        // that is waited for here.
        let _poster = Poster::enter(self)?;
        let hardware = self.hardware.lock();
        let hw = hardware.as_ref().ok_or(ENOTCONN)?;
        let (pd, device) = (hw.pd().ok_or(ENOTCONN)?, hw.id().device()?);
        drop(hardware);
        // SAFETY: Both are valid, and stay so until `shutdown` has killed all regions of the
        // table; it waits for posters before it begins to let them go.
        let mr = unsafe { Mr::new(pd, device, self.config.region_pages, self.config.sg_gaps)? };
        let added = self.send.lock().add_region(mr.clone());
        added.inspect_err(|_| mr.kill())
    }

    /// How many regions are idle.
    pub(crate) fn idle_regions(&self) -> usize {
        self.send.lock().idle_regions()
    }

    /// Makes receive buffers until there are `want`. May sleep.
    pub(crate) fn grow_receives(&self, want: u32) -> Result {
        let missing = self.recv.lock().missing(want);
        for _ in 0..missing {
            let hardware = self.hardware.lock();
            let device = hardware.as_ref().ok_or(ENOTCONN)?.id().device()?;
            let size = self.config.receive_size;
            // SAFETY: The buffer goes to the receive queue, which `shutdown` empties before it
            // lets the device go, which it cannot while `hardware` is locked.
            let buffer = unsafe { DmaBuffer::new(device, size, Direction::FromDevice)? };
            let mut recv = self.recv.lock();
            let added = if recv.open {
                recv.add(buffer)
            } else {
                Err(buffer)
            };
            drop(recv);
            if let Err(buffer) = added {
                drop(buffer);
                break;
            }
        }
        Ok(())
    }

    /// Posts receive buffers until `want` are posted, as far as there are buffers. Returns how
    /// many that were.
    pub(crate) fn post_receives(&self, want: u32) -> Result<u32> {
        self.recv.lock().post(want)
    }

    /// Posts the registration of the armed regions and the Send of the buffer's first `len`
    /// bytes, in one chain.
    ///
    /// The regions count as registered even after an error, when nobody knows what was posted:
    /// then the connection must be dropped.
    pub(crate) fn post(
        &self,
        buffer: SendBuffer<'_, H>,
        len: usize,
        regions: &mut Regions,
    ) -> Result {
        let result = buffer.post(&regions.armed, len);
        for region in regions.armed.drain_all() {
            // All three lists have room for all regions of the RPC.
            let _ = regions.registered.push_within_capacity(region.posted());
        }
        result
    }

    /// Posts the Send of the buffer's first `len` bytes alone. After an error the connection must
    /// be dropped.
    pub(crate) fn post_message(&self, buffer: SendBuffer<'_, H>, len: usize) -> Result {
        buffer.post(&[], len)
    }

    /// The region that was remotely invalidated goes to the pool. Returns whether there was one.
    pub(crate) fn remotely_invalidated(&self, regions: &mut Regions, key: InvalidatedKey) -> bool {
        let found = regions.registered.iter().position(|r| r.rkey() == key.0);
        let Some(Ok(region)) = found.map(|i| regions.registered.remove(i)) else {
            return false;
        };
        match region.invalidated_by(key.0) {
            Ok(idle) => {
                self.send.lock().give_back_region(idle, true);
                true
            }
            Err(region) => {
                let _ = regions.registered.push_within_capacity(region);
                false
            }
        }
    }

    /// Posts the local invalidation of all registered regions.
    ///
    /// [`Handler::invalidated`] brings the cookie back; where nothing could be posted it comes
    /// back here, with the regions as they were. After any error the connection must be dropped.
    pub(crate) fn invalidate(
        &self,
        regions: &mut Regions,
        cookie: H::Cookie,
    ) -> Result<(), (Error, Option<H::Cookie>)> {
        let keys = regions.registered.iter().map(Region::rkey);
        let result = self.send.lock().post_invalidations(keys, cookie);
        if !matches!(result, Err((_, Some(_)))) {
            for region in regions.registered.drain_all() {
                let _ = regions
                    .invalidating
                    .push_within_capacity(region.invalidation_posted());
            }
        }
        result
    }

    /// All regions being invalidated go to the pool: [`Handler::invalidated`] said that it went
    /// well.
    pub(crate) fn invalidation_completed(&self, regions: &mut Regions) {
        for region in regions.invalidating.drain_all() {
            let idle = region.completed();
            self.send.lock().give_back_region(idle, false);
        }
    }

    /// Ends the connection and lets everything go. May sleep, for as long as the adapter takes to
    /// flush its queues. Returns when all is gone, whoever did it.
    ///
    /// Never to be called from a completion or connection manager handler: it waits for them.
    pub(crate) fn shutdown(&self) {
        let mut send = self.send.lock();
        match send.gate {
            // It did not come up all the way: nobody can have posted.
            Gate::New => return,
            Gate::Open => send.gate = Gate::Fencing,
            Gate::Fencing | Gate::Closed => {
                drop(send);
                self.ended.wait();
                return;
            }
        }
        let lent = send.lent;
        drop(send);
        self.recv.lock().open = false;
        if lent != 0 {
            self.posters_left.wait();
        }

        self.disconnect();
        // Receives first: their handlers may still post local invalidations.
        self.drain(bindings::ib_drain_rq);
        self.send.lock().gate = Gate::Closed;
        self.drain(bindings::ib_drain_sq);
        // A device that is dying may fail to drain: without its queues it uses nothing either.
        if let Some(hw) = &mut *self.hardware.lock() {
            hw.destroy_queues();
        }
        let head = self.send.lock().head();
        self.retire(head, false);

        // Nothing is posted any more, and nobody posts.
        let (regions, idle) = self.send.lock().take_all_regions();
        drop(idle);
        for mr in &regions {
            mr.kill();
        }
        let send_buffers = self.send.lock().take_all_buffers();
        drop(send_buffers);
        let receive_buffers = self.recv.lock().take_all();
        drop(receive_buffers);

        let hardware = self.hardware.lock().take();
        drop(hardware);
        self.ended.complete_all();
    }

    /// Waits until the adapter has completed all that was posted to one of the queues.
    fn drain(&self, queue: unsafe extern "C" fn(*mut bindings::ib_qp)) {
        let Some(qp) = self.hardware.lock().as_ref().and_then(Hardware::qp) else {
            return;
        };
        // SAFETY: Only `shutdown` destroys the queue pair, and it is running this.
        unsafe { queue(qp) };
    }

    /// Retires slots below `end` and hands out the cookies among them.
    fn retire(&self, end: u64, ok: bool) {
        loop {
            let cookie = self.send.lock().retire(end);
            match cookie {
                // The completion of a later request says nothing of one that was not posted.
                Some((cookie, whole)) => self.handler.invalidated(self, cookie, ok && whole),
                None => break,
            }
        }
    }

    /// Called by the completion queue's worker for each completed entry of the send ring.
    ///
    /// # Safety
    ///
    /// To be called by ib_core alone, for an entry of this type's ring.
    unsafe extern "C" fn send_done(cq: *mut bindings::ib_cq, wc: *mut bindings::ib_wc) {
        // SAFETY: The context points to the queue pair by the type invariant, and the drain in
        // `shutdown` waits for this function.
        let this = unsafe { &*(*cq).cq_context.cast::<Self>().cast_const() };
        // SAFETY: The completion is valid for the time of this call; entry and status are valid
        // members whatever the status.
        let (entry, status) = unsafe { ((*wc).__bindgen_anon_1.wr_cqe, (*wc).status) };
        let ok = status == bindings::ib_wc_status_IB_WC_SUCCESS;

        let send = this.send.lock();
        let position = send.index_of(entry).and_then(|i| send.position_of(i));
        drop(send);
        if let Some(position) = position {
            this.retire(position + 1, ok);
        }
        if ok {
            this.handler.send_space(this);
        } else {
            this.handler.failed(status);
        }
    }

    /// Called by the completion queue's worker for each completed Receive.
    ///
    /// # Safety
    ///
    /// To be called by ib_core alone, for an entry of this type's receive queue.
    unsafe extern "C" fn receive_done(cq: *mut bindings::ib_cq, wc: *mut bindings::ib_wc) {
        // SAFETY: As in `send_done`.
        let this = unsafe { &*(*cq).cq_context.cast::<Self>().cast_const() };
        // SAFETY: As in `send_done`.
        let (entry, status) = unsafe { ((*wc).__bindgen_anon_1.wr_cqe, (*wc).status) };
        let ok = status == bindings::ib_wc_status_IB_WC_SUCCESS;
        let (len, invalidated) = if ok {
            // SAFETY: After a success all members are valid; the key is when the flag is set.
            unsafe {
                let flag = bindings::ib_wc_flags_IB_WC_WITH_INVALIDATE as i32;
                let key =
                    ((*wc).wc_flags & flag != 0).then(|| InvalidatedKey((*wc).ex.invalidate_rkey));
                ((*wc).byte_len as usize, key)
            }
        } else {
            (0, None)
        };

        let Some((index, bytes)) = this.recv.lock().complete(entry, len) else {
            return;
        };
        if ok {
            // SAFETY: The buffer is neither free nor posted until it is given back below, and it
            // is not freed before the drain has waited for this function.
            let bytes = unsafe { &*bytes };
            this.handler.received(this, Received { bytes, invalidated });
        }
        this.recv.lock().give_back(index);
        if !ok {
            this.handler.failed(status);
        }
    }
}

#[pinned_drop]
impl<H: Handler> PinnedDrop for QueuePair<H> {
    fn drop(self: Pin<&mut Self>) {
        self.shutdown();
        // One that did not come up all the way has no open queues, but may have hardware.
        let hardware = self.hardware.lock().take();
        drop(hardware);
    }
}
