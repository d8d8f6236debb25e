// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! One connection of a client.

use crate::{
    kapi::{
        ib::{
            QpEvent,
            Received,
            RecvBuf, //
        },
        page::TransferMemory,
        sunrpc::SvcHandle,
        sys::{
            address::SocketAddress,
            counters::{
                count,
                count_all,
                Counter, //
            },
            listing::Entry,
            log::warn_about,
            workqueue::Hasten, //
        },
        trace, //
    },
    server::{
        events::{
            Events,
            Shared, //
        },
        poison::Poison,
        pulls::Pulls,
        request::Invalidates,
        waiting::{
            Continued,
            PendingRead,
            ReadTicket,
            RecvItem,
            Waiting, //
        },
    },
    transport::{
        endpoint::{
            Arrival,
            Endpoint,
            Handler,
            WcError, //
        },
        flow::{
            grant::{
                Grant,
                BATCH,
                FIRST, //
            },
            Flow, //
        },
        header::{
            Direction,
            Refusal, //
        },
        plan::Plan,
        provided::Provided,
        provided_total::ProvidedShare,
        send_buffer::{
            Purpose,
            SendBuffer, //
        },
    },
};
use kernel::{
    fmt::{
        self,
        Formatter, //
    },
    new_spinlock,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc,
        SpinLock, //
    },
};
use xdr::{
    peek_done,
    v2::Bounds,
    Role, //
};

/// The responder's part of a connection.
#[pin_data]
pub(crate) struct Responder {
    handle: SvcHandle,
    events: Arc<Events>,
    peer: SocketAddress,
    poison: Arc<Poison>,
    bounds: Bounds,
    /// What it has for them of the memory for all clients.
    #[pin]
    share: SpinLock<ProvidedShare>,
    /// The number of messages received so far.
    messages: Atomic<u64>,
    /// The credits of the client, for those who want to know.
    granted: Atomic<u32>,
    #[pin]
    waiting: SpinLock<Waiting>,
}

impl Responder {
    /// Creates the responder of a new connection with `sizes`. `share` is its part of the memory
    /// for all clients. May sleep.
    pub(super) fn new(
        handle: SvcHandle,
        events: Arc<Events>,
        peer: SocketAddress,
        shared: &Shared,
        plan: &Plan,
        bounds: Bounds,
    ) -> Result<impl PinInit<Self>> {
        let (poison, share) = (shared.poison.clone(), shared.all_pulls.share_of_receives());
        // Beside the messages there is what is to be said when the version is known.
        let waiting = Waiting::new(plan.qp.max_recv_wr as usize + 1)?;
        let first = FIRST.min(plan.rpcs);
        Ok(pin_init!(Self {
            handle,
            events,
            peer,
            poison,
            bounds,
            share <- new_spinlock!(share, "svcrdma_share"),
            messages: Atomic::new(0),
            granted: Atomic::new(first),
            waiting <- new_spinlock!(waiting, "svcrdma_waiting"),
        }))
    }

    /// Returns the number of messages received so far, up to `u32::MAX`.
    pub(super) fn calls(&self) -> u32 {
        u32::try_from(self.messages.load(Relaxed)).unwrap_or(u32::MAX)
    }

    /// Returns the client's address.
    pub(super) fn peer(&self) -> &SocketAddress {
        &self.peer
    }

    /// Ends the connection, which is of no use any more.
    pub(super) fn close(&self) {
        self.handle.close();
    }

    /// Changes the grant, and tells the endpoint of the Receives that it takes.
    fn change_grant<R>(
        &self,
        endpoint: &Endpoint<Self>,
        change: impl FnOnce(&mut Grant) -> R,
    ) -> R {
        self.change_flow(endpoint, |flow| change(&mut flow.grant))
    }

    fn change_flow<R>(&self, endpoint: &Endpoint<Self>, change: impl FnOnce(&mut Flow) -> R) -> R {
        let mut queue = endpoint.lock();
        let result = change(&mut queue.flow);
        let credits = queue.flow.grant.credits();
        if self.granted.load(Relaxed) != credits {
            self.granted.store(credits, Relaxed);
        }
        if let Some(receives) = queue.flow.grant.changed() {
            // Under the lock, so that the endpoint is told the numbers in their order.
            endpoint.want_receives(receives);
        }
        result
    }

    /// Handles an RDMA_DONE: the client has pulled the Reply of this XID. An error if it has
    /// invalidated a key of another Reply.
    #[cold]
    fn pulled(&self, endpoint: &Endpoint<Self>, message: &Received<'_>, xid: u32) -> Result {
        count(Counter::Pulled);
        self.change_grant(endpoint, Grant::put_done);
        let result = endpoint.pulled(xid, message.take_invalidated());
        trace::svcrdma_pulled(|| ((&**message).into(), xid, trace::status(result)));
        result
    }

    /// Handles an RDMA_DONE; and ends the connection for another message that invalidates a key
    /// where Replies are pulled. Returns whether the message was either, so that no service thread
    /// gets it.
    #[inline]
    fn take_done(&self, endpoint: &Endpoint<Self>, message: &Received<'_>) -> bool {
        if endpoint.plan().provided == 0 || !endpoint.may_pull() {
            return false;
        }
        let done = match peek_done(message.bytes()) {
            Some(xid) => self.pulled(endpoint, message, xid),
            // No other message may invalidate a key (section 4.1.4 of the draft).
            None if message.has_invalidated() => Err(EINVAL),
            None => return false,
        };
        if done.is_err() {
            self.handle.close();
        }
        true
    }

    /// Returns the next item for a service thread, and whether more follow.
    #[inline]
    pub(super) fn next(&self) -> (Option<RecvItem>, bool) {
        if !self.events.is_up() {
            return (None, false);
        }
        let mut waiting = self.waiting.lock();
        (waiting.next(), !waiting.is_empty())
    }

    #[inline]
    fn arrived(&self, arrival: RecvItem) {
        // Dropped outside the lock if there is no room: dropping takes the lock of the Receives.
        let rest = self.waiting.lock().arrived(arrival);
        self.announce(rest.is_ok());
    }

    /// Wakes a service thread if an item `waits`; ends the connection if there was no room for it.
    #[inline]
    fn announce(&self, waits: bool) {
        if waits {
            self.handle.request_pending();
        } else {
            self.handle.close();
        }
    }

    /// Returns whether this Call has broken a connection before.
    #[inline]
    pub(super) fn is_poisonous(&self, xid: u32) -> bool {
        self.poison.is_any() && self.poison.take(&self.peer, xid, self.calls())
    }

    /// Begins RDMA Reads, which are about to be prepared.
    pub(super) fn begin_read(&self) -> ReadTicket {
        self.waiting.lock().begin_read()
    }

    /// Ends RDMA Reads, whose regions are free again. Stalled Calls may be tried again.
    pub(super) fn end_read(&self) {
        let any = self.waiting.lock().end_read();
        if any {
            self.handle.request_pending();
        }
    }

    /// Stalls a Call that needs more regions than are free, until RDMA Reads of other Calls have
    /// ended. Gives it back if there were none: then there will never be enough regions.
    pub(super) fn stall(&self, call: RecvItem, turn: ReadTicket) -> Result<(), RecvItem> {
        let mut waiting = self.waiting.lock();
        // Other stalled Calls are tried again, too.
        waiting.end_read();
        if waiting.was_alone(&turn) {
            drop(waiting);
            self.handle.request_pending();
            return Err(call);
        }
        // As in `arrived`.
        let rest = waiting.stall(call);
        drop(waiting);
        self.announce(rest.is_ok());
        Ok(())
    }
}

impl Handler for Responder {
    type Cookie = KBox<PendingRead>;
    type Cm = Events;
    const ROLE: Role = Role::Responder;

    fn bounds(&self) -> &Bounds {
        &self.bounds
    }

    #[inline]
    fn received(&self, endpoint: &Endpoint<Self>, message: Received<'_>, arrival: Arrival) {
        count(Counter::Receive);
        let item = match arrival {
            Arrival::Message => {
                if self.take_done(endpoint, &message) {
                    return;
                }
                RecvItem::Message(message.keep())
            }
            Arrival::Last(undecoded, front) => {
                let continued = Continued {
                    message: message.keep(),
                    undecoded,
                    front,
                };
                match KBox::new(continued, GFP_NOWAIT) {
                    Ok(continued) => RecvItem::Continued(continued),
                    // There is no memory for a list of its parts.
                    Err(_) => return self.handle.close(),
                }
            }
            Arrival::Refused(reason) => RecvItem::Refused(message.keep(), reason),
            Arrival::Taken => {
                drop(message);
                if endpoint.post_receive_batch(BATCH as usize).is_err() {
                    self.handle.close();
                }
                return;
            }
        };
        // One completion handler at a time.
        let messages = self.messages.load(Relaxed);
        self.messages.store(messages + 1, Relaxed);
        self.arrived(item);
    }

    fn kept(&self, _: &Endpoint<Self>) {
        count(Counter::Receive);
    }

    fn negotiated(&self, _: &Endpoint<Self>, xid: u32) {
        let rest = self.waiting.lock().arrived(RecvItem::Negotiated(xid));
        self.announce(rest.is_ok());
    }

    fn broken(&self, _: &Endpoint<Self>) {
        let peer = &self.peer;
        warn_about(
            peer,
            format_args!("connection from {peer} closed: the client breaks the protocol"),
        );
        self.handle.close();
    }

    fn read_ended(
        &self,
        _: &Endpoint<Self>,
        mut reading: KBox<PendingRead>,
        memory: TransferMemory,
        ok: bool,
    ) {
        if !ok {
            return self.end_read();
        }
        reading.memory = Some(memory);
        let mut waiting = self.waiting.lock();
        waiting.end_read();
        let rest = waiting.arrived(RecvItem::ReadDone(reading));
        drop(waiting);
        self.announce(rest.is_ok());
    }

    fn drained(&self) {
        let all = core::mem::take(&mut *self.waiting.lock());
        // The Receives are given back outside the lock.
        drop(all);
    }

    fn sq_space(&self, _: &Endpoint<Self>) {
        // Items that came meanwhile are still queued.
        self.handle.request_pending();
    }

    fn sq_full(&self) {
        count(Counter::Starved);
    }

    fn failed(&self, failure: WcError) {
        // The plain end of a connection is not logged: the adapter then reports a flush alone.
        let (peer, wc, words) = (&self.peer, failure.wc(), failure.wc().words());
        match failure.faulting_xid() {
            Some(xid) if wc.is_remote_access() => warn_about(
                peer,
                format_args!(
                    "connection from {peer} lost: the memory of request {xid:#010x} is not to be \
                     used, or not any more since that was killed ({words})"
                ),
            ),
            _ if !wc.is_flush() => {
                warn_about(peer, format_args!("connection from {peer} lost: {words}"));
            }
            _ => (),
        }
        if let Some(xid) = failure.faulting_xid() {
            self.poison.mark(&self.peer, xid);
        }
        self.handle.close();
    }

    fn describe(&self, to: &mut Formatter<'_>) -> fmt::Result {
        writeln!(to, "\tgrant: {}", self.granted.load(Relaxed))?;
        writeln!(to, "\toutstanding: {}", self.handle.executing())?;
        writeln!(to, "\tmessages: {}", self.messages.load(Relaxed))
    }

    fn device_event(&self, event: &QpEvent<'_>) {
        trace::svcrdma_qp_error(|| (event.number(), event.device(), self.peer));
        if event.is_fatal() {
            self.handle.close();
        }
    }
}

/// One connection.
pub(crate) struct Connection {
    pub(super) qp: Arc<Endpoint<Responder>>,
    pub(super) addresses: (SocketAddress, SocketAddress),
    pub(super) invalidates: Invalidates,
    /// The state of the pulled Replies, if the peer may pull any.
    pub(super) pulls: Option<Pulls<Responder>>,
    /// The work item that ends the connection when dropped Calls have all credits.
    pub(super) drops: Arc<dyn Hasten>,
    /// Its status is to be had.
    pub(super) _entry: Option<Entry>,
}

impl Connection {
    /// Returns the length in bytes of the longest inline Reply without chunks. That to a Call that
    /// `offers` no Reply chunk may be longer than the peer's threshold: there is no other way to
    /// send it.
    #[inline]
    pub(super) fn longest_inline(&self, offers: bool) -> usize {
        let threshold = match offers {
            true => self.qp.longest_send(),
            false => self.qp.longest_unoffered(),
        };
        self.qp.longest_inline(Direction::Reply, threshold)
    }

    /// Returns the state of the pulled Replies, if the peer pulls any.
    pub(super) fn pulls(&self) -> Option<&Pulls<Responder>> {
        self.pulls.as_ref().filter(|_| self.qp.may_pull())
    }

    /// Tells the client the properties of this end; the connection ends if that is not possible.
    /// May sleep.
    pub(super) fn tell_properties(&self, xid: u32) {
        if self.qp.send_properties(xid).is_err() {
            self.close();
        }
    }

    /// Posts Receives that were given back, so that the client can send more.
    pub(super) fn receive_more(&self) {
        self.receives_posted(self.qp.post_receive_batch(BATCH as usize));
        self.qp.grant_if_owed();
    }

    /// Gives the Receive of a message back, and posts Receives if a batch was given back. Returns
    /// the number of received messages that are still in use. May sleep.
    #[inline]
    pub(super) fn put(&self, message: RecvBuf) -> u32 {
        self.receives_posted(self.qp.return_receive(message, BATCH as usize))
    }

    #[inline]
    fn receives_posted(&self, posted: Result<u32>) -> u32 {
        self.tell_posted(posted).unwrap_or_else(|_| {
            self.close();
            0
        })
    }

    #[inline]
    fn tell_posted(&self, posted: Result<u32>) -> Result<u32> {
        posted.inspect_err(|e| trace::svcrdma_rq_post_err(|| (self.addresses.1, *e)))
    }

    /// Posts the Reply of a Call that one of `threads` has executed, `len` bytes behind its header.
    /// The grant follows the client's use of it: `used` messages are in use. May sleep.
    #[inline]
    pub(super) fn reply(
        &self,
        reply: &mut SendBuffer<'_, Responder>,
        len: usize,
        used: u32,
        threads: u32,
    ) -> Result {
        self.post(reply, len)?;
        if self.change_grant(|grant| grant.used(used, threads)) {
            // Without memory the grant stays as it is.
            let _ = self.make_receives();
        }
        Ok(())
    }

    /// Posts a Reply or an error message, `len` bytes behind its header. May sleep.
    #[inline]
    fn post(&self, answer: &mut SendBuffer<'_, Responder>, len: usize) -> Result {
        let writes = answer.written_pieces();
        let provided = answer.provided().map(Provided::bytes);
        let posted = answer.send(len);
        if let Some(bytes) = provided {
            posted.inspect_err(|_| self.change_grant(Grant::put_done))?;
            if let Some(pulls) = self.pulls() {
                pulls.provided(bytes);
            }
        }
        posted?;
        if writes != 0 {
            count_all(Counter::Write, writes);
        }
        Ok(())
    }

    /// Changes the grant, as [`Responder::change_grant`].
    #[inline]
    fn change_grant<R>(&self, change: impl FnOnce(&mut Grant) -> R) -> R {
        self.qp.handler().change_grant(&self.qp, change)
    }

    /// Posts the Receives for the present grant and the pending one. `EMSGSIZE` if the Receives of
    /// all clients would need too much memory. May sleep.
    #[cold]
    fn make_receives(&self) -> Result {
        let (all, for_credits) = {
            let grant = &self.qp.lock().flow.grant;
            (grant.receives(), grant.for_credits())
        };
        let made = self.post_receives(all);
        self.change_grant(|grant| grant.made(for_credits, made.is_ok()));
        made
    }

    fn post_receives(&self, wanted: u32) -> Result {
        let bytes = (wanted as usize).saturating_mul(self.qp.plan().receive_size);
        self.qp.handler().share.lock().grow(bytes)?;
        self.qp.grow_receives(wanted)?;
        self.tell_posted(self.qp.post_receive_batch(1))?;
        Ok(())
    }

    /// Posts a Receive for one more RDMA_DONE. `EMSGSIZE` if `most` are expected already. May
    /// sleep.
    pub(super) fn receive_one_more(&self, most: u32) -> Result {
        if !self.change_grant(|grant| grant.expect_done(most)) {
            return Err(EMSGSIZE);
        }
        let wanted = self.qp.lock().flow.grant.receives();
        self.post_receives(wanted)
            .inspect_err(|_| self.change_grant(Grant::put_done))
    }

    /// Ends a Call without a Reply; its message was given back. Its credit comes back with the next
    /// Reply, if there is one. May sleep.
    pub(super) fn call_dropped(&self) {
        let goes_on = self.qp.handler().change_flow(&self.qp, Flow::call_dropped);
        // Without memory the credit does not come back.
        let _ = self.make_receives();
        self.qp.grant_if_owed();
        if !goes_on {
            self.drops.hasten(0);
        }
    }

    /// Ends the connection, which is of no use any more.
    pub(super) fn close(&self) {
        self.qp.handler().close();
    }

    /// Answers with an error message; the connection ends if that is not possible (RFC 8166,
    /// section 4.5.4). The message that it answers must have been dropped. May sleep.
    pub(super) fn refuse(&self, refusal: impl Into<Refusal>) {
        let refusal = refusal.into();
        self.receive_more();
        match refusal.is_of_version() {
            true => trace::svcrdma_err_vers(|| refusal.xid),
            false => trace::svcrdma_err_chunk(|| refusal.xid),
        }
        let sent = self
            .qp
            .send_buffer(Purpose::Message)
            .and_then(|mut buffer| {
                buffer.refuse(&refusal)?;
                self.post(&mut buffer, 0)
            });
        if sent.is_err() {
            self.close();
        }
    }
}
