// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Calls to the client by its own connection (RFC 8167).

use crate::{
    kapi::{
        sunrpc::{
            ReverseDirection,
            RpcRqst,
            SvcRqst, //
        },
        sys::{
            log::warn_about,
            time::jiffies, //
        },
    },
    server::{
        connection::Connection,
        grant, //
    },
    transport::send_buffer::Attached, //
};
use kernel::prelude::*;
use xdr::{
    Encoder,
    MIN_HEADER, //
};

impl ReverseDirection for Connection {
    const CREDITS: u32 = grant::REVERSE;

    fn call(&self, message: &RpcRqst) -> Result {
        // One that is longer than the client receives is not sent (no chunks here, RFC 8167,
        // section 5.3), and has no answer. After an error nfsd would make it again at once, for
        // ever.
        let len = MIN_HEADER + message.send_buf().len();
        if len > self.longest_inline(true) {
            return Ok(());
        }
        get_credit(self, message)?;
        let sent = send(self, message, len);
        if sent.is_err() {
            let credits = &self.qp.handler().reverse;
            credits.lock().answered(message.xid(), None);
            message.xprt().space();
        }
        sent
    }

    fn call_ended(&self, xid: u32) {
        let over = self.qp.handler().reverse.lock().ended(xid, jiffies());
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

/// Takes a credit, or makes the sender wait for one with `EAGAIN`: for a Call more than it has
/// granted the client need not have a Receive (RFC 8166, section 3.3.1).
fn get_credit(connection: &Connection, message: &RpcRqst) -> Result {
    let (credits, xid) = (&connection.qp.handler().reverse, message.xid());
    if credits.lock().get(xid) {
        return Ok(());
    }
    let xprt = message.xprt();
    xprt.wait_for_space();
    // One may have come back, or the connection have ended, before the sender was marked as
    // waiting.
    let taken = credits.lock().get(xid);
    if !taken && xprt.is_connected() {
        return Err(EAGAIN);
    }
    xprt.space();
    taken.then_some(()).ok_or(ENOTCONN)
}

fn send(connection: &Connection, message: &RpcRqst, len: usize) -> Result {
    let body = message.send_buf();
    let buffer = connection.qp.send_buffer();
    // Whoever waits for space waits for a credit.
    let mut buffer = buffer.map_err(|e| if e == EAGAIN { ENOBUFS } else { e })?;
    // What is asked for in credits is what can wait for a Reply at once.
    let to = buffer.bytes();
    let header = Encoder::msg(to, message.xid(), grant::REVERSE).no_chunks();
    let room = to.get_mut(header.map_err(|_| EMSGSIZE)?..len);
    body.copy_to(0, room.ok_or(EMSGSIZE)?)?;
    message.note_sent();
    buffer
        .send(len, Attached::default())
        .map_err(|_| ENOTCONN)
        .inspect_err(|_| connection.close())
}

/// A Reply came, with a grant.
pub(super) fn replied(
    connection: &Connection,
    rqst: &mut SvcRqst<'_>,
    xid: u32,
    credits: u32,
    reply: &[u8],
) {
    let reverse = &connection.qp.handler().reverse;
    // First, since who waits for more credits is woken when a Call has its Reply.
    if reverse.lock().answered(xid, Some(credits)) {
        rqst.end_reverse(xid, Ok(reply));
    }
}

/// An RDMA_ERROR came, which may be the answer to a Call.
pub(super) fn refused(connection: &Connection, rqst: &mut SvcRqst<'_>, xid: u32) {
    if connection.qp.handler().reverse.lock().answered(xid, None) {
        rqst.end_reverse(xid, Err(EIO));
    }
}

/// Whether a Call awaits its answer.
pub(super) fn awaits(connection: &Connection, xid: u32) -> bool {
    connection.qp.handler().reverse.lock().awaits(xid)
}
