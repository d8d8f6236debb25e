// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! A connection that a peer has requested, and its events.

use crate::{
    kapi::{
        ib::{
            CmEvent,
            CmEventKind,
            CmHandler,
            CmId, //
        },
        sunrpc::SvcHandle,
        sys::workqueue::OwnedQueue,
        trace::svcrdma_device_removal, //
    },
    server::{
        all_pulls::AllPulls,
        backlog::Acceptable,
        pace::Pace,
        poison::Poison, //
    },
};
use kernel::{
    new_spinlock,
    prelude::*,
    sync::{
        Arc,
        SpinLock, //
    },
};
use xdr::PrivateData;

/// A connection that waits to be accepted.
pub(super) struct Pending {
    pub(super) id: CmId<Events>,
    pub(super) events: Arc<Events>,
    /// The peer's private data; none if it sent none.
    pub(super) peer: Option<PrivateData>,
    /// The number of RDMA Reads that the peer can serve at once.
    pub(super) reads: u8,
    /// The number of RDMA Reads that the peer can start at once.
    pub(super) pulls: u8,
    pub(super) shared: Shared,
}

/// What the connections of a listener share.
#[derive(Clone)]
pub(super) struct Shared {
    /// For work of the connections.
    pub(super) queue: Arc<OwnedQueue>,
    pub(super) poison: Arc<Poison>,
    pub(super) pace: Arc<Pace>,
    pub(super) all_pulls: Arc<AllPulls>,
}

impl Acceptable for Pending {
    fn is_lost(&self) -> bool {
        self.events.is_over()
    }
}

struct State {
    /// The transport, set when the connection is accepted.
    transport: Option<SvcHandle>,
    up: bool,
    over: bool,
}

impl State {
    /// Returns whether an event says only that the path may have changed. A connection that does
    /// not find the new path fails by its own retries.
    fn is_moved(&self, kind: CmEventKind) -> bool {
        match kind {
            CmEventKind::AddressChange => true,
            // For a connection that is up, a neighbour has another address.
            CmEventKind::Unreachable => self.up,
            _ => false,
        }
    }

    /// Notes that the connection is lost. The id must not be destroyed here: that waits for its
    /// handler. The transport destroys it, or the reaper of the backlog, or the service thread that
    /// takes it from the backlog and cannot attach a transport.
    fn lost(&mut self) {
        self.over = true;
        if let Some(transport) = &self.transport {
            transport.close();
        }
    }
}

/// The events of one connection.
#[pin_data]
pub(crate) struct Events {
    #[pin]
    state: SpinLock<State>,
}

impl Events {
    /// Creates the events of a connection that is going to wait. May sleep.
    pub(super) fn new() -> Result<Arc<Self>> {
        let state = State {
            transport: None,
            up: false,
            over: false,
        };
        Arc::pin_init(
            pin_init!(Self { state <- new_spinlock!(state, "svcrdma_events") }),
            GFP_KERNEL,
        )
    }

    /// Sets the transport that is told of events, once. `ENOTCONN` if the connection is lost
    /// already.
    pub(super) fn attach(&self, transport: SvcHandle) -> Result {
        let mut state = self.state.lock();
        if state.over {
            return Err(ENOTCONN);
        }
        state.transport = Some(transport);
        Ok(())
    }

    /// Returns whether the connection is lost, or was never made: the id's calls fail then.
    pub(super) fn is_over(&self) -> bool {
        self.state.lock().over
    }

    /// Returns whether messages may be sent.
    pub(super) fn is_up(&self) -> bool {
        self.state.lock().up
    }
}

impl CmHandler for Events {
    fn event(&self, event: CmEvent<'_>) {
        match event.kind {
            CmEventKind::Established => {
                let mut state = self.state.lock();
                state.up = true;
                if let Some(transport) = &state.transport {
                    // Requests may have come before this event.
                    transport.request_pending();
                }
            }
            CmEventKind::Other | CmEventKind::AddressResolved | CmEventKind::RouteResolved => (),
            // The address of this end's link has changed, or the peer's (see `State::is_moved`).
            kind if self.state.lock().is_moved(kind) => (),
            kind => {
                if let CmEventKind::DeviceRemoval = kind {
                    if let Some(device) = event.device() {
                        svcrdma_device_removal(|| (device, event.peer()));
                    }
                }
                self.state.lock().lost();
            }
        }
    }
}
