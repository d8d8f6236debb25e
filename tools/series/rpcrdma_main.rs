// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! RPC-over-RDMA transport.

#![deny(unsafe_code)]
// Until the transports are registered nothing is used.
#![allow(dead_code, unused_imports, unused_macros)]

#[allow(unsafe_code)]
mod kapi;

#[forbid(unsafe_code)]
mod client;
#[forbid(unsafe_code)]
mod server;
#[forbid(unsafe_code)]
mod transport;

use kernel::prelude::*;

module! {
    type: RpcRdma,
    name: "rpcrdma",
    authors: ["The rpcrdma developers"],
    description: "RPC/RDMA transport",
    license: "Dual BSD/GPL",
    alias: ["svcrdma", "xprtrdma", "rpcrdma6"],
}

/// Nothing is registered yet.
struct RpcRdma;

impl kernel::Module for RpcRdma {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        Ok(Self)
    }
}
