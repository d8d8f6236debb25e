// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Protects: padding that a peer writes behind a result gets into memory of the connection alone,
//! which it can reach from the first Call to the tear-down and not afterwards; no RPC waits for it.

use crate::transport::tests::endpoint::*;

const REG: u32 = numbers::REG;
const INV: u32 = numbers::INV;

#[kunit_tests(rpcrdma_padding)]
mod suite {
    use super::*;

    #[test]
    fn none_unless_provided() -> Result {
        let bench = Bench::new()?;
        for len in 0..4 {
            same("segment", bench.qp.padding(len, nobody), None)?;
        }
        bench.shut_down(0)?;
        bench.end()
    }

    #[test]
    fn a_segment_of_its_own() -> Result {
        let bench = Bench::new()?;
        bench.qp.provide_padding()?;
        bench.balance.more(1)?;
        same("requests", bench.device.sends(), 1)?;
        let posted = bench.device.send(0)?;
        same("request", (posted.opcode, posted.signaled), (REG, false))?;
        let access = Access::RemoteWrite.as_raw();
        same("access", posted.access as u32, access)?;
        same("for nothing", bench.qp.padding(0, nobody), None)?;
        for len in 1..4 {
            let segment = bench.qp.padding(len, nobody).ok_or(EINVAL)?;
            same("key", segment.handle, posted.key)?;
            same("length", segment.length, len as u32)?;
            let in_page = segment.offset < PAGE_SIZE as u64;
            claim(in_page, "no address of the kernel is on the wire")?;
        }
        let most = bench.qp.padding(100, nobody).ok_or(EINVAL)?;
        same("length", most.length, 4)?;
        bench.shut_down(1)?;
        bench.told(&[], &[FLUSHED])?;
        bench.end()
    }

    #[test]
    fn registered_before_the_first_call() -> Result {
        let bench = Bench::new()?;
        bench.qp.provide_padding()?;
        let key = bench.qp.padding(3, nobody).ok_or(EINVAL)?.handle;
        drop(bench.call(0)?);
        let first = bench.device.send(0)?;
        same("first", (first.opcode, first.key), (REG, key))?;
        bench.shut_down(1)?;
        bench.end()
    }

    #[test]
    fn no_rpc_waits_for_it() -> Result {
        let bench = Bench::new()?;
        bench.qp.provide_padding()?;
        let offered = bench.qp.padding(3, nobody);
        let mut regions = bench.call(1)?;
        let mut others = bench.call(1)?;
        bench.device.complete_sends(5)?;

        // Of the keys of an RPC it is none.
        bench.invalidate(&mut regions, 5)?;
        same("requests", bench.device.sends(), 1)?;
        let posted = bench.device.send(0)?;
        same("request", posted.opcode, INV)?;
        claim(Some(posted.key) != offered.map(|s| s.handle), "another key")?;
        bench.device.complete_sends(1)?;
        bench.told(&[(5, true)], &[])?;
        bench.completed(&mut regions);
        claim(regions.is_fenced(), "fenced")?;

        // The next one finds it as it was.
        same("segment", bench.qp.padding(3, nobody), offered)?;
        bench.balance.more(1 + 2 + 1)?;
        bench.invalidate(&mut others, 6)?;
        bench.device.complete_sends(1)?;
        bench.completed(&mut others);
        same("segment", bench.qp.padding(3, nobody), offered)?;
        bench.shut_down(3)?;
        bench.end()
    }

    #[test]
    fn a_peer_that_says_it_has_invalidated_it() -> Result {
        let bench = Bench::new()?;
        bench.qp.provide_padding()?;
        let key = bench.qp.padding(3, nobody).ok_or(EINVAL)?.handle;
        let mut regions = bench.call(1)?;
        let found = bench.qp.remotely_invalidated(
            &mut regions,
            InvalidatedKey::test(key, bench.qp.number()),
            nobody,
        );
        claim(found.is_none(), "that says nothing of the RPC's memory")?;
        claim(!regions.is_fenced(), "which is not fenced")?;
        bench.shut_down(2)?;
        bench.expect_dead(regions)?;
        bench.end()
    }

    #[test]
    fn tear_down_under_load() -> Result {
        let bench = Bench::new()?;
        bench.qp.provide_padding()?;
        bench.receives(2)?;
        let regions = bench.call(2)?;
        bench.shut_down(3)?;
        if cfg!(CONFIG_RPCRDMA_DEBUG) {
            // It was the last region to go. A send buffer and two for Receives go after it.
            let mapped = bench.device.mapped_at_dereg() - fake::mappings();
            same("mapped when it was taken from the device", mapped, 1 + 3)?;
        }
        bench.told(&[], &[FLUSHED; 2 + 4])?;
        bench.expect_dead(regions)?;
        bench.end()
    }

    #[test]
    fn tear_down_by_the_last_reference() -> Result {
        let bench = Bench::new()?;
        bench.qp.provide_padding()?;
        bench.end()
    }

    #[test]
    fn a_post_that_fails() -> Result {
        for (refusal, error, flushed) in [
            (Refusal::After(0), ENOMEM, &[][..]),
            (Refusal::Nameless, EIO, &[FLUSHED]),
        ] {
            let bench = Bench::new()?;
            bench.device.refuse_post(refusal);
            same("error", bench.qp.provide_padding(), Err(error))?;
            // The device may have the registration until its queues are drained.
            same("freed", bench.device.count(Request::DeregMr), TRIED)?;
            bench.balance.more(1)?;
            bench.shut_down(1)?;
            bench.told(&[], flushed)?;
            bench.end()?;
        }
        Ok(())
    }

    #[test]
    fn a_device_that_refuses() -> Result {
        for (request, error, made) in [(Request::AllocMr, ENOMEM, 0), (Request::MapMr, ENOBUFS, 1)]
        {
            let bench = Bench::new()?;
            bench.device.refuse(request, 0);
            same("error", bench.qp.provide_padding(), Err(error))?;
            same("segment", bench.qp.padding(3, nobody), None)?;
            same("posts", bench.device.posts(), 0)?;
            bench.balance.more(0)?;
            same("made", bench.device.count(Request::AllocMr), TRIED + made)?;
            bench.shut_down(made)?;
            bench.end()?;
        }
        Ok(())
    }

    #[test]
    fn a_second_time() -> Result {
        let bench = Bench::new()?;
        bench.qp.provide_padding()?;
        let offered = bench.qp.padding(3, nobody);
        same("error", bench.qp.provide_padding(), Err(EINVAL))?;
        same("posts", bench.device.posts(), 1)?;
        same("segment", bench.qp.padding(3, nobody), offered)?;
        same("made", bench.device.count(Request::AllocMr), TRIED + 1)?;
        bench.balance.more(1)?;
        bench.shut_down(1)?;
        bench.end()
    }

    #[test]
    fn after_the_end() -> Result {
        let bench = Bench::new()?;
        bench.shut_down(0)?;
        same("error", bench.qp.provide_padding(), Err(ENOTCONN))?;
        same("segment", bench.qp.padding(3, nobody), None)?;
        bench.end()
    }
}
