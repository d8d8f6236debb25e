// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The RPC layer's view of a transport, and what a transport may do with it.

use crate::kapi::{
    bindings,
    sys::{
        address::SocketAddress,
        bit::test_bit,
        net::Net,
        time::{
            self,
            HZ, //
        },
    },
};
use kernel::{
    container_of,
    ffi::c_ulong,
    seq_file::SeqFile,
    seq_print,
    time::Jiffies,
    types::Opaque, //
};

/// The least delay before a connection that follows a useless one, and its growth.
pub(super) const INITIAL_BACKOFF: Jiffies = 5 * HZ;

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

/// A table of calls without any. The RPC layer asks whether there is one that it can do without.
// SAFETY: All zeroes is a table of no functions.
pub(super) const NO_CALLS: bindings::rpc_xprt_ops = unsafe { core::mem::zeroed() };

/// The RPC layer's view of a transport.
#[repr(transparent)]
pub(crate) struct Xprt(Opaque<bindings::rpc_xprt>);

// SAFETY: What is offered here may be done by any thread: the RPC layer has its own locks, and
// single words are read and written as it does.
unsafe impl Sync for Xprt {}

/// Reads a word of a transport that is borrowed, and that others may change at the time.
macro_rules! word {
    ($xprt:expr, $($field:ident).+) => {
        // SAFETY: The transport is valid while it is borrowed. A volatile read of a word is one
        // access, as with the RPC layer's `READ_ONCE()`.
        unsafe { (&raw const (*$xprt).$($field).+).read_volatile() }
    };
}

impl Xprt {
    /// Borrows a transport.
    ///
    /// # Safety
    ///
    /// `xprt` must be valid for `'a`.
    pub(super) unsafe fn from_raw<'a>(xprt: *mut bindings::rpc_xprt) -> &'a Self {
        // SAFETY: Valid by the contract of this function; the type is transparent, and opaque: no
        // reference to the structure itself is made.
        unsafe { &*xprt.cast::<Self>() }
    }

    pub(super) fn as_raw(&self) -> *mut bindings::rpc_xprt {
        self.0.get()
    }

    /// Runs `f` with the lock of the request queues held.
    pub(super) fn with_queue_lock<R>(&self, f: impl FnOnce(*mut bindings::rpc_xprt) -> R) -> R {
        // SAFETY: The transport is valid while it is borrowed, and this is a lock of it.
        unsafe { self.locked(&raw mut (*self.as_raw()).queue_lock, f) }
    }

    /// Runs `f` with the lock of the transport's state held.
    pub(super) fn with_transport_lock<R>(&self, f: impl FnOnce(*mut bindings::rpc_xprt) -> R) -> R {
        // SAFETY: The transport is valid while it is borrowed, and this is a lock of it.
        unsafe { self.locked(&raw mut (*self.as_raw()).transport_lock, f) }
    }

    /// Runs `f` with a lock held.
    ///
    /// # Safety
    ///
    /// The lock must be one of the transport.
    unsafe fn locked<R>(
        &self,
        lock: *mut bindings::spinlock_t,
        f: impl FnOnce(*mut bindings::rpc_xprt) -> R,
    ) -> R {
        // SAFETY: The lock is part of the transport and initialised.
        unsafe { bindings::spin_lock(lock) };
        let result = f(self.as_raw());
        // SAFETY: Locked above.
        unsafe { bindings::spin_unlock(lock) };
        result
    }

    /// Hands a reverse request to the callback service, if there is one, with a reference to the
    /// transport that is dropped when the service gives the request back. Does not sleep.
    ///
    /// False, too, when the transport is going: all mounts of a minor version share the service, so
    /// that it may be set although the NFS client of this transport has ended.
    ///
    /// # Safety
    ///
    /// `rqst` must be a reverse request of this transport, which the service owns if this returns
    /// true. A service that is set must be there: it is until `bc_destroy`, which the NFS client
    /// calls before it lets its service go.
    pub(super) unsafe fn enqueue_reverse_request(&self, rqst: *mut bindings::rpc_rqst) -> bool {
        let enqueue = |xprt: *mut bindings::rpc_xprt| {
            // SAFETY: The lock that protects the service is held.
            let service = unsafe { (&raw const (*xprt).bc_serv).read() };
            // SAFETY: The transport is valid while it is borrowed, even if there are no references
            // to it any more.
            if service.is_null() || unsafe { bindings::xprt_get(xprt) }.is_null() {
                return false;
            }
            // SAFETY: The service is there by the contract of this function, and has a pool. The
            // request is valid, and on no list.
            unsafe { bindings::bc_enqueue(rqst, service) };
            true
        };
        // SAFETY: The transport is valid while it is borrowed, and this is a lock of it.
        unsafe { self.locked(&raw mut (*self.as_raw()).bc_pa_lock, enqueue) }
    }

    /// Returns the address of the server, as others are told of it.
    pub(crate) fn server(&self) -> SocketAddress {
        // SAFETY: The transport is valid while it is borrowed. Its port may be found out meanwhile,
        // which at worst mixes two ports.
        SocketAddress::new(unsafe { (&raw const (*self.as_raw()).addr).read_volatile() })
    }

    /// Returns whether something is swapped to a file of the mount.
    pub(crate) fn is_swapper(&self) -> bool {
        // SAFETY: The transport is valid while it is borrowed.
        unsafe { bindings::xprt_is_swapper(self.as_raw()) }
    }

    /// Returns the network namespace of the mount, which the transport holds.
    pub(crate) fn net(&self) -> &Net {
        // SAFETY: The transport is valid while it is borrowed, and holds its namespace, which it
        // was made with.
        unsafe { Net::from_raw((*self.as_raw()).xprt_net) }
    }

    /// Returns an XID for a Call that the RPC layer knows nothing of. Any context that may take a
    /// spin lock.
    pub(crate) fn next_xid(&self) -> u32 {
        let next = |xprt: *mut bindings::rpc_xprt| {
            // SAFETY: The lock that protects the number is held.
            unsafe {
                let xid = (*xprt).xid;
                (*xprt).xid = xid.wrapping_add(1);
                // The RPC layer takes it for one in network order.
                u32::from_be(xid)
            }
        };
        // SAFETY: The transport is valid while it is borrowed, and this is a lock of it.
        unsafe { self.locked(&raw mut (*self.as_raw()).reserve_lock, next) }
    }

    /// Returns the number of RPCs that may be under way at once.
    pub(crate) fn max_requests(&self) -> u32 {
        word!(self.as_raw(), max_reqs)
    }

    /// Returns the number by which user space knows the transport.
    pub(crate) fn number(&self) -> u32 {
        word!(self.as_raw(), id)
    }

    /// Returns how many RPCs may be under way by [`Self::set_window`], and how many are. The two
    /// are not read at once.
    pub(crate) fn window(&self) -> (u32, u32) {
        let calls = |units: c_ulong| (units >> bindings::RPC_CWNDSHIFT) as u32;
        let (window, used) = (word!(self.as_raw(), cwnd), word!(self.as_raw(), cong));
        (calls(window), calls(used))
    }

    /// Returns the cookie of the present connection.
    pub(crate) fn connect_cookie(&self) -> u32 {
        word!(self.as_raw(), connect_cookie)
    }

    /// Returns whether the RPC layer takes the transport for connected.
    pub(crate) fn is_connected(&self) -> bool {
        // SAFETY: The transport is valid while it is borrowed.
        unsafe { test_bit(bindings::XPRT_CONNECTED, &raw const (*self.as_raw()).state) }
    }

    /// Returns whether the RPC layer waits for a connection.
    pub(crate) fn is_connecting(&self) -> bool {
        // SAFETY: The transport is valid while it is borrowed.
        unsafe { test_bit(bindings::XPRT_CONNECTING, &raw const (*self.as_raw()).state) }
    }

    /// Lets `credits` RPCs be under way. Those that are now keep theirs, also over a reconnect.
    pub(crate) fn set_window(&self, credits: u32) {
        self.with_transport_lock(|xprt| {
            // SAFETY: The lock that protects it is held.
            unsafe { (*xprt).cwnd = (credits as c_ulong) << bindings::RPC_CWNDSHIFT };
        });
    }

    /// Sets the bytes of the longest payload, which mounts ask for as they begin.
    pub(crate) fn set_max_payload(&self, bytes: usize) {
        self.with_transport_lock(|xprt| {
            // SAFETY: The transport is valid while it is borrowed. Nobody else writes this, and
            // those who read it take any value.
            unsafe { (&raw mut (*xprt).max_payload).write_volatile(bytes) };
        });
    }

    /// Lets a request go on that has a unit of the congestion window, as a reverse Reply has, after
    /// one that has none was told to wait.
    ///
    /// The RPC layer looks for such a request at the head of its queue, and marks the transport if
    /// there is none. One that is queued in between takes the mark away before it is made, and
    /// would wait for what it has.
    #[cold]
    pub(super) fn let_pass(&self) {
        self.with_queue_lock(|xprt| {
            // SAFETY: The lock of the queue is held.
            let first = unsafe { WaitToSend::of(xprt) }.next();
            // SAFETY: A request is valid while it is in the queue, whose lock is held.
            let may_pass = first.is_some_and(|rqst| unsafe { (*rqst).rq_cong != 0 });
            if may_pass {
                let mark = bindings::XPRT_CWND_WAIT as c_ulong;
                // SAFETY: The transport is valid; as with the RPC layer, it is one atomic change.
                unsafe { kernel::bindings::clear_bit(mark, &raw mut (*xprt).state) };
            }
        });
    }

    /// Puts a request that is about to be sent behind all others that wait for that and are counted
    /// in the window. False if there are no others.
    ///
    /// Those that are counted stay in front, as the RPC layer has them: it lets nobody send while
    /// the first one waits for the window, and that opens when one that is counted has its Reply.
    #[cold]
    pub(super) fn put_last(&self, rqst: *mut bindings::rpc_rqst) -> bool {
        self.with_queue_lock(|xprt| {
            // SAFETY: The lock of the queue is held.
            let waiting = unsafe { WaitToSend::of(xprt) };
            // SAFETY: A request is valid while it is in the queue, whose lock is held.
            let mut counted = waiting.take_while(|rqst| unsafe { (**rqst).rq_cong != 0 });
            // The first one alone is sent; if that is another, this one was taken from the queue.
            if counted.next() != Some(rqst) {
                return false;
            }
            let last = counted.last();
            if let Some(last) = last {
                // SAFETY: Both are in the queue, whose lock is held.
                unsafe { bindings::list_move(&raw mut (*rqst).rq_xmit, &raw mut (*last).rq_xmit) };
            }
            last.is_some()
        })
    }

    /// Notes that the connection was of use: the next reconnect need not be delayed.
    pub(crate) fn reset_backoff(&self) {
        if word!(self.as_raw(), reestablish_timeout) != 0 {
            // SAFETY: The transport is valid while it is borrowed. A volatile write of a word is
            // one access; the RPC layer reads it whole.
            unsafe { (&raw mut (*self.as_raw()).reestablish_timeout).write_volatile(0) };
        }
    }

    /// Makes the present sender wait for room; to be called before it looks again.
    pub(crate) fn wait_for_space(&self) {
        // SAFETY: The transport is valid while it is borrowed.
        unsafe { bindings::xprt_wait_for_buffer_space(self.as_raw()) };
    }

    /// Wakes the sender, if one waits: there is room again.
    pub(crate) fn space(&self) {
        // SAFETY: The transport is valid while it is borrowed.
        unsafe { bindings::xprt_write_space(self.as_raw()) };
    }

    /// Takes a message from the count of unknown XIDs that was ours; a reader of the count in
    /// between sees one more.
    pub(crate) fn was_ours(&self) {
        self.with_queue_lock(|xprt| {
            // SAFETY: The transport is valid while it is borrowed. The lock is held by which the
            // count goes.
            unsafe { (*xprt).stat.bad_xids = (*xprt).stat.bad_xids.wrapping_sub(1) };
        });
    }

    /// Prints what the RPC layer has counted, as the statistics of a mount have it.
    pub(crate) fn print_counts(&self, seq: &SeqFile) {
        let xprt = self.as_raw();
        let idle = match self.is_connected() {
            true => time::since(word!(xprt, last_used)) / HZ,
            false => 0,
        };
        seq_print!(
            seq,
            "{} {} {} {} {} {} {} {} {} ",
            word!(xprt, stat.bind_count),
            word!(xprt, stat.connect_count),
            word!(xprt, stat.connect_time) / HZ,
            idle,
            word!(xprt, stat.sends),
            word!(xprt, stat.recvs),
            word!(xprt, stat.bad_xids),
            word!(xprt, stat.req_u),
            word!(xprt, stat.bklog_u),
        );
    }
}

/// Walks through the requests that wait to be sent, in order.
///
/// # Invariants
///
/// `at` is the head of the queue of a transport, `queue`, or the part of a request that is in it.
pub(super) struct WaitToSend {
    queue: *mut bindings::list_head,
    at: *mut bindings::list_head,
}

impl WaitToSend {
    /// Begins at the first request of a transport.
    ///
    /// # Safety
    ///
    /// The lock of the transport's request queues must be held as long as the value is used. What
    /// was handed out last must stay in the queue, or not be followed by another.
    pub(super) unsafe fn of(xprt: *mut bindings::rpc_xprt) -> Self {
        // SAFETY: Whoever has the lock of a transport has a valid one.
        let queue = unsafe { &raw mut (*xprt).xmit_queue };
        // INVARIANT: It begins at the head.
        Self { queue, at: queue }
    }
}

impl Iterator for WaitToSend {
    type Item = *mut bindings::rpc_rqst;

    fn next(&mut self) -> Option<Self::Item> {
        // SAFETY: By the type invariant it is in the queue, whose lock is held by the contract of
        // `of`, so that what follows is the head, or a part of a request.
        self.at = unsafe { (*self.at).next };
        let is_rqst = self.at != self.queue;
        // SAFETY: What is in the queue, and is not its head, is that part of a request.
        is_rqst.then(|| unsafe { container_of!(self.at, bindings::rpc_rqst, rq_xmit) })
    }
}

#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
mod tests;
