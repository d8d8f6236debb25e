// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The receive queue: buffers that belong to the adapter from post to completion.

#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
mod tests;

use crate::kapi::{
    bindings,
    ib::{
        buffer::DmaBuffer,
        handler::Handler,
        queue_pair::QueuePair, //
    },
    trace::CompletionId, //
};
use core::ptr::NonNull;
use kernel::{
    error::to_result,
    prelude::*, //
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

/// The receive buffers of a queue pair.
///
/// # Invariants
///
/// - No slot moves: the vector has the capacity for all from the start. The request of one with a
///   buffer names its own entry and element.
/// - An index is in `vacant`, and then there is no buffer, or in `free`, or posted, or in the hands
///   of the completion handler or of a [`KeptReceive`], never two of them. `posted` counts those
///   posted, `kept` those in hands.
/// - `qp` is valid while `open`.
pub(super) struct RecvQueue {
    qp: *mut bindings::ib_qp,
    lkey: u32,
    /// The number of the completion queue, for trace events.
    completion_queue: u32,
    pub(super) open: bool,
    done: Option<unsafe extern "C" fn(*mut bindings::ib_cq, *mut bindings::ib_wc)>,
    limit: u32,
    /// Buffers beyond these are given up when they come back.
    pub(super) wanted: u32,
    slots: KVVec<Slot>,
    free: KVVec<u32>,
    vacant: KVVec<u32>,
    posted: u32,
    pub(super) kept: u32,
    /// Somebody waits for those that are kept.
    pub(super) ending: bool,
}

// SAFETY: The raw pointers are to objects of ib_core that may be used from any thread, and are
// used under the lock that holds this object.
unsafe impl Send for RecvQueue {}

impl RecvQueue {
    /// Room for `limit` buffers. The queue is closed until [`Self::open`]. May sleep.
    pub(super) fn new(limit: u32) -> Result<Self> {
        let n = limit as usize;
        Ok(Self {
            qp: core::ptr::null_mut(),
            lkey: 0,
            completion_queue: 0,
            open: false,
            done: None,
            limit,
            wanted: u32::MAX,
            slots: KVVec::with_capacity(n, GFP_KERNEL)?,
            free: KVVec::with_capacity(n, GFP_KERNEL)?,
            vacant: KVVec::with_capacity(n, GFP_KERNEL)?,
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
    pub(super) unsafe fn open(
        &mut self,
        qp: *mut bindings::ib_qp,
        lkey: u32,
        completion_queue: u32,
        done: unsafe extern "C" fn(*mut bindings::ib_cq, *mut bindings::ib_wc),
    ) {
        self.qp = qp;
        self.lkey = lkey;
        self.completion_queue = completion_queue;
        self.done = Some(done);
        self.open = true;
    }

    /// How many more buffers are wanted for `want` to be there in all.
    pub(super) fn missing(&self, want: u32) -> u32 {
        want.min(self.limit).saturating_sub(self.made())
    }

    /// How many buffers there are.
    fn made(&self) -> u32 {
        self.slots.len().saturating_sub(self.vacant.len()) as u32
    }

    /// Whether there are more buffers than are wanted.
    pub(super) fn has_surplus(&self) -> bool {
        self.made() > self.wanted
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
                entry: bindings::ib_cqe { done: self.done },
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
        if !self.has_surplus() {
            return None;
        }
        let index = self.free.pop()?;
        let buffer = self.slots.get_mut(index as usize)?.buffer.take();
        let _ = self.vacant.push_within_capacity(index);
        buffer
    }

    /// Posts free buffers until `want` are posted, in one call; `each` is told of each before.
    /// Returns how many that were.
    ///
    /// On an error the connection is to be dropped.
    pub(super) fn post(&mut self, want: u32, each: impl Fn(CompletionId)) -> Result<u32> {
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
            each(CompletionId::new(self.completion_queue, index));
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

    /// The number of the completion queue, and how many Receives are posted.
    pub(super) fn number_and_posted(&self) -> (u32, u32) {
        (self.completion_queue, self.posted)
    }

    /// Posts all free buffers if they are at least `batch`, as [`Self::post`].
    pub(super) fn post_batch(&mut self, batch: usize, each: impl Fn(CompletionId)) -> Result {
        if self.free.len() < batch || !self.open {
            return Ok(());
        }
        self.post(u32::MAX, each).map(|_| ())
    }

    /// The buffer whose completion entry is at `entry` was completed: it is the processor's now.
    ///
    /// Returns its index, and its bytes, `received` of them at most.
    pub(super) fn complete(
        &mut self,
        entry: *const bindings::ib_cqe,
        received: usize,
    ) -> Option<(u32, NonNull<[u8]>)> {
        let offset = (entry as usize).checked_sub(self.slots.as_ptr() as usize)?;
        let index = offset / core::mem::size_of::<Slot>();
        let buffer = self.slots.get(index)?.buffer.as_ref()?;
        // INVARIANT: It is in the caller's hands.
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

    /// What the buffer's Receive is called in trace events: its number is the index.
    pub(super) fn id_of(&self, index: u32) -> CompletionId {
        CompletionId::new(self.completion_queue, index)
    }

    /// The completion handler, or who has kept it, is done with the buffer. Returns whether the
    /// tear-down waits for it.
    pub(super) fn give_back(&mut self, index: u32) -> bool {
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
/// - It is counted in `kept` of the queue pair's receive queue, so the queue pair is valid.
/// - `bytes` are in the buffer `index`, which nobody else uses.
pub(crate) struct KeptReceive<H: Handler> {
    qp: NonNull<QueuePair<H>>,
    index: u32,
    id: CompletionId,
    bytes: NonNull<[u8]>,
}

// SAFETY: The queue pair may be used from any thread; the bytes are ours.
unsafe impl<H: Handler> Send for KeptReceive<H> {}

impl<H: Handler> KeptReceive<H> {
    /// # Safety
    ///
    /// `bytes` must be in the buffer `index`, which [`RecvQueue::complete`] has put into the
    /// caller's hands, and not used elsewhere afterwards.
    pub(super) unsafe fn new(
        qp: &QueuePair<H>,
        index: u32,
        id: CompletionId,
        bytes: NonNull<[u8]>,
    ) -> Self {
        // INVARIANT: Counted when it was completed; the caller promises the rest.
        Self {
            qp: NonNull::from(qp),
            index,
            id,
            bytes,
        }
    }

    /// The buffer, which the caller gives back to that queue pair. None, and it is given back, if it
    /// is another's.
    pub(super) fn into_index(self, owner: &QueuePair<H>) -> Option<u32> {
        if !core::ptr::eq(self.qp.as_ptr(), owner) {
            return None;
        }
        let index = self.index;
        core::mem::forget(self);
        Some(index)
    }

    /// What its Receive is called in trace events.
    pub(crate) fn id(&self) -> CompletionId {
        self.id
    }

    /// The bytes received. They stay where they are if this is moved.
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: By the type invariant.
        unsafe { self.bytes.as_ref() }
    }
}

impl<H: Handler> Drop for KeptReceive<H> {
    fn drop(&mut self) {
        // SAFETY: Valid by the type invariant: the tear-down waits for this.
        let qp = unsafe { self.qp.as_ref() };
        let last = qp.recv.lock().give_back(self.index);
        qp.given_back(last);
    }
}
