// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Transports of the RPC layer: its calls into one, and one's calls into it.

use super::super::{
    bindings,
    ib::Fenced,
    sys::{
        completion::Completion,
        module::ModuleRef,
        time::{
            self,
            HZ, //
        }, //
    },
};
use super::{
    address::{
        Net,
        SocketAddress, //
    },
    backchannel::Backchannel,
    buffer,
    class::Class,
    rqst::{
        PinnedRqst,
        Rqst, //
    },
};
use core::{
    ffi::{
        c_int,
        c_void,
        CStr, //
    },
    marker::PhantomData,
    ops::Deref,
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
    str::CString,
    sync::{
        Arc,
        ArcBorrow, //
    },
    time::Jiffies,
    types::Opaque, //
};

/// What a client transport does for the RPC layer.
pub(crate) trait Transport: Sized + Send + Sync + 'static {
    /// The transport's state of one RPC.
    type Call: Send + Sync + 'static;
    /// The identifier of the class.
    const IDENT: c_int;
    /// The name of the class.
    const NAME: &'static CStr;
    /// The network identifiers of the class, for IPv4 and IPv6.
    const NETIDS: [&'static CStr; 2];
    /// Bytes that one READ or WRITE may carry.
    const MAX_PAYLOAD: usize;

    /// Where the class is registered.
    fn class() -> &'static Class;
    /// Makes the transport of a mount. May sleep.
    fn new(xprt: XprtHandle) -> Result<Self>;
    /// How many RPCs the transport may have under way.
    fn slots() -> u32;

    /// Starts to connect after `delay`. The outcome is reported with [`Xprt::connected`] or
    /// [`Xprt::not_connected`], once. May not sleep long: called from an RPC task.
    fn connect(&self, delay: Jiffies);
    /// Whether the next attempt to connect is to be delayed: the last one failed, or the server
    /// answers badly.
    fn backs_off(&self) -> bool;
    /// Ends the connection; returns when nothing of it is left. May sleep. The RPC layer has
    /// locked the transport, so nothing is being sent.
    fn close(&self);
    /// The RPC layer will make no further call. May sleep.
    fn destroy(&self);
    /// Breaks the connection as if the network had, for the kernel's fault injection.
    fn inject_disconnect(&self);

    /// State for a new RPC. Called from an RPC task: may sleep as that may.
    fn new_call(&self) -> Result<Arc<Self::Call>>;
    /// The RPC ends; no peer may reach its memory afterwards. May sleep until that is so.
    fn fence(&self, call: ArcBorrow<'_, Self::Call>) -> Fenced;
    /// The RPC has ended.
    fn end_call(&self, call: Arc<Self::Call>);

    /// Sends a Call. The RPC layer has locked the transport. May sleep as the task may.
    ///
    /// `ENOTCONN`: to be sent again on a new connection; the caller closes this one. `EAGAIN` and
    /// `ENOBUFS`: to be sent again later. `EBADSLT`: no credit. Other errors end the RPC.
    fn send(&self, xprt: &Xprt, rqst: Rqst<'_, Self>) -> Result;
    /// Sends the Reply of a reverse request, as [`Self::send`].
    fn send_reverse_reply(&self, xprt: &Xprt, rqst: Rqst<'_, Self>) -> Result;

    /// The RPC layer is going to answer reverse Calls. May sleep.
    fn reverse_enabled(&self);
    /// The RPC layer does not answer reverse Calls any more.
    fn reverse_disabled(&self);
    /// How many reverse Calls it can take at once.
    fn reverse_slots(&self) -> u32;
    /// Bytes of a reverse Call or Reply, at most.
    fn reverse_payload(&self) -> usize;

    /// Writes the transport's part of a mount's statistics.
    fn print_stats(&self, xprt: &Xprt, seq: &SeqFile);
}

/// The RPC layer's view of a transport.
#[repr(transparent)]
pub(crate) struct Xprt(Opaque<bindings::rpc_xprt>);

// SAFETY: What is offered here may be done by any thread: the RPC layer has its own locks, and
// single words are read and written as it does.
unsafe impl Sync for Xprt {}

/// The counters that the RPC layer keeps for a transport.
pub(crate) struct XprtStats {
    pub(crate) bind_count: u64,
    pub(crate) connect_count: u64,
    pub(crate) connect_seconds: u64,
    pub(crate) idle_seconds: u64,
    pub(crate) sends: u64,
    pub(crate) recvs: u64,
    pub(crate) bad_xids: u64,
    pub(crate) requests: u64,
    pub(crate) backlog: u64,
}

impl Xprt {
    /// # Safety
    ///
    /// `xprt` must be valid for `'a`.
    pub(super) unsafe fn from_raw<'a>(xprt: *mut bindings::rpc_xprt) -> &'a Self {
        // SAFETY: Valid by contract; the type is transparent.
        unsafe { &*xprt.cast::<Self>() }
    }

    pub(super) fn as_raw(&self) -> *mut bindings::rpc_xprt {
        self.0.get()
    }

    /// Runs `f` with the lock of the request queues held.
    pub(super) fn with_queue_lock<R>(&self, f: impl FnOnce(*mut bindings::rpc_xprt) -> R) -> R {
        // SAFETY: The lock is part of the transport and initialised.
        unsafe { bindings::spin_lock(&raw mut (*self.as_raw()).queue_lock) };
        let result = f(self.as_raw());
        // SAFETY: Locked above.
        unsafe { bindings::spin_unlock(&raw mut (*self.as_raw()).queue_lock) };
        result
    }

    /// Runs `f` with the lock of the transport's state held.
    fn with_transport_lock<R>(&self, f: impl FnOnce(*mut bindings::rpc_xprt) -> R) -> R {
        // SAFETY: The lock is part of the transport and initialised.
        unsafe { bindings::spin_lock(&raw mut (*self.as_raw()).transport_lock) };
        let result = f(self.as_raw());
        // SAFETY: Locked above.
        unsafe { bindings::spin_unlock(&raw mut (*self.as_raw()).transport_lock) };
        result
    }

    /// Whether there is a service for reverse Calls.
    pub(super) fn has_callback_service(&self) -> bool {
        // SAFETY: The lock is part of the transport and initialised, and protects the service.
        unsafe {
            let xprt = self.as_raw();
            bindings::spin_lock(&raw mut (*xprt).bc_pa_lock);
            let found = !(*xprt).bc_serv.is_null();
            bindings::spin_unlock(&raw mut (*xprt).bc_pa_lock);
            found
        }
    }

    /// The server's address.
    pub(crate) fn address(&self) -> SocketAddress {
        // SAFETY: The address was copied when the transport was made; the port may change, which
        // is one aligned word.
        SocketAddress::new(unsafe { (*self.as_raw()).addr })
    }

    /// The network namespace of the mount, which the transport holds.
    pub(crate) fn net(&self) -> &Net {
        // SAFETY: The transport holds its namespace.
        unsafe { Net::from_raw((*self.as_raw()).xprt_net) }
    }

    /// RPCs that may be under way at once.
    pub(crate) fn max_requests(&self) -> u32 {
        // SAFETY: Written only while the transport is made.
        unsafe { (*self.as_raw()).max_reqs }
    }

    /// The cookie of the present connection.
    pub(crate) fn connect_cookie(&self) -> u32 {
        // SAFETY: One word, changed only while the transport is locked.
        unsafe { (*self.as_raw()).connect_cookie }
    }

    /// Whether the RPC layer takes the transport for connected.
    pub(crate) fn is_connected(&self) -> bool {
        // SAFETY: The transport is valid.
        unsafe { bindings::xprt_connected(self.as_raw()) != 0 }
    }

    /// `credits` RPCs may be under way. Those that are now keep theirs, also over a reconnect.
    pub(crate) fn set_window(&self, credits: u32) {
        self.with_transport_lock(|xprt| {
            // SAFETY: The lock that protects it is held.
            unsafe { (*xprt).cwnd = (credits as c_ulong) << bindings::RPC_CWNDSHIFT };
        });
    }

    /// A useful answer came: the next reconnect need not be delayed.
    pub(crate) fn reset_backoff(&self) {
        // SAFETY: One word; the RPC layer reads it whole.
        unsafe {
            let timeout = &raw mut (*self.as_raw()).reestablish_timeout;
            if *timeout != 0 {
                *timeout = 0;
            }
        }
    }

    /// Finds the request that waits for a Reply of this XID.
    pub(crate) fn find<T: Transport>(&self, xid: u32) -> Option<PinnedRqst<T>> {
        PinnedRqst::find(self, xid)
    }

    /// Makes the RPC layer close the connection. Any context that may take a spin lock.
    pub(crate) fn force_disconnect(&self) {
        // SAFETY: The transport is valid.
        unsafe { bindings::xprt_force_disconnect(self.as_raw()) };
    }

    /// The present sender must wait for room; to be called before it looks again.
    pub(crate) fn wait_for_space(&self) {
        // SAFETY: The transport is valid.
        unsafe { bindings::xprt_wait_for_buffer_space(self.as_raw()) };
    }

    /// There is room again: wakes the sender, if one waits.
    pub(crate) fn space(&self) {
        // SAFETY: The transport is valid.
        unsafe { bindings::xprt_write_space(self.as_raw()) };
    }

    /// What the RPC layer has counted.
    pub(crate) fn stats(&self) -> XprtStats {
        let connected = self.is_connected();
        // SAFETY: Single words, read as the RPC layer's own statistics do.
        unsafe {
            let xprt = self.as_raw();
            let stat = &(*xprt).stat;
            let idle = if connected {
                time::since((*xprt).last_used) / HZ
            } else {
                0
            };
            XprtStats {
                bind_count: stat.bind_count as u64,
                connect_count: stat.connect_count as u64,
                connect_seconds: (stat.connect_time / HZ) as u64,
                idle_seconds: idle as u64,
                sends: stat.sends as u64,
                recvs: stat.recvs as u64,
                bad_xids: stat.bad_xids as u64,
                requests: stat.req_u,
                backlog: stat.bklog_u,
            }
        }
    }
}

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

/// What the handles of a transport share.
struct Shared {
    xprt: NonNull<bindings::rpc_xprt>,
    handles: NonNull<Completion>,
    backchannel: NonNull<Backchannel>,
}

// SAFETY: See `Xprt`; a completion may be used by any thread.
unsafe impl Send for Shared {}
// SAFETY: As above.
unsafe impl Sync for Shared {}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: `destroy` frees it only after this.
        unsafe { self.handles.as_ref() }.complete_all();
    }
}

/// Keeps a transport of the RPC layer from being freed, without being a reference to it: the RPC
/// layer may destroy it, and then waits for the last handle to go.
///
/// # Invariants
///
/// The transport and its backchannel are valid as long as the shared part is.
#[derive(Clone)]
pub(crate) struct XprtHandle(Arc<Shared>);

impl XprtHandle {
    /// Hands a reverse Call to the callback service; see [`Backchannel::receive`].
    pub(crate) fn receive_reverse_call(&self, xid: u32, call: &[u8], connection: u64) -> Result {
        // SAFETY: Valid by the type invariant.
        unsafe { self.0.backchannel.as_ref() }.receive(self, xid, call, connection)
    }

    /// The connection attempt succeeded. Ends what [`Transport::connect`] began.
    pub(crate) fn connected(&self) {
        let xprt = self.as_raw();
        // SAFETY: The transport is valid and locked for connecting, by us.
        unsafe {
            bindings::xprt_clear_connecting(xprt);
            (*xprt).connect_cookie = (*xprt).connect_cookie.wrapping_add(1);
            (*xprt).stat.connect_count += 1;
            (*xprt).stat.connect_time += time::since((*xprt).stat.connect_start);
            bindings::xprt_set_connected(xprt);
        }
        self.connect_ended(EAGAIN);
    }

    /// The connection attempt failed. Ends what [`Transport::connect`] began.
    pub(crate) fn not_connected(&self, error: Error) {
        // SAFETY: The transport is valid and locked for connecting, by us.
        unsafe { bindings::xprt_clear_connecting(self.as_raw()) };
        self.connect_ended(Self::retriable(error));
    }

    /// What the RPC layer is told of a failed attempt. Of the errors that it does not know as
    /// those of a connection it would make the result of RPCs, even on a hard mount.
    fn retriable(error: Error) -> Error {
        match error {
            ENOMEM | EAGAIN => ENOBUFS,
            ECONNABORTED | ECONNREFUSED | ECONNRESET | EHOSTUNREACH | ENETUNREACH | ENOBUFS
            | EPROTO | ETIMEDOUT => error,
            // A mount fails with it at once; what is mounted tries again.
            EOPNOTSUPP => EPROTO,
            _ => ENOTCONN,
        }
    }

    fn connect_ended(&self, status: Error) {
        let xprt = self.as_raw();
        // SAFETY: As above; the cookie is the one `connect` locked with.
        unsafe {
            bindings::xprt_unlock_connect(xprt, xprt.cast());
            bindings::xprt_wake_pending_tasks(xprt, status.to_errno());
        }
    }
}

impl Deref for XprtHandle {
    type Target = Xprt;

    fn deref(&self) -> &Xprt {
        // SAFETY: Valid by the type invariant.
        unsafe { Xprt::from_raw(self.0.xprt.as_ptr()) }
    }
}

/// The least delay before a reconnect, and its growth (as users of the C module know it).
const INITIAL_BACKOFF: Jiffies = 5 * HZ;
const BIND_TIMEOUT: Jiffies = 60 * HZ;
const IDLE_TIMEOUT: Jiffies = 5 * 60 * HZ;

/// 60 seconds, no retries: a lost connection is noticed otherwise, and resent over at once.
struct Timeout(bindings::rpc_timeout);
// SAFETY: Never changed.
unsafe impl Sync for Timeout {}
static DEFAULT_TIMEOUT: Timeout = Timeout(bindings::rpc_timeout {
    to_initval: 60 * HZ,
    to_maxval: 60 * HZ,
    to_increment: 0,
    to_retries: 0,
    to_exponential: 0,
});

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
            (*xprt).reestablish_timeout = INITIAL_BACKOFF;
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
        let transport = T::new(XprtHandle(handle))?;
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
        // SAFETY: Called with a transport of ours, which the task has locked.
        unsafe {
            let Some(transport) = Self::transport(xprt) else {
                return;
            };
            kernel::warn_on!(!bindings::xprt_lock_connect(xprt, task, xprt.cast()));
            let mut delay = 0;
            if transport.backs_off() {
                delay = bindings::xprt_reconnect_delay(xprt);
                bindings::xprt_reconnect_backoff(xprt, INITIAL_BACKOFF);
            }
            transport.connect(delay);
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
                if !transport.backs_off() {
                    (*xprt).reestablish_timeout = 0;
                }
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
            match transport.new_call().and_then(|c| buffer::allocate(len, c)) {
                Ok(data) => {
                    (*rqst).rq_buffer = data.as_ptr().cast::<c_void>();
                    (*rqst).rq_rbuffer = data.as_ptr().add((*rqst).rq_callsize).cast();
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
        // SAFETY: The request has a buffer of `buf_alloc`, which is used no more afterwards.
        unsafe {
            let rqst = (*task).tk_rqstp;
            let Some(transport) = Self::transport((*rqst).rq_xprt) else {
                return;
            };
            let data = (*rqst).rq_buffer.cast::<u8>();
            let _fenced: Fenced = transport.fence(buffer::call_of::<T::Call>(data));
            (*rqst).rq_buffer = core::ptr::null_mut();
            (*rqst).rq_rbuffer = core::ptr::null_mut();
            transport.end_call(buffer::free(data));
        }
    }

    /// Sends a Call or a reverse Reply. From an RPC task that has locked the transport; may sleep.
    ///
    /// # Safety
    ///
    /// As for [`Self::setup`].
    unsafe extern "C" fn send_request(rqst: *mut bindings::rpc_rqst) -> c_int {
        // SAFETY: A request on a transport of ours, which the caller has locked. One without
        // buffer is of the backchannel.
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
            let rqst = Rqst::from_raw(raw);
            let result = if bindings::bc_prealloc(raw.as_ptr()) != 0 {
                transport.send_reverse_reply(xprt, rqst)
            } else {
                transport.send(xprt, rqst)
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
    unsafe extern "C" fn timer(xprt: *mut bindings::rpc_xprt, _task: *mut bindings::rpc_task) {
        // There is no keep-alive below us: a new connection finds out what is wrong, and all
        // RPCs are sent again over it.
        // SAFETY: Called with a transport of ours.
        unsafe { bindings::xprt_force_disconnect(xprt) };
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

    /// Swapping over the mount begins. Nothing to prepare here.
    ///
    /// # Safety
    ///
    /// As for [`Self::setup`].
    unsafe extern "C" fn enable_swap(_xprt: *mut bindings::rpc_xprt) -> c_int {
        0
    }

    /// Swapping over the mount ends.
    ///
    /// # Safety
    ///
    /// As for [`Self::setup`].
    unsafe extern "C" fn disable_swap(_xprt: *mut bindings::rpc_xprt) {}

    /// Fault injection. From a sender, with the transport locked; may sleep.
    ///
    /// # Safety
    ///
    /// As for [`Self::setup`].
    unsafe extern "C" fn inject_disconnect(xprt: *mut bindings::rpc_xprt) {
        // SAFETY: Called with a transport of ours, locked by the caller.
        if let Some(transport) = unsafe { Self::transport(xprt) } {
            transport.inject_disconnect();
        }
    }

    /// Reverse Calls will be answered. From a task that mounts; may sleep.
    ///
    /// # Safety
    ///
    /// As for [`Self::setup`].
    unsafe extern "C" fn bc_setup(xprt: *mut bindings::rpc_xprt, _min: c_uint) -> c_int {
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

    /// A reverse request is done with. Any context that may take a spin lock.
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
                data.backchannel.give_back(rqst);
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

/// Sets one of the strings that describe the address, and frees the old one.
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
    // SAFETY: By contract the old one is null or of `kstrdup`.
    unsafe {
        let slot = &raw mut (*xprt).address_strings[which as usize];
        bindings::kfree((*slot).cast::<c_void>());
        *slot = copy;
    }
    Ok(())
}

/// # Safety
///
/// `xprt` must be a transport of ours.
unsafe fn set_port_strings(xprt: *mut bindings::rpc_xprt, port: u16) -> Result {
    // SAFETY: By contract; both are allocated strings.
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
unsafe fn set_address_strings(xprt: *mut bindings::rpc_xprt, address: &SocketAddress) -> Result {
    let mut host = [0u8; 128];
    let len = address.host(&mut host).min(host.len());
    let host = core::str::from_utf8(&host[..len]).unwrap_or("");
    let netid: &CStr = if address.is_ipv6() { c"rdma6" } else { c"rdma" };
    let protocol = c"rdma";
    // SAFETY: By contract. The two that are not allocated are static, and are not freed.
    unsafe {
        let strings = &raw mut (*xprt).address_strings;
        (*strings)[bindings::rpc_display_format_t_RPC_DISPLAY_NETID as usize] = netid.as_char_ptr();
        (*strings)[bindings::rpc_display_format_t_RPC_DISPLAY_PROTO as usize] =
            protocol.as_char_ptr();
        set_string(
            xprt,
            bindings::rpc_display_format_t_RPC_DISPLAY_ADDR,
            fmt!("{host}"),
        )?;
        let mut hex = [0u8; 32];
        let hex = address.hex(&mut hex);
        set_string(
            xprt,
            bindings::rpc_display_format_t_RPC_DISPLAY_HEX_ADDR,
            fmt!("{hex}"),
        )?;
        set_port_strings(xprt, address.port())
    }
}

/// # Safety
///
/// `xprt` must be a transport of ours whose strings are not used any more.
unsafe fn free_address_strings(xprt: *mut bindings::rpc_xprt) {
    for which in [
        bindings::rpc_display_format_t_RPC_DISPLAY_ADDR,
        bindings::rpc_display_format_t_RPC_DISPLAY_PORT,
        bindings::rpc_display_format_t_RPC_DISPLAY_HEX_ADDR,
        bindings::rpc_display_format_t_RPC_DISPLAY_HEX_PORT,
    ] {
        // SAFETY: By contract; null or of `kstrdup`.
        unsafe { bindings::kfree((*xprt).address_strings[which as usize].cast::<c_void>()) };
    }
}
