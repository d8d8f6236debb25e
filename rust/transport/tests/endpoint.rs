// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Protects: whatever fails while a connection is made, used or ended, its objects go once and in
//! order, every handler has ended before, every cookie has come back, and no peer can reach
//! memory that is given back.

use crate::{
    kapi::{
        ib::{
            fake::{
                self,
                numbers,
                Balance,
                Device,
                Memory,
                Refusal,
                Request, //
            },
            Access,
            CmEvent,
            CmHandler,
            CmId,
            ConnectParams,
            Invalidated,
            InvalidatedKey,
            NotMade,
            Part,
            Regions, //
        },
        sys::workqueue::{
            work_class,
            DelayedWork,
            OwnedQueue,
            Timer,
            WorkItem, //
        },
    },
    kunit::{
        claim,
        same, //
    },
    transport::{
        bring_up,
        endpoint::*,
        send_buffer::Purpose,
        tests::*,
        work::Waiter, //
    },
};
use fixture::*;
use kernel::{
    new_spinlock,
    page::PAGE_SIZE,
    prelude::*,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Full,
            Release, //
        },
        Arc,
        SpinLock, //
    },
    time::{
        delay::fsleep,
        Delta, //
    },
};

mod creation;
mod fixture;
mod ownership;
mod padding;

#[kunit_tests(rpcrdma_queue_pair)]
mod suite {
    use super::*;

    #[test]
    fn made_and_dropped() -> Result {
        let bench = Bench::new()?;
        bench.device.expect_all(&MADE)?;
        bench.end()
    }

    #[test]
    fn made_and_shut_down() -> Result {
        let bench = Bench::new()?;
        bench.shut_down(0)?;
        bench.told(&[], &[])?;
        // Once is enough.
        bench.qp.shutdown();
        bench
            .device
            .expect_since(Request::DeallocPd, &[Request::DeallocPd])?;
        bench.end()
    }

    #[test]
    fn nothing_can_be_done_after_the_end() -> Result {
        let bench = Bench::new()?;
        bench.receives(1)?;
        let registered = bench.call(1)?;
        bench.shut_down(1)?;
        drop(registered);
        let (posts, qp) = (bench.device.posts(), &bench.qp);
        for purpose in [Purpose::Message, Purpose::Queued] {
            same("buffer", qp.send_buffer(purpose).err(), Some(ENOTCONN))?;
        }
        same("regions", qp.grow_regions(1, 100).err(), Some(ENOTCONN))?;
        same("posting", qp.post_receives(8).err(), Some(ENOTCONN))?;
        let params = ConnectParams {
            private_data: &[],
            responder_resources: 1,
            initiator_depth: 0,
            retry_count: 6,
        };
        same("connecting", qp.connect(&params).err(), Some(ENOTCONN))?;
        same("disconnecting", qp.disconnect().err(), Some(ENOTCONN))?;
        same("arming", qp.enter().err(), Some(ENOTCONN))?;
        same("posts", bench.device.posts(), posts)?;
        bench.end()
    }

    #[test]
    fn receives_after_the_end() -> Result {
        let bench = Bench::new()?;
        bench.qp.shutdown();
        let grown = bench.qp.grow_receives(4);
        same("growing", grown.err(), Some(ENOTCONN))?;
        bench.balance.more(0)?;
        bench.end()
    }

    #[test]
    fn messages_are_delivered() -> Result {
        let bench = Bench::on(Device::roce)?;
        bench.receives(4)?;
        bench.device.deliver(&[1, 2, 3], None)?;
        bench.device.deliver(&[], Some(0))?;
        bench.device.deliver(&[9; 256], Some(u32::MAX))?;
        let told = bench.qp.handler().told.lock();
        let expected = [(3, None), (0, Some(0)), (256, Some(u32::MAX))];
        same("messages", &told.messages[..], &expected)?;
        drop(told);
        // Each buffer can be posted again after its handler has ended.
        same("posted", bench.qp.post_receives(8)?, 3)?;
        same("with the device", bench.device.receives(), 4)?;
        bench.shut_down(0)?;
        bench.told(&[], &[FLUSHED; 4])?;
        bench.end()
    }

    #[test]
    fn a_failed_receive() -> Result {
        let bench = Bench::new()?;
        bench.receives(2)?;
        bench.device.fail_receive(BROKEN)?;
        bench.told(&[], &[BROKEN])?;
        let messages = bench.qp.handler().told.lock().messages.len();
        same("messages", messages, 0)?;
        bench.shut_down(0)?;
        bench.told(&[], &[BROKEN, FLUSHED])?;
        bench.end()
    }

    #[test]
    fn a_call_with_remote_invalidation() -> Result {
        let bench = Bench::new()?;
        let mut regions = bench.call(2)?;
        bench.balance.more(3)?;
        claim(!regions.is_fenced(), "the peer has two keys")?;
        let keys = [
            regions.registered()[0].rkey(),
            regions.registered()[1].rkey(),
        ];
        let qp = &bench.qp;
        for key in [0, keys[0] + 1, keys[1] ^ 0x1000] {
            let found = qp.remotely_invalidated(
                &mut regions,
                InvalidatedKey::test(key, bench.qp.number()),
                nobody,
            );
            claim(found.is_none(), "another key says nothing")?;
        }
        for key in [keys[1], keys[0]] {
            claim(!regions.is_fenced(), "not yet")?;
            let found = qp.remotely_invalidated(
                &mut regions,
                InvalidatedKey::test(key, bench.qp.number()),
                nobody,
            );
            claim(found.is_some(), "its own key does")?;
            let found = qp.remotely_invalidated(
                &mut regions,
                InvalidatedKey::test(key, bench.qp.number()),
                nobody,
            );
            claim(found.is_none(), "but once")?;
        }
        claim(regions.is_fenced(), "fenced")?;
        bench.balance.more(1)?;
        // The Reply proves nothing of the send buffer.
        same("pool", qp.lock().buffers.len(), 0)?;
        bench.shut_down(2)?;
        bench.end()
    }

    #[test]
    fn a_call_with_local_invalidation() -> Result {
        let bench = Bench::new()?;
        let mut regions = bench.call(2)?;
        bench.invalidate(&mut regions, 5)?;
        claim(!regions.is_fenced(), "not before the completion")?;
        bench.balance.more(3)?;
        // Two registrations, a Send, an invalidation: the last is signaled.
        bench.device.complete_sends(4)?;
        bench.told(&[], &[])?;
        bench.device.complete_sends(1)?;
        bench.told(&[(5, true)], &[])?;
        bench.completed(&mut regions);
        claim(regions.is_fenced(), "fenced")?;
        bench.balance.more(1)?;
        let spaces = bench.qp.handler().told.lock().spaces;
        same("told of space", spaces, 1)?;
        bench.shut_down(2)?;
        bench.told(&[(5, true)], &[])?;
        bench.end()
    }

    #[test]
    fn a_failed_invalidation_is_no_fence() -> Result {
        let bench = Bench::new()?;
        let mut regions = bench.call(1)?;
        bench.invalidate(&mut regions, 5)?;
        bench.device.complete_sends(2)?;
        bench.device.fail_send(BROKEN)?;
        bench.told(&[(5, false)], &[BROKEN])?;
        regions.drop_dead();
        claim(!regions.is_fenced(), "nobody knows")?;
        bench.shut_down(1)?;
        bench.expect_dead(regions)?;
        bench.end()
    }

    #[test]
    fn a_failed_send_fails_the_invalidations_before_it() -> Result {
        // A flush is reported for unsignaled requests as well, and for those that succeeded.
        let bench = Bench::new()?;
        let mut regions = bench.call(1)?;
        bench.invalidate(&mut regions, 5)?;
        drop(bench.call(0)?);
        for _ in 0..4 {
            bench.device.fail_send(FLUSHED)?;
        }
        bench.told(&[(5, false)], &[FLUSHED; 4])?;
        bench.shut_down(1)?;
        bench.told(&[(5, false)], &[FLUSHED; 4])?;
        bench.expect_dead(regions)?;
        bench.end()
    }

    #[test]
    fn a_partial_chain_of_invalidations_is_no_fence() -> Result {
        for taken in 0..3 {
            let bench = Bench::new()?;
            let mut regions = bench.call(3)?;
            bench.device.refuse_post(Refusal::After(taken));
            let result = bench.invalidation(&mut regions, 5);
            same("result", result, Err((ENOMEM, None)))?;
            // Nobody else's Send can succeed before the connection is dropped.
            for _ in 0..16 {
                claim(bench.call(0).is_err(), "nothing more is posted")?;
                let n = bench.device.sends();
                bench.device.complete_sends(n)?;
            }
            bench.told(&[], &[])?;
            regions.drop_dead();
            claim(!regions.is_fenced(), "nobody knows")?;
            bench.shut_down(3)?;
            bench.told(&[(5, false)], &[])?;
            bench.expect_dead(regions)?;
            bench.end()?;
        }
        Ok(())
    }

    #[test]
    fn tear_down_with_everything_posted() -> Result {
        let bench = Bench::new()?;
        bench.receives(5)?;
        let registered = bench.call(2)?;
        let mut invalidating = bench.call(1)?;
        bench.invalidate(&mut invalidating, 5)?;
        let mut also = bench.call(2)?;
        bench.invalidate(&mut also, 6)?;
        let mapped = bench.map(1)?;
        bench.qp.grow_regions(2, u32::MAX)?;
        let requests = bench.device.sends();
        same("requests", requests, 3 + 2 + 1 + 3 + 2)?;

        bench.shut_down(2 + 1 + 2 + 1 + 2)?;
        bench.told(&[(5, false), (6, false)], &[FLUSHED; 5 + 11])?;
        for regions in [registered, invalidating, also, mapped] {
            bench.expect_dead(regions)?;
        }
        bench.end()
    }

    #[test]
    fn a_device_that_does_not_drain() -> Result {
        // It is dying: nothing is completed. Without its queues it uses nothing either.
        let bench = Bench::new()?;
        bench.receives(5)?;
        let mut regions = bench.call(2)?;
        bench.invalidate(&mut regions, 5)?;
        bench.device.do_not_drain();
        bench.qp.shutdown();
        bench.device.forget();
        bench.told(&[(5, false)], &[])?;
        bench.expect_dead(regions)?;
        bench.balance.more(0)?;
        bench.end()
    }

    #[test]
    fn tear_down_by_the_last_reference() -> Result {
        let bench = Bench::new()?;
        bench.receives(5)?;
        let mut regions = bench.call(2)?;
        bench.invalidate(&mut regions, 5)?;
        // It goes with `end`, and the regions go after it.
        bench.end()?;
        regions.drop_dead();
        claim(regions.is_fenced(), "fenced")
    }

    #[test]
    fn handlers_may_fence_while_receives_are_drained() -> Result {
        let bench = Bench::new()?;
        bench.receives(3)?;
        let regions = bench.call(2)?;
        *bench.qp.handler().regions.lock() = Some(regions);
        bench.device.deliver_in_drain(3);
        bench.shut_down(2)?;
        // Its invalidation was posted after the drain began, and was drained in turn.
        bench.told(&[(LATE, false)], &[FLUSHED; 2 + 5])?;
        let messages = bench.qp.handler().told.lock().messages.len();
        same("messages", messages, 1)?;
        let regions = bench.qp.handler().regions.lock().take();
        bench.expect_dead(regions.ok_or(EINVAL)?)?;
        bench.end()
    }

    #[test]
    fn partial_posts() -> Result {
        for taken in 0..3 {
            let bench = Bench::new()?;
            let mut regions = bench.map(2)?;
            bench.device.refuse_post(Refusal::After(taken));
            let buffer = bench.qp.send_buffer(Purpose::Message)?;
            let posted = post(buffer, 100, Some(&mut regions));
            same("error", posted.err(), Some(ENOMEM))?;
            // Nobody knows what the peer can reach.
            regions.drop_dead();
            claim(!regions.is_fenced(), "not before the end")?;
            bench.shut_down(2)?;
            bench.told(&[], &[FLUSHED; 3][..taken])?;
            bench.expect_dead(regions)?;
            bench.end()?;
        }
        Ok(())
    }

    #[test]
    fn a_post_that_failed_without_a_word() -> Result {
        let bench = Bench::new()?;
        bench.receives(2)?;
        bench.device.refuse_post(Refusal::Nameless);
        bench.qp.grow_receives(4)?;
        same("error", bench.qp.post_receives(4).err(), Some(EIO))?;
        let mut regions = bench.map(2)?;
        bench.device.refuse_post(Refusal::Nameless);
        let buffer = bench.qp.send_buffer(Purpose::Message)?;
        let posted = post(buffer, 100, Some(&mut regions));
        same("error", posted.err(), Some(EIO))?;
        bench.shut_down(2)?;
        bench.told(&[], &[FLUSHED; 4 + 3])?;
        bench.expect_dead(regions)?;
        bench.end()
    }

    #[test]
    fn buffers_are_made_in_the_scope_of_their_user() -> Result {
        let bench = Bench::new()?;
        let scopes = || bench.qp.handler().told.lock().scopes;
        let before = scopes();
        bench.qp.grow_receives(4)?;
        same("Receives", scopes(), before + 1)?;
        bench.qp.grow_receives(4)?;
        same("none to be made", scopes(), before + 1)?;
        drop(bench.qp.send_buffer(Purpose::Message)?);
        same("a send buffer", scopes(), before + 2)?;
        bench.shut_down(0)?;
        bench.end()
    }

    #[test]
    fn regions_that_were_not_posted() -> Result {
        let bench = Bench::new()?;
        let mut regions = bench.map(3)?;
        same("room", regions.avail(), 0)?;
        let mut pieces = bench.memory.pieces((0, 0), (0, 100), (0, 0))?;
        let (qp, poster) = (&bench.qp, bench.qp.enter()?);
        let more = qp.map(
            &poster,
            &mut regions,
            (&mut pieces, Access::RemoteRead, 7),
            nobody,
        );
        same("too many", more.err(), Some(EMSGSIZE))?;
        bench.balance.more(3)?;
        qp.unmap(&mut regions);
        bench.balance.more(0)?;
        same("room", regions.avail(), 3)?;
        // All three can be had again.
        for _ in 0..3 {
            let mut pieces = bench.memory.pieces((0, 0), (0, 100), (0, 0))?;
            qp.map(
                &poster,
                &mut regions,
                (&mut pieces, Access::RemoteRead, 7),
                nobody,
            )?;
        }
        let mut pieces = bench.memory.pieces((0, 0), (0, 100), (0, 0))?;
        let mut others = Regions::new(3, GFP_KERNEL)?;
        let none = qp.map(
            &poster,
            &mut others,
            (&mut pieces, Access::RemoteRead, 7),
            nobody,
        );
        same("none is idle", none.err(), Some(EAGAIN))?;
        qp.unmap(&mut regions);
        // One that the device refuses goes back to the pool.
        bench.device.refuse(Request::MapMr, 0);
        let refused = qp.map(
            &poster,
            &mut others,
            (&mut pieces, Access::RemoteRead, 7),
            nobody,
        );
        same("refused", refused.err(), Some(ENOBUFS))?;
        drop(poster);
        same("requests", bench.device.sends(), 0)?;
        bench.shut_down(3)?;
        bench.end()
    }

    #[test]
    fn no_more_regions_than_one_post_takes() -> Result {
        let bench = Bench::new()?;
        bench.qp.grow_regions(8, 100)?;
        // Room of a connection of more regions.
        let mut regions = Regions::new(8, GFP_KERNEL)?;
        for taken in 0..8 {
            let mut pieces = bench.memory.pieces((0, 0), (0, 100), (0, 0))?;
            let mapped = bench.map_more(&mut regions, &mut pieces);
            let refused = (taken >= PLAN.qp.max_regs).then_some(EMSGSIZE);
            same("error", mapped.err(), refused)?;
        }
        let buffer = bench.qp.send_buffer(Purpose::Message)?;
        post(buffer, 100, Some(&mut regions))?;
        same("requests", bench.device.sends(), 3 + 1)?;
        bench.shut_down(8)?;
        regions.drop_dead();
        claim(regions.is_fenced(), "fenced")?;
        bench.end()
    }

    #[test]
    fn regions_to_be_had() -> Result {
        let bench = Bench::new()?;
        bench.device.refuse(Request::AllocMr, 2);
        // What was made before the device had no more counts.
        same("grown", bench.qp.grow_regions(5, 100)?, 2)?;
        same("made", bench.device.count(Request::AllocMr), TRIED + 2)?;
        bench.device.refuse(Request::AllocMr, 0);
        let grown = bench.qp.grow_regions(5, 100);
        same("error", grown.err(), Some(ENOMEM))?;
        // No more than the most, however many are asked for.
        bench.qp.grow_regions(5, 4)?;
        same("made", bench.device.count(Request::AllocMr), TRIED + 4)?;
        bench.qp.grow_regions(5, 4)?;
        bench.qp.grow_regions(u32::MAX, 0)?;
        same("made", bench.device.count(Request::AllocMr), TRIED + 4)?;
        bench.shut_down(4)?;
        bench.end()
    }

    #[test]
    fn buffers_that_were_not_posted() -> Result {
        let bench = Bench::new()?;
        let mut buffers = KVec::new();
        for _ in 0..PLAN.send_buffers {
            buffers.push(bench.qp.send_buffer(Purpose::Message)?, GFP_KERNEL)?;
        }
        bench.balance.more(PLAN.send_buffers as usize)?;
        let more = bench.qp.send_buffer(Purpose::Message);
        same("one more", more.err(), Some(EAGAIN))?;
        drop(buffers.pop());
        drop(bench.qp.send_buffer(Purpose::Queued)?);
        drop(buffers);
        bench.shut_down(0)?;
        bench.end()
    }

    #[test]
    fn tear_down_waits_for_posters() -> Result {
        let bench = Bench::new()?;
        let queue = OwnedQueue::new(c"rpcrdma_test", GFP_KERNEL)?;
        let mut regions = bench.map(2)?;
        let (first, second);
        // On a failure it goes before the closers are waited for.
        let buffer = bench.qp.send_buffer(Purpose::Message)?;
        let other = bench.qp.send_buffer(Purpose::Message)?;
        let posters = (bench.qp.enter()?, bench.qp.enter()?);

        first = Closer::start(&bench.qp, &queue)?;
        wait_for("posters are kept out", || bench.qp.enter().is_err())?;
        second = Closer::start(&bench.qp, &queue)?;
        wait_for("the second runs", || second.state.load(Acquire) == CLOSING)?;
        a_while();
        claim(!first.is_closed(), "it waits for the posters")?;
        claim(!second.is_closed(), "so does the second")?;
        same("drained", bench.device.count(Request::DrainReceives), 0)?;
        let new = bench.qp.send_buffer(Purpose::Message);
        same("new", new.err(), Some(ENOTCONN))?;

        // What is posted now is too late.
        let posts = bench.device.posts();
        let posted = post(buffer, 100, Some(&mut regions));
        same("too late", posted.err(), Some(ENOTCONN))?;
        same("posts", bench.device.posts(), posts)?;
        // The RPC is sent again on another connection, and has none of this one's then.
        same("regions", regions.len(), 0)?;
        drop(posters.0);
        a_while();
        claim(!first.is_closed(), "there is another")?;
        drop(posters.1);
        let drained = || bench.device.count(Request::DrainReceives) == 1;
        wait_for("it goes on", drained)?;
        a_while();
        claim(
            !first.is_closed(),
            "it waits for the buffer that was not posted",
        )?;
        drop(other);
        wait_for("the first ends", || first.is_closed())?;
        wait_for("the second ends", || second.is_closed())?;
        same("drains", bench.device.count(Request::DrainReceives), 1)?;
        drop((first, second, queue));
        bench.shut_down(2)?;
        bench.told(&[], &[])?;
        bench.expect_dead(regions)?;
        bench.end()
    }

    #[test]
    fn invalidations_while_posters_are_waited_for() -> Result {
        let bench = Bench::new()?;
        let queue = OwnedQueue::new(c"rpcrdma_test", GFP_KERNEL)?;
        let mut regions = bench.call(1)?;
        let closer;
        let poster = bench.qp.enter()?;
        closer = Closer::start(&bench.qp, &queue)?;
        wait_for("posters are kept out", || bench.qp.enter().is_err())?;
        // Replies that came before the end still fence.
        bench.invalidate(&mut regions, 5)?;
        bench.device.complete_sends(3)?;
        bench.told(&[(5, true)], &[])?;
        bench.completed(&mut regions);
        claim(regions.is_fenced(), "fenced")?;
        drop(poster);
        wait_for("it ends", || closer.is_closed())?;
        drop((closer, queue));
        bench.shut_down(1)?;
        bench.told(&[(5, true)], &[])?;
        bench.end()
    }
}
