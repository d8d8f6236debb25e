// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! A workqueue of our own, and work items that can be waited for and cancelled.
//!
//! The work items of the `kernel` crate hand an owned pointer over to C until they have run. A
//! [`DelayedWork`] stays with its owner, and dropping it waits until it runs no more.
//!
//! C header: [`include/linux/workqueue.h`](srctree/include/linux/workqueue.h)

use crate::kapi::bindings;
use core::{
    ops::Deref,
    ptr::NonNull, //
};
use kernel::{
    alloc::Flags,
    container_of,
    ffi::c_int,
    prelude::*,
    sync::{
        Arc,
        LockClassKey, //
    },
    time::Jiffies,
    types::Opaque, //
};

/// Any processor.
const UNBOUND: c_int = bindings::wq_misc_consts_WORK_CPU_UNBOUND as c_int;

/// A workqueue whose work may run on any processor, and is certain to make progress while memory
/// is being reclaimed.
///
/// # Invariants
///
/// `wq` is a workqueue allocated by [`OwnedQueue::new`] and not yet destroyed.
pub(crate) struct OwnedQueue {
    wq: NonNull<bindings::workqueue_struct>,
}

// SAFETY: A workqueue is bound to no thread.
unsafe impl Send for OwnedQueue {}

// SAFETY: A workqueue does its own locking.
unsafe impl Sync for OwnedQueue {}

impl OwnedQueue {
    /// Allocates a queue. May sleep.
    pub(crate) fn new(name: &'static CStr, flags: Flags) -> Result<Arc<Self>> {
        // SAFETY: The format takes one string, and `name` is one.
        let wq = unsafe {
            bindings::alloc_workqueue_noprof(
                c"%s".as_char_ptr(),
                bindings::wq_flags_WQ_UNBOUND | bindings::wq_flags_WQ_MEM_RECLAIM,
                0,
                name.as_char_ptr(),
            )
        };
        // INVARIANT: It was just allocated. It is destroyed by `drop` alone.
        let queue = Self {
            wq: NonNull::new(wq).ok_or(ENOMEM)?,
        };
        Ok(Arc::new(queue, flags)?)
    }

    /// Returns the queue, for work that is done before this is dropped.
    pub(in crate::kapi) fn as_raw(&self) -> *mut bindings::workqueue_struct {
        self.wq.as_ptr()
    }
}

impl Drop for OwnedQueue {
    /// Runs what is queued and destroys the queue. Sleeps; not for work on this queue.
    fn drop(&mut self) {
        // SAFETY: By the type invariant the queue is valid. No one can queue work any more, and no
        // timer is going to: each `DelayedWork` holds a reference until its timer has stopped.
        unsafe { bindings::destroy_workqueue(self.wq.as_ptr()) };
    }
}

/// Names a kind of work to the kernel's lock checker. Made by [`work_class!`].
#[derive(Clone, Copy)]
pub(crate) struct WorkClass {
    /// Name of the kind.
    pub(crate) name: &'static CStr,
    /// Class of the work: who runs it, who waits for it.
    pub(crate) work: Pin<&'static LockClassKey>,
    /// Class of its timer.
    pub(crate) timer: Pin<&'static LockClassKey>,
}

/// Declares a [`WorkClass`] of the given name, once for each place in the source.
macro_rules! work_class {
    ($name:literal) => {
        $crate::kapi::sys::workqueue::WorkClass {
            name: $name,
            work: ::kernel::static_lock_class!(),
            timer: ::kernel::static_lock_class!(),
        }
    };
}
pub(crate) use work_class;

/// What a [`DelayedWork`] does.
pub(crate) trait WorkItem: Send + Sync + Sized + 'static {
    /// Runs on a thread of the queue, never twice at the same time; may sleep.
    ///
    /// Must not drop or wait for its own [`DelayedWork`].
    fn run(&self, timer: Timer<'_>);
}

/// A work item with its timer, and the value that it works on.
///
/// The value is shared between the owner, who gets at it by dereferencing, and the work.
///
/// Dropping it cancels it, and waits for the end if it is running: sleeps.
pub(crate) struct DelayedWork<T: WorkItem>(Pin<KBox<Inner<T>>>);

/// Work that can be wanted at another time, whatever it works on.
pub(crate) trait Hasten: Send + Sync + 'static {
    /// Queues the work to run in `delay` jiffies, whenever it was to. Any context.
    fn hasten(&self, delay: Jiffies);
}

impl<T: WorkItem> Hasten for DelayedWork<T> {
    fn hasten(&self, delay: Jiffies) {
        let (queue, work) = (self.0.queue.wq.as_ptr(), self.0.work.get());
        // SAFETY: By the type invariant of `Inner` the work is initialised, and this is its queue.
        unsafe { bindings::mod_delayed_work_on(UNBOUND, queue, work, delay) };
    }
}

/// What lies behind a [`DelayedWork`].
///
/// # Invariants
///
/// `work` is an initialised `struct delayed_work`, whose function is [`Inner::callback`]. It is
/// only ever queued on `queue`.
#[pin_data]
struct Inner<T> {
    #[pin]
    work: Opaque<bindings::delayed_work>,
    queue: Arc<OwnedQueue>,
    #[pin]
    item: T,
}

// SAFETY: A `struct delayed_work` is bound to no thread; the other fields are `Send`.
unsafe impl<T: Send> Send for Inner<T> {}

// SAFETY: A `struct delayed_work` does its own locking; the other fields are `Sync`.
unsafe impl<T: Sync> Sync for Inner<T> {}

impl<T: WorkItem> DelayedWork<T> {
    /// Creates a work item that is to run on `queue`. May sleep, as `flags` say.
    pub(crate) fn new<E>(
        queue: Arc<OwnedQueue>,
        class: WorkClass,
        item: impl PinInit<T, E>,
        flags: Flags,
    ) -> Result<Self>
    where
        Error: From<E>,
    {
        // INVARIANT: The first closure initialises `work`.
        let inner = KBox::try_pin_init(
            try_pin_init!(Inner {
                work <- Opaque::ffi_init(|slot: *mut bindings::delayed_work| {
                    // SAFETY: `slot` is valid for writes of a `struct delayed_work`, and stays
                    // where it is: in an `Inner<T>`, where the function looks for it.
                    unsafe { init_plain_work(&raw mut (*slot).work, Inner::<T>::callback, class) };
                    // SAFETY: `slot` is valid for writes, and stays where it is. This function of
                    // the workqueue code is made for its timer, with these flags. The keys are
                    // static.
                    unsafe {
                        bindings::timer_init_key(
                            &raw mut (*slot).timer,
                            Some(bindings::delayed_work_timer_fn),
                            bindings::TIMER_IRQSAFE,
                            class.name.as_char_ptr(),
                            class.timer.as_ptr(),
                        );
                    }
                }),
                queue,
                item <- item,
            }? Error),
            flags,
        )?;
        Ok(Self(inner))
    }

    /// Queues the work, to run in `delay` jiffies; false, and nothing changes, if it is queued
    /// already. While it runs, it can be queued again. Any context.
    pub(crate) fn queue(&self, delay: Jiffies) -> bool {
        self.0.timer().queue(delay)
    }

    /// Takes the work from the queue, if it is there, and waits for the end if it is running.
    /// Tells whether it was queued. Sleeps.
    pub(crate) fn cancel_sync(&self) -> bool {
        // SAFETY: By the type invariant of `Inner` the work is initialised.
        unsafe { bindings::cancel_delayed_work_sync(self.0.work.get()) }
    }
}

impl<T: WorkItem> Deref for DelayedWork<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0.item
    }
}

impl<T: WorkItem> Drop for DelayedWork<T> {
    fn drop(&mut self) {
        // SAFETY: By the type invariant of `Inner` the work is initialised. Once disabled it is not
        // queued any more, not even by itself, so nothing uses `Inner` after this.
        unsafe { bindings::disable_delayed_work_sync(self.0.work.get()) };
    }
}

impl<T: WorkItem> Inner<T> {
    /// Runs the work.
    ///
    /// # Safety
    ///
    /// `work` is the one in the field `work` of an [`Inner<T>`], which the caller keeps alive.
    unsafe extern "C" fn callback(work: *mut bindings::work_struct) {
        // SAFETY: By the requirements of this function `work` is in a `struct delayed_work`, and
        // that in an `Inner<T>`; `Opaque` is transparent.
        let inner = unsafe {
            let dwork = container_of!(work, bindings::delayed_work, work);
            container_of!(Opaque::cast_from(dwork).cast_mut(), Self, work)
        };
        // SAFETY: The owner of the work waits for the end of this function before it drops the
        // `Inner`, and only shared references are made before that.
        let inner = unsafe { &*inner };
        inner.item.run(inner.timer());
    }

    fn timer(&self) -> Timer<'_> {
        // INVARIANT: By the type invariant of `Inner` the work is initialised, and this is its
        // queue. Both are borrowed.
        Timer {
            work: &self.work,
            queue: &self.queue,
        }
    }
}

/// Lets a work item queue itself again.
///
/// # Invariants
///
/// `work` is the initialised work of an [`Inner`], and `queue` is that one's.
pub(crate) struct Timer<'a> {
    work: &'a Opaque<bindings::delayed_work>,
    queue: &'a OwnedQueue,
}

impl Timer<'_> {
    /// Queues the work again, as [`DelayedWork::queue`] does.
    pub(crate) fn queue(&self, delay: Jiffies) -> bool {
        // SAFETY: By the type invariant both are valid. The `Inner` holds a reference to the queue,
        // and is not dropped before the work has been cancelled.
        unsafe {
            bindings::queue_delayed_work_on(UNBOUND, self.queue.wq.as_ptr(), self.work.get(), delay)
        }
    }
}

/// Initialises a plain work.
///
/// # Safety
///
/// `work` must be valid for writes, and stay where it is; `run` must be the function for it.
pub(in crate::kapi) unsafe fn init_plain_work(
    work: *mut bindings::work_struct,
    run: unsafe extern "C" fn(*mut bindings::work_struct),
    class: WorkClass,
) {
    // SAFETY: The work is valid for writes, stays where it is and has this function, as the caller
    // promises. The keys are static.
    unsafe {
        bindings::init_work_with_key(
            work,
            Some(run),
            false,
            class.name.as_char_ptr(),
            class.work.as_ptr(),
        )
    };
}

/// Queues a plain work. Any context.
///
/// # Safety
///
/// Both must be valid and initialised, and stay so until the work has begun.
pub(in crate::kapi) unsafe fn queue_plain_work(
    queue: *mut bindings::workqueue_struct,
    work: *mut bindings::work_struct,
) {
    // SAFETY: Both are initialised, and valid until the work has begun, as the caller promises.
    unsafe { bindings::queue_work_on(UNBOUND, queue, work) };
}
