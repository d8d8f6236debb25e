// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Protects: a Reply that a peer may read stays until no peer can reach it any more, and no longer;
//! a peer has no more of them than it may; and what it says of another's does nothing.

use crate::{
    kapi::{
        ib::{
            fake::{
                numbers::INV,
                Request, //
            },
            InvalidatedKey,
            Regions, //
        },
        page::ExtentIter,
        sys::time::jiffies, //
    },
    transport::{
        provided::{
            Provided,
            ProvidedLimits,
            ProvidedTable, //
        },
        provided_total::{
            ProvidedShare,
            ProvidedTotal, //
        },
        providing::Providing,
        tests::transfer::*, //
    },
};
use kernel::time::Jiffies;

const XID: u32 = 7;
const BYTES: usize = PAGES * PAGE_SIZE;
/// As many regions as that takes.
const REGIONS: usize = 2;
const LIMITS: ProvidedLimits = ProvidedLimits {
    replies: 2,
    regions: 2 * REGIONS as u32,
    bytes: 2 * BYTES,
    regions_of_all: u32::MAX,
};
const TIME: Jiffies = 1000;
/// More than can be posted and wait, one region each.
const MANY: u32 = PLAN.qp.max_send_wr + PLAN.send_buffers + PLAN.provided + 3;

/// So much of what all have, of which there is enough.
fn share(bytes: usize) -> Result<ProvidedShare> {
    ProvidedTotal::take(&ProvidedTotal::new(usize::MAX)?, bytes)
}

/// A Reply of all pages, which is not posted yet.
fn providing(bench: &Bench, xid: u32, end: Jiffies) -> Result<Providing<'_, Keeper>> {
    let mut provided = bench.qp.provide(xid, share(BYTES)?, end, &LIMITS)?;
    let mut pieces = ExtentIter::of_message(bench.pages.gather(BYTES)?)?;
    provided.add(&mut pieces)?;
    Ok(provided)
}

/// Posts the message that tells of it, and returns how that names it.
fn send(bench: &Bench, provided: Providing<'_, Keeper>) -> Result<KVec<Segment>> {
    let mut segments = KVec::new();
    segments.extend_from_slice(provided.segments(), GFP_KERNEL)?;
    let mut buffer = bench.qp.send_buffer(Purpose::Message)?;
    buffer.set_xid(TAG);
    buffer.provide(provided)?;
    buffer.send(50)?;
    Ok(segments)
}

/// Provides one, and returns how it is named.
fn provide(bench: &Bench, xid: u32, end: Jiffies) -> Result<KVec<Segment>> {
    let provided = providing(bench, xid, end)?;
    send(bench, provided)
}

/// The same, when the device is done with the post.
fn provided(bench: &Bench, xid: u32) -> Result<KVec<Segment>> {
    let segments = provide(bench, xid, jiffies().wrapping_add(TIME))?;
    bench.device.complete_sends(REGIONS + 1)?;
    Ok(segments)
}

/// What the peer has made invalid.
fn key(bench: &Bench, segments: &[Segment], n: usize) -> InvalidatedKey<'static> {
    let handle = segments.get(n).map_or(0, |segment| segment.handle);
    InvalidatedKey::test(handle, bench.qp.number())
}

/// One that nothing is kept for.
fn without_memory(number: u32) -> Result<KBox<Provided>> {
    let provided = Provided {
        xid: number,
        number,
        regions: Regions::new(0, GFP_KERNEL)?,
        share: share(0)?,
        end: 0,
        withdrawn: false,
    };
    Ok(KBox::new(provided, GFP_KERNEL)?)
}

/// How many regions the device has.
fn regions(bench: &Bench) -> usize {
    bench.device.count(Request::AllocMr) - bench.device.count(Request::DeregMr)
}

/// Whether the memory of so many Replies is held.
fn holds(bench: &Bench, replies: usize) -> Result {
    same("references", bench.pages.references(), replies * PAGES)
}

#[kunit_tests(rpcrdma_provided)]
mod suite {
    use super::*;

    #[test]
    fn it_is_registered_before_the_message_in_one_post() -> Result {
        let bench = Bench::new()?;
        let segments = provide(&bench, XID, jiffies())?;
        same("posts", bench.device.posts(), 1)?;
        let opcodes = [REG, REG, SEND];
        for (i, opcode) in opcodes.into_iter().enumerate() {
            same("posted", bench.device.send(i)?.opcode, opcode)?;
        }
        same("requests", bench.device.sends(), opcodes.len())?;
        let lengths = segments.iter().map(|s| s.length as usize);
        same("bytes", lengths.sum::<usize>(), BYTES)?;
        // Their addresses tell nothing of the kernel's.
        claim(
            segments.iter().all(|s| s.offset >> 32 == u64::from(XID)),
            "addresses begin with the XID",
        )?;
        bench.device.complete_sends(3)?;
        holds(&bench, 1)?;
        bench.end()
    }

    #[test]
    fn it_goes_when_it_is_pulled_and_fenced() -> Result {
        let bench = Bench::new()?;
        provided(&bench, XID)?;
        bench.qp.pulled(XID, None)?;
        holds(&bench, 1)?;
        bench.expect_posted(&[INV, INV])?;
        // Once is enough.
        bench.qp.pulled(XID, None)?;
        same("requests", bench.device.sends(), 2)?;
        bench.device.complete_sends(2)?;
        holds(&bench, 0)?;
        bench.qp.pulled(XID, None)?;
        same("requests", bench.device.sends(), 0)?;
        bench.end()
    }

    #[test]
    fn a_key_that_is_invalid_is_not_invalidated_again() -> Result {
        for n in 0..REGIONS {
            let bench = Bench::new()?;
            let segments = provided(&bench, XID)?;
            bench.qp.pulled(XID, Some(key(&bench, &segments, n)))?;
            holds(&bench, 1)?;
            bench.expect_posted(&[INV])?;
            bench.device.complete_sends(1)?;
            holds(&bench, 0)?;
            bench.end()?;
        }
        Ok(())
    }

    #[test]
    fn a_region_alone_needs_nothing_more() -> Result {
        let bench = Bench::new()?;
        let mut provided = bench
            .qp
            .provide(XID, share(PAGE_SIZE)?, jiffies(), &LIMITS)?;
        let mut pieces = ExtentIter::of_message(bench.pages.gather(PAGE_SIZE)?)?;
        provided.add(&mut pieces)?;
        drop(pieces);
        let segments = send(&bench, provided)?;
        bench.device.complete_sends(2)?;
        holds(&bench, 1)?;
        bench.qp.pulled(XID, Some(key(&bench, &segments, 0)))?;
        holds(&bench, 0)?;
        same("requests", bench.device.sends(), 0)?;
        bench.end()
    }

    #[test]
    fn another_key_is_the_end() -> Result {
        let bench = Bench::new()?;
        let first = provided(&bench, XID)?;
        let second = provided(&bench, XID + 1)?;
        for (xid, segments) in [(XID, &second), (XID + 1, &first), (XID + 2, &first)] {
            let foreign = key(&bench, segments, 0);
            same("refused", bench.qp.pulled(xid, Some(foreign)), Err(EINVAL))?;
        }
        let nobodys = InvalidatedKey::test(0, bench.qp.number());
        same("refused", bench.qp.pulled(XID, Some(nobodys)), Err(EINVAL))?;
        holds(&bench, 2)?;
        same("requests", bench.device.sends(), 0)?;
        // Nothing has gone with that.
        bench.qp.pulled(XID, Some(key(&bench, &first, 0)))?;
        bench.device.complete_sends(1)?;
        holds(&bench, 1)?;
        bench.end()
    }

    #[test]
    fn no_more_than_there_may_be() -> Result {
        let bench = Bench::new()?;
        let refused = |bytes| {
            let share = share(bytes).ok()?;
            bench.qp.provide(XID + 9, share, jiffies(), &LIMITS).err()
        };
        provided(&bench, XID)?;
        same("bytes", refused(BYTES + 1), Some(EMSGSIZE))?;
        same("as many bytes", refused(BYTES), None)?;
        provided(&bench, XID + 1)?;
        same("Replies", refused(1), Some(EMSGSIZE))?;
        bench.qp.pulled(XID, None)?;
        same("before the fence", refused(1), Some(EMSGSIZE))?;
        bench.device.complete_sends(REGIONS)?;
        same("behind it", refused(BYTES), None)?;
        bench.end()
    }

    #[test]
    fn regions_are_counted_too() -> Result {
        let bench = Bench::new()?;
        let limits = ProvidedLimits {
            regions: REGIONS as u32,
            ..LIMITS
        };
        provided(&bench, XID)?;
        let mut second = bench
            .qp
            .provide(XID + 1, share(BYTES)?, jiffies(), &limits)?;
        let mut pieces = ExtentIter::of_message(bench.pages.gather(BYTES)?)?;
        same("added", second.add(&mut pieces), Err(EMSGSIZE))?;
        drop((second, pieces));
        bench.qp.pulled(XID, None)?;
        bench.device.complete_sends(REGIONS)?;
        let mut third = bench
            .qp
            .provide(XID + 2, share(BYTES)?, jiffies(), &limits)?;
        let mut pieces = ExtentIter::of_message(bench.pages.gather(BYTES)?)?;
        same("added", third.add(&mut pieces), Ok(()))?;
        drop((third, pieces));
        bench.end()
    }

    #[test]
    fn what_all_have_is_counted_too() -> Result {
        let bench = Bench::new()?;
        let total = ProvidedTotal::new(2 * BYTES)?;
        let limits = ProvidedLimits {
            regions_of_all: REGIONS as u32,
            ..LIMITS
        };
        let other = ProvidedTotal::take(&total, BYTES)?;
        let other_region = other.take_region(1)?;
        let share = ProvidedTotal::take(&total, BYTES)?;
        same(
            "no more",
            ProvidedTotal::take(&total, 1).err(),
            Some(EMSGSIZE),
        )?;
        let mut provided = bench.qp.provide(XID, share, jiffies(), &limits)?;
        let mut pieces = ExtentIter::of_message(bench.pages.gather(BYTES)?)?;
        same("added", provided.add(&mut pieces), Err(EMSGSIZE))?;
        drop(other_region);
        same("added", provided.add(&mut pieces), Ok(()))?;
        drop((provided, pieces));
        claim(ProvidedTotal::take(&total, BYTES).is_ok(), "it goes back")?;
        let refused = other.take_region(REGIONS as u32).err();
        same("idle ones count", refused, Some(EMSGSIZE))?;
        bench.end()?;
        claim(other.take_region(1).is_ok(), "they go with the connection")
    }

    #[test]
    fn regions_that_are_not_used_go_back() -> Result {
        let bench = Bench::new()?;
        let made = regions(&bench);
        provided(&bench, XID)?;
        bench.qp.pulled(XID, None)?;
        bench.device.complete_sends(REGIONS)?;
        same("made", regions(&bench), made + REGIONS)?;
        claim(bench.qp.trim_regions(), "they were used just now")?;
        same("kept", regions(&bench), made + REGIONS)?;
        // One is used.
        let mut provided = bench
            .qp
            .provide(XID, share(PAGE_SIZE)?, jiffies(), &LIMITS)?;
        let mut pieces = ExtentIter::of_message(bench.pages.gather(PAGE_SIZE)?)?;
        provided.add(&mut pieces)?;
        drop((provided, pieces));
        claim(bench.qp.trim_regions(), "one is left")?;
        same("kept", regions(&bench), made + 1)?;
        claim(!bench.qp.trim_regions(), "none is left")?;
        same("kept", regions(&bench), made)?;
        // More can be made.
        drop(providing(&bench, XID, jiffies())?);
        same("made", regions(&bench), made + REGIONS)?;
        bench.end()
    }

    #[test]
    fn one_that_comes_back_has_its_place() -> Result {
        let limits = ProvidedLimits {
            replies: u32::MAX,
            ..LIMITS
        };
        for on_their_way in 0..20 {
            let mut table = ProvidedTable::default();
            for _ in 0..=on_their_way {
                table.let_in(0, &limits)?;
            }
            table.add(without_memory(0)?);
            let first = table.pulled(0, None)?.ok_or(ENOENT)?;
            table.let_in(0, &limits)?;
            for number in 1..on_their_way + 2 {
                table.add(without_memory(number)?);
            }
            table.add(first);
            for number in 0..on_their_way + 2 {
                let found = table.take(|one| one.number == number);
                claim(found.is_some(), "each is there")?;
            }
        }
        Ok(())
    }

    #[test]
    fn memory_that_is_short_for_a_moment_is_waited_for() -> Result {
        let bench = Bench::new()?;
        let mut provided = bench.qp.provide(XID, share(BYTES)?, jiffies(), &LIMITS)?;
        let mut pieces = ExtentIter::of_message(bench.pages.gather(BYTES)?)?;
        bench.device.refuse(Request::MapMr, 0);
        provided.add(&mut pieces)?;
        let lengths = provided.segments().iter().map(|s| s.length as usize);
        same("bytes", lengths.sum::<usize>(), BYTES)?;
        drop((provided, pieces));
        bench.end()
    }

    #[test]
    fn one_that_is_not_posted_leaves_nothing() -> Result {
        let bench = Bench::new()?;
        for _ in 0..5 {
            drop(providing(&bench, XID, jiffies())?);
            holds(&bench, 0)?;
        }
        same("posts", bench.device.posts(), 0)?;
        bench.end()
    }

    #[test]
    fn a_message_that_is_not_sent_leaves_nothing() -> Result {
        let bench = Bench::new()?;
        for _ in 0..5 {
            let mut buffer = bench.qp.send_buffer(Purpose::Message)?;
            buffer.write(bench.transfer(TransferKind::Write, 1)?);
            buffer.provide(providing(&bench, XID, jiffies())?)?;
            same("bytes", buffer.provided().map(Provided::bytes), Some(BYTES))?;
            same("pieces", buffer.written_pieces(), 1)?;
            holds(&bench, 2)?;
            drop(buffer);
            holds(&bench, 0)?;
        }
        same("posts", bench.device.posts(), 0)?;
        bench.end()
    }

    #[test]
    fn what_is_overdue_is_taken_back() -> Result {
        let bench = Bench::new()?;
        // So that the counter wraps.
        let now = Jiffies::MAX - 5;
        for (xid, after) in [(XID, 10), (XID + 1, 20)] {
            provide(&bench, xid, now.wrapping_add(after))?;
            bench.device.complete_sends(REGIONS + 1)?;
        }
        let ends = [10, 20].map(|after| now.wrapping_add(after));
        let overdue = |after| bench.qp.withdraw_overdue(now.wrapping_add(after), |_| ());
        same("before", overdue(9), (0, Some(ends[0])))?;
        same("requests", bench.device.sends(), 0)?;
        same("at the time", overdue(10), (1, Some(ends[1])))?;
        bench.expect_posted(&[INV, INV])?;
        same("once", overdue(11), (0, Some(ends[1])))?;
        holds(&bench, 2)?;
        bench.device.complete_sends(REGIONS)?;
        holds(&bench, 1)?;
        // The peer may say so all the same.
        bench.qp.pulled(XID, None)?;
        same("the last", overdue(1000), (1, None))?;
        bench.device.complete_sends(REGIONS)?;
        holds(&bench, 0)?;
        bench.end()
    }

    #[test]
    fn another_reply_of_its_xid_takes_it_back() -> Result {
        let bench = Bench::new()?;
        provided(&bench, XID)?;
        provide(&bench, XID, jiffies())?;
        for (i, opcode) in [INV, INV, REG, REG, SEND].into_iter().enumerate() {
            same("posted", bench.device.send(i)?.opcode, opcode)?;
        }
        holds(&bench, 2)?;
        bench.device.complete_sends(5)?;
        holds(&bench, 1)?;
        bench.qp.pulled(XID, None)?;
        bench.device.complete_sends(REGIONS)?;
        holds(&bench, 0)?;
        bench.end()
    }

    #[test]
    fn an_invalidation_that_fails_frees_nothing() -> Result {
        let bench = Bench::new()?;
        provided(&bench, XID)?;
        bench.qp.pulled(XID, None)?;
        bench.device.fail_send(BROKEN)?;
        bench.device.fail_send(FLUSHED)?;
        holds(&bench, 1)?;
        // The tear-down takes the regions from the device, and then lets go of it.
        bench.end()
    }

    #[test]
    fn a_post_that_fails_frees_nothing() -> Result {
        let bench = Bench::new()?;
        bench.device.refuse_post(Refusal::Nameless);
        provide(&bench, XID, jiffies())?;
        holds(&bench, 1)?;
        bench.end()
    }

    #[test]
    fn it_waits_for_its_turn() -> Result {
        let bench = Bench::new()?;
        while bench.qp.handler().told.lock().sq_full == 0 {
            bench.reply(3)?;
        }
        let waiting = bench.pages.references();
        provide(&bench, XID, jiffies().wrapping_add(TIME))?;
        same("references", bench.pages.references(), waiting + PAGES)?;
        // Nobody can have pulled it.
        bench.qp.pulled(XID, None)?;
        same("references", bench.pages.references(), waiting + PAGES)?;
        while bench.device.sends() != 0 {
            bench.device.complete_sends(1)?;
        }
        holds(&bench, 1)?;
        bench.qp.pulled(XID, None)?;
        bench.device.complete_sends(REGIONS)?;
        holds(&bench, 0)?;
        bench.end()
    }

    #[test]
    fn one_that_cannot_be_taken_back_ends_the_connection() -> Result {
        let bench = Bench::new()?;
        let many = ProvidedLimits {
            replies: MANY,
            regions: MANY,
            bytes: MANY as usize * PAGE_SIZE,
            ..LIMITS
        };
        for xid in 0..MANY {
            let mut provided = bench.qp.provide(xid, share(PAGE_SIZE)?, jiffies(), &many)?;
            let mut pieces = ExtentIter::of_message(bench.pages.gather(PAGE_SIZE)?)?;
            provided.add(&mut pieces)?;
            drop(pieces);
            send(&bench, provided)?;
            bench.device.complete_sends(2)?;
        }
        bench.told(&[], &[])?;
        // There is not room for so many to wait.
        let (withdrawn, _) = bench.qp.withdraw_overdue(jiffies(), |_| ());
        same("withdrawn", withdrawn, MANY as usize)?;
        let failures = bench.qp.handler().told.lock().failures.len();
        claim(failures != 0, "its user is told")?;
        bench.end()
    }

    #[test]
    fn the_end_takes_what_waits() -> Result {
        let bench = Bench::new()?;
        while bench.qp.handler().told.lock().sq_full == 0 {
            bench.reply(3)?;
        }
        provide(&bench, XID, jiffies())?;
        bench.end()
    }
}
