// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The transport of the RPC layer, which outlives its connections.

#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
#[path = "../../kunit/client_xprt.rs"]
mod tests;

use crate::{
    client::{
        call::Call,
        cancel::fence_unanswered,
        connect::Connector,
        connection_slot::ConnectionSlot,
        idle_buffers::IdleBuffers,
        keep_alive::KeepAlive,
        loss::LossReason,
        marshal,
        reverse,
        sizes::REVERSE_SLOTS,
        xprt_state::XprtState, //
    },
    kapi::{
        sunrpc::{
            Connecting,
            RpcBuffer,
            RpcRqst,
            Rqst,
            Task,
            Transport,
            Xprt,
            XprtHandle,
            MAX_REVERSE,
            SHORT_REVERSE, //
        },
        sys::{
            address::SocketAddress,
            listing::Entry,
            sysctl::Tunable,
            workqueue::{
                work_class,
                DelayedWork,
                OwnedQueue, //
            },
        },
    },
    transport::plan::PAYLOAD_PAGES,
};
use core::ffi::{
    c_int,
    CStr, //
};
use kernel::{
    page::PAGE_SIZE,
    prelude::*,
    seq_file::SeqFile,
    sync::{
        Arc,
        ArcBorrow, //
    },
    time::Jiffies, //
};
use xdr::{
    Direction,
    Version, //
};

/// A transport of the RPC layer. All mounts of a server may share one.
pub(crate) struct ClientXprt {
    // The work items are dropped first: they use the connection.
    connector: DelayedWork<Connector>,
    keep_alive: Arc<DelayedWork<KeepAlive>>,
    slot: Arc<ConnectionSlot>,
    state: Arc<XprtState>,
    buffers: Pin<KBox<IdleBuffers>>,
    /// Its status is to be had.
    _entry: Option<Entry>,
}

#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
impl ClientXprt {
    /// Returns the state that the transport's parts share.
    pub(super) fn state(&self) -> &Arc<XprtState> {
        &self.state
    }
}

impl Transport for ClientXprt {
    type Call = Call;
    const IDENT: c_int = 256;
    const NAME: &'static CStr = c"rdma";
    const NETIDS: [&'static CStr; 2] = [c"rdma", c"rdma6"];
    const MAX_PAYLOAD: usize = PAYLOAD_PAGES as usize * PAGE_SIZE;
    const REVERSE_SLOTS: u32 = REVERSE_SLOTS;

    fn new(xprt: XprtHandle<Call>, queue: Arc<OwnedQueue>) -> Result<Self> {
        let (buffers, state) = (IdleBuffers::new()?, XprtState::new(xprt)?);
        let slot = ConnectionSlot::new(state.clone())?;
        let keep_alive = Arc::new(
            DelayedWork::<KeepAlive>::new(
                queue.clone(),
                work_class!(c"rpcrdma_keep_alive"),
                Ok::<_, Error>(KeepAlive(slot.clone())),
                GFP_KERNEL,
            )?,
            GFP_KERNEL,
        )?;
        let connector = Connector {
            slot: slot.clone(),
            keep_alive: keep_alive.clone(),
        };
        let _entry = Entry::new(state.clone());
        Ok(Self {
            connector: DelayedWork::new(
                queue,
                work_class!(c"rpcrdma_connect"),
                Ok::<_, Error>(connector),
                GFP_KERNEL,
            )?,
            keep_alive,
            slot,
            state,
            buffers,
            _entry,
        })
    }

    fn slots() -> u32 {
        Tunable::SlotTableEntries.get()
    }

    fn longest_reverse() -> usize {
        // In version 1 a Call is one message.
        match Tunable::MaxVersion.get() {
            1 => SHORT_REVERSE,
            _ => MAX_REVERSE,
        }
    }

    fn connect(&self, delay: Jiffies, address: SocketAddress, connecting: Connecting) {
        // The work item took the previous attempt before that ended.
        self.slot.set_attempt(address, connecting);
        self.connector.queue(delay);
    }

    fn close(&self) {
        self.slot.end();
    }

    fn destroy(&self) {
        self.connector.cancel_sync();
        self.slot.end();
        // Until the connection has ended, it may be queued again.
        self.keep_alive.cancel_sync();
        self.buffers.clear();
    }

    fn overdue(&self, call: ArcBorrow<'_, Call>, retransmits: bool) {
        call.note_overdue();
        let Some(connection) = self.slot.get() else {
            return;
        };
        match retransmits {
            true => connection.handler().loss.report(LossReason::Overdue),
            // A server of NFS 4 drops no Call while the connection lives (RFC 8881, section 2.9.2).
            false => connection.handler().doubt(),
        }
    }

    fn inject_disconnect(&self) {
        if let Some(connection) = self.slot.get() {
            // Without a connection there is nothing to break.
            let _ = connection.disconnect();
        }
    }

    #[inline]
    fn get_buffer(&self) -> Result<RpcBuffer<Call>> {
        self.buffers.get()
    }

    #[inline]
    fn fence(&self, call: ArcBorrow<'_, Call>, task: &Task) {
        let mut state = call.state.lock();
        // As a rule the Reply has come, and the connection is not needed.
        let ended = !state.is_sent() && state.end();
        drop(state);
        // The note is not for the next RPC that uses this state.
        let _ = call.was_overdue();
        if !ended {
            fence_unanswered(&self.slot, call, task);
        }
    }

    #[inline]
    fn put_buffer(&self, buffer: RpcBuffer<Call>) {
        self.buffers.put(buffer);
    }

    #[inline]
    fn send(&self, xprt: &Xprt, rqst: Rqst<'_, Call>) -> Result {
        let connection = self.slot.get().ok_or(ENOTCONN)?;
        marshal::send(&connection, xprt, rqst)
    }

    fn send_reverse_reply(&self, rqst: &RpcRqst, connection: u64) -> Result {
        let present = self.slot.get().ok_or(ENOTCONN)?;
        reverse::send_reply(&present, rqst, connection)
    }

    fn reverse_enabled(&self) {
        self.state.set_reverse(true);
        self.slot.expect_reverse_calls();
    }

    fn reverse_disabled(&self) {
        self.state.set_reverse(false);
        if let Some(connection) = self.slot.get() {
            reverse::end(connection.handler());
        }
    }

    fn reverse_ended(&self, connection: u64, unanswered: bool) {
        let Some(present) = self.slot.get() else {
            return;
        };
        let requester = present.handler();
        if unanswered && requester.id.0 == connection {
            requester.reverse.lock().answered();
            if self.state.reverse_enabled() {
                requester.loss.report(LossReason::Unanswered);
            }
        }
        reverse::deliver_pending(requester);
    }

    fn reverse_payload(&self) -> usize {
        match self.slot.get() {
            Some(connection) => {
                let requester = connection.handler();
                let most = requester.shared.xprt.longest_callback();
                let inline = connection.longest_send().min(connection.longest_receive());
                let inline = inline.min(most);
                connection
                    .longest_message(Direction::Call, inline)
                    .min(most)
            }
            None => 1024 - Version::One.plain_size(Direction::Call),
        }
    }

    fn print_stats(&self, xprt: &Xprt, seq: &SeqFile) {
        let connection = self.slot.get();
        let version = connection.map_or(0, |connection| connection.version().number());
        self.state.stats.print(xprt, version, seq);
    }
}
