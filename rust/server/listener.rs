// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Taking connections.

use crate::{
    kapi::{
        ib::{
            ConnectRequest,
            ListenHandler,
            ListenId, //
        },
        sunrpc::{
            SvcHandle,
            SvcListener, //
        },
        sys::{
            address::SocketAddress,
            log::{
                warn,
                warn_about, //
            },
            memalloc::total_pages,
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
        connection::Connection,
        events::{
            Events,
            Pending, //
        },
        pace::Pace,
        poison::Poison, //
    },
};
use core::ffi::{
    c_int,
    CStr, //
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

/// For how long connections wait while no nfsd thread accepts any. Their peers do not wait longer.
const ACCEPT_TIMEOUT: Jiffies = 120 * HZ;

/// Until another try to listen where that failed.
const RETRY: Jiffies = HZ;

/// What a listener has whatever id it listens with: puts connections into its backlog.
#[pin_data]
struct ListenState {
    handle: SvcHandle,
    queue: Arc<OwnedQueue>,
    poison: Arc<Poison>,
    pace: Arc<Pace>,
    all_pulls: Arc<AllPulls>,
    backlog: Backlog<Pending>,
    #[pin]
    retry: SpinLock<ListenRetry>,
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

impl ListenState {
    /// Adds the connection to the backlog. Nothing fails once the id is adopted: to drop that here
    /// would wait for this very function.
    fn add(&self, request: &ConnectRequest<'_>) -> Result {
        let reservation = self.backlog.reserve()?;
        let events = Events::new()?;
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
        self.backlog.push(reservation, new);
        self.handle.connection_pending();
        Ok(())
    }
}

impl ListenHandler for ListenState {
    fn request(&self, request: &ConnectRequest<'_>) {
        // A requester that serves no RDMA Reads cannot send chunks.
        if request.initiator_depth == 0 {
            svcrdma_initdepth_err(|| (request.peer(), EINVAL));
            return;
        }
        let peer = request.peer();
        match self.add(request) {
            Err(EBUSY) => {
                let most = self.backlog.limit();
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
        match &mut *self.retry.lock() {
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
    state: Arc<ListenState>,
    #[pin]
    id: Mutex<Option<ListenId<ListenState>>>,
}

impl WorkItem for ListenWork {
    fn run(&self, timer: Timer<'_>) {
        let mut id = self.id.lock();
        let first = id.is_some();
        // The old one must let the address go first.
        *id = None;
        match ListenId::new(&self.net, &self.address, LISTEN_BACKLOG, self.state.clone()) {
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
    state: Arc<ListenState>,
}

impl Listener {
    fn begin(&mut self, net: &Net, queue: Arc<OwnedQueue>) -> Result {
        let state = self.state.clone();
        let id = ListenId::new(net, &self.address, LISTEN_BACKLOG, state.clone())?;
        self.address = id.local_address();
        let (net, address) = (net.into(), self.address);
        let work = DelayedWork::new(
            queue,
            work_class!(c"svcrdma_listen"),
            pin_init!(ListenWork {
                net,
                address,
                state,
                id <- new_mutex!(Some(id), "svcrdma_listening"),
            }),
            GFP_KERNEL,
        )?;
        let mut retry = self.state.retry.lock();
        if let ListenRetry::Early { wanted: true } = *retry {
            work.queue(0);
        }
        *retry = ListenRetry::Work(work);
        Ok(())
    }
}

impl SvcListener for Listener {
    type Connection = Connection;
    const NAME: &'static CStr = c"rdma";
    const IDENT: c_int = 256;
    const MAX_PAYLOAD: u32 = 4 << 20;

    fn listen(handle: SvcHandle, net: &Net, address: &SocketAddress) -> Result<Self> {
        let queue = OwnedQueue::new(c"svcrdma_listen", GFP_KERNEL)?;
        let (poison, pace) = (Poison::new()?, Pace::new()?);
        let all_pulls = AllPulls::new()?;
        let limit = total_pages() / SHARE_OF_MEMORY;
        let backlog = Backlog::new(limit, ACCEPT_TIMEOUT, queue.clone())?;
        let works = queue.clone();
        let state = Arc::pin_init(
            pin_init!(ListenState {
                handle,
                queue: works,
                poison,
                pace,
                all_pulls,
                backlog,
                retry <- new_spinlock!(ListenRetry::Early { wanted: false }, "svcrdma_listen_retry"),
            }),
            GFP_KERNEL,
        )?;
        // From here on dropping it undoes all.
        let mut listener = Self {
            address: *address,
            state,
        };
        listener.begin(net, queue)?;
        Ok(listener)
    }

    fn local_address(&self) -> SocketAddress {
        self.address
    }

    fn is_pending(&self) -> bool {
        !self.state.backlog.is_empty()
    }

    // Connections that wait do so still.
    fn unlisten(&self) {
        let retry = core::mem::replace(&mut *self.state.retry.lock(), ListenRetry::Never);
        // It waits for what runs, outside of the lock.
        drop(retry);
    }

    fn accept(&self, handle: SvcHandle, max_message: usize) -> Result<Connection> {
        let next = self.state.backlog.take().ok_or(EAGAIN)?;
        Connection::accept(next, handle, max_message)
    }
}

impl Drop for Listener {
    /// Drops the connections that wait, too: nobody else has the backlog any more. Sleeps.
    fn drop(&mut self) {
        self.unlisten();
    }
}
