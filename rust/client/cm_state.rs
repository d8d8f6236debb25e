// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! How far the id of a connection has come, as something to wait for.

use crate::kapi::{
    ib::{
        CmEvent,
        CmEventKind,
        CmHandler, //
    },
    sys::completion::Completion,
    trace::xprtrdma_device_removal, //
};
use kernel::{
    new_spinlock,
    prelude::*,
    sync::{
        Arc,
        SpinLock, //
    },
    time::Jiffies, //
};
use xdr::PrivateData;

/// Told when a connection that was up is lost. Called by the connection manager: it must not wait
/// for the tear-down.
pub(crate) trait OnLost: Send + Sync + 'static {
    /// The connection is gone, or has to be given up.
    fn lost(&self, event: CmEventKind);
}

/// How far an id has come.
enum Phase {
    /// A step is under way, or none.
    Connecting,
    /// The connection is up.
    Up,
    /// It failed, or was up and is lost. It stays so.
    Over(Error),
}

struct State {
    phase: Phase,
    step_done: bool,
    peer: Option<PrivateData>,
}

/// The state of one id, by its events.
#[pin_data]
pub(crate) struct CmState<L: OnLost> {
    #[pin]
    step: Completion,
    #[pin]
    state: SpinLock<State>,
    on_lost: L,
}

impl<L: OnLost> CmState<L> {
    /// For a new id. May sleep.
    pub(crate) fn new(on_lost: L) -> Result<Arc<Self>> {
        let state = State {
            phase: Phase::Connecting,
            step_done: false,
            peer: None,
        };
        Arc::pin_init(
            pin_init!(Self {
                step <- Completion::new(),
                state <- new_spinlock!(state, "rpcrdma_cm_state"),
                on_lost,
            }),
            GFP_KERNEL,
        )
    }

    /// Starts one step of connecting and waits for its end. Sleeps for `timeout` at most.
    ///
    /// `EHOSTUNREACH` when there was no answer: the same as when the connection manager gives up
    /// first, since `ETIMEDOUT` makes the RPC layer try again for as long as the RPC lasts.
    /// Otherwise what `start` or the event says.
    pub(crate) fn wait_step(&self, timeout: Jiffies, start: impl FnOnce() -> Result) -> Result {
        let mut state = self.state.lock();
        self.step.reinit();
        if let Phase::Over(e) = state.phase {
            return Err(e);
        }
        state.step_done = false;
        drop(state);
        start()?;
        // Whether in time or not: what the events say counts.
        let _ = self.step.wait_timeout(timeout);
        let state = self.state.lock();
        match state.phase {
            Phase::Over(e) => Err(e),
            _ if state.step_done => Ok(()),
            _ => Err(EHOSTUNREACH),
        }
    }

    /// What the peer said of itself when the connection came up (RFC 8797); none when it said
    /// nothing that could be understood.
    pub(crate) fn peer(&self) -> Option<PrivateData> {
        self.state.lock().peer
    }

    /// How far the id has come, as trace events number it: 0 if it is not there yet, 1 while the
    /// connection is up, a negative errno afterwards.
    pub(super) fn status(&self) -> i32 {
        match self.state.lock().phase {
            Phase::Connecting => 0,
            Phase::Up => 1,
            Phase::Over(e) => e.to_errno(),
        }
    }

    /// The signal is given under the lock, so that it cannot be one for the next step.
    fn done(&self) {
        let mut state = self.state.lock();
        state.step_done = true;
        self.step.complete_all();
        drop(state);
    }

    fn fail(&self, event: CmEventKind, error: Error) {
        let mut state = self.state.lock();
        let was_up = matches!(state.phase, Phase::Up);
        if !matches!(state.phase, Phase::Over(_)) {
            state.phase = Phase::Over(error);
        }
        self.step.complete_all();
        drop(state);
        if was_up {
            self.on_lost.lost(event);
        }
    }

    /// Takes note of an event; `status` and `data` as [`CmEvent`] has them.
    fn handle(&self, kind: CmEventKind, status: i32, data: &[u8]) {
        match kind {
            CmEventKind::AddressResolved | CmEventKind::RouteResolved => self.done(),
            CmEventKind::Established => {
                let mut state = self.state.lock();
                state.peer = PrivateData::decode(data);
                if matches!(state.phase, Phase::Connecting) {
                    state.phase = Phase::Up;
                }
                drop(state);
                self.done();
            }
            // The errors are those that users of NFS over RDMA know.
            CmEventKind::AddressError => self.fail(kind, unresolved(status)),
            CmEventKind::RouteError | CmEventKind::Unreachable => self.fail(kind, EHOSTUNREACH),
            CmEventKind::ConnectError | CmEventKind::Stale => self.fail(kind, ENOTCONN),
            CmEventKind::Rejected => self.fail(kind, ECONNREFUSED),
            CmEventKind::Disconnected => self.fail(kind, ECONNABORTED),
            CmEventKind::DeviceRemoval | CmEventKind::AddressChange => self.fail(kind, ENODEV),
            CmEventKind::Other => (),
        }
    }
}

/// What an attempt fails with when the address could not be resolved.
///
/// `ENETUNREACH` says that there is no network: outside of the first network namespace NFS gives
/// up a mount for it, which a server that is silent for a while is no reason for.
fn unresolved(status: i32) -> Error {
    let is = |errors: [Error; 2]| errors.iter().any(|e| e.to_errno() == status);
    if is([ENETDOWN, ENETUNREACH]) {
        ENETUNREACH
    } else if is([EHOSTUNREACH, ETIMEDOUT]) {
        EHOSTUNREACH
    } else {
        EPROTO
    }
}

impl<L: OnLost> CmHandler for CmState<L> {
    fn event(&self, event: CmEvent<'_>) {
        if let (CmEventKind::DeviceRemoval, Some(device)) = (event.kind, event.device()) {
            xprtrdma_device_removal(|| (device, event.peer()));
        }
        self.handle(event.kind, event.status, event.private_data);
    }
}

#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
#[path = "../../kunit/cm_state.rs"]
mod tests;
