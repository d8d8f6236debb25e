// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Connecting to a server.

use crate::{
    client::{
        answer::BOUNDS,
        cm_state::CmState,
        connection::{
            Connection,
            Requester, //
        },
        connection_slot::ConnectionSlot,
        keep_alive::{
            self,
            KeepAlive, //
        },
        loss::LossNotifier,
        outage::Unmade,
        sizes::{
            self,
            REVERSE_SLOTS, //
        },
        stats::Stat,
        status,
        trace::{
            negotiated,
            version, //
        },
        xprt_state::XprtState, //
    },
    kapi::{
        ib::{
            CmId,
            ConnectParams,
            DeviceLimits,
            PortName, //
        },
        sys::{
            address::SocketAddress,
            log,
            sysctl::Tunable,
            time::HZ,
            workqueue::{
                DelayedWork,
                Timer,
                WorkItem, //
            },
        },
        trace, //
    },
    transport::{
        bring_up,
        continued::MOST_FRAGMENTS,
        flow::{
            credits::Credits,
            grant::Grant,
            Flow, //
        },
        negotiated::Inline,
        send_buffer::Purpose, //
    },
};
use kernel::{
    prelude::*,
    sync::Arc,
    time::Jiffies, //
};
use xdr::{
    InlineSize,
    PrivateData,
    Pulls, //
};

/// Milliseconds to wait for an address, and for a route.
const RESOLVE_TIMEOUT: u32 = 5000;
/// Jiffies to wait for the server's answer. The connection manager would ask for longer than the
/// RPC layer waits to be told.
const CONNECT_TIMEOUT: Jiffies = 30 * HZ;
/// Jiffies that the server may take for the first Call, which is that of the transport itself.
const ANSWER_TIMEOUT: Jiffies = 30 * HZ;
/// Retransmissions by the adapter: few, so that a server that has moved is noticed soon. The RPC
/// layer takes care of the rest.
const RETRY_COUNT: u8 = 6;
/// Regions that a connection begins with, at least.
const FIRST_REGIONS: u32 = 4;

/// Connects, as a work item.
pub(crate) struct Connector {
    pub(super) slot: Arc<ConnectionSlot>,
    pub(super) keep_alive: Arc<DelayedWork<KeepAlive>>,
}

impl WorkItem for Connector {
    fn run(&self, _timer: Timer<'_>) {
        // Memory that is wanted here may wait for this very mount otherwise.
        let _scope = self.slot.state.memory_scope();
        self.slot.end();
        let Some((address, connecting)) = self.slot.take_attempt() else {
            return;
        };
        match connect(&self.slot.state, address, connecting.program()) {
            Ok(connection) => {
                let requester = connection.handler();
                requester.set_keep_alive(self.keep_alive.clone());
                self.slot.begin(connection);
                self.keep_alive.queue(KeepAlive::first_check());
                connecting.succeeded();
                // They may have been enabled, and Calls have come, before that.
                if self.slot.state.reverse_enabled() {
                    self.slot.expect_reverse_calls();
                }
                // Last, since it may wait for somebody who reads the list.
                self.slot.list();
            }
            Err(e) => connecting.failed(e),
        }
    }
}

/// Connects for an RPC of `program`. Runs in the work item; sleeps.
fn connect(
    shared: &Arc<XprtState>,
    address: SocketAddress,
    program: (u32, u32),
) -> Result<Arc<Connection>> {
    let unmade = |e: &Error| tell_unmade(shared, &address, *e);
    let mut version_2 = shared.tries_version_2();
    loop {
        let loss = LossNotifier::new(shared.clone(), address).inspect_err(unmade)?;
        let cm = CmState::new(loss.clone()).inspect_err(unmade)?;
        let made = attempt(shared, program, &loss, &cm, version_2);
        trace::xprtrdma_connect(|| {
            let result = made.as_ref().err().map_or(0, |e| e.to_errno());
            (address, result, cm.status())
        });
        if let (Err(e), false) = (&made, loss.was_told()) {
            unmade(e);
        }
        if made.is_ok() || !version_2 || !loss.was_connected() {
            return made;
        }
        // It may be a server that does not know what it is to do with version 2.
        shared.note_only_version_1();
        version_2 = false;
    }
}

/// Connects with an id whose state is `cm`, beginning with version 2 if that is said. Sleeps.
fn attempt(
    shared: &Arc<XprtState>,
    program: (u32, u32),
    loss: &Arc<LossNotifier>,
    cm: &Arc<CmState<Arc<LossNotifier>>>,
    version_2: bool,
) -> Result<Arc<Connection>> {
    let (xprt, address) = (&shared.xprt, loss.address());
    let timeout = Jiffies::from(RESOLVE_TIMEOUT as usize) * HZ / 1000 + 1;

    let id = CmId::new(xprt.net(), cm.clone())?;
    cm.wait_step(timeout, || id.resolve_address(address, RESOLVE_TIMEOUT))?;
    cm.wait_step(timeout, || id.resolve_route(RESOLVE_TIMEOUT))?;

    let device = id.limits()?;
    let pages = Tunable::RegionPages.get();
    let (own, peer) = id.addresses();
    let number = loss.number();
    let (connection, _) = bring_up::make(
        id,
        device,
        xprt.max_requests(),
        |device, rpcs| {
            let pulls = Tunable::ReliableReply.is_set();
            let (mut plan, regions) = sizes::plan(device, rpcs, pages, pulls)?;
            plan.send_size = Tunable::MaxInlineWrite.get() as usize;
            plan.receive_size = Tunable::MaxInlineRead.get() as usize;
            plan.qp.more_sends = if version_2 { MOST_FRAGMENTS as u32 } else { 0 };
            Ok((plan, regions))
        },
        |plan, regions| {
            let (shared, loss, cm) = (shared.clone(), loss.clone(), cm.clone());
            let credits = Credits::new(number.0, plan.rpcs, true)?;
            let flow = Flow::new(
                credits,
                Grant::new(REVERSE_SLOTS),
                version_2.then_some(&BOUNDS),
            )?;
            let requester = Requester::new(shared, number, program, loss, cm, plan.rpcs, *regions)?;
            Ok((flow, requester))
        },
        |reason| {
            // Why there can be none is said with that.
            let _ = shared.outage.lock().is_news(reason.into());
            log::warn_about(
                address,
                format_args!("the device that leads to {address} {reason}"),
            );
        },
    )?;
    let up = establish(shared, &connection, cm, &device).and_then(|pulls| {
        loss.connected();
        let begun = begin(&connection, version_2, pulls);
        negotiated(&connection, own, peer);
        if begun.is_ok() {
            let regions = &connection.handler().regions;
            let most = regions.payload_within(&connection.chunk_limits());
            xprt.set_max_payload(most);
            version(&connection);
        }
        begun
    });
    if let Err(e) = up {
        loss.disable(0);
        connection.shutdown();
        return Err(e);
    }
    loss.enable();
    tell_up(shared, loss, connection.port());
    Ok(connection)
}

/// Says why there can be no connection, once of each outage.
fn tell_unmade(shared: &XprtState, address: &SocketAddress, error: Error) {
    if shared.outage.lock().is_news(error) {
        let why = Unmade(error);
        log::inform_about(
            address,
            format_args!("connection to {address} cannot be made: {why}"),
        );
    }
}

/// Says that there is a connection again, by that port, at the end of an outage.
fn tell_up(shared: &XprtState, loss: &LossNotifier, port: &PortName) {
    let (outage, server) = (shared.outage.lock().end(loss.number()), loss.address());
    if let Some(seconds) = outage.map(|length| length / HZ) {
        log::inform_about(
            server,
            format_args!("connection to {server} is up again after {seconds} s, on {port}"),
        );
    }
}

/// Waits for the first exchange of the connection, that of the properties if it is to begin with
/// version 2, and for the server's answer to a Call of the transport's own in version 1. If that
/// `pulls`, Replies are pulled. Sleeps.
fn begin(connection: &Connection, version_2: bool, pulls: Option<Invalidates>) -> Result {
    let requester = connection.handler();
    if version_2 {
        let xid = requester.shared.xprt.next_xid();
        connection.offer_version_2(xid).map_err(|_| ENOTCONN)?;
        let patience = keep_alive::interval().unwrap_or(ANSWER_TIMEOUT);
        requester.loss.wait_version(patience.min(ANSWER_TIMEOUT))?;
    } else if Tunable::MaxVersion.get() > 1 {
        connection.note_unanswered();
    }
    if !connection.begins_with_call() {
        return Ok(());
    }
    if Tunable::WriteChunkPadding.is_set() {
        connection.provide_padding()?;
        requester.shared.stats.add(Stat::RegionsMade, 1);
    }
    if let Some(Invalidates(invalidates)) = pulls {
        requester.set_provides(invalidates);
    }
    exchange(connection)
}

/// Waits for the server's answer to a Call of the transport's own, in front of all RPCs. It brings
/// the first grant, so that no RPC has the one credit of a new connection (RFC 8166, section 3.3.3)
/// that the server is slow with, or drops: all others would wait for that one. Sleeps.
fn exchange(connection: &Connection) -> Result {
    keep_alive::send_probe(connection).map_err(|_| ENOTCONN)?;
    connection.handler().loss.wait_answer(ANSWER_TIMEOUT)
}

/// Whether a server that provides Replies wants keys to be invalidated.
struct Invalidates(bool);

/// Allocates what a new connection begins with, and has the server accept it. Returns whether
/// Replies can be pulled from the server. Sleeps.
fn establish(
    shared: &XprtState,
    connection: &Connection,
    cm: &CmState<Arc<LossNotifier>>,
    device: &DeviceLimits,
) -> Result<Option<Invalidates>> {
    let requester = connection.handler();
    if shared.reverse_enabled() {
        requester.expect_calls(connection);
    }
    // Until the server grants more (RFC 8166, section 3.3.3).
    shared.xprt.set_window(1);
    requester.provide_receives(connection)?;
    // They stay in the pool: with them a Call and one more message need no memory.
    let both = [(); 2].map(|()| connection.send_buffer(Purpose::Message));
    for buffer in both {
        drop(buffer?);
    }
    let regions = requester.regions.message().max(FIRST_REGIONS);
    requester.make_regions(connection, regions, regions)?;

    let plan = connection.plan();
    let padding = Tunable::WriteChunkPadding.is_set();
    let own = PrivateData {
        // With padding not every key is of one RPC alone, as the server may think (RFC 8797,
        // section 4.1). Where no device looks at the key it is no proof.
        remote_invalidation: !padding && device.checks_keys(),
        send_size: InlineSize::from_bytes(plan.send_size as u32),
        receive_size: InlineSize::from_bytes(plan.receive_size as u32),
        pulls: Pulls {
            may_pull: plan.qp.max_reads != 0 && device.max_rdma_reads_begun != 0,
            may_provide: false,
        },
    };
    let mut private_data = [0; PrivateData::MAX_SIZE];
    let len = own.encode(&mut private_data).map_err(|_| EINVAL)?;
    let params = ConnectParams {
        private_data: private_data.get(..len).ok_or(EINVAL)?,
        responder_resources: device.max_rdma_reads,
        initiator_depth: match own.pulls.may_pull {
            true => device.max_rdma_reads_begun,
            false => 0,
        },
        retry_count: RETRY_COUNT,
    };
    cm.wait_step(CONNECT_TIMEOUT, || connection.connect(&params))?;
    let peer = cm.peer().unwrap_or(PrivateData::DEFAULT);
    let send = own.send_threshold(&peer);
    connection.set_inline(&Inline {
        send,
        receive: own.receive_threshold(&peer),
        unoffered: send,
    });
    connection.set_terms(status::terms(&own, &peer, device));
    if device.checks_keys() {
        requester.set_names_keys();
    }
    let invalidates = Invalidates(own.remote_invalidation && peer.remote_invalidation);
    Ok(own.pulls_from(&peer).then_some(invalidates))
}
