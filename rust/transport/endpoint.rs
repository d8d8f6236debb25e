// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! One end of a connection: a queue pair, with what RPC-over-RDMA needs of it.

use crate::{
    kapi::{
        ib::{
            CmHandler,
            DmaBuffer,
            Invalidated,
            Locked,
            Maker,
            MappedBuffer,
            Poster,
            QpEvent,
            QpSizes,
            QueuePair,
            Received,
            RegionSize,
            TransferSizes,
            Wc, //
        },
        page::TransferMemory,
        sys::memalloc::MemoryScope,
        trace::CompletionId, //
    },
    transport::{
        padding::Padding,
        trace, //
    },
};
use kernel::{
    dma::DataDirection,
    prelude::*,
    sync::SetOnce, //
};
use xdr::Role;

/// What an endpoint tells its user. Unless said otherwise all are called in process context, from
/// the work queue of the completion queues: they must not sleep on memory and must not wait for the
/// tear-down.
pub(crate) trait Handler: Sized + Send + Sync + 'static {
    /// What comes back with the completion of local invalidations, or of RDMA Reads.
    type Cookie: Send + 'static;
    /// Receives the events of the id.
    type Cm: CmHandler;
    /// Which end this is; trace events have names of one of them.
    const ROLE: Role;

    /// The scope in which memory for buffers is to be had, if not as the task has it anyway.
    fn memory_scope(&self) -> Option<MemoryScope> {
        None
    }
    /// A message was received.
    fn received(&self, endpoint: &Endpoint<Self>, message: Received<'_>);
    /// Nothing will be received any more: what was kept of it must go, or the tear-down waits. May
    /// sleep.
    fn drained(&self) {}
    /// Local invalidations have ended, well if that is `done`; after a failure nothing is known of
    /// the regions until [`Self::fenced`].
    fn invalidated(
        &self,
        endpoint: &Endpoint<Self>,
        cookie: Self::Cookie,
        done: Option<Invalidated>,
    ) {
        let _ = (endpoint, cookie, done);
    }
    /// All regions are dead: no peer can reach what they covered. From the tear-down; may sleep.
    fn fenced(&self) {}
    /// RDMA Reads have ended, well or not; here is their memory. Also from the tear-down.
    fn read_ended(
        &self,
        endpoint: &Endpoint<Self>,
        cookie: Self::Cookie,
        memory: TransferMemory,
        ok: bool,
    ) {
        let _ = (endpoint, cookie, memory, ok);
    }
    /// Send buffers or room in the send queue came back; to a responder, so much that nothing waits
    /// any more.
    fn sq_space(&self, endpoint: &Endpoint<Self>);
    /// Something waits for room in the send queue. Must not call the endpoint.
    fn sq_full(&self) {}
    /// A work request ended in an error: the connection is lost.
    fn failed(&self, failure: WcError);
    /// The first work request has ended in an error. `only` is the XID of the one transfer that may
    /// have been under way, if it was just one.
    fn first_error(&self, only: Option<u32>) {
        let _ = only;
    }
    /// The end of the connection begins; `told` says whether there was one, so that the peer learns
    /// of it. From the tear-down; may sleep.
    fn disconnected(&self, told: Result) {
        let _ = told;
    }
    /// The device has something to say of the queue pair. Any context, also with interrupts off.
    fn device_event(&self, event: &QpEvent<'_>) {
        let _ = event;
    }
}

/// How a work request failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct WcError {
    pub(super) wc: Wc,
    pub(super) xid: Option<u32>,
}

impl WcError {
    /// Of no message in particular.
    pub(super) fn new(wc: Wc) -> Self {
        Self { wc, xid: None }
    }

    /// The device did not take it.
    pub(crate) fn not_posted() -> Self {
        Self::new(Wc::NOT_POSTED)
    }

    /// The connection had ended before.
    #[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
    pub(crate) fn flushed() -> Self {
        Self::new(Wc::FLUSHED)
    }

    /// How it ended.
    pub(crate) fn wc(&self) -> Wc {
        self.wc
    }

    /// The XID of the request, if the request itself was at fault, and not the link or the peer's
    /// state.
    pub(crate) fn faulting_xid(&self) -> Option<u32> {
        self.xid.filter(|_| self.wc.blames_request())
    }
}

/// Sizes of an endpoint.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EndpointConfig {
    /// Work requests that the send queue holds, one of which the drain needs.
    pub(crate) send_entries: u32,
    /// Registrations of one call, at most.
    pub(crate) regions_per_call: u32,
    /// Send buffers, at most; made as they are needed.
    pub(crate) send_buffers: u32,
    /// Bytes of a send buffer.
    pub(crate) send_size: usize,
    /// Receive buffers, at most; made as they are needed.
    pub(crate) receives: u32,
    /// Bytes of a receive buffer.
    pub(crate) receive_size: usize,
    /// Of a requester's regions.
    pub(crate) region: Option<RegionSize>,
    /// What RDMA Reads and Writes need; none for a requester that pulls no Replies.
    pub(crate) transfers: Option<TransferSizes>,
    /// Work requests of the longest RDMA Reads that pull one Reply, beside which a requester's
    /// Calls leave room; none of a responder.
    pub(crate) longest_read: u32,
    /// Replies that a responder provides at once.
    pub(crate) provided: u32,
}

impl EndpointConfig {
    /// Those of the queue pair.
    pub(super) fn qp(&self) -> QpSizes {
        QpSizes {
            send_entries: self.send_entries,
            chain: self.regions_per_call.saturating_add(1),
            receives: self.receives,
            region: self.region,
            transfers: self.transfers,
        }
    }
}

/// What an endpoint has beside its queue pair.
#[pin_data]
pub(crate) struct Parts<H: Handler> {
    /// Room for XDR padding, once it was provided.
    pub(super) padding: SetOnce<Padding>,
    config: EndpointConfig,
    #[pin]
    handler: H,
}

/// One end of a connection.
pub(crate) type Endpoint<H> = QueuePair<Parts<H>>;

/// The send queue of an endpoint, locked.
pub(super) type Sending<'a, H> = Locked<'a, Parts<H>>;

impl<H: Handler> Sending<'_, H> {
    /// Returns what trace events call the requests of that buffer, transfer or region.
    #[inline]
    pub(super) fn id_of(&self, number: u32) -> CompletionId {
        CompletionId::new(self.qp().cqs().0, number)
    }

    /// Returns the number of slots that neither hold a request nor wait for the invalidation of a
    /// registered region.
    #[inline]
    pub(super) fn sq_avail(&self) -> usize {
        let avail = self.ring().sq_avail();
        avail.saturating_sub(self.reserved) as usize
    }
}

impl<H: Handler> Parts<H> {
    pub(super) fn new(config: EndpointConfig, handler: impl PinInit<H>) -> impl PinInit<Self> {
        pin_init!(Self {
            padding: SetOnce::new(),
            config,
            handler <- handler,
        })
    }

    /// The user's part.
    pub(super) fn handler(&self) -> &H {
        &self.handler
    }
}

impl<H: Handler> Endpoint<H> {
    /// The user's part.
    #[inline]
    pub(crate) fn handler(&self) -> &H {
        &self.consumer().handler
    }

    /// The sizes it was made with.
    pub(crate) fn config(&self) -> &EndpointConfig {
        &self.consumer().config
    }

    /// Makes a buffer for messages. May sleep.
    pub(super) fn make_buffer(
        &self,
        poster: &Poster<'_>,
        len: usize,
        direction: DataDirection,
        maker: Maker,
    ) -> Result<DmaBuffer> {
        MappedBuffer::new(poster, len, direction, maker)
            .inspect_err(|e| trace::no_buffer(H::ROLE, *e))
    }

    /// Makes receive buffers until there are `want`. May sleep.
    pub(crate) fn grow_receives(&self, want: u32) -> Result {
        let missing = self.missing_receives(want);
        if missing == 0 {
            return Ok(());
        }
        let _scope = self.handler().memory_scope();
        let poster = self.enter()?;
        for _ in 0..missing {
            let size = self.config().receive_size;
            let buffer = self.make_buffer(&poster, size, DataDirection::FromDevice, Maker::Task)?;
            if self.add_receive(buffer).is_err() {
                // Somebody else has made them.
                break;
            }
        }
        Ok(())
    }
}
