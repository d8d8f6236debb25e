// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The periodic check of a connection: for credits that do not come back, memory that is not
//! invalidated, regions that are short, and a server that has died silently (RFC 8267, section
//! 6.7.2).
//!
//! A server that was silent for a while is sent a NULL Call, for which a credit is kept. If it is
//! dead, the adapter reports the missing acknowledgment. On iWARP that may take very long, and a
//! server may be alive but execute nothing: therefore the answer has a time limit.

use crate::{
    client::{
        connection::Connection,
        connection_slot::ConnectionSlot,
        keep_alive_state::ProbeAction,
        loss::LossReason,
        pins::FENCE_TIMEOUT,
        pull, //
    },
    kapi::{
        sys::{
            sysctl::Tunable,
            time::{
                jiffies,
                HZ, //
            },
            workqueue::{
                Timer,
                WorkItem, //
            },
        },
        trace::TaskId, //
    },
    transport::{
        header::Direction,
        send_buffer::Purpose, //
    },
};
use kernel::{
    prelude::*,
    sync::Arc,
    time::Jiffies, //
};

/// The longest time between two checks, so that a tunable takes effect soon.
const MAX_INTERVAL: Jiffies = 30 * HZ;

/// The fewest regions that are made at once when they are short.
const MORE_REGIONS: u32 = 4;

/// The work item that watches the server, makes regions, and ends a connection if RPCs with Replies
/// wait for its end.
pub(crate) struct KeepAlive(pub(super) Arc<ConnectionSlot>);

impl WorkItem for KeepAlive {
    fn run(&self, timer: Timer<'_>) {
        let _scope = self.0.state.memory_scope();
        // The next connection queues this work again.
        let Some(connection) = self.0.get() else {
            return self.0.state.xprt.space();
        };
        let requester = connection.handler();
        let held = requester.held_too_long();
        if requester.has_deferred() || held.is_some() {
            if let Some(reason) = held {
                requester.loss.report(reason);
            }
            // The RPC layer alone might never close it: an RPC that waits for this can hold it up.
            // The loss is reported, so the transport is closed as well.
            connection.shutdown();
            return;
        }
        let short = add_regions(&connection);
        watch(&connection);
        pull::drop_killed(requester, &connection);
        timer.queue(if short {
            HZ / 10
        } else {
            delay_to_check(&connection)
        });
    }
}

impl KeepAlive {
    /// Returns the delay before the first check: RPCs may have waited for the connection.
    pub(super) fn first_check() -> Jiffies {
        Self::next_check().min(FENCE_TIMEOUT)
    }

    /// Returns the delay before the next check.
    pub(super) fn next_check() -> Jiffies {
        interval().map_or(MAX_INTERVAL, |interval| interval.min(MAX_INTERVAL))
    }
}

/// Makes regions if a Call waits for some, since its sender must not wait for memory. Returns
/// whether there is no memory for any now. May sleep.
fn add_regions(connection: &Connection) -> bool {
    let requester = connection.handler();
    if !requester.take_regions_short() {
        return false;
    }
    let (calls, regions) = (requester.max_calls, requester.regions);
    let more = regions.message().max(MORE_REGIONS);
    let made = requester.make_regions(connection, more, calls * regions.rpc());
    // Nobody waits for regions of a connection that is going. Otherwise some may have come back
    // before the sender was marked as waiting, which it was when this was wanted. Where there can
    // be no more, they come back with the RPCs that have them, and whoever gives them back wakes
    // the sender.
    if made == Err(ENOTCONN) || connection.idle_regions() != 0 {
        requester.shared.xprt.space();
        return false;
    }
    if made.is_err() {
        requester.note_regions_short();
    }
    made.is_err()
}

/// Returns the delay before the next check: a short one while there are RPCs.
fn delay_to_check(connection: &Connection) -> Jiffies {
    let requester = connection.handler();
    let next = KeepAlive::next_check();
    if next <= FENCE_TIMEOUT {
        return next;
    }
    // In this order, so that either the sender sees the mark or this sees the sender.
    requester.watch.set_idle(true);
    if requester.is_busy(connection) {
        requester.watch.set_idle(false);
        return FENCE_TIMEOUT;
    }
    next
}

/// Returns the length of silence after which the server is probed; none for never.
pub(super) fn interval() -> Option<Jiffies> {
    let seconds = Tunable::KeepaliveTime.get() as Jiffies;
    (seconds != 0).then_some(seconds * HZ)
}

/// Checks one connection: its credits and the server's silence.
fn watch(connection: &Connection) {
    let requester = connection.handler();
    let watch = &requester.watch;
    let passed = watch.elapsed();
    let (now, patience) = (jiffies(), KeepAlive::next_check());
    if connection.lock().flow.credits.are_lost(now, patience) {
        requester.loss.report(LossReason::NoCredits);
    }
    match watch.next_action(passed, interval()) {
        ProbeAction::Wait => (),
        ProbeAction::Ask if ask(connection).is_ok() => watch.asked(),
        ProbeAction::Ask | ProbeAction::GiveUp if watch.is_doubted() => {
            requester.loss.report(LossReason::Overdue);
        }
        // The probe is sent later: a Call has the only credit, and a timeout of its own.
        ProbeAction::Ask => (),
        ProbeAction::GiveUp => requester.loss.report(LossReason::Silent),
    }
}

/// Probes the server. May sleep.
///
/// `EAGAIN` when that is not possible now.
fn ask(connection: &Connection) -> Result {
    // If messages came since the last probe, the server has dropped it, and may be alive.
    let mut queue = connection.lock();
    let credits = &mut queue.flow.credits;
    let (again, changed) = (credits.drop_probe(), credits.changed());
    drop(queue);
    connection.handler().set_window(changed);
    if !again {
        return Ok(());
    }
    send_probe(connection)
}

/// Sends the server a NULL Call. May sleep.
///
/// `EAGAIN` when that is not possible now.
pub(super) fn send_probe(connection: &Connection) -> Result {
    let requester = connection.handler();
    let (program, version) = requester.program;
    let xid = requester.shared.xprt.next_xid();
    if !connection.lock().flow.get_probe(xid) {
        return Err(EAGAIN);
    }
    let sent = send_null(connection, xid, program, version);
    if sent.is_err() {
        connection.put_back(|flow| flow.put_unsent_probe(xid));
        requester.shared.xprt.space();
    }
    sent
}

fn send_null(connection: &Connection, xid: u32, program: u32, version: u32) -> Result {
    let requester = connection.handler();
    requester.provide_receives(connection)?;
    let mut buffer = connection.send_buffer(Purpose::Message)?;
    let call = xdr::null_call(xid, program, version);
    let body = buffer.plain(Direction::Call, xid)?.get_mut(..call.len());
    body.ok_or(EMSGSIZE)?.copy_from_slice(&call);
    buffer
        .post(call.len(), None, || TaskId::NONE)
        .inspect_err(|_| requester.loss.report(LossReason::NotPosted))
}
