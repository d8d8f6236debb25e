// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! What a client transport does for the RPC layer.

use crate::kapi::{
    sunrpc::{
        buffer::RpcBuffer,
        connecting::Connecting,
        rqst::{
            ReverseRqst,
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

/// Why a message was not sent. The RPC layer gives it to the task that sends, which need not be
/// that of the message: there is nothing here that would end an RPC.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SendError {
    /// There is no connection, or none that it can be sent on, which is closed.
    NotConnected,
    /// It is to be sent again when [`Xprt::space`] says so.
    NoSpace,
    /// It is to be sent again soon: memory is short, or it is another's turn.
    NoBuffers,
    /// It has no unit of the congestion window, or another is sent first.
    NoSlot,
}

impl SendError {
    /// Returns the errno that the RPC layer knows it by.
    pub(super) fn to_errno(self) -> c_int {
        let error = match self {
            Self::NotConnected => ENOTCONN,
            Self::NoSpace => EAGAIN,
            Self::NoBuffers => ENOBUFS,
            Self::NoSlot => EBADSLT,
        };
        error.to_errno()
    }
}

/// Any other error is the message's own.
impl TryFrom<Error> for SendError {
    type Error = Error;

    fn try_from(error: Error) -> Result<Self> {
        match error {
            ENOTCONN => Ok(Self::NotConnected),
            EAGAIN => Ok(Self::NoSpace),
            ENOBUFS | ENOMEM => Ok(Self::NoBuffers),
            EBADSLT => Ok(Self::NoSlot),
            other => Err(other),
        }
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
    /// How many RPCs the transport may have under way.
    fn slots() -> u32;

    /// Starts to connect to `address` after `delay`; the outcome is reported with `connecting`. May
    /// not sleep long: called from an RPC task.
    fn connect(&self, delay: Jiffies, address: SocketAddress, connecting: Connecting);
    /// Ends the connection; returns when nothing of it is left. May sleep. The RPC layer has
    /// locked the transport, so nothing is being sent.
    fn close(&self);
    /// The RPC layer will make no further call. May sleep.
    fn destroy(&self);
    /// The Reply to a Call that was sent on this connection is overdue. Does not sleep.
    ///
    /// `retransmits` is false for one that is sent again on another connection only (NFS 4).
    fn overdue(&self, call: ArcBorrow<'_, Self::Call>, retransmits: bool);
    /// Breaks the connection as if the network had, for the kernel's fault injection.
    fn inject_disconnect(&self);

    /// Memory for the messages of a new RPC, with the transport's state of it; it grows as needed.
    /// Called from an RPC task: may sleep as that may. `ENOMEM`: the RPC layer tries again soon.
    fn get_buffer(&self) -> Result<RpcBuffer<Self::Call>>;
    /// The RPC of a task ends; no region may cover its memory afterwards. May sleep until that is
    /// so.
    fn fence(&self, call: ArcBorrow<'_, Self::Call>, task: Task<'_>);
    /// The RPC has ended.
    fn put_buffer(&self, buffer: RpcBuffer<Self::Call>);

    /// Sends a Call. The RPC layer has locked the transport. May sleep as the task may.
    ///
    /// No Reply to it is found before it is said to be sent.
    ///
    /// Errors as [`SendError`] has them: to be sent again. Any other ends the RPC.
    fn send(&self, xprt: &Xprt, rqst: Rqst<'_, Self::Call>) -> Result;
    /// Sends the Reply of a reverse request, as [`Self::send`]; an error that is the Reply's own
    /// ends the connection (RFC 8166, section 4.5.4).
    fn send_reverse_reply(&self, xprt: &Xprt, rqst: ReverseRqst<'_>) -> Result;

    /// The RPC layer is going to answer reverse Calls. May sleep.
    fn reverse_enabled(&self);
    /// The RPC layer does not answer reverse Calls any more.
    fn reverse_disabled(&self);
    /// The RPC layer is done with a Call that came by that connection, and may have room for
    /// another; `unanswered` if no Reply was sent. May sleep.
    fn reverse_ended(&self, connection: u64, unanswered: bool);
    /// Bytes of a reverse Call or Reply, at most.
    fn reverse_payload(&self) -> usize;

    /// Writes the transport's part of a mount's statistics.
    fn print_stats(&self, xprt: &Xprt, seq: &SeqFile);
}

#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
mod tests;
