// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The requester's handler of endpoint events.

use crate::{
    client::{
        call::Call,
        cm_state::CmState,
        connection::{
            Connection,
            Requester, //
        },
        fence,
        loss::LossNotifier,
        pull,
        reply,
        reverse, //
    },
    kapi::{
        ib::{
            Invalidated,
            Received, //
        },
        page::TransferMemory,
        sys::memalloc::MemoryScope,
        trace, //
    },
    transport::endpoint::{
        Handler,
        WcError, //
    },
};
use kernel::{
    prelude::*,
    sync::Arc, //
};
use xdr::Role;

impl Handler for Requester {
    type Cookie = Arc<Call>;
    type Cm = CmState<Arc<LossNotifier>>;
    const ROLE: Role = Role::Requester;

    fn memory_scope(&self) -> Option<MemoryScope> {
        Some(self.shared.memory_scope())
    }

    #[inline]
    fn received(&self, connection: &Connection, message: Received<'_>) {
        self.watch.heard();
        let wanted = {
            let mut queue = connection.lock();
            let credits = &mut queue.flow.credits;
            credits.received();
            credits.wanted_receives()
        };
        reply::received(connection, message);
        // Idle Receives only: the sender makes more, since it may sleep.
        if let Some(wanted) = wanted {
            self.post_receives(connection, wanted);
        }
    }

    fn drained(&self) {
        reverse::end(self);
        pull::end(self);
    }

    fn invalidated(&self, connection: &Connection, call: Arc<Call>, done: Option<Invalidated>) {
        fence::invalidated(self, connection, call, done);
    }

    fn read_ended(
        &self,
        connection: &Connection,
        call: Arc<Call>,
        memory: TransferMemory,
        ok: bool,
    ) {
        // The RPC's receive buffer is in use until then.
        drop(memory);
        pull::ended(self, connection, &call, ok);
    }

    fn fenced(&self, connection: &Connection) {
        for call in self.take_pins() {
            fence::drained(connection, &call);
        }
    }

    fn sq_space(&self, _connection: &Connection) {
        self.shared.xprt.space();
    }

    fn failed(&self, failure: WcError) {
        if let Some(xid) = failure.faulting_xid() {
            pull::refused(self, xid);
        }
        self.loss.report(self.loss.reason(failure));
    }

    fn disconnected(&self, told: Result) {
        trace::xprtrdma_disconnect(|| {
            let result = told.err().map_or(0, Error::to_errno);
            (*self.loss.address(), result, self.cm.status())
        });
    }
}
