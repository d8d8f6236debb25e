// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Locks, and values that several change at once.

use std::sync::{
    MutexGuard,
    PoisonError, //
};

pub use std::sync::Arc;

#[derive(Default)]
pub struct Mutex<T>(std::sync::Mutex<T>);

pub type SpinLock<T> = Mutex<T>;

impl<T> Mutex<T> {
    pub const fn new(value: T) -> Self {
        Self(std::sync::Mutex::new(value))
    }

    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[macro_export]
macro_rules! new_mutex {
    ($value:expr, $name:literal) => {
        $crate::sync::Mutex::new($value)
    };
}

/// Atomics, with the strongest order whatever is asked for.
pub mod atomic {
    use super::Mutex;

    pub struct Ordering;

    #[allow(non_upper_case_globals)]
    pub const Relaxed: Ordering = Ordering;
    #[allow(non_upper_case_globals)]
    pub const Full: Ordering = Ordering;

    pub struct Atomic<T>(Mutex<T>);

    impl<T: Copy> Atomic<T> {
        pub const fn new(value: T) -> Self {
            Self(Mutex::new(value))
        }

        pub fn load(&self, _: Ordering) -> T {
            *self.0.lock()
        }

        pub fn store(&self, value: T, _: Ordering) {
            *self.0.lock() = value;
        }

        pub fn xchg(&self, value: T, _: Ordering) -> T {
            core::mem::replace(&mut *self.0.lock(), value)
        }
    }

    impl Atomic<u32> {
        pub fn fetch_add(&self, more: u32, _: Ordering) -> u32 {
            let mut value = self.0.lock();
            *value += more;
            *value - more
        }
    }
}
