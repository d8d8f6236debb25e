// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Accepting a connection.

use crate::{
    kapi::{
        ib::{
            CmId,
            ConnectParams,
            DeviceLimits,
            DeviceName,
            TransferSizes, //
        },
        sunrpc::SvcHandle,
        sys::{
            address::SocketAddress,
            log::{
                debug_server,
                warn_about, //
            },
            sysctl::Tunable, //
        },
        trace, //
    },
    server::{
        all_pulls::AllPulls,
        connection::{
            Connection,
            Responder, //
        },
        drops,
        events::{
            Events,
            Pending, //
        },
        poison::Poison,
        pulls::Pulls,
        sizes::{
            Sizes,
            CHUNKS,
            LIST_SEGMENTS,
            SEGMENTS, //
        },
    },
    transport::{
        bring_up,
        endpoint::{
            Endpoint,
            EndpointConfig, //
        },
    },
};
use kernel::{
    prelude::*,
    sync::Arc, //
};
use xdr::{
    InlineSize,
    Limits,
    PrivateData, //
};

/// Bytes of a Reply without Reply chunk that a peer may get inline which does not say what it
/// takes. It has said that the Reply will fit (RFC 8166, section 4.3.3), and userland clients that
/// say nothing of themselves do have more room than 1024 bytes.
const SILENT_PEER: usize = 4096;

/// The sizes of a connection's queue pair.
fn config(sizes: &Sizes) -> EndpointConfig {
    let size = Tunable::SvcMaxReqSize.get() as usize;
    let queues = &sizes.queues;
    EndpointConfig {
        send_entries: queues.sends,
        regions_per_call: sizes.provides.map_or(1, |provides| provides.regions),
        // One for each that is posted, and for each message that may be answered meanwhile.
        send_buffers: queues.sends.saturating_add(queues.receives),
        send_size: size,
        receives: queues.receives,
        receive_size: size,
        region: sizes.provides.map(|provides| provides.region),
        transfers: Some(TransferSizes {
            elements: sizes.elements,
            contexts: SEGMENTS as u32,
            reads: queues.messages,
        }),
        longest_read: 0,
        provided: sizes.provides.map_or(0, |provides| provides.replies),
    }
}

/// What this end says of itself: whether it provides Replies only to who may pull them.
fn own_data(device: &DeviceLimits, config: &EndpointConfig, may_provide: bool) -> PrivateData {
    let size = InlineSize::from_bytes(config.receive_size as u32);
    PrivateData {
        // Send With Invalidate is one of the extensions. Where no device looks at the key it is no
        // proof.
        remote_invalidation: device.checks_keys(),
        send_size: size,
        receive_size: size,
        pulls: xdr::Pulls {
            may_pull: false,
            may_provide,
        },
    }
}

/// Tells who asks for it of a new connection; the line begins as that of the in-tree module.
fn tell_accepted(
    device: &DeviceName,
    (local, remote): &(SocketAddress, SocketAddress),
    config: &EndpointConfig,
    reads: u8,
) {
    let (send, receives) = (config.send_entries, config.receives);
    debug_server(format_args!(
        "svcrdma: new connection accepted on device {device}: local {local}, remote {remote}, \
         {send} send requests, {receives} receives, {reads} reads at once"
    ));
}

/// Makes the endpoint of a connection. May sleep.
fn endpoint(
    id: CmId<Events>,
    device: DeviceLimits,
    (max_message, client_pulls): (usize, bool),
    events: &Arc<Events>,
    poison: &Arc<Poison>,
    (handle, all_pulls): (&SvcHandle, &AllPulls),
) -> Result<Arc<Endpoint<Responder>>> {
    let added = id.requests_beside_reads(SEGMENTS as u32)?;
    let peer = id.addresses().1;
    bring_up::make(
        id,
        device,
        Tunable::SvcMaxRequests.get(),
        |device, requests| {
            let mut sizes = Sizes::new(device, added, requests, max_message)?;
            if client_pulls {
                sizes = sizes.providing(device, max_message);
            }
            Ok((config(&sizes), sizes))
        },
        |sizes| {
            let (handle, events, poison) = (handle.clone(), events.clone(), poison.clone());
            let more = (!device.iwarp, all_pulls.share_of_receives());
            Responder::new(handle, events, peer, poison, more, sizes)
        },
        |unfit| {
            // The peer has gone already, and the device is not at fault.
            if !events.is_over() {
                warn_about(
                    &peer,
                    format_args!("connection from {peer} refused: the device {unfit}"),
                );
            }
        },
    )
}

/// Bounds on what a client may send, where no message has more than so many bytes.
fn limits(max_message: usize) -> Limits {
    Limits {
        read_segments: LIST_SEGMENTS,
        read_chunks: CHUNKS,
        chunk_segments: SEGMENTS,
        write_chunks: CHUNKS,
        write_segments: LIST_SEGMENTS,
        // What is offered beyond the largest result is of no harm.
        write_chunk_bytes: u32::MAX,
        reply_chunk_bytes: u32::MAX,
        ..Limits::floor(u32::try_from(max_message).unwrap_or(u32::MAX))
    }
}

impl Connection {
    /// Accepts a connection. May sleep.
    pub(super) fn accept(new: Pending, handle: SvcHandle, max_message: usize) -> Result<Self> {
        let Pending {
            id,
            events,
            peer,
            reads,
            pulls,
            queue,
            poison,
            pace,
            all_pulls,
        } = new;
        events.attach(handle.clone())?;
        let device = id.limits()?;
        let name = id.device_name()?;
        let addresses = id.addresses();
        let theirs = peer.unwrap_or(PrivateData::DEFAULT);
        // It has to begin RDMA Reads for that, and this end to serve them.
        let reads_back = pulls.min(device.max_rdma_reads);
        let client_pulls =
            theirs.pulls.may_pull && reads_back != 0 && Tunable::SvcReliableReply.is_set();
        let what = (max_message, client_pulls);
        let qp = endpoint(id, device, what, &events, &poison, (&handle, &all_pulls))?;
        let config = qp.config();
        let receives = qp.handler().wanted_receives();
        qp.grow_receives(receives)?;
        qp.post_receives(u32::MAX)
            .inspect_err(|e| trace::svcrdma_rq_post_err(|| (addresses.1, *e)))?;

        let provides = qp.handler().provides();
        let own = own_data(&device, config, provides.is_some());
        let mut private_data = [0; PrivateData::MAX_SIZE];
        let len = own.encode(&mut private_data).map_err(|_| EINVAL)?;
        let params = ConnectParams {
            private_data: private_data.get(..len).ok_or(EINVAL)?,
            initiator_depth: reads.min(device.max_rdma_reads_begun),
            responder_resources: provides.map_or(0, |_| reads_back),
            retry_count: 0,
        };
        qp.accept(&params)
            .inspect_err(|e| trace::svcrdma_accept_err(|| (addresses.1, *e)))?;
        tell_accepted(&name, &addresses, config, params.initiator_depth);

        let send_threshold = own.send_threshold(&theirs) as usize;
        let longest_unoffered = match peer {
            Some(_) => send_threshold,
            None => (own.send_size.bytes() as usize).min(SILENT_PEER),
        };
        let drops = drops::judge(&qp, queue.clone(), pace)?;
        let pulls = provides.map(|provides| Pulls::new(&qp, queue, provides, all_pulls));
        Ok(Self {
            pulls: pulls.transpose()?,
            drops,
            qp,
            addresses,
            limits: limits(max_message),
            send_threshold,
            longest_unoffered,
            invalidate: own.remote_invalidation && theirs.remote_invalidation,
        })
    }
}
