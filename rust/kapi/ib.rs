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
mod forced;
mod handler;
mod hardware;
mod ledger;
mod mr;
mod padding;
mod qp;
mod queue_pair;
mod recv_queue;
mod region;
mod regions;
mod ring;
mod rw;
mod send_buffer;
mod send_queue;
mod trace;
mod transfer;

pub(crate) use self::{
    cm::{
        AcceptParams,
        CmEvent,
        CmEventKind,
        CmHandler,
        CmId,
        ConnectParams,
        ConnectRequest,
        ListenHandler,
        ListenId, //
    },
    device::{
        DeviceLimits,
        DeviceName, //
    },
    handler::{
        Failure,
        Handler,
        QueuePairEvent,
        Received, //
    },
    ledger::Ledger,
    mr::{
        Access,
        Covered, //
    },
    queue_pair::{
        NotMade,
        QueuePair,
        QueuePairConfig,
        Refused,
        TransferConfig, //
    },
    recv_queue::KeptReceive,
    regions::{
        Fenced,
        Invalidated,
        Regions, //
    },
    rw::{
        Fetched,
        TransferKind, //
    },
    send_buffer::SendBuffer,
    send_queue::UNSIGNALED_RUN,
    trace::Waiter,
    transfer::NewTransfer,
};
