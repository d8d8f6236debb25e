// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Connections that wait to be accepted, in the order in which they came.

#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
#[path = "../../kunit/backlog.rs"]
mod tests;

use crate::kapi::sys::{
    log::warn,
    time::{
        jiffies,
        since,
        HZ, //
    },
    workqueue::{
        work_class,
        DelayedWork,
        OwnedQueue,
        Timer,
        WorkItem, //
    },
};
use kernel::{
    new_spinlock,
    prelude::*,
    rbtree::{
        RBTree,
        RBTreeNode,
        RBTreeNodeReservation, //
    },
    sync::{
        Arc,
        SpinLock, //
    },
    time::Jiffies, //
};

/// Jiffies between two looks of the reaper at the connections that wait.
const INTERVAL: Jiffies = HZ;

/// A connection that can be accepted.
pub(super) trait Acceptable: Send + Unpin + 'static {
    /// Returns whether the connection is lost. Called with a spin lock held.
    fn is_lost(&self) -> bool;
}

/// Holds a connection that waits.
pub(super) struct Entry<T> {
    connection: T,
    /// When it came.
    since: Jiffies,
}

/// Holds the connections that wait, each under its number.
struct Queue<T> {
    waiting: RBTree<u64, Entry<T>>,
    /// Their number, with those that are being dropped.
    len: usize,
    /// The number of the next.
    next: u64,
    /// When one was taken last.
    taken: Jiffies,
}

/// Owns memory for one connection more.
pub(super) type Reservation<T> = RBTreeNodeReservation<u64, Entry<T>>;

/// Holds connections until they are accepted, are lost, or have waited for too long.
///
/// Dropping a connection waits for its event handler, so that this cannot do it: the reaper does.
/// Dropping the backlog drops all that wait, and sleeps.
pub(super) struct Backlog<T: Acceptable>(DelayedWork<Reaper<T>>);

impl<T: Acceptable> Backlog<T> {
    /// Creates an empty backlog for up to `limit` connections, each of which may wait for `timeout`
    /// while none is taken. Its work is done on `works`. May sleep.
    pub(super) fn new(limit: usize, timeout: Jiffies, works: Arc<OwnedQueue>) -> Result<Self> {
        let queue = Queue {
            waiting: RBTree::new(),
            len: 0,
            next: 0,
            taken: jiffies(),
        };
        let reaper = pin_init!(Reaper {
            limit,
            timeout,
            queue <- new_spinlock!(queue, "svcrdma_backlog"),
        });
        let class = work_class!(c"svcrdma_reaper");
        Ok(Self(DelayedWork::new(works, class, reaper, GFP_KERNEL)?))
    }

    /// Allocates what [`Self::push`] needs. `EBUSY` if the backlog is full. May sleep.
    pub(super) fn reserve(&self) -> Result<Reservation<T>> {
        let reservation = RBTreeNodeReservation::new(GFP_KERNEL)?;
        // Reservations are not counted: there is one at a time for each device.
        if self.0.queue.lock().len >= self.0.limit {
            return Err(EBUSY);
        }
        Ok(reservation)
    }

    /// Adds a connection at the end. Does not sleep.
    pub(super) fn push(&self, reservation: Reservation<T>, connection: T) {
        let since = jiffies();
        let mut queue = self.0.queue.lock();
        let node = reservation.into_node(queue.next, Entry { connection, since });
        queue.len += 1;
        queue.next += 1;
        // No other has this number.
        let _ = queue.waiting.insert(node);
        drop(queue);
        self.0.queue(INTERVAL);
    }

    /// Takes the connection that has waited longest.
    pub(super) fn take(&self) -> Option<T> {
        let mut queue = self.0.queue.lock();
        let node = queue.waiting.cursor_front_mut()?.remove_current().1;
        queue.len -= 1;
        queue.taken = jiffies();
        drop(queue);
        Some(node.to_key_value().1.connection)
    }

    /// Returns whether no connection waits.
    pub(super) fn is_empty(&self) -> bool {
        self.0.queue.lock().waiting.is_empty()
    }

    /// Returns the number of connections that may wait.
    pub(super) fn limit(&self) -> usize {
        self.0.limit
    }
}

/// Holds a connection that is not to be accepted any more.
struct Removed<T> {
    node: RBTreeNode<u64, Entry<T>>,
    /// It is not lost, but has waited for too long.
    late: bool,
}

/// Drops connections that are lost, or have waited for too long, as a work item.
#[pin_data]
struct Reaper<T> {
    limit: usize,
    timeout: Jiffies,
    #[pin]
    queue: SpinLock<Queue<T>>,
}

impl<T: Acceptable> Reaper<T> {
    /// Removes the next connection to be dropped, beginning with `number`, which it counts up: the
    /// lock is let go in between, however many wait.
    fn remove(&self, number: &mut u64) -> Option<Removed<T>> {
        loop {
            let mut queue = self.queue.lock();
            let taken = queue.taken;
            let cursor = queue.waiting.cursor_lower_bound_mut(number)?;
            let (&current, entry) = cursor.current();
            *number = current + 1;
            let late = since(entry.since).min(since(taken)) >= self.timeout;
            let lost = entry.connection.is_lost();
            if lost || late {
                let (_, node) = cursor.remove_current();
                return Some(Removed { node, late: !lost });
            }
        }
    }
}

impl<T: Acceptable> WorkItem for Reaper<T> {
    fn run(&self, timer: Timer<'_>) {
        let (mut number, mut late) = (0, 0u32);
        while let Some(removed) = self.remove(&mut number) {
            late += u32::from(removed.late);
            drop(removed.node);
            // It takes memory until now.
            self.queue.lock().len -= 1;
        }
        if late != 0 {
            let seconds = self.timeout / HZ;
            warn(format_args!(
                "{late} connections given up: no nfsd thread took one for {seconds} seconds"
            ));
        }
        if !self.queue.lock().waiting.is_empty() {
            timer.queue(INTERVAL);
        }
    }
}
