// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Calls to the client on its own connection (RFC 8167).

use crate::{
    kapi::{
        sunrpc::{
            ReverseDirection,
            RpcRqst,
            SvcRqst, //
        },
        sys::{
            log::warn_about,
            time::{
                jiffies,
                HZ, //
            },
        },
    },
    server::connection::Connection,
    transport::{
        flow::grant::REVERSE,
        header::Direction,
        send_buffer::Purpose, //
    },
};
use kernel::{
    prelude::*,
    time::Jiffies, //
};

/// The longest time for which Calls whose RPCs have ended may have all credits.
const PATIENCE: Jiffies = 60 * HZ;

impl ReverseDirection for Connection {
    const CREDITS: u32 = REVERSE;

    fn call(&self, message: &RpcRqst) -> Result {
        // A Call longer than the client's threshold is not sent (there are no chunks, RFC 8167,
        // section 5.3), and gets no answer. After an error nfsd would send it again at once, for
        // ever.
        if message.send_buf().len() > self.qp.longest_reverse_call() {
            return Ok(());
        }
        get_credit(self, message)?;
        let sent = send(self, message);
        if sent.is_err() {
            put_unsent(self, message.xid());
            message.xprt().space();
        }
        sent
    }

    fn call_ended(&self, xid: u32) {
        let mut queue = self.qp.lock();
        let credits = &mut queue.flow.credits;
        while let Some(credit) = credits.of(xid) {
            credits.abandon(credit);
        }
        let over = credits.are_lost(jiffies(), PATIENCE);
        drop(queue);
        if over {
            let peer = &self.addresses.1;
            warn_about(
                peer,
                format_args!("connection from {peer} closed: the client answers no calls"),
            );
            self.close();
        }
    }
}

/// Takes a credit, or makes the sender wait for one with `EAGAIN`: for Calls beyond its grant the
/// client need not have a Receive (RFC 8166, section 3.3.1). In version 2 it may have to wait for a
/// moment, with `ENOBUFS`.
fn get_credit(connection: &Connection, message: &RpcRqst) -> Result {
    // The credit is found by its XID, as an RPC of this end has no state of ours.
    let take = || {
        let mut queue = connection.qp.lock();
        queue.flow.get(message.xid()).is_some()
    };
    if take() {
        return Ok(());
    }
    if connection.qp.lock().flow.is_short_of_messages() {
        return Err(ENOBUFS);
    }
    let xprt = message.xprt();
    xprt.wait_for_space();
    // A credit may have come back, or the connection have ended, before the sender was marked as
    // waiting.
    let taken = take();
    if !taken && xprt.is_connected() {
        return Err(EAGAIN);
    }
    xprt.space();
    taken.then_some(()).ok_or(ENOTCONN)
}

/// Takes back the credit of a Call that was not sent after all.
fn put_unsent(connection: &Connection, xid: u32) {
    connection.qp.put_back(|flow| {
        if let Some(credit) = flow.credits.of(xid) {
            flow.put_unsent(credit);
        }
    });
}

/// Takes back the credit of the Call with this XID, which was answered, with `grant` if that is
/// well formed. False if there is no such Call.
fn put_credit(connection: &Connection, xid: u32, grant: Option<u32>) -> bool {
    let mut queue = connection.qp.lock();
    let credits = &mut queue.flow.credits;
    let credit = credits.of(xid);
    let known = credit.is_some() || credits.put_unawaited(xid);
    queue.flow.answered(credit, grant.filter(|_| known));
    known
}

fn send(connection: &Connection, message: &RpcRqst) -> Result {
    let body = message.send_buf();
    let buffer = connection.qp.send_buffer(Purpose::Message);
    // A task that waits for space waits for a credit.
    let mut buffer = buffer.map_err(|e| if e == EAGAIN { ENOBUFS } else { e })?;
    let copy = |at, to: &mut [u8]| body.copy_to(at, to);
    let behind = buffer.message(Direction::Call, message.xid(), body.len(), copy)?;
    message.note_sent();
    buffer
        .send(behind)
        .map_err(|_| ENOTCONN)
        .inspect_err(|_| connection.close())
}

/// Handles a Reply and its grant.
pub(super) fn replied<'m>(
    connection: &Connection,
    rqst: &mut SvcRqst<'_>,
    xid: u32,
    credits: u32,
    reply: impl IntoIterator<Item = &'m [u8]>,
) {
    // First, since the completion of the Call wakes tasks that wait for credits.
    if put_credit(connection, xid, Some(credits)) {
        rqst.end_reverse(xid, Ok(reply));
    }
}

/// Handles an RDMA_ERROR, which may be the answer to a Call.
pub(super) fn refused(connection: &Connection, rqst: &mut SvcRqst<'_>, xid: u32) {
    if put_credit(connection, xid, None) {
        rqst.end_reverse(xid, Err::<[&[u8]; 1], _>(EIO));
    }
}

/// Returns whether a Call awaits its answer.
pub(super) fn awaits(connection: &Connection, xid: u32) -> bool {
    connection.qp.lock().flow.credits.awaits(xid)
}
