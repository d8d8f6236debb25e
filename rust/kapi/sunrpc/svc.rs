// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The server side of sunrpc: listeners and connections, and the requests that come by them.
//!
//! C headers: [`include/linux/sunrpc/svc.h`](srctree/include/linux/sunrpc/svc.h),
//! [`include/linux/sunrpc/svc_xprt.h`](srctree/include/linux/sunrpc/svc_xprt.h)

mod class;
mod handle;
mod link;
mod ops;
mod payload;
mod reply;
mod reverse;
mod rqst;
mod xprt;

pub(crate) use self::{
    class::{
        register_service,
        RegisteredService, //
    },
    handle::SvcHandle,
    payload::Payload,
    reply::SvcReply,
    rqst::{
        Argument,
        SvcRqst, //
    },
};

use crate::kapi::{
    sunrpc::rqst::RpcRqst,
    sys::{
        address::SocketAddress,
        net::Net,
        stable::StableBytes, //
    },
};
use core::ffi::{
    c_int,
    CStr, //
};
use kernel::prelude::*;

/// A server transport.
pub(crate) trait Service: Sized + Send + Sync + 'static {
    /// Takes connections.
    type Listener: Send + Sync + 'static;
    /// One connection.
    type Connection: Send + Sync + 'static;
    /// What came by a connection, from its arrival until it is looked at.
    type RecvItem;
    /// The received message of a request, and what the service wants to know of it for the Reply.
    type Message: StableBytes + Send + 'static;
    /// The name of the class.
    const NAME: &'static CStr;
    /// The identifier of the class.
    const IDENT: c_int;
    /// Bytes that one READ or WRITE may carry.
    const MAX_PAYLOAD: u32;

    /// Listens on an address. May sleep.
    fn listen(handle: SvcHandle, net: &Net, address: &SocketAddress) -> Result<Self::Listener>;
    /// The address that a listener got.
    fn local_address(listener: &Self::Listener) -> SocketAddress;
    /// Listens no more: the address is free for others when this returns. May sleep.
    fn unlisten(listener: &Self::Listener);
    /// Whether a connection waits to be accepted.
    fn is_pending(listener: &Self::Listener) -> bool;
    /// Accepts the next connection. May sleep.
    fn accept(
        listener: &Self::Listener,
        handle: SvcHandle,
        max_message: usize,
    ) -> Result<Self::Connection>;
    /// The local and the peer's address.
    fn addresses(connection: &Self::Connection) -> (SocketAddress, SocketAddress);
    /// Closes a connection; its memory stays until the last request is done. May sleep.
    fn detach(connection: &Self::Connection);

    /// Takes what came next, and says whether there is more. From a service thread.
    fn next(connection: &Self::Connection) -> (Option<Self::RecvItem>, bool);
    /// Looks at it: a request with its argument, or nothing to execute (yet). From a service
    /// thread; may sleep.
    fn request(
        connection: &Self::Connection,
        item: Self::RecvItem,
        rqst: &mut SvcRqst<'_>,
    ) -> Result<Option<(Self::Message, Argument)>>;
    /// Sends the Reply. `payloads` are the parts of the result that may be placed directly, in
    /// order; they are not looked at any more. From a service thread; may sleep.
    fn reply(
        connection: &Self::Connection,
        message: Self::Message,
        payloads: &mut [Payload],
        rqst: &mut SvcReply<'_>,
    ) -> Result;
    /// A request ends without a Reply, and its message was dropped, while the connection goes on.
    /// May sleep.
    fn dropped(connection: &Self::Connection);
    /// Lets everything go. Sleeps.
    fn shutdown(connection: &Self::Connection);

    /// Calls in the reverse direction that may wait for their Replies at once.
    const REVERSE_CREDITS: u32;
    /// Sends a Call in the reverse direction; one that can never be sent counts as sent, and its
    /// RPC ends with its time. From an RPC task; may sleep.
    ///
    /// `ENOTCONN`: the connection is lost. `EAGAIN`: to be tried again when the transport has
    /// space. `ENOBUFS`: to be tried again later.
    fn call(connection: &Self::Connection, message: &RpcRqst<'_>) -> Result;
    /// The RPC of a Call in the reverse direction is over, in whatever way. From its task, under a
    /// spin lock.
    fn call_ended(connection: &Self::Connection, xid: u32);
}
