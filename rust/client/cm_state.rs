// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The progress of a connection's `rdma_cm_id`, as something to wait for.

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

/// A listener for the loss of a connection that was up. Called by the connection manager: it must
/// not wait for the tear-down.
pub(crate) trait OnLost: Send + Sync + 'static {
    /// Handles the loss of the connection, or an event after which it has to be given up.
    fn lost(&self, event: CmEventKind);
}

/// The progress of an id.
enum Phase {
    /// The id is being set up.
    Connecting,
    /// The connection is up.
    Up,
    /// It failed, or was up and is lost. This state is final.
    Over(Error),
}

struct State {
    phase: Phase,
    step_done: bool,
    peer: Option<PrivateData>,
}

/// The state of one id, as its events tell.
#[pin_data]
pub(crate) struct CmState<L: OnLost> {
    #[pin]
    step: Completion,
    #[pin]
    state: SpinLock<State>,
    on_lost: L,
}

impl<L: OnLost> CmState<L> {
    /// Creates the state of a new id. May sleep.
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
    /// `EHOSTUNREACH` without an answer in time: the same as when the connection manager gives up
    /// first, since `ETIMEDOUT` makes the RPC layer try again for as long as the RPC lasts.
    /// Otherwise the error of `start` or of the event.
    pub(crate) fn wait_step(&self, timeout: Jiffies, start: impl FnOnce() -> Result) -> Result {
        let mut state = self.state.lock();
        self.step.reinit();
        if let Phase::Over(e) = state.phase {
            return Err(e);
        }
        state.step_done = false;
        drop(state);
        start()?;
        // In time or not, the events decide.
        let _ = self.step.wait_timeout(timeout);
        let state = self.state.lock();
        match state.phase {
            Phase::Over(e) => Err(e),
            _ if state.step_done => Ok(()),
            _ => Err(EHOSTUNREACH),
        }
    }

    /// Returns the peer's private data of the handshake (RFC 8797); none if it sent none that could
    /// be decoded.
    pub(crate) fn peer(&self) -> Option<PrivateData> {
        self.state.lock().peer
    }

    /// Returns the progress as trace events number it: 0 before the connection is up, 1 while it
    /// is, a negative errno afterwards.
    pub(super) fn status(&self) -> i32 {
        match self.state.lock().phase {
            Phase::Connecting => 0,
            Phase::Up => 1,
            Phase::Over(e) => e.to_errno(),
        }
    }

    /// Ends the present step. Signals under the lock, so that no later step gets the signal.
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

    /// Handles an event; `status` and `data` as in [`CmEvent`].
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

/// Returns the error of an attempt whose address could not be resolved.
///
/// `ENETUNREACH` says that there is no network: outside of the first network namespace NFS gives up
/// a mount for it, which must not happen because a server is silent for a while.
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
