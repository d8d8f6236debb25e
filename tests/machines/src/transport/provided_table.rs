// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Protects: what is said of a Reply that a peer may read. The KUnit suite `rpcrdma_provided` looks
//! at what becomes of its memory, over a device.

use crate::{
    kapi::ib::{
        InvalidatedKey,
        Regions, //
    },
    kunit::{
        claim,
        same, //
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
    },
};
use kernel::{
    prelude::*,
    time::Jiffies, //
};

const BYTES: usize = 100;
const LIMITS: ProvidedLimits = ProvidedLimits {
    replies: 2,
    regions: u32::MAX,
    bytes: 2 * BYTES,
    regions_of_all: u32::MAX,
};

/// One with two keys, the first of which is ten times its number.
fn provided(xid: u32, number: u32) -> Result<KBox<Provided>> {
    let mut keys = KVec::new();
    keys.push(10 * number, GFP_KERNEL)?;
    keys.push(10 * number + 1, GFP_KERNEL)?;
    Ok(KBox::from(Provided {
        xid,
        number,
        regions: Regions(keys),
        share: ProvidedTotal::take(&ProvidedTotal::new(BYTES)?, BYTES)?,
        end: number as Jiffies,
        withdrawn: false,
    }))
}

/// A table with the XIDs 7 and 8, by the numbers 1 and 2.
fn table() -> Result<ProvidedTable> {
    let mut table = ProvidedTable::default();
    for (xid, number) in [(7, 1), (8, 2)] {
        table.let_in(BYTES, &LIMITS)?;
        table.add(provided(xid, number)?);
    }
    Ok(table)
}

/// What is pulled by that word: the number of the Reply.
fn pulled(table: &mut ProvidedTable, xid: u32, key: Option<u32>) -> Result<Option<u32>> {
    let key = key.as_ref().map(InvalidatedKey);
    let pulled = table.pulled(xid, key.as_ref())?;
    Ok(pulled.map(|one| one.number))
}

#[test]
fn no_more_than_a_peer_may_have() -> Result {
    let mut table = ProvidedTable::default();
    let bytes = 2 * BYTES;
    same("bytes", table.let_in(bytes + 1, &LIMITS), Err(EMSGSIZE))?;
    claim(table.is_empty(), "none is let in")?;
    same("as many", table.let_in(bytes, &LIMITS), Ok(()))?;
    claim(!table.is_empty(), "one is on its way")?;
    same("one more byte", table.let_in(1, &LIMITS), Err(EMSGSIZE))?;
    same("no byte", table.let_in(0, &LIMITS), Ok(()))?;
    same("a third", table.let_in(0, &LIMITS), Err(EMSGSIZE))
}

#[test]
fn what_is_let_out_makes_room() -> Result {
    let mut table = table()?;
    let mut first = table.take(|one| one.xid == 7).ok_or(ENOENT)?;
    same("a third", table.let_in(0, &LIMITS), Err(EMSGSIZE))?;
    table.let_out(&mut first);
    same("too much", table.let_in(BYTES + 1, &LIMITS), Err(EMSGSIZE))?;
    same("as much", table.let_in(BYTES, &LIMITS), Ok(()))?;
    let mut second = table.pulled(8, None)?.ok_or(ENOENT)?;
    // It counts for a Reply no more, but its bytes do.
    same("bytes", table.let_in(1, &LIMITS), Err(EMSGSIZE))?;
    same("a Reply", table.let_in(0, &LIMITS), Ok(()))?;
    table.let_out(&mut second);
    same("a third", table.let_in(0, &LIMITS), Err(EMSGSIZE))
}

#[test]
fn each_has_its_place_however_many_are_on_their_way() -> Result {
    let limits = ProvidedLimits {
        replies: u32::MAX,
        bytes: usize::MAX,
        ..LIMITS
    };
    for on_their_way in 1..20 {
        let mut table = ProvidedTable::default();
        table.let_in(BYTES, &limits)?;
        table.add(provided(0, 0)?);
        let pulled = table.pulled(0, None)?.ok_or(ENOENT)?;
        for _ in 0..on_their_way {
            table.let_in(BYTES, &limits)?;
        }
        for number in 1..=on_their_way {
            table.add(provided(number, number)?);
        }
        table.add(pulled);
        for number in 0..=on_their_way {
            let found = table.take(|one| one.number == number);
            claim(found.is_some(), "each is there")?;
        }
    }
    Ok(())
}

#[test]
fn a_key_names_the_reply_that_has_it() -> Result {
    for key in [None, Some(10), Some(11)] {
        same("its own", pulled(&mut table()?, 7, key), Ok(Some(1)))?;
    }
    let mut table = table()?;
    for (xid, key) in [(7, 20), (8, 10), (9, 10), (7, 30)] {
        same("another's", pulled(&mut table, xid, Some(key)), Err(EINVAL))?;
    }
    same("of none", pulled(&mut table, 9, None), Ok(None))?;
    // Of one that was pulled before, or so.
    same("too late", pulled(&mut table, 9, Some(30)), Ok(None))?;
    same("the second", pulled(&mut table, 8, Some(21)), Ok(Some(2)))?;
    same("once", pulled(&mut table, 8, Some(21)), Ok(None))
}

#[test]
fn what_is_withdrawn_is_not_pulled() -> Result {
    let mut table = table()?;
    let chosen = |one: &Provided| one.xid == 7;
    let (withdrawal, xid, bytes) = table.withdraw(chosen).ok_or(ENOENT)?;
    let said = (withdrawal.number, withdrawal.registered, xid, bytes);
    same("to be invalidated", said, (1, 2, 7, BYTES))?;
    claim(table.withdraw(chosen).is_none(), "once")?;
    same("by its XID", pulled(&mut table, 7, None), Ok(None))?;
    same("by its key", pulled(&mut table, 7, Some(10)), Ok(None))?;
    let regions = table.withdrawn_regions(1).map(|regions| regions.0[0]);
    same("its regions", regions, Some(10))?;
    claim(table.withdrawn_regions(3).is_none(), "of none")?;
    // There may be another of that XID by now.
    same("a place", table.let_in(0, &LIMITS), Ok(()))?;
    table.add(provided(7, 3)?);
    same("a key of before", pulled(&mut table, 7, Some(10)), Ok(None))?;
    same("its own key", pulled(&mut table, 7, Some(30)), Ok(Some(3)))?;
    // Which counts once.
    claim(!table.is_empty(), "one is left")?;
    claim(table.withdraw(|_| true).is_some(), "that one")?;
    claim(table.is_empty(), "none is left")
}

#[test]
fn the_end_of_the_next_one_is_known() -> Result {
    let mut table = table()?;
    same("the first", table.next_end(), Some(1))?;
    // The counter has wrapped meanwhile.
    let mut early = table.take(|one| one.number == 2).ok_or(ENOENT)?;
    early.end = Jiffies::MAX;
    table.add(early);
    same("the earlier", table.next_end(), Some(Jiffies::MAX))?;
    table.withdraw(|one| one.number == 2).ok_or(ENOENT)?;
    same("the other", table.next_end(), Some(1))?;
    table.withdraw(|_| true).ok_or(ENOENT)?;
    same("none", table.next_end(), None)
}

#[test]
fn each_of_its_regions_is_registered() -> Result {
    same("requests", provided(7, 1)?.registrations(), 2)
}

#[test]
fn regions_that_were_idle_all_the_time_are_known() -> Result {
    let mut table = ProvidedTable::default();
    same("in the beginning", table.long_idle(5), 0)?;
    same("all the time", table.long_idle(5), 5)?;
    table.idle_left(3);
    table.idle_left(4);
    same("all the time", table.long_idle(5), 3)?;
    same("now", table.long_idle(2), 2)
}

/// How many regions are left of so many.
fn left(share: &ProvidedShare, most: u32) -> Result<usize> {
    let mut taken = KVec::new();
    while let Ok(region) = share.take_region(most) {
        taken.push(region, GFP_KERNEL)?;
    }
    Ok(taken.len())
}

#[test]
fn regions_count_until_they_are_no_more() -> Result {
    let share = ProvidedTotal::take(&ProvidedTotal::new(BYTES)?, BYTES)?;
    same("bytes", share.bytes(), BYTES)?;
    let mut table = ProvidedTable::default();
    // There is none that could go.
    table.put_region();
    same("in the beginning", left(&share, 4)?, 4)?;
    for made in 1..4 {
        table.add_region(share.take_region(4)?);
        same("left", left(&share, 4)?, 4 - made)?;
    }
    table.put_region();
    same("one is no more", left(&share, 4)?, 2)?;
    drop(table);
    same("all have gone", left(&share, 4)?, 4)
}
