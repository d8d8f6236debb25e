// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Protects: the end of one RPC's local invalidations says nothing of another's, and nothing that
//! belongs to one queue pair is posted to another, or given to its pool; and a key is believed only
//! of a device that looks at it.

use crate::transport::tests::endpoint::*;

#[kunit_tests(rpcrdma_ownership)]
mod suite {
    use super::*;

    #[test]
    fn keys_that_the_device_does_not_look_at() -> Result {
        let bench = Bench::new()?;
        bench.receives(1)?;
        bench.device.deliver(&[1, 2, 3], Some(0x100))?;
        let told = bench.qp.handler().told.lock();
        same("messages", &told.messages[..], &[(3, None)])?;
        drop(told);
        // Its Receive was not posted again.
        bench.shut_down(0)?;
        bench.told(&[], &[])?;
        bench.end()
    }

    #[test]
    fn an_earlier_completion_is_no_fence() -> Result {
        let bench = Bench::new()?;
        let (mut first, mut second) = (bench.call(1)?, bench.call(1)?);
        bench.invalidate(&mut first, 1)?;
        bench.invalidate(&mut second, 2)?;
        // Two registrations with a Send each, and the first invalidation.
        bench.device.complete_sends(5)?;
        bench.told(&[(1, true)], &[])?;
        bench.completed(&mut second);
        claim(!second.is_fenced(), "that was not its own")?;
        bench.device.complete_sends(1)?;
        bench.told(&[(1, true), (2, true)], &[])?;
        bench.completed(&mut second);
        claim(second.is_fenced(), "its own was")?;
        bench.shut_down(2)?;
        bench.expect_dead(first)?;
        bench.end()
    }

    #[test]
    fn a_later_completion_is_a_fence() -> Result {
        let bench = Bench::new()?;
        let (mut first, mut second) = (bench.call(1)?, bench.call(1)?);
        bench.invalidate(&mut first, 1)?;
        bench.invalidate(&mut second, 2)?;
        bench.device.complete_sends(6)?;
        // A queue pair works off what is posted in order.
        bench.completed(&mut first);
        claim(first.is_fenced(), "it went well before the second did")?;
        bench.shut_down(2)?;
        bench.expect_dead(second)?;
        bench.end()
    }

    #[test]
    fn another_connection_proves_nothing() -> Result {
        let (one, other) = (Bench::new()?, Bench::new()?);
        let (mut regions, mut theirs) = (one.call(1)?, other.call(1)?);
        one.invalidate(&mut regions, 1)?;
        other.invalidate(&mut theirs, 2)?;
        other.device.complete_sends(3)?;
        let done = other.qp.handler().told.lock().done.take().ok_or(EINVAL)?;
        one.qp.invalidation_completed(&mut regions, &done);
        claim(!regions.is_fenced(), "it was another's")?;
        let mut registered = other.call(1)?;
        let key = InvalidatedKey::test(registered.registered()[0].rkey(), one.qp.number());
        let found = other.qp.remotely_invalidated(&mut registered, key, nobody);
        claim(
            found.is_none(),
            "nor does a key that was another's to hear of",
        )?;
        other.qp.shutdown();
        one.shut_down(1)?;
        one.expect_dead(regions)?;
        other.expect_dead(theirs)?;
        other.expect_dead(registered)?;
        other.end()?;
        one.end()
    }

    #[test]
    fn regions_stay_with_their_connection() -> Result {
        let (one, other) = (Bench::new()?, Bench::new()?);
        let mut regions = one.map(1)?;
        // Neither covers more, nor posts, nor invalidates, nor takes into its pool what is not its
        // own.
        other.qp.grow_regions(1, 1)?;
        let mut pieces = other.memory.pieces((0, 0), (0, 100), (0, 0))?;
        let mapped = other.map_more(&mut regions, &mut pieces);
        same("arming", mapped.err(), Some(EINVAL))?;
        let mut buffer = other.qp.send_buffer(Purpose::Message)?;
        let posted = buffer.post(100, Some(&mut regions), nobody);
        same("posting", posted.err(), Some(EINVAL))?;
        same("without them", buffer.send(100), Err(EINVAL))?;
        drop(buffer);
        same("requests", other.device.sends(), 0)?;
        claim(regions.is_fenced(), "they are mapped no more")?;
        let mut registered = one.call(1)?;
        let posted = other.invalidation(&mut registered, 9);
        same("invalidating", posted, Err((EINVAL, Some(9))))?;
        same("requests", other.device.sends(), 0)?;
        other.qp.unmap(&mut regions);
        same("idle", other.qp.idle_regions(), 1)?;
        drop(regions);
        other.qp.shutdown();
        one.shut_down(2)?;
        one.expect_dead(registered)?;
        other.end()?;
        one.end()
    }

    #[test]
    fn posted_once() -> Result {
        let bench = Bench::new()?;
        let mut buffer = bench.qp.send_buffer(Purpose::Message)?;
        buffer.post(100, None, nobody)?;
        same("again", buffer.post(100, None, nobody), Err(EINVAL))?;
        same("otherwise", buffer.send(100), Err(EINVAL))?;
        drop(buffer);
        same("requests", bench.device.sends(), 1)?;
        bench.shut_down(0)?;
        bench.told(&[], &[FLUSHED])?;
        bench.end()
    }

    #[test]
    fn a_message_alone() -> Result {
        let bench = Bench::new()?;
        let buffer = bench.qp.send_buffer(Purpose::Message)?;
        // No more than the buffer has is sent.
        post(buffer, usize::MAX, None)?;
        same("length", bench.device.send(0)?.sge.1, 1024)?;
        bench.shut_down(0)?;
        bench.told(&[], &[FLUSHED])?;
        bench.end()
    }
}
