// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The receive queue: buffers that belong to the adapter from post to completion.

#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
mod tests;

use crate::kapi::{
    bindings,
    ib::{
        buffer::DmaBuffer,
        device::DeviceLimits,
        gate::Target,
        node::Node,
        region::InvalidatedKey,
        ring::Done, //
    },
    sys::{
        completion::Completion,
        stable::StableBytes, //
    },
};
use core::{
    cell::Cell,
    ops::Deref,
    ptr::NonNull, //
};
use kernel::{
    error::to_result,
    new_spinlock,
    prelude::*,
    sync::{
        SetOnce,
        SpinLock, //
    },
};

/// A Receive: its buffer, and all that is posted of it, which is written once. The completion entry
/// comes first, so that a pointer to it is one to the slot.
#[repr(C)]
pub(super) struct Slot {
    entry: bindings::ib_cqe,
    request: bindings::ib_recv_wr,
    element: bindings::ib_sge,
    buffer: Option<DmaBuffer>,
}

/// The receive queue of a queue pair, with what its tear-down waits for.
#[pin_data]
pub(super) struct Receives {
    /// The number of the queue pair.
    owner: u64,
    /// The number that the resource tracker has given to the completion queue.
    cq: SetOnce<u32>,
    /// The answer of the device to [`DeviceLimits::checks_keys`].
    checks_keys: SetOnce<bool>,
    #[pin]
    pub(super) queue: SpinLock<RecvQueue>,
    #[pin]
    left: Completion,
}

impl Receives {
    pub(super) fn new(owner: u64, queue: RecvQueue) -> impl PinInit<Self> {
        pin_init!(Self {
            owner,
            cq: SetOnce::new(),
            checks_keys: SetOnce::new(),
            queue <- new_spinlock!(queue, "rpcrdma_recv_queue"),
            left <- Completion::new(),
        })
    }

    /// Lets posters in.
    ///
    /// # Safety
    ///
    /// As [`RecvQueue::open`], of the queue pair of `target`.
    pub(super) unsafe fn open(&self, Target { qp, port }: Target, lkey: u32, cq: u32) {
        // SAFETY: The queue pair is valid, and so is its device, of which the port is one.
        let limits = unsafe { DeviceLimits::of((*qp).device, port) };
        // A queue pair comes up once.
        self.cq.populate(cq);
        self.checks_keys.populate(limits.checks_keys());
        // SAFETY: The caller promises what that asks for.
        unsafe { self.queue.lock().open(qp, lkey) };
    }

    /// Returns the number of the completion queue.
    pub(super) fn cq(&self) -> u32 {
        self.cq.copy().unwrap_or(0)
    }

    /// Returns what was received into the buffer whose completion entry is at `entry`: `received`
    /// bytes, or as many as it has.
    ///
    /// # Safety
    ///
    /// The Receive of that entry must have completed, and this be called once for that. The queue
    /// pair must stay until [`Self::wait`] has returned.
    pub(super) unsafe fn complete(
        &self,
        entry: *const bindings::ib_cqe,
        received: usize,
    ) -> Option<RecvBuf> {
        let (index, data) = self.queue.lock().complete(entry, received)?;
        let owner = NonNull::from(self);
        // INVARIANT: Counted there, and not the device's any more.
        Some(RecvBuf { owner, data, index })
    }

    /// Waits until all received messages that were kept are given back. Sleeps.
    pub(super) fn wait(&self) {
        let mut queue = self.queue.lock();
        queue.ending = true;
        let kept = queue.kept;
        drop(queue);
        if kept != 0 {
            self.left.wait();
        }
    }
}

/// The receive buffers of a queue pair.
///
/// # Invariants
///
/// - No slot moves: the vector has the capacity for all from the start. The request of one with a
///   buffer names its own entry and element.
/// - An index is in `vacant`, and then there is no buffer, or in `free`, or posted, or that of a
///   [`RecvBuf`], never two of them. `posted` counts those posted, `kept` those of a [`RecvBuf`].
/// - `qp` is valid while `open`.
pub(super) struct RecvQueue {
    qp: *mut bindings::ib_qp,
    lkey: u32,
    pub(super) open: bool,
    done: Done,
    limit: u32,
    /// Buffers beyond these are given up when they come back.
    pub(super) wanted: u32,
    slots: KVVec<Slot>,
    free: KVVec<u32>,
    vacant: KVVec<u32>,
    posted: u32,
    pub(super) kept: u32,
    /// The tear-down waits for those that are kept.
    pub(super) ending: bool,
}

// SAFETY: The raw pointers are to objects of ib_core that may be used from any thread, and are
// used under the lock that holds this object.
unsafe impl Send for RecvQueue {}

impl RecvQueue {
    /// Makes room on `node` for `limit` buffers, whose completions `done` is told of. The queue is
    /// closed until [`Self::open`]. May sleep.
    pub(super) fn new(limit: u32, done: Done, node: Node) -> Result<Self> {
        let n = limit as usize;
        Ok(Self {
            qp: core::ptr::null_mut(),
            lkey: 0,
            open: false,
            done,
            limit,
            wanted: u32::MAX,
            slots: node.room_for(n)?,
            free: node.room_for(n)?,
            vacant: node.room_for(n)?,
            posted: 0,
            kept: 0,
            ending: false,
        })
    }

    /// Lets posters in.
    ///
    /// # Safety
    ///
    /// `qp` must be valid, with a receive queue of more entries than `limit`, until `open` is
    /// false. `done` must expect completions of this queue's entries.
    pub(super) unsafe fn open(&mut self, qp: *mut bindings::ib_qp, lkey: u32) {
        self.qp = qp;
        self.lkey = lkey;
        self.open = true;
    }

    /// Returns the number of buffers that are missing for `want` to be there in all.
    pub(super) fn missing(&self, want: u32) -> u32 {
        want.min(self.limit).saturating_sub(self.made())
    }

    /// Returns the number of buffers.
    fn made(&self) -> u32 {
        self.slots.len().saturating_sub(self.vacant.len()) as u32
    }

    /// Adds a buffer; gives it back when there is no room.
    pub(super) fn add(&mut self, mut buffer: DmaBuffer) -> Result<(), DmaBuffer> {
        let vacant = self.vacant.pop();
        let index = vacant.map_or(self.slots.len(), |index| index as usize);
        if index >= self.limit as usize {
            return Err(buffer);
        }
        if index == self.slots.len() {
            // There is the capacity for `limit` of them, so this does not fail.
            let _ = self.slots.push_within_capacity(Slot {
                entry: bindings::ib_cqe {
                    done: Some(self.done),
                },
                request: bindings::ib_recv_wr::default(),
                element: bindings::ib_sge::default(),
                buffer: None,
            });
        }
        buffer.id = index as u32;
        let lkey = self.lkey;
        let Some(slot) = self.slots.get_mut(index) else {
            return Err(buffer);
        };
        slot.element = bindings::ib_sge {
            addr: buffer.dma_addr(),
            length: buffer.len() as u32,
            lkey,
        };
        // INVARIANT: Both are of this slot.
        slot.request.sg_list = &mut slot.element;
        slot.request.num_sge = 1;
        slot.request.__bindgen_anon_1.wr_cqe = &mut slot.entry;
        slot.buffer = Some(buffer);
        let _ = self.free.push_within_capacity(index as u32);
        Ok(())
    }

    /// Takes out a free buffer, if there are more than are wanted.
    pub(super) fn vacate(&mut self) -> Option<DmaBuffer> {
        if self.made() <= self.wanted {
            return None;
        }
        let index = self.free.pop()?;
        let buffer = self.slots.get_mut(index as usize)?.buffer.take();
        let _ = self.vacant.push_within_capacity(index);
        buffer
    }

    /// Posts free buffers until `want` are posted, in one call; `each` is told of each before.
    /// Returns their number.
    ///
    /// On an error the connection is to be dropped.
    pub(super) fn post(&mut self, want: u32, each: impl Fn(u32)) -> Result<u32> {
        if !self.open {
            return Err(ENOTCONN);
        }
        let mut first: *mut bindings::ib_recv_wr = core::ptr::null_mut();
        let mut count = 0;
        while self.posted + count < want {
            let Some(index) = self.free.pop() else { break };
            let Some(slot) = self.slots.get_mut(index as usize) else {
                break;
            };
            let Some(buffer) = &slot.buffer else { break };
            each(index);
            buffer.sync_for_device(buffer.len());
            slot.request.next = first;
            first = &mut slot.request;
            count += 1;
        }
        if first.is_null() {
            return Ok(0);
        }
        let mut bad: *const bindings::ib_recv_wr = core::ptr::null();
        // SAFETY: The queue pair is valid while open. The chain ends with a null `next`, and its
        // slots, with the buffers, stay until the queue pair is gone.
        let result = to_result(unsafe { bindings::ib_post_recv(self.qp, first, &mut bad) });
        // INVARIANT: What the device took is counted as posted, the rest is free again. Without
        // a word on which failed, it is supposed to have them all.
        self.posted += count;
        if result.is_err() {
            while !bad.is_null() {
                let offset = bad as usize - self.slots.as_ptr() as usize;
                let i = offset / core::mem::size_of::<Slot>();
                // SAFETY: `bad` is one of the requests of the chain, which is still linked.
                bad = unsafe { (*bad).next };
                let _ = self.free.push_within_capacity(i as u32);
                self.posted -= 1;
            }
        }
        result.map(|()| count)
    }

    /// Returns the number of Receives that are posted.
    pub(super) fn posted(&self) -> u32 {
        self.posted
    }

    /// Posts all free buffers, as [`Self::post`], if they are at least `batch`, or if fewer are
    /// posted: the peer may be about to wait for them.
    pub(super) fn post_batch(&mut self, batch: usize, each: impl Fn(u32)) -> Result {
        if self.free.len() < batch && self.posted as usize >= batch || !self.open {
            return Ok(());
        }
        self.post(u32::MAX, each).map(|_| ())
    }

    /// Takes the buffer whose completion entry is at `entry` from the device. Returns its index,
    /// and its bytes, `received` of them at most.
    fn complete(
        &mut self,
        entry: *const bindings::ib_cqe,
        received: usize,
    ) -> Option<(u32, NonNull<[u8]>)> {
        let offset = (entry as usize).checked_sub(self.slots.as_ptr() as usize)?;
        let index = offset / core::mem::size_of::<Slot>();
        let buffer = self.slots.get(index)?.buffer.as_ref()?;
        // INVARIANT: It is for a `RecvBuf`.
        self.posted = self.posted.saturating_sub(1);
        self.kept += 1;
        let len = received.min(buffer.len());
        if len != 0 {
            buffer.sync_for_cpu(len);
        }
        Some((
            index as u32,
            NonNull::slice_from_raw_parts(buffer.data(), len),
        ))
    }

    /// Takes the buffer of a received message back. Returns whether the tear-down waits for it.
    fn put(&mut self, index: u32) -> bool {
        let _ = self.free.push_within_capacity(index);
        self.kept -= 1;
        self.ending && self.kept == 0
    }

    /// Takes all buffers, for tear-down: the queue pair is gone.
    pub(super) fn take_all(&mut self) -> KVVec<Slot> {
        self.free.clear();
        self.vacant.clear();
        core::mem::take(&mut self.slots)
    }
}

/// A received message, with the buffer that it is in. Dropping it gives the buffer back, for
/// another Receive; tear-down waits for that.
///
/// # Invariants
///
/// - It is counted in `kept` of the queue pair's receive queue, so that is valid.
/// - `data` is in the buffer `index`, which nobody else uses.
pub(crate) struct RecvBuf {
    owner: NonNull<Receives>,
    data: NonNull<[u8]>,
    index: u32,
}

// SAFETY: The queue pair may be used from any thread; the bytes are ours.
unsafe impl Send for RecvBuf {}

impl RecvBuf {
    /// Returns the number of its buffer.
    pub(crate) fn index(&self) -> u32 {
        self.index
    }

    fn owner(&self) -> &Receives {
        // SAFETY: Valid by the type invariant: the tear-down waits for this.
        unsafe { self.owner.as_ref() }
    }

    /// Returns the number of its completion queue.
    pub(crate) fn cq(&self) -> u32 {
        self.owner().cq()
    }

    /// Returns the bytes received. They stay where they are if this is moved.
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: By the type invariant.
        unsafe { self.data.as_ref() }
    }
}

// SAFETY: The bytes are in a receive buffer, which does not move and is nobody else's.
unsafe impl StableBytes for RecvBuf {
    fn memory(&self) -> NonNull<[u8]> {
        self.data
    }
}

impl Drop for RecvBuf {
    fn drop(&mut self) {
        let owner = self.owner();
        // The lock is let go before whoever waits lets the queue go.
        let last = owner.queue.lock().put(self.index);
        if last {
            owner.left.complete_all();
        }
    }
}

/// A received message, in the completion handler, with what its completion says beside.
pub(crate) struct Received<'a> {
    message: RecvBuf,
    has_invalidated: bool,
    invalidated: Cell<Option<InvalidatedKey<'a>>>,
}

impl Received<'_> {
    /// Adds the key that the completion says was invalidated.
    ///
    /// # Safety
    ///
    /// It must be the completion of that message, of which nobody else has made this.
    pub(super) unsafe fn new(message: RecvBuf, key: Option<u32>) -> Self {
        let owner = message.owner();
        let checked = key.filter(|_| owner.checks_keys.copy() == Some(true));
        // SAFETY: The completion has said so, and the device checks keys. The handler is given the
        // only proof, and cannot keep it: it does not know for how long it lives.
        let proof = checked.map(|key| unsafe { InvalidatedKey::new(key, owner.owner) });
        Self {
            message,
            has_invalidated: key.is_some(),
            invalidated: Cell::new(proof),
        }
    }

    /// Returns whether the peer invalidated a key with this message.
    pub(crate) fn has_invalidated(&self) -> bool {
        self.has_invalidated
    }

    /// Takes the key that the peer invalidated with this message, once, and only where the device
    /// has looked at it.
    pub(crate) fn take_invalidated(&self) -> Option<InvalidatedKey<'_>> {
        self.invalidated.take()
    }

    /// Keeps the message, and so its receive buffer.
    pub(crate) fn keep(self) -> RecvBuf {
        self.message
    }
}

impl Deref for Received<'_> {
    type Target = RecvBuf;

    fn deref(&self) -> &RecvBuf {
        &self.message
    }
}
