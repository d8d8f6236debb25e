// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! What a client transport does for the RPC layer.

use crate::kapi::{
    sunrpc::{
        buffer::RpcBuffer,
        connecting::Connecting,
        rqst::{
            RpcRqst,
            Rqst, //
        },
        task::Task,
        xprt::Xprt,
        xprt_handle::XprtHandle, //
    },
    sys::{
        address::SocketAddress,
        workqueue::OwnedQueue, //
    },
};
use core::ffi::{
    c_int,
    CStr, //
};
use kernel::{
    prelude::*,
    seq_file::SeqFile,
    sync::{
        Arc,
        ArcBorrow, //
    },
    time::Jiffies, //
};

/// Returns the error by which the RPC layer sends a message again that could not be sent; none for
/// an error that is the message's own. The RPC layer gives it to the task that sends, which need
/// not be that of the message: there is nothing here that would end an RPC.
///
/// - `ENOTCONN`: there is no connection, or none that it can be sent on, which is closed.
/// - `EAGAIN`: it is to be sent again when [`Xprt::space`] says so.
/// - `ENOBUFS`: it is to be sent again soon; memory is short, or it is another's turn.
/// - `EBADSLT`: it has no unit of the congestion window, or another is sent first.
pub(super) fn to_send_again(error: Error) -> Option<Error> {
    match error {
        ENOTCONN | EAGAIN | ENOBUFS | EBADSLT => Some(error),
        ENOMEM => Some(ENOBUFS),
        _ => None,
    }
}

/// What a client transport does for the RPC layer.
pub(crate) trait Transport: Sized + Send + Sync + 'static {
    /// The transport's state of one RPC.
    type Call: Send + Sync + 'static;
    /// The identifier of the class.
    const IDENT: c_int;
    /// The name of the class.
    const NAME: &'static CStr;
    /// The network identifiers of the class, for IPv4 and IPv6.
    const NETIDS: [&'static CStr; 2];
    /// Bytes that one READ or WRITE may carry.
    const MAX_PAYLOAD: usize;
    /// Reverse Calls that it can take at once.
    const REVERSE_SLOTS: u32;

    /// Makes the transport of a mount, whose work is done on `queue`, as that of all others. No
    /// work there may wait for other work there. May sleep.
    fn new(xprt: XprtHandle<Self::Call>, queue: Arc<OwnedQueue>) -> Result<Self>;
    /// Returns the number of RPCs that the transport may have under way.
    fn slots() -> u32;

    /// Returns the greatest length of a reverse Call or Reply on any connection.
    fn longest_reverse() -> usize;

    /// Starts to connect to `address` after `delay`; the outcome is reported with `connecting`. May
    /// not sleep long: called from an RPC task.
    fn connect(&self, delay: Jiffies, address: SocketAddress, connecting: Connecting);
    /// Ends the connection; returns when nothing of it is left. May sleep. The RPC layer has
    /// locked the transport, so nothing is being sent.
    fn close(&self);
    /// Ends the transport: the RPC layer will make no further call. May sleep.
    fn destroy(&self);
    /// Reports that the Reply to a Call that was sent on this connection is overdue. Does not
    /// sleep.
    ///
    /// `retransmits` is false for one that is sent again on another connection only (NFS 4).
    fn overdue(&self, call: ArcBorrow<'_, Self::Call>, retransmits: bool);
    /// Breaks the connection as if the network had, for the kernel's fault injection.
    fn inject_disconnect(&self);

    /// Returns memory for the messages of a new RPC, with the transport's state of it; it grows as
    /// needed. Called from an RPC task: may sleep as that may. `ENOMEM`: the RPC layer tries again
    /// soon.
    fn get_buffer(&self) -> Result<RpcBuffer<Self::Call>>;
    /// Fences the memory of an RPC that ends: no region may cover it afterwards. May sleep until
    /// that is so.
    fn fence(&self, call: ArcBorrow<'_, Self::Call>, task: &Task);
    /// Takes the memory of an RPC back, which has ended.
    fn put_buffer(&self, buffer: RpcBuffer<Self::Call>);

    /// Sends a Call. The RPC layer has locked the transport. May sleep as the task may.
    ///
    /// No Reply to it is found before it is said to be sent.
    ///
    /// With the errors of [`to_send_again`] it is sent again. Any other ends the RPC.
    fn send(&self, xprt: &Xprt, rqst: Rqst<'_, Self::Call>) -> Result;
    /// Sends the Reply to a reverse Call that came by that connection, as [`Self::send`]; an error
    /// that is the Reply's own ends the connection (RFC 8166, section 4.5.4).
    fn send_reverse_reply(&self, rqst: &RpcRqst, connection: u64) -> Result;

    /// Allows reverse Calls: the RPC layer is going to answer them. May sleep.
    fn reverse_enabled(&self);
    /// Ends reverse Calls: the RPC layer does not answer them any more.
    fn reverse_disabled(&self);
    /// Ends a Call that came by that connection: the RPC layer may have room for another.
    /// `unanswered` if no Reply was sent. May sleep.
    fn reverse_ended(&self, connection: u64, unanswered: bool);
    /// Returns the greatest length of a reverse Call or Reply on its connection.
    fn reverse_payload(&self) -> usize;

    /// Writes the transport's part of a mount's statistics.
    fn print_stats(&self, xprt: &Xprt, seq: &SeqFile);
}

#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
mod tests;
