// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Protects: every receive buffer is free, posted or with its handler, whatever fails, and none
//! is lost or posted twice.

use crate::{
    kapi::ib::{
        buffer::{
            Maker,
            MappedBuffer, //
        },
        fake::{
            self,
            Balance,
            Device,
            Domain,
            Refusal, //
        },
        recv_queue::*, //
    },
    kunit::{
        claim,
        same, //
    },
};

use kernel::dma::DataDirection;

const SIZE: usize = 256;

struct Bench {
    queue: RecvQueue,
    balance: Balance,
    // They go in this order.
    domain: Domain,
    device: Device,
}

impl Bench {
    /// An open queue of `limit` buffers at most, `made` of which are there.
    fn new(limit: u32, made: u32) -> Result<Self> {
        let balance = Balance::begin();
        let device = Device::new()?;
        let mut bench = Self {
            queue: RecvQueue::new(limit, fake::ignore, Node::ANY)?,
            balance,
            domain: Domain::new(&device)?,
            device,
        };
        // SAFETY: The queue pair lives as long as the queue.
        unsafe { bench.queue.open(bench.domain.qp(), fake::LKEY) };
        for _ in 0..made {
            claim(bench.add()?, "there is room")?;
        }
        Ok(bench)
    }

    /// Whether the queue took one more buffer.
    fn add(&mut self) -> Result<bool> {
        let buffer = MappedBuffer::new(
            &self.domain.enter()?,
            SIZE,
            DataDirection::FromDevice,
            Maker::Task,
        )?;
        Ok(self.queue.add(buffer).is_ok())
    }

    /// Checks how many buffers are posted, and that none of them is twice.
    fn posted(&self, expected: u32) -> Result {
        same("posted", self.queue.posted, expected)?;
        same("with the device", self.device.receives(), expected as usize)?;
        for i in 0..self.device.receives() {
            let one = self.device.receive(i)?;
            same("bytes", one.sge.1, SIZE as u32)?;
            same("key", one.sge.2, fake::LKEY)?;
            for j in 0..i {
                let other = self.device.receive(j)?;
                claim(one.entry != other.entry, "each has its own entry")?;
                claim(one.sge.0 != other.sge.0, "each has its own buffer")?;
            }
        }
        Ok(())
    }

    /// Takes the oldest posted Receive, as a completion does.
    fn complete(&mut self, received: usize) -> Result<(u32, usize)> {
        let entry = self.device.take_receive()?.entry;
        let (index, bytes) = self.queue.complete(entry, received).ok_or(EINVAL)?;
        Ok((index, bytes.len()))
    }

    /// Checks that tear-down gets all `n` buffers and nothing stays mapped.
    fn end(mut self, n: usize) -> Result {
        let buffers = self.queue.take_all();
        let there = buffers.iter().filter(|slot| slot.buffer.is_some());
        same("buffers", there.count(), n)?;
        drop(buffers);
        self.balance.end()
    }
}

#[kunit_tests(rpcrdma_receives)]
mod suite {
    use super::*;

    #[test]
    fn closed_before_it_is_opened() -> Result {
        let mut queue = RecvQueue::new(4, fake::ignore, Node::ANY)?;
        same("error", queue.post(4, |_| ()).err(), Some(ENOTCONN))
    }

    #[test]
    fn closed_for_the_end() -> Result {
        let mut bench = Bench::new(4, 4)?;
        same("posted", bench.queue.post(2, |_| ())?, 2)?;
        bench.queue.open = false;
        same("error", bench.queue.post(4, |_| ()).err(), Some(ENOTCONN))?;
        bench.posted(2)?;
        bench.end(4)
    }

    #[test]
    fn buffers_that_are_not_wanted_any_more() -> Result {
        let mut bench = Bench::new(6, 6)?;
        bench.queue.wanted = 4;
        same("posted", bench.queue.post(5, |_| ())?, 5)?;
        claim(bench.queue.vacate().is_some(), "one is free")?;
        claim(bench.queue.vacate().is_none(), "the others are not")?;
        same("missing", bench.queue.missing(6), 1)?;
        let (index, _) = bench.complete(10)?;
        bench.queue.put(index);
        claim(bench.queue.vacate().is_some(), "one too many")?;
        let (index, _) = bench.complete(10)?;
        bench.queue.put(index);
        claim(bench.queue.vacate().is_none(), "not below what is wanted")?;
        bench.posted(3)?;
        // Others take their places.
        for more in [true, true, false] {
            same("added", bench.add()?, more)?;
        }
        same("posted", bench.queue.post(6, |_| ())?, 3)?;
        bench.posted(6)?;
        bench.end(6)
    }

    #[test]
    fn no_more_buffers_than_the_limit() -> Result {
        let mut bench = Bench::new(4, 0)?;
        for (want, missing) in [(0, 0), (1, 1), (4, 4), (5, 4), (u32::MAX, 4)] {
            same("missing", bench.queue.missing(want), missing)?;
        }
        for _ in 0..4 {
            claim(bench.add()?, "there is room")?;
        }
        claim(!bench.add()?, "there is no more")?;
        bench.balance.more(4)?;
        same("missing", bench.queue.missing(u32::MAX), 0)?;
        bench.end(4)
    }

    #[test]
    fn posts_what_is_wanted_in_one_call() -> Result {
        let mut bench = Bench::new(16, 10)?;
        same("posted", bench.queue.post(0, |_| ())?, 0)?;
        same("calls", bench.device.posts(), 0)?;
        same("posted", bench.queue.post(3, |_| ())?, 3)?;
        bench.posted(3)?;
        same("posted", bench.queue.post(3, |_| ())?, 0)?;
        same("posted", bench.queue.post(2, |_| ())?, 0)?;
        same("calls", bench.device.posts(), 1)?;
        same("posted", bench.queue.post(8, |_| ())?, 5)?;
        same("calls", bench.device.posts(), 2)?;
        bench.posted(8)?;
        // No more than there are.
        same("posted", bench.queue.post(u32::MAX, |_| ())?, 2)?;
        bench.posted(10)?;
        same("posted", bench.queue.post(16, |_| ())?, 0)?;
        same("calls", bench.device.posts(), 3)?;
        bench.end(10)
    }

    #[test]
    fn completed_is_not_free() -> Result {
        let mut bench = Bench::new(2, 2)?;
        same("posted", bench.queue.post(2, |_| ())?, 2)?;
        let (index, _) = bench.complete(SIZE)?;
        bench.posted(1)?;
        // Its handler still reads it.
        same("posted", bench.queue.post(2, |_| ())?, 0)?;
        bench.queue.put(index);
        same("posted", bench.queue.post(2, |_| ())?, 1)?;
        bench.posted(2)?;
        bench.end(2)
    }

    #[test]
    fn length_is_that_of_the_message() -> Result {
        let mut bench = Bench::new(1, 1)?;
        for (received, expected) in [
            (0, 0),
            (1, 1),
            (SIZE - 1, SIZE - 1),
            (SIZE, SIZE),
            // The adapter is not to be trusted beyond the buffer.
            (SIZE + 1, SIZE),
            (u32::MAX as usize, SIZE),
        ] {
            same("posted", bench.queue.post(1, |_| ())?, 1)?;
            let (index, len) = bench.complete(received)?;
            same("bytes", len, expected)?;
            bench.queue.put(index);
        }
        bench.end(1)
    }

    #[test]
    fn foreign_completion() -> Result {
        let mut bench = Bench::new(2, 2)?;
        same("posted", bench.queue.post(2, |_| ())?, 2)?;
        let slots = bench.queue.slots.as_ptr();
        for slot in [slots.wrapping_sub(1), slots.wrapping_add(2)] {
            claim(
                bench.queue.complete(slot.cast(), 0).is_none(),
                "not of this queue",
            )?;
        }
        same(
            "for nothing",
            bench.queue.complete(core::ptr::null(), 0).map(|c| c.0),
            None,
        )?;
        bench.posted(2)?;
        bench.end(2)
    }

    #[test]
    fn partial_posts() -> Result {
        for taken in 0..5 {
            let mut bench = Bench::new(8, 8)?;
            same("posted", bench.queue.post(2, |_| ())?, 2)?;
            bench.device.refuse_post(Refusal::After(taken));
            same("error", bench.queue.post(7, |_| ()).err(), Some(ENOMEM))?;
            bench.posted(2 + taken as u32)?;
            // The rest can be posted.
            same("posted", bench.queue.post(8, |_| ())?, 6 - taken as u32)?;
            bench.posted(8)?;
            bench.end(8)?;
        }
        Ok(())
    }

    #[test]
    fn a_post_that_failed_without_a_word() -> Result {
        // Who knows what the device has; a buffer that it may write to must not be reused.
        let mut bench = Bench::new(8, 8)?;
        bench.device.refuse_post(Refusal::Nameless);
        same("error", bench.queue.post(5, |_| ()).err(), Some(EIO))?;
        bench.posted(5)?;
        same("posted", bench.queue.post(8, |_| ())?, 3)?;
        bench.posted(8)?;
        bench.end(8)
    }

    #[test]
    fn a_long_time() -> Result {
        let mut bench = Bench::new(5, 5)?;
        let mut held = KVec::with_capacity(5, GFP_KERNEL)?;
        for i in 0..200u32 {
            if i % 7 == 3 {
                bench.device.refuse_post(Refusal::After(i as usize % 3));
            }
            let _ = bench.queue.post(5, |_| ());
            bench.device.refuse_post_no_more();
            bench.posted(5 - held.len() as u32 - bench.queue.free.len() as u32)?;
            if bench.device.receives() != 0 {
                let (index, _) = bench.complete(SIZE)?;
                held.push(index, GFP_KERNEL)?;
            }
            if i % 3 != 0 {
                while let Some(index) = held.pop() {
                    bench.queue.put(index);
                }
            }
        }
        bench.end(5)
    }
}
