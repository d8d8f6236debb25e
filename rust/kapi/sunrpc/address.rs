// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Network namespaces and socket addresses.

use super::super::bindings;
use core::fmt;
use kernel::types::Opaque;

/// A network namespace.
#[repr(transparent)]
pub(crate) struct Net(Opaque<bindings::net>);

impl Net {
    /// # Safety
    ///
    /// `net` must be valid for `'a`.
    pub(super) unsafe fn from_raw<'a>(net: *mut bindings::net) -> &'a Self {
        // SAFETY: Valid by contract; the type is transparent.
        unsafe { &*net.cast::<Self>() }
    }

    pub(in crate::kapi) fn as_raw(&self) -> *mut bindings::net {
        self.0.get()
    }
}

/// A copy of a socket address, IPv4 or IPv6.
///
/// # Invariants
///
/// Holds an initialised socket address.
#[derive(Clone, Copy)]
pub(crate) struct SocketAddress(bindings::__kernel_sockaddr_storage);

impl SocketAddress {
    pub(super) fn new(raw: bindings::__kernel_sockaddr_storage) -> Self {
        // INVARIANT: The caller's is initialised, being a value.
        Self(raw)
    }

    pub(in crate::kapi) fn as_raw(&self) -> *const bindings::sockaddr {
        (&raw const self.0).cast()
    }

    /// Whether it is of IPv6.
    pub(super) fn is_ipv6(&self) -> bool {
        // SAFETY: By the type invariant it is a socket address, which begins with the family.
        unsafe { u32::from((*self.as_raw()).sa_family) == bindings::AF_INET6 }
    }

    /// The port in host byte order; 0 where none is known.
    pub(super) fn port(&self) -> u16 {
        // SAFETY: By the type invariant it is a socket address.
        unsafe { bindings::rpc_get_port(self.as_raw()) }
    }

    /// The address in hexadecimal, as the RPC layer shows it: its bytes in network order.
    pub(super) fn hex<'a>(&self, buffer: &'a mut [u8; 32]) -> &'a str {
        // `sin_addr` is 4 bytes after family and port, `sin6_addr` 16 after the flow label too.
        let (offset, len) = if self.is_ipv6() { (8, 16) } else { (4, 4) };
        // SAFETY: By the type invariant it is a socket address, which is longer than that.
        let bytes =
            unsafe { core::slice::from_raw_parts(self.as_raw().cast::<u8>().add(offset), len) };
        for (pair, byte) in buffer.chunks_exact_mut(2).zip(bytes) {
            for (digit, value) in pair.iter_mut().zip([byte >> 4, byte & 15]) {
                *digit = if value < 10 {
                    b'0' + value
                } else {
                    b'a' - 10 + value
                };
            }
        }
        core::str::from_utf8(&buffer[..2 * len]).unwrap_or("")
    }

    /// The address without port, as text.
    pub(super) fn host(&self, buffer: &mut [u8; 128]) -> usize {
        // SAFETY: By the type invariant it is a socket address; the buffer is of the given length.
        unsafe { bindings::rpc_ntop(self.as_raw(), buffer.as_mut_ptr().cast(), buffer.len()) }
    }
}

impl fmt::Display for SocketAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = [0u8; 64];
        // SAFETY: By the type invariant it is a socket address; the buffer is of the given
        // length, and what is written stays below it.
        let len =
            unsafe { bindings::format_addr(text.as_mut_ptr().cast(), text.len(), self.as_raw()) };
        let len = usize::try_from(len).unwrap_or(0).min(text.len());
        f.write_str(core::str::from_utf8(&text[..len]).unwrap_or("?"))
    }
}
