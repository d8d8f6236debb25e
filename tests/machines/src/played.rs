// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! What plays those files of `rust/transport` and `rust/client` that do more than keep a state.

pub(crate) mod call {
    use kernel::{
        alloc::Flags,
        prelude::*,
        sync::Arc, //
    };

    pub(crate) struct Call;

    #[derive(Clone, Copy)]
    pub(crate) struct ConnectionId(pub(crate) u64);

    pub(crate) struct WaitingReply;

    pub(crate) struct WaitingMessage;

    impl WaitingMessage {
        pub(crate) fn receives(&self) -> u32 {
            1
        }
    }

    impl Call {
        pub(crate) fn new(_: Flags) -> Result<Arc<Self>> {
            Ok(Arc::new(Self))
        }
    }
}

pub(crate) mod endpoint {
    /// How a work request failed: whether by the end of the connection.
    #[derive(Clone, Copy)]
    pub(crate) struct WcError(bool);

    impl WcError {
        pub(crate) fn flushed() -> Self {
            Self(true)
        }

        pub(crate) fn not_posted() -> Self {
            Self(false)
        }

        pub(crate) fn wc(&self) -> Self {
            *self
        }

        pub(crate) fn is_flush(&self) -> bool {
            self.0
        }

        pub(crate) fn words(&self) -> &'static str {
            "a work request failed"
        }
    }
}

pub(crate) mod xprt {
    pub(crate) struct ClientXprt;
}

pub(crate) mod xprt_state {
    use crate::{
        client::{
            call::{
                Call,
                ConnectionId, //
            },
            outage::Outage, //
        },
        kapi::sunrpc::XprtHandle,
    };
    use kernel::sync::{
        Mutex,
        SpinLock, //
    };

    pub(crate) struct XprtState {
        pub(crate) xprt: XprtHandle<Call>,
        pub(crate) outage: SpinLock<Outage>,
        connections: Mutex<u64>,
    }

    impl XprtState {
        pub(crate) fn new(xprt: XprtHandle<Call>) -> Self {
            Self {
                xprt,
                outage: SpinLock::new(Outage::new()),
                connections: Mutex::new(0),
            }
        }

        pub(crate) fn next_id(&self) -> ConnectionId {
            let mut connections = self.connections.lock();
            *connections += 1;
            ConnectionId(*connections - 1)
        }
    }
}
