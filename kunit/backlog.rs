// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Protects: connections are taken in the order in which they came, all that there is room for; one
//! that is lost, or that nobody takes for too long, is dropped.

use super::*;
use crate::{
    kapi::sys::completion::Completion,
    kunit::{
        claim,
        same, //
    },
};
use kernel::sync::atomic::{
    Atomic,
    Relaxed, //
};

/// More than there ever was room for in a list of fixed length.
const CROWD: usize = 1000;
const LONG: Jiffies = 1000 * HZ;
/// Until something that is to happen has happened, at the latest.
const DEADLINE: Jiffies = 60 * HZ;

/// What is known of a connection from outside.
#[pin_data]
struct Watched {
    lost: Atomic<bool>,
    #[pin]
    dropped: Completion,
}

/// A connection that tells when it is dropped.
struct Connection(usize, Option<Arc<Watched>>);

impl Acceptable for Connection {
    fn is_lost(&self) -> bool {
        matches!(&self.1, Some(watched) if watched.lost.load(Relaxed))
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if let Some(watched) = &self.1 {
            watched.dropped.complete_all();
        }
    }
}

impl Watched {
    fn lose(&self) {
        self.lost.store(true, Relaxed);
    }
}

impl Backlog<Connection> {
    fn empty(limit: usize, timeout: Jiffies) -> Result<Self> {
        Self::new(limit, timeout, OwnedQueue::new(c"kunit", GFP_KERNEL)?)
    }

    fn add(&self, name: usize) -> Result {
        self.push(self.reserve()?, Connection(name, None));
        Ok(())
    }

    /// Adds one that can be lost, and whose end can be waited for.
    fn add_watched(&self, name: usize) -> Result<Arc<Watched>> {
        let init = pin_init!(Watched { lost: Atomic::new(false), dropped <- Completion::new() });
        let watched = Arc::pin_init(init, GFP_KERNEL)?;
        self.push(self.reserve()?, Connection(name, Some(watched.clone())));
        Ok(watched)
    }

    fn take_name(&self) -> Option<usize> {
        self.take().map(|connection| connection.0)
    }
}

#[kunit_tests(rpcrdma_backlog)]
mod suite {
    use super::*;

    #[test]
    fn a_thousand_are_taken_in_their_order() -> Result {
        let backlog = Backlog::empty(CROWD, LONG)?;
        for name in 0..CROWD {
            backlog.add(name)?;
        }
        claim(!backlog.is_empty(), "they wait")?;
        for name in 0..CROWD {
            same("taken", backlog.take_name(), Some(name))?;
        }
        claim(backlog.is_empty(), "all are taken")
    }

    #[test]
    fn no_more_than_there_is_room_for() -> Result {
        let backlog = Backlog::empty(2, LONG)?;
        for name in 0..2 {
            backlog.add(name)?;
        }
        same("limit", backlog.limit(), 2)?;
        same("the third", backlog.add(2), Err(EBUSY))?;
        same("taken", backlog.take_name(), Some(0))?;
        same("once there is room", backlog.add(3), Ok(()))
    }

    #[test]
    fn what_is_lost_makes_room() -> Result {
        let backlog = Backlog::empty(1, LONG)?;
        let watched = backlog.add_watched(0)?;
        same("the second", backlog.add(1), Err(EBUSY))?;
        watched.lose();
        claim(watched.dropped.wait_timeout(DEADLINE), "it is dropped")?;
        // The reaper counts it as gone after that.
        backlog.0.cancel_sync();
        same("once there is room", backlog.add(1), Ok(()))
    }

    #[test]
    fn what_is_given_up_goes_without_a_taker() -> Result {
        let backlog = Backlog::empty(3, LONG)?;
        backlog.add(0)?;
        let watched = backlog.add_watched(1)?;
        backlog.add(2)?;
        watched.lose();
        claim(watched.dropped.wait_timeout(DEADLINE), "it is dropped")?;
        same("taken", backlog.take_name(), Some(0))?;
        same("taken", backlog.take_name(), Some(2))?;
        same("taken", backlog.take_name(), None)
    }

    #[test]
    fn what_was_taken_cannot_be_given_up() -> Result {
        let backlog = Backlog::empty(2, LONG)?;
        let (first, other) = (backlog.add_watched(0)?, backlog.add_watched(1)?);
        let taken = backlog.take();
        first.lose();
        other.lose();
        // They go in their order, so the first would be gone by now.
        claim(other.dropped.wait_timeout(DEADLINE), "the other goes")?;
        claim(!first.dropped.wait_timeout(1), "it is its taker's")?;
        drop(taken);
        Ok(())
    }

    #[test]
    fn nobody_waits_for_ever() -> Result {
        let backlog = Backlog::empty(2, HZ / 10)?;
        for watched in [backlog.add_watched(0)?, backlog.add_watched(1)?] {
            claim(watched.dropped.wait_timeout(DEADLINE), "it has waited")?;
        }
        same("taken", backlog.take_name(), None)
    }

    #[test]
    fn who_sees_others_taken_waits_on() -> Result {
        let backlog = Backlog::empty(2, LONG)?;
        backlog.add(0)?;
        // This is the reaper.
        backlog.0.cancel_sync();
        let long_ago = jiffies().wrapping_sub(LONG);
        let mut queue = backlog.0.queue.lock();
        queue.waiting.get_mut(&0).ok_or(ENOENT)?.since = long_ago;
        drop(queue);
        claim(backlog.0.remove(&mut 0).is_none(), "one was taken just now")?;
        backlog.0.queue.lock().taken = long_ago;
        let removed = backlog.0.remove(&mut 0);
        claim(
            removed.is_some_and(|one| one.late),
            "none was taken for as long",
        )?;
        backlog.add(1)?;
        same("taken", backlog.take_name(), Some(1))?;
        let taken = backlog.0.queue.lock().taken;
        claim(since(taken) < LONG, "that was now")
    }

    #[test]
    fn who_waits_is_looked_at_again() -> Result {
        let backlog = Backlog::empty(1, LONG)?;
        let watched = backlog.add_watched(0)?;
        let looked = INTERVAL + INTERVAL / 2;
        claim(!watched.dropped.wait_timeout(looked), "it is not lost")?;
        watched.lose();
        claim(watched.dropped.wait_timeout(DEADLINE), "it is dropped")
    }

    #[test]
    fn what_is_closed_keeps_none() -> Result {
        let backlog = Backlog::empty(2, LONG)?;
        let (lost, other) = (backlog.add_watched(0)?, backlog.add_watched(1)?);
        lost.lose();
        drop(backlog);
        for watched in [lost, other] {
            claim(watched.dropped.wait_timeout(1), "it is dropped")?;
        }
        Ok(())
    }
}
