// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! A connection that a peer has asked for, and its events.

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
        backlog::Backlog,
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
    /// What the peer says of itself; none if it says nothing.
    pub(super) peer: Option<PrivateData>,
    /// RDMA Reads that the peer can serve at once.
    pub(super) reads: u8,
    /// RDMA Reads that the peer can begin at once.
    pub(super) pulls: u8,
    /// For work of the connection.
    pub(super) queue: Arc<OwnedQueue>,
    pub(super) poison: Arc<Poison>,
    pub(super) pace: Arc<Pace>,
    pub(super) all_pulls: Arc<AllPulls>,
}

/// Who lets the id of a connection go that is lost.
enum Owner {
    /// It waits with this ticket.
    Backlog(Arc<Backlog<Pending>>, u64),
    /// The transport, from when the connection is being accepted.
    Transport(SvcHandle),
}

struct State {
    owner: Owner,
    up: bool,
    over: bool,
}

impl State {
    /// Whether an event says only that the path may be another. A connection that does not find it
    /// fails by its own retries, and one that does goes on.
    fn is_moved(&self, kind: CmEventKind) -> bool {
        match kind {
            CmEventKind::AddressChange => true,
            // Of one that is up, a neighbour has another address.
            CmEventKind::Unreachable => self.up,
            _ => false,
        }
    }

    /// The connection is lost. The id must not be destroyed here: that waits for its handler.
    fn lost(&mut self) {
        self.over = true;
        match &self.owner {
            Owner::Backlog(backlog, ticket) => backlog.give_up(*ticket),
            Owner::Transport(handle) => handle.close(),
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
    /// For a connection that is going to wait with a ticket. May sleep.
    pub(super) fn new(backlog: Arc<Backlog<Pending>>, ticket: u64) -> Result<Arc<Self>> {
        let state = State {
            owner: Owner::Backlog(backlog, ticket),
            up: false,
            over: false,
        };
        Arc::pin_init(
            pin_init!(Self { state <- new_spinlock!(state, "svcrdma_events") }),
            GFP_KERNEL,
        )
    }

    /// Whom to tell of events. `ENOTCONN` if the connection is lost already.
    pub(super) fn attach(&self, handle: SvcHandle) -> Result {
        let mut state = self.state.lock();
        if state.over {
            return Err(ENOTCONN);
        }
        let before = core::mem::replace(&mut state.owner, Owner::Transport(handle));
        drop(state);
        drop(before);
        Ok(())
    }

    /// Whether it is lost, or was never made: the id's calls fail then.
    pub(super) fn is_over(&self) -> bool {
        self.state.lock().over
    }

    /// Whether messages may be sent.
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
                if let Owner::Transport(handle) = &state.owner {
                    // Requests may have come before.
                    handle.request_pending();
                }
            }
            CmEventKind::Other | CmEventKind::AddressResolved | CmEventKind::RouteResolved => (),
            // This end's link has another address now, or the peer's has (see `State::is_moved`).
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
