// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! A send ring over a device without hardware.

use crate::kapi::{
    ib::send_queue::tests::*,
    trace::TaskId, //
};
use core::cell::RefCell;

const HANDLERS: Handlers = Handlers {
    done: fake::ignore,
    read_done: fake::ignore,
    read_failed: fake::ignore,
};

/// For whom it is.
pub(super) fn nobody() -> TaskId {
    TaskId::NONE
}

/// A ring over a fake device.
pub(super) struct Bench {
    pub(super) queue: SendQueue<u32>,
    pub(super) size: usize,
    pub(super) mrs: KVec<Arc<Mr>>,
    pub(super) memory: Memory,
    pub(super) balance: Balance,
    // They go in this order.
    pub(super) qp: PlainQp,
    pub(super) pd: Pd,
    pub(super) device: Device,
}

impl Bench {
    /// An open ring of `slots`, for calls of `registrations` at most, with `limit` buffers of 1024
    /// bytes.
    pub(super) fn new(slots: u32, registrations: u32, limit: u32) -> Result<Self> {
        Self::with_size(slots, registrations, limit, 1024)
    }

    pub(super) fn with_size(
        slots: u32,
        registrations: u32,
        limit: u32,
        size: usize,
    ) -> Result<Self> {
        let mut bench = Self::closed(slots, registrations, limit, size)?;
        let target = Target {
            qp: bench.qp.as_raw(),
            port: 1,
        };
        // SAFETY: The queue pair lives as long as the ring.
        unsafe { bench.queue.open(target, fake::LKEY, 0, &HANDLERS)? };
        Ok(bench)
    }

    pub(super) fn closed(slots: u32, registrations: u32, limit: u32, size: usize) -> Result<Self> {
        let balance = Balance::begin();
        let device = Device::new()?;
        Ok(Self {
            queue: SendQueue::new(slots, registrations + 1, limit, 0)?,
            size,
            mrs: KVec::new(),
            memory: Memory::new(1)?,
            balance,
            qp: PlainQp::new(&device)?,
            pd: device.pd()?,
            device,
        })
    }

    /// Takes a buffer as a poster does.
    pub(super) fn buffer(&mut self) -> Result<DmaBuffer> {
        if let Some(buffer) = self.queue.take_buffer()? {
            return Ok(buffer);
        }
        // SAFETY: The device lives as long as the ring.
        unsafe { DmaBuffer::new(self.device.as_ptr(), self.size, Direction::ToDevice) }
    }

    /// Posts a Send with registrations, as a poster does.
    pub(super) fn post(&mut self, mapped: &[Region<Mapped>], len: usize) -> Result {
        let buffer = self.buffer()?;
        let result = self.queue.post_send(mapped, buffer, len, nobody);
        self.queue.lent -= 1;
        result
    }

    /// Posts `n` Sends of 100 bytes.
    pub(super) fn sends(&mut self, n: usize) -> Result {
        for _ in 0..n {
            self.post(&[], 100)?;
        }
        Ok(())
    }

    /// Makes `n` regions and maps memory with them. The ring does not mind if they are posted again.
    pub(super) fn mapped(&mut self, n: usize) -> Result<KVec<Region<Mapped>>> {
        let mut mapped = KVec::with_capacity(n, GFP_KERNEL)?;
        for _ in 0..n {
            // SAFETY: `drop` deregisters the region before either goes.
            let mr = unsafe { Mr::new(self.pd.as_ptr(), self.device.as_ptr(), 1, false)? };
            if let Err(e) = self.mrs.push(mr.clone(), GFP_KERNEL) {
                let _ = mr.deregister(drop);
                return Err(e.into());
            }
            let mut pieces = self.memory.pieces((0, 0), (0, PAGE_SIZE), (0, 0))?;
            // SAFETY: It was made above, and has no other token.
            let idle = unsafe { Region::new(mr) };
            let region = fake::cover(idle, &mut pieces, false, Access::RemoteRead, 1);
            mapped.push(region.map_err(|(e, _)| e)?, GFP_KERNEL)?;
        }
        Ok(mapped)
    }

    /// Posts invalidations of `keys`, each of the region of the same number. The error and whether
    /// the cookie came back at once.
    pub(super) fn invalidate(
        &mut self,
        keys: &[u32],
        cookie: u32,
    ) -> Result<(), (Error, Option<u32>)> {
        let invalidations = keys.iter().map(|key| Invalidation {
            rkey: *key,
            region: *key,
        });
        let waiter = Waiter::Reply;
        self.queue.post_invalidations(invalidations, cookie, waiter)
    }

    /// Retires everything below `end`; the cookies that came back.
    pub(super) fn retire(&mut self, end: u64) -> Result<KVec<u32>> {
        let mut cookies = KVec::new();
        while let Some(retired) = self.queue.retire(end, true, None::<fn(_, _)>) {
            if let Retired::Cookie { cookie, .. } = retired {
                cookies.push(cookie, GFP_KERNEL)?;
            }
        }
        Ok(cookies)
    }

    /// Retires all that is posted; what trace events are told of it.
    pub(super) fn names(&mut self) -> KVec<(Purpose, u32)> {
        self.device.forget();
        let names = RefCell::new(KVec::new());
        let note = |purpose, id: CompletionId| {
            let _ = names.borrow_mut().push((purpose, id.number()), GFP_KERNEL);
        };
        while self.queue.retire(u64::MAX, true, Some(note)).is_some() {}
        names.into_inner()
    }

    /// Retires all that is posted.
    pub(super) fn retire_all(&mut self) -> Result<KVec<u32>> {
        self.device.forget();
        self.retire(u64::MAX)
    }

    /// Checks the send requests that the device holds: opcode and whether it is signaled.
    pub(super) fn expect(&self, expected: &[(u32, bool)]) -> Result {
        same("requests", self.device.sends(), expected.len())?;
        for (i, expected) in expected.iter().enumerate() {
            let posted = self.device.send(i)?;
            same("request", (posted.opcode, posted.signaled), *expected)?;
        }
        Ok(())
    }

    /// Checks that every buffer is in the pool, and that no slot holds anything.
    pub(super) fn expect_all_back(&self, buffers: u32) -> Result {
        same("buffers made", self.queue.made, buffers)?;
        same(
            "buffers in the pool",
            self.queue.buffers.len(),
            buffers as usize,
        )?;
        same("lent", self.queue.lent, 0)?;
        same("tail", self.queue.ring.tail(), self.queue.ring.head())?;
        claim(self.queue.ring.holds_nothing(), "no slot holds anything")
    }

    /// Checks that nothing stays mapped once the ring is gone.
    pub(super) fn end(mut self) -> Result {
        for mr in &self.mrs {
            let _ = mr.deregister(drop);
        }
        self.queue = SendQueue::new(1, 1, 1, 0)?;
        self.balance.more(0)
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        for mr in &self.mrs {
            let _ = mr.deregister(drop);
        }
    }
}
