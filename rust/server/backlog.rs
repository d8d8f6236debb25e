// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! What waits to be accepted, in the order in which it came.

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
        Hasten,
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

/// One that waits.
struct Entry<T> {
    value: T,
    since: Jiffies,
}

/// Those that wait, each under the number of its ticket.
struct Queue<T> {
    waiting: RBTree<u64, Entry<T>>,
    /// Nobody waits for these any more: they are to be dropped.
    given_up: RBTree<u64, Entry<T>>,
    /// How many are in both.
    len: usize,
    /// The number of the next ticket.
    next: u64,
    /// When one was taken last.
    taken: Jiffies,
}

impl<T> Queue<T> {
    fn first(&mut self) -> Option<RBTreeNode<u64, Entry<T>>> {
        Some(self.waiting.cursor_front_mut()?.remove_current().1)
    }

    /// How long the first of those that wait has done so since one was taken.
    fn idle(&self) -> Option<Jiffies> {
        let front = self.waiting.cursor_front()?;
        Some(since(front.current().1.since).min(since(self.taken)))
    }

    /// One to be dropped, and whether that is because it has waited for longer than `patience`.
    fn outcast(&mut self, patience: Jiffies) -> Option<(RBTreeNode<u64, Entry<T>>, bool)> {
        if let Some(cursor) = self.given_up.cursor_front_mut() {
            return Some((cursor.remove_current().1, false));
        }
        if self.idle()? < patience {
            return None;
        }
        Some((self.first()?, true))
    }
}

/// What waits to be accepted.
///
/// Dropping what waits may sleep, and may wait for who gives it up: so a work item does it.
#[pin_data]
pub(super) struct Backlog<T: Send + Unpin + 'static> {
    /// How many may wait.
    most: usize,
    /// For how long one may wait while none is taken.
    patience: Jiffies,
    #[pin]
    queue: SpinLock<Queue<T>>,
    /// None before it is made, and after the end.
    #[pin]
    reaper: SpinLock<Option<DelayedWork<Reaper<T>>>>,
}

/// A place in the backlog, before it is taken.
pub(super) struct Ticket<T> {
    number: u64,
    place: RBTreeNodeReservation<u64, Entry<T>>,
}

impl<T> Ticket<T> {
    /// What [`Backlog::give_up`] wants to be told.
    pub(super) fn number(&self) -> u64 {
        self.number
    }
}

impl<T: Send + Unpin + 'static> Backlog<T> {
    /// An empty one, whose work is done on `queue`. It is to be closed at its end. May sleep.
    pub(super) fn new(most: usize, patience: Jiffies, queue: Arc<OwnedQueue>) -> Result<Arc<Self>> {
        let waiting = Queue {
            waiting: RBTree::new(),
            given_up: RBTree::new(),
            len: 0,
            next: 0,
            taken: jiffies(),
        };
        let backlog = Arc::pin_init(
            pin_init!(Self {
                most,
                patience,
                queue <- new_spinlock!(waiting, "svcrdma_backlog"),
                reaper <- new_spinlock!(None, "svcrdma_reaper"),
            }),
            GFP_KERNEL,
        )?;
        let theirs = backlog.clone();
        let reaper = DelayedWork::new(
            queue,
            work_class!(c"svcrdma_reaper"),
            init!(Reaper { backlog: theirs }),
            GFP_KERNEL,
        )?;
        *backlog.reaper.lock() = Some(reaper);
        Ok(backlog)
    }

    /// A place at the end. `EBUSY` if as many wait as may, `ENOMEM` without memory. May sleep.
    pub(super) fn ticket(&self) -> Result<Ticket<T>> {
        let place = RBTreeNodeReservation::new(GFP_KERNEL)?;
        let mut queue = self.queue.lock();
        // Those who hold a ticket are not counted: they are no more than there are devices.
        if queue.len >= self.most {
            return Err(EBUSY);
        }
        let number = queue.next;
        queue.next += 1;
        Ok(Ticket { number, place })
    }

    /// Has something wait. Does not sleep.
    pub(super) fn push(&self, ticket: Ticket<T>, value: T) {
        let entry = Entry {
            value,
            since: jiffies(),
        };
        let node = ticket.place.into_node(ticket.number, entry);
        let mut queue = self.queue.lock();
        queue.len += 1;
        // No two tickets have one number.
        let _ = queue.waiting.insert(node);
        drop(queue);
        if let Some(reaper) = &*self.reaper.lock() {
            reaper.queue(self.patience);
        }
    }

    /// Nobody waits any more for what waits with this ticket: it is dropped soon, by somebody else.
    /// Nothing if it was taken. Does not sleep.
    pub(super) fn give_up(&self, ticket: u64) {
        let mut queue = self.queue.lock();
        let Some(node) = queue.waiting.remove_node(&ticket) else {
            return;
        };
        let _ = queue.given_up.insert(node);
        drop(queue);
        if let Some(reaper) = &*self.reaper.lock() {
            reaper.hasten(0);
        }
    }

    /// What has waited longest.
    pub(super) fn take(&self) -> Option<T> {
        let mut queue = self.queue.lock();
        let node = queue.first()?;
        queue.len -= 1;
        queue.taken = jiffies();
        drop(queue);
        Some(node.to_key_value().1.value)
    }

    /// Whether nothing waits.
    pub(super) fn is_empty(&self) -> bool {
        self.queue.lock().waiting.is_empty()
    }

    /// How many may wait.
    pub(super) fn most(&self) -> usize {
        self.most
    }

    /// Drops all that waits. Nothing must be pushed any more. May sleep.
    pub(super) fn close(&self) {
        let reaper = self.reaper.lock().take();
        // It waits for what runs, outside of the lock.
        drop(reaper);
        while self.drop_one(0).is_some() {}
    }

    /// Drops one that is given up or has waited for longer than `patience`, and says whether it was
    /// the latter; none if there is none.
    fn drop_one(&self, patience: Jiffies) -> Option<bool> {
        let mut queue = self.queue.lock();
        let (node, waited) = queue.outcast(patience)?;
        drop(queue);
        drop(node);
        // It takes memory until now.
        self.queue.lock().len -= 1;
        Some(waited)
    }
}

/// Drops what is given up, or has waited for too long.
struct Reaper<T: Send + Unpin + 'static> {
    backlog: Arc<Backlog<T>>,
}

impl<T: Send + Unpin + 'static> WorkItem for Reaper<T> {
    fn run(&self, timer: Timer<'_>) {
        let backlog = &self.backlog;
        let mut late = 0u32;
        while let Some(waited) = backlog.drop_one(backlog.patience) {
            late += u32::from(waited);
        }
        if late != 0 {
            let seconds = backlog.patience / HZ;
            warn(format_args!(
                "{late} connections given up: no nfsd thread took one for {seconds} seconds"
            ));
        }
        let idle = backlog.queue.lock().idle();
        if let Some(idle) = idle {
            timer.queue(backlog.patience.saturating_sub(idle));
        }
    }
}
