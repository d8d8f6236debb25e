// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Protects: what is posted in a chain is what was asked for, whatever that is; what its slots own
//! comes back in order. What the send queue asks for has tests of its own.

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
            Domain, //
        },
        ring::*, //
    },
    kunit::{
        claim,
        same, //
    },
};

use kernel::dma::DataDirection;

const HANDLERS: Handlers = Handlers {
    done: fake::ignore,
    read_done: fake::ignore,
    read_failed: fake::ignore,
};

/// A ring whose slots own numbers.
struct Bench {
    ring: Ring<u32, ()>,
    balance: Balance,
    // They go in this order.
    domain: Domain,
    device: Device,
}

impl Bench {
    fn new(slots: u32, chain: u32) -> Result<Self> {
        let balance = Balance::begin();
        let device = Device::new()?;
        let domain = Domain::new(&device)?;
        let mut ring = Ring::new(domain.number(), (slots, chain, 0), &HANDLERS, Node::ANY)?;
        let target = Target {
            qp: domain.qp(),
            port: 1,
        };
        // SAFETY: The queue pair lives as long as the ring.
        unsafe { ring.open(target, fake::LKEY) };
        Ok(Self {
            ring,
            balance,
            domain,
            device,
        })
    }

    fn buffer(&self) -> Result<DmaBuffer> {
        MappedBuffer::new(
            &self.domain.enter()?,
            64,
            DataDirection::ToDevice,
            Maker::Task,
        )
    }

    /// Posts Sends of so many bytes in one chain of `n` at most; each owns its length.
    fn post(&mut self, n: usize, lengths: &[usize]) -> Result {
        let mut buffers = KVec::new();
        for _ in lengths {
            buffers.push(self.buffer()?, GFP_KERNEL)?;
        }
        let mut chain = RingMut(&mut self.ring).begin(n)?;
        for (buffer, len) in buffers.into_iter().zip(lengths) {
            chain.send(buffer, *len, None, Some(*len as u32));
        }
        chain.post(true)
    }

    /// What the oldest slot owned, if it is in front of that position.
    fn retire(&mut self, end: u64) -> Option<Posted<u32>> {
        let done = SendDone::test(self.domain.number(), end, Wc::SUCCESS);
        RingMut(&mut self.ring).retire(&done, |posted, _| Some(posted))
    }

    fn end(mut self) -> Result {
        while self.retire(u64::MAX).is_some() {}
        claim(self.ring.holds_nothing(), "no slot holds anything")?;
        self.device.forget();
        self.balance.more(0)
    }
}

impl SendDone {
    /// Creates one as if the requests of `owner` in front of `end` had ended so.
    pub(crate) fn test(owner: u64, end: u64, wc: Wc) -> Self {
        // SAFETY: No test has a device that would use the memory.
        unsafe { Self::new(owner, end, wc) }
    }
}

impl<T, R> Ring<T, R> {
    /// Returns the end of what is posted.
    pub(crate) fn head(&self) -> u64 {
        self.head
    }

    /// Returns the beginning of what is not retired.
    pub(crate) fn tail(&self) -> u64 {
        self.tail
    }

    /// Returns whether no slot holds anything.
    pub(crate) fn holds_nothing(&self) -> bool {
        let nothing = |slot: &Posted<T>| slot.buffer.is_none() && slot.owned.is_none();
        self.slots.iter().all(nothing) && self.writes.is_empty()
    }

    /// Returns the completion entry of a slot, or of what is beside them.
    pub(crate) fn entry(&self, slot: isize) -> *const bindings::ib_cqe {
        self.entries.at(0).cast_const().wrapping_offset(slot)
    }
}

#[kunit_tests(rpcrdma_ring)]
mod suite {
    use super::*;

    #[test]
    fn several_sends_in_a_chain() -> Result {
        let mut bench = Bench::new(8, 3)?;
        bench.post(3, &[10, 20, 30])?;
        same("calls", bench.device.posts(), 1)?;
        let mut addresses = [0; 3];
        for (i, address) in addresses.iter_mut().enumerate() {
            let posted = bench.device.send(i)?;
            let (at, len, _) = posted.sge;
            same("length", len, 10 * (i as u32 + 1))?;
            same("signaled", posted.signaled, i == 2)?;
            *address = at;
        }
        let [one, two, three] = addresses;
        claim(one != two && two != three, "each has memory of its own")?;
        for expected in [10, 20, 30] {
            let retired = bench.retire(u64::MAX).ok_or(ENOENT)?;
            same("owned", retired.owned, Some(expected))?;
            claim(retired.buffer.is_some(), "the buffer")?;
        }
        claim(bench.retire(u64::MAX).is_none(), "no more")?;
        bench.end()
    }

    #[test]
    fn without_room_nothing_is_begun() -> Result {
        let mut bench = Bench::new(4, 3)?;
        same("none", bench.post(3, &[]), Err(EINVAL))?;
        bench.post(2, &[10, 20])?;
        same("no room", bench.post(3, &[10, 20, 30]), Err(EAGAIN))?;
        same("too long a chain", bench.post(4, &[10]), Err(EAGAIN))?;
        same("calls", bench.device.posts(), 1)?;
        bench.post(1, &[10])?;
        same("head", bench.ring.head(), 3)?;
        bench.end()
    }

    /// After that nothing can be posted any more, and `held` of what was not posted waits for the
    /// tear-down.
    fn given_up(held: u32, give_up: impl FnOnce(&mut Bench) -> Result) -> Result {
        let mut bench = Bench::new(8, 3)?;
        bench.post(1, &[10])?;
        give_up(&mut bench)?;
        same("head", bench.ring.head(), 1 + u64::from(held))?;
        same("posts", bench.device.posts(), 1)?;
        same("another", bench.post(1, &[10]), Err(ENOTCONN))?;
        bench.balance.more(1 + held as usize)?;
        for _ in 0..1 + held {
            let retired = bench.retire(u64::MAX).ok_or(ENOENT)?;
            same("owned", retired.owned, Some(10))?;
        }
        bench.end()
    }

    #[test]
    fn a_chain_that_is_given_up() -> Result {
        given_up(1, |bench| {
            let buffer = bench.buffer()?;
            let mut chain = RingMut(&mut bench.ring).begin(1)?;
            chain.send(buffer, 10, None, Some(10));
            drop(chain);
            Ok(())
        })
    }

    /// Else what is posted next would stand where something else was said to be.
    #[test]
    fn a_chain_that_is_forgotten() -> Result {
        given_up(0, |bench| {
            core::mem::forget(RingMut(&mut bench.ring).begin(1)?);
            Ok(())
        })
    }

    #[test]
    fn an_empty_chain() -> Result {
        let mut bench = Bench::new(8, 3)?;
        drop(RingMut(&mut bench.ring).begin(1)?);
        bench.post(1, &[10])?;
        bench.end()
    }

    #[test]
    fn more_than_was_said() -> Result {
        given_up(1, |bench| {
            same("error", bench.post(1, &[10, 20]), Err(EINVAL))
        })
    }

    #[test]
    fn a_buffer_of_another() -> Result {
        let other = Bench::new(8, 3)?;
        given_up(0, |bench| {
            let buffer = other.buffer()?;
            let mut chain = RingMut(&mut bench.ring).begin(1)?;
            chain.send(buffer, 10, None, Some(10));
            same("posted", chain.post(true), Err(EINVAL))
        })?;
        other.end()
    }

    #[test]
    fn states() -> Result {
        for (state, error) in [
            (RingState::New, Some(ENOTCONN)),
            (RingState::Open, None),
            // Nothing but local invalidations.
            (RingState::Draining, Some(EINVAL)),
            (RingState::Closed, Some(ENOTCONN)),
        ] {
            let mut bench = Bench::new(8, 3)?;
            bench.ring.state = state;
            same("posting", bench.post(1, &[10]).err(), error)?;
            bench.end()?;
        }
        Ok(())
    }

    #[test]
    fn a_completion_of_another() -> Result {
        let mut bench = Bench::new(8, 3)?;
        bench.post(1, &[10])?;
        let done = SendDone::test(bench.domain.number() + 1, u64::MAX, Wc::SUCCESS);
        claim(
            RingMut(&mut bench.ring)
                .retire(&done, |_, _| Some(()))
                .is_none(),
            "nothing of ours",
        )?;
        for entry in [bench.ring.entry(-1), bench.ring.entry(8), core::ptr::null()] {
            same("position", bench.ring.position_of(entry), None)?;
        }
        for i in 0..8 {
            let posted = (i == 0).then_some(0);
            same(
                "position",
                bench.ring.position_of(bench.ring.entry(i)),
                posted,
            )?;
        }
        bench.end()
    }

    #[test]
    fn around_the_ring() -> Result {
        for slots in [7u32, 8, 13] {
            let mut bench = Bench::new(slots, 4)?;
            let mut position = 0;
            for i in 0..1000u32 {
                let before = bench.device.sends();
                let n = (i % 3 + 1) as usize;
                if bench.ring.sq_avail() as usize >= n {
                    bench.post(n, [10; 3].get(..n).unwrap_or(&[]))?;
                }
                for j in before..bench.device.sends() {
                    let entry = bench.device.send(j)?.entry;
                    let slot = (position % u64::from(slots)) as isize;
                    same("entry", entry.cast_const(), bench.ring.entry(slot))?;
                    same("position", bench.ring.position_of(entry), Some(position))?;
                    position += 1;
                }
                if i % 4 == 3 {
                    let end = bench.ring.head().min(bench.ring.tail() + u64::from(i % 5));
                    while bench.retire(end).is_some() {}
                    same("tail", bench.ring.tail(), end)?;
                }
                // What is posted has distinct slots; the rest has none.
                let ring = &bench.ring;
                let posted = (0..slots as isize)
                    .filter(|slot| ring.position_of(ring.entry(*slot)).is_some())
                    .count() as u64;
                let used = ring.head() - ring.tail();
                same("posted", posted, used)?;
                same("room", u64::from(ring.sq_avail()), u64::from(slots) - used)?;
                claim(used <= slots.into(), "no slot is used twice")?;
                bench.device.forget();
            }
            claim(position > 20 * u64::from(slots), "it went round")?;
            bench.end()?;
        }
        Ok(())
    }
}
