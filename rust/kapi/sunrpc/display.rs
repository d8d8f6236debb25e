// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The strings by which the RPC layer shows the address of a transport.

use crate::kapi::{
    bindings::{
        self,
        rpc_display_format_t as Format,
        rpc_display_format_t_RPC_DISPLAY_ADDR as ADDR,
        rpc_display_format_t_RPC_DISPLAY_HEX_ADDR as HEX_ADDR,
        rpc_display_format_t_RPC_DISPLAY_HEX_PORT as HEX_PORT,
        rpc_display_format_t_RPC_DISPLAY_NETID as NETID,
        rpc_display_format_t_RPC_DISPLAY_PORT as PORT,
        rpc_display_format_t_RPC_DISPLAY_PROTO as PROTO, //
    },
    sys::address::SocketAddress, //
};
use core::ffi::c_void;
use kernel::{
    ffi::c_char,
    fmt::Arguments,
    prelude::*,
    str::CString,
    sync::atomic::{
        Atomic,
        Release, //
    },
};

/// Sets one of the strings that describe the address, and frees the old one when nobody reads it
/// any more. May sleep.
///
/// # Safety
///
/// `xprt` must be a transport of ours, and `which` a string that is allocated.
unsafe fn set_string(xprt: *mut bindings::rpc_xprt, which: Format, text: Arguments<'_>) -> Result {
    let text = CString::try_from_fmt(text)?;
    // SAFETY: A terminated string.
    let copy = unsafe { bindings::kstrdup(text.as_char_ptr(), bindings::GFP_KERNEL) };
    if copy.is_null() {
        return Err(ENOMEM);
    }
    // SAFETY: A transport of ours is valid; nobody else writes its strings.
    let old = unsafe {
        let slot = &raw mut (*xprt).address_strings[which as usize];
        let old = slot.read();
        // Who finds the new one finds what is in it.
        Atomic::from_ptr(slot.cast::<*mut c_char>()).store(copy, Release);
        old
    };
    if !old.is_null() {
        // SAFETY: What is allocated is of `kstrdup`, and can be found no more.
        unsafe { bindings::kfree_after_readers(old.cast::<c_void>()) };
    }
    Ok(())
}

/// Sets the strings of the port. May sleep.
///
/// # Safety
///
/// `xprt` must be a transport of ours.
pub(super) unsafe fn set_port_strings(xprt: *mut bindings::rpc_xprt, port: u16) -> Result {
    // SAFETY: A transport of ours, by the contract of this function; both are allocated strings.
    unsafe {
        set_string(xprt, PORT, fmt!("{port}"))?;
        set_string(xprt, HEX_PORT, fmt!("{port:4x}"))
    }
}

/// Sets the strings of an address, and of what transport it is. May sleep.
///
/// # Safety
///
/// `xprt` must be a fresh transport of ours.
pub(super) unsafe fn set_address_strings(
    xprt: *mut bindings::rpc_xprt,
    address: &SocketAddress,
) -> Result {
    let netid = if address.is_ipv6() { c"rdma6" } else { c"rdma" };
    // SAFETY: A transport of ours that is fresh, by the contract of this function: nobody reads the
    // strings. These two are static, and are not freed.
    unsafe {
        let strings = &raw mut (*xprt).address_strings;
        (*strings)[NETID as usize] = netid.as_char_ptr();
        (*strings)[PROTO as usize] = c"rdma".as_char_ptr();
    }
    let mut host = [0; 128];
    let host = address.host(&mut host);
    // SAFETY: A transport of ours, by the contract of this function; these strings are allocated.
    unsafe {
        set_string(xprt, ADDR, fmt!("{host}"))?;
        set_string(xprt, HEX_ADDR, fmt!("{}", address.hex()))?;
        set_port_strings(xprt, address.port())
    }
}

/// Frees the strings of a transport.
///
/// # Safety
///
/// `xprt` must be a transport of ours whose strings are not used any more.
pub(super) unsafe fn free_address_strings(xprt: *mut bindings::rpc_xprt) {
    for which in [ADDR, PORT, HEX_ADDR, HEX_PORT] {
        // SAFETY: A transport of ours whose strings nobody uses any more, by the contract of this
        // function; each of these is null or of `kstrdup`.
        unsafe { bindings::kfree((*xprt).address_strings[which as usize].cast::<c_void>()) };
    }
}
