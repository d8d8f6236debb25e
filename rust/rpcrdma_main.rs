// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! RPC-over-RDMA transport.

#![deny(unsafe_code)]

#[allow(unsafe_code)]
mod kapi;

#[forbid(unsafe_code)]
mod client;
#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
#[forbid(unsafe_code)]
#[path = "../kunit/kunit.rs"]
mod kunit;
#[forbid(unsafe_code)]
mod server;
#[forbid(unsafe_code)]
mod transport;

use kapi::{
    ib::Ledger,
    sunrpc::{
        register,
        Registered, //
    },
    sys::{
        listing::{
            Listing,
            Published, //
        },
        module::say_version,
        sysctl::Sysctl, //
    },
};
use kernel::prelude::*;

module! {
    type: RpcRdma,
    name: "rpcrdma",
    authors: ["The rpcrdma developers"],
    description: "RPC/RDMA transport",
    license: "Dual BSD/GPL",
    alias: ["svcrdma", "xprtrdma", "rpcrdma6"],
}

/// What is registered while the module is loaded, in the order in which it goes.
struct RpcRdma {
    _connections: Published,
    _sysctl: Option<Sysctl>,
    _classes: Registered,
    _ledger: Ledger,
}

impl kernel::Module for RpcRdma {
    fn init(module: &'static ThisModule) -> Result<Self> {
        let _ledger = Ledger::open()?;
        let listing = Listing::new()?;
        // Where the in-tree module is built in, this is refused.
        let refused = |e: &Error| {
            pr_err!(
                "the transport class \"rdma\" cannot be registered ({e:?}): is another built in?\n"
            );
        };
        let classes = register::<client::ClientXprt, server::Listener>(module);
        let _classes = classes.inspect_err(refused)?;
        // From here on there may be mounts, so nothing can fail any more.
        let warn = |e: &Error| pr_warn!("there are no tunables in /proc/sys/sunrpc ({e:?})\n");
        let _sysctl = Sysctl::register().inspect_err(warn).ok();
        say_version();
        Ok(Self {
            _connections: listing.publish(),
            _sysctl,
            _classes,
            _ledger,
        })
    }
}
