// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The present connection of a transport, and the next attempt to connect.

use crate::{
    client::{
        connection::Connection,
        reverse,
        xprt_state::XprtState, //
    },
    kapi::{
        sunrpc::Connecting,
        sys::{
            address::SocketAddress,
            listing::Entry, //
        },
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

/// A connection, and its lines in the list once it is there.
struct Present {
    connection: Arc<Connection>,
    entry: Option<Entry>,
}

impl Present {
    fn is(&self, connection: &Arc<Connection>) -> bool {
        Arc::ptr_eq(&self.connection, connection)
    }
}

/// The present connection of a transport, if there is one.
#[pin_data]
pub(super) struct ConnectionSlot {
    pub(super) state: Arc<XprtState>,
    #[pin]
    connection: SpinLock<Option<Present>>,
    /// The address of the next attempt to connect, and the RPC layer's wait for it.
    #[pin]
    attempt: SpinLock<Option<(SocketAddress, Connecting)>>,
}

impl ConnectionSlot {
    /// Creates a slot without a connection. May sleep.
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

    /// Returns the present connection, if any.
    #[inline]
    pub(super) fn get(&self) -> Option<Arc<Connection>> {
        let slot = self.connection.lock();
        slot.as_ref().map(|present| present.connection.clone())
    }

    /// Sets the address of the next attempt, and the RPC layer's wait for it.
    pub(super) fn set_attempt(&self, address: SocketAddress, connecting: Connecting) {
        *self.attempt.lock() = Some((address, connecting));
    }

    /// Takes the address of the next attempt, and the RPC layer's wait for it.
    pub(super) fn take_attempt(&self) -> Option<(SocketAddress, Connecting)> {
        self.attempt.lock().take()
    }

    /// Makes a new connection the present one. May sleep.
    pub(super) fn begin(&self, connection: Arc<Connection>) {
        let present = Present {
            connection,
            entry: None,
        };
        let old = self.connection.lock().replace(present);
        drop(old);
    }

    /// Lists the present connection. May sleep, also until somebody has read the list.
    pub(super) fn list(&self) {
        let Some(connection) = self.get() else {
            return;
        };
        let mut entry = Entry::new(connection.clone());
        if let Some(present) = &mut *self.connection.lock() {
            if present.is(&connection) {
                core::mem::swap(&mut present.entry, &mut entry);
            }
        }
        // If the connection has gone meanwhile.
        drop(entry);
    }

    /// Makes the present connection ready for Calls of the server. May sleep.
    pub(super) fn expect_reverse_calls(&self) {
        if let Some(connection) = self.get() {
            reverse::expect_calls(&connection);
        }
    }

    /// Ends the present connection, if there is one. Sleeps until the tear-down is complete.
    pub(super) fn end(&self) {
        let Some(connection) = self.get() else {
            return;
        };
        let requester = connection.handler();
        let messages = connection.lock().flow.credits.all_received();
        requester.loss.disable(messages);
        // It stays in the slot until it is gone: a task that must wait for that finds it here.
        connection.shutdown();
        let mut slot = self.connection.lock();
        let same = slot.as_ref().is_some_and(|present| present.is(&connection));
        let old = if same { slot.take() } else { None };
        drop(slot);
        drop(old);
    }
}
