// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The `kernel` crate of an older kernel, with what later ones have in theirs and this module uses.
//!
//! It is a crate of its own. Where the kernel lacks something, which Kbuild finds out, the module
//! is built with it in the place of the kernel's, so that nobody else needs to know; where nothing
//! is lacking, it is not built.

#[doc(no_inline)]
pub use kernel::*;

/// The prelude, and what 7.3 has in its.
pub mod prelude {
    #[cfg(lacks_errors)]
    pub use super::code::{
        EADDRNOTAVAIL,
        EAFNOSUPPORT,
        EBADSLT,
        ECONNABORTED,
        ECONNREFUSED,
        ECONNRESET,
        EHOSTUNREACH,
        ENETDOWN,
        ENETUNREACH,
        ENOBUFS,
        ENOTCONN,
        EOPNOTSUPP,
        EPROTO, //
    };
    #[cfg(lacks_zeroed_vectors)]
    pub use super::ZeroedVec as _;
    #[doc(no_inline)]
    pub use kernel::prelude::*;
}

/// Errors that are declared in Rust since 7.3.
#[cfg(lacks_errors)]
mod code {
    use core::{
        mem::transmute,
        num::NonZero, //
    };
    use kernel::{
        bindings,
        error::Error, //
    };

    macro_rules! errors {
        ($($name:ident)+) => {
            $(
                #[doc = concat!("`", stringify!($name), "` of C.")]
                pub const $name: Error = match NonZero::new(-(bindings::$name as i32)) {
                    // SAFETY: An `Error` has one field, such a number, and is as large, which is
                    // checked here; so it begins with it. The number is that of an error.
                    Some(number) => unsafe { transmute::<NonZero<i32>, Error>(number) },
                    None => panic!("no error has the number 0"),
                };
            )+
        };
    }

    errors! {
        EADDRNOTAVAIL EAFNOSUPPORT EBADSLT ECONNABORTED ECONNREFUSED ECONNRESET EHOSTUNREACH
        ENETDOWN ENETUNREACH ENOBUFS ENOTCONN EOPNOTSUPP EPROTO
    }
}

/// `Vec::zeroed`, which is of 7.3.
#[cfg(lacks_zeroed_vectors)]
pub trait ZeroedVec: Sized {
    /// Allocates a vector of `count` zeroed elements.
    fn zeroed(count: usize, flags: alloc::Flags) -> Result<Self, alloc::AllocError>;
}

#[cfg(lacks_zeroed_vectors)]
impl<T: pin_init::Zeroable + Clone, A: alloc::Allocator> ZeroedVec for alloc::Vec<T, A> {
    fn zeroed(count: usize, flags: alloc::Flags) -> Result<Self, alloc::AllocError> {
        Self::from_elem(pin_init::zeroed(), count, flags)
    }
}

/// The kernel's bindings.
#[doc(hidden)]
pub mod bindings {
    pub use kernel::bindings::*;

    /// The direction of a DMA mapping, which was a plain number up to 7.3-rc7.
    #[cfg(lacks_dma_direction)]
    #[repr(transparent)]
    #[derive(Clone, Copy, PartialEq, Eq)]
    #[allow(non_camel_case_types)]
    pub struct dma_data_direction(pub kernel::bindings::dma_data_direction);

    #[cfg(lacks_dma_direction)]
    impl dma_data_direction {
        /// The device reads.
        pub const DMA_TO_DEVICE: Self = Self(dma_data_direction_DMA_TO_DEVICE);
        /// The device writes.
        pub const DMA_FROM_DEVICE: Self = Self(dma_data_direction_DMA_FROM_DEVICE);
    }
}
