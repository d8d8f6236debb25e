// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Protects: the server has no more Calls unanswered than the client grants, whether somebody still
//! waits for the answers or not.

use super::*;
use crate::{
    kapi::sys::time::HZ,
    kunit::{
        claim,
        same, //
    },
};

/// How long the client has.
const PATIENCE: Jiffies = 60 * HZ;

/// The credits of a server for its Calls, which it knows by their XIDs.
struct Reverse(Credits);

impl Reverse {
    fn new() -> Result<Self> {
        Ok(Self(Credits::new(0, 2, false)?))
    }

    fn get(&mut self, xid: u32) -> bool {
        self.0.get(xid).is_some()
    }

    fn awaits(&self, xid: u32) -> bool {
        self.0.awaits(xid)
    }

    fn answered(&mut self, xid: u32, grant: Option<u32>) -> bool {
        let known = match self.0.of(xid) {
            Some(credit) => {
                self.0.put(credit);
                true
            }
            None => self.0.put_unawaited(xid),
        };
        if let (true, Some(wire)) = (known, grant) {
            self.0.granted(wire);
        }
        known
    }

    fn ended(&mut self, xid: u32, now: Jiffies) -> bool {
        if let Some(credit) = self.0.of(xid) {
            self.0.abandon(credit);
        }
        self.0.are_lost(now, PATIENCE)
    }
}

#[kunit_tests(rpcrdma_bc_credits)]
mod suite {
    use super::*;

    #[test]
    fn one_call_before_the_first_grant() -> Result {
        let mut credits = Reverse::new()?;
        claim(credits.get(1), "the first")?;
        claim(!credits.get(2), "nothing was granted yet")?;
        claim(!credits.answered(2, Some(2)), "no such Call, no grant")?;
        claim(!credits.get(2), "nothing was granted yet")?;
        claim(credits.answered(1, Some(2)), "answered")?;
        claim(!credits.answered(1, Some(1)), "once")?;
        claim(credits.get(2) && credits.get(3), "two were granted")?;
        claim(!credits.get(4), "and no more")
    }

    #[test]
    fn grants_are_clamped() -> Result {
        for (wire, expected) in [(0, 1), (1, 1), (2, 2), (3, 2), (u32::MAX, 2)] {
            let mut credits = Reverse::new()?;
            claim(credits.get(0), "the first")?;
            claim(credits.answered(0, Some(wire)), "answered")?;
            let calls = (1..5).filter(|xid| credits.get(*xid)).count();
            same("Calls", calls, expected)?;
        }
        Ok(())
    }

    #[test]
    fn a_call_that_nobody_waits_for_keeps_its_credit() -> Result {
        let mut credits = Reverse::new()?;
        claim(credits.get(1), "a Call")?;
        claim(!credits.ended(1, 0), "its RPC has timed out")?;
        claim(credits.awaits(1), "the client may still answer")?;
        claim(!credits.get(2), "and has granted no more")?;
        claim(credits.answered(1, None), "an error, late")?;
        claim(!credits.awaits(1), "it is answered")?;
        claim(credits.get(2), "its credit is back")?;
        claim(!credits.get(3), "an error grants nothing")
    }

    #[test]
    fn a_client_that_never_answers_has_a_minute() -> Result {
        let mut credits = Reverse::new()?;
        claim(credits.get(1), "a Call")?;
        claim(credits.answered(1, Some(2)), "answered")?;
        claim(credits.get(2) && credits.get(3), "two Calls")?;
        // The clock wraps meanwhile.
        let start = Jiffies::MAX - PATIENCE / 2;
        let at = |seconds: Jiffies| start.wrapping_add(seconds * HZ);
        claim(!credits.ended(2, at(0)), "one is waited for")?;
        claim(!credits.ended(3, at(100)), "now none is")?;
        claim(!credits.ended(4, at(159)), "59 seconds")?;
        claim(credits.ended(4, at(160)), "a minute")?;
        claim(!credits.ended(4, at(161)), "it is said once")?;
        claim(credits.answered(2, Some(2)), "late")?;
        claim(credits.get(5), "a Call")?;
        claim(!credits.ended(5, at(400)), "no credit again")?;
        claim(!credits.ended(6, at(459)), "from then on")?;
        claim(credits.ended(6, at(460)), "a minute")
    }

    #[test]
    fn a_client_that_is_always_late_has_all_the_time() -> Result {
        let mut credits = Reverse::new()?;
        for second in (0..1000).step_by(9) {
            let xid = second as u32;
            claim(credits.get(xid), "a Call")?;
            claim(!credits.ended(xid, second * HZ), "nobody waits for it")?;
            claim(credits.answered(xid, Some(1)), "late")?;
        }
        Ok(())
    }
}
