// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! A reliable connection: queue pair, completion queues, protection domain, and all that they use.

mod completions;
mod event;
mod regions;
mod tear_down;
#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
mod tests;

pub(crate) use self::event::QpEvent;

use crate::kapi::{
    ib::{
        buffer::DmaBuffer,
        cm::{
            CmHandler,
            CmId,
            ConnectParams, //
        },
        gate::{
            Gate,
            Objects,
            Poster,
            Target, //
        },
        mr::{
            Covered,
            Mr, //
        },
        qp_resources::{
            Part,
            QpResources,
            QpSizes,
            Queues, //
        },
        recv_queue::{
            Received,
            Receives,
            RecvBuf,
            RecvQueue, //
        },
        ring::{
            Handlers,
            Reading,
            Ring,
            RingMut,
            SendDone, //
        },
        rw::{
            RwCtx,
            TransferKind, //
        },
        wc::Wc, //
    },
    page::TransferMemory,
    sys::completion::Completion, //
};
use core::{
    ops::{
        Deref,
        DerefMut, //
    },
    ptr::NonNull, //
};
use kernel::{
    alloc::Flags,
    dma::DataDirection,
    new_mutex, new_spinlock,
    prelude::*,
    sync::{
        Arc,
        Mutex,
        SetOnce,
        SpinLock,
        SpinLockGuard, //
    },
};

/// The reason why there is no queue pair.
pub(crate) enum NotMade<E: CmHandler> {
    /// The device refuses a size, and may take a lesser one. The id is as it was.
    Refused(CmId<E>, Part, Error),
    /// The core was told to register memory for all RDMA (`ib_core.force_mr`).
    Forced,
    /// Something else was wrong, with that part if there is one.
    Failed(Option<Part>, Error),
}

impl<E: CmHandler> From<Error> for NotMade<E> {
    fn from(e: Error) -> Self {
        Self::Failed(None, e)
    }
}

/// The user of a queue pair, and what it is told.
///
/// But for the tear-down's steps and [`Self::event`], all are called in process context, from the
/// work queue of the completion queues: they must not sleep on memory, nor disconnect, nor wait for
/// the tear-down.
pub(crate) trait Consumer: Sized + Send + Sync + 'static {
    /// Receives the events of the id.
    type Cm: CmHandler;
    /// The part of the user under the lock of the send queue.
    type Queue: Send + 'static;
    /// The property of a slot of the send queue beside memory.
    type Posted: Send + 'static;
    /// The property of the RDMA Reads of a transfer.
    type Read: Send + 'static;

    /// Notes that a request has failed. Called for each, before anything that it had is taken out
    /// of its queue, by this worker or the other's.
    fn failing(&self, qp: &QueuePair<Self>);
    /// Retires requests of the send queue: one has completed that was signaled, or has failed. What
    /// is up to it can be retired, under this lock. RDMA Reads excepted.
    fn sent(&self, queue: Locked<'_, Self>, done: SendDone);
    /// Takes a transfer back whose last RDMA Read has completed; its memory was taken from the
    /// device.
    fn read(&self, qp: &QueuePair<Self>, reading: Reading<Self::Read>, wc: Wc);
    /// Notes that one before the last has failed; its transfer is at that place of [`Ring::reads`].
    fn read_failed(&self, queue: Locked<'_, Self>, place: usize, wc: Wc);
    /// Handles a message.
    fn received(&self, qp: &QueuePair<Self>, message: Received<'_>);
    /// Notes that the Receive with that buffer failed.
    fn receive_failed(&self, qp: &QueuePair<Self>, index: u32, wc: Wc);
    /// Traces a Receive with that buffer that is about to be posted, under the lock of its queue.
    fn posting_receive(&self, qp: &QueuePair<Self>, index: u32);
    /// Handles an event of the queue pair. Any context, also with interrupts off.
    fn event(&self, event: &QpEvent<'_>);
    /// Notes that a region was taken from the device, or that this failed. May sleep.
    fn deregistered(&self, covered: Covered, result: Result);
    /// Takes a step of the tear-down. In its own context; may sleep.
    fn step(&self, qp: &QueuePair<Self>, step: Step<'_, Self>);
}

/// A step of the tear-down, in their order.
pub(crate) enum Step<'a, C: Consumer> {
    /// Nobody may post anything but local invalidations any more. Whoever covers memory or makes
    /// something is waited for, and, when the queues are drained, transfers are.
    Closing,
    /// The peer was told of the end, unless there was no connection.
    Disconnected(Result),
    /// Nothing is posted any more, the device uses nothing: all can be retired, under this lock.
    Flushed(Locked<'a, C>, SendDone),
    /// RDMA Reads whose end was not told.
    ReadFlushed(Reading<C::Read>),
    /// Nothing will be received any more: what was kept of it must go, it is waited for.
    Drained,
    /// All regions are dead: no peer can reach what they covered. Buffers must go: they are waited
    /// for.
    Fenced(Locked<'a, C>),
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
pub(crate) struct QueuePair<C: Consumer> {
    #[pin]
    send: SpinLock<SendQueue<C>>,
    #[pin]
    recv: Receives,
    #[pin]
    hardware: Mutex<Option<QpResources<C::Cm>>>,
    #[pin]
    gate: Gate,
    #[pin]
    ended: Completion,
    sizes: QpSizes,
    /// The number that the resource tracker has given to the completion queue for sending.
    send_cq: SetOnce<u32>,
    #[pin]
    consumer: C,
}

/// The data under the lock of the send queue.
struct SendQueue<C: Consumer> {
    ring: Ring<C::Posted, C::Read>,
    /// All of this queue pair.
    regions: KVec<Arc<Mr>>,
    /// The tear-down has begun.
    ending: bool,
    queue: C::Queue,
}

// Nothing of it has to stay where it is.
impl<C: Consumer> Unpin for SendQueue<C> {}

/// The lock of the send queue: the right to post, and what the user has under it.
pub(crate) struct Locked<'a, C: Consumer> {
    qp: &'a QueuePair<C>,
    guard: SpinLockGuard<'a, SendQueue<C>>,
}

impl<'a, C: Consumer> Locked<'a, C> {
    /// Returns the queue pair whose queue it is.
    pub(crate) fn qp(&self) -> &'a QueuePair<C> {
        self.qp
    }

    /// Returns what is posted.
    pub(crate) fn ring(&self) -> &Ring<C::Posted, C::Read> {
        &self.guard.ring
    }

    /// Returns the right to post.
    pub(crate) fn ring_mut(&mut self) -> RingMut<'_, C::Posted, C::Read> {
        RingMut(&mut self.guard.ring)
    }

    /// Returns the right to post, and what the user has beside that.
    pub(crate) fn parts(&mut self) -> (RingMut<'_, C::Posted, C::Read>, &mut C::Queue) {
        let SendQueue { ring, queue, .. } = &mut *self.guard;
        (RingMut(ring), queue)
    }
}

impl<C: Consumer> Deref for Locked<'_, C> {
    type Target = C::Queue;

    fn deref(&self) -> &C::Queue {
        &self.guard.queue
    }
}

impl<C: Consumer> DerefMut for Locked<'_, C> {
    fn deref_mut(&mut self) -> &mut C::Queue {
        &mut self.guard.queue
    }
}

impl<C: Consumer> QueuePair<C> {
    /// Creates a queue pair on an id whose address and route are resolved. May sleep.
    pub(crate) fn new(
        id: CmId<C::Cm>,
        sizes: QpSizes,
        queue: C::Queue,
        consumer: impl PinInit<C>,
    ) -> Result<Arc<Self>, NotMade<C::Cm>> {
        let slots = sizes.max_send_wr.checked_sub(1).ok_or(EINVAL)?;
        // Behind the registrations there is a Send, or several.
        let chain = sizes
            .max_regs
            .saturating_add(sizes.more_sends)
            .saturating_add(1);
        let (number, node) = (Gate::next_number(), id.node()?);
        let handlers = Handlers {
            done: Self::send_done,
            read_done: Self::read_done,
            read_failed: Self::read_failed,
        };
        let send = SendQueue {
            ring: Ring::new(number, (slots, chain, sizes.max_reads), &handlers, node)?,
            regions: KVec::new(),
            ending: false,
            queue,
        };
        let recv = RecvQueue::new(sizes.max_recv_wr, Self::receive_done, node)?;
        let qp = Arc::pin_init(
            pin_init!(Self {
                send <- new_spinlock!(send, "rpcrdma_send_queue"),
                recv <- Receives::new(number, recv),
                hardware <- new_mutex!(None, "rpcrdma_hardware"),
                gate <- Gate::new(number),
                ended <- Completion::new(),
                sizes,
                send_cq: SetOnce::new(),
                consumer <- consumer,
            }),
            GFP_KERNEL,
        )?;
        qp.bring_up(id)?;
        Ok(qp)
    }

    /// Creates the objects and opens the queues. On an error dropping `self` undoes it.
    fn bring_up(&self, id: CmId<C::Cm>) -> Result<(), NotMade<C::Cm>> {
        let mut hw = QpResources::new(id);
        let context: *const Self = self;
        let context = context.cast_mut().cast();
        // SAFETY: While `self` is borrowed `hw` is let go, given back or put into the field below,
        // whose queues are destroyed before `self` goes.
        let queues = unsafe { hw.make_queues(context, Self::device_event, &self.sizes) };
        let tried = queues.and_then(|queues| {
            let tried = self.try_region(&hw);
            tried.map(|()| queues).map_err(|e| (Part::Region, e))
        });
        match tried {
            Ok(queues) => self.open(hw, queues),
            // Drivers say so of sizes that they do not like, or have no memory for.
            Err((part, e @ (ENOMEM | EINVAL))) => Err(NotMade::Refused(hw.into_id(), part, e)),
            Err((part, e)) => Err(NotMade::Failed(Some(part), e)),
        }
    }

    /// Opens the queues. On an error dropping `self` undoes it.
    fn open(&self, hw: QpResources<C::Cm>, queues: Queues) -> Result<(), NotMade<C::Cm>> {
        let mut guard = self.hardware.lock();
        let hw = guard.insert(hw);
        let (device, port) = hw.id().device_port()?;
        let Queues { qp, lkey, .. } = queues;
        let target = Target { qp, port };
        let objects = Objects {
            target,
            pd: hw.pd().ok_or(ENODEV)?,
            device,
            id: NonNull::new(hw.id().as_raw()),
        };
        // A queue pair comes up once.
        self.send_cq.populate(queues.send_cq);
        // SAFETY: `shutdown` waits for all that is counted there before it lets them go. Where the
        // queue pair does not come up, nothing is counted any more when this returns.
        unsafe { self.gate.open(objects) };
        if self.sizes.max_reads != 0 && RwCtx::is_forced(&self.gate)? {
            return Err(NotMade::Forced);
        }
        // SAFETY: The queue pair stays until both queues were closed, by `shutdown`. It has one
        // entry more than the ring has slots. The callbacks are for entries of this ring.
        unsafe { self.send.lock().ring.open(target, lkey) };
        // SAFETY: The queue pair stays until both queues were closed, by `shutdown`. It has one
        // entry more than there can be Receives. The callback is for entries of this queue.
        unsafe { self.recv.open(target, lkey, queues.recv_cq) };
        Ok(())
    }

    /// Returns its user.
    pub(crate) fn consumer(&self) -> &C {
        &self.consumer
    }

    /// Returns its number. No other queue pair has it, or ever had, while the module is loaded. Not
    /// 0.
    pub(crate) fn number(&self) -> u64 {
        self.gate.number()
    }

    /// Returns the resource tracker's numbers of the completion queues, that for sending first.
    pub(crate) fn cqs(&self) -> (u32, u32) {
        (self.send_cq.copy().unwrap_or(0), self.recv.cq())
    }

    /// Takes the lock of the send queue.
    pub(crate) fn lock(&self) -> Locked<'_, C> {
        Locked {
            qp: self,
            guard: self.send.lock(),
        }
    }

    /// Makes the tear-down wait as long as the result is there. `ENOTCONN` when it has begun.
    pub(crate) fn enter(&self) -> Result<Poster<'_>> {
        self.gate.enter()
    }

    /// Calls a function of the id. `ENOTCONN` when that is gone. May sleep.
    fn with_id(&self, call: impl FnOnce(&CmId<C::Cm>) -> Result) -> Result {
        match &*self.hardware.lock() {
            Some(hw) => call(hw.id()),
            None => Err(ENOTCONN),
        }
    }

    /// Starts to connect; the outcome comes as an event of the id. May sleep.
    pub(crate) fn connect(&self, params: &ConnectParams<'_>) -> Result {
        self.with_id(|id| id.connect(params))
    }

    /// Accepts the connection that the id was made for. May sleep.
    pub(crate) fn accept(&self, params: &ConnectParams<'_>) -> Result {
        self.with_id(|id| id.accept(params))
    }

    /// Starts to disconnect: the peer learns of it, and work requests are flushed. May sleep.
    ///
    /// An error says only that there was no connection.
    pub(crate) fn disconnect(&self) -> Result {
        self.with_id(CmId::disconnect)
    }

    /// Makes a transfer of at most `parts` parts. May sleep, as `flags` say. `ENOTCONN` when the
    /// tear-down has begun, `EINVAL` for RDMA Reads into memory that others have, too.
    pub(crate) fn alloc_rw_ctx(
        &self,
        kind: TransferKind,
        memory: TransferMemory,
        parts: usize,
        flags: Flags,
    ) -> Result<KBox<RwCtx>> {
        RwCtx::new(&self.gate, kind, memory, (parts, flags))
    }

    /// Returns the number of receive buffers that are missing for `want` to be there in all.
    pub(crate) fn missing_receives(&self, want: u32) -> u32 {
        self.recv.queue.lock().missing(want)
    }

    /// Adds a receive buffer. Gives it back when there is no room, or it is another queue pair's,
    /// or one to send from.
    pub(crate) fn add_receive(&self, buffer: DmaBuffer) -> Result<(), DmaBuffer> {
        if !buffer.is_for(self.number(), DataDirection::FromDevice) {
            return Err(buffer);
        }
        self.recv.queue.lock().add(buffer)
    }

    /// Sets the number of receive buffers to keep, as they come back to
    /// [`Self::post_receive_batch`]; that each of them can be posted is up to
    /// [`Self::add_receive`]. Does not sleep.
    pub(crate) fn want_receives(&self, wanted: u32) {
        self.recv.queue.lock().wanted = wanted;
    }

    /// Posts all free receive buffers, as [`RecvQueue::post_batch`], or gives one up that is not
    /// wanted any more. Returns the number of received messages that are kept. May sleep.
    ///
    /// On an error the connection is to be dropped.
    pub(crate) fn post_receive_batch(&self, batch: usize) -> Result<u32> {
        let mut queue = self.recv.queue.lock();
        if let Some(surplus) = queue.vacate() {
            drop(queue);
            drop(surplus);
            queue = self.recv.queue.lock();
        }
        queue.post_batch(batch, |index| self.consumer.posting_receive(self, index))?;
        Ok(queue.kept)
    }

    /// Returns the number of received messages that are kept. Any context that may take a spin
    /// lock.
    pub(crate) fn kept_receives(&self) -> u32 {
        self.recv.queue.lock().kept
    }

    /// Gives the buffer of a message back, and posts as [`Self::post_receive_batch`] does.
    pub(crate) fn return_receive(&self, message: RecvBuf, batch: usize) -> Result<u32> {
        drop(message);
        self.post_receive_batch(batch)
    }

    /// Posts receive buffers until `want` are posted, as far as there are buffers. Returns their
    /// number.
    pub(crate) fn post_receives(&self, want: u32) -> Result<u32> {
        let mut queue = self.recv.queue.lock();
        queue.post(want, |index| self.consumer.posting_receive(self, index))
    }

    /// Returns the number of Receives that are posted.
    pub(crate) fn posted_receives(&self) -> u32 {
        self.recv.queue.lock().posted()
    }
}

#[pinned_drop]
impl<C: Consumer> PinnedDrop for QueuePair<C> {
    fn drop(self: Pin<&mut Self>) {
        self.shutdown();
        // One that did not come up all the way has no open queues, but may have hardware.
        let hardware = self.hardware.lock().take();
        drop(hardware);
    }
}
