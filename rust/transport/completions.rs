// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! What an endpoint makes of what its queue pair tells it.

use crate::{
    kapi::{
        ib::{
            Consumer,
            Covered,
            Locked,
            QpEvent,
            Reading,
            Received,
            SendDone,
            Wc, //
        },
        trace::CompletionId, //
    },
    transport::{
        endpoint::{
            Endpoint,
            Handler,
            Parts,
            WcError, //
        },
        posting::Sending,
        send_queue::{
            Owned,
            Read,
            SendQueue, //
        },
        trace, //
    },
};
use kernel::prelude::*;
use xdr::Role;

impl<H: Handler> Consumer for Parts<H> {
    type Cm = H::Cm;
    type Queue = SendQueue<H::Cookie>;
    type Posted = Owned<H::Cookie>;
    type Read = Read<H::Cookie>;

    #[cold]
    fn failing(&self, endpoint: &Endpoint<H>) {
        let mut queue = endpoint.lock();
        if queue.lose() {
            let only = queue.sole_inflight_xid();
            drop(queue);
            if H::ROLE == Role::Requester {
                // Who waits for them may be whom the end of the connection waits for.
                endpoint.turn_away_pending();
            }
            self.handler().first_error(only);
        }
    }

    fn sent(&self, queue: Sending<'_, H>, done: SendDone) {
        if !done.wc().is_ok() {
            return failed(queue, &done);
        }
        make_room(queue.retire(&done));
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
            make_room(endpoint.lock());
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

    #[inline]
    fn received(&self, endpoint: &Endpoint<H>, message: Received<'_>) {
        trace::received(H::ROLE, || (&message).into(), message.bytes().len());
        self.handler().received(endpoint, message);
    }

    fn receive_failed(&self, endpoint: &Endpoint<H>, index: u32, wc: Wc) {
        let id = CompletionId::new(endpoint.cqs().1, index);
        trace::receive_failed(H::ROLE, id, wc);
        self.handler().failed(WcError::new(wc));
    }

    fn event(&self, event: &QpEvent<'_>) {
        self.handler().device_event(event);
    }

    fn closing(&self, endpoint: &Endpoint<H>) {
        endpoint.turn_away_pending();
    }

    fn disconnected(&self, told: Result) {
        self.handler().disconnected(told);
    }

    fn flushed(&self, queue: Sending<'_, H>, done: SendDone) {
        drop(queue.retire(&done));
    }

    fn read_flushed(&self, endpoint: &Endpoint<H>, reading: Reading<Read<H::Cookie>>) {
        endpoint.end_read(reading, false);
    }

    fn drained(&self) {
        self.handler().drained();
    }

    fn deregistered(&self, covered: Covered, result: Result) {
        trace::deregistered(covered, result);
    }

    fn fenced(&self, mut queue: Locked<'_, Self>) {
        let (pools, provided) = (queue.take_pools(), queue.take_provided());
        drop(queue);
        self.handler().fenced();
        drop(pools);
        // Their regions are dead.
        drop(provided);
    }
}

/// A request of the send queue has failed.
#[cold]
fn failed<H: Handler>(queue: Sending<'_, H>, done: &SendDone) {
    let (endpoint, position, wc) = (queue.qp(), done.position(), done.wc());
    let xid = queue.xid_of(position);
    if let Some((kind, id)) = queue.kind_of(position) {
        trace::send_failed(H::ROLE, kind, id, wc);
    }
    drop(queue.retire(done));
    endpoint.handler().failed(WcError { wc, xid });
}

/// There is room in the send queue: who waits for it comes next.
pub(super) fn make_room<H: Handler>(mut queue: Sending<'_, H>) {
    let endpoint = queue.qp();
    let pending = queue.post_pending();
    drop(queue);
    match pending {
        Err(work) => {
            if let Some(work) = work {
                endpoint.turned_away(work);
            }
            endpoint.post_failed();
        }
        Ok(last) if last || H::ROLE == Role::Requester => endpoint.handler().sq_space(endpoint),
        Ok(_) => (),
    }
}
