// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Safe verbs: what a transport needs of ib_core and rdma_cm.
//!
//! Three rules carry the safety of everything here. What is posted to the adapter is owned by the
//! queue that it was posted to, and comes back only with its completion. A [`QueuePair`] is torn
//! down by one owner, in one order, written at [`QueuePair::shutdown`]. And whatever uses its
//! device is counted, so that this waits for it.
//!
//! C headers: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h),
//! [`include/rdma/rdma_cm.h`](srctree/include/rdma/rdma_cm.h).

mod buffer;
mod cm;
mod device;
mod dma_track;
#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
pub(crate) mod fake;
mod gate;
mod mr;
mod node;
mod qp_resources;
mod queue_pair;
mod recv_queue;
mod region;
mod regions;
mod ring;
mod rw;
mod wc;

pub(crate) use self::{
    buffer::{
        DmaBuffer,
        Maker,
        MappedBuffer, //
    },
    cm::{
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
        DeviceName,
        PortName, //
    },
    dma_track::Ledger,
    gate::Poster,
    mr::{
        Access,
        Covered,
        NotMapped,
        RemoteKey, //
    },
    qp_resources::{
        Part,
        QpSizes, //
    },
    queue_pair::{
        Consumer,
        Locked,
        NotMade,
        QpEvent,
        QueuePair,
        Step, //
    },
    recv_queue::{
        Received,
        RecvBuf, //
    },
    region::{
        Idle,
        Invalidated,
        InvalidatedKey,
        Region,
        Registered, //
    },
    regions::Regions,
    ring::{
        Chain,
        Posted,
        Reading,
        SendDone,
        SEND_SIGNALED, //
    },
    rw::{
        NotAdded,
        RwCtx,
        TransferKind, //
    },
    wc::Wc, //
};
