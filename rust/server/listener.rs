// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Taking connections.

use super::{
    events::Events,
    poison::Poison, //
};
use crate::kapi::{
    ib::{
        CmId,
        ConnectRequest,
        ListenHandler,
        ListenId, //
    },
    sunrpc::{
        Net,
        NetRef,
        SocketAddress,
        SvcHandle, //
    },
    sys::{
        log::warn,
        time::HZ,
        trace::svcrdma_initdepth_err,
        workqueue::{
            work_class,
            DelayedWork,
            OwnedQueue,
            Timer,
            WorkItem, //
        },
    },
};
use kernel::{
    new_mutex,
    new_spinlock,
    prelude::*,
    sync::{
        Arc,
        Mutex,
        SpinLock, //
    },
    time::Jiffies, //
};
use xdr::PrivateData;

/// Connections that may wait to be accepted.
const BACKLOG: usize = 10;

/// A connection that waits to be accepted.
pub(super) struct Pending {
    pub(super) id: CmId<Events>,
    pub(super) events: Arc<Events>,
    /// What the peer says of itself; none if it says nothing.
    pub(super) peer: Option<PrivateData>,
    /// RDMA Reads that the peer can serve at once.
    pub(super) reads: u8,
    pub(super) poison: Arc<Poison>,
}

/// Until another try to listen where that failed.
const RETRY: Jiffies = HZ;

/// The connections that wait.
#[pin_data]
struct Backlog {
    handle: SvcHandle,
    poison: Arc<Poison>,
    #[pin]
    pending: Mutex<KVec<Pending>>,
    #[pin]
    again: SpinLock<Again>,
}

/// What listens again.
enum Again {
    /// The listener is being made; perhaps it is to listen again already.
    Early {
        wanted: bool,
    },
    Work(DelayedWork<Listening>),
    /// The listener goes.
    Never,
}

impl ListenHandler for Backlog {
    fn request(&self, request: &ConnectRequest<'_>) {
        // A requester that serves no RDMA Reads cannot send chunks.
        if request.initiator_depth == 0 {
            svcrdma_initdepth_err(|| (request.peer(), EINVAL));
            return;
        }
        let Ok(events) = Events::new() else { return };
        let mut pending = self.pending.lock();
        // Nothing that was adopted may be dropped here: that would wait for this very function.
        if pending.len() >= BACKLOG {
            return;
        }
        let Some(id) = request.adopt(events.clone()) else {
            return;
        };
        let new = Pending {
            id,
            events,
            peer: PrivateData::decode(request.private_data),
            reads: request.initiator_depth,
            poison: self.poison.clone(),
        };
        // There is room by the check above.
        let _ = pending.push_within_capacity(new);
        drop(pending);
        self.handle.connection_pending();
    }

    fn ended(&self) {
        match &mut *self.again.lock() {
            Again::Early { wanted } => *wanted = true,
            Again::Work(work) => {
                work.queue(0);
            }
            Again::Never => (),
        }
    }
}

/// Listens, and listens again when its device went or its address moved.
#[pin_data]
struct Listening {
    net: NetRef,
    /// With the port.
    address: SocketAddress,
    backlog: Arc<Backlog>,
    #[pin]
    id: Mutex<Option<ListenId<Backlog>>>,
}

impl WorkItem for Listening {
    fn run(&self, timer: Timer<'_>) {
        let mut id = self.id.lock();
        let first = id.is_some();
        // The old one must let the address go first.
        *id = None;
        match ListenId::new(
            &self.net,
            &self.address,
            BACKLOG as i32,
            self.backlog.clone(),
        ) {
            Ok(new) => *id = Some(new),
            Err(e) => {
                if first {
                    let address = &self.address;
                    warn(format_args!(
                        "cannot listen on {address} any more: {e:?}; trying again"
                    ));
                }
                timer.queue(RETRY);
            }
        }
    }
}

/// A listener.
pub(crate) struct Listener {
    address: SocketAddress,
    backlog: Arc<Backlog>,
}

impl Listener {
    /// Listens. May sleep.
    pub(super) fn new(handle: SvcHandle, net: &Net, address: &SocketAddress) -> Result<Self> {
        let pending = KVec::with_capacity(BACKLOG, GFP_KERNEL)?;
        let poison = Poison::new()?;
        let backlog = Arc::pin_init(
            pin_init!(Backlog {
                handle,
                poison,
                pending <- new_mutex!(pending, "svcrdma_backlog"),
                again <- new_spinlock!(Again::Early { wanted: false }, "svcrdma_again"),
            }),
            GFP_KERNEL,
        )?;
        let id = ListenId::new(net, address, BACKLOG as i32, backlog.clone())?;
        let address = id.local_address();
        let (net, theirs) = (net.hold(), backlog.clone());
        let work = DelayedWork::new(
            OwnedQueue::new(c"svcrdma_listen", GFP_KERNEL)?,
            work_class!(c"svcrdma_listen"),
            pin_init!(Listening {
                net,
                address,
                backlog: theirs,
                id <- new_mutex!(Some(id), "svcrdma_listening"),
            }),
            GFP_KERNEL,
        )?;
        let mut again = backlog.again.lock();
        if let Again::Early { wanted: true } = *again {
            work.queue(0);
        }
        *again = Again::Work(work);
        drop(again);
        Ok(Self { address, backlog })
    }

    /// The address that it got.
    pub(super) fn local_address(&self) -> SocketAddress {
        self.address
    }

    /// Whether a connection waits.
    pub(super) fn is_pending(&self) -> bool {
        !self.backlog.pending.lock().is_empty()
    }

    /// Listens no more: somebody else may, at once. Connections that wait do so still. May sleep.
    pub(super) fn end(&self) {
        let again = core::mem::replace(&mut *self.backlog.again.lock(), Again::Never);
        // It waits for what runs, outside of the lock.
        drop(again);
    }

    /// The connection that has waited longest.
    pub(super) fn next(&self) -> Result<Pending> {
        let mut pending = self.backlog.pending.lock();
        pending.remove(0).map_err(|_| EAGAIN)
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.end();
    }
}
