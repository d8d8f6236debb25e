// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Safe verbs: what a transport needs of ib_core and rdma_cm.
//!
//! Two rules carry the safety of everything here. What is posted to the adapter is owned by the
//! queue that it was posted to, and comes back only with its completion. And a [`QueuePair`] is
//! torn down by one owner, in one order, written at [`QueuePair::shutdown`].
//!
//! C headers: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h),
//! [`include/rdma/rdma_cm.h`](srctree/include/rdma/rdma_cm.h).

mod buffer;
mod cm;
mod device;
#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
mod fake;
mod hardware;
mod ledger;
mod queue_pair;
mod recv_queue;
mod region;
mod send_queue;

pub(crate) use self::{
    cm::{
        CmEvent,
        CmEventKind,
        CmHandler,
        CmId,
        ConnectParams, //
    },
    device::DeviceLimits,
    ledger::Ledger,
    queue_pair::{
        status_words, //
        Handler,
        InvalidatedKey,
        QueuePair,
        QueuePairConfig,
        Received,
    },
    region::{
        Access,
        Fenced,
        Regions, //
    },
    send_queue::SendBuffer,
};
