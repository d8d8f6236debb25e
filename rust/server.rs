// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The responder: a server transport for nfsd.

mod accept;
mod all_pulls;
mod backlog;
mod connection;
mod drops;
mod events;
mod grant;
mod listener;
mod pace;
mod poison;
mod pulls;
mod receive;
mod reply;
mod reply_layout;
mod request;
mod reverse;
mod sizes;
mod trace;
mod waiting;

use self::{
    connection::Connection,
    listener::Listener,
    request::Request,
    waiting::RecvItem, //
};
use crate::kapi::{
    sunrpc::{
        Argument,
        Payload,
        RpcRqst,
        Service,
        SvcHandle,
        SvcReply,
        SvcRqst, //
    },
    sys::{
        address::SocketAddress,
        net::Net, //
    },
};
use core::ffi::{
    c_int,
    CStr, //
};
use kernel::prelude::*;

/// The server transport.
pub(crate) struct Server;

impl Service for Server {
    type Listener = Listener;
    type Connection = Connection;
    type RecvItem = RecvItem;
    type Message = Request;
    const NAME: &'static CStr = c"rdma";
    const IDENT: c_int = 256;
    const MAX_PAYLOAD: u32 = 4 << 20;

    fn listen(handle: SvcHandle, net: &Net, address: &SocketAddress) -> Result<Listener> {
        Listener::new(handle, net, address)
    }

    fn local_address(listener: &Listener) -> SocketAddress {
        listener.local_address()
    }

    fn unlisten(listener: &Listener) {
        listener.end();
    }

    fn is_pending(listener: &Listener) -> bool {
        listener.is_pending()
    }

    fn accept(listener: &Listener, handle: SvcHandle, max_message: usize) -> Result<Connection> {
        Connection::accept(listener.next()?, handle, max_message)
    }

    fn addresses(connection: &Connection) -> (SocketAddress, SocketAddress) {
        connection.addresses
    }

    fn detach(connection: &Connection) {
        // Without a connection there is nothing to end.
        let _ = connection.qp.disconnect();
    }

    #[inline]
    fn next(connection: &Connection) -> (Option<RecvItem>, bool) {
        // A client that takes no Replies would have memory held for each Call, whatever it was
        // granted. What it has sent stays in the Receives, of which it gets no more.
        if connection.qp.is_send_queue_full() {
            return (None, false);
        }
        connection.qp.handler().next()
    }

    #[inline]
    fn request(
        connection: &Connection,
        item: RecvItem,
        rqst: &mut SvcRqst<'_>,
    ) -> Result<Option<(Request, Argument)>> {
        receive::request(connection, item, rqst)
    }

    #[inline]
    fn reply(
        connection: &Connection,
        request: Request,
        payloads: &mut [Payload],
        rqst: &mut SvcReply<'_>,
    ) -> Result {
        reply::send(connection, request, payloads, rqst)
    }

    fn dropped(connection: &Connection) {
        connection.dropped();
    }

    fn shutdown(connection: &Connection) {
        connection.qp.shutdown();
    }

    const REVERSE_CREDITS: u32 = grant::REVERSE;

    fn call(connection: &Connection, message: &RpcRqst<'_>) -> Result {
        reverse::call(connection, message)
    }

    fn call_ended(connection: &Connection, xid: u32) {
        reverse::ended(connection, xid);
    }
}
