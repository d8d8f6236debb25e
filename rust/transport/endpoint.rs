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
            PortName,
            Poster,
            QpEvent,
            QueuePair,
            Received,
            Wc, //
        },
        page::TransferMemory,
        sys::{
            address::SocketAddress,
            memalloc::MemoryScope,
            time, //
        },
        trace::CompletionId, //
    },
    transport::{
        continued::Kept,
        negotiated::Negotiated,
        padding::Padding,
        plan::Plan,
        terms::Terms,
        trace, //
    },
};
use kernel::{
    dma::DataDirection,
    fmt,
    prelude::*,
    sync::SetOnce,
    time::Jiffies, //
};
use xdr::{
    v2::{
        Bounds,
        ReverseSupport,
        Undecoded, //
    },
    DecodeError,
    Role,
    Version, //
};

/// What a received message is to its end.
pub(crate) enum Arrival {
    /// A Call, a Reply or an error, which is still to be decoded.
    Message,
    /// The last message of a Call or a Reply, and those in front of it.
    Last(Undecoded, KBox<Kept>),
    /// A message that is malformed, or may not come there, and why.
    Refused(DecodeError),
    /// A message for the transport alone, which has taken it in.
    Taken,
}

/// Receives the events of an endpoint. Unless said otherwise, each function is called in process
/// context, from the work queue of the completion queues: it must not sleep on memory and must not
/// wait for the tear-down.
pub(crate) trait Handler: Sized + Send + Sync + 'static {
    /// Comes back with the completion of local invalidations, or of RDMA Reads.
    type Cookie: Send + 'static;
    /// Receives the events of the id.
    type Cm: CmHandler;
    /// Says which end this is; trace events have names of one of them.
    const ROLE: Role;
    /// Says what it takes of Calls in the reverse direction.
    const REVERSE: ReverseSupport = ReverseSupport::None;

    /// Returns the bounds on what it receives.
    fn bounds(&self) -> &Bounds;

    /// Enters the scope in which buffers are to be allocated, if that is not the task's anyway.
    fn memory_scope(&self) -> Option<MemoryScope> {
        None
    }
    /// Handles a received message.
    fn received(&self, endpoint: &Endpoint<Self>, message: Received<'_>, arrival: Arrival);
    /// Notes that a message was received which the transport keeps: the last of its Call or Reply
    /// is still to come.
    fn kept(&self, endpoint: &Endpoint<Self>) {
        let _ = endpoint;
    }
    /// Notes that the version of the connection is known, by a message with this XID; not called
    /// where it was from the beginning. A responder is told of version 2 alone, which it answers.
    fn negotiated(&self, endpoint: &Endpoint<Self>, xid: u32) {
        let _ = (endpoint, xid);
    }
    /// Handles a peer that breaks the protocol: the connection is to be dropped.
    fn broken(&self, endpoint: &Endpoint<Self>);
    /// Drops the received messages that are kept, for which the tear-down waits: no more will come.
    /// May sleep.
    fn drained(&self) {}
    /// Handles the end of local invalidations: `done` proves that they have ended well. After a
    /// failure nothing is known of the regions until [`Self::fenced`].
    fn invalidated(
        &self,
        endpoint: &Endpoint<Self>,
        cookie: Self::Cookie,
        done: Option<Invalidated>,
    ) {
        let _ = (endpoint, cookie, done);
    }
    /// Ends what waits for regions: all are dead, and no peer can reach what they covered. From the
    /// tear-down; may sleep.
    fn fenced(&self, endpoint: &Endpoint<Self>) {
        let _ = endpoint;
    }
    /// Takes the memory of RDMA Reads that have ended, well if `ok`. Also from the tear-down.
    fn read_ended(
        &self,
        endpoint: &Endpoint<Self>,
        cookie: Self::Cookie,
        memory: TransferMemory,
        ok: bool,
    ) {
        let _ = (endpoint, cookie, memory, ok);
    }
    /// Handles that send buffers or room in the send queue came back; to a responder, so much that
    /// nothing waits any more.
    fn sq_space(&self, endpoint: &Endpoint<Self>);
    /// Notes that something waits for room in the send queue. Must not call the endpoint.
    fn sq_full(&self) {}
    /// Handles the loss of the connection: a work request ended in an error.
    fn failed(&self, failure: WcError);
    /// Notes that the end of the connection begins; `told` says whether there was one, so that the
    /// peer learns of it. From the tear-down; may sleep.
    fn disconnected(&self, told: Result) {
        let _ = told;
    }
    /// Writes what this end alone can say of the connection. Takes no lock under which RPCs are
    /// sent or answered.
    fn describe(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let _ = to;
        Ok(())
    }
    /// Handles an event of the queue pair. Any context, also with interrupts off.
    fn device_event(&self, event: &QpEvent<'_>) {
        let _ = event;
    }
}

/// Says how a work request failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct WcError {
    pub(super) wc: Wc,
    pub(super) xid: Option<u32>,
}

impl WcError {
    /// Creates that of no message in particular.
    pub(super) fn new(wc: Wc) -> Self {
        Self { wc, xid: None }
    }

    /// Creates that of a work request which the device did not take.
    pub(crate) fn not_posted() -> Self {
        Self::new(Wc::NOT_POSTED)
    }

    /// Creates that of a work request which was flushed.
    #[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
    pub(crate) fn flushed() -> Self {
        Self::new(Wc::FLUSHED)
    }

    /// Returns its work completion.
    pub(crate) fn wc(&self) -> Wc {
        self.wc
    }

    /// Returns the XID of the request, if the request itself was at fault, and not the link or the
    /// peer's state.
    pub(crate) fn faulting_xid(&self) -> Option<u32> {
        self.xid.filter(|_| self.wc.blames_request())
    }
}

/// Holds what an endpoint has beside its queue pair.
#[pin_data]
pub(crate) struct Parts<H: Handler> {
    /// Room for XDR padding, once it was provided.
    pub(super) padding: SetOnce<Padding>,
    negotiated: Negotiated,
    /// What the private data of both ends come to, once they are known.
    pub(super) terms: SetOnce<Terms>,
    pub(super) port: PortName,
    /// The time when it was made.
    pub(super) since: Jiffies,
    plan: Plan,
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
    /// Creates the parts of an endpoint of these sizes on a port, whose peer has that address.
    /// `version` is none if it is to be negotiated.
    pub(super) fn new(
        plan: Plan,
        port: PortName,
        peer: SocketAddress,
        version: Option<Version>,
        handler: impl PinInit<H>,
    ) -> impl PinInit<Self> {
        pin_init!(Self {
            padding: SetOnce::new(),
            negotiated: Negotiated::new(H::ROLE, peer, version),
            terms: SetOnce::new(),
            port,
            since: time::jiffies(),
            plan,
            handler <- handler,
        })
    }

    /// Returns its handler.
    pub(super) fn handler(&self) -> &H {
        &self.handler
    }
}

impl<H: Handler> Endpoint<H> {
    /// Returns its handler.
    #[inline]
    pub(crate) fn handler(&self) -> &H {
        &self.consumer().handler
    }

    /// Returns what its ends know of each other.
    #[inline]
    pub(super) fn negotiated(&self) -> &Negotiated {
        &self.consumer().negotiated
    }

    /// Returns the port that it is on.
    pub(crate) fn port(&self) -> &PortName {
        &self.consumer().port
    }

    /// Returns the sizes that it was made with.
    pub(crate) fn plan(&self) -> &Plan {
        &self.consumer().plan
    }

    /// Allocates a buffer for messages. May sleep.
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

    /// Allocates receive buffers until there are `want`. May sleep.
    pub(crate) fn grow_receives(&self, want: u32) -> Result {
        let missing = self.missing_receives(want);
        if missing == 0 {
            return Ok(());
        }
        let _scope = self.handler().memory_scope();
        let poster = self.enter()?;
        for _ in 0..missing {
            let size = self.plan().receive_size;
            let buffer = self.make_buffer(&poster, size, DataDirection::FromDevice, Maker::Task)?;
            if self.add_receive(buffer).is_err() {
                // Somebody else has made them.
                break;
            }
        }
        Ok(())
    }
}
