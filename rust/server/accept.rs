// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Accepting a connection.

use crate::{
    kapi::{
        ib::{
            CmId,
            ConnectParams,
            DeviceLimits,
            DeviceName, //
        },
        sunrpc::{
            SvcHandle,
            MAX_REVERSE, //
        },
        sys::{
            address::SocketAddress,
            listing::Entry,
            log::{
                debug_server,
                warn_about, //
            },
            sysctl::Tunable, //
        },
        trace, //
    },
    server::{
        connection::{
            Connection,
            Responder, //
        },
        drops,
        events::{
            Events,
            Pending,
            Shared, //
        },
        pulls::Pulls,
        request::Invalidates,
        sizes::{
            self,
            CHUNKS,
            LIST_SEGMENTS,
            SEGMENTS, //
        },
        status,
    },
    transport::{
        bring_up,
        continued::MOST_FRAGMENTS,
        endpoint::Endpoint,
        flow::{
            credits::Credits,
            grant::{
                Grant,
                REVERSE, //
            },
            Flow, //
        },
        negotiated::{
            Inline,
            PROPERTY_OCTETS, //
        },
        plan::Plan,
        provided::ProvidedLimits, //
    },
};
use kernel::{
    prelude::*,
    sync::Arc, //
};
use xdr::{
    v2::Bounds,
    InlineSize,
    Limits,
    PrivateData, //
};

/// Bytes of a Reply without Reply chunk that may go inline to a peer without private data. It has
/// said that the Reply will fit (RFC 8166, section 4.3.3), and userland clients that say nothing of
/// themselves do have more room than 1024 bytes.
const SILENT_PEER: u32 = 4096;

/// Returns the private data of this end (RFC 8797), which provides Replies only to a client that
/// may pull them.
fn own_data(device: &DeviceLimits, plan: &Plan, may_provide: bool) -> PrivateData {
    let size = InlineSize::from_bytes(plan.receive_size as u32);
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

/// Logs a new connection, if that is asked for; the line begins as that of the in-tree module.
fn tell_accepted(
    device: &DeviceName,
    (local, remote): &(SocketAddress, SocketAddress),
    plan: &Plan,
    reads: u8,
) {
    let (send, receives) = (plan.qp.max_send_wr, plan.qp.max_recv_wr);
    debug_server(format_args!(
        "svcrdma: new connection accepted on device {device}: local {local}, remote {remote}, \
         {send} send requests, {receives} receives, {reads} reads at once"
    ));
}

/// Makes the endpoint of a connection whose messages have up to `max_message` bytes, and whose
/// client may have up to `provided_bytes` provided, if it pulls. Returns the limits on that, too.
/// May sleep.
fn endpoint(
    id: CmId<Events>,
    device: DeviceLimits,
    max_message: usize,
    provided_bytes: Option<usize>,
    events: &Arc<Events>,
    shared: &Shared,
    handle: &SvcHandle,
) -> Result<(Arc<Endpoint<Responder>>, Option<ProvidedLimits>)> {
    let peer = id.addresses().1;
    let size = Tunable::SvcMaxReqSize.get() as usize;
    let version_2 = Tunable::SvcMaxVersion.get() > 1;
    bring_up::make(
        id,
        device,
        Tunable::SvcMaxRequests.get(),
        |device, rpcs| {
            let (mut plan, provides) = sizes::plan(device, rpcs, max_message, provided_bytes)?;
            (plan.send_size, plan.receive_size) = (size, size);
            plan.qp.more_sends = if version_2 { MOST_FRAGMENTS as u32 } else { 0 };
            Ok((plan, provides))
        },
        |plan, _| {
            let (handle, events) = (handle.clone(), events.clone());
            let bounds = bounds(max_message);
            let credits = Credits::new(0, REVERSE, false)?;
            let flow = Flow::new(credits, Grant::new(plan.rpcs), version_2.then_some(&bounds))?;
            let responder = Responder::new(handle, events, peer, shared, plan, bounds)?;
            Ok((flow, responder))
        },
        |reason| {
            // The peer has gone already, and the device is not at fault.
            if !events.is_over() {
                warn_about(
                    &peer,
                    format_args!("connection from {peer} refused: the device {reason}"),
                );
            }
        },
    )
}

/// Returns the bounds on what a client may send, where no message has more than `max_message`
/// bytes.
fn bounds(max_message: usize) -> Bounds {
    let limits = Limits {
        read_segments: LIST_SEGMENTS,
        read_chunks: CHUNKS,
        chunk_segments: SEGMENTS,
        write_chunks: CHUNKS,
        write_segments: LIST_SEGMENTS,
        // What is offered beyond the largest result is of no harm.
        write_chunk_bytes: u32::MAX,
        reply_chunk_bytes: u32::MAX,
        ..Limits::floor(u32::try_from(max_message).unwrap_or(u32::MAX))
    };
    Bounds {
        calls: limits,
        replies: limits,
        call_octets: limits.read_list_bytes,
        reply_octets: MAX_REVERSE as u32,
        fragments: MOST_FRAGMENTS as u32,
        property_octets: PROPERTY_OCTETS,
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
            shared,
        } = new;
        events.attach(handle.clone())?;
        let device = id.limits()?;
        let name = id.device_name()?;
        let addresses = id.addresses();
        let theirs = peer.unwrap_or(PrivateData::DEFAULT);
        // It has to begin RDMA Reads for that, and this end to serve them.
        let reads_back = pulls.min(device.max_rdma_reads);
        let allowed = Tunable::SvcReliableReply.is_set();
        let client_pulls = theirs.pulls.may_pull && reads_back != 0 && allowed;
        let bytes = client_pulls.then(|| Tunable::SvcReliableReplyBytes.get() as usize);
        let (qp, provides) = endpoint(id, device, max_message, bytes, &events, &shared, &handle)?;
        let plan = qp.plan();
        let receives = qp.lock().flow.grant.receives();
        qp.grow_receives(receives)?;
        qp.post_receives(u32::MAX)
            .inspect_err(|e| trace::svcrdma_rq_post_err(|| (addresses.1, *e)))?;

        let own = own_data(&device, plan, provides.is_some());
        let send = own.send_threshold(&theirs);
        qp.set_inline(&Inline {
            send,
            receive: own.receive_threshold(&theirs),
            unoffered: match peer {
                Some(_) => send,
                None => own.send_size.bytes().min(SILENT_PEER),
            },
        });
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
        tell_accepted(&name, &addresses, plan, params.initiator_depth);
        let off = (provides.is_none()).then(|| status::no_pulls(&theirs, pulls, allowed));
        qp.set_terms(status::terms(&theirs, &device, off));

        let drops = drops::judge(&qp, shared.queue.clone(), shared.pace)?;
        let pulls = provides.map(|limits| Pulls::new(&qp, shared.queue, limits, shared.all_pulls));
        Ok(Self {
            pulls: pulls.transpose()?,
            drops,
            _entry: Entry::new(qp.clone()),
            qp,
            addresses,
            invalidates: match (own.remote_invalidation, theirs.remote_invalidation) {
                (false, _) => Invalidates::None,
                (true, false) => Invalidates::Named,
                (true, true) => Invalidates::Any,
            },
        })
    }
}
