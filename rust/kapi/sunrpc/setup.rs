// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! How a transport of the RPC layer is made.

#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
mod unmounted;

#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
pub(crate) use self::unmounted::Unmounted;

use crate::kapi::{
    bindings,
    sunrpc::{
        backchannel::Backchannel,
        display::{
            free_address_strings,
            set_address_strings, //
        },
        private::{
            Common,
            Data,
            Private, //
        },
        transport::Transport,
        xprt::DEFAULT_TIMEOUT,
        xprt_handle::{
            HandleInner,
            XprtHandle, //
        },
        xprt_ops::XprtOps, //
    },
    sys::{
        address::SocketAddress,
        completion::Completion,
        module::ModuleRef,
        time::HZ, //
    },
};
use core::{
    marker::PhantomData,
    ptr::NonNull, //
};
use kernel::{
    prelude::*,
    sync::Arc,
    time::Jiffies, //
};

const BIND_TIMEOUT: Jiffies = 60 * HZ;
const IDLE_TIMEOUT: Jiffies = 5 * 60 * HZ;

/// Makes transports of type `T`.
pub(super) struct Setup<T: Transport>(PhantomData<T>);

impl<T: Transport> Setup<T> {
    /// Makes a transport. Called by a task that mounts; may sleep.
    ///
    /// # Safety
    ///
    /// To be called by the RPC layer alone.
    pub(super) unsafe extern "C" fn setup(
        args: *mut bindings::xprt_create,
    ) -> *mut bindings::rpc_xprt {
        // SAFETY: The arguments are valid for the time of the call.
        match unsafe { Self::new_xprt(args) } {
            Ok(xprt) => xprt,
            Err(e) => e.to_ptr(),
        }
    }

    /// # Safety
    ///
    /// The arguments must be those of the RPC layer.
    unsafe fn new_xprt(args: *const bindings::xprt_create) -> Result<*mut bindings::rpc_xprt> {
        // SAFETY: The arguments are valid by the contract of this function.
        let (net, dstaddr, addrlen) = unsafe { ((*args).net, (*args).dstaddr, (*args).addrlen) };
        let mut storage = bindings::__kernel_sockaddr_storage::default();
        if addrlen > core::mem::size_of_val(&storage) {
            return Err(EBADF);
        }
        // SAFETY: The address is `addrlen` bytes long, and there is room for as many.
        unsafe {
            let to = (&raw mut storage).cast::<u8>();
            core::ptr::copy_nonoverlapping(dstaddr.cast::<u8>(), to, addrlen);
        }
        let module = ModuleRef::try_get().ok_or(EIO)?;
        let size = core::mem::size_of::<Private<T>>();
        // SAFETY: The namespace is valid for the call.
        let xprt = unsafe { bindings::xprt_alloc(net, size, 0, T::slots()) };
        if xprt.is_null() {
            return Err(ENOMEM);
        }
        // SAFETY: Fresh, and known to nobody else, with room for our part.
        let made = unsafe { Self::fill(xprt, SocketAddress::new(storage), addrlen, module) };
        if let Err(e) = made {
            // SAFETY: Still known to nobody else: what was made of it has let its handle go. The
            // strings are null or were made by `fill`.
            unsafe {
                free_address_strings(xprt);
                bindings::xprt_free(xprt);
            }
            return Err(e);
        }
        Ok(xprt)
    }

    /// # Safety
    ///
    /// `xprt` must be fresh, with room for a `Private<T>`.
    unsafe fn fill(
        xprt: *mut bindings::rpc_xprt,
        address: SocketAddress,
        addrlen: usize,
        module: ModuleRef,
    ) -> Result {
        let private = xprt.cast::<Private<T>>();
        // SAFETY: There is room for it, and nobody else knows of it. Without a value of before.
        unsafe { (&raw mut (*private).data).write(None) };
        // SAFETY: Nobody else knows of the transport.
        unsafe {
            Self::describe(xprt);
            address.write_to(&raw mut (*xprt).addr);
            (*xprt).addrlen = addrlen;
            if address.port() != 0 {
                bindings::xprt_set_bound(xprt);
            }
            set_address_strings(xprt, &address)?;
        }

        let shared = KBox::pin_init(
            pin_init!(Common {
                handles <- Completion::new(),
                backchannel <- Backchannel::new(),
            }),
            GFP_KERNEL,
        )?;
        let handle = Arc::new(
            HandleInner {
                xprt: NonNull::new(xprt).ok_or(ENOMEM)?,
                handles: NonNull::from(&shared.handles),
                backchannel: NonNull::from(&shared.backchannel),
            },
            GFP_KERNEL,
        )?;
        // SAFETY: The RPC layer calls a class that is registered, until this returns.
        let queue = unsafe { T::class().queue() }?;
        // On an error the transport has dropped its handle, and with it the last.
        // SAFETY: The transport is being made here, with `T`.
        let transport = T::new(unsafe { XprtHandle::new(handle) }, queue)?;
        let data = Data {
            transport,
            shared,
            module,
        };
        // SAFETY: Nobody else knows of it yet, and there is nothing to drop.
        unsafe { (&raw mut (*private).data).write(Some(data)) };
        Ok(())
    }

    /// Sets what is the same for all transports of `T`.
    ///
    /// # Safety
    ///
    /// `xprt` must be valid, and known to nobody else.
    unsafe fn describe(xprt: *mut bindings::rpc_xprt) {
        // SAFETY: By the contract of this function these are ours to set.
        unsafe {
            (*xprt).timeout = &raw const DEFAULT_TIMEOUT.0;
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
            (*xprt).xprt_class = T::class().as_raw();
            (*xprt).max_payload = T::MAX_PAYLOAD;
            // Slots that were once needed are kept, so that no RPC allocates one.
            (*xprt).min_reqs = (*xprt).max_reqs;
        }
    }
}
