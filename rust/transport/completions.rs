// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The endpoint's handlers of its queue pair's completions and events.

use crate::{
    kapi::{
        ib::{
            Consumer,
            Covered,
            Posted,
            QpEvent,
            Reading,
            Received,
            RwCtx,
            SendDone,
            Step,
            Wc, //
        },
        trace::CompletionId, //
    },
    transport::{
        endpoint::{
            Endpoint,
            Handler,
            Parts,
            Sending,
            WcError, //
        },
        send_queue::SendQueue,
        trace::{
            self,
            WrKind, //
        },
        work::{
            Owned,
            Read, //
        },
    },
};
use kernel::prelude::*;
use xdr::Role;

impl<H: Handler> Consumer for Parts<H> {
    type Cm = H::Cm;
    type Queue = SendQueue<H::Cookie>;
    type Posted = Owned<H::Cookie>;
    type Read = Read<H::Cookie>;

    fn failing(&self, endpoint: &Endpoint<H>) {
        let mut queue = endpoint.lock();
        if queue.lose() && H::ROLE == Role::Requester {
            drop(queue);
            // RPCs that wait for them may be RPCs that the end of the connection waits for.
            endpoint.turn_away_pending();
        }
    }

    fn sent(&self, queue: Sending<'_, H>, done: SendDone) {
        if !done.wc().is_ok() {
            return failed(queue, &done);
        }
        queue.retire(&done).make_room();
    }

    fn read(&self, endpoint: &Endpoint<H>, reading: Reading<Read<H::Cookie>>, wc: Wc) {
        let Read {
            xid,
            number,
            ref posted,
            ..
        } = reading.owned;
        let id = CompletionId::new(endpoint.cqs().0, number);
        if wc.is_ok() {
            trace::read(H::ROLE, id, posted.as_ref(), &reading.transfer);
        } else {
            trace::read_failed(H::ROLE, id, wc);
        }
        endpoint.end_read(reading, wc.is_ok());
        if wc.is_ok() {
            endpoint.make_room();
        } else {
            self.handler().failed(WcError { wc, xid });
        }
    }

    fn read_failed(&self, queue: Sending<'_, H>, place: usize, wc: Wc) {
        let read = queue.ring().reads().get(place).map(|read| &read.owned);
        let (id, xid) = match read {
            Some(read) => (Some(queue.id_of(read.number)), read.xid),
            None => (None, None),
        };
        drop(queue);
        if let Some(id) = id {
            trace::read_failed(H::ROLE, id, wc);
        }
        self.handler().failed(WcError { wc, xid });
    }

    fn posting_receive(&self, endpoint: &Endpoint<H>, index: u32) {
        trace::receive_posted(H::ROLE, || CompletionId::new(endpoint.cqs().1, index));
    }

    fn received(&self, endpoint: &Endpoint<H>, message: Received<'_>) {
        trace::received(H::ROLE, || (&*message).into(), message.bytes().len());
        endpoint.take_in(message);
    }

    fn receive_failed(&self, endpoint: &Endpoint<H>, index: u32, wc: Wc) {
        let id = CompletionId::new(endpoint.cqs().1, index);
        trace::receive_failed(H::ROLE, id, wc);
        self.handler().failed(WcError::new(wc));
    }

    fn event(&self, event: &QpEvent<'_>) {
        self.handler().device_event(event);
    }

    fn deregistered(&self, covered: Covered, result: Result) {
        trace::deregistered(covered, result);
    }

    fn step(&self, endpoint: &Endpoint<H>, step: Step<'_, Self>) {
        match step {
            Step::Closing => endpoint.turn_away_pending(),
            Step::Disconnected(told) => self.handler().disconnected(told),
            Step::Flushed(queue, done) => drop(queue.retire(&done)),
            Step::ReadFlushed(reading) => endpoint.end_read(reading, false),
            Step::Drained => {
                drop(endpoint.take_kept(false));
                self.handler().drained();
            }
            Step::Fenced(mut queue) => {
                let (pools, provided) = (queue.take_pools(), queue.take_provided());
                drop(queue);
                self.handler().fenced(endpoint);
                drop(pools);
                // Their regions are dead.
                drop(provided);
            }
        }
    }
}

/// Retires what a failed request of the send queue ends, and tells of it.
fn failed<H: Handler>(queue: Sending<'_, H>, done: &SendDone) {
    let (endpoint, position, wc) = (queue.qp(), done.position(), done.wc());
    let xid = queue.xid_of(position);
    if let Some((kind, id)) = queue.kind_of(position) {
        trace::send_failed(H::ROLE, kind, id, wc);
    }
    drop(queue.retire(done));
    endpoint.handler().failed(WcError { wc, xid });
}

impl<H: Handler> Sending<'_, H> {
    /// Retires what was done, and hands the cookies among it to the handler, without the lock.
    pub(super) fn retire(mut self, done: &SendDone) -> Self {
        let traced = done.wc().is_ok() && trace::traces_ends(H::ROLE);
        let qp = self.qp();
        loop {
            let (ring, queue) = self.parts();
            let handed = ring.retire(done, |posted, transfer| {
                if traced {
                    trace_end(qp, &posted);
                }
                if let Some(buffer) = posted.buffer {
                    queue.put_buffer(buffer);
                }
                match posted.owned {
                    owned @ Some(Owned::Cookie { .. } | Owned::Withdrawn { .. }) => {
                        Some((owned, transfer))
                    }
                    owned => transfer.map(|transfer| (owned, Some(transfer))),
                }
            });
            match handed {
                Some((owned, transfer)) => self = self.hand_out(owned, transfer, done),
                None => return self,
            }
        }
    }

    /// Hands what a retired slot owned to the handler, without the lock.
    fn hand_out(
        self,
        owned: Option<Owned<H::Cookie>>,
        transfer: Option<KBox<RwCtx>>,
        done: &SendDone,
    ) -> Self {
        let qp = self.qp();
        if let (
            Some(transfer),
            Some(Owned::Write {
                transfer: number, ..
            }),
        ) = (&transfer, &owned)
        {
            trace::released(H::ROLE, self.id_of(*number), transfer);
        }
        drop(self);
        if let Some(transfer) = transfer {
            // Its pages are released outside the lock.
            drop(transfer);
        }
        match owned {
            Some(Owned::Cookie { cookie, .. }) => {
                qp.handler().invalidated(qp, cookie, done.invalidated());
            }
            Some(Owned::Withdrawn { number }) => qp.withdrawn(number, done.invalidated()),
            _ => (),
        }
        qp.lock()
    }

    /// Returns the kind of the request at a position, and its name in trace events.
    pub(super) fn kind_of(&self, position: u64) -> Option<(WrKind, CompletionId)> {
        name(self.qp(), self.ring().posted_at(position)?)
    }

    /// Returns the XID of the RPC that the request at a position is for.
    fn xid_of(&self, position: u64) -> Option<u32> {
        match self.ring().posted_at(position)?.owned.as_ref()? {
            Owned::Send { xid } | Owned::Write { xid, .. } => *xid,
            Owned::Region { .. } | Owned::Cookie { .. } | Owned::Withdrawn { .. } => None,
        }
    }
}

/// Traces the end of a request.
fn trace_end<H: Handler>(endpoint: &Endpoint<H>, posted: &Posted<Owned<H::Cookie>>) {
    if let Some((kind, id)) = name(endpoint, posted) {
        trace::ended(H::ROLE, kind, id);
    }
}

/// Returns the kind of a request, and its name in trace events.
fn name<H: Handler>(
    endpoint: &Endpoint<H>,
    posted: &Posted<Owned<H::Cookie>>,
) -> Option<(WrKind, CompletionId)> {
    let (kind, number) = match posted.owned.as_ref()? {
        Owned::Send { .. } => (WrKind::Send, posted.buffer.as_ref().map_or(0, |b| b.id)),
        Owned::Write {
            transfer,
            reply_chunk,
            last,
            ..
        } => (
            WrKind::Write {
                reply_chunk: *reply_chunk,
                last: *last,
            },
            *transfer,
        ),
        Owned::Region {
            region,
            registers: true,
        } => (WrKind::Registration, *region),
        Owned::Region { region, .. } => (WrKind::Invalidation, *region),
        Owned::Cookie { region, waiter, .. } => (WrKind::LastInvalidation(*waiter), *region),
        Owned::Withdrawn { number } => (WrKind::Invalidation, *number),
    };
    Some((kind, CompletionId::new(endpoint.cqs().0, number)))
}
