// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Safe sunrpc: the transport switch, and the requests and buffers of the RPC layer.
//!
//! C headers: [`include/linux/sunrpc/xprt.h`](srctree/include/linux/sunrpc/xprt.h),
//! [`include/linux/sunrpc/xdr.h`](srctree/include/linux/sunrpc/xdr.h).

mod backchannel;
mod buffer;
mod class;
mod connecting;
mod display;
mod encoded;
mod handle;
mod private;
mod progress;
mod registration;
mod room;
mod rqst;
mod setup;
mod svc;
mod task;
mod transport;
mod xdr_buf;
mod xprt;
mod xprt_handle;
mod xprt_ops;

pub(crate) use self::{
    backchannel::{
        MAX_REVERSE,
        SHORT_REVERSE, //
    },
    buffer::{
        NotFound,
        RpcBuffer, //
    },
    connecting::Connecting,
    registration::{
        register,
        Registered, //
    },
    rqst::{
        PinnedRqst,
        RpcRqst,
        Rqst, //
    },
    svc::{
        Argument,
        Payload,
        ReverseDirection,
        SvcConnection,
        SvcHandle,
        SvcItem,
        SvcListener,
        SvcMessage,
        SvcReply,
        SvcRqst, //
    },
    task::Task,
    transport::Transport,
    xdr_buf::XdrBuf,
    xprt::Xprt,
    xprt_handle::XprtHandle, //
};
#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
pub(crate) use self::{
    class::{
        find_transport_ident,
        CLIENT,
        REVERSE, //
    },
    setup::Unmounted, //
};
