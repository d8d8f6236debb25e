// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The strings by which the RPC layer shows the address of a transport.

use crate::kapi::{
    bindings,
    sys::address::SocketAddress, //
};
use core::ffi::{
    c_void,
    CStr, //
};
use kernel::{
    ffi::c_char,
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
unsafe fn set_string(
    xprt: *mut bindings::rpc_xprt,
    which: bindings::rpc_display_format_t,
    text: kernel::fmt::Arguments<'_>,
) -> Result {
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

/// # Safety
///
/// `xprt` must be a transport of ours.
pub(super) unsafe fn set_port_strings(xprt: *mut bindings::rpc_xprt, port: u16) -> Result {
    // SAFETY: A transport of ours, by the contract of this function; both are allocated strings.
    unsafe {
        set_string(
            xprt,
            bindings::rpc_display_format_t_RPC_DISPLAY_PORT,
            fmt!("{port}"),
        )?;
        set_string(
            xprt,
            bindings::rpc_display_format_t_RPC_DISPLAY_HEX_PORT,
            fmt!("{port:4x}"),
        )
    }
}

/// # Safety
///
/// `xprt` must be a fresh transport of ours.
pub(super) unsafe fn set_address_strings(
    xprt: *mut bindings::rpc_xprt,
    address: &SocketAddress,
) -> Result {
    let mut host = [0u8; 128];
    let len = address.host(&mut host).min(host.len());
    let host = core::str::from_utf8(&host[..len]).unwrap_or("");
    let netid: &CStr = if address.is_ipv6() { c"rdma6" } else { c"rdma" };
    let protocol = c"rdma";
    let mut hex = [0u8; 32];
    let hex = address.hex(&mut hex);
    // SAFETY: A transport of ours that is fresh, by the contract of this function: nobody reads the
    // strings. The two that are not allocated are static, and are not freed.
    unsafe {
        let strings = &raw mut (*xprt).address_strings;
        (*strings)[bindings::rpc_display_format_t_RPC_DISPLAY_NETID as usize] = netid.as_char_ptr();
        (*strings)[bindings::rpc_display_format_t_RPC_DISPLAY_PROTO as usize] =
            protocol.as_char_ptr();
    }
    let (addr, hex_addr) = (
        bindings::rpc_display_format_t_RPC_DISPLAY_ADDR,
        bindings::rpc_display_format_t_RPC_DISPLAY_HEX_ADDR,
    );
    // SAFETY: A transport of ours, by the contract of this function; these strings are allocated.
    unsafe {
        set_string(xprt, addr, fmt!("{host}"))?;
        set_string(xprt, hex_addr, fmt!("{hex}"))?;
        set_port_strings(xprt, address.port())
    }
}

/// # Safety
///
/// `xprt` must be a transport of ours whose strings are not used any more.
pub(super) unsafe fn free_address_strings(xprt: *mut bindings::rpc_xprt) {
    for which in [
        bindings::rpc_display_format_t_RPC_DISPLAY_ADDR,
        bindings::rpc_display_format_t_RPC_DISPLAY_PORT,
        bindings::rpc_display_format_t_RPC_DISPLAY_HEX_ADDR,
        bindings::rpc_display_format_t_RPC_DISPLAY_HEX_PORT,
    ] {
        // SAFETY: A transport of ours whose strings nobody uses any more, by the contract of this
        // function; each of these is null or of `kstrdup`.
        unsafe { bindings::kfree((*xprt).address_strings[which as usize].cast::<c_void>()) };
    }
}
