// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! What the module's state machines use of the kernel's crate of this name, over the standard
//! library. Names and meanings are the kernel's.

pub mod alloc;
pub mod rbtree;
pub mod sync;

pub use new_mutex as new_spinlock;

/// What each file has without asking for it by name.
pub mod prelude {
    pub use crate::{
        alloc::{
            flags::{
                GFP_ATOMIC,
                GFP_KERNEL,
                GFP_NOWAIT, //
            },
            InPlaceInit,
            KBox,
            KVVec,
            KVec, //
        },
        error::*,
        pr_err,
    };
    pub use core::pin::Pin;
    pub use macros::{
        kunit_tests,
        pin_data,
        pin_init, //
    };
}

pub mod page {
    pub const PAGE_SIZE: usize = 4096;
}

pub mod time {
    pub type Jiffies = usize;
}

pub mod error {
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct Error(i32);

    pub type Result<T = (), E = Error> = core::result::Result<T, E>;

    impl Error {
        pub fn to_errno(self) -> i32 {
            self.0
        }
    }

    macro_rules! codes {
        ($($name:ident $number:literal),*) => {
            $(pub const $name: Error = Error(-$number);)*
        };
    }

    codes!(
        ENOENT 2, EIO 5, ENOMEM 12, EBUSY 16, ENODEV 19, EINVAL 22, EPROTO 71, EOVERFLOW 75,
        EMSGSIZE 90, EOPNOTSUPP 95, ENETDOWN 100, ENETUNREACH 101, ECONNABORTED 103, ENOTCONN 107,
        ETIMEDOUT 110, ECONNREFUSED 111, EHOSTUNREACH 113
    );
}

#[macro_export]
macro_rules! pr_err {
    ($($argument:tt)*) => { eprint!($($argument)*) };
}
