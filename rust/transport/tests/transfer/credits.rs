// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Protects: no Reply waits for the credits of several messages of a peer that has taken them back,
//! and says something, or waits for what this end has to tell; and no GRANT invalidates a key of
//! this end.

use crate::transport::{
    header::{
        Direction,
        Reason,
        Refusal, //
    },
    tests::transfer::*, //
};
use kernel::time::{
    delay::fsleep,
    Delta, //
};
use xdr::Version;

/// The header types of a GRANT and of a Call.
const GRANT: u32 = 5;
const CALL: u32 = 10;
/// The header type of an error, and the error that refuses properties.
const ERROR_TYPE: u32 = 4;
const BAD_PROPVAL: u32 = 3;
/// Bytes of a fragment at most, by the sizes of the plan.
const FRAGMENT: usize = 1004;
/// Bytes of a Reply in four messages.
const LONG: usize = 4 * FRAGMENT - 100;
const XID: u32 = 7;
/// More than the time for which a Reply waits for credits.
const TOO_LONG: Delta = Delta::from_millis(2100);
/// Bytes of an error that tells a length, and of a GRANT.
const ERROR: u32 = 24;
const GRANT_BYTES: u32 = 16;

impl Bench {
    /// One whose peer takes one message at a time, and has taken four.
    fn that_takes_fewer() -> Result<Self> {
        let bench = Self::of_any_version()?;
        bench.grant(4, None)?;
        bench.grant(1, None)?;
        Ok(bench)
    }

    /// The peer tells that it takes so many messages in all; with a key that it invalidates.
    fn grant(&self, credits: u32, key: Option<u32>) -> Result {
        self.deliver(&[0, Version::Two.number(), credits, GRANT], key)
    }

    /// A message comes that has these words, and no more.
    fn deliver(&self, words: &[u32], key: Option<u32>) -> Result {
        self.qp.grow_receives(4)?;
        self.qp.post_receives(4)?;
        let mut message = KVec::new();
        for word in words {
            message.extend_from_slice(&word.to_be_bytes(), GFP_KERNEL)?;
        }
        self.device.deliver(&message, key)
    }

    /// Sends a Reply of so many bytes, which may have to wait.
    fn reply_of(&self, len: usize) -> Result {
        let mut buffer = self.qp.send_buffer(Purpose::Message)?;
        let behind = buffer.message(Direction::Reply, XID, len, |_, to| {
            to.fill(0);
            Ok(())
        })?;
        send(buffer, behind)
    }

    fn waits(&self) -> bool {
        self.qp.is_send_queue_full()
    }

    /// Takes what is posted, of which the lengths are returned.
    fn posted(&self) -> Result<KVec<u32>> {
        let mut lengths = KVec::new();
        for i in 0..self.device.sends() {
            lengths.push(self.device.send(i)?.sge.1, GFP_KERNEL)?;
        }
        self.device.complete_sends(lengths.len())?;
        Ok(lengths)
    }
}

#[kunit_tests(rpcrdma_continued)]
mod suite {
    use super::*;

    /// A Reply in four messages waits for its credits, `late` or not, and gets them.
    fn gets_its_credits(late: bool) -> Result {
        let bench = Bench::that_takes_fewer()?;
        bench.reply_of(LONG)?;
        claim(bench.waits(), "it waits")?;
        bench.grant(2, None)?;
        claim(bench.waits(), "for more")?;
        if late {
            fsleep(TOO_LONG);
        }
        bench.grant(4, None)?;
        claim(!bench.waits(), "it is posted")?;
        same("messages", bench.posted()?.len(), 4)?;
        bench.qp.shutdown();
        bench.end()
    }

    #[test]
    fn a_reply_waits_for_all_its_credits() -> Result {
        gets_its_credits(false)
    }

    #[test]
    fn credits_that_come_late_are_taken() -> Result {
        gets_its_credits(true)
    }

    #[test]
    fn a_reply_that_waits_too_long_becomes_an_error() -> Result {
        let bench = Bench::that_takes_fewer()?;
        let free = || bench.qp.lock().free_buffers();
        let before = free();
        bench.reply_of(LONG)?;
        same("buffers", before - free(), 4)?;
        bench.grant(1, None)?;
        claim(bench.waits(), "it waits")?;
        fsleep(TOO_LONG);
        bench.grant(1, None)?;
        claim(!bench.waits(), "it does not wait any more")?;
        same("buffers", before - free(), 1)?;
        same("messages", &bench.posted()?[..], &[ERROR][..])?;
        bench.qp.shutdown();
        bench.end()
    }

    #[test]
    fn who_waits_tells_what_it_has() -> Result {
        let bench = Bench::that_takes_fewer()?;
        bench.deliver(&[XID, Version::Two.number(), 1, CALL], None)?;
        same("messages", bench.posted()?.len(), 0)?;
        bench.reply_of(LONG)?;
        claim(bench.waits(), "it waits")?;
        same("messages", &bench.posted()?[..], &[GRANT_BYTES][..])?;
        bench.qp.shutdown();
        bench.end()
    }

    #[test]
    fn in_version_1_nothing_waits_for_credits() -> Result {
        let bench = Bench::of_any_version()?;
        for _ in 0..2 {
            let mut buffer = bench.qp.send_buffer(Purpose::Message)?;
            let reason = Reason::Chunks;
            buffer.refuse(&Refusal { xid: XID, reason })?;
            send(buffer, 0)?;
        }
        claim(bench.waits(), "for a credit of version 2")?;
        bench.deliver(&[XID, Version::One.number(), 1, 0], None)?;
        claim(!bench.waits(), "both are posted")?;
        same("messages", bench.posted()?.len(), 2)?;
        bench.qp.shutdown();
        bench.end()
    }

    #[test]
    fn buffers_do_not_grow_by_a_refusal() -> Result {
        let bench = Bench::of_any_version()?;
        let longest = bench.qp.plan().send_size;
        bench.deliver(
            &[XID, Version::Two.number(), 1, ERROR_TYPE, BAD_PROPVAL],
            None,
        )?;
        claim(bench.qp.longest_send() <= longest, "sent")?;
        bench.qp.shutdown();
        bench.end()
    }

    #[test]
    fn the_error_says_how_long_the_reply_is() -> Result {
        let bench = Bench::of_any_version()?;
        bench.grant(4, None)?;
        let mut buffer = bench.qp.send_buffer(Purpose::Message)?;
        buffer.plain(Direction::Reply, XID)?;
        buffer.invalidate(Some(9));
        same("XID", buffer.message.refuse_room(5000), XID)?;
        let words = [XID, Version::Two.number(), 0, 4, 10, 5000];
        let (mut expected, len) = ([0; ERROR as usize], buffer.header_len());
        for (to, word) in expected.chunks_exact_mut(4).zip(words) {
            to.copy_from_slice(&word.to_be_bytes());
        }
        same("error", buffer.bytes().get(..len), Some(&expected[..]))?;
        same("invalidates", buffer.message.invalidate, None)?;
        drop(buffer);
        bench.qp.shutdown();
        bench.end()
    }

    #[test]
    fn credits_that_come_back_go_to_who_waits() -> Result {
        let bench = Bench::of_any_version()?;
        bench.grant(1, None)?;
        claim(bench.qp.lock().flow.take_message(), "the last credit")?;
        bench.reply_of(10)?;
        claim(bench.waits(), "it waits")?;
        bench.qp.put_back(|flow| flow.put_messages(1));
        claim(!bench.waits(), "it is posted")?;
        same("messages", bench.posted()?.len(), 1)?;
        bench.qp.shutdown();
        bench.end()
    }

    #[test]
    fn a_grant_that_invalidates_a_key() -> Result {
        let bench = Bench::of_any_version()?;
        bench.grant(4, None)?;
        same("broken", bench.qp.handler().told.lock().broken, 0)?;
        bench.grant(4, Some(9))?;
        same("broken", bench.qp.handler().told.lock().broken, 1)?;
        bench.qp.shutdown();
        bench.end()
    }
}
