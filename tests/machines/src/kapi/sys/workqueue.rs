// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Work that is done while the test waits, on the only thread there is: each when its time has
//! come, to which the clock is set then.

use crate::kapi::clock;
use core::{
    cell::RefCell,
    ffi::CStr,
    ops::Deref, //
};
use kernel::{
    alloc::Flags,
    prelude::*,
    sync::{
        Arc,
        Mutex, //
    },
    time::Jiffies, //
};
use std::sync::Weak;

pub(crate) struct OwnedQueue;

impl OwnedQueue {
    pub(crate) fn new(_: &CStr, _: Flags) -> Result<Arc<Self>> {
        Ok(Arc::new(Self))
    }
}

pub(crate) struct WorkClass;

macro_rules! work_class {
    ($name:literal) => {
        $crate::kapi::sys::workqueue::WorkClass
    };
}
pub(crate) use work_class;

/// When work is to be done, if it is.
type Due = Mutex<Option<Jiffies>>;

pub(crate) struct Timer<'a>(&'a Due);

impl Timer<'_> {
    pub(crate) fn queue(&self, delay: Jiffies) -> bool {
        let mut due = self.0.lock();
        let queued = due.is_none();
        due.get_or_insert(clock::jiffies().wrapping_add(delay));
        queued
    }
}

pub(crate) trait WorkItem: 'static {
    fn run(&self, timer: Timer<'_>);
}

struct Inner<T> {
    due: Due,
    item: T,
}

/// Work, whatever it works on.
trait Work {
    fn due(&self) -> &Due;
    fn run(&self);
}

impl<T: WorkItem> Work for Inner<T> {
    fn due(&self) -> &Due {
        &self.due
    }

    fn run(&self) {
        *self.due.lock() = None;
        self.item.run(Timer(&self.due));
    }
}

thread_local! {
    /// The work of a test, which has its thread for itself.
    static WORKS: RefCell<Vec<Weak<dyn Work>>> = const { RefCell::new(Vec::new()) };
}

pub(crate) struct DelayedWork<T>(Arc<Inner<T>>);

impl<T: WorkItem> DelayedWork<T> {
    pub(crate) fn new(_: Arc<OwnedQueue>, _: WorkClass, item: T, _: Flags) -> Result<Self> {
        let due = Due::default();
        let inner = Arc::new(Inner { due, item });
        let work: Arc<dyn Work> = inner.clone();
        WORKS.with_borrow_mut(|works| works.push(Arc::downgrade(&work)));
        Ok(Self(inner))
    }

    pub(crate) fn queue(&self, delay: Jiffies) -> bool {
        Timer(&self.0.due).queue(delay)
    }

    pub(crate) fn cancel_sync(&self) {
        *self.0.due.lock() = None;
    }
}

impl<T> Deref for DelayedWork<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0.item
    }
}

/// Returns the work that is to be done next, with the time until then.
fn next_work(now: Jiffies) -> Option<(Jiffies, Arc<dyn Work>)> {
    WORKS.with_borrow(|works| {
        let works = works.iter().filter_map(Weak::upgrade);
        let queued = works.filter_map(|work| {
            let due = *work.due().lock();
            Some((due?.wrapping_sub(now), work))
        });
        queued.min_by_key(|(left, _)| *left)
    })
}

/// Does what is to be done in the next `timeout` jiffies, until something is so.
pub(crate) fn work_until(timeout: Jiffies, is_so: impl Fn() -> bool) -> bool {
    let now = clock::jiffies();
    while !is_so() {
        let next = next_work(now).filter(|(left, _)| *left <= timeout);
        clock::set(now.wrapping_add(next.as_ref().map_or(timeout, |(left, _)| *left)));
        let Some((_, work)) = next else { return false };
        work.run();
    }
    true
}
