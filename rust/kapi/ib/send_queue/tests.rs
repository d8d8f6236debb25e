// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Protects: what a request uses is held until the adapter has done with it, no longer; every slot,
//! buffer and cookie comes back exactly once, whatever part of a chain was posted; a completion
//! is always in reach, and a local invalidation always has room.

use crate::{
    kapi::{
        bindings,
        ib::{
            buffer::Direction,
            fake::{
                self,
                Balance,
                Device,
                Memory,
                Pd,
                PlainQp,
                Refusal, //
            },
            mr::Access,
            region::{
                Invalidation,
                Mapped, //
            },
            send_queue::*, //
        },
    },
    kunit::{
        claim,
        same, //
    },
};
use bench::*;
use kernel::page::PAGE_SIZE;

const REG: u32 = bindings::ib_wr_opcode_IB_WR_REG_MR;
const SEND: u32 = bindings::ib_wr_opcode_IB_WR_SEND;
const INV: u32 = bindings::ib_wr_opcode_IB_WR_LOCAL_INV;

mod bench;

#[kunit_tests(rpcrdma_send_ring)]
mod suite {
    use super::*;

    #[test]
    fn a_send_as_posted() -> Result {
        let mut bench = Bench::new(64, 2, 8)?;
        let mapped = bench.mapped(2)?;
        bench.post(&mapped, 100)?;
        bench.expect(&[(REG, false), (REG, false), (SEND, false)])?;
        same("calls", bench.device.posts(), 1)?;
        for (i, region) in mapped.iter().enumerate() {
            let posted = bench.device.send(i)?;
            same("key", posted.key, region.key().rkey)?;
            same("access", posted.access as u32, Access::RemoteRead.as_raw())?;
        }
        let (_, len, lkey) = bench.device.send(2)?.sge;
        same("length", len, 100)?;
        same("local key", lkey, fake::LKEY)?;
        for i in 0..3 {
            let position = bench.queue.ring.position_of(bench.device.send(i)?.entry);
            same("position", position, Some(i as u64))?;
        }
        bench.end()
    }

    #[test]
    fn unsignaled_runs() -> Result {
        let mut bench = Bench::new(256, 0, 128)?;
        bench.sends(60)?;
        for i in 0..60 {
            let last = (i + 1) % UNSIGNALED_RUN as usize == 0;
            same("signaled", bench.device.send(i)?.signaled, last)?;
        }
        bench.end()
    }

    #[test]
    fn registrations_count_in_a_run() -> Result {
        let mut bench = Bench::new(256, 3, 64)?;
        let mapped = bench.mapped(3)?;
        for _ in 0..8 {
            bench.post(&mapped, 100)?;
        }
        for i in 0..32 {
            // Never a registration, and of the Sends every third.
            same("signaled", bench.device.send(i)?.signaled, i % 12 == 11)?;
        }
        bench.end()
    }

    #[test]
    fn half_of_a_queue_has_a_completion() -> Result {
        for slots in [8, 9, 16, 31, 32, 33, 64, 100] {
            for registrations in 0..2 {
                let mut bench = Bench::new(slots, 1, 1000)?;
                let mapped = bench.mapped(registrations)?;
                let mut without = 0;
                for _ in 0..4 * slots {
                    if bench.post(&mapped, 100).is_err() {
                        bench.queue.reserved = 0;
                        let _ = bench.retire_all()?;
                        bench.post(&mapped, 100)?;
                    }
                    without += mapped.len() as u32 + 1;
                    let last = bench.device.send(bench.device.sends() - 1)?;
                    if last.signaled {
                        without = 0;
                    }
                    claim(without < slots / 2, "half of the queue is signaled")?;
                }
                bench.end()?;
            }
        }
        Ok(())
    }

    #[test]
    fn last_buffer_is_signaled() -> Result {
        let mut bench = Bench::new(256, 0, 3)?;
        bench.sends(3)?;
        bench.expect(&[(SEND, false), (SEND, false), (SEND, true)])?;
        same("error", bench.post(&[], 100).err(), Some(EAGAIN))?;
        same("lent", bench.queue.lent, 0)?;
        let _ = bench.retire(3)?;
        bench.expect_all_back(3)?;
        // The same without making any.
        bench.device.forget();
        bench.sends(3)?;
        bench.expect(&[(SEND, false), (SEND, false), (SEND, true)])?;
        bench.end()
    }

    #[test]
    fn one_buffer_stays_back_for_when_none_can_be_made() -> Result {
        let mut bench = Bench::new(256, 0, 100)?;
        bench.sends(2)?;
        let _ = bench.retire_all()?;
        same("in the pool", bench.queue.buffers.len(), 2)?;
        bench.post(&[], 100)?;
        for _ in 0..2 {
            // The caller is to make one, and cannot.
            claim(bench.queue.take_buffer()?.is_none(), "one stays back")?;
            let back = bench.queue.not_made().ok_or(ENOMEM)?;
            bench.queue.post_send(&[], back, 100, nobody)?;
            bench.queue.lent -= 1;
            let last = bench.device.send(bench.device.sends() - 1)?;
            claim(last.signaled, "it comes back")?;
            claim(bench.queue.take_buffer()?.is_none(), "none is left")?;
            claim(bench.queue.not_made().is_none(), "really none")?;
            bench.queue.lent -= 1;
            let _ = bench.retire(u64::MAX)?;
            // Those of before came with it.
            bench.post(&[], 100)?;
        }
        let _ = bench.retire_all()?;
        bench.expect_all_back(2)?;
        bench.end()
    }

    #[test]
    fn sends_in_place_are_signaled() -> Result {
        // siw sends a page or more in place, unless the memory is of a slab.
        let sizes = [1024, 2 * PAGE_SIZE, 4 * PAGE_SIZE];
        for (size, len, expected) in [
            (sizes[0], 1024, false),
            (sizes[1], PAGE_SIZE - 1, false),
            (sizes[1], PAGE_SIZE, false),
            (sizes[1], 2 * PAGE_SIZE, false),
            (sizes[2], PAGE_SIZE - 1, false),
            (sizes[2], PAGE_SIZE, true),
            (sizes[2], 4 * PAGE_SIZE, true),
        ] {
            let mut bench = Bench::with_size(256, 0, 64, size)?;
            bench.post(&[], len)?;
            bench.expect(&[(SEND, expected)])?;
            bench.end()?;
        }
        Ok(())
    }

    #[test]
    fn a_completion_retires_all_before_it() -> Result {
        let mut bench = Bench::new(32, 0, 16)?;
        bench.sends(10)?;
        for (end, back) in [(0, 0), (1, 1), (5, 5), (5, 5), (3, 5), (9, 9)] {
            let _ = bench.retire(end)?;
            same("buffers back", bench.queue.buffers.len(), back)?;
            same("tail", bench.queue.ring.tail(), back as u64)?;
        }
        for i in 0..32 {
            let expected = (i == 9).then_some(9);
            let ring = &bench.queue.ring;
            same("position", ring.position_of(ring.entry(i)), expected)?;
        }
        // No further than what was posted.
        let _ = bench.retire(u64::MAX)?;
        bench.expect_all_back(10)?;
        bench.end()
    }

    #[test]
    fn a_buffer_stays_until_retired() -> Result {
        let mut bench = Bench::new(32, 0, 2)?;
        bench.sends(2)?;
        let first = bench.device.send(0)?.sge.0;
        let _ = bench.retire(1)?;
        bench.post(&[], 100)?;
        // The first is free again, the second is not.
        same("address", bench.device.send(2)?.sge.0, first)?;
        claim(bench.device.send(1)?.sge.0 != first, "it is another")?;
        bench.end()
    }

    #[test]
    fn no_room_for_the_longest_call() -> Result {
        // The longest: 3 registrations, as many invalidations, a Send; and one more to be safe.
        let mut bench = Bench::new(16, 3, 16)?;
        bench.sends(9)?;
        same("error", bench.post(&[], 100).err(), Some(EAGAIN))?;
        claim(bench.queue.take_pooled().is_none(), "nor from the pool")?;
        let _ = bench.retire(1)?;
        bench.post(&[], 100)?;
        same("error", bench.post(&[], 100).err(), Some(EAGAIN))?;
        bench.end()
    }

    #[test]
    fn a_post_that_failed() -> Result {
        // Whatever the device says of which request failed: who knows what it has, so the buffer must not be
        // reused, and no completion may be of a request behind.
        for (refusal, error) in [
            (Refusal::After(0), ENOMEM),
            (Refusal::After(3), ENOMEM),
            (Refusal::Nameless, EIO),
        ] {
            let mut bench = Bench::new(64, 3, 8)?;
            let mapped = bench.mapped(3)?;
            bench.sends(2)?;
            bench.device.refuse_post(refusal);
            same("error", bench.post(&mapped, 100).err(), Some(error))?;
            same("head", bench.queue.ring.head(), 6)?;
            same("reserved", bench.queue.reserved, 3)?;
            same("buffers in the pool", bench.queue.buffers.len(), 0)?;
            let posts = bench.device.posts();
            same("another", bench.post(&[], 100).err(), Some(ENOTCONN))?;
            let result = bench.invalidate(&[1], 70);
            same("invalidating", result, Err((ENOTCONN, Some(70))))?;
            same("calls", bench.device.posts(), posts)?;
            let _ = bench.retire_all()?;
            bench.expect_all_back(3)?;
            bench.end()?;
        }
        Ok(())
    }

    #[test]
    fn invalidations_as_posted() -> Result {
        let mut bench = Bench::new(64, 3, 8)?;
        for (cookie, keys) in [(1, &[5][..]), (2, &[6, 7]), (3, &[8, 9, 10, 11])] {
            bench.device.forget();
            claim(bench.invalidate(keys, cookie).is_ok(), "posted")?;
            same("requests", bench.device.sends(), keys.len())?;
            for (i, key) in keys.iter().enumerate() {
                let posted = bench.device.send(i)?;
                same("request", (posted.opcode, posted.key), (INV, *key))?;
                let last = i + 1 == keys.len();
                same("signaled", posted.signaled, last)?;
            }
        }
        same("calls", bench.device.posts(), 3)?;
        let cookies = bench.retire_all()?;
        same("cookies", &cookies[..], &[1, 2, 3])?;
        bench.expect_all_back(0)?;
        bench.end()
    }

    #[test]
    fn a_cookie_comes_back_once() -> Result {
        let mut bench = Bench::new(64, 3, 8)?;
        // Positions 0 and 1: Sends; 2 to 4: a chain; 5: a Send; 6: a chain of one; 7: a Send.
        bench.sends(2)?;
        claim(bench.invalidate(&[1, 2, 3], 70).is_ok(), "posted")?;
        bench.sends(1)?;
        claim(bench.invalidate(&[4], 71).is_ok(), "posted")?;
        bench.sends(1)?;
        same("cookies", bench.retire(2)?.len(), 0)?;
        // Not before the last of its chain.
        same("cookies", bench.retire(4)?.len(), 0)?;
        same("cookies", &bench.retire(5)?[..], &[70])?;
        same("cookies", bench.retire(5)?.len(), 0)?;
        same("cookies", bench.retire(6)?.len(), 0)?;
        same("cookies", &bench.retire_all()?[..], &[71])?;
        same("cookies", bench.retire_all()?.len(), 0)?;
        bench.expect_all_back(4)?;
        bench.end()
    }

    #[test]
    fn one_completion_for_many_cookies() -> Result {
        let mut bench = Bench::new(64, 3, 8)?;
        for cookie in 0..5 {
            claim(bench.invalidate(&[1, 2], cookie).is_ok(), "posted")?;
            bench.sends(1)?;
        }
        let cookies = bench.retire_all()?;
        same("cookies", cookies.len(), 5)?;
        for (i, cookie) in cookies.iter().enumerate() {
            same("cookie", *cookie, i as u32)?;
        }
        bench.expect_all_back(5)?;
        bench.end()
    }

    #[test]
    fn invalidations_that_failed() -> Result {
        for (refusal, error) in [
            (Refusal::After(0), ENOMEM),
            (Refusal::After(2), ENOMEM),
            (Refusal::Nameless, EIO),
        ] {
            let mut bench = Bench::new(64, 3, 8)?;
            bench.sends(1)?;
            bench.queue.reserved = 3;
            bench.device.refuse_post(refusal);
            let result = bench.invalidate(&[1, 2, 3], 70);
            same("result", result, Err((error, None)))?;
            same("reserved", bench.queue.reserved, 0)?;
            same("head", bench.queue.ring.head(), 4)?;
            // Nothing that completes well can retire it.
            same("another", bench.post(&[], 100).err(), Some(ENOTCONN))?;
            same("cookies", bench.retire(1)?.len(), 0)?;
            same("cookies", &bench.retire_all()?[..], &[70])?;
            bench.expect_all_back(1)?;
            bench.end()?;
        }
        Ok(())
    }

    #[test]
    fn names_of_requests() -> Result {
        let mut bench = Bench::new(64, 3, 8)?;
        let last = Purpose::LastInvalidation(Waiter::Reply);
        claim(bench.invalidate(&[5, 6, 7], 70).is_ok(), "posted")?;
        // That of the others is known only while an event wants it.
        let name = |bench: &Bench, position| {
            let name = bench.queue.purpose_of(position);
            name.map(|(purpose, id)| (purpose, id.number()))
        };
        same("first", name(&bench, 0), None)?;
        same("last", name(&bench, 2), Some((last, 7)))?;
        same("names", &bench.names()[..], &[(last, 7)])?;
        let mapped = bench.mapped(1)?;
        bench.post(&mapped, 100)?;
        same("registration", name(&bench, 3), None)?;
        let sent = name(&bench, 4);
        same("sent", sent.map(|name| name.0), Some(Purpose::Send))?;
        same("names", bench.names().first().copied(), sent)?;
        bench.end()
    }

    #[test]
    fn an_invalidation_always_has_room() -> Result {
        // Calls until there is no room; then all of their regions have to be invalidated, while
        // none of their Sends is known to be complete.
        for slots in [16, 17, 40, 64] {
            let mut bench = Bench::new(slots, 3, 64)?;
            let mapped = bench.mapped(3)?;
            let mut calls = 0;
            while bench.post(&mapped, 100).is_ok() {
                calls += 1;
            }
            claim(calls >= 2, "some calls were posted")?;
            same("reserved", bench.queue.reserved, 3 * calls)?;
            for cookie in 0..calls {
                let result = bench.invalidate(&[1, 2, 3], cookie);
                same("result", result, Ok(()))?;
                let ring = &bench.queue.ring;
                let used = ring.head() - ring.tail();
                claim(used <= slots.into(), "no slot is used twice")?;
            }
            same("reserved", bench.queue.reserved, 0)?;
            same("cookies", bench.retire_all()?.len(), calls as usize)?;
            bench.end()?;
        }
        Ok(())
    }

    #[test]
    fn remote_invalidation_frees_the_reservation() -> Result {
        let mut bench = Bench::new(64, 1, 8)?;
        let mapped = bench.mapped(1)?;
        bench.post(&mapped, 100)?;
        same("reserved", bench.queue.reserved, 1)?;
        same("room", bench.queue.room(), 61)?;
        // No reservation is given up that there is not.
        for _ in 0..2 {
            let idle = bench.mapped(1)?.pop().ok_or(ENOENT)?.unmap(drop);
            bench.queue.give_back_region(idle, true);
            same("reserved", bench.queue.reserved, 0)?;
        }
        bench.end()
    }

    #[test]
    fn too_many_invalidations() -> Result {
        let mut bench = Bench::new(8, 3, 8)?;
        let none = bench.invalidate(&[], 1);
        same("none", none, Err((ENOTCONN, Some(1))))?;
        let many = bench.invalidate(&[1, 2, 3, 4, 5], 2);
        same("more than a chain", many, Err((ENOTCONN, Some(2))))?;
        for cookie in 3..5 {
            same("result", bench.invalidate(&[1, 2, 3, 4], cookie), Ok(()))?;
        }
        let full = bench.invalidate(&[1], 5);
        same("a full ring", full, Err((ENOTCONN, Some(5))))?;
        same("calls", bench.device.posts(), 2)?;
        same("cookies", bench.retire_all()?.len(), 2)?;
        bench.end()
    }

    #[test]
    fn around_the_ring() -> Result {
        for slots in [7u32, 8, 13] {
            let mut bench = Bench::new(slots, 1, 16)?;
            let (mut position, mut cookie, mut back) = (0u64, 0, 0);
            for i in 0..1000u32 {
                let before = bench.device.sends();
                if i % 3 == 1 && bench.queue.room() >= 2 {
                    same("result", bench.invalidate(&[1, 2], cookie), Ok(()))?;
                    cookie += 1;
                } else if bench.queue.room() >= 4 {
                    bench.post(&[], 100)?;
                }
                for j in before..bench.device.sends() {
                    let entry = bench.device.send(j)?.entry;
                    let ring = &bench.queue.ring;
                    let slot = (position % u64::from(slots)) as isize;
                    same("entry", entry.cast_const(), ring.entry(slot))?;
                    same("position", ring.position_of(entry), Some(position))?;
                    position += 1;
                }
                if i % 4 == 3 {
                    let ring = &bench.queue.ring;
                    let end = ring.head().min(ring.tail() + u64::from(i % 5));
                    back += bench.retire(end)?.len() as u32;
                    same("tail", bench.queue.ring.tail(), end)?;
                }
                // What is posted has distinct slots; the rest has none.
                let ring = &bench.queue.ring;
                let posted = (0..slots as isize)
                    .filter(|slot| ring.position_of(ring.entry(*slot)).is_some())
                    .count() as u64;
                let used = ring.head() - ring.tail();
                same("posted", posted, used)?;
                claim(used <= slots.into(), "no slot is used twice")?;
                bench.device.forget();
            }
            claim(position > 20 * u64::from(slots), "it went round")?;
            back += bench.retire_all()?.len() as u32;
            same("cookies", back, cookie)?;
            bench.expect_all_back(bench.queue.made)?;
            bench.end()?;
        }
        Ok(())
    }

    #[test]
    fn foreign_completion() -> Result {
        let bench = Bench::new(8, 0, 1)?;
        let ring = &bench.queue.ring;
        for entry in [ring.entry(-1), ring.entry(8), core::ptr::null()] {
            same("position", ring.position_of(entry), None)?;
        }
        // Nothing is posted.
        for i in 0..8 {
            same("position", ring.position_of(ring.entry(i)), None)?;
        }
        bench.end()
    }

    #[test]
    fn states() -> Result {
        // Who may take a buffer, post a Send, post an invalidation.
        for (state, sends, invalidations) in [
            (QpState::New, false, false),
            (QpState::Open, true, true),
            (QpState::Draining, false, true),
            (QpState::Closed, false, false),
        ] {
            let mut bench = Bench::new(16, 1, 2)?;
            // One is in the pool, one was taken before that changed.
            bench.sends(1)?;
            let _ = bench.retire_all()?;
            // SAFETY: The device lives as long as the ring.
            let buffer =
                unsafe { DmaBuffer::new(bench.device.as_ptr(), bench.size, Direction::ToDevice)? };
            bench.queue.made += 1;
            bench.queue.ring.state = state;

            let refused = (!sends).then_some(ENOTCONN);
            same("taking", bench.queue.take_buffer().err(), refused)?;
            let pooled = bench.queue.take_pooled().is_some();
            claim(!pooled, "nothing in the pool, or it is closed")?;
            let posts = bench.device.posts();
            let posted = bench.queue.post_send(&[], buffer, 100, nobody);
            same("posting", posted.err(), refused)?;
            same("calls", bench.device.posts(), posts + u32::from(sends))?;
            let result = bench.invalidate(&[1], 9);
            let expected = if invalidations {
                Ok(())
            } else {
                Err((ENOTCONN, Some(9)))
            };
            same("invalidating", result, expected)?;
            let _ = bench.retire_all()?;
            bench.end()?;
        }
        Ok(())
    }

    #[test]
    fn closed_before_it_is_opened() -> Result {
        let mut bench = Bench::closed(16, 1, 4, 1024)?;
        same("taking", bench.queue.take_buffer().err(), Some(ENOTCONN))?;
        claim(bench.queue.take_pooled().is_none(), "nor from the pool")?;
        let result = bench.invalidate(&[1], 9);
        same("invalidating", result, Err((ENOTCONN, Some(9))))?;
        let ring = &bench.queue.ring;
        same("position", ring.position_of(ring.entry(0)), None)
    }

    #[test]
    fn table_of_regions() -> Result {
        let mut bench = Bench::new(64, 1, 4)?;
        claim(bench.queue.take_region().is_none(), "none yet")?;
        drop(bench.mapped(5)?);
        for i in 0..5 {
            let mr = bench.mrs[i].clone();
            bench.queue.add_region(mr)?;
        }
        let mut taken = KVec::new();
        while let Some(region) = bench.queue.take_region() {
            taken.push(region, GFP_KERNEL)?;
        }
        same("regions", taken.len(), 5)?;
        // There is room for all that are out, whatever is added meanwhile.
        drop(bench.mapped(1)?);
        let mr = bench.mrs[5].clone();
        bench.queue.add_region(mr)?;
        for region in taken.drain_all() {
            bench.queue.give_back_region(region, false);
        }
        same("idle", bench.queue.idle.len(), 6)?;
        let (all, idle) = bench.queue.take_all_regions();
        same("in the table", (all.len(), idle.len()), (6, 6))?;
        claim(bench.queue.take_region().is_none(), "none is left")?;
        drop((all, idle));
        bench.end()
    }
}
