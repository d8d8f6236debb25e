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
        waiting::{
            PendingRead,
            ReadTicket,
            RecvItem,
            Waiting, //
        },
    },
    transport::{
        endpoint::{
            Endpoint,
            Handler,
            WcError, //
        },
        flow::grant::{
            Grant,
            BATCH, //
        },
        header::Refusal,
        plan::Plan,
        provided_total::ProvidedShare,
        providing::Providing,
        send_buffer::{
            Attached,
            Purpose,
            SendBuffer, //
        },
        transfer::RwBuilder, //
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
        SpinLock, //
    },
};
use xdr::{
    peek_done,
    Limits,
    Role, //
};

/// The responder's part of a connection.
#[pin_data]
pub(crate) struct Responder {
    handle: SvcHandle,
    events: Arc<Events>,
    peer: SocketAddress,
    poison: Arc<Poison>,
    /// The device says which request it was when the peer refuses one.
    names_faults: bool,
    /// What it has for them of the memory for all clients.
    #[pin]
    share: SpinLock<ProvidedShare>,
    /// Messages received so far, up to `u32::MAX`.
    calls: Atomic<u32>,
    #[pin]
    waiting: SpinLock<Waiting>,
}

impl Responder {
    /// Creates that of a new connection as it is planned, whose device `names_faults` or not. May
    /// sleep.
    pub(super) fn new(
        handle: SvcHandle,
        events: Arc<Events>,
        peer: SocketAddress,
        shared: &Shared,
        names_faults: bool,
        plan: &Plan,
    ) -> Result<impl PinInit<Self>> {
        let (poison, share) = (shared.poison.clone(), shared.all_pulls.share_of_receives());
        let waiting = Waiting::new(plan.qp.max_recv_wr as usize)?;
        Ok(pin_init!(Self {
            handle,
            events,
            peer,
            poison,
            names_faults,
            share <- new_spinlock!(share, "svcrdma_share"),
            calls: Atomic::new(0),
            waiting <- new_spinlock!(waiting, "svcrdma_waiting"),
        }))
    }

    /// How many messages were received so far, up to `u32::MAX`.
    pub(super) fn calls(&self) -> u32 {
        self.calls.load(Relaxed)
    }

    /// The client's address.
    pub(super) fn peer(&self) -> &SocketAddress {
        &self.peer
    }

    /// The connection is of no use any more.
    pub(super) fn close(&self) {
        self.handle.close();
    }

    /// Changes the grant, and tells the endpoint of the Receives that it takes.
    fn change_grant<R>(
        &self,
        endpoint: &Endpoint<Self>,
        change: impl FnOnce(&mut Grant) -> R,
    ) -> R {
        let mut queue = endpoint.lock();
        let grant = &mut queue.flow.grant;
        let result = change(grant);
        if let Some(receives) = grant.changed() {
            // Under the lock, so that the last word is the latest.
            endpoint.want_receives(receives);
        }
        result
    }

    /// A message that is no Call, Reply or error if the client pulls Replies: it has pulled that
    /// one. An error if it has invalidated a key of another.
    #[cold]
    fn pulled(&self, endpoint: &Endpoint<Self>, message: &Received<'_>, xid: u32) -> Result {
        count(Counter::Pulled);
        self.change_grant(endpoint, Grant::put_done);
        let result = endpoint.pulled(xid, message.take_invalidated());
        trace::svcrdma_pulled(|| ((&**message).into(), xid, trace::status(result)));
        result
    }

    /// What came next, and whether there is more.
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
        // What finds no room goes outside the lock, which is taken in front of that of a Receive.
        let rest = self.waiting.lock().arrived(arrival);
        self.announce(rest.is_ok());
    }

    /// Something waits for a service thread, unless there was no room for it.
    #[inline]
    fn announce(&self, waits: bool) {
        if waits {
            self.handle.request_pending();
        } else {
            self.handle.close();
        }
    }

    /// Whether the Call is one whose own fault broke the connection before.
    #[inline]
    pub(super) fn is_poisonous(&self, xid: u32) -> bool {
        self.poison.is_any() && self.poison.take(&self.peer, xid, self.calls())
    }

    /// RDMA Reads are about to be prepared.
    pub(super) fn begin_read(&self) -> ReadTicket {
        self.waiting.lock().begin_read()
    }

    /// RDMA Reads have ended, and their regions are free again. What was stalled may be tried.
    pub(super) fn end_read(&self) {
        let any = self.waiting.lock().end_read();
        if any {
            self.handle.request_pending();
        }
    }

    /// Lets a Call wait that needs more regions than were free, until RDMA Reads of others have
    /// ended. Gives it back if there were no others: then there are not so many.
    pub(super) fn stall(&self, message: RecvBuf, turn: ReadTicket) -> Result<(), RecvBuf> {
        let mut waiting = self.waiting.lock();
        // Others that are stalled are tried again, too.
        waiting.end_read();
        if waiting.was_alone(&turn) {
            drop(waiting);
            self.handle.request_pending();
            return Err(message);
        }
        // As in `arrived`.
        let rest = waiting.stall(message);
        drop(waiting);
        self.announce(rest.is_ok());
        Ok(())
    }
}

impl Handler for Responder {
    type Cookie = KBox<PendingRead>;
    type Cm = Events;
    const ROLE: Role = Role::Responder;

    #[inline]
    fn received(&self, endpoint: &Endpoint<Self>, message: Received<'_>) {
        count(Counter::Receive);
        if endpoint.plan().provided != 0 {
            let done = match peek_done(message.bytes()) {
                Some(xid) => Some(self.pulled(endpoint, &message, xid)),
                // Nothing else is to invalidate a key (section 4.1.4 of the draft).
                None => message.has_invalidated().then_some(Err(EINVAL)),
            };
            match done {
                Some(Ok(())) => return,
                Some(Err(_)) => return self.handle.close(),
                None => (),
            }
        }
        // One completion handler at a time.
        self.calls.store(self.calls().saturating_add(1), Relaxed);
        self.arrived(RecvItem::Message(message.keep()));
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
        // Their buffers are given back outside the lock.
        drop(all);
    }

    fn sq_space(&self, _: &Endpoint<Self>) {
        // What came meanwhile was left where it was.
        self.handle.request_pending();
    }

    fn sq_full(&self) {
        count(Counter::Starved);
    }

    fn first_error(&self, only: Option<u32>) {
        if !self.names_faults {
            self.poison.lost(&self.peer, only);
        }
    }

    fn failed(&self, failure: WcError) {
        // A connection that just ends is no news; the adapter's own word for it is the flush.
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

    fn device_event(&self, event: &QpEvent<'_>) {
        trace::svcrdma_qp_error(|| (event.number(), event.device(), self.peer));
        if event.is_fatal() {
            self.handle.close();
        }
    }
}

/// A Reply or an error that is ready to be posted.
pub(super) struct ReplySend<'a> {
    /// Has the header.
    pub(super) buffer: SendBuffer<'a, Responder>,
    /// Bytes that follow it.
    pub(super) len: usize,
    pub(super) with: Attached<'a, Responder>,
}

/// One connection.
pub(crate) struct Connection {
    pub(super) qp: Arc<Endpoint<Responder>>,
    pub(super) addresses: (SocketAddress, SocketAddress),
    pub(super) limits: Limits,
    /// Bytes of the longest message that the peer is known to take inline.
    pub(super) send_threshold: usize,
    /// Bytes of the longest Reply that it gets inline when it offers no Reply chunk.
    pub(super) longest_unoffered: usize,
    /// The peer wants keys to be invalidated.
    pub(super) invalidate: bool,
    /// It pulls Replies.
    pub(super) pulls: Option<Pulls<Responder>>,
    /// Ends it when all credits stay with Calls that were dropped.
    pub(super) drops: Arc<dyn Hasten>,
}

impl Connection {
    /// Bytes of the longest message that the peer takes inline, where that is no Reply, or one for
    /// which it `offers` a Reply chunk; else of the longest that is tried.
    #[inline]
    pub(super) fn longest_inline(&self, offers: bool) -> usize {
        if offers {
            self.send_threshold
        } else {
            self.longest_unoffered
        }
    }

    /// Lets the client send more: Receives were given back.
    pub(super) fn receive_more(&self) {
        self.receives_posted(self.qp.post_receive_batch(BATCH as usize));
    }

    /// Gives the Receive of a message back, and posts those that were given back if they are a
    /// batch. Returns how many received messages are still in use. May sleep.
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

    /// Posts the Reply of one of `threads`. The grant follows what the client uses: `used` are the
    /// messages in use. May sleep.
    #[inline]
    pub(super) fn reply(&self, reply: ReplySend<'_>, used: u32, threads: u32) -> Result {
        self.post(reply)?;
        if self.change_grant(|grant| grant.used(used, threads)) {
            // Without memory the grant stays as it is.
            let _ = self.make_receives();
        }
        Ok(())
    }

    /// Posts an answer. May sleep.
    #[inline]
    fn post(&self, answer: ReplySend<'_>) -> Result {
        let ReplySend {
            buffer,
            len,
            mut with,
        } = answer;
        with.may_be_refused = buffer.header_len().saturating_add(len) > self.send_threshold;
        let writes = with.writes.as_ref().map_or(0, RwBuilder::pieces);
        let provided = with.provided.as_ref().map(Providing::bytes);
        let posted = buffer.send(len, with);
        if let Some(bytes) = provided {
            posted.inspect_err(|_| self.change_grant(Grant::put_done))?;
            if let Some(pulls) = &self.pulls {
                pulls.provided(bytes);
            }
        }
        posted?;
        if writes != 0 {
            count_all(Counter::Write, writes);
        }
        Ok(())
    }

    /// As [`Responder::change_grant`].
    #[inline]
    fn change_grant<R>(&self, change: impl FnOnce(&mut Grant) -> R) -> R {
        self.qp.handler().change_grant(&self.qp, change)
    }

    /// Posts as many Receives as are needed for what is granted, or is to be granted then.
    /// `EMSGSIZE` if there is no memory for so many with what other clients have. May sleep.
    #[cold]
    fn make_receives(&self) -> Result {
        let wanted = self.qp.lock().flow.grant.receives();
        let made = self.post_receives(wanted);
        self.change_grant(|grant| grant.made(wanted, made.is_ok()));
        made
    }

    fn post_receives(&self, wanted: u32) -> Result {
        let bytes = (wanted as usize).saturating_mul(self.qp.plan().receive_size);
        self.qp.handler().share.lock().grow(bytes)?;
        self.qp.grow_receives(wanted)?;
        self.tell_posted(self.qp.post_receive_batch(1))?;
        Ok(())
    }

    /// The client is to be able to say once more that it has pulled a Reply. `EMSGSIZE` if it can
    /// say so `most` times already. May sleep.
    pub(super) fn receive_one_more(&self, most: u32) -> Result {
        if !self.change_grant(|grant| grant.expect_done(most)) {
            return Err(EMSGSIZE);
        }
        self.make_receives()
            .inspect_err(|_| self.change_grant(Grant::put_done))
    }

    /// A Call ends without a Reply, and its message was given back. Its credit comes back with the
    /// next Reply, if there is one. May sleep.
    pub(super) fn call_dropped(&self) {
        let goes_on = self.change_grant(Grant::dropped);
        // Without memory the credit does not come back.
        let _ = self.make_receives();
        if !goes_on {
            self.drops.hasten(0);
        }
    }

    /// The connection is of no use any more.
    pub(super) fn close(&self) {
        self.qp.handler().close();
    }

    /// Answers with an error; the connection ends if that is not possible (RFC 8166,
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
                let (len, with) = (0, Attached::default());
                self.post(ReplySend { buffer, len, with })
            });
        if sent.is_err() {
            self.close();
        }
    }
}
