// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! A reliable connection: queue pair, completion queues, protection domain, and all that they use.

mod completions;
mod tear_down;
#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
mod tests;

use crate::kapi::{
    bindings,
    ib::{
        buffer::{
            Direction,
            DmaBuffer, //
        },
        cm::{
            AcceptParams,
            CmHandler,
            CmId,
            ConnectParams, //
        },
        forced::Forced,
        handler::{
            Failure,
            Handler, //
        },
        hardware::{
            Context,
            Hardware,
            QueueSizes,
            Queues, //
        },
        mr::Mr,
        padding::Padding,
        qp::Target,
        recv_queue::{
            KeptReceive,
            RecvQueue, //
        },
        ring::Handlers,
        rw::TransferKind,
        send_buffer::{
            segment,
            Poster,
            SendBuffer, //
        },
        send_queue::{
            SendQueue,
            Turn,
            Work, //
        },
        trace,
        transfer::NewTransfer, //
    },
    page::Gathered,
    sys::completion::Completion,
    trace::{
        self as events,
        TaskId, //
    },
};
use core::ptr::NonNull;
use kernel::{
    new_mutex, new_spinlock,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc,
        Mutex,
        SetOnce,
        SpinLock, //
    },
};
use xdr::Segment;

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
    /// What a responder's transfers need; none for a requester.
    pub(crate) transfers: Option<TransferConfig>,
}

/// What transfers need of a queue pair.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TransferConfig {
    /// Elements of one work request, at most.
    pub(crate) elements: u32,
    /// Segments that are transferred at once on devices that have to register memory for that.
    pub(crate) contexts: u32,
    /// Messages whose RDMA Reads are under way at once.
    pub(crate) reads: u32,
}

/// What a device has refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// Queues that are so long.
    Queues,
    /// A region of so many pages.
    Regions,
}

/// Why there is no queue pair.
pub(crate) enum NotMade<E: CmHandler> {
    /// The device refuses a size, and may take a lesser one. The id is as it was.
    Refused(CmId<E>, Refused, Error),
    Failed(Error),
}

impl<E: CmHandler> From<Error> for NotMade<E> {
    fn from(e: Error) -> Self {
        Self::Failed(e)
    }
}

/// A queue pair and all that belongs to it.
///
/// Completion handlers borrow it; the drain in [`Self::shutdown`] proves that they have ended.
/// Dropping it shuts it down, which sleeps, so whoever may hold the last reference must be able
/// to sleep and must not be one of its handlers.
///
/// # Invariants
///
/// The context of the queue pair and of its completion queues points to this object, which does
/// not move (it is in an [`Arc`]) and is not freed before `hardware` is.
#[pin_data(PinnedDrop)]
pub(crate) struct QueuePair<H: Handler> {
    #[pin]
    pub(super) send: SpinLock<SendQueue<H::Cookie>>,
    #[pin]
    pub(super) recv: SpinLock<RecvQueue>,
    #[pin]
    hardware: Mutex<Option<Hardware<H::Cm>>>,
    #[pin]
    pub(super) posters_left: Completion,
    #[pin]
    pub(super) kept_left: Completion,
    #[pin]
    ended: Completion,
    /// Room for XDR padding, once it was provided.
    padding: SetOnce<Padding>,
    /// Of a responder for which the core registers memory for all RDMA.
    forced: SetOnce<Arc<Forced>>,
    config: QueuePairConfig,
    /// No other queue pair has it, or ever had, while the module is loaded.
    pub(super) number: u64,
    #[pin]
    handler: H,
}

/// How many queue pairs were made.
static NUMBERS: Atomic<u64> = Atomic::new(0);

impl<H: Handler> QueuePair<H> {
    /// Makes a queue pair on an id whose address and route are resolved. May sleep.
    pub(crate) fn new(
        id: CmId<H::Cm>,
        config: QueuePairConfig,
        handler: impl PinInit<H>,
    ) -> Result<Arc<Self>, NotMade<H::Cm>> {
        let slots = config.send_entries.checked_sub(1).ok_or(EINVAL)?;
        let chain = config.regions_per_call + 1;
        let reads = config.transfers.map_or(0, |transfers| transfers.reads);
        let send = SendQueue::new(slots, chain, config.send_buffers, reads)?;
        let recv = RecvQueue::new(config.receives)?;
        let qp = Arc::pin_init(
            pin_init!(Self {
                send <- new_spinlock!(send, "rpcrdma_send_queue"),
                recv <- new_spinlock!(recv, "rpcrdma_recv_queue"),
                hardware <- new_mutex!(None, "rpcrdma_hardware"),
                posters_left <- Completion::new(),
                kept_left <- Completion::new(),
                ended <- Completion::new(),
                padding: SetOnce::new(),
                forced: SetOnce::new(),
                config,
                // Zero is nobody's.
                number: NUMBERS.fetch_add(1, Relaxed) + 1,
                handler <- handler,
            }),
            GFP_KERNEL,
        )?;
        qp.bring_up(id)?;
        Ok(qp)
    }

    /// Makes the objects and opens the queues. On an error dropping `self` undoes it.
    fn bring_up(&self, id: CmId<H::Cm>) -> Result<(), NotMade<H::Cm>> {
        let mut hw = Hardware::new(id);
        // SAFETY: It is let go, given back or put into the field below, while `self` is borrowed.
        match unsafe { self.make_objects(&mut hw) } {
            Ok(queues) => Ok(self.open(hw, queues)?),
            // What drivers say of sizes that they do not like, or have no memory for.
            Err((what, e @ (ENOMEM | EINVAL))) => Err(NotMade::Refused(hw.give_back(), what, e)),
            Err((_, e)) => Err(NotMade::Failed(e)),
        }
    }

    /// Makes the objects, and says on an error at what.
    ///
    /// # Safety
    ///
    /// The queues of `hw` must be destroyed before `self` goes, as those of the field `hardware` are.
    unsafe fn make_objects(&self, hw: &mut Hardware<H::Cm>) -> Result<Queues, (Refused, Error)> {
        let pointer: *const Self = self;
        let context = Context {
            pointer: pointer.cast_mut().cast(),
            event: Self::device_event,
        };
        let (elements, contexts) = match self.config.transfers {
            Some(transfers) => (transfers.elements, transfers.contexts),
            None => (1, 0),
        };
        let sizes = QueueSizes {
            send_entries: self.config.send_entries,
            recv_entries: self.config.receives + 1,
            elements,
            contexts,
        };
        // SAFETY: The context outlives the queues, as the caller promises.
        let queues = unsafe { hw.make_queues(&context, sizes) };
        let queues = queues.map_err(|(part, e)| {
            trace::no_queue(H::ROLE, part, || (hw.id().addresses().1, e));
            (Refused::Queues, e)
        })?;
        self.try_region(hw).map_err(|e| (Refused::Regions, e))?;
        Ok(queues)
    }

    /// Whether the device has regions of the size that is wanted shows when it makes one.
    fn try_region(&self, hw: &Hardware<H::Cm>) -> Result {
        if self.config.transfers.is_some() {
            return Ok(());
        }
        let (pd, device) = (hw.pd().ok_or(ENODEV)?, hw.id().device()?);
        // SAFETY: Both are valid, and stay so until the end of this function.
        let mr = unsafe { Mr::new(pd, device, self.config.region_pages, self.config.sg_gaps) };
        let mr = mr.inspect_err(trace::not_made)?;
        trace::deregister(&mr);
        Ok(())
    }

    /// Opens the queues. On an error dropping `self` undoes it.
    fn open(&self, hw: Hardware<H::Cm>, queues: Queues) -> Result {
        let mut guard = self.hardware.lock();
        let hw = guard.insert(hw);
        let Queues {
            qp,
            lkey,
            send_cq,
            recv_cq,
        } = queues;
        let port = hw.id().port();
        let target = Target { qp, port };
        if let Some(TransferConfig { contexts, .. }) = self.config.transfers {
            // SAFETY: The queue pair was made above, and nobody else knows it yet.
            if let Some(forced) = unsafe { Forced::detect(target, contexts)? } {
                self.forced.populate(forced);
            }
        }
        let handlers = Handlers {
            done: Self::send_done,
            read_done: Self::read_done,
            read_failed: Self::read_failed,
        };
        // SAFETY: The queue pair stays until both queues were closed, by `shutdown`. It has one
        // entry more than the ring has slots. The callbacks are for entries of this ring.
        unsafe { self.send.lock().open(target, lkey, send_cq, &handlers)? };
        // SAFETY: The queue pair stays until both queues were closed, by `shutdown`. It has one entry
        // more than there can be Receives. The callback is for entries of this queue.
        unsafe { self.recv.lock().open(qp, lkey, recv_cq, Self::receive_done) };
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

    /// Accepts the connection that the id was made for. May sleep.
    pub(crate) fn accept(&self, params: &AcceptParams<'_>) -> Result {
        match &*self.hardware.lock() {
            Some(hw) => hw.id().accept(params),
            None => Err(ENOTCONN),
        }
    }

    /// Starts to disconnect: the peer learns of it, and work requests are flushed. May sleep.
    ///
    /// An error says only that there was no connection.
    pub(crate) fn disconnect(&self) -> Result {
        match &*self.hardware.lock() {
            Some(hw) => hw.id().disconnect(),
            None => Err(ENOTCONN),
        }
    }

    /// Takes a buffer to send from. May sleep.
    ///
    /// `EAGAIN` when none can be had now: [`Handler::send_space`] is called when that changes.
    /// `ENOTCONN` when the connection is going.
    #[inline]
    pub(crate) fn send_buffer(&self) -> Result<SendBuffer<'_, H>> {
        SendBuffer::take(self)
    }

    /// Takes a buffer to send from, if one can be had without sleeping.
    pub(crate) fn pooled_send_buffer(&self) -> Option<SendBuffer<'_, H>> {
        SendBuffer::take_pooled(self)
    }

    pub(super) fn make_send_buffer(&self) -> Result<DmaBuffer> {
        let _scope = self.handler.memory_scope();
        let device = self.device().ok_or(ENOTCONN)?;
        // SAFETY: The buffer goes to the send queue, which `shutdown` empties before it lets the
        // device go; it waits for posters before that.
        let buffer = unsafe { DmaBuffer::new(device, self.config.send_size, Direction::ToDevice) };
        let mut buffer = buffer.inspect_err(|e| trace::no_buffer(H::ROLE, *e))?;
        buffer.id = self.send.lock().next_id();
        Ok(buffer)
    }

    fn device(&self) -> Option<NonNull<bindings::ib_device>> {
        self.hardware.lock().as_ref()?.id().device().ok()
    }

    /// The protection domain and its device.
    fn domain(&self) -> Result<(NonNull<bindings::ib_pd>, NonNull<bindings::ib_device>)> {
        let hardware = self.hardware.lock();
        let hw = hardware.as_ref().ok_or(ENOTCONN)?;
        Ok((hw.pd().ok_or(ENOTCONN)?, hw.id().device()?))
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
        let (pd, device) = self.domain()?;
        // SAFETY: Both are valid, and stay so until `shutdown` has deregistered all regions of the
        // table; it waits for posters before it begins to let them go.
        let mr = unsafe { Mr::new(pd, device, self.config.region_pages, self.config.sg_gaps) };
        let mr = mr.inspect_err(trace::not_made)?;
        let added = self.send.lock().add_region(mr.clone());
        added.inspect_err(|_| trace::deregister(&mr))
    }

    /// Makes and registers room for XDR padding behind results. To be called once, when the
    /// connection is up and nobody sends yet: what is sent later finds it registered. May sleep.
    ///
    /// On an error the connection is to be dropped.
    pub(crate) fn provide_padding(&self) -> Result {
        // Not under the lock of `hardware`; see `make_region`.
        let _poster = Poster::enter(self)?;
        let (pd, device) = self.domain()?;
        // SAFETY: Both are valid, and stay so until `shutdown` has deregistered the padding; it waits for
        // posters before it begins to let them go.
        let (padding, mapped) = unsafe { Padding::new(pd, device)? };
        // Whatever comes of the post, the tear-down finds it.
        if !self.padding.populate(padding) {
            return Err(EINVAL);
        }
        // The lock is to be let go before the poster is.
        let mut send = self.send.lock();
        let posted = send.post_registration(&mapped);
        // It counts as registered, and nobody shall ever invalidate it, or has the right to.
        drop(mapped.posted());
        posted
    }

    /// How a Write chunk names room for `len` bytes of XDR padding, for a task. None if that was not
    /// provided, or is not needed.
    pub(crate) fn padding(&self, len: usize, task: impl Fn() -> TaskId) -> Option<Segment> {
        let padding = self.padding.as_ref().filter(|_| len != 0)?;
        events::xprtrdma_chunk_wp(|| (task(), padding.covered(len).into(), true));
        Some(segment(padding.key(len)))
    }

    /// How many regions are idle.
    pub(crate) fn idle_regions(&self) -> usize {
        self.send.lock().idle_regions()
    }

    /// Makes receive buffers until there are `want`. May sleep.
    pub(crate) fn grow_receives(&self, want: u32) -> Result {
        let missing = self.recv.lock().missing(want);
        if missing == 0 {
            return Ok(());
        }
        // Not under the lock of `hardware`; see `make_region`.
        let _poster = Poster::enter(self)?;
        let _scope = self.handler.memory_scope();
        let device = self.device().ok_or(ENOTCONN)?;
        for _ in 0..missing {
            let size = self.config.receive_size;
            // SAFETY: The buffer goes to the receive queue, which `shutdown` empties before it
            // lets the device go; it waits for posters before that.
            let buffer = unsafe { DmaBuffer::new(device, size, Direction::FromDevice) };
            let buffer = buffer.inspect_err(|e| trace::no_buffer(H::ROLE, *e))?;
            let added = self.recv.lock().add(buffer);
            if let Err(buffer) = added {
                drop(buffer);
                break;
            }
        }
        Ok(())
    }

    /// From here on no more than `wanted` receive buffers are kept, as they come back to
    /// [`Self::post_receive_batch`] and [`Self::return_receive`]; that each of them can be posted is up to
    /// [`Self::grow_receives`]. Does not sleep.
    pub(crate) fn want_receives(&self, wanted: u32) {
        self.recv.lock().wanted = wanted;
    }

    /// Posts all receive buffers that are free, if they are at least `batch`, or gives one up that
    /// is not wanted any more. Returns how many received messages are being kept. May sleep.
    ///
    /// On an error the connection is to be dropped.
    pub(crate) fn post_receive_batch(&self, batch: usize) -> Result<u32> {
        let mut recv = self.recv.lock();
        if recv.has_surplus() {
            drop(recv);
            self.give_up_receive();
            recv = self.recv.lock();
        }
        recv.post_batch(batch, |id| trace::receive_posted(H::ROLE, id))?;
        Ok(recv.kept)
    }

    /// Gives the buffer of a message back, and then is [`Self::post_receive_batch`].
    pub(crate) fn return_receive(&self, message: KeptReceive<H>, batch: usize) -> Result<u32> {
        let Some(index) = message.into_index(self) else {
            return self.post_receive_batch(batch);
        };
        let mut recv = self.recv.lock();
        let last = recv.give_back(index);
        if last || recv.has_surplus() {
            drop(recv);
            self.given_back(last);
            return self.post_receive_batch(batch);
        }
        recv.post_batch(batch, |id| trace::receive_posted(H::ROLE, id))?;
        Ok(recv.kept)
    }

    /// A buffer was given back; whether it was the `last` one whom the tear-down waits for.
    pub(super) fn given_back(&self, last: bool) {
        if last {
            self.kept_left.complete_all();
        }
    }

    fn give_up_receive(&self) {
        // A tear-down waits for who has a buffer in hand.
        let Ok(_poster) = Poster::enter(self) else {
            return;
        };
        let surplus = self.recv.lock().vacate();
        drop(surplus);
    }

    /// Posts receive buffers until `want` are posted, as far as there are buffers. Returns how
    /// many that were.
    pub(crate) fn post_receives(&self, want: u32) -> Result<u32> {
        let mut recv = self.recv.lock();
        recv.post(want, |id| trace::receive_posted(H::ROLE, id))
    }

    /// What trace events say of the receive queue: the number of its completion queue, and how
    /// many Receives are posted.
    pub(crate) fn receive_queue(&self) -> (u32, u32) {
        self.recv.lock().number_and_posted()
    }

    /// How regions are taken for transfers, if the core registers memory for all.
    pub(super) fn forced(&self) -> Option<&Arc<Forced>> {
        self.forced.as_ref()
    }

    /// Whether nobody may post any more but invalidations.
    pub(super) fn is_ending(&self) -> bool {
        !self.send.lock().ring.is_open()
    }

    /// A transfer between `memory` and at most `parts` segments of the peer. May sleep.
    pub(crate) fn transfer(
        &self,
        kind: TransferKind,
        memory: Gathered,
        parts: usize,
    ) -> Result<NewTransfer<'_, H>> {
        NewTransfer::new(self, kind, memory, parts)
    }

    /// Has it posted, now or when its turn comes. After an error it was not, and will not be.
    #[inline(always)]
    pub(super) fn submit(poster: Poster<'_, H>, work: Work<H::Cookie>) -> Result {
        let owner = poster.owner();
        match poster.post(|queue| queue.submit(work)) {
            Ok(Turn::Posted) => Ok(()),
            Ok(Turn::Waits) => {
                owner.handler.starved();
                Ok(())
            }
            // Nobody knows what of it the device has: it comes back with the tear-down.
            Ok(Turn::Failed) => {
                owner.handler.failed(Failure::post());
                Ok(())
            }
            Err(((e, work), poster)) => {
                // Outside the lock, and before the poster leaves.
                match work {
                    Work::Reply(reply) => {
                        drop(reply.transfer);
                        owner.send.lock().give_back_buffer(reply.buffer);
                    }
                    Work::Read(read) => drop(read),
                }
                drop(poster);
                Err(e)
            }
        }
    }

    /// A poster has left; whether it was the `last` one whom the tear-down waits for.
    pub(super) fn poster_left(&self, last: bool) {
        if last {
            self.posters_left.complete_all();
        }
    }

    /// Whether something waits for room in the send queue. [`Handler::send_space`] is called when
    /// that changes.
    pub(crate) fn is_send_queue_full(&self) -> bool {
        self.send.lock().has_waiting()
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
