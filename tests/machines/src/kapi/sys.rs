// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Of `rust/kapi/sys`, and what plays the rest of it.

#[path = "../../../../rust/kapi/sys/fifo.rs"]
pub(crate) mod fifo;
#[path = "../../../../rust/kapi/sys/time.rs"]
pub(crate) mod time;
pub(crate) mod workqueue;

pub(crate) mod address {
    use core::fmt;

    /// A host, by its number.
    #[derive(Clone, Copy)]
    pub(crate) struct SocketAddress(u8);

    impl SocketAddress {
        pub(crate) fn for_test(last: u8) -> Self {
            Self(last)
        }

        pub(crate) fn is_same_host(&self, other: &Self) -> bool {
            self.0 == other.0
        }
    }

    impl fmt::Display for SocketAddress {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "192.0.2.{}", self.0)
        }
    }
}

/// Signals, which nothing but queued work could give while they are waited for.
pub(crate) mod completion {
    use crate::kapi::sys::workqueue::work_until;
    use kernel::{
        sync::atomic::*,
        time::Jiffies, //
    };

    pub(crate) struct Completion(Atomic<bool>);

    impl Completion {
        pub(crate) fn new() -> Self {
            Self(Atomic::new(false))
        }

        pub(crate) fn reinit(&self) {
            self.0.store(false, Full);
        }

        pub(crate) fn complete_all(&self) {
            self.0.store(true, Full);
        }

        pub(crate) fn wait_timeout(&self, timeout: Jiffies) -> bool {
            work_until(timeout, || self.0.load(Full))
        }
    }
}

pub(crate) mod log {
    use crate::kapi::sys::address::SocketAddress;
    use core::fmt::Arguments;

    pub(crate) fn warn(line: Arguments<'_>) {
        println!("{line}");
    }

    pub(crate) fn inform_about(_: &SocketAddress, line: Arguments<'_>) {
        println!("{line}");
    }
}

pub(crate) mod memalloc {
    pub(crate) fn total_pages() -> usize {
        1 << 20
    }
}
