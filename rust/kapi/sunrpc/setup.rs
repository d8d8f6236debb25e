// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! How a transport of the RPC layer is made.

#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
mod tests;

#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
pub(crate) use self::tests::Unmounted;

use crate::kapi::{
    bindings,
    sunrpc::{
        class::{
            CLIENT,
            CLIENT_QUEUE, //
        },
        handle::{
            Common,
            HandleInner, //
        },
        private::Fresh,
        transport::Transport,
        xprt::DEFAULT_TIMEOUT,
        xprt_handle::{
            Beside,
            XprtHandle, //
        },
        xprt_ops::{
            Data,
            XprtOps, //
        },
    },
    sys::{
        module::ModuleRef,
        time::HZ, //
    },
};
use kernel::{
    prelude::*,
    time::Jiffies,
    types::Opaque, //
};

const BIND_TIMEOUT: Jiffies = 60 * HZ;
const IDLE_TIMEOUT: Jiffies = 5 * 60 * HZ;

/// Makes a transport. Called by a task that mounts; may sleep.
///
/// # Safety
///
/// To be called by the RPC layer alone.
pub(super) unsafe extern "C" fn setup<T: Transport>(
    args: *mut bindings::xprt_create,
) -> *mut bindings::rpc_xprt {
    // SAFETY: The arguments are valid for the time of the call.
    unsafe { new_xprt::<T>(args) }.unwrap_or_else(|e| e.to_ptr())
}

/// Makes a transport for the RPC layer's arguments.
///
/// # Safety
///
/// The arguments must be those of the RPC layer.
unsafe fn new_xprt<T: Transport>(
    args: *const bindings::xprt_create,
) -> Result<*mut bindings::rpc_xprt> {
    let module = ModuleRef::try_get().ok_or(EIO)?;
    // SAFETY: The arguments are those of the RPC layer by the contract of this function.
    let fresh = unsafe { Fresh::new(args, 0, T::slots()) }?;
    let xprt = fresh.xprt();
    let raw = xprt.as_ptr();
    // SAFETY: Nobody else knows of it.
    unsafe {
        (*raw).connect_timeout = DEFAULT_TIMEOUT.0.to_initval;
        (*raw).max_reconnect_timeout = DEFAULT_TIMEOUT.0.to_maxval;
        (*raw).bind_timeout = BIND_TIMEOUT;
        (*raw).idle_timeout = IDLE_TIMEOUT;
    }
    // SAFETY: Nobody else knows of it.
    unsafe {
        (*raw).ops = XprtOps::<T>::TABLE;
        // Side protocols that look at it take the address for one of TCP, which it is.
        (*raw).prot = bindings::xprt_transports_XPRT_TRANSPORT_TCP;
        (*raw).xprt_class = CLIENT.as_raw().cast();
        (*raw).max_payload = T::MAX_PAYLOAD;
        // Slots that were once needed are kept, so that no RPC allocates one.
        (*raw).min_reqs = (*raw).max_reqs;
    }
    let shared = Common::new(Beside::new())?;
    // SAFETY: `XprtOps::destroy` waits before it frees them, and so does this function.
    let handle = unsafe { HandleInner::new(xprt, &shared) }?;
    // SAFETY: The RPC layer has looked the class up, and has a reference to the module until
    // this returns, for which the end of the registration waits.
    let queue = unsafe { &*CLIENT_QUEUE.as_raw() }.clone();
    // SAFETY: The transport is being made here, with `T`.
    let transport = T::new(unsafe { XprtHandle::new(handle) }, queue);
    // Whoever could not be made may have handed a handle on.
    let transport = transport.inspect_err(|_| shared.wait())?;
    Ok(fresh.finish(Data {
        transport,
        shared,
        timeout: Opaque::zeroed(),
        module,
    }))
}
