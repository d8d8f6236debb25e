// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Protects: connections are taken in the order in which they came, all that there is room for; one
//! that its peer has given up, or for which nobody has time, goes without a taker.

use super::*;
use crate::{
    kapi::sys::completion::Completion,
    kunit::{
        claim,
        same, //
    },
};

/// More than there ever was room for in a list of fixed length.
const CROWD: usize = 1000;
const LONG: Jiffies = 1000 * HZ;
/// Until something that is to happen has happened, at the latest.
const DEADLINE: Jiffies = 60 * HZ;

/// Tells when it is dropped.
struct Guest(usize, Option<Arc<Gone>>);

#[pin_data]
struct Gone {
    #[pin]
    completion: Completion,
}

impl Drop for Guest {
    fn drop(&mut self) {
        if let Some(gone) = &self.1 {
            gone.completion.complete_all();
        }
    }
}

/// One that is closed at its end.
struct Open(Arc<Backlog<Guest>>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl Open {
    fn new(most: usize, patience: Jiffies) -> Result<Self> {
        let queue = OwnedQueue::new(c"kunit", GFP_KERNEL)?;
        Ok(Self(Backlog::new(most, patience, queue)?))
    }

    fn push(&self, name: usize) -> Result<u64> {
        let ticket = self.0.ticket()?;
        let number = ticket.number();
        self.0.push(ticket, Guest(name, None));
        Ok(number)
    }

    /// One whose end can be waited for.
    fn push_watched(&self, name: usize) -> Result<(u64, Arc<Gone>)> {
        let init = pin_init!(Gone { completion <- Completion::new() });
        let gone = Arc::pin_init(init, GFP_KERNEL)?;
        let ticket = self.0.ticket()?;
        let number = ticket.number();
        self.0.push(ticket, Guest(name, Some(gone.clone())));
        Ok((number, gone))
    }

    fn take(&self) -> Option<usize> {
        self.0.take().map(|guest| guest.0)
    }
}

#[kunit_tests(rpcrdma_backlog)]
mod suite {
    use super::*;

    #[test]
    fn a_thousand_are_taken_in_their_order() -> Result {
        let backlog = Open::new(CROWD, LONG)?;
        for name in 0..CROWD {
            backlog.push(name)?;
        }
        for name in 0..CROWD {
            same("taken", backlog.take(), Some(name))?;
        }
        claim(backlog.0.is_empty(), "all are taken")
    }

    #[test]
    fn no_more_than_there_is_room_for() -> Result {
        let backlog = Open::new(2, LONG)?;
        for name in 0..2 {
            backlog.push(name)?;
        }
        same("the third", backlog.push(2), Err(EBUSY))?;
        same("taken", backlog.take(), Some(0))?;
        same("once there is room", backlog.push(3).map(|_| ()), Ok(()))
    }

    #[test]
    fn what_is_given_up_goes_without_a_taker() -> Result {
        let backlog = Open::new(3, LONG)?;
        backlog.push(0)?;
        let (lost, gone) = backlog.push_watched(1)?;
        backlog.push(2)?;
        backlog.0.give_up(lost);
        claim(gone.completion.wait_timeout(DEADLINE), "it is dropped")?;
        same("taken", backlog.take(), Some(0))?;
        same("taken", backlog.take(), Some(2))?;
        same("taken", backlog.take(), None)
    }

    #[test]
    fn what_was_taken_cannot_be_given_up() -> Result {
        let backlog = Open::new(2, LONG)?;
        let (lost, gone) = backlog.push_watched(0)?;
        let (other, after) = backlog.push_watched(1)?;
        let taken = backlog.0.take();
        backlog.0.give_up(lost);
        backlog.0.give_up(other);
        // They go in their order, so the first would be gone by now.
        claim(after.completion.wait_timeout(DEADLINE), "the other goes")?;
        claim(!gone.completion.wait_timeout(1), "it is its taker's")?;
        drop(taken);
        Ok(())
    }

    #[test]
    fn nobody_waits_for_ever() -> Result {
        let backlog = Open::new(2, HZ / 10)?;
        let (_, first) = backlog.push_watched(0)?;
        let (_, second) = backlog.push_watched(1)?;
        for gone in [first, second] {
            claim(gone.completion.wait_timeout(DEADLINE), "it has waited")?;
        }
        same("taken", backlog.take(), None)
    }

    #[test]
    fn who_sees_others_taken_waits_on() -> Result {
        let mut queue = Queue {
            waiting: RBTree::new(),
            given_up: RBTree::new(),
            len: 0,
            next: 1,
            taken: jiffies(),
        };
        let since = jiffies().wrapping_sub(LONG);
        let entry = Entry { value: (), since };
        queue.waiting.try_create_and_insert(0, entry, GFP_KERNEL)?;
        claim(queue.outcast(LONG).is_none(), "one was taken just now")?;
        queue.taken = since;
        claim(queue.outcast(LONG).is_some(), "none was taken for as long")
    }

    #[test]
    fn what_is_closed_keeps_none() -> Result {
        let backlog = Open::new(2, LONG)?;
        let (lost, first) = backlog.push_watched(0)?;
        let (_, second) = backlog.push_watched(1)?;
        backlog.0.give_up(lost);
        drop(backlog);
        for gone in [first, second] {
            claim(gone.completion.wait_timeout(1), "it is dropped")?;
        }
        Ok(())
    }
}
