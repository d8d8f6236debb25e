// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The calls of the RPC layer into a transport.

#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
mod tests;
#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
mod unmounted;

#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
pub(crate) use self::unmounted::Unmounted;

use super::super::{
    bindings,
    ib::Fenced,
    sys::{
        bit::test_bit,
        completion::Completion,
        module::ModuleRef,
        time::HZ,
        trace, //
    },
};
use super::{
    address::SocketAddress,
    backchannel::Backchannel,
    buffer::RpcBuffer,
    display::{
        free_address_strings,
        set_address_strings,
        set_port_strings, //
    },
    rqst::{
        ReverseRqst,
        Rqst, //
    },
    task::Task,
    transport::Transport,
    xprt::Xprt,
    xprt_handle::{
        Shared,
        XprtHandle, //
    },
};
use core::{
    ffi::{
        c_int,
        c_void, //
    },
    marker::PhantomData,
    ptr::NonNull, //
};
use kernel::{
    ffi::{
        c_uint,
        c_ulong,
        c_ushort, //
    },
    prelude::*,
    seq_file::SeqFile,
    sync::Arc,
    time::Jiffies, //
};

/// What our part of a transport's allocation holds.
#[repr(C)]
struct Private<T> {
    xprt: bindings::rpc_xprt,
    timeout: bindings::rpc_timeout,
    data: Option<Pin<KBox<Data<T>>>>,
}

#[pin_data]
struct Data<T> {
    /// Completed when the last handle is gone.
    #[pin]
    handles: Completion,
    #[pin]
    backchannel: Backchannel,
    /// None once the RPC layer has destroyed the transport, and until it is made.
    transport: Option<T>,
    module: Option<ModuleRef>,
}

/// The least delay before a connection that follows a useless one, and its growth.
pub(super) const INITIAL_BACKOFF: Jiffies = 5 * HZ;
const BIND_TIMEOUT: Jiffies = 60 * HZ;
const IDLE_TIMEOUT: Jiffies = 5 * 60 * HZ;

/// 60 seconds, no retries: a lost connection is noticed otherwise, and resent over at once.
pub(super) struct Timeout(pub(super) bindings::rpc_timeout);
// SAFETY: Never changed.
unsafe impl Sync for Timeout {}
pub(super) static DEFAULT_TIMEOUT: Timeout = Timeout(bindings::rpc_timeout {
    to_initval: 60 * HZ,
    to_maxval: 60 * HZ,
    to_increment: 0,
    to_retries: 0,
    to_exponential: 0,
});

/// Whether the request of a task was last sent on the connection of this cookie.
///
/// # Safety
///
/// The task must have a request, and both must be valid.
unsafe fn was_sent_on(task: *const bindings::rpc_task, cookie: u32) -> bool {
    // SAFETY: Valid by contract.
    unsafe { (*(*task).tk_rqstp).rq_connect_cookie == cookie }
}

/// The table of calls of the RPC layer into a transport `T`.
pub(super) struct XprtOps<T: Transport>(PhantomData<T>);

impl<T: Transport> XprtOps<T> {
    const TABLE: &'static bindings::rpc_xprt_ops = &bindings::rpc_xprt_ops {
        set_buffer_size: None,
        reserve_xprt: Some(bindings::xprt_reserve_xprt_cong),
        release_xprt: Some(bindings::xprt_release_xprt_cong),
        alloc_slot: Some(bindings::xprt_alloc_slot),
        free_slot: Some(bindings::xprt_free_slot),
        rpcbind: Some(bindings::rpcb_getport_async),
        set_port: Some(Self::set_port),
        connect: Some(Self::connect),
        get_srcaddr: None,
        get_srcport: None,
        buf_alloc: Some(Self::buf_alloc),
        buf_free: Some(Self::buf_free),
        prepare_request: None,
        send_request: Some(Self::send_request),
        abort_send_request: None,
        wait_for_reply_request: Some(bindings::xprt_wait_for_reply_request_def),
        timer: Some(Self::timer),
        release_request: Some(bindings::xprt_release_rqst_cong),
        close: Some(Self::close),
        destroy: Some(Self::destroy),
        set_connect_timeout: Some(Self::set_connect_timeout),
        print_stats: Some(Self::print_stats),
        enable_swap: Some(Self::enable_swap),
        disable_swap: Some(Self::disable_swap),
        inject_disconnect: Some(Self::inject_disconnect),
        bc_setup: Some(Self::bc_setup),
        bc_maxpayload: Some(Self::bc_maxpayload),
        bc_num_slots: Some(Self::bc_num_slots),
        bc_free_rqst: Some(Self::bc_free_rqst),
        bc_destroy: Some(Self::bc_destroy),
    };

    /// # Safety
    ///
    /// `xprt` must be a transport that [`Self::setup`] made, and not destroyed for `'a`.
    unsafe fn data<'a>(xprt: *mut bindings::rpc_xprt) -> Option<&'a Data<T>> {
        // SAFETY: Such a transport is the first part of a `Private<T>`.
        unsafe { (*xprt.cast::<Private<T>>()).data.as_deref() }
    }

    /// # Safety
    ///
    /// As for [`Self::data`].
    unsafe fn transport<'a>(xprt: *mut bindings::rpc_xprt) -> Option<&'a T> {
        // SAFETY: By contract.
        unsafe { Self::data(xprt) }?.transport.as_ref()
    }

    /// Makes a transport. Called by a task that mounts; may sleep.
    ///
    /// # Safety
    ///
    /// To be called by the RPC layer alone, as all functions below.
    pub(super) unsafe extern "C" fn setup(
        args: *mut bindings::xprt_create,
    ) -> *mut bindings::rpc_xprt {
        // SAFETY: The arguments are valid for the time of the call.
        match unsafe { Self::new_xprt(&*args) } {
            Ok(xprt) => xprt,
            Err(e) => e.to_ptr(),
        }
    }

    /// # Safety
    ///
    /// The arguments must be those of the RPC layer.
    unsafe fn new_xprt(args: &bindings::xprt_create) -> Result<*mut bindings::rpc_xprt> {
        if args.addrlen > core::mem::size_of::<bindings::__kernel_sockaddr_storage>() {
            return Err(EBADF);
        }
        let module = ModuleRef::try_get().ok_or(EIO)?;
        // SAFETY: The namespace is valid for the call. The size has room for our part, which
        // zeroed memory initialises: no data, no timeout.
        let xprt = unsafe {
            bindings::xprt_alloc(args.net, core::mem::size_of::<Private<T>>(), 0, T::slots())
        };
        if xprt.is_null() {
            return Err(ENOMEM);
        }
        // SAFETY: Fresh, and known to nobody else.
        let made = unsafe { Self::fill(xprt, args, module) };
        if let Err(e) = made {
            // SAFETY: As above; what was made of it is undone.
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
        args: &bindings::xprt_create,
        module: ModuleRef,
    ) -> Result {
        let private = xprt.cast::<Private<T>>();
        // SAFETY: Fresh memory of the RPC layer; only fields that are ours to set are set.
        unsafe {
            (&raw mut (*private).data).write(None);
            (*xprt).timeout = &raw const DEFAULT_TIMEOUT.0;
            (*xprt).connect_timeout = DEFAULT_TIMEOUT.0.to_initval;
            (*xprt).max_reconnect_timeout = DEFAULT_TIMEOUT.0.to_maxval;
            (*xprt).bind_timeout = BIND_TIMEOUT;
            (*xprt).idle_timeout = IDLE_TIMEOUT;
            (*xprt).ops = Self::TABLE;
            // Side protocols that look at it take the address for one of TCP, which it is.
            (*xprt).prot = bindings::xprt_transports_XPRT_TRANSPORT_TCP;
            (*xprt).xprt_class = T::class().as_raw();
            (*xprt).max_payload = T::MAX_PAYLOAD;
            // Slots that were once needed are kept, so that no RPC allocates one.
            (*xprt).min_reqs = (*xprt).max_reqs;
            (*xprt).addrlen = args.addrlen;
            core::ptr::copy_nonoverlapping(
                args.dstaddr.cast::<u8>(),
                (&raw mut (*xprt).addr).cast::<u8>(),
                args.addrlen,
            );
            let address = SocketAddress::new((*xprt).addr);
            if address.port() != 0 {
                bindings::xprt_set_bound(xprt);
            }
            set_address_strings(xprt, &address)?;
        }

        let data = KBox::pin_init(
            pin_init!(Data::<T> {
                handles <- Completion::new(),
                backchannel <- Backchannel::new(),
                transport: None,
                module: Some(module),
            }),
            GFP_KERNEL,
        )?;
        let handle = Arc::new(
            Shared {
                xprt: NonNull::new(xprt).ok_or(ENOMEM)?,
                handles: NonNull::from(&data.handles),
                backchannel: NonNull::from(&data.backchannel),
            },
            GFP_KERNEL,
        )?;
        // On an error the transport has dropped its handle, and with it the last.
        // SAFETY: The transport is being made here, with `T`.
        let transport = T::new(unsafe { XprtHandle::new(handle) })?;
        let mut data = data;
        // SAFETY: The pinned fields are not touched.
        unsafe {
            data.as_mut().get_unchecked_mut().transport = Some(transport);
            (&raw mut (*private).data).write(Some(data));
        }
        Ok(())
    }

    /// The last reference is gone. From a workqueue of the kernel; may sleep.
    ///
    /// # Safety
    ///
    /// As for [`Self::setup`].
    unsafe extern "C" fn destroy(xprt: *mut bindings::rpc_xprt) {
        // SAFETY: The RPC layer makes no other call any more, so the data is ours alone.
        unsafe {
            let private = xprt.cast::<Private<T>>();
            if let Some(mut data) = (*private).data.take() {
                if let Some(transport) = &data.transport {
                    transport.destroy();
                }
                // The transport goes first: it holds handles, and work that uses them.
                drop(data.as_mut().get_unchecked_mut().transport.take());
                data.handles.wait();
                data.backchannel.destroy();
                free_address_strings(xprt);
                bindings::xprt_free(xprt);
                // Last of all the reference to this module.
                let module = data.as_mut().get_unchecked_mut().module.take();
                drop(data);
                drop(module);
            }
        }
    }

    /// Starts to connect. From the RPC task that has locked the transport; does not sleep long.
    ///
    /// # Safety
    ///
    /// As for [`Self::setup`].
    unsafe extern "C" fn connect(xprt: *mut bindings::rpc_xprt, task: *mut bindings::rpc_task) {
        // SAFETY: Called with a transport of ours, which the task has locked. So nobody changes
        // the address.
        unsafe {
            let Some(transport) = Self::transport(xprt) else {
                return;
            };
            kernel::warn_on!(!bindings::xprt_lock_connect(xprt, task, xprt.cast()));
            // None for the first attempt, nor where the last connection was of use.
            let delay = bindings::xprt_reconnect_delay(xprt);
            bindings::xprt_reconnect_backoff(xprt, INITIAL_BACKOFF);
            let address = SocketAddress::new((*xprt).addr);
            trace::xprtrdma_op_connect(|| (address, delay));
            transport.connect(delay, address);
        }
    }

    /// Ends the connection. From autoclose or a sender, with the transport locked; may sleep.
    ///
    /// # Safety
    ///
    /// As for [`Self::setup`].
    unsafe extern "C" fn close(xprt: *mut bindings::rpc_xprt) {
        // SAFETY: Called with a transport of ours, locked by the caller.
        unsafe {
            if let Some(transport) = Self::transport(xprt) {
                transport.close();
            }
            (*xprt).connect_cookie = (*xprt).connect_cookie.wrapping_add(1);
            bindings::xprt_disconnect_done(xprt);
        }
    }

    /// Gets memory for an RPC. From its task; sleeps as that may.
    ///
    /// # Safety
    ///
    /// As for [`Self::setup`].
    unsafe extern "C" fn buf_alloc(task: *mut bindings::rpc_task) -> c_int {
        // SAFETY: The task has a request on a transport of ours.
        unsafe {
            let rqst = (*task).tk_rqstp;
            let Some(transport) = Self::transport((*rqst).rq_xprt) else {
                return EIO.to_errno();
            };
            let len = (*rqst).rq_callsize.saturating_add((*rqst).rq_rcvsize);
            let grown = transport
                .take_buffer()
                .and_then(|mut buffer| match buffer.grow(len) {
                    Ok(()) => Ok(buffer),
                    Err(e) => {
                        transport.give_back_buffer(buffer);
                        Err(e)
                    }
                });
            match grown {
                Ok(buffer) => {
                    let data = buffer.into_raw();
                    (*rqst).rq_buffer = data.cast::<c_void>();
                    (*rqst).rq_rbuffer = data.add((*rqst).rq_callsize).cast();
                    0
                }
                Err(e) => e.to_errno(),
            }
        }
    }

    /// The RPC gives its memory back. From its task; may sleep until the memory is fenced.
    ///
    /// # Safety
    ///
    /// As for [`Self::setup`].
    unsafe extern "C" fn buf_free(task: *mut bindings::rpc_task) {
        // SAFETY: The request has a buffer of `buf_alloc`, which is used no more afterwards. The task is the
        // caller's, and lets its client go only after this.
        unsafe {
            let rqst = (*task).tk_rqstp;
            let Some(transport) = Self::transport((*rqst).rq_xprt) else {
                return;
            };
            let data = (*rqst).rq_buffer.cast::<u8>();
            let call = RpcBuffer::call_of(data);
            let _fenced: Fenced = transport.fence(call, Task::from_raw(task));
            (*rqst).rq_buffer = core::ptr::null_mut();
            (*rqst).rq_rbuffer = core::ptr::null_mut();
            transport.give_back_buffer(RpcBuffer::from_raw(data));
        }
    }

    /// Sends a Call or a reverse Reply. From an RPC task that has locked the transport; may sleep.
    ///
    /// # Safety
    ///
    /// As for [`Self::setup`].
    unsafe extern "C" fn send_request(rqst: *mut bindings::rpc_rqst) -> c_int {
        // SAFETY: A request on a transport of ours, which the caller has locked. Its buffer is of
        // `buf_alloc`, unless it is of the backchannel.
        unsafe {
            let raw_xprt = (*rqst).rq_xprt;
            let (Some(transport), Some(raw)) = (Self::transport(raw_xprt), NonNull::new(rqst))
            else {
                return EIO.to_errno();
            };
            let xprt = Xprt::from_raw(raw_xprt);
            if !xprt.is_connected() {
                return ENOTCONN.to_errno();
            }
            // Those with the mark are of the backchannel.
            let state = &raw const (*rqst).rq_bc_pa_state;
            let result = if test_bit(bindings::RPC_BC_PA_IN_USE, state) {
                transport.send_reverse_reply(xprt, ReverseRqst::from_raw(raw))
            } else {
                transport.send(xprt, Rqst::from_raw(raw))
            };
            match result {
                Ok(()) => 0,
                Err(e) => {
                    if e == ENOTCONN {
                        Self::close(raw_xprt);
                    }
                    e.to_errno()
                }
            }
        }
    }

    /// A Reply is overdue. From an RPC task; does not sleep.
    ///
    /// # Safety
    ///
    /// As for [`Self::setup`].
    unsafe extern "C" fn timer(xprt: *mut bindings::rpc_xprt, task: *mut bindings::rpc_task) {
        // There is no keep-alive below us: a new connection finds out what is wrong, and all
        // RPCs are sent again over it. One that waits for that says nothing of the new one.
        // SAFETY: Called with a transport of ours, and a task that has a request.
        unsafe {
            let sent_here = was_sent_on(task, (*xprt).connect_cookie);
            if let (true, Some(transport)) = (sent_here, Self::transport(xprt)) {
                transport.overdue();
            }
        }
    }

    /// The port of the server was found out. From an RPC task; may sleep.
    ///
    /// # Safety
    ///
    /// As for [`Self::setup`].
    unsafe extern "C" fn set_port(xprt: *mut bindings::rpc_xprt, port: c_ushort) {
        // SAFETY: Called with a transport of ours, by the task that looks for the port.
        unsafe {
            bindings::rpc_set_port((&raw mut (*xprt).addr).cast(), port);
            // The old strings stay where there is no memory for new ones.
            let _ = set_port_strings(xprt, port);
        }
    }

    /// The mount wants other timeouts. From a task that mounts.
    ///
    /// # Safety
    ///
    /// As for [`Self::setup`].
    unsafe extern "C" fn set_connect_timeout(
        xprt: *mut bindings::rpc_xprt,
        connect_timeout: c_ulong,
        reconnect_timeout: c_ulong,
    ) {
        // SAFETY: Called with a transport of ours.
        let xprt = unsafe { Xprt::from_raw(xprt) };
        trace::xprtrdma_op_set_cto(|| (xprt.server(), connect_timeout, reconnect_timeout));
        xprt.with_transport_lock(|xprt| {
            // SAFETY: The lock that protects these is held; the timeout is in our part of the
            // same allocation.
            unsafe {
                if connect_timeout < (*xprt).connect_timeout {
                    let own = &raw mut (*xprt.cast::<Private<T>>()).timeout;
                    let value = connect_timeout.max(2 * INITIAL_BACKOFF);
                    let mut timeout = *(*xprt).timeout;
                    timeout.to_initval = value;
                    timeout.to_maxval = value;
                    *own = timeout;
                    (*xprt).timeout = own;
                    (*xprt).connect_timeout = connect_timeout;
                }
                if reconnect_timeout < (*xprt).max_reconnect_timeout {
                    (*xprt).max_reconnect_timeout = reconnect_timeout;
                }
            }
        });
    }

    /// Prints statistics. From a reader of /proc; may sleep.
    ///
    /// # Safety
    ///
    /// As for [`Self::setup`].
    unsafe extern "C" fn print_stats(xprt: *mut bindings::rpc_xprt, seq: *mut bindings::seq_file) {
        // SAFETY: Called with a transport of ours, and a file to print to.
        unsafe {
            if let Some(transport) = Self::transport(xprt) {
                transport.print_stats(Xprt::from_raw(xprt), SeqFile::from_raw(seq));
            }
        }
    }

    /// Swapping to one more file of the mount begins.
    ///
    /// # Safety
    ///
    /// As for [`Self::setup`].
    unsafe extern "C" fn enable_swap(xprt: *mut bindings::rpc_xprt) -> c_int {
        // SAFETY: The RPC layer calls this with a transport that it holds.
        unsafe { bindings::xprt_begin_swap(xprt) };
        0
    }

    /// Swapping to a file of the mount ends. It may have begun before the mount had this transport.
    ///
    /// # Safety
    ///
    /// As for [`Self::setup`].
    unsafe extern "C" fn disable_swap(xprt: *mut bindings::rpc_xprt) {
        // SAFETY: The RPC layer calls this with a transport that it holds.
        unsafe { bindings::xprt_end_swap(xprt) };
    }

    /// Fault injection. From a sender, with the transport locked; may sleep.
    ///
    /// # Safety
    ///
    /// As for [`Self::setup`].
    unsafe extern "C" fn inject_disconnect(xprt: *mut bindings::rpc_xprt) {
        // SAFETY: Called with a transport of ours, locked by the caller.
        unsafe {
            trace::xprtrdma_op_inject_dsc(|| Xprt::from_raw(xprt).server());
            if let Some(transport) = Self::transport(xprt) {
                transport.inject_disconnect();
            }
        }
    }

    /// Reverse Calls will be answered. From a task that mounts; may sleep.
    ///
    /// # Safety
    ///
    /// As for [`Self::setup`].
    unsafe extern "C" fn bc_setup(xprt: *mut bindings::rpc_xprt, min: c_uint) -> c_int {
        // SAFETY: Called with a transport of ours, by a task that mounts.
        let Some(data) = (unsafe { Self::data(xprt) }) else {
            return EIO.to_errno();
        };
        let Some(transport) = data.transport.as_ref() else {
            return EIO.to_errno();
        };
        // Twice as many: a request comes back after its Reply is out, and the server may send the
        // next Call as soon as it has that.
        match data
            .backchannel
            .setup(2 * transport.reverse_slots() as usize)
        {
            Ok(()) => {
                // SAFETY: As above.
                trace::xprtrdma_cb_setup(|| (unsafe { Xprt::from_raw(xprt) }.server(), min));
                transport.reverse_enabled();
                0
            }
            Err(e) => e.to_errno(),
        }
    }

    /// Bytes of a reverse message. Any context.
    ///
    /// # Safety
    ///
    /// As for [`Self::setup`].
    unsafe extern "C" fn bc_maxpayload(xprt: *mut bindings::rpc_xprt) -> usize {
        // SAFETY: Called with a transport of ours.
        unsafe { Self::transport(xprt) }.map_or(0, T::reverse_payload)
    }

    /// Reverse Calls at once. Any context.
    ///
    /// # Safety
    ///
    /// As for [`Self::setup`].
    unsafe extern "C" fn bc_num_slots(xprt: *mut bindings::rpc_xprt) -> c_uint {
        // SAFETY: Called with a transport of ours.
        unsafe { Self::transport(xprt) }.map_or(0, T::reverse_slots)
    }

    /// A reverse request is done with. May sleep.
    ///
    /// # Safety
    ///
    /// As for [`Self::setup`].
    unsafe extern "C" fn bc_free_rqst(rqst: *mut bindings::rpc_rqst) {
        // SAFETY: A reverse request that the backchannel handed out; the RPC layer took a
        // reference to the transport with it, which is given back last.
        unsafe {
            let xprt = (*rqst).rq_xprt;
            if let Some(data) = Self::data(xprt) {
                let (connection, answered) = data.backchannel.give_back(rqst);
                if let Some(transport) = data.transport.as_ref() {
                    transport.reverse_ended(connection, !answered);
                }
            }
            bindings::xprt_put(xprt);
        }
    }

    /// No more reverse Calls. From the task that tears the callback service or the mount down.
    ///
    /// # Safety
    ///
    /// As for [`Self::setup`].
    unsafe extern "C" fn bc_destroy(xprt: *mut bindings::rpc_xprt, _max: c_uint) {
        // SAFETY: Called with a transport of ours.
        if let Some(data) = unsafe { Self::data(xprt) } {
            if let Some(transport) = data.transport.as_ref() {
                transport.reverse_disabled();
            }
            data.backchannel.destroy();
        }
    }
}
