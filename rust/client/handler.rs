// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The requester's handler of endpoint events.

use crate::{
    client::{
        answer::BOUNDS,
        call::Call,
        cm_state::CmState,
        connection::{
            Connection,
            Requester, //
        },
        fence,
        keep_alive,
        loss::{
            LossNotifier,
            LossReason, //
        },
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
        Arrival,
        Handler,
        WcError, //
    },
};
use kernel::{
    fmt::{
        self,
        Formatter, //
    },
    prelude::*,
    sync::Arc, //
};
use xdr::{
    v2::{
        Bounds,
        ReverseSupport, //
    },
    Role, //
};

impl Requester {
    /// Notes that a message was received. Returns the number of Receives that should be posted, if
    /// there are too few.
    #[inline]
    fn hear(&self, connection: &Connection) -> Option<u32> {
        self.watch.heard();
        let mut queue = connection.lock();
        let credits = &mut queue.flow.credits;
        credits.received();
        credits.wanted_receives()
    }
}

impl Handler for Requester {
    type Cookie = Arc<Call>;
    type Cm = CmState<Arc<LossNotifier>>;
    const ROLE: Role = Role::Requester;
    /// They are told before the mount has its callback service.
    const REVERSE: ReverseSupport = ReverseSupport::Continued;

    fn memory_scope(&self) -> Option<MemoryScope> {
        Some(self.shared.memory_scope())
    }

    fn bounds(&self) -> &Bounds {
        &BOUNDS
    }

    #[inline]
    fn received(&self, connection: &Connection, message: Received<'_>, arrival: Arrival) {
        let wanted = self.hear(connection);
        reply::received(connection, message, arrival);
        // Idle Receives only: the sender makes more, since it may sleep.
        if let Some(wanted) = wanted {
            self.post_receives(connection, wanted);
        }
    }

    fn describe(&self, to: &mut Formatter<'_>) -> fmt::Result {
        let keep_alive = match keep_alive::interval() {
            Some(_) => "on",
            None => "off",
        };
        writeln!(to, "\ttransport: {}", self.shared.xprt.number())?;
        writeln!(to, "\tkeep-alive: {keep_alive}, {}", self.watch)
    }

    fn kept(&self, connection: &Connection) {
        if let Some(wanted) = self.hear(connection) {
            self.post_receives(connection, wanted);
        }
    }

    fn negotiated(&self, connection: &Connection, _: u32) {
        let changed = connection.lock().flow.credits.changed();
        self.set_window(changed);
        self.loss.version_known();
    }

    fn broken(&self, _: &Connection) {
        self.loss.report(LossReason::BadMessage);
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
