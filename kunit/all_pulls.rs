// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Protects: however many clients there are that have Replies provided, they hold no more memory
//! than a part of the machine's; the oldest Reply is taken back for a new one.

use super::*;
use crate::kunit::{
    claim,
    same, //
};
use kernel::{
    new_spinlock,
    sync::SpinLock, //
};

const MOST: usize = 800;
/// Half of a quarter of that.
const BYTES: usize = 100;

/// One whose Replies all have as many bytes.
#[pin_data]
struct Fake {
    #[pin]
    replies: SpinLock<KVec<(Jiffies, Option<ProvidedShare>)>>,
    /// Those that were taken back.
    #[pin]
    ended: SpinLock<KVec<Jiffies>>,
}

impl Provider for Fake {
    fn first_end(&self) -> Option<Jiffies> {
        let replies = self.replies.lock();
        let ends = replies
            .iter()
            .filter(|one| one.1.is_some())
            .map(|one| one.0);
        ends.reduce(|a, b| if is_before(b, a) { b } else { a })
    }

    fn withdraw(&self, end: Jiffies) -> usize {
        let mut replies = self.replies.lock();
        let mut replies = replies.iter_mut();
        let found = replies.find(|one| one.1.is_some() && !is_before(end, one.0));
        let share = found.and_then(|one| one.1.take());
        let _ = self.ended.lock().push(end, GFP_ATOMIC);
        share.map_or(0, |_| BYTES)
    }
}

impl Fake {
    fn new(all: &AllPulls, number: u64) -> Result<Arc<Self>> {
        let fake = Arc::pin_init(
            pin_init!(Self {
                replies <- new_spinlock!(KVec::new(), "kunit_replies"),
                ended <- new_spinlock!(KVec::new(), "kunit_ended"),
            }),
            GFP_KERNEL,
        )?;
        all.add(number, fake.clone())?;
        Ok(fake)
    }

    fn provide(&self, all: &AllPulls, end: Jiffies) -> Result {
        let share = all.share(BYTES)?;
        self.replies.lock().push((end, Some(share)), GFP_ATOMIC)?;
        Ok(())
    }

    fn expect_ended(&self, ends: &[Jiffies]) -> Result {
        same("taken back", &self.ended.lock()[..], ends)
    }
}

#[kunit_tests(rpcrdma_all_pulls)]
mod suite {
    use super::*;

    #[test]
    fn the_oldest_goes_whoever_has_it() -> Result {
        let all = AllPulls::of_bytes(MOST)?;
        let (first, second) = (Fake::new(&all, 1)?, Fake::new(&all, 2)?);
        // The counter wraps meanwhile.
        let end = |n: Jiffies| n.wrapping_sub(3);
        for n in 0..6 {
            let one = if n % 2 == 0 { &first } else { &second };
            one.provide(&all, end(n))?;
        }
        first.expect_ended(&[])?;
        for n in 6..9 {
            second.provide(&all, end(n))?;
        }
        first.expect_ended(&[end(0), end(2)])?;
        second.expect_ended(&[end(1)])
    }

    #[test]
    fn no_more_than_there_is() -> Result {
        let all = AllPulls::of_bytes(MOST)?;
        let mut shares = KVec::new();
        for _ in 0..MOST / BYTES {
            shares.push(all.share(BYTES)?, GFP_KERNEL)?;
        }
        same("one more", all.share(1).err(), Some(EMSGSIZE))?;
        same("far more", all.share(usize::MAX).err(), Some(EMSGSIZE))?;
        drop(shares.pop());
        claim(all.share(BYTES).is_ok(), "as many as went")
    }

    #[test]
    fn receives_are_a_part_of_it_and_take_nothing_back() -> Result {
        let all = AllPulls::of_bytes(MOST)?;
        let one = Fake::new(&all, 1)?;
        one.provide(&all, 1)?;
        let mut receives = all.share_of_receives();
        receives.grow(MOST - BYTES)?;
        receives.grow(BYTES)?;
        same(
            "more",
            receives.grow(MOST - BYTES + 1).err(),
            Some(EMSGSIZE),
        )?;
        one.expect_ended(&[])?;
        let share = || all.share(BYTES).err();
        // Which takes the one back.
        same("a place", share(), None)?;
        one.expect_ended(&[1])?;
        drop(receives);
        same("all of it", all.share(MOST).err(), None)
    }

    #[test]
    fn who_has_gone_is_not_asked() -> Result {
        let all = AllPulls::of_bytes(MOST)?;
        let (gone, here) = (Fake::new(&all, 1)?, Fake::new(&all, 2)?);
        gone.provide(&all, 1)?;
        all.remove(1);
        for n in 2..9 {
            here.provide(&all, n)?;
        }
        gone.expect_ended(&[])?;
        here.expect_ended(&[2, 3])
    }
}
