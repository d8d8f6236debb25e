// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The responder: a server transport for nfsd.

mod accept;
mod all_pulls;
mod backlog;
mod connection;
mod drops;
mod events;
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
mod status;
mod trace;
mod unsent;
mod waiting;

pub(crate) use self::listener::Listener;

use self::{
    connection::Connection,
    request::Request,
    waiting::RecvItem, //
};
use crate::kapi::{
    sunrpc::SvcConnection,
    sys::address::SocketAddress, //
};

impl SvcConnection for Connection {
    type RecvItem = RecvItem;
    type Message = Request;

    fn addresses(&self) -> (SocketAddress, SocketAddress) {
        self.addresses
    }

    fn detach(&self) {
        // Without a connection there is nothing to end.
        let _ = self.qp.disconnect();
    }

    #[inline]
    fn next(&self) -> (Option<RecvItem>, bool) {
        // A client that takes no Replies would otherwise occupy memory for each Call, whatever its
        // grant. Further messages stay in their Receives, which are not posted again.
        if self.qp.is_send_queue_full() {
            return (None, false);
        }
        self.qp.handler().next()
    }

    fn dropped(&self) {
        self.call_dropped();
    }

    fn shutdown(&self) {
        self.qp.shutdown();
    }
}
