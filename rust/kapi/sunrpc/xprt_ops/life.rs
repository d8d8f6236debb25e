// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! How a transport of the RPC layer is made, and destroyed.

use crate::kapi::{
    sunrpc::{
        backchannel::Backchannel,
        display::{
            free_address_strings,
            set_address_strings, //
        },
        xprt_handle::{
            Shared,
            XprtHandle, //
        },
        xprt_ops::*, //
    },
    sys::{
        completion::Completion,
        module::ModuleRef, //
    },
};
use kernel::sync::Arc;

/// A transport with our part of its allocation.
#[repr(C)]
pub(super) struct Private<T> {
    xprt: bindings::rpc_xprt,
    pub(super) timeout: bindings::rpc_timeout,
    pub(super) data: Option<Data<T>>,
}

/// Our part, from when the transport is made until the RPC layer destroys it.
pub(super) struct Data<T> {
    // First, since it has handles.
    pub(super) transport: T,
    pub(super) shared: Pin<KBox<Common>>,
    module: ModuleRef,
}

/// What handles use, and where they are waited for.
#[pin_data]
pub(super) struct Common {
    /// Completed when the last handle is gone.
    #[pin]
    handles: Completion,
    #[pin]
    pub(super) backchannel: Backchannel,
}

const BIND_TIMEOUT: Jiffies = 60 * HZ;
const IDLE_TIMEOUT: Jiffies = 5 * 60 * HZ;

impl<T: Transport> XprtOps<T> {
    /// Makes a transport. Called by a task that mounts; may sleep.
    ///
    /// # Safety
    ///
    /// To be called by the RPC layer alone, as all functions below.
    pub(in super::super) unsafe extern "C" fn setup(
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
            Shared {
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
            (*xprt).ops = Self::TABLE;
            // Side protocols that look at it take the address for one of TCP, which it is.
            (*xprt).prot = bindings::xprt_transports_XPRT_TRANSPORT_TCP;
            (*xprt).xprt_class = T::class().as_raw();
            (*xprt).max_payload = T::MAX_PAYLOAD;
            // Slots that were once needed are kept, so that no RPC allocates one.
            (*xprt).min_reqs = (*xprt).max_reqs;
        }
    }

    /// The last reference is gone. From a workqueue of the kernel; may sleep.
    ///
    /// # Safety
    ///
    /// As for [`Self::setup`].
    pub(super) unsafe extern "C" fn destroy(xprt: *mut bindings::rpc_xprt) {
        // SAFETY: The RPC layer makes no other call any more, so the data is ours alone. Handles
        // have no reference to it, but to what it shares with them.
        let data = unsafe { (*xprt.cast::<Private<T>>()).data.take() };
        let Some(data) = data else { return };
        let Data {
            transport,
            shared,
            module,
        } = data;
        transport.destroy();
        // The transport goes first: it holds handles, and work that uses them.
        drop(transport);
        shared.handles.wait();
        shared.backchannel.destroy();
        drop(shared);
        // SAFETY: The last handle is gone, and with it whoever looks at the strings or the
        // transport.
        unsafe {
            free_address_strings(xprt);
            bindings::xprt_free(xprt);
        }
        // Last of all the reference to this module.
        drop(module);
    }
}
