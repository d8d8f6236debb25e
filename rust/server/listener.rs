// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Taking connections.

use crate::{
    kapi::{
        ib::{
            ConnectRequest,
            ListenHandler,
            ListenId, //
        },
        sunrpc::SvcHandle,
        sys::{
            address::SocketAddress,
            log::{
                warn,
                warn_about, //
            },
            memory::total_pages,
            net::{
                Net,
                NetRef, //
            },
            time::HZ,
            workqueue::{
                work_class,
                DelayedWork,
                OwnedQueue,
                Timer,
                WorkItem, //
            },
        },
        trace::svcrdma_initdepth_err, //
    },
    server::{
        all_pulls::AllPulls,
        backlog::Backlog,
        events::{
            Events,
            Pending, //
        },
        pace::Pace,
        poison::Poison, //
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

/// Requests for connections that the device and its driver may have in hand at once.
const LISTEN_BACKLOG: i32 = 1024;

/// Of the machine's pages, one in so many may be taken by connections that wait to be accepted,
/// each of which takes less than a page: an id with what the connection manager has of it, and an
/// [`Events`]. On a machine with 1 GiB, 2048 may wait.
const SHARE_OF_MEMORY: usize = 128;

/// For how long connections wait while no nfsd thread takes any. Their peers do not wait longer.
const PATIENCE: Jiffies = 120 * HZ;

/// Until another try to listen where that failed.
const RETRY: Jiffies = HZ;

/// Takes requests for connections.
#[pin_data]
struct Door {
    handle: SvcHandle,
    queue: Arc<OwnedQueue>,
    poison: Arc<Poison>,
    pace: Arc<Pace>,
    all_pulls: Arc<AllPulls>,
    backlog: Arc<Backlog<Pending>>,
    #[pin]
    again: SpinLock<ListenRetry>,
}

/// What listens again.
enum ListenRetry {
    /// The listener is being made; perhaps it is to listen again already.
    Early {
        wanted: bool,
    },
    Work(DelayedWork<ListenWork>),
    /// The listener goes.
    Never,
}

impl Door {
    /// Has the connection wait, or says why not. Nothing fails once the id is adopted: to drop that
    /// here would wait for this very function.
    fn let_in(&self, request: &ConnectRequest<'_>) -> Result {
        let ticket = self.backlog.ticket()?;
        let events = Events::new(self.backlog.clone(), ticket.number())?;
        let id = request.adopt(events.clone()).ok_or(EINVAL)?;
        let new = Pending {
            id,
            events,
            peer: PrivateData::decode(request.private_data),
            reads: request.initiator_depth,
            pulls: request.responder_resources,
            queue: self.queue.clone(),
            poison: self.poison.clone(),
            pace: self.pace.clone(),
            all_pulls: self.all_pulls.clone(),
        };
        self.backlog.push(ticket, new);
        self.handle.connection_pending();
        Ok(())
    }
}

impl ListenHandler for Door {
    fn request(&self, request: &ConnectRequest<'_>) {
        // A requester that serves no RDMA Reads cannot send chunks.
        if request.initiator_depth == 0 {
            svcrdma_initdepth_err(|| (request.peer(), EINVAL));
            return;
        }
        let peer = request.peer();
        match self.let_in(request) {
            Err(EBUSY) => {
                let most = self.backlog.most();
                warn_about(
                    &peer,
                    format_args!(
                        "connection from {peer} refused: {most} wait for an nfsd thread already"
                    ),
                );
            }
            Err(e) => warn_about(&peer, format_args!("connection from {peer} refused: {e:?}")),
            Ok(()) => (),
        }
    }

    fn ended(&self) {
        match &mut *self.again.lock() {
            ListenRetry::Early { wanted } => *wanted = true,
            ListenRetry::Work(work) => {
                work.queue(0);
            }
            ListenRetry::Never => (),
        }
    }
}

/// Listens, and listens again when its device went or its address moved.
#[pin_data]
struct ListenWork {
    net: NetRef,
    /// With the port.
    address: SocketAddress,
    door: Arc<Door>,
    #[pin]
    id: Mutex<Option<ListenId<Door>>>,
}

impl WorkItem for ListenWork {
    fn run(&self, timer: Timer<'_>) {
        let mut id = self.id.lock();
        let first = id.is_some();
        // The old one must let the address go first.
        *id = None;
        match ListenId::new(&self.net, &self.address, LISTEN_BACKLOG, self.door.clone()) {
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
    door: Arc<Door>,
}

impl Listener {
    /// Listens. May sleep.
    pub(super) fn new(handle: SvcHandle, net: &Net, address: &SocketAddress) -> Result<Self> {
        let queue = OwnedQueue::new(c"svcrdma_listen", GFP_KERNEL)?;
        let (poison, pace) = (Poison::new()?, Pace::new()?);
        let all_pulls = AllPulls::new()?;
        let most = total_pages() / SHARE_OF_MEMORY;
        let backlog = Backlog::new(most, PATIENCE, queue.clone())?;
        let (theirs, works) = (backlog.clone(), queue.clone());
        let door = Arc::pin_init(
            pin_init!(Door {
                handle,
                queue: works,
                poison,
                pace,
                all_pulls,
                backlog: theirs,
                again <- new_spinlock!(ListenRetry::Early { wanted: false }, "svcrdma_again"),
            }),
            GFP_KERNEL,
        )
        .inspect_err(|_| backlog.close())?;
        // From here on dropping it undoes all.
        let mut listener = Self {
            address: *address,
            door,
        };
        listener.begin(net, queue)?;
        Ok(listener)
    }

    fn begin(&mut self, net: &Net, queue: Arc<OwnedQueue>) -> Result {
        let door = &self.door;
        let id = ListenId::new(net, &self.address, LISTEN_BACKLOG, door.clone())?;
        self.address = id.local_address();
        let (net, address, theirs) = (net.hold(), self.address, door.clone());
        let work = DelayedWork::new(
            queue,
            work_class!(c"svcrdma_listen"),
            pin_init!(ListenWork {
                net,
                address,
                door: theirs,
                id <- new_mutex!(Some(id), "svcrdma_listening"),
            }),
            GFP_KERNEL,
        )?;
        let mut again = door.again.lock();
        if let ListenRetry::Early { wanted: true } = *again {
            work.queue(0);
        }
        *again = ListenRetry::Work(work);
        Ok(())
    }

    /// The address that it got.
    pub(super) fn local_address(&self) -> SocketAddress {
        self.address
    }

    /// Whether a connection waits.
    pub(super) fn is_pending(&self) -> bool {
        !self.door.backlog.is_empty()
    }

    /// Listens no more: somebody else may, at once. Connections that wait do so still. May sleep.
    pub(super) fn end(&self) {
        let again = core::mem::replace(&mut *self.door.again.lock(), ListenRetry::Never);
        // It waits for what runs, outside of the lock.
        drop(again);
    }

    /// The connection that has waited longest.
    pub(super) fn next(&self) -> Result<Pending> {
        self.door.backlog.take().ok_or(EAGAIN)
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.end();
        // Nobody knocks any more.
        self.door.backlog.close();
    }
}
