// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! One connection of a mount, from connect to tear-down.

use crate::{
    client::{
        call::{
            Call,
            ConnectionId, //
        },
        chunks::Thresholds,
        cm_state::CmState,
        keep_alive_state::KeepAliveState,
        loss::{
            LossNotifier,
            LossReason, //
        },
        offer::Offer,
        pins::{
            Pins,
            FENCE_TIMEOUT, //
        },
        pulls::Pulls,
        reverse_calls::ReverseCalls,
        sizes::REVERSE_SLOTS,
        stats::Stat,
        xprt_state::XprtState, //
    },
    kapi::{
        sys::{
            time,
            workqueue::Hasten, //
        },
        trace, //
    },
    transport::{
        endpoint::Endpoint,
        flow::credits::Credit,
        plan::RegionCounts,
        send_buffer::{
            Purpose,
            SendBuffer, //
        },
    },
};
use kernel::{
    new_spinlock,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc,
        SetOnce,
        SpinLock, //
    },
    time::Jiffies, //
};

use xdr::{
    CallPayload,
    Direction,
    FixedHeader,
    Rejected,
    RDMA_NOMSG, //
};

/// The requester's part of a connection.
#[pin_data]
pub(crate) struct Requester {
    pub(crate) shared: Arc<XprtState>,
    pub(crate) id: ConnectionId,
    /// The program and version of the RPC that the connection was made for. All programs of a mount
    /// are of one server, which answers a NULL Call to each.
    pub(super) program: (u32, u32),
    pub(crate) loss: Arc<LossNotifier>,
    pub(super) cm: Arc<CmState<Arc<LossNotifier>>>,
    /// The most RPCs outstanding at once: the credits that we ask for.
    pub(crate) max_calls: u32,
    pub(crate) regions: RegionCounts,
    #[pin]
    pub(crate) reverse: SpinLock<ReverseCalls>,
    #[pin]
    pub(super) pulls: SpinLock<Pulls>,
    /// The RPCs whose requests are held, with the time since when.
    #[pin]
    pins: SpinLock<Pins>,
    /// The server provides Replies for us to pull.
    server_provides: Atomic<bool>,
    invalidates: Atomic<bool>,
    pub(crate) watch: KeepAliveState,
    /// RPCs wait for the end of the connection to be fenced.
    deferred: Atomic<bool>,
    /// The work item that ends the connection for them; none before the connection is up.
    keep_alive: SetOnce<Arc<dyn Hasten>>,
    regions_short: Atomic<bool>,
    /// The device looks at the keys that the server invalidates, so that it may be asked to.
    names_keys: Atomic<bool>,
}

/// One connection.
pub(crate) type Connection = Endpoint<Requester>;

impl Requester {
    /// Creates the requester of a connection with at most `max_calls` RPCs and regions by `plan`.
    pub(crate) fn new(
        shared: Arc<XprtState>,
        id: ConnectionId,
        program: (u32, u32),
        loss: Arc<LossNotifier>,
        cm: Arc<CmState<Arc<LossNotifier>>>,
        max_calls: u32,
        regions: RegionCounts,
    ) -> Result<impl PinInit<Self>> {
        let reverse = ReverseCalls::new()?;
        let pulls = Pulls::new(max_calls)?;
        let rpcs = shared.xprt.max_requests() as usize;
        let pins = Pins::new(rpcs)?;
        Ok(pin_init!(Self {
            shared,
            id,
            program,
            loss,
            cm,
            max_calls,
            regions,
            reverse <- new_spinlock!(reverse, "rpcrdma_reverse"),
            pulls <- new_spinlock!(pulls, "rpcrdma_pulls"),
            pins <- new_spinlock!(pins, "rpcrdma_pins"),
            server_provides: Atomic::new(false),
            invalidates: Atomic::new(false),
            deferred: Atomic::new(false),
            keep_alive: SetOnce::new(),
            watch: KeepAliveState::new(),
            regions_short: Atomic::new(false),
            names_keys: Atomic::new(false),
        }))
    }

    /// Notes that the server may be asked to invalidate keys.
    pub(super) fn set_names_keys(&self) {
        self.names_keys.store(true, Relaxed);
    }

    /// Returns the handle of the chunks of a Call that the server is asked to invalidate, where the
    /// protocol says it: any, since each saves a local invalidation. Zero for none.
    pub(super) fn handle_to_invalidate(&self, offer: &Offer) -> u32 {
        let mut chunks = [&offer.reply, &offer.write, &offer.read].into_iter();
        let last = chunks.find_map(|chunk| chunk.last());
        last.filter(|_| self.names_keys.load(Relaxed))
            .map_or(0, |segment| segment.handle)
    }

    /// Notes that the server provides Replies, and whether it wants keys to be invalidated, when
    /// the connection is up.
    pub(super) fn set_provides(&self, invalidates: bool) {
        self.server_provides.store(true, Relaxed);
        self.invalidates.store(invalidates, Relaxed);
    }

    /// Returns whether Replies too long for the offered chunks can be pulled.
    #[inline]
    pub(super) fn pulls_replies(&self) -> bool {
        self.server_provides.load(Relaxed)
    }

    /// Returns whether a key of each pulled Reply is to be invalidated at the server.
    pub(super) fn invalidates_remotely(&self) -> bool {
        self.invalidates.load(Relaxed)
    }

    /// Returns whether `call` is a Reply to be pulled: no server that provides Replies sends other
    /// Calls with Position Zero. From another server it counts as one if a Call awaits its XID,
    /// which then has to end.
    pub(super) fn is_provided(&self, connection: &Connection, call: &xdr::Call<'_>) -> bool {
        matches!(call.payload, CallPayload::PositionZero(_))
            && (self.pulls_replies() || connection.lock().flow.credits.awaits(call.xid))
    }

    /// Returns whether a malformed message was meant as a Reply to be pulled.
    pub(super) fn is_bad_provided(&self, rejected: &Rejected) -> bool {
        let long = |header: FixedHeader| header.procedure == RDMA_NOMSG;
        self.pulls_replies()
            && rejected.direction == Some(Direction::Call)
            && rejected.header.is_some_and(long)
    }

    /// Notes that regions are short.
    pub(super) fn note_regions_short(&self) {
        self.regions_short.store(true, Relaxed);
    }

    /// Asks the work item for more regions, since a Call waits for some.
    pub(super) fn want_regions(&self) {
        self.note_regions_short();
        self.schedule_check(0);
    }

    /// Returns whether regions are short, and clears the note.
    pub(super) fn take_regions_short(&self) -> bool {
        self.regions_short.xchg(false, Relaxed)
    }
}

impl Connection {
    /// Returns the longest messages without chunks.
    #[inline]
    pub(crate) fn thresholds(&self) -> Thresholds {
        Thresholds {
            send: self.longest_inline(Direction::Call, self.longest_send()),
            receive: self.longest_inline(Direction::Reply, self.longest_receive()),
            segments: self.handler().regions.segments(),
        }
    }
}

impl Requester {
    /// Sets the keep-alive work item, when the connection is up.
    pub(super) fn set_keep_alive(&self, keep_alive: Arc<dyn Hasten>) {
        // A connection comes up once.
        let _ = self.keep_alive.populate(keep_alive);
    }

    /// Holds the request of an RPC until [`Self::let_go`]. Not with the RPC's state locked.
    pub(super) fn hold(&self, call: Arc<Call>) {
        self.pins.lock().add(call, time::jiffies());
    }

    /// Releases the request of an RPC. Not with the RPC's state locked.
    pub(super) fn let_go(&self, call: &Call) {
        self.pins.lock().remove(call);
    }

    /// Takes the RPCs whose requests are held, at the end of the connection.
    pub(super) fn take_pins(&self) -> impl Iterator<Item = Arc<Call>> {
        self.pins.lock().take_all()
    }

    /// Returns the reason to end the connection for an RPC whose request is held for too long. Any
    /// context that may take a spin lock.
    pub(super) fn held_too_long(&self) -> Option<LossReason> {
        self.pins.lock().overdue(time::jiffies())
    }

    /// Tells the RPC layer how many Calls may be outstanding, if that has changed.
    #[inline]
    pub(super) fn set_window(&self, calls: Option<u32>) {
        if let Some(calls) = calls {
            self.shared.xprt.set_window(calls);
        }
    }

    /// Returns whether any RPC is outstanding or held.
    pub(super) fn is_busy(&self, connection: &Connection) -> bool {
        connection.lock().flow.credits.is_any() || self.pins.lock().is_any()
    }

    /// Notes that a Call was sent: an idle connection is checked often from now on.
    #[inline]
    pub(super) fn busy(&self) {
        if self.watch.was_idle() {
            self.check_often();
        }
    }

    /// Makes the work item check the connection as often as one with RPCs.
    #[cold]
    fn check_often(&self) {
        self.schedule_check(FENCE_TIMEOUT);
        // This may have delayed a check that was wanted at once.
        if self.has_deferred() || self.regions_short.load(Relaxed) {
            self.schedule_check(0);
        }
    }

    /// Requests a probe of the server if it is silent, since a Reply is overdue.
    pub(super) fn doubt(&self) {
        self.watch.doubt();
        self.schedule_check(0);
    }

    /// Makes the work item check the connection in `delay` jiffies.
    fn schedule_check(&self, delay: Jiffies) {
        if let Some(keep_alive) = self.keep_alive.as_ref() {
            keep_alive.hasten(delay);
        }
    }

    /// Makes the work item end the connection for RPCs that wait for its tear-down, in addition to
    /// the notifier. Any context.
    pub(super) fn end_for_deferred(&self) {
        self.deferred.store(true, Relaxed);
        self.schedule_check(0);
    }

    /// Returns whether RPCs wait for the tear-down.
    pub(super) fn has_deferred(&self) -> bool {
        self.deferred.load(Relaxed)
    }

    /// Makes `n` more regions for a connection, up to `most` in all, and returns how many were
    /// made. May sleep.
    ///
    /// Fails only if none was made.
    pub(super) fn make_regions(&self, connection: &Connection, n: u32, most: u32) -> Result<u32> {
        let made = connection.grow_regions(n, most);
        let count = made.unwrap_or(0);
        self.shared.stats.add(Stat::RegionsMade, u64::from(count));
        trace::xprtrdma_createmrs(|| (*self.loss.address(), count));
        made
    }

    /// Counts on Calls of the server from now on, as many as it is granted.
    pub(super) fn expect_calls(&self, connection: &Connection) {
        let mut queue = connection.lock();
        queue.flow.credits.expect_more(REVERSE_SLOTS);
    }

    /// Posts idle Receives until `wanted` are posted.
    pub(crate) fn post_receives(&self, connection: &Connection, wanted: u32) {
        match connection.post_receives(wanted) {
            Ok(posted) => {
                trace::xprtrdma_post_recvs(|| {
                    let before = connection.posted_receives().saturating_sub(posted);
                    (connection.cqs().1, *self.loss.address(), posted, before)
                });
                connection.lock().flow.credits.posted(posted);
            }
            // The connection is being torn down.
            Err(e) if e == ENOTCONN => (),
            Err(e) => {
                trace::xprtrdma_post_recvs_err(|| (connection.cqs().1, *self.loss.address(), e));
                self.loss.report(LossReason::NoReceives);
            }
        }
    }

    /// Ensures a posted Receive for every Reply that may come. May sleep.
    pub(crate) fn provide_receives(&self, connection: &Connection) -> Result {
        let wanted = connection.lock().flow.credits.wanted_receives();
        wanted.map_or(Ok(()), |wanted| self.make_receives(connection, wanted))
    }

    /// Makes and posts Receives until `wanted` are posted. May sleep.
    #[cold]
    pub(crate) fn make_receives(&self, connection: &Connection, wanted: u32) -> Result {
        // Receives that hold waiting Calls of the server are not available for this.
        let kept = self.reverse.lock().kept();
        connection.grow_receives(wanted.saturating_add(kept))?;
        self.post_receives(connection, wanted);
        Ok(())
    }

    /// Takes a credit, or makes the sender wait for one with `EAGAIN`. Returns also the number of
    /// Receives that should be posted now, if there are too few.
    ///
    /// While Calls of the server are unanswered the RPC alone has to wait: for a moment with
    /// `ENOBUFS`, or with `EBADSLT` until a Reply queued behind it was sent.
    #[inline]
    pub(crate) fn get_credit(
        &self,
        connection: &Connection,
        xid: u32,
    ) -> Result<(Credit, Option<u32>)> {
        match try_credit(connection, xid) {
            Some(taken) => Ok(taken),
            None => self.wait_for_credit(connection, xid),
        }
    }

    /// Waits for a credit as [`Self::get_credit`] does when there is none.
    #[cold]
    fn wait_for_credit(&self, connection: &Connection, xid: u32) -> Result<(Credit, Option<u32>)> {
        self.shared.xprt.wait_for_space();
        // A credit may have come back, or a Call of the server come, before the sender was marked
        // as waiting.
        let taken = match try_credit(connection, xid) {
            Some(taken) => Ok(taken),
            None if self.reverse.lock().any() => Err(self.put_replies_first()),
            None => return Err(EAGAIN),
        };
        self.shared.xprt.space();
        taken
    }

    /// Lets Replies to the server's Calls go first; returns the error for a sender without a
    /// credit, which may come back only after such a Reply, which needs none (RFC 8167, section
    /// 4.1).
    fn put_replies_first(&self) -> Error {
        if self.shared.xprt.put_reverse_first() {
            EBADSLT
        } else {
            ENOBUFS
        }
    }

    /// Takes a send buffer, or makes the sender wait for one with `EAGAIN`. May sleep.
    #[inline]
    pub(crate) fn buffer<'a>(
        &self,
        connection: &'a Connection,
        purpose: Purpose,
    ) -> Result<SendBuffer<'a, Self>> {
        let mut buffer = connection.send_buffer(purpose);
        if buffer.as_ref().is_err_and(|e| *e == EAGAIN) {
            buffer = self.wait_for_buffer(connection, purpose);
        }
        buffer
    }

    /// Makes the sender wait for a send buffer, unless one has come back before it was marked as
    /// waiting.
    #[cold]
    fn wait_for_buffer<'a>(
        &self,
        connection: &'a Connection,
        purpose: Purpose,
    ) -> Result<SendBuffer<'a, Self>> {
        self.shared.stats.add(Stat::NoSendBuffer, 1);
        self.shared.xprt.wait_for_space();
        let again = connection.send_buffer(purpose);
        if again.is_ok() {
            self.shared.xprt.space();
        }
        again
    }
}

fn try_credit(connection: &Connection, xid: u32) -> Option<(Credit, Option<u32>)> {
    let mut queue = connection.lock();
    let credit = queue.flow.get(xid)?;
    Some((credit, queue.flow.credits.wanted_receives()))
}
