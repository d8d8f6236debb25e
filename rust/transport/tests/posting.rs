// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Protects: what a request uses is held until the adapter has done with it, no longer; every slot,
//! buffer and cookie comes back exactly once, whatever part of a chain was posted; a completion
//! is always in reach, and a local invalidation always has room.

use crate::{
    kapi::ib::{
        fake::{
            self,
            numbers::{
                INV,
                REG,
                SEND, //
            },
            Balance,
            Device,
            Memory,
            Refusal, //
        },
        Access,
        CmEvent,
        CmHandler,
        InvalidatedKey,
        Regions,
        SendDone,
        Wc, //
    },
    kunit::{
        claim,
        same, //
    },
    transport::{
        bring_up,
        endpoint::*,
        plan::{
            Plan,
            UNSIGNALED_RUN, //
        },
        send_buffer::Purpose,
        tests::*,
        trace::WrKind,
        work::{
            Message,
            Waiter, //
        }, //
    },
};
use fixture::*;
use kernel::{
    new_spinlock,
    page::PAGE_SIZE,
    prelude::*,
    sync::{
        Arc,
        SpinLock, //
    },
};
mod fixture;

#[kunit_tests(rpcrdma_send_ring)]
mod suite {
    use super::*;

    #[test]
    fn a_send_as_posted() -> Result {
        let mut bench = Bench::new(64, 2, 8)?;
        bench.post(2, 100)?;
        bench.expect(&[(REG, false), (REG, false), (SEND, false)])?;
        same("calls", bench.device.posts(), 1)?;
        for (i, region) in bench.calls[0].registered().iter().enumerate() {
            let posted = bench.device.send(i)?;
            same("key", posted.key, region.rkey())?;
            same("access", posted.access as u32, Access::RemoteRead.as_raw())?;
        }
        let (_, len, lkey) = bench.device.send(2)?.sge;
        same("length", len, 100)?;
        same("local key", lkey, fake::LKEY)?;
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
        for _ in 0..8 {
            bench.post(3, 100)?;
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
                let mut without = 0;
                for _ in 0..4 * slots {
                    if bench.post(registrations, 100).is_err() {
                        bench.endpoint.lock().reserved = 0;
                        let _ = bench.retire_all();
                        bench.post(registrations, 100)?;
                    }
                    without += registrations as u32 + 1;
                    if bench.last_is_signaled()? {
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
        same("error", bench.post(0, 100).err(), Some(EAGAIN))?;
        let _ = bench.retire(3);
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
        let _ = bench.retire_all();
        same("in the pool", bench.pooled(), 2)?;
        bench.post(0, 100)?;
        for _ in 0..2 {
            // The caller is to make one, and cannot.
            let mut queue = bench.endpoint.lock();
            claim(
                queue.get_buffer(Purpose::Message)?.is_none(),
                "one stays back",
            )?;
            let back = queue.not_made().ok_or(ENOMEM)?;
            let mut message = Message {
                buffer: Some(back),
                len: 100,
                ..Message::default()
            };
            queue.post_call(&mut message, None, nobody)?;
            claim(
                queue.get_buffer(Purpose::Message)?.is_none(),
                "none is left",
            )?;
            claim(queue.not_made().is_none(), "really none")?;
            drop(queue);
            claim(bench.last_is_signaled()?, "it comes back")?;
            let _ = bench.retire(u64::MAX);
            // Those of before came with it.
            bench.post(0, 100)?;
        }
        let _ = bench.retire_all();
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
            bench.post(0, len)?;
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
            let _ = bench.retire(end);
            same("buffers back", bench.pooled(), back)?;
            same("tail", bench.endpoint.lock().ring().tail(), back as u64)?;
        }
        // No further than what was posted.
        let _ = bench.retire(u64::MAX);
        bench.expect_all_back(10)?;
        bench.end()
    }

    #[test]
    fn a_buffer_stays_until_retired() -> Result {
        let mut bench = Bench::new(32, 0, 2)?;
        bench.sends(2)?;
        let first = bench.device.send(0)?.sge.0;
        let _ = bench.retire(1);
        bench.post(0, 100)?;
        // The first is free again, the second is not.
        same("address", bench.device.send(2)?.sge.0, first)?;
        claim(bench.device.send(1)?.sge.0 != first, "it is another")?;
        bench.end()
    }

    #[test]
    fn no_room_for_the_longest_call() -> Result {
        // The longest: 3 registrations, as many invalidations, a Send; and two Sends of others.
        let mut bench = Bench::new(16, 3, 16)?;
        bench.sends(8)?;
        same("error", bench.post(0, 100).err(), Some(EAGAIN))?;
        // What waits for room needs none now.
        drop(bench.endpoint.send_buffer(Purpose::Queued)?);
        let _ = bench.retire(1);
        bench.post(0, 100)?;
        same("error", bench.post(0, 100).err(), Some(EAGAIN))?;
        bench.end()
    }

    #[test]
    fn others_leave_the_room_that_a_call_has_seen() -> Result {
        let mut bench = Bench::new(16, 3, 16)?;
        while bench.post(0, 100).is_ok() {}
        // So much that there is just room.
        let _ = bench.retire(1);
        let mut regions = bench.mapped(3)?;
        let call = bench.endpoint.send_buffer(Purpose::Message)?;
        let others = [
            bench.endpoint.send_buffer(Purpose::Message)?,
            bench.endpoint.send_buffer(Purpose::Message)?,
        ];
        for other in others {
            post(other, 100, None)?;
        }
        let posted = post(call, 100, Some(&mut regions));
        bench.endpoint.unmap(&mut regions);
        bench.calls.push(regions, GFP_KERNEL)?;
        same("Call", posted, Ok(()))?;
        let _ = bench.retire_all();
        bench.end()
    }

    #[test]
    fn a_post_that_failed() -> Result {
        // Whatever the device says of which request failed: who knows what it has, so the buffer
        // must not be reused, and no completion may be of a request behind.
        for (refusal, error) in [
            (Refusal::After(0), ENOMEM),
            (Refusal::After(3), ENOMEM),
            (Refusal::Nameless, EIO),
        ] {
            let mut bench = Bench::new(64, 3, 8)?;
            bench.sends(2)?;
            bench.device.refuse_post(refusal);
            same("error", bench.post(3, 100).err(), Some(error))?;
            same("head", bench.endpoint.lock().ring().head(), 6)?;
            same("reserved", bench.endpoint.lock().reserved, 3)?;
            same("buffers in the pool", bench.pooled(), 0)?;
            let posts = bench.device.posts();
            same("another", bench.post(0, 100).err(), Some(ENOTCONN))?;
            let result = bench.invalidate(1, 70);
            same("invalidating", result, Err((ENOTCONN, Some(70))))?;
            same("calls", bench.device.posts(), posts)?;
            let _ = bench.retire_all();
            bench.expect_all_back(3)?;
            bench.end()?;
        }
        Ok(())
    }

    #[test]
    fn invalidations_as_posted() -> Result {
        let mut bench = Bench::new(64, 3, 8)?;
        for (cookie, n) in [(1, 1), (2, 2), (3, 4)] {
            bench.device.forget();
            let mut regions = bench.mapped(n)?;
            regions.register_unposted();
            let mut keys = KVec::new();
            for region in regions.registered() {
                keys.push(region.rkey(), GFP_KERNEL)?;
            }
            let posted = bench.invalidate_those(&mut regions, cookie);
            bench.calls.push(regions, GFP_KERNEL)?;
            same("result", posted, Ok(()))?;
            same("requests", bench.device.sends(), n)?;
            for (i, key) in keys.iter().enumerate() {
                let posted = bench.device.send(i)?;
                same("request", (posted.opcode, posted.key), (INV, *key))?;
                let last = i + 1 == n;
                same("signaled", posted.signaled, last)?;
            }
        }
        same("calls", bench.device.posts(), 3)?;
        let cookies = bench.retire_all();
        same("cookies", &cookies[..], &[1, 2, 3])?;
        bench.expect_all_back(0)?;
        bench.end()
    }

    #[test]
    fn a_cookie_comes_back_once() -> Result {
        let mut bench = Bench::new(64, 3, 8)?;
        // Positions 0 and 1: Sends; 2 to 4: a chain; 5: a Send; 6: a chain of one; 7: a Send.
        bench.sends(2)?;
        claim(bench.invalidate(3, 70).is_ok(), "posted")?;
        bench.sends(1)?;
        claim(bench.invalidate(1, 71).is_ok(), "posted")?;
        bench.sends(1)?;
        same("cookies", bench.retire(2).len(), 0)?;
        // Not before the last of its chain.
        same("cookies", bench.retire(4).len(), 0)?;
        same("cookies", &bench.retire(5)[..], &[70])?;
        same("cookies", bench.retire(5).len(), 0)?;
        same("cookies", bench.retire(6).len(), 0)?;
        same("cookies", &bench.retire_all()[..], &[71])?;
        same("cookies", bench.retire_all().len(), 0)?;
        bench.expect_all_back(4)?;
        bench.end()
    }

    #[test]
    fn one_completion_for_many_cookies() -> Result {
        let mut bench = Bench::new(64, 3, 8)?;
        for cookie in 0..5 {
            claim(bench.invalidate(2, cookie).is_ok(), "posted")?;
            bench.sends(1)?;
        }
        let cookies = bench.retire_all();
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
            bench.endpoint.lock().reserved = 3;
            bench.device.refuse_post(refusal);
            let result = bench.invalidate(3, 70);
            same("result", result, Err((error, None)))?;
            same("reserved", bench.endpoint.lock().reserved, 0)?;
            same("head", bench.endpoint.lock().ring().head(), 4)?;
            // Nothing that completes well can retire it.
            same("another", bench.post(0, 100).err(), Some(ENOTCONN))?;
            same("cookies", bench.retire(1).len(), 0)?;
            same("cookies", &bench.retire_all()[..], &[70])?;
            bench.expect_all_back(1)?;
            bench.end()?;
        }
        Ok(())
    }

    #[test]
    fn names_of_requests() -> Result {
        let mut bench = Bench::new(64, 3, 8)?;
        let last = WrKind::LastInvalidation(Waiter::Reply);
        claim(bench.invalidate(3, 70).is_ok(), "posted")?;
        // That of the others is known only while an event wants it.
        let name = |bench: &Bench, position| {
            let name = bench.endpoint.lock().kind_of(position);
            name.map(|(kind, _)| kind)
        };
        same("first", name(&bench, 0), None)?;
        same("last", name(&bench, 2), Some(last))?;
        bench.post(1, 100)?;
        same("registration", name(&bench, 3), None)?;
        same("sent", name(&bench, 4), Some(WrKind::Send))?;
        let _ = bench.retire_all();
        bench.end()
    }

    #[test]
    fn an_invalidation_always_has_room() -> Result {
        // Calls until there is no room; then all of their regions have to be invalidated, while
        // none of their Sends is known to be complete.
        for slots in [16, 17, 40, 64] {
            let mut bench = Bench::new(slots, 3, 64)?;
            let mut calls = 0;
            while bench.post(3, 100).is_ok() {
                calls += 1;
            }
            claim(calls >= 2, "some calls were posted")?;
            same("reserved", bench.endpoint.lock().reserved, 3 * calls)?;
            let mut posted = core::mem::take(&mut bench.calls);
            for (cookie, regions) in posted.iter_mut().take(calls as usize).enumerate() {
                let result = bench.invalidate_those(regions, cookie as u32);
                same("result", result, Ok(()))?;
                let queue = bench.endpoint.lock();
                let used = queue.ring().head() - queue.ring().tail();
                claim(used <= slots.into(), "no slot is used twice")?;
            }
            same("reserved", bench.endpoint.lock().reserved, 0)?;
            same("cookies", bench.retire_all().len(), calls as usize)?;
            bench.calls = posted;
            bench.end()?;
        }
        Ok(())
    }

    #[test]
    fn remote_invalidation_frees_the_reservation() -> Result {
        let mut bench = Bench::new(64, 1, 8)?;
        bench.post(1, 100)?;
        same("reserved", bench.endpoint.lock().reserved, 1)?;
        same("room", bench.endpoint.lock().sq_avail(), 61)?;
        // No reservation is given up that there is not.
        bench.endpoint.grow_regions(1, u32::MAX)?;
        for _ in 0..2 {
            let mut queue = bench.endpoint.lock();
            let idle = queue.get_region().ok_or(ENOENT)?;
            queue.put_region(idle, true);
            same("reserved", queue.reserved, 0)?;
        }
        bench.end()
    }

    #[test]
    fn room_that_a_key_gives_is_had_when_asked_for() -> Result {
        let mut bench = Bench::new(25, 1, 8)?;
        let mut regions = bench.mapped(1)?;
        let call = bench.endpoint.send_buffer(Purpose::Call)?;
        post(call, 100, Some(&mut regions))?;
        bench.read_until_one_waits()?;
        let posted = bench.device.sends();
        let rkey = regions.registered().first().ok_or(EINVAL)?.rkey();
        let key = InvalidatedKey::test(rkey, bench.endpoint.number());
        let freed = bench
            .endpoint
            .remotely_invalidated(&mut regions, key, nobody);
        same("whether one waits", freed, Some(true))?;
        // Who has the lock of an RPC may be told now, and no other RPC may be looked at.
        same("posted", bench.device.sends(), posted)?;
        bench.endpoint.make_room();
        claim(bench.device.sends() > posted, "it is its turn")?;
        bench.calls.push(regions, GFP_KERNEL)?;
        bench.end()
    }

    #[test]
    fn too_many_invalidations() -> Result {
        let mut bench = Bench::new(8, 3, 8)?;
        let none = bench.invalidate(0, 1);
        same("none", none, Err((ENOTCONN, Some(1))))?;
        let many = bench.invalidate(5, 2);
        same("more than a chain", many, Err((ENOTCONN, Some(2))))?;
        for cookie in 3..5 {
            same("result", bench.invalidate(4, cookie), Ok(()))?;
        }
        let full = bench.invalidate(1, 5);
        same("a full ring", full, Err((ENOTCONN, Some(5))))?;
        same("calls", bench.device.posts(), 2)?;
        same("cookies", bench.retire_all().len(), 2)?;
        bench.end()
    }

    #[test]
    fn a_call_has_the_room_that_it_has_seen() -> Result {
        let mut bench = Bench::new(24, 1, 8)?;
        let mut regions = bench.mapped(1)?;
        // It has seen that there is room, and is being made.
        let call = bench.endpoint.send_buffer(Purpose::Call)?;
        bench.read_until_one_waits()?;
        let posted = post(call, 100, Some(&mut regions));
        bench.calls.push(regions, GFP_KERNEL)?;
        same("Call", posted, Ok(()))?;
        bench.end()
    }

    #[test]
    fn a_call_waits_for_what_waits() -> Result {
        let bench = Bench::new(24, 1, 8)?;
        bench.read_until_one_waits()?;
        let posted = bench.device.sends();
        let word = bench.endpoint.send_buffer(Purpose::Queued)?;
        send(word, 16)?;
        same("posted in front", bench.device.sends(), posted)?;
        let call = bench.endpoint.send_buffer(Purpose::Call).map(|_| ());
        same("Call", call, Err(EAGAIN))?;
        bench.device.complete_sends(posted)?;
        let left = bench.device.sends();
        let last = bench.device.send(left - 1)?;
        same("the last", last.opcode, SEND)?;
        bench.device.complete_sends(left)?;
        drop(bench.endpoint.send_buffer(Purpose::Call)?);
        bench.end()
    }

    #[test]
    fn a_call_stays_behind_what_waits_though_there_is_room() -> Result {
        let bench = Bench::new(24, 1, 8)?;
        bench.read_until_one_waits()?;
        let word = bench.endpoint.send_buffer(Purpose::Queued)?;
        send(word, 16)?;
        // The RDMA Reads have ended, and nobody has looked yet at what waits.
        while bench.device.sends() != 0 {
            let posted = bench.device.take_send()?;
            drop(bench.endpoint.take_reading(posted.entry));
        }
        drop(bench.endpoint.send_buffer(Purpose::Message)?);
        let call = bench.endpoint.send_buffer(Purpose::Call).map(|_| ());
        same("Call", call, Err(EAGAIN))?;
        bench.endpoint.make_room();
        let left = bench.device.sends();
        same("the word", bench.device.send(left - 1)?.opcode, SEND)?;
        drop(bench.endpoint.send_buffer(Purpose::Call)?);
        bench.device.complete_sends(left)?;
        bench.end()
    }

    #[test]
    fn calls_leave_room_for_what_comes_back_by_itself() -> Result {
        let mut bench = Bench::new(24, 1, 16)?;
        // As many as there can be, none of which is answered.
        loop {
            let mut regions = bench.mapped(1)?;
            let call = match bench.endpoint.send_buffer(Purpose::Call) {
                Ok(call) => call,
                Err(e) => {
                    same("no more", e, EAGAIN)?;
                    bench.endpoint.unmap(&mut regions);
                    break;
                }
            };
            post(call, 100, Some(&mut regions))?;
            bench.calls.push(regions, GFP_KERNEL)?;
        }
        claim(bench.calls.len() > 1, "there are some")?;
        let posted = bench.device.sends();
        bench.read(1)?;
        let after = bench.device.sends();
        claim(posted < after, "a Reply is pulled")?;
        bench.device.complete_sends(after)?;
        let word = bench.endpoint.send_buffer(Purpose::Queued)?;
        send(word, 16)?;
        same("a word", bench.device.sends(), 1)?;
        drop(bench.endpoint.send_buffer(Purpose::Message)?);
        bench.end()
    }

    #[test]
    fn table_of_regions() -> Result {
        let bench = Bench::new(64, 1, 4)?;
        claim(bench.endpoint.lock().get_region().is_none(), "none yet")?;
        bench.endpoint.grow_regions(5, 5)?;
        let mut taken = KVec::with_capacity(5, GFP_KERNEL)?;
        loop {
            let region = bench.endpoint.lock().get_region();
            match region {
                Some(region) => taken.push(region, GFP_KERNEL)?,
                None => break,
            }
        }
        same("regions", taken.len(), 5)?;
        // There is room for all that are out, whatever is added meanwhile.
        bench.endpoint.grow_regions(1, 6)?;
        for region in taken.drain_all() {
            bench.endpoint.lock().put_region(region, false);
        }
        same("idle", bench.endpoint.idle_regions(), 6)?;
        bench.end()
    }
}
