// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The calls of the RPC layer into a transport.

#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
mod tests;

use crate::kapi::{
    bindings,
    page::Covers,
    sunrpc::{
        backchannel::Backchannel,
        buffer::RpcBuffer,
        connecting::Connecting,
        display::set_port_strings,
        handle::Common,
        private::{
            free,
            Private, //
        },
        rqst::{
            RpcRqst,
            Rqst, //
        },
        task::Task,
        transport::{
            to_send_again,
            Transport, //
        },
        xprt::{
            Xprt,
            INITIAL_BACKOFF,
            NO_CALLS, //
        },
        xprt_handle::Beside, //
    },
    sys::{
        address::SocketAddress,
        bit::test_bit,
        module::ModuleRef,
        time,
        warn::warn_if, //
    },
    trace, //
};
use core::{
    ffi::c_int,
    marker::PhantomData, //
};
use kernel::{
    error::from_result,
    ffi::{
        c_uint,
        c_ulong,
        c_ushort, //
    },
    prelude::*,
    seq_file::SeqFile,
    time::{
        delay::fsleep,
        Delta,
        Jiffies, //
    },
    types::Opaque, //
};

/// What a transport `T` has of ours, until the RPC layer destroys it.
pub(super) struct Data<T> {
    // First, since it has handles.
    pub(super) transport: T,
    pub(super) shared: Pin<KBox<Common<Beside>>>,
    /// Of the mount, if it wants others than usual. Goes by the lock of the transport's state.
    pub(super) timeout: Opaque<bindings::rpc_timeout>,
    pub(super) module: ModuleRef,
}

/// Waits until no region covers memory of an RPC that should have been fenced: rather for ever than
/// let a peer reach the memory of another.
#[cold]
fn wait_for_none(covers: &Covers) {
    warn_if(true);
    while !covers.is_none() {
        fsleep(Delta::from_millis(100));
    }
}

/// Returns whether the request of a task was last sent on the connection of this cookie.
///
/// # Safety
///
/// The task must have a request, and both must be valid.
unsafe fn was_sent_on(task: *const bindings::rpc_task, cookie: u32) -> bool {
    // SAFETY: Both are valid by the contract of this function.
    unsafe { (*(*task).tk_rqstp).rq_connect_cookie == cookie }
}

/// Returns when the time of an RPC ends whose Call was sent at `now`: at `end`, or, if that was
/// before, when `period` has passed since it was sent.
fn end_of_patience(now: Jiffies, end: Jiffies, period: impl FnOnce() -> Jiffies) -> Jiffies {
    if time::is_before(now, end) {
        end
    } else {
        now.wrapping_add(period())
    }
}

/// The table of calls of the RPC layer into a transport `T`.
pub(super) struct XprtOps<T: Transport>(PhantomData<T>);

impl<T: Transport> XprtOps<T> {
    /// Ends the RPC of a Call that cannot be sent, as if that were the Reply to it.
    ///
    /// # Safety
    ///
    /// The request must be of a Call, with a task and a buffer of `buf_alloc`, and be sent now.
    #[cold]
    unsafe fn end_with(rqst: *mut bindings::rpc_rqst, error: Error) {
        // SAFETY: The request is valid, and its buffer, by the contract of this function.
        let progress = unsafe { &RpcBuffer::<T::Call>::prefix_of(rqst).progress };
        // SAFETY: The request is valid, and so are its transport and its task, by the contract of
        // this function.
        let (xprt, task) = unsafe { (Xprt::from_raw((*rqst).rq_xprt), (*rqst).rq_task) };
        xprt.with_queue_lock(|_| {
            // SAFETY: The task is valid. The lock of the queues is held by which the bit goes: it
            // says whether the request is in that for Replies.
            unsafe {
                if test_bit(bindings::RPC_TASK_NEED_RECV, &raw const (*task).tk_runstate) {
                    progress.end_with(task, error);
                }
            }
        });
    }
}

#[expect(
    clippy::missing_safety_doc,
    reason = "the RPC layer alone calls these, with valid objects of a transport of ours"
)]
impl<T: Transport> XprtOps<T> {
    pub(super) const TABLE: &'static bindings::rpc_xprt_ops = &bindings::rpc_xprt_ops {
        reserve_xprt: Some(bindings::xprt_reserve_xprt_cong),
        release_xprt: Some(bindings::xprt_release_xprt_cong),
        alloc_slot: Some(bindings::xprt_alloc_slot),
        free_slot: Some(bindings::xprt_free_slot),
        rpcbind: Some(bindings::rpcb_getport_async),
        set_port: Some(Self::set_port),
        connect: Some(Self::connect),
        buf_alloc: Some(Self::buf_alloc),
        buf_free: Some(Self::buf_free),
        send_request: Some(Self::send_request),
        wait_for_reply_request: Some(Self::wait_for_reply),
        timer: Some(Self::timer),
        release_request: Some(Self::release_request),
        close: Some(Self::close),
        destroy: Some(Self::destroy),
        set_connect_timeout: Some(Self::set_connect_timeout),
        print_stats: Some(Self::print_stats),
        enable_swap: Some(bindings::xprt_begin_swap),
        disable_swap: Some(bindings::xprt_end_swap),
        inject_disconnect: Some(Self::inject_disconnect),
        bc_setup: Some(Self::bc_setup),
        bc_maxpayload: Some(Self::bc_maxpayload),
        bc_num_slots: Some(Self::bc_num_slots),
        bc_free_rqst: Some(Self::bc_free_rqst),
        bc_destroy: Some(Self::bc_destroy),
        ..NO_CALLS
    };

    /// Starts to connect. From the RPC task that has locked the transport; does not sleep long.
    unsafe extern "C" fn connect(xprt: *mut bindings::rpc_xprt, task: *mut bindings::rpc_task) {
        // SAFETY: The RPC layer calls this with a transport of `setup` that it holds.
        let data = unsafe { Private::<Data<T>>::data(xprt) };
        data.shared.beside.set_made();
        // SAFETY: The RPC layer calls this for a task that it holds, which is one of a client.
        let Some(connecting) = (unsafe { Connecting::begin(xprt, task) }) else {
            // The RPC layer connects for the task that has the transport locked.
            warn_if(true);
            return;
        };
        // None for the first attempt, nor where the last connection was of use.
        // SAFETY: The transport is valid, and locked as `connecting` says: nobody else looks at
        // when it was connected.
        let delay = unsafe {
            let delay = bindings::xprt_reconnect_delay(xprt);
            bindings::xprt_reconnect_backoff(xprt, INITIAL_BACKOFF);
            delay
        };
        // SAFETY: The transport is valid, and locked: nobody changes the address.
        let address = SocketAddress::new(unsafe { (*xprt).addr });
        trace::xprtrdma_op_connect(|| (address, delay));
        data.transport.connect(delay, address, connecting);
    }

    /// Ends the connection. From autoclose or a sender, with the transport locked; may sleep.
    unsafe extern "C" fn close(xprt: *mut bindings::rpc_xprt) {
        // SAFETY: The RPC layer calls this with a transport of `setup` that it holds.
        unsafe { Private::<Data<T>>::data(xprt) }.transport.close();
        // SAFETY: The caller has locked the transport: nobody else changes the cookie, which others
        // may read at any time, as a word.
        unsafe {
            let cookie = &raw mut (*xprt).connect_cookie;
            cookie.write_volatile(cookie.read().wrapping_add(1));
            bindings::xprt_disconnect_done(xprt);
        }
    }

    /// Destroys a transport whose last reference is gone. From a workqueue of the kernel; may
    /// sleep.
    ///
    /// # Safety
    ///
    /// `xprt` must be a transport of ours, and nobody may use it any more.
    pub(super) unsafe extern "C" fn destroy(xprt: *mut bindings::rpc_xprt) {
        // SAFETY: The RPC layer makes no other call any more, so the data is ours alone. Handles
        // have no reference to it, but to what it shares with them.
        let data = unsafe { Private::<Data<T>>::take(xprt) };
        data.transport.destroy();
        // The transport goes first: it holds handles, and work that uses them.
        drop(data.transport);
        data.shared.wait();
        data.shared.beside.backchannel.destroy();
        drop(data.shared);
        // SAFETY: The last handle is gone, and with it whoever looks at the strings or the
        // transport.
        unsafe { free(xprt) };
        // Last of all the reference to this module, whose end waits until this has returned.
        drop(data.module);
    }

    /// Gets memory for an RPC. From its task; sleeps as that may.
    unsafe extern "C" fn buf_alloc(task: *mut bindings::rpc_task) -> c_int {
        // SAFETY: The task has a request on a transport of `setup`.
        let (rqst, Data { transport, .. }) = unsafe { Private::<Data<T>>::of_task(task) };
        from_result(|| {
            // SAFETY: The request is the task's, which calls.
            let (call, reply) = unsafe { ((*rqst).rq_callsize, (*rqst).rq_rcvsize) };
            let reply_offset = RpcBuffer::<T::Call>::reply_offset(call).ok_or(ENOMEM)?;
            let mut buffer = transport.get_buffer()?;
            if let Err(e) = buffer.grow(reply_offset.saturating_add(reply)) {
                transport.put_buffer(buffer);
                return Err(e);
            }
            // SAFETY: The request is the task's, which calls, and has no memory yet.
            unsafe { buffer.lend(rqst, reply_offset) };
            Ok(0)
        })
    }

    /// Takes the memory of an RPC back. From its task; may sleep until the memory is fenced.
    unsafe extern "C" fn buf_free(task: *mut bindings::rpc_task) {
        // SAFETY: The task has a request on a transport of `setup`.
        let (rqst, Data { transport, .. }) = unsafe { Private::<Data<T>>::of_task(task) };
        // SAFETY: The request has a buffer of `buf_alloc`, which is taken back below. The task is
        // the caller's, and lets its client go only after this.
        let (prefix, task) =
            unsafe { (RpcBuffer::<T::Call>::prefix_of(rqst), Task::from_raw(task)) };
        transport.fence(prefix.call(), task);
        if !prefix.covers.is_none() {
            wait_for_none(&prefix.covers);
        }
        // SAFETY: The request is the task's. Its buffer is used no more: it cannot be found here.
        transport.put_buffer(unsafe { RpcBuffer::take_back(rqst) });
    }

    /// Sends a Call or a reverse Reply. From an RPC task that has locked the transport; may sleep.
    unsafe extern "C" fn send_request(rqst: *mut bindings::rpc_rqst) -> c_int {
        // SAFETY: The RPC layer sends a request on a transport of `setup` that it holds.
        let Data { transport, .. } = unsafe { Private::<Data<T>>::data((*rqst).rq_xprt) };
        // SAFETY: The RPC layer holds the transport of the request.
        let xprt = unsafe { Xprt::from_raw((*rqst).rq_xprt) };
        if !xprt.is_connected() {
            return ENOTCONN.to_errno();
        }
        // SAFETY: The request is valid.
        let reverse = unsafe { Backchannel::is_reverse(rqst) };
        let result = if reverse {
            // SAFETY: It is of the backchannel. The caller has locked the transport to send this
            // one, which stays until then.
            let (reply, connection) =
                unsafe { (RpcRqst::from_raw(rqst), Backchannel::connection_of(rqst)) };
            let sent = transport.send_reverse_reply(reply, connection);
            // SAFETY: It is of the backchannel, and given back only when this has returned.
            sent.inspect(|()| unsafe { Backchannel::note_answered(rqst) })
        } else {
            // SAFETY: The buffer of any other is of `buf_alloc`. The caller has locked the
            // transport to send this one, which stays until then.
            let call = unsafe { Rqst::begin(rqst) };
            call.and_then(|call| transport.send(xprt, call))
        };
        let Err(own) = result else { return 0 };
        let error = match to_send_again(own) {
            Some(again) => again,
            // A Reply that cannot be sent ends the connection (RFC 8166, section 4.5.4).
            None if reverse => ENOTCONN,
            None => {
                // SAFETY: The request is one of a Call, and is being sent.
                unsafe { Self::end_with(rqst, own) };
                return 0;
            }
        };
        if error == ENOTCONN {
            // SAFETY: The caller has locked the transport, which is of `setup`.
            unsafe { Self::close(xprt.as_raw()) };
        }
        error.to_errno()
    }

    /// Makes a task wait for the Reply to its Call. From that task, with the request queues locked.
    unsafe extern "C" fn wait_for_reply(task: *mut bindings::rpc_task) {
        // The time of an RPC begins with it, and may be over when it has waited long for this
        // connection. It would be overdue at once, and that would cost the connection.
        // SAFETY: The task has a request and a client with its timeouts. It is the caller, and
        // nobody else looks at the times of its request.
        unsafe {
            let end = &raw mut (*(*task).tk_rqstp).rq_majortimeo;
            let period = || (*(*(*task).tk_client).cl_timeout).to_initval;
            *end = end_of_patience(time::jiffies(), *end, period);
        }
        // SAFETY: The task has a request that was sent, whose buffer is of `buf_alloc`, and which
        // is in the receive queue. The lock of that is held.
        unsafe { RpcBuffer::<T::Call>::wait_for_reply(task) };
    }

    /// Reports an overdue Reply. From an RPC task; does not sleep.
    unsafe extern "C" fn timer(xprt: *mut bindings::rpc_xprt, task: *mut bindings::rpc_task) {
        // There is no keep-alive below us: a new connection finds out what is wrong, and all
        // RPCs are sent again over it. One that waits for that says nothing of the new one.
        // SAFETY: The RPC layer calls this with a transport of `setup`.
        let (xprt, data) = unsafe { (Xprt::from_raw(xprt), Private::<Data<T>>::data(xprt)) };
        // SAFETY: The RPC layer calls this for a task that has a request.
        if unsafe { was_sent_on(task, xprt.connect_cookie()) } {
            // SAFETY: The request of the task has a buffer of `buf_alloc`, which it keeps until the
            // task is at its end.
            let prefix = unsafe { RpcBuffer::<T::Call>::prefix_of((*task).tk_rqstp) };
            // SAFETY: The task is valid for the call; these flags stay as they are.
            let flags = u32::from(unsafe { (*task).tk_flags });
            let retransmits = flags & bindings::RPC_TASK_NO_RETRANS_TIMEOUT == 0;
            data.transport.overdue(prefix.call(), retransmits);
        }
    }

    /// Ends an RPC: its unit of the congestion window comes back. From its task, with the lock
    /// of the transport's state held.
    unsafe extern "C" fn release_request(task: *mut bindings::rpc_task) {
        // SAFETY: The RPC layer calls it with a task that has a request, which nobody else changes.
        unsafe {
            let rqst = (*task).tk_rqstp;
            if Backchannel::is_reverse(rqst) {
                // It has taken none; see `Slot::fill`.
                (*rqst).rq_cong = 0;
            }
        }
        // SAFETY: The task is as the RPC layer hands it to this callback.
        unsafe { bindings::xprt_release_rqst_cong(task) };
    }

    /// Sets the port of the server, which was found out. From an RPC task; may sleep.
    unsafe extern "C" fn set_port(xprt: *mut bindings::rpc_xprt, port: c_ushort) {
        // SAFETY: Called with a transport of ours, by the task that looks for the port.
        unsafe {
            bindings::rpc_set_port((&raw mut (*xprt).addr).cast(), port);
            // The old strings stay where there is no memory for new ones.
            let _ = set_port_strings(xprt, port);
        }
    }

    /// Sets the timeouts that a mount wants. From a task that mounts.
    unsafe extern "C" fn set_connect_timeout(
        xprt: *mut bindings::rpc_xprt,
        connect_timeout: c_ulong,
        reconnect_timeout: c_ulong,
    ) {
        // SAFETY: Called with a transport of ours.
        let (xprt, data) = unsafe { (Xprt::from_raw(xprt), Private::<Data<T>>::data(xprt)) };
        trace::xprtrdma_op_set_cto(|| (xprt.server(), connect_timeout, reconnect_timeout));
        let (own, value) = (data.timeout.get(), connect_timeout.max(2 * INITIAL_BACKOFF));
        xprt.with_transport_lock(|xprt| {
            // SAFETY: The lock that protects these is held, and our timeout stays as long as the
            // transport.
            unsafe {
                if connect_timeout < (*xprt).connect_timeout {
                    own.write(*(*xprt).timeout);
                    ((*own).to_initval, (*own).to_maxval) = (value, value);
                    (*xprt).timeout = own;
                    (*xprt).connect_timeout = connect_timeout;
                }
                let longest = &raw mut (*xprt).max_reconnect_timeout;
                longest.write(longest.read().min(reconnect_timeout));
            }
        });
    }

    /// Prints statistics. From a reader of /proc; may sleep.
    unsafe extern "C" fn print_stats(xprt: *mut bindings::rpc_xprt, seq: *mut bindings::seq_file) {
        // SAFETY: Called with a transport of ours, and a file to print to.
        unsafe {
            let transport = &Private::<Data<T>>::data(xprt).transport;
            transport.print_stats(Xprt::from_raw(xprt), SeqFile::from_raw(seq));
        }
    }

    /// Breaks the connection for fault injection. From a sender, with the transport locked; may
    /// sleep.
    unsafe extern "C" fn inject_disconnect(xprt: *mut bindings::rpc_xprt) {
        // SAFETY: Called with a transport of ours, locked by the caller.
        unsafe {
            trace::xprtrdma_op_inject_dsc(|| Xprt::from_raw(xprt).server());
            Private::<Data<T>>::data(xprt).transport.inject_disconnect();
        }
    }

    /// Allows reverse Calls. From a task that mounts; may sleep.
    unsafe extern "C" fn bc_setup(xprt: *mut bindings::rpc_xprt, min: c_uint) -> c_int {
        // SAFETY: Called with a transport of ours, by a task that mounts.
        let data = unsafe { Private::<Data<T>>::data(xprt) };
        // Twice as many: a request comes back after its Reply is out, and the server may send the
        // next Call as soon as it has that.
        let slots = 2 * T::REVERSE_SLOTS as usize;
        if let Err(e) = data
            .shared
            .beside
            .backchannel
            .setup(slots, T::longest_reverse())
        {
            return e.to_errno();
        }
        // SAFETY: The RPC layer calls this with a transport that it holds.
        let xprt = unsafe { Xprt::from_raw(xprt) };
        trace::xprtrdma_cb_setup(|| (xprt.server(), min));
        data.transport.reverse_enabled();
        0
    }

    /// Returns the greatest length of a reverse message. Any context.
    unsafe extern "C" fn bc_maxpayload(xprt: *mut bindings::rpc_xprt) -> usize {
        // SAFETY: Called with a transport of ours.
        let data = unsafe { Private::<Data<T>>::data(xprt) };
        data.transport.reverse_payload()
    }

    /// Returns the number of reverse Calls at once. Any context.
    unsafe extern "C" fn bc_num_slots(_xprt: *mut bindings::rpc_xprt) -> c_uint {
        T::REVERSE_SLOTS
    }

    /// Takes a reverse request back. May sleep.
    unsafe extern "C" fn bc_free_rqst(rqst: *mut bindings::rpc_rqst) {
        // SAFETY: The request has a reference to its transport, which is of `setup`.
        let (xprt, data) = unsafe { ((*rqst).rq_xprt, Private::<Data<T>>::data((*rqst).rq_xprt)) };
        // SAFETY: The backchannel of this transport handed the request out, and the RPC layer is
        // done with it.
        let (connection, answered) = unsafe { data.shared.beside.backchannel.put(rqst) };
        data.transport.reverse_ended(connection, !answered);
        // SAFETY: The reference was taken for the request, and is used no more.
        unsafe { bindings::xprt_put(xprt) };
    }

    /// Ends reverse Calls. From the task that tears the callback service or the mount down.
    unsafe extern "C" fn bc_destroy(xprt: *mut bindings::rpc_xprt, _max: c_uint) {
        // SAFETY: Called with a transport of ours.
        let data = unsafe { Private::<Data<T>>::data(xprt) };
        data.transport.reverse_disabled();
        data.shared.beside.backchannel.destroy();
    }
}
