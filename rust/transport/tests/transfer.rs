// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Protects: memory of RDMA Reads and Writes comes back once, after the device has let go of it,
//! whatever fails; what finds no room is posted later; and into a received message that is kept
//! nothing is received.

use crate::{
    kapi::{
        ib::{
            fake::{
                numbers,
                Balance,
                Device,
                Memory,
                Pages,
                Refusal, //
            },
            CmEvent,
            CmHandler,
            QpSizes,
            RecvBuf,
            SendDone,
            TransferKind,
            Wc, //
        },
        page::TransferMemory,
    },
    kunit::{
        claim,
        same, //
    },
    transport::{
        bring_up,
        endpoint::*,
        plan::Plan,
        send_buffer::Purpose,
        tests::*,
        transfer::*, //
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
use xdr::{
    Role,
    Segment, //
};

mod credits;
mod fixture;
mod provided;
mod waits;

#[kunit_tests(rpcrdma_transfer)]
mod suite {
    use super::*;

    #[test]
    fn a_reply_with_writes_is_one_post() -> Result {
        let bench = Bench::new()?;
        bench.reply(3)?;
        same("posts", bench.device.posts(), 1)?;
        bench.expect_posted(&[WRITE, WRITE, WRITE, SEND])?;
        same("references", bench.pages.references(), PAGES)?;
        bench.device.complete_sends(3)?;
        same("references", bench.pages.references(), PAGES)?;
        bench.device.complete_sends(1)?;
        same("references", bench.pages.references(), 0)?;
        bench.told(&[], &[])?;
        bench.end()
    }

    #[test]
    fn neighbours_are_one_element_of_a_write() -> Result {
        const PAGE: u32 = PAGE_SIZE as u32;
        let joined = [(100, 3 * PAGE - 100), (0, PAGE + 100)];
        // This device reads into regions, of which the core makes one for so many elements.
        let apart = [(100, PAGE - 100), (0, PAGE), (0, PAGE), (0, PAGE), (0, 100)];
        for (kind, expected) in [
            (TransferKind::Write, &joined[..]),
            (TransferKind::Read, &apart),
        ] {
            let bench = Bench::new()?;
            let mut memory = Memory::new(8)?;
            memory.reorder(&[0, 1, 2, 4, 5])?;
            let mut transfer = bench.qp.transfer(kind, memory.gather(5 * PAGE_SIZE)?, 1)?;
            transfer.add(100, 4 * PAGE_SIZE, &segment(1))?;
            let mut found = KVec::new();
            for element in transfer.transfer.elements().iter() {
                found.push((element.bv_offset, element.bv_len), GFP_KERNEL)?;
            }
            same("elements", &found[..], expected)?;
            drop(transfer);
            bench.end()?;
        }
        Ok(())
    }

    #[test]
    fn more_elements_than_a_request_takes() -> Result {
        let bench = Bench::new()?;
        let memory = bench.pages.gather(PAGES * PAGE_SIZE)?;
        let mut transfer = bench.qp.transfer(TransferKind::Write, memory, 1)?;
        // Off the page boundaries, so five pieces; a request has four.
        let len = PAGES * PAGE_SIZE - 200;
        let short = transfer.add(200, len + 1, &segment(1));
        same("past the end", short, Err(EMSGSIZE))?;
        drop(transfer);
        same("references", bench.pages.references(), 0)?;
        bench.end()
    }

    #[test]
    fn a_reply_alone_is_not_signaled() -> Result {
        let bench = Bench::new()?;
        let mut buffer = bench.qp.send_buffer(Purpose::Message)?;
        buffer.set_xid(TAG);
        buffer.invalidate(Some(9));
        send(buffer, 50)?;
        let posted = bench.device.send(0)?;
        same("opcode", posted.opcode, SEND_WITH_INV)?;
        same("key", posted.key, 9)?;
        same("signaled", posted.signaled, false)?;
        bench.end()
    }

    #[test]
    fn reads_bring_memory_back() -> Result {
        let bench = Bench::new()?;
        bench.read(2, 7)?;
        same("posts", bench.device.posts(), 1)?;
        bench.expect_posted(&[REG, READ, REG, READ])?;
        bench.device.complete_sends(3)?;
        bench.told(&[], &[])?;
        bench.device.complete_sends(1)?;
        bench.told(&[(7, true)], &[])?;
        same("references", bench.pages.references(), PAGES)?;
        bench.forget_memory();
        same("references", bench.pages.references(), 0)?;
        bench.end()
    }

    #[test]
    fn failed_reads_bring_it_back_too() -> Result {
        let bench = Bench::new()?;
        bench.read(1, 7)?;
        bench.device.complete_sends(1)?;
        bench.device.fail_send(BROKEN)?;
        bench.told(&[(7, false)], &[Some(TAG + 7)])?;
        bench.forget_memory();
        bench.end()
    }

    #[test]
    fn a_request_at_fault_is_named() -> Result {
        // The first or the second Read, each with its registration, or one of two Writes and the
        // Send.
        for failing in [1, 3, 4, 5, 6] {
            let bench = Bench::new()?;
            bench.read(2, 7)?;
            bench.reply(2)?;
            bench.device.complete_sends(failing)?;
            bench.device.fail_send(BROKEN)?;
            let told = bench.qp.handler().told.lock();
            let faulting_xid = if failing < 4 { TAG + 7 } else { TAG };
            same("faulting_xid", &told.failures[..], &[Some(faulting_xid)])?;
            drop(told);
            bench.qp.shutdown();
            bench.forget_memory();
            bench.end()?;
        }
        Ok(())
    }

    #[test]
    fn a_lost_link_is_nobodys_fault() -> Result {
        for status in [
            FLUSHED,
            numbers::RETRY_EXCEEDED,
            numbers::RNR_RETRY_EXCEEDED,
        ] {
            let bench = Bench::new()?;
            bench.reply(2)?;
            bench.device.fail_send(status)?;
            bench.told(&[], &[None])?;
            bench.end()?;
        }
        Ok(())
    }

    #[test]
    fn reads_do_not_wait_for_replies() -> Result {
        // Some devices complete a later Send before an earlier Read: the Send retires no Read.
        let bench = Bench::new()?;
        bench.read(1, 7)?;
        bench.reply(1)?;
        let reading = [bench.device.take_send()?, bench.device.take_send()?];
        bench.device.complete_sends(2)?;
        bench.told(&[], &[])?;
        same("references", bench.pages.references(), PAGES)?;
        let [_, read] = reading;
        bench.device.complete(read);
        bench.told(&[(7, true)], &[])?;
        bench.forget_memory();
        bench.end()
    }

    #[test]
    fn memory_leaves_the_device_before_the_queue() -> Result {
        // A tear-down does not wait for who has taken it out, if the device cannot drain.
        let bench = Bench::new()?;
        bench.reply(3)?;
        let done = SendDone::test(bench.qp.number(), 4, Wc::SUCCESS);
        let mut queue = bench.qp.lock();
        let written = queue.ring_mut().retire(&done, |_, transfer| transfer);
        drop(queue);
        let left = written.as_ref().map(|transfer| transfer.pieces());
        same("parts of the RDMA Writes", left, Some(0))?;
        drop(written);
        bench.read(2, 7)?;
        let last = bench.device.send(bench.device.sends() - 1)?;
        let read = bench.qp.take_reading(last.entry);
        let left = read.as_ref().map(|read| read.transfer.pieces());
        same("parts of the RDMA Reads", left, Some(0))?;
        drop(read);
        same("references", bench.pages.references(), 0)?;
        bench.end()
    }

    #[test]
    fn who_finds_no_room_takes_a_turn() -> Result {
        let bench = Bench::new()?;
        // The ring has 32 places.
        for _ in 0..2 {
            bench.reply(10)?;
        }
        for _ in 0..2 {
            bench.reply(10)?;
        }
        bench.reply(0)?;
        same("sq_full", bench.qp.handler().told.lock().sq_full, 3)?;
        let full = || {
            (
                bench.qp.is_send_queue_full(),
                bench.qp.handler().told.lock().space,
            )
        };
        same("full", full(), (true, 0))?;
        same("posted", bench.device.sends(), 22)?;
        bench.device.complete_sends(11)?;
        same("the third", bench.device.sends(), 22)?;
        same("still full", full(), (true, 0))?;
        bench.device.complete_sends(11)?;
        same("and the rest", bench.device.sends(), 11 + 11 + 1)?;
        same("not any more, and told once", full(), (false, 1))?;
        let n = bench.device.sends();
        bench.device.complete_sends(n)?;
        same("references", bench.pages.references(), 0)?;
        bench.told(&[], &[])?;
        bench.end()
    }

    #[test]
    fn what_is_not_signaled_holds_nobody_up() -> Result {
        let bench = Bench::new()?;
        for _ in 0..15 {
            bench.reply(0)?;
            bench.device.complete_sends(1)?;
        }
        // The longest that there may be.
        bench.reply(15)?;
        bench.reply(15)?;
        same("posted", bench.device.sends(), 16)?;
        bench.device.complete_sends(16)?;
        same("the second", bench.device.sends(), 16)?;
        bench.device.complete_sends(16)?;
        same("references", bench.pages.references(), 0)?;
        bench.end()
    }

    #[test]
    fn no_writes_at_all() -> Result {
        let bench = Bench::new()?;
        let transfer = bench.transfer(TransferKind::Write, 0)?;
        claim(transfer.is_empty(), "empty")?;
        let mut buffer = bench.qp.send_buffer(Purpose::Message)?;
        buffer.write(transfer);
        send(buffer, 50)?;
        same("posted", bench.device.sends(), 1)?;
        same("references", bench.pages.references(), 0)?;
        let transfer = bench.transfer(TransferKind::Read, 0)?;
        same("nothing to read", transfer.read(None, 1), Err(EINVAL))?;
        bench.end()
    }

    #[test]
    fn reads_of_few_messages_at_once() -> Result {
        let bench = Bench::new()?;
        for cookie in 1..4 {
            bench.read(1, cookie)?;
        }
        same("posted", bench.device.sends(), 4)?;
        bench.device.complete_sends(2)?;
        bench.told(&[(1, true)], &[])?;
        same("the third", bench.device.sends(), 4)?;
        bench.device.complete_sends(4)?;
        bench.told(&[(1, true), (2, true), (3, true)], &[])?;
        bench.forget_memory();
        bench.end()
    }

    #[test]
    fn who_needs_no_place_for_reads_passes_who_waits_for_one() -> Result {
        let bench = Bench::new()?;
        // There are places for two.
        for cookie in 1..5 {
            bench.read(1, cookie)?;
        }
        same("Reads", bench.device.sends(), 4)?;
        bench.reply(1)?;
        same("and a Reply", bench.device.sends(), 6)?;
        // It has no room, and so is behind the Reads of which it would take that.
        bench.reply(19)?;
        bench.reply(10)?;
        bench.device.complete_sends(2)?;
        bench.told(&[(1, true)], &[])?;
        let posted = bench.device.sends();
        bench.device.complete_sends(posted)?;
        let posted = bench.device.sends();
        bench.device.complete_sends(posted)?;
        let posted = bench.device.sends();
        bench.device.complete_sends(posted)?;
        let posted = bench.device.sends();
        bench.device.complete_sends(posted)?;
        same("nobody waits", bench.qp.is_send_queue_full(), false)?;
        bench.forget_memory();
        bench.end()
    }

    #[test]
    fn more_than_the_queue_holds() -> Result {
        let bench = Bench::new()?;
        // Of 32, and 12 that may not be signaled.
        same("error", bench.reply(20), Err(EMSGSIZE))?;
        same("references", bench.pages.references(), 0)?;
        // Nothing is lost by it.
        for _ in 0..20 {
            bench.reply(19)?;
            bench.device.complete_sends(20)?;
        }
        bench.told(&[], &[])?;
        bench.end()
    }

    #[test]
    fn a_post_that_fails_keeps_the_memory() -> Result {
        for taken in 0..4 {
            for reads in 0..2 {
                let bench = Bench::new()?;
                bench.device.refuse_post(Refusal::After(taken));
                if reads == 0 {
                    bench.reply(3)?;
                } else {
                    bench.read(2, 7)?;
                }
                // Nobody knows what the device has, so it is kept until the tear-down.
                bench.told(&[], &[None])?;
                same("references", bench.pages.references(), PAGES)?;
                same("another", bench.reply(3), Err(ENOTCONN))?;
                bench.qp.shutdown();
                let ended = bench.qp.handler().told.lock().reads.len();
                same("reads", ended, reads)?;
                bench.forget_memory();
                bench.end()?;
            }
        }
        Ok(())
    }

    #[test]
    fn tear_down_with_everything() -> Result {
        let bench = Bench::new()?;
        bench.read(2, 1)?;
        bench.reply(5)?;
        bench.read(2, 2)?;
        // From here on everything waits.
        bench.read(2, 3)?;
        bench.reply(5)?;
        bench.read(2, 4)?;
        bench.reply(0)?;
        same("references", bench.pages.references(), 6 * PAGES)?;
        bench.qp.shutdown();
        let mut reads = KVec::new();
        core::mem::swap(&mut reads, &mut bench.qp.handler().told.lock().reads);
        reads.sort_unstable();
        let expected = [(1, false), (2, false), (3, false), (4, false)];
        same("reads", &reads[..], &expected)?;
        bench.forget_memory();
        same("references", bench.pages.references(), 0)?;
        same("closed", bench.reply(1), Err(ENOTCONN))?;
        bench.end()
    }

    #[test]
    fn a_device_that_does_not_drain() -> Result {
        let bench = Bench::new()?;
        bench.device.do_not_drain();
        bench.read(2, 1)?;
        bench.reply(5)?;
        bench.qp.shutdown();
        bench.told(&[(1, false)], &[])?;
        bench.forget_memory();
        bench.device.forget();
        bench.end()
    }

    #[test]
    fn kept_messages_are_not_received_into() -> Result {
        let bench = Bench::new()?;
        bench.qp.grow_receives(2)?;
        same("posted", bench.qp.post_receives(2)?, 2)?;
        bench.device.deliver(&[1, 2, 3], None)?;
        bench.device.deliver(&[4; 256], None)?;
        same("nothing to post", bench.qp.post_receives(2)?, 0)?;
        same("kept", bench.qp.post_receive_batch(1)?, 2)?;
        let first = bench.qp.handler().told.lock().kept.remove(0);
        let Ok(first) = first else {
            return Err(EINVAL);
        };
        same("bytes", first.bytes(), &[1, 2, 3][..])?;
        same("kept", bench.qp.return_receive(first, 2)?, 1)?;
        same("few are posted", bench.device.receives(), 1)?;
        same("kept", bench.qp.post_receive_batch(1)?, 1)?;
        same("posted", bench.device.receives(), 1)?;
        let told = bench.qp.handler().told.lock();
        same("bytes", told.kept[0].bytes(), &[4; 256][..])?;
        drop(told);
        bench.qp.shutdown();
        bench.told(&[], &[None])?;
        bench.end()
    }

    #[test]
    fn receives_are_posted_in_batches() -> Result {
        let bench = Bench::new()?;
        bench.qp.grow_receives(4)?;
        bench.qp.post_receives(4)?;
        for posted in [3, 4] {
            bench.device.deliver(&[1, 2, 3], None)?;
            let Ok(kept) = bench.qp.handler().told.lock().kept.remove(0) else {
                return Err(EINVAL);
            };
            same("kept", bench.qp.return_receive(kept, 2)?, 0)?;
            same("posted", bench.device.receives(), posted)?;
        }
        bench.qp.shutdown();
        bench.end()
    }

    #[test]
    fn a_message_goes_back_to_where_it_came_from() -> Result {
        let (bench, other) = (Bench::new()?, Bench::new()?);
        for bench in [&bench, &other] {
            bench.qp.grow_receives(1)?;
            bench.qp.post_receives(1)?;
            bench.device.deliver(&[1, 2, 3], None)?;
        }
        let Ok(kept) = other.qp.handler().told.lock().kept.remove(0) else {
            return Err(EINVAL);
        };
        same("kept here", bench.qp.return_receive(kept, 1)?, 1)?;
        same("posted here", bench.device.receives(), 0)?;
        same("kept there", other.qp.post_receive_batch(1)?, 0)?;
        same("posted there", other.device.receives(), 1)?;
        // What is mapped is counted over all of them.
        bench.qp.shutdown();
        other.qp.shutdown();
        bench.end()?;
        other.end()
    }
}
