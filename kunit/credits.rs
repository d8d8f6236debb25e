// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Protects: never more Calls under way than the server granted, no credit lost or made, and a
//! Receive posted for every message that may come.

use super::*;
use crate::kunit::{
    claim,
    same, //
};
use core::ops::{
    Deref,
    DerefMut, //
};

/// The number of the connection.
const CONNECTION: u64 = 7;
/// The XID of a probe.
const PROBE: u32 = 0x9000_0000;

/// The credits of a connection, and who has them by XID.
struct Bench {
    credits: Credits,
    calls: KVec<(u32, Credit)>,
}

impl Bench {
    fn new(max: u32) -> Result<Self> {
        Ok(Self {
            credits: Credits::new(CONNECTION, max, true)?,
            calls: KVec::new(),
        })
    }

    fn get(&mut self, xid: u32) -> bool {
        let credit = self.credits.get(xid);
        credit.is_some_and(|credit| self.calls.push((xid, credit), GFP_KERNEL).is_ok())
    }

    fn take(&mut self, xid: u32) -> Option<Credit> {
        let place = self.calls.iter().position(|call| call.0 == xid)?;
        self.calls.remove(place).ok().map(|call| call.1)
    }

    /// A Reply of that XID; false if it brings no credit back.
    fn put(&mut self, xid: u32) -> bool {
        match self.take(xid) {
            Some(credit) => {
                self.credits.put(credit);
                true
            }
            None => self.credits.put_unawaited(xid),
        }
    }

    fn abandon(&mut self, xid: u32) {
        if let Some(credit) = self.take(xid) {
            self.credits.abandon(credit);
        }
    }
}

impl Deref for Bench {
    type Target = Credits;

    fn deref(&self) -> &Credits {
        &self.credits
    }
}

impl DerefMut for Bench {
    fn deref_mut(&mut self) -> &mut Credits {
        &mut self.credits
    }
}

/// Takes credits for Calls from XID `first` on until there are no more; how many that were.
fn take_all(credits: &mut Bench, first: u32) -> u32 {
    let mut n = 0;
    while n <= credits.max && credits.get(first + n) {
        n += 1;
    }
    n
}

/// Posts Receives until `wanted` are posted, as the receive queue does.
fn post(credits: &mut Bench, wanted: u32) {
    let missing = i64::from(wanted) - credits.posted;
    credits.posted(u32::try_from(missing).unwrap_or(0));
}

#[kunit_tests(rpcrdma_credits)]
mod suite {
    use super::*;

    #[test]
    fn one_call_before_the_first_grant() -> Result {
        for max in [1, 2, 128, 16384] {
            let mut credits = Bench::new(max)?;
            claim(credits.get(1), "one Call may be sent")?;
            claim(!credits.get(2), "a second may not")?;
            claim(credits.put(1), "the first is answered")?;
            claim(!credits.is_any(), "none is under way")?;
            claim(credits.get(2), "the next may, after the first")?;
            claim(credits.is_any(), "one is")?;
            let awaited = [1, 2].map(|xid| credits.awaits(xid));
            same("awaited", awaited, [false, true])?;
        }
        Ok(())
    }

    #[test]
    fn as_many_are_requested_as_can_be_used() -> Result {
        for (max, requested) in [(0, 1), (1, 1), (128, 128), (u32::from(u16::MAX), 65535)] {
            same("requested", Bench::new(max)?.requested(), requested)?;
        }
        Ok(())
    }

    #[test]
    fn a_reply_brings_a_credit_and_a_grant() -> Result {
        let mut credits = Bench::new(8)?;
        claim(credits.get(1), "the first")?;
        let first = credits.take(1);
        // One is kept for the probe.
        same("Calls", credits.answered(first, Some(8)), Some(7))?;
        claim(!credits.is_any(), "its credit is back")?;
        claim(credits.get(2), "the second")?;
        same("no news", credits.answered(None, Some(8)), None)?;
        claim(credits.is_any(), "the Reply is still needed")?;
        let second = credits.take(2);
        same("malformed", credits.answered(second, None), None)?;
        claim(!credits.is_any(), "its credit is back, too")
    }

    #[test]
    fn grants_are_clamped() -> Result {
        for (max, wire, expected) in [
            (128, 0, 1),
            (128, 1, 1),
            (128, 2, 2),
            (128, 127, 127),
            (128, 128, 128),
            (128, 129, 128),
            (128, u32::MAX, 128),
            (1, 0, 1),
            (1, u32::MAX, 1),
            // A mount that asks for nothing still gets one.
            (0, 0, 1),
            (0, u32::MAX, 1),
        ] {
            let mut credits = Bench::new(max)?;
            // One of several is kept for the probe.
            let calls = if expected > 1 { expected - 1 } else { 1 };
            let changed = (calls != 1).then_some(calls);
            same("first grant", credits.granted(wire), changed)?;
            same("the same again", credits.granted(wire), None)?;
            same("Calls", take_all(&mut credits, 0), calls)?;
        }
        Ok(())
    }

    #[test]
    fn a_smaller_grant_holds_new_calls_back() -> Result {
        let mut credits = Bench::new(33)?;
        same("Calls allowed", credits.granted(33), Some(32))?;
        same("Calls", take_all(&mut credits, 0), 32)?;
        same("Calls allowed", credits.granted(9), Some(8))?;
        // 32 are under way: 24 have to come back before one may be sent.
        for xid in 0..24 {
            claim(!credits.get(100), "the grant is used up")?;
            claim(credits.put(xid), "answered")?;
        }
        claim(!credits.get(100), "8 are under way, and 8 allowed")?;
        claim(credits.put(31), "answered")?;
        claim(credits.get(100), "one less is")?;
        same("Calls allowed", credits.granted(u32::MAX), Some(32))?;
        same("Calls", take_all(&mut credits, 200), 24)
    }

    #[test]
    fn more_replies_than_calls_make_no_credit() -> Result {
        let mut credits = Bench::new(4)?;
        for xid in 0..3 {
            claim(!credits.put(xid), "no such Call")?;
        }
        same("Calls", take_all(&mut credits, 0), 1)?;
        claim(credits.put(0), "answered")?;
        claim(!credits.put(0), "answered twice")?;
        same("Calls", take_all(&mut credits, 0), 1)
    }

    #[test]
    fn answers_come_in_any_order() -> Result {
        for max in [0, 1, 2, 128] {
            let mut credits = Bench::new(max)?;
            credits.granted(max);
            for round in 0..3 {
                let first = round * 1000;
                let calls = take_all(&mut credits, first);
                same("Calls", calls, max.saturating_sub(1).max(1))?;
                // From the last, from the first, from the middle.
                for i in 0..calls {
                    let xid = match round {
                        0 => calls - 1 - i,
                        1 => i,
                        _ => (i + calls / 2) % calls,
                    };
                    claim(
                        !credits.put(first + 999),
                        "a stranger's Reply brings nothing",
                    )?;
                    claim(credits.put(first + xid), "each answer is known")?;
                    claim(!credits.put(first + xid), "and comes once")?;
                }
            }
        }
        Ok(())
    }

    #[test]
    fn a_credit_is_kept_for_the_probe() -> Result {
        for grant in [2, 3, 128] {
            let mut credits = Bench::new(128)?;
            credits.granted(grant);
            same("Calls", take_all(&mut credits, 0), grant - 1)?;
            claim(credits.get_probe(PROBE), "the probe has its credit")?;
            claim(!credits.get_probe(PROBE), "and no other")?;
            claim(!credits.get(1002), "nor has a Call")?;
            claim(credits.put(PROBE), "answered")?;
            claim(!credits.get(1002), "its credit is not for Calls")?;
            claim(credits.get_probe(PROBE), "but for the next probe")?;
        }
        Ok(())
    }

    #[test]
    fn probe_and_calls_share_a_single_credit() -> Result {
        let mut credits = Bench::new(128)?;
        claim(credits.get(1), "a Call")?;
        claim(!credits.get_probe(PROBE), "the probe waits for it")?;
        claim(credits.put(1), "answered")?;
        claim(credits.get_probe(PROBE), "the probe")?;
        claim(!credits.get(3), "a Call waits for it")?;
        claim(credits.put(PROBE), "answered")?;
        claim(credits.get(3), "a Call")
    }

    #[test]
    fn a_smaller_grant_holds_the_probe_back() -> Result {
        let mut credits = Bench::new(128)?;
        credits.granted(8);
        same("Calls", take_all(&mut credits, 0), 7)?;
        credits.granted(7);
        claim(!credits.get_probe(PROBE), "7 are under way, and 7 granted")?;
        claim(credits.put(0), "answered")?;
        claim(credits.get_probe(PROBE), "one less is")
    }

    #[test]
    fn a_dropped_probe_costs_one_credit_until_its_late_answer() -> Result {
        let mut credits = Bench::new(128)?;
        credits.granted(8);
        for dropped in 0..6 {
            let calls = 7 - dropped;
            same("Calls", take_all(&mut credits, 0), calls)?;
            claim(credits.get_probe(PROBE + dropped), "the probe")?;
            claim(credits.drop_probe(), "it was dropped")?;
            same("Calls allowed", credits.changed(), Some(calls - 1))?;
            claim(!credits.get_probe(PROBE), "all credits are in use")?;
            for xid in 0..calls {
                claim(credits.put(xid), "answered")?;
            }
        }
        // One Call or one probe, in turn.
        claim(credits.get_probe(PROBE + 6), "the probe")?;
        claim(credits.drop_probe(), "it was dropped")?;
        same("Calls allowed", credits.changed(), None)?;
        claim(credits.get_probe(PROBE + 7), "the last credit")?;
        claim(!credits.get(1), "a Call waits for it")?;
        claim(!credits.drop_probe(), "there is none for another probe")?;
        claim(credits.is_probe(PROBE + 7), "so it is waited for")?;
        for dropped in 0..7 {
            claim(credits.awaits(PROBE + dropped), "late, but not forgotten")?;
            claim(credits.awaits_probe(PROBE + dropped), "as a probe")?;
            claim(credits.put(PROBE + dropped), "answered")?;
            claim(!credits.put(PROBE + dropped), "once")?;
            claim(!credits.awaits_probe(PROBE + dropped), "nor is it awaited")?;
        }
        same("Calls allowed", credits.granted(8), Some(7))?;
        same("Calls", take_all(&mut credits, 0), 7)
    }

    #[test]
    fn dropped_probes_are_not_abandoned_calls() -> Result {
        let mut credits = Bench::new(128)?;
        credits.granted(3);
        claim(credits.get_probe(PROBE), "the probe")?;
        claim(credits.drop_probe(), "it was dropped")?;
        claim(!credits.is_stalled(), "there is a credit for a Call")?;
        claim(credits.get(1), "which has it")?;
        claim(!credits.is_stalled(), "and waits")?;
        credits.abandon(1);
        claim(credits.is_stalled(), "or does not")
    }

    #[test]
    fn a_grant_of_no_more_than_the_dropped_probes() -> Result {
        let mut credits = Bench::new(128)?;
        credits.granted(3);
        for xid in [PROBE, PROBE + 1] {
            claim(credits.get_probe(xid), "the probe")?;
            claim(credits.drop_probe(), "it was dropped")?;
        }
        claim(!credits.is_stalled(), "there is a credit for a Call")?;
        credits.granted(2);
        claim(
            !credits.get(1) && !credits.get_probe(PROBE + 2),
            "there is none",
        )?;
        claim(credits.is_stalled(), "and none comes back")
    }

    #[test]
    fn the_probe_needs_a_receive() -> Result {
        let mut credits = Bench::new(128)?;
        credits.granted(128);
        post(&mut credits, RECEIVE_BATCH);
        for xid in 0..RECEIVE_BATCH {
            claim(credits.get(xid), "a Call")?;
        }
        same("wanted", credits.wanted_receives(), None)?;
        claim(credits.get_probe(PROBE), "the probe")?;
        let wanted = 2 * RECEIVE_BATCH + 1;
        same("wanted", credits.wanted_receives(), Some(wanted))
    }

    #[test]
    fn a_receive_is_there_before_the_first_call() -> Result {
        let credits = Bench::new(128)?;
        same("wanted", credits.wanted_receives(), Some(RECEIVE_BATCH))
    }

    #[test]
    fn receives_follow_the_calls() -> Result {
        let mut credits = Bench::new(128)?;
        credits.granted(128);
        post(&mut credits, RECEIVE_BATCH);
        for calls in 1..=RECEIVE_BATCH {
            claim(credits.get(1), "a Call")?;
            same("wanted", credits.wanted_receives(), None)?;
            claim(
                i64::from(calls) <= credits.posted,
                "a Receive for each Call",
            )?;
        }
        claim(credits.get(100), "a Call")?;
        let wanted = 2 * RECEIVE_BATCH + 1;
        same("wanted", credits.wanted_receives(), Some(wanted))?;
        post(&mut credits, wanted);
        same("wanted", credits.wanted_receives(), None)
    }

    #[test]
    fn receives_come_in_batches() -> Result {
        // A Call and a Reply at a time: only every so often more are wanted.
        let mut credits = Bench::new(128)?;
        post(&mut credits, RECEIVE_BATCH);
        let mut posts = 0;
        for _ in 0..10 * RECEIVE_BATCH {
            claim(credits.get(1), "a Call")?;
            if let Some(wanted) = credits.wanted_receives() {
                post(&mut credits, wanted);
                posts += 1;
            }
            claim(credits.posted >= 1, "a Receive for the Reply")?;
            credits.received();
            claim(credits.put(1), "answered")?;
        }
        claim(posts <= 10, "one post for a batch")
    }

    #[test]
    fn a_connection_is_stalled_when_nobody_waits_for_what_is_under_way() -> Result {
        let mut credits = Bench::new(8)?;
        claim(!credits.is_stalled(), "nothing is under way")?;
        credits.granted(3);
        claim(credits.get(1) && credits.get(2), "two Calls")?;
        claim(!credits.is_stalled(), "somebody waits for both")?;
        credits.abandon(1);
        credits.abandon(7);
        claim(!credits.is_stalled(), "somebody waits for one")?;
        credits.abandon(2);
        claim(credits.is_stalled(), "nobody waits for either")?;
        claim(!credits.get(3), "they keep their credits")?;
        credits.granted(4);
        claim(credits.is_stalled(), "though there is a credit more")?;
        claim(credits.get(3), "which can be taken")?;
        claim(!credits.is_stalled(), "somebody waits for that one")?;
        claim(credits.put(1), "a late Reply")?;
        credits.abandon(3);
        claim(credits.is_stalled(), "two credits are lost")?;
        claim(credits.put(2) && credits.put(3), "late Replies")?;
        claim(!credits.is_stalled(), "all are back")
    }

    #[test]
    fn credits_that_are_lost_for_long() -> Result {
        let mut credits = Bench::new(9)?;
        credits.granted(9);
        same("Calls", take_all(&mut credits, 0), 8)?;
        for xid in 0..4 {
            credits.abandon(xid);
        }
        claim(!credits.are_lost(0, 60), "less than half")?;
        credits.abandon(4);
        // Five of nine. The clock wraps meanwhile.
        let start = Jiffies::MAX - 30;
        claim(!credits.are_lost(start, 60), "half of them are lost now")?;
        claim(credits.put(5) && credits.get(9), "others are answered")?;
        claim(!credits.are_lost(28, 60), "not for long enough")?;
        claim(credits.are_lost(29, 60), "for so long")?;
        claim(!credits.are_lost(30, 60), "it is said once")?;
        claim(credits.put(0), "a late Reply")?;
        credits.abandon(6);
        claim(!credits.are_lost(100, 60), "the server drops none")?;
        claim(credits.are_lost(160, 60), "or does")
    }

    #[test]
    fn a_credit_of_an_earlier_connection_brings_nothing_back() -> Result {
        let mut credits = Bench::new(8)?;
        credits.granted(2);
        claim(credits.get(1), "a Call")?;
        let mut earlier = Credits::new(CONNECTION - 1, 8, true)?;
        let credit = earlier.get(1).ok_or(EINVAL)?;
        claim(!credit.is_of(CONNECTION), "it is of another")?;
        credits.credits.put(credit);
        claim(!credits.get(2), "the Call has its credit still")?;
        let credit = earlier.get(1);
        claim(credit.is_none(), "nor has the other got it back")?;
        claim(credits.put(1) && credits.get(2), "which is this one's")
    }

    #[test]
    fn a_call_that_is_answered_while_its_rpc_ends() -> Result {
        for abandons in [true, false] {
            let mut credits = Bench::new(8)?;
            claim(credits.get(1), "a Call")?;
            let credit = credits.take(1).ok_or(EINVAL)?;
            // The RPC is not found any more, and has not given its credit up yet.
            claim(credits.credits.put_unawaited(1), "the credit is back")?;
            claim(!credits.credits.put_unawaited(1), "once")?;
            claim(!credits.is_any(), "nothing is under way")?;
            claim(credits.get(2), "another has it")?;
            match abandons {
                true => credits.credits.abandon(credit),
                false => credits.credits.put(credit),
            }
            claim(!credits.awaits(1), "it is not awaited")?;
            claim(!credits.get(3), "the other has its credit still")?;
            claim(credits.put(2) && !credits.is_any(), "and gives it back")?;
        }
        Ok(())
    }

    #[test]
    fn places_come_back() -> Result {
        let mut credits = Bench::new(2)?;
        for xid in 0..20 {
            claim(credits.get(xid), "a Call")?;
            match xid % 3 {
                0 => claim(credits.put(xid), "answered")?,
                1 => {
                    credits.abandon(xid);
                    claim(credits.put(xid), "answered late")?;
                }
                _ => {
                    claim(credits.credits.put_unawaited(xid), "answered as it ends")?;
                    credits.abandon(xid);
                }
            }
            claim(!credits.is_any(), "nothing is under way")?;
        }
        Ok(())
    }

    #[test]
    fn reverse_calls_need_receives_too() -> Result {
        let mut credits = Bench::new(128)?;
        credits.granted(128);
        post(&mut credits, RECEIVE_BATCH);
        credits.expect_more(RECEIVE_BATCH);
        same("wanted", credits.wanted_receives(), None)?;
        claim(credits.get(100), "a Call")?;
        let wanted = 2 * RECEIVE_BATCH + 1;
        same("wanted", credits.wanted_receives(), Some(wanted))?;
        post(&mut credits, wanted);
        // Both kinds of message use them up.
        for _ in 0..RECEIVE_BATCH {
            credits.received();
            same("wanted", credits.wanted_receives(), None)?;
        }
        credits.received();
        same("wanted", credits.wanted_receives(), Some(wanted))
    }

    #[test]
    fn completions_before_their_post_was_counted() -> Result {
        let mut credits = Bench::new(4)?;
        // The completion handler may be faster than the one who posted.
        for _ in 0..3 {
            credits.received();
        }
        credits.posted(RECEIVE_BATCH + 3);
        same("received", credits.all_received(), 3)?;
        same("posted", credits.posted, i64::from(RECEIVE_BATCH))?;
        same("wanted", credits.wanted_receives(), None)
    }

    #[test]
    fn too_many_reverse_calls_are_no_overflow() -> Result {
        let mut credits = Bench::new(4)?;
        claim(credits.get(1), "a Call")?;
        credits.expect_more(u32::MAX);
        same("wanted", credits.wanted_receives(), Some(u32::MAX))
    }
}
