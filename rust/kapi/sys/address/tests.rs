// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Addresses for tests.

use crate::kapi::{
    bindings,
    sys::address::SocketAddress, //
};

impl SocketAddress {
    /// Makes an IPv4 address that ends with `last`.
    pub(crate) fn for_test(last: u8) -> Self {
        let mut raw = bindings::__kernel_sockaddr_storage::default();
        let bytes = (&raw mut raw).cast::<u8>();
        // SAFETY: The family comes first, then port and address, in a storage that is longer.
        unsafe {
            bytes.cast::<u16>().write(bindings::AF_INET as u16);
            bytes.add(7).write(last);
        }
        Self::new(raw)
    }
}
