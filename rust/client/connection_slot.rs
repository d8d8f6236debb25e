// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The present connection of a transport, and the one to come.

use crate::{
    client::{
        connection::Connection,
        reverse,
        xprt_state::XprtState, //
    },
    kapi::{
        sunrpc::Connecting,
        sys::address::SocketAddress, //
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

/// Where the present connection of a transport is.
#[pin_data]
pub(super) struct ConnectionSlot {
    pub(super) state: Arc<XprtState>,
    #[pin]
    connection: SpinLock<Option<Arc<Connection>>>,
    /// Where to connect to next, and what waits for that.
    #[pin]
    attempt: SpinLock<Option<(SocketAddress, Connecting)>>,
}

impl ConnectionSlot {
    /// Without a connection. May sleep.
    pub(super) fn new(state: Arc<XprtState>) -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                state,
                connection <- new_spinlock!(None, "rpcrdma_connection"),
                attempt <- new_spinlock!(None, "rpcrdma_attempt"),
            }),
            GFP_KERNEL,
        )
    }

    /// The present connection, if any.
    #[inline]
    pub(super) fn get(&self) -> Option<Arc<Connection>> {
        self.connection.lock().clone()
    }

    /// Where to connect to next, and what waits for that.
    pub(super) fn set_attempt(&self, address: SocketAddress, connecting: Connecting) {
        *self.attempt.lock() = Some((address, connecting));
    }

    /// Where to connect to, and what waits for that; for one attempt.
    pub(super) fn take_attempt(&self) -> Option<(SocketAddress, Connecting)> {
        self.attempt.lock().take()
    }

    /// A new connection is up. May sleep.
    pub(super) fn begin(&self, connection: Arc<Connection>) {
        let old = self.connection.lock().replace(connection);
        drop(old);
    }

    /// Makes the present connection ready for Calls of the server. May sleep.
    pub(super) fn expect_reverse_calls(&self) {
        if let Some(connection) = self.get() {
            reverse::expect_calls(&connection);
        }
    }

    /// Ends the present connection, if there is one. Sleeps until nothing of it is left.
    pub(super) fn end(&self) {
        let Some(connection) = self.get() else {
            return;
        };
        let requester = connection.handler();
        let messages = connection.lock().flow.credits.all_received();
        requester.loss.disable(messages);
        // It stays known until it is gone: whoever must wait for that finds it.
        connection.shutdown();
        let mut slot = self.connection.lock();
        let same = slot.as_ref().is_some_and(|c| Arc::ptr_eq(c, &connection));
        let old = if same { slot.take() } else { None };
        drop(slot);
        drop(old);
    }
}
