// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! How a transport of the RPC layer is made.

#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
mod unmounted;

#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
pub(crate) use self::unmounted::Unmounted;

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
    time::Jiffies, //
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
    // SAFETY: Nobody else knows of it.
    unsafe {
        describe::<T>(xprt.as_ptr());
        if fresh.address().port() != 0 {
            bindings::xprt_set_bound(xprt.as_ptr());
        }
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
    Ok(fresh.finish(Data::new(transport, shared, module)))
}

/// Sets what is the same for all transports of `T`.
///
/// # Safety
///
/// `xprt` must be valid, and known to nobody else.
unsafe fn describe<T: Transport>(xprt: *mut bindings::rpc_xprt) {
    // SAFETY: By the contract of this function these are ours to set.
    unsafe {
        (*xprt).connect_timeout = DEFAULT_TIMEOUT.0.to_initval;
        (*xprt).max_reconnect_timeout = DEFAULT_TIMEOUT.0.to_maxval;
        (*xprt).bind_timeout = BIND_TIMEOUT;
        (*xprt).idle_timeout = IDLE_TIMEOUT;
    }
    // SAFETY: By the contract of this function these are ours to set.
    unsafe {
        (*xprt).ops = XprtOps::<T>::TABLE;
        // Side protocols that look at it take the address for one of TCP, which it is.
        (*xprt).prot = bindings::xprt_transports_XPRT_TRANSPORT_TCP;
        (*xprt).xprt_class = CLIENT.as_raw().cast();
        (*xprt).max_payload = T::MAX_PAYLOAD;
        // Slots that were once needed are kept, so that no RPC allocates one.
        (*xprt).min_reqs = (*xprt).max_reqs;
    }
}
