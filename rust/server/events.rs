// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The events of a connection that a peer has asked for.

use crate::kapi::{
    ib::{
        CmEvent,
        CmEventKind,
        CmHandler, //
    },
    sunrpc::SvcHandle,
    sys::trace::svcrdma_device_removal, //
};
use kernel::{
    new_spinlock,
    prelude::*,
    sync::{
        Arc,
        SpinLock, //
    },
};

struct State {
    /// The transport, once the connection is being accepted.
    handle: Option<SvcHandle>,
    up: bool,
    over: bool,
}

/// The events of one connection.
#[pin_data]
pub(crate) struct Events {
    #[pin]
    state: SpinLock<State>,
}

impl Events {
    /// For a connection that is asked for. May sleep.
    pub(super) fn new() -> Result<Arc<Self>> {
        let state = State {
            handle: None,
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
        state.handle = Some(handle);
        Ok(())
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
                if let Some(handle) = &state.handle {
                    // Requests may have come before.
                    handle.request_pending();
                }
            }
            CmEventKind::Other | CmEventKind::AddressResolved | CmEventKind::RouteResolved => (),
            kind => {
                if let CmEventKind::DeviceRemoval = kind {
                    if let Some(device) = event.device() {
                        svcrdma_device_removal(|| (device, event.peer()));
                    }
                }
                let mut state = self.state.lock();
                state.over = true;
                if let Some(handle) = &state.handle {
                    handle.close();
                }
            }
        }
    }
}
