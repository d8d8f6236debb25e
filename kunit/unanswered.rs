// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Protects: no unanswered Call is forgotten or found twice, whatever their XIDs, and each is found
//! at once as XIDs are counted.

use super::*;
use crate::kunit::{
    claim,
    same, //
};

/// Places that are looked at to find the Call of this XID.
fn looks(calls: &Unanswered, xid: u32) -> Result<usize> {
    let (place, _) = calls.find(xid).ok_or(EINVAL)?;
    Ok(1 + calls.distance(xid, place))
}

/// The next of a sequence of numbers that look like random ones.
fn next(seed: &mut u32) -> u32 {
    *seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
    *seed >> 8
}

/// The XID that the RPC layer gives to the Call of this number (`xprt_alloc_xid()`).
fn counted(number: u32) -> u32 {
    u32::from_be(number)
}

#[kunit_tests(rpcrdma_unanswered)]
mod suite {
    use super::*;

    #[test]
    fn one_look_finds_each_of_many() -> Result {
        const MOST: u32 = 16384;
        let mut calls = Unanswered::new(MOST)?;
        for first in [0, 1000, u32::MAX - MOST / 2] {
            for xid in 0..MOST {
                claim(
                    calls.insert(counted(first.wrapping_add(xid)), Owner::Rpc),
                    "room",
                )?;
            }
            claim(
                !calls.insert(counted(first.wrapping_add(MOST)), Owner::Rpc),
                "full",
            )?;
            for xid in 0..MOST {
                same("looks", looks(&calls, counted(first.wrapping_add(xid)))?, 1)?;
            }
            for xid in 0..MOST {
                let owner = calls.remove(counted(first.wrapping_add(xid)));
                same("owner", owner, Some(Owner::Rpc))?;
            }
            same("Calls", calls.len(), 0)?;
        }
        Ok(())
    }

    #[test]
    fn whatever_comes_and_goes() -> Result {
        const MOST: usize = 8;
        let mut calls = Unanswered::new(MOST as u32)?;
        let mut model = KVec::<u32>::with_capacity(MOST, GFP_KERNEL)?;
        let mut seed = 1;
        for _ in 0..5000 {
            // Few, so that they want the same places, and some are the same.
            let xid = counted(next(&mut seed) % 40);
            if next(&mut seed) % 2 == 0 {
                let room = model.len() < MOST;
                same("room", calls.insert(xid, Owner::Rpc), room)?;
                if room {
                    model.push_within_capacity(xid).map_err(|_| ENOMEM)?;
                }
            } else {
                let at = model.iter().position(|other| *other == xid);
                same("there", calls.remove(xid).is_some(), at.is_some())?;
                if let Some(at) = at {
                    model.remove(at).map_err(|_| EINVAL)?;
                }
            }
            same("Calls", calls.len(), model.len())?;
            for other in (0..40).map(counted) {
                let known = model.iter().any(|xid| *xid == other);
                same("known", calls.has(other), known)?;
            }
        }
        Ok(())
    }

    #[test]
    fn who_waits() -> Result {
        let mut calls = Unanswered::new(4)?;
        for xid in [3, 11, 19].map(counted) {
            claim(calls.insert(xid, Owner::Rpc), "room")?;
        }
        for xid in [11, 3, 19].map(counted) {
            claim(!calls.all_unowned(), "somebody does")?;
            calls.abandon(xid);
            calls.abandon(xid);
        }
        claim(calls.all_unowned(), "nobody does")?;
        same(
            "a Call that was given up",
            calls.remove(counted(11)),
            Some(Owner::Nobody),
        )?;
        claim(calls.insert(counted(11), Owner::Probe), "room")?;
        claim(calls.all_unowned(), "nor for a probe")?;
        calls.abandon(counted(11));
        same("a probe", calls.remove(counted(11)), Some(Owner::Probe))?;
        same("none", calls.remove(counted(11)), None)?;
        claim(calls.insert(counted(27), Owner::Rpc), "room")?;
        claim(!calls.all_unowned(), "somebody does again")
    }
}
