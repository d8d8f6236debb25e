// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The server side of sunrpc: listeners and connections, and the requests that come by them.
//!
//! C headers: [`include/linux/sunrpc/svc.h`](srctree/include/linux/sunrpc/svc.h),
//! [`include/linux/sunrpc/svc_xprt.h`](srctree/include/linux/sunrpc/svc_xprt.h)

mod handle;
mod link;
mod ops;
mod payload;
mod reply;
mod reverse;
mod rqst;
mod xprt;

pub(crate) use self::{
    handle::SvcHandle,
    payload::Payload,
    reply::SvcReply,
    rqst::{
        Argument,
        SvcRqst, //
    },
};
pub(super) use self::{
    ops::SvcOps,
    reverse::ReverseOps, //
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

/// A listener of a service, which takes connections.
pub(crate) trait SvcListener: Sized + Send + Sync + 'static {
    /// One connection.
    type Connection: SvcConnection;
    /// The name of the class.
    const NAME: &'static CStr;
    /// The identifier of the class.
    const IDENT: c_int;
    /// Bytes that one READ or WRITE may carry.
    const MAX_PAYLOAD: u32;

    /// Listens on an address. May sleep.
    fn listen(handle: SvcHandle, net: &Net, address: &SocketAddress) -> Result<Self>;
    /// Returns the address that it got.
    fn local_address(&self) -> SocketAddress;
    /// Listens no more: the address is free for others when this returns. May sleep.
    fn unlisten(&self);
    /// Returns whether a connection waits to be accepted.
    fn is_pending(&self) -> bool;
    /// Accepts the connection that has waited longest. May sleep.
    fn accept(&self, handle: SvcHandle, max_message: usize) -> Result<Self::Connection>;
}

/// A connection of a service.
pub(crate) trait SvcConnection: ReverseDirection + Sized + Send + Sync + 'static {
    /// What came by it, from its arrival until it is looked at.
    type RecvItem: SvcItem<Self>;
    /// The received message of a request, and what the service wants to know of it for the Reply.
    type Message: SvcMessage<Self> + StableBytes + Send + 'static;

    /// Returns the local and the peer's address.
    fn addresses(&self) -> (SocketAddress, SocketAddress);
    /// Closes the connection; its memory stays until the last request is done. May sleep.
    fn detach(&self);
    /// Takes what came next, and says whether there is more. From a service thread.
    fn next(&self) -> (Option<Self::RecvItem>, bool);
    /// Takes note of a request that ends without a Reply, and whose message was dropped, while the
    /// connection goes on. May sleep.
    fn dropped(&self);
    /// Lets everything go. Sleeps.
    fn shutdown(&self);
}

/// What came by a connection.
pub(crate) trait SvcItem<C: SvcConnection> {
    /// Makes a request of it, with its argument. None: there is nothing to execute, or not yet.
    /// From a service thread; may sleep.
    fn request(
        self,
        connection: &C,
        rqst: &mut SvcRqst<'_>,
    ) -> Result<Option<(C::Message, Argument)>>;
}

/// The received message of a request.
pub(crate) trait SvcMessage<C> {
    /// Sends the Reply. `payloads` are the parts of the result that may be placed directly, in
    /// order; they are not looked at any more. From a service thread; may sleep.
    fn reply(self, connection: &C, payloads: &mut [Payload], rqst: &mut SvcReply<'_>) -> Result;
}

/// A connection by which Calls go to the client, too.
pub(crate) trait ReverseDirection {
    /// Calls that may wait for their Replies at once.
    const CREDITS: u32;

    /// Sends a Call; one that can never be sent counts as sent, and its RPC ends with its time.
    /// From an RPC task; may sleep.
    ///
    /// `ENOTCONN`: the connection is lost. `EAGAIN`: to be tried again when the transport has
    /// space. `ENOBUFS`: to be tried again later.
    fn call(&self, message: &RpcRqst) -> Result;
    /// Ends the RPC of a Call, in whatever way. From its task, under a spin lock.
    fn call_ended(&self, xid: u32);
}
