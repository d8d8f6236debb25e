// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Protects: what is posted in a chain is what was asked for, whatever that is; what its slots own
//! comes back in order. What the send queue asks for has tests of its own.

use crate::{
    kapi::ib::{
        buffer::Direction,
        fake::{
            self,
            Balance,
            Device,
            PlainQp, //
        },
        ring::*, //
    },
    kunit::{
        claim,
        same, //
    },
};

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
    _qp: PlainQp,
    device: Device,
}

impl Bench {
    fn new(slots: u32, chain: u32) -> Result<Self> {
        let balance = Balance::begin();
        let device = Device::new()?;
        let qp = PlainQp::new(&device)?;
        let mut ring = Ring::new(slots, chain, 0)?;
        let target = Target {
            qp: qp.as_raw(),
            port: 1,
        };
        // SAFETY: The queue pair lives as long as the ring.
        unsafe { ring.open(target, fake::LKEY, &HANDLERS)? };
        Ok(Self {
            ring,
            balance,
            _qp: qp,
            device,
        })
    }

    /// Posts Sends of so many bytes in one chain of `n` at most; each owns its length.
    fn post(&mut self, n: usize, lengths: &[usize]) -> Result {
        let mut chain = self.ring.begin(n)?;
        for len in lengths {
            // SAFETY: The device lives as long as the ring.
            let buffer = unsafe { DmaBuffer::new(self.device.as_ptr(), 64, Direction::ToDevice)? };
            chain.send(buffer, *len, None, Some(*len as u32));
        }
        chain.post(true)
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
            let retired = bench.ring.retire(u64::MAX).ok_or(ENOENT)?;
            same("owned", retired.posted.owned, Some(expected))?;
            claim(retired.posted.buffer.is_some(), "the buffer")?;
        }
        claim(bench.ring.retire(u64::MAX).is_none(), "no more")?;
        bench.device.forget();
        bench.balance.more(0)
    }

    #[test]
    fn what_cannot_be_posted_is_dropped() -> Result {
        let mut bench = Bench::new(4, 3)?;
        same("none", bench.post(3, &[]), Err(EINVAL))?;
        bench.post(2, &[10, 20])?;
        same("no room", bench.post(3, &[10, 20, 30]), Err(EAGAIN))?;
        same("too long a chain", bench.post(4, &[10]), Err(EAGAIN))?;
        same("calls", bench.device.posts(), 1)?;
        // More than was said is dropped.
        bench.post(1, &[10, 20])?;
        same("head", bench.ring.head(), 3)?;
        // And so is a chain that is not posted.
        let mut chain = bench.ring.begin(1)?;
        // SAFETY: The device lives as long as the ring.
        let buffer = unsafe { DmaBuffer::new(bench.device.as_ptr(), 64, Direction::ToDevice)? };
        chain.send(buffer, 10, None, Some(10));
        drop(chain);
        same("head", bench.ring.head(), 3)?;
        bench.balance.more(3)?;
        bench.ring.state = QpState::Closed;
        same("closed", bench.post(1, &[10]), Err(ENOTCONN))?;
        while bench.ring.retire(u64::MAX).is_some() {}
        bench.device.forget();
        bench.balance.more(0)
    }
}
