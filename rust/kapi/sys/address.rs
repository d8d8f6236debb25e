// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Socket addresses.

#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
mod tests;

use crate::kapi::bindings;
use core::fmt;

/// A copy of a socket address, IPv4 or IPv6.
///
/// # Invariants
///
/// Holds an initialised socket address.
#[derive(Clone, Copy)]
pub(crate) struct SocketAddress(pub(in crate::kapi) bindings::__kernel_sockaddr_storage);

// SAFETY: Plain data: the pointer among its forms is for alignment alone.
unsafe impl Send for SocketAddress {}
// SAFETY: Plain data, which nothing changes through a shared reference.
unsafe impl Sync for SocketAddress {}

impl SocketAddress {
    pub(in crate::kapi) fn new(raw: bindings::__kernel_sockaddr_storage) -> Self {
        // INVARIANT: The caller's is initialised, being a value.
        Self(raw)
    }

    /// Copies an address of `len` bytes. None if that is more than any has.
    ///
    /// # Safety
    ///
    /// `from` must be valid for reads of `len` bytes.
    pub(in crate::kapi) unsafe fn copy(
        from: *const bindings::sockaddr,
        len: usize,
    ) -> Option<Self> {
        let mut raw = bindings::__kernel_sockaddr_storage::default();
        if len > size_of_val(&raw) {
            return None;
        }
        let to = (&raw mut raw).cast::<u8>();
        // SAFETY: The address is `len` bytes long, and there is room for as many.
        unsafe { to.copy_from_nonoverlapping(from.cast(), len) };
        Some(Self::new(raw))
    }

    pub(in crate::kapi) fn as_raw(&self) -> *const bindings::sockaddr {
        (&raw const self.0).cast()
    }

    /// Returns whether it is of IPv4 or IPv6.
    pub(crate) fn is_ip(&self) -> bool {
        // SAFETY: By the type invariant it is a socket address, which begins with the family.
        let family = unsafe { u32::from((*self.as_raw()).sa_family) };
        matches!(family, bindings::AF_INET | bindings::AF_INET6)
    }

    /// Returns whether it is of IPv6.
    pub(in crate::kapi) fn is_ipv6(&self) -> bool {
        // SAFETY: By the type invariant it is a socket address, which begins with the family.
        unsafe { u32::from((*self.as_raw()).sa_family) == bindings::AF_INET6 }
    }

    /// Returns the port in host byte order; 0 where none is known.
    pub(in crate::kapi) fn port(&self) -> u16 {
        // SAFETY: By the type invariant it is a socket address.
        unsafe { bindings::rpc_get_port(self.as_raw()) }
    }

    /// Returns whether it is of the same family and host, whatever the port.
    pub(crate) fn is_same_host(&self, other: &Self) -> bool {
        self.is_ipv6() == other.is_ipv6() && self.host_bytes() == other.host_bytes()
    }

    /// Returns a hash of the host, whatever the port (FNV-1a). Any context.
    pub(crate) fn hash(&self) -> u32 {
        let mix = |hash: u32, byte: &u8| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
        self.host_bytes().iter().fold(0x811c_9dc5, mix)
    }

    /// Returns the bytes of the host in network order.
    fn host_bytes(&self) -> &[u8] {
        // `sin_addr` is 4 bytes after family and port, `sin6_addr` 16 after the flow label too.
        let (offset, len) = if self.is_ipv6() { (8, 16) } else { (4, 4) };
        // SAFETY: By the type invariant it is a socket address, which is longer than that.
        unsafe { core::slice::from_raw_parts(self.as_raw().cast::<u8>().add(offset), len) }
    }

    /// Shows the address in hexadecimal, as the RPC layer does: its bytes in network order.
    pub(in crate::kapi) fn hex(&self) -> Hex<'_> {
        Hex(self.host_bytes())
    }

    /// Writes the address without port as text.
    pub(in crate::kapi) fn host<'b>(&self, buffer: &'b mut [u8; 128]) -> &'b str {
        // SAFETY: By the type invariant it is a socket address; the buffer is of the given length.
        let len =
            unsafe { bindings::rpc_ntop(self.as_raw(), buffer.as_mut_ptr().cast(), buffer.len()) };
        let host = buffer.get(..len).unwrap_or(&[]);
        core::str::from_utf8(host).unwrap_or("")
    }
}

/// Shows bytes in hexadecimal.
pub(in crate::kapi) struct Hex<'a>(&'a [u8]);

impl kernel::fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
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
