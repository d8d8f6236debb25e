// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The transport of a mount, which outlives its connections.

#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
#[path = "../../kunit/mount.rs"]
mod tests;

use crate::{
    client::{
        alarm::Reason,
        call::{
            Call,
            Phase, //
        },
        connect::Connector,
        connection::{
            Connection,
            ConnectionId, //
        },
        keep_alive::KeepAlive,
        marshal,
        region_plan::PAYLOAD_PAGES,
        reverse,
        settle,
        stats::Stats, //
    },
    kapi::{
        page::Fenced,
        sunrpc::{
            Class,
            Connecting,
            ReverseRqst,
            RpcBuffer,
            Rqst,
            Task,
            Transport,
            Xprt,
            XprtHandle, //
        },
        sys::{
            address::SocketAddress,
            memalloc::MemoryScope,
            sysctl,
            time::HZ,
            workqueue::{
                work_class,
                DelayedWork,
                OwnedQueue,
                Timer,
                WorkItem, //
            },
        },
        trace, //
    },
    transport::send_queue::Waiter, //
};
use core::ffi::{
    c_int,
    CStr, //
};
use kernel::{
    alloc::flags::__GFP_NOWARN,
    new_spinlock,
    page::PAGE_SIZE,
    prelude::*,
    seq_file::SeqFile,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc,
        ArcBorrow,
        SpinLock, //
    },
    time::Jiffies, //
};

/// Reverse Calls that a server may have under way at once: the credits that we grant it.
pub(crate) const REVERSE_SLOTS: u32 = 16;
/// How long the local invalidation of a cancelled RPC's regions may take. It comes after the Sends
/// in front of it, and a connection on which those do not get out is of no use.
const FENCE_TIMEOUT: Jiffies = 5 * HZ;
/// How long all credits may be with Calls that nobody waits for: as long as an RPC waits that
/// somebody does wait for.
const PATIENCE: Jiffies = 60 * HZ;
/// Memory for the messages of all RPCs but a few.
const USUAL_LEN: usize = RpcBuffer::<Call>::room_of(PAGE_SIZE);
/// RPCs that need no memory to begin, so that memory can be freed by writing it to the server.
const RESERVED: usize = 2;
/// Regions that are made at once when they are short, at least.
const MORE_REGIONS: u32 = 4;

/// What the parts of a mount's transport share.
#[pin_data]
pub(crate) struct Shared {
    pub(crate) xprt: XprtHandle<Mount>,
    pub(crate) stats: Stats,
    #[pin]
    connection: SpinLock<Option<Arc<Connection>>>,
    #[pin]
    idle: SpinLock<KVec<RpcBuffer<Call>>>,
    /// Where to connect to next, and what waits for that.
    #[pin]
    attempt: SpinLock<Option<(SocketAddress, Connecting)>>,
    reverse: Atomic<bool>,
    connections: Atomic<u64>,
}

impl Shared {
    /// How memory may be had for the transport's own work.
    pub(crate) fn memory_scope(&self) -> MemoryScope {
        MemoryScope::enter(self.xprt.is_swapper())
    }

    /// The present connection, if any.
    pub(super) fn connection(&self) -> Option<Arc<Connection>> {
        self.connection.lock().clone()
    }

    /// Where to connect to, and what waits for that; for one attempt.
    pub(super) fn take_attempt(&self) -> Option<(SocketAddress, Connecting)> {
        self.attempt.lock().take()
    }

    /// A new connection is up.
    pub(crate) fn begin_connection(&self, connection: Arc<Connection>) {
        let old = self.connection.lock().replace(connection);
        drop(old);
        // They may have been enabled, and Calls have come, while there was no connection to be seen.
        if self.reverse_enabled() {
            self.expect_reverse_calls();
        }
    }

    /// Makes the present connection ready for reverse Calls. May sleep.
    fn expect_reverse_calls(&self) {
        if let Some(connection) = self.connection() {
            let requester = connection.handler();
            requester.credits.lock().expect_reverse_calls(REVERSE_SLOTS);
            // Without memory now the next Call provides them.
            let _ = requester.provide_receives(&connection);
            reverse::room(requester);
        }
    }

    /// Ends the present connection, if there is one. Sleeps until nothing of it is left.
    pub(crate) fn end_connection(&self) {
        let Some(connection) = self.connection() else {
            return;
        };
        connection.handler().alarm.silence();
        // It stays known until it is gone: whoever must wait for that finds it.
        connection.shutdown();
        let mut slot = self.connection.lock();
        let same = slot.as_ref().is_some_and(|c| Arc::ptr_eq(c, &connection));
        let old = if same { slot.take() } else { None };
        drop(slot);
        drop(old);
    }

    /// Makes `n` more regions for a connection, but never more than `most` in all, and says how
    /// many. May sleep.
    ///
    /// An error only if it made none.
    pub(super) fn make_regions(&self, connection: &Connection, n: u32, most: u32) -> Result<u32> {
        let made = connection.grow_regions(n, most);
        let count = made.unwrap_or(0);
        self.stats.regions_made.add(u64::from(count));
        trace::xprtrdma_createmrs(|| (*connection.handler().alarm.address(), count));
        made
    }

    /// An identifier for a new connection.
    pub(crate) fn next_id(&self) -> ConnectionId {
        ConnectionId(self.connections.fetch_add(1, Relaxed))
    }

    /// Whether there is somebody to answer reverse Calls.
    pub(crate) fn reverse_enabled(&self) -> bool {
        self.reverse.load(Relaxed)
    }
}

/// What an RPC begins with where memory is short. May sleep.
fn reserve() -> Result<KVec<RpcBuffer<Call>>> {
    let mut idle = KVec::with_capacity(RESERVED, GFP_KERNEL)?;
    for _ in 0..RESERVED {
        idle.push(
            RpcBuffer::new(USUAL_LEN, Call::new(GFP_KERNEL)?)?,
            GFP_KERNEL,
        )?;
    }
    Ok(idle)
}

/// The work item that makes regions when they are short, since the sender must not wait for that.
struct RegionMaker(Arc<Shared>);

impl WorkItem for RegionMaker {
    fn run(&self, timer: Timer<'_>) {
        let _scope = self.0.memory_scope();
        if let Some(connection) = self.0.connection() {
            let (calls, plan) = (connection.handler().max_calls, connection.handler().plan);
            let more = plan.message().max(MORE_REGIONS);
            match self.0.make_regions(&connection, more, calls * plan.rpc()) {
                Ok(_) => (),
                // Nobody waits for regions of a connection that is going.
                Err(e) if e == ENOTCONN => (),
                // Whoever gives regions back wakes the sender, too.
                Err(_) => {
                    timer.queue(HZ / 10);
                    return;
                }
            }
            // Where there can be no more, they come back with the RPCs that have them.
            if connection.idle_regions() == 0 {
                return;
            }
        }
        self.0.xprt.space();
    }
}

/// The work item that gives a connection up whose credits do not come back.
///
/// The RPC layer times out only Calls that were sent. Those that wait for a credit wait for the
/// Reply of another, which the server may have dropped, and which nobody times out if it was
/// cancelled.
struct Patience(Arc<Shared>);

impl WorkItem for Patience {
    fn run(&self, _timer: Timer<'_>) {
        if let Some(connection) = self.0.connection() {
            let requester = connection.handler();
            if requester.credits.lock().all_abandoned() {
                requester.alarm.raise(Reason::NoCredits);
            }
        }
    }
}

/// The transport of a mount.
pub(crate) struct Mount {
    // The work items go first: they use the shared part.
    connector: DelayedWork<Connector>,
    region_maker: DelayedWork<RegionMaker>,
    patience: DelayedWork<Patience>,
    keep_alive: Arc<DelayedWork<KeepAlive>>,
    shared: Arc<Shared>,
}

#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
impl Mount {
    /// What its parts share.
    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }
}

impl Mount {
    /// Fences the memory of an RPC whose Reply has not come, or is not all that it waits for. May
    /// sleep.
    #[cold]
    fn fence_unanswered(&self, call: ArcBorrow<'_, Call>, task: Task<'_>) -> Fenced {
        loop {
            // In this order, so that the lock is not held where the last reference may go.
            let connection = self.shared.connection();
            let mut state = call.state.lock();
            if let Some(regions) = state.regions() {
                regions.drop_dead();
            }
            let sent = match (&connection, state.phase) {
                (Some(c), Phase::Sent(id)) => c.handler().id == id,
                _ => false,
            };
            if sent {
                // A Reply finds nothing to do any more; its credit comes back only with it.
                state.phase = Phase::Fencing;
                if let Some(connection) = &connection {
                    connection.handler().credits.lock().abandon(state.xid);
                }
            }
            if let Some(fenced) = state.end() {
                return fenced;
            }
            let Some(connection) = connection else {
                // Regions are dead before their connection is forgotten.
                drop(state);
                continue;
            };
            let _scope = self.shared.memory_scope();
            call.fenced.reinit();
            trace::xprtrdma_mrs_zap(|| task.id());
            let posted = state.regions().map(|regions| {
                connection.invalidate(regions, call.into(), Waiter::Task, || task.id())
            });
            drop(state);
            if let Some(Ok(())) = posted {
                // In time or not: what the regions say counts.
                let _ = call.fenced.wait_timeout(FENCE_TIMEOUT);
            }
            if call.state.lock().fenced().is_none() {
                // Nobody knows what the regions are until the tear-down has taken them away.
                connection.handler().alarm.raise(Reason::NotFenced);
                connection.shutdown();
            }
        }
    }
}

static CLASS: Class = Class::new();

impl Transport for Mount {
    type Call = Call;
    const IDENT: c_int = 256;
    const NAME: &'static CStr = c"rdma";
    const NETIDS: [&'static CStr; 2] = [c"rdma", c"rdma6"];
    const MAX_PAYLOAD: usize = PAYLOAD_PAGES as usize * PAGE_SIZE;

    fn class() -> &'static Class {
        &CLASS
    }

    fn new(xprt: XprtHandle<Self>, queue: Arc<OwnedQueue>) -> Result<Self> {
        let reserve = reserve()?;
        let shared = Arc::pin_init(
            pin_init!(Shared {
                xprt,
                stats: Stats::new(),
                connection <- new_spinlock!(None, "rpcrdma_connection"),
                idle <- new_spinlock!(reserve, "rpcrdma_idle_calls"),
                attempt <- new_spinlock!(None, "rpcrdma_attempt"),
                reverse: Atomic::new(false),
                connections: Atomic::new(0),
            }),
            GFP_KERNEL,
        )?;
        let keep_alive = Arc::new(
            DelayedWork::<KeepAlive>::new(
                queue.clone(),
                work_class!(c"rpcrdma_keep_alive"),
                Ok::<_, Error>(KeepAlive(shared.clone())),
                GFP_KERNEL,
            )?,
            GFP_KERNEL,
        )?;
        let connector = Connector {
            shared: shared.clone(),
            keep_alive: keep_alive.clone(),
        };
        Ok(Self {
            connector: DelayedWork::new(
                queue.clone(),
                work_class!(c"rpcrdma_connect"),
                Ok::<_, Error>(connector),
                GFP_KERNEL,
            )?,
            keep_alive,
            region_maker: DelayedWork::new(
                queue.clone(),
                work_class!(c"rpcrdma_regions"),
                Ok::<_, Error>(RegionMaker(shared.clone())),
                GFP_KERNEL,
            )?,
            patience: DelayedWork::new(
                queue,
                work_class!(c"rpcrdma_patience"),
                Ok::<_, Error>(Patience(shared.clone())),
                GFP_KERNEL,
            )?,
            shared,
        })
    }

    fn slots() -> u32 {
        sysctl::slot_table_entries()
    }

    fn connect(&self, delay: Jiffies, address: SocketAddress, connecting: Connecting) {
        // The work item took the last one before that ended.
        *self.shared.attempt.lock() = Some((address, connecting));
        self.connector.queue(delay);
    }

    fn close(&self) {
        self.shared.end_connection();
    }

    fn destroy(&self) {
        self.connector.cancel_sync();
        self.region_maker.cancel_sync();
        self.patience.cancel_sync();
        self.keep_alive.cancel_sync();
        self.shared.end_connection();
        let idle = core::mem::take(&mut *self.shared.idle.lock());
        drop(idle);
    }

    fn overdue(&self) {
        if let Some(connection) = self.shared.connection() {
            connection.handler().alarm.raise(Reason::Overdue);
        }
    }

    fn inject_disconnect(&self) {
        if let Some(connection) = self.shared.connection() {
            // Without a connection there is nothing to break.
            let _ = connection.disconnect();
        }
    }

    #[inline]
    fn take_buffer(&self) -> Result<RpcBuffer<Call>> {
        let idle = self.shared.idle.lock().pop();
        match idle {
            Some(buffer) => Ok(buffer),
            None => RpcBuffer::new(USUAL_LEN, Call::new(GFP_NOWAIT)?),
        }
    }

    #[inline]
    fn fence(&self, call: ArcBorrow<'_, Call>, task: Task<'_>) -> Fenced {
        let mut state = call.state.lock();
        // As a rule the Reply has come, and the connection is not needed.
        if !state.is_sent() {
            if let Some(fenced) = state.end() {
                return fenced;
            }
        }
        drop(state);
        self.fence_unanswered(call, task)
    }

    #[inline]
    fn give_back_buffer(&self, buffer: RpcBuffer<Call>) {
        let mut idle = self.shared.idle.lock();
        // Memory beyond the usual is for one RPC alone, and what there is no room for in the list
        // is freed; but the reserve stays, for which there is room.
        if idle.len() < RESERVED || buffer.len() <= USUAL_LEN {
            if let Err(full) = idle.push_within_capacity(buffer) {
                let _ = idle.push(full.0, GFP_NOWAIT | __GFP_NOWARN);
            }
        }
    }

    #[inline]
    fn send(&self, xprt: &Xprt, rqst: Rqst<'_, Self>) -> Result {
        let connection = self.shared.connection().ok_or(ENOTCONN)?;
        let result = marshal::send(&connection, xprt, &rqst);
        if result == Err(EAGAIN) || result == Err(ENOBUFS) {
            let requester = connection.handler();
            if requester.regions_short() {
                self.region_maker.queue(0);
            }
            if requester.credits.lock().all_abandoned() {
                self.patience.queue(PATIENCE);
            }
        }
        result
    }

    fn send_reverse_reply(&self, _xprt: &Xprt, rqst: ReverseRqst<'_>) -> Result {
        let connection = self.shared.connection().ok_or(ENOTCONN)?;
        marshal::send_reverse_reply(&connection, &rqst)
    }

    fn reverse_enabled(&self) {
        self.shared.reverse.store(true, Relaxed);
        self.shared.expect_reverse_calls();
    }

    fn reverse_disabled(&self) {
        self.shared.reverse.store(false, Relaxed);
        if let Some(connection) = self.shared.connection() {
            reverse::end(connection.handler());
        }
    }

    fn reverse_ended(&self, connection: u64, unanswered: bool) {
        let Some(present) = self.shared.connection() else {
            return;
        };
        let requester = present.handler();
        if unanswered && requester.id.0 == connection {
            requester.reverse.lock().answered();
            if self.shared.reverse_enabled() {
                settle::give_up(requester, Reason::Unanswered);
            }
        }
        reverse::room(requester);
    }

    fn reverse_slots(&self) -> u32 {
        REVERSE_SLOTS
    }

    fn reverse_payload(&self) -> usize {
        let inline = match self.shared.connection() {
            Some(connection) => {
                let thresholds = connection.handler().thresholds();
                thresholds.send.min(thresholds.receive)
            }
            None => 1024,
        };
        inline.min(PAGE_SIZE).saturating_sub(xdr::MIN_HEADER)
    }

    fn print_stats(&self, xprt: &Xprt, seq: &SeqFile) {
        self.shared.stats.print(xprt, seq);
    }
}
