// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! What a responder posts: RDMA Reads, and Replies with RDMA Writes before them.
//!
//! Who has something to post never waits for room: it takes its turn, and completions post what is
//! next. So nobody polls, no wakeup can be lost, and a lost connection has no one to wake.

use crate::kapi::{
    bindings,
    ib::{
        buffer::DmaBuffer,
        send_queue::{
            invalidation,
            Gate,
            Held,
            SendQueue,
            UNSIGNALED_RUN, //
        },
        trace::Purpose,
        transfer::{
            Fetched,
            Transfer, //
        },
    },
    sys::fifo::Fifo,
    trace::{
        self,
        CompletionId, //
    },
};
use kernel::{
    error::to_result,
    prelude::*, //
};

/// RDMA Reads, and who wants to know of their end.
pub(in super::super) struct Read<C> {
    pub(in super::super) transfer: KBox<Transfer>,
    pub(in super::super) tag: Option<u32>,
    pub(in super::super) cookie: C,
}

impl<C> Read<C> {
    /// The cookie and the memory, which the device does not use any more.
    pub(in super::super) fn into_parts(self) -> (C, Fetched) {
        (self.cookie, Transfer::into_fetched(self.transfer))
    }
}

/// The Send of a Reply, with the RDMA Writes that go before it.
pub(in super::super) struct Reply {
    pub(in super::super) buffer: DmaBuffer,
    pub(in super::super) len: usize,
    pub(in super::super) invalidate: Option<u32>,
    /// Not without requests.
    pub(in super::super) transfer: Option<KBox<Transfer>>,
    pub(in super::super) tag: Option<u32>,
    /// The peer may have no room for the Send itself.
    pub(in super::super) may_be_refused: bool,
}

/// What became of it.
pub(in super::super) enum Turn {
    /// It is posted.
    Posted,
    /// It waits for room.
    Waits,
    /// The device refused it, or part of it: the connection is to be dropped.
    Failed,
}

/// What is posted in one go.
pub(in super::super) enum Work<C> {
    Read(Read<C>),
    Reply(Reply),
}

impl<C> Work<C> {
    /// How many work requests it is.
    fn requests(&self) -> usize {
        match self {
            Self::Read(read) => read.transfer.requests(),
            Self::Reply(reply) => 1 + reply.transfer.as_ref().map_or(0, |t| t.requests()),
        }
    }

    /// What it is called in trace events.
    #[inline]
    fn id(&self) -> CompletionId {
        match self {
            Self::Read(read) => read.transfer.id(),
            Self::Reply(reply) => reply.buffer.id,
        }
    }
}

impl<C> SendQueue<C> {
    /// Makes room for RDMA Reads of `n` messages at once. May sleep.
    pub(super) fn make_room_for_reads(&mut self, n: u32, slots: u32) -> Result {
        let n = n as usize;
        if n == 0 {
            return Ok(());
        }
        self.earlier_entries.reserve(n, GFP_KERNEL)?;
        for _ in 0..slots {
            self.tags.push(None, GFP_KERNEL)?;
        }
        self.read_entries.reserve(n, GFP_KERNEL)?;
        // Whatever waits has a message that is being read for, or a buffer.
        self.turns = Fifo::with_capacity(n + self.limit as usize)?;
        for index in (0..n).rev() {
            self.reading.push(None, GFP_KERNEL)?;
            self.not_reading.push(index as u32, GFP_KERNEL)?;
        }
        Ok(())
    }

    /// Whether this is a responder's.
    pub(super) fn takes_turns(&self) -> bool {
        !self.reading.is_empty()
    }

    #[inline]
    fn fits(&self, work: &Work<C>) -> bool {
        let ready = match work {
            Work::Read(_) => !self.not_reading.is_empty(),
            Work::Reply(_) => true,
        };
        ready && work.requests() as u64 <= self.room()
    }

    /// Posts, or lets it wait for its turn. `EMSGSIZE` when it is too much for the queue. What is
    /// given back was not posted.
    ///
    /// Does not sleep.
    pub(in super::super) fn submit(&mut self, work: Work<C>) -> Result<Turn, (Error, Work<C>)> {
        if self.gate != Gate::Open {
            return Err((ENOTCONN, work));
        }
        let requests = work.requests();
        if requests == 0 {
            return Err((EINVAL, work));
        }
        // What is not signaled may never make room by itself.
        if requests > self.slots.len().saturating_sub(UNSIGNALED_RUN as usize) {
            return Err((EMSGSIZE, work));
        }
        if self.turns.is_empty() && self.fits(&work) {
            let posted = self.post_work(work);
            return Ok(posted.map_or(Turn::Failed, |()| Turn::Posted));
        }
        trace::svcrdma_sq_full(|| self.trace_room(work.id()));
        match self.turns.push(work) {
            Ok(()) => Ok(Turn::Waits),
            Err(work) => Err((ENOBUFS, work)),
        }
    }

    /// Whether anybody waits for a turn.
    pub(in super::super) fn has_waiting(&self) -> bool {
        !self.turns.is_empty()
    }

    /// Posts those whose turn it is, as far as there is room. Returns whether nobody waits any more
    /// who did. After an error the connection is to be dropped.
    pub(in super::super) fn next_turns(&mut self) -> Result<bool> {
        let waited = self.has_waiting();
        while self.gate == Gate::Open {
            match self.turns.first() {
                Some(work) if self.fits(work) => (),
                _ => break,
            }
            if let Some(work) = self.turns.pop() {
                trace::svcrdma_sq_retry(|| self.trace_room(work.id()));
                self.post_work(work)?;
            }
        }
        Ok(waited && !self.has_waiting())
    }

    /// What trace events say of the queue, beside whom they are about.
    fn trace_room(&self, id: CompletionId) -> (CompletionId, u32, u32) {
        (id, self.room() as u32, self.slots.len() as u32)
    }

    fn post_work(&mut self, work: Work<C>) -> Result {
        let id = work.id();
        let result = match work {
            Work::Read(read) => self.post_read(read),
            Work::Reply(reply) => self.post_reply(reply),
        };
        result.inspect_err(|e| {
            trace::svcrdma_sq_post_err(|| {
                let (id, room, size) = self.trace_room(id);
                (id, room, size, *e)
            });
        })
    }

    /// Posts RDMA Reads, for which there is room. Even after an error they count as posted.
    fn post_read(&mut self, mut read: Read<C>) -> Result {
        let index = self.not_reading.pop().ok_or(EINVAL)? as usize;
        let entry = self.read_entries.as_ptr().wrapping_add(index).cast_mut();
        // SAFETY: The transfer stays in its box, which is in `reading` until the last request has
        // completed, or all were flushed.
        let first = unsafe { read.transfer.link(core::ptr::null_mut(), entry) };
        let earlier = self.earlier_entries.as_ptr().wrapping_add(index).cast_mut();
        // SAFETY: The requests are valid as long as the transfer.
        unsafe { name(first, core::ptr::null_mut(), |_| earlier) };
        self.reads += read.transfer.requests() as u32;
        read.transfer.trace_post();
        if let Some(place) = self.reading.get_mut(index) {
            *place = Some(read);
        }
        let mut bad: *const bindings::ib_send_wr = core::ptr::null();
        // SAFETY: The queue pair is valid while the gate is open.
        to_result(unsafe { bindings::ib_post_send(self.qp, first, &mut bad) })
    }

    /// Posts a Reply, for which there is room. Even after an error it counts as posted, since
    /// nobody knows better: the tear-down flushes it.
    fn post_reply(&mut self, reply: Reply) -> Result {
        let Reply {
            buffer,
            len,
            invalidate,
            transfer,
            tag,
            may_be_refused,
        } = reply;
        buffer.sync_for_device(len);
        self.element = bindings::ib_sge {
            addr: buffer.dma_addr(),
            length: len as u32,
            lkey: self.lkey,
        };
        let writes = transfer.as_ref().map_or(0, |transfer| transfer.requests());
        let in_place = len >= kernel::page::PAGE_SIZE && !buffer.is_slab();
        // What holds memory of others comes back soon.
        let signaled = self.signal(writes + 1, in_place || writes != 0);
        let (write, last) = (self.head, self.head + writes as u64);
        let slot = self.slot_of(last);
        let mut send = self.request(slot, bindings::ib_wr_opcode_IB_WR_SEND, signaled);
        if let Some(rkey) = invalidate {
            send.opcode = bindings::ib_wr_opcode_IB_WR_SEND_WITH_INV;
            send.ex.invalidate_rkey = rkey;
        }
        send.sg_list = &mut self.element;
        send.num_sge = 1;

        if may_be_refused || transfer.is_some() {
            self.written.rotate_right(1);
            if let Some(latest) = self.written.first_mut() {
                *latest = tag;
            }
        }
        let mut first: *mut bindings::ib_send_wr = &mut send;
        if let Some(mut transfer) = transfer {
            transfer.trace_post();
            // SAFETY: The transfer stays in its box, which is in a slot until the Send has
            // completed, or all was flushed.
            first = unsafe {
                let first = transfer.link(first, core::ptr::null_mut());
                let entry = |i| self.entry_of(write + i as u64);
                name(first, &raw mut send, entry);
                first
            };
            // With the last Write: nothing posted behind it uses the memory.
            self.hold(self.slot_of(last - 1), Held::Transfer(transfer));
            for position in write..last {
                self.tag(self.slot_of(position), tag);
            }
        }
        trace::svcrdma_post_send(|| (buffer.id, 1, invalidate.unwrap_or(0)));
        self.hold(slot, Held::Buffer(buffer));
        self.tag(slot, tag);
        self.head = last + 1;
        let mut bad: *const bindings::ib_send_wr = core::ptr::null();
        // SAFETY: The queue pair is valid while the gate is open. The list ends with the Send,
        // which ib_core needs until the call returns.
        to_result(unsafe { bindings::ib_post_send(self.qp, first, &mut bad) })
    }

    fn entry_of(&self, position: u64) -> *mut bindings::ib_cqe {
        let slot = self.slot_of(position);
        self.entries.as_ptr().wrapping_add(slot).cast_mut()
    }

    /// Notes for whom the request of a slot is.
    fn tag(&mut self, slot: usize, tag: Option<u32>) {
        if let Some(place) = self.tags.get_mut(slot) {
            *place = tag;
        }
    }

    /// For whom the request of a slot is.
    pub(in super::super) fn tag_of_slot(&self, index: usize) -> Option<u32> {
        self.tags.get(index).copied().flatten()
    }

    /// What the request at a position is for, and what it is called in trace events.
    pub(in super::super) fn purpose_of(&self, position: u64) -> Option<(Purpose, CompletionId)> {
        for at in position..self.head {
            match self.slots.get(self.slot_of(at))? {
                Held::Buffer(buffer) if at == position => return Some((Purpose::Send, buffer.id)),
                Held::Region { purpose, id } if at == position => return Some((*purpose, *id)),
                Held::Cookie {
                    whole, waiter, id, ..
                } if at == position => return Some((invalidation(*whole, *waiter), *id)),
                // It is with the last of its requests.
                Held::Transfer(transfer) => {
                    let purpose = transfer.purpose((at - position) as usize);
                    return Some((purpose, transfer.id()));
                }
                Held::Nothing => (),
                Held::Buffer(_) | Held::Region { .. } | Held::Cookie { .. } => break,
            }
        }
        None
    }

    /// What the RDMA Reads are called in trace events that `entry` belongs to.
    pub(in super::super) fn id_of_read(
        &self,
        entry: *const bindings::ib_cqe,
    ) -> Option<CompletionId> {
        Some(self.read_of(entry)?.transfer.id())
    }

    /// For whom the RDMA Reads are that `entry` belongs to, the last of a message or not.
    pub(in super::super) fn tag_of_read(&self, entry: *const bindings::ib_cqe) -> Option<u32> {
        self.read_of(entry)?.tag
    }

    fn read_of(&self, entry: *const bindings::ib_cqe) -> Option<&Read<C>> {
        let tables = [&self.read_entries, &self.earlier_entries];
        let index = tables.iter().find_map(|table| index_in(table, entry))?;
        self.reading.get(index)?.as_ref()
    }

    /// The RDMA Reads whose completion entry is at `entry` have ended, well or not; their memory was
    /// taken from the device.
    pub(in super::super) fn end_read(
        &mut self,
        entry: *const bindings::ib_cqe,
        ok: bool,
    ) -> Option<Read<C>> {
        let index = index_in(&self.read_entries, entry)?;
        let mut read = self.reading.get_mut(index)?.take()?;
        // It came from there.
        let _ = self.not_reading.push_within_capacity(index as u32);
        self.reads = self.reads.saturating_sub(read.transfer.requests() as u32);
        if ok {
            read.transfer.trace_read();
        }
        // Here, since outside of the lock the queue pair may be gone.
        read.transfer.unmap();
        Some(read)
    }

    /// The connection is lost, by the peer or by this end. Returns whether that is news.
    pub(in super::super) fn lose(&mut self) -> bool {
        !core::mem::replace(&mut self.lost, true)
    }

    /// The tag of the transfer, or of the Send that may be refused, that may be under way, if there is
    /// one only.
    pub(in super::super) fn alone(&self) -> Option<u32> {
        let reads = self.reading.iter().flatten().filter_map(|read| read.tag);
        // A device may call an RDMA Write or a Send done when it is on its way.
        let mut tags = Iterator::chain(reads, self.written.iter().copied().flatten());
        let first = tags.next()?;
        tags.all(|tag| tag == first).then_some(first)
    }

    /// Takes what waits for its turn, for tear-down.
    pub(in super::super) fn take_turns(&mut self) -> Fifo<Work<C>> {
        core::mem::take(&mut self.turns)
    }

    /// Takes the memory of all transfers from the device, for tear-down: the queue is drained.
    pub(in super::super) fn unmap_transfers(&mut self) {
        for held in self.slots.iter_mut() {
            if let Held::Transfer(transfer) = held {
                transfer.unmap();
            }
        }
        for read in self.reading.iter_mut().flatten() {
            read.transfer.unmap();
        }
    }

    /// Takes RDMA Reads whose end was not reported, for tear-down.
    pub(in super::super) fn take_read(&mut self) -> Option<Read<C>> {
        self.reading.iter_mut().find_map(Option::take)
    }
}

/// Where in a table the entry is.
fn index_in(table: &[bindings::ib_cqe], entry: *const bindings::ib_cqe) -> Option<usize> {
    let offset = (entry as usize).checked_sub(table.as_ptr() as usize)?;
    let index = offset / core::mem::size_of::<bindings::ib_cqe>();
    (index < table.len()).then_some(index)
}

/// Gives requests that are not signaled a completion entry each, so that their failure is known.
/// The last before `end` keeps what it has if `end` is null.
///
/// # Safety
///
/// `first` must be a list of valid requests that ends with `end`.
unsafe fn name(
    first: *mut bindings::ib_send_wr,
    end: *mut bindings::ib_send_wr,
    entry: impl Fn(usize) -> *mut bindings::ib_cqe,
) {
    let (mut at, mut i) = (first, 0);
    while !at.is_null() && !core::ptr::eq(at, end) {
        // SAFETY: The list is of valid requests and ends with `end`, as the caller promises; this one is in
        // front of that.
        unsafe {
            let last = (*at).next.is_null();
            if !last {
                (*at).__bindgen_anon_1.wr_cqe = entry(i);
            }
            at = (*at).next;
        }
        i += 1;
    }
}
