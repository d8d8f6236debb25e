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
            Pending,
            Shared, //
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

/// Connect requests that the device and its driver may hold at once.
const LISTEN_BACKLOG: i32 = 1024;

/// Divides the machine's pages: one part may be taken by connections that wait to be accepted, each
/// of which takes less than a page, for an id with what the connection manager has of it and an
/// [`Events`]. On a machine with 1 GiB, 2048 may wait.
const SHARE_OF_MEMORY: usize = 128;

/// Jiffies that connections wait while no nfsd thread accepts any. Their peers do not wait longer.
const ACCEPT_TIMEOUT: Jiffies = 120 * HZ;

/// Jiffies until another try to listen where that failed.
const RETRY: Jiffies = HZ;

/// Puts connections into the backlog of a listener, whatever id it listens with.
#[pin_data]
struct ListenState {
    handle: SvcHandle,
    shared: Shared,
    backlog: Backlog<Pending>,
    /// Listens again; none once the listener is closed.
    #[pin]
    work: SpinLock<Option<Arc<DelayedWork<ListenWork>>>>,
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
            shared: self.shared.clone(),
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
        if let Some(work) = &*self.work.lock() {
            work.queue(0);
        }
    }
}

/// Listens again when the device of an id went or its address moved.
#[pin_data]
struct ListenWork {
    net: NetRef,
    state: Arc<ListenState>,
    #[pin]
    listening: Mutex<Listening>,
}

/// Holds what a listener listens with.
struct Listening {
    /// With the port, once there was an id.
    address: SocketAddress,
    id: Option<ListenId<ListenState>>,
}

impl WorkItem for ListenWork {
    fn run(&self, timer: Timer<'_>) {
        let Listening { address, id } = &mut *self.listening.lock();
        let first = id.is_some();
        // The old one must let the address go first.
        *id = None;
        match ListenId::new(&self.net, address, LISTEN_BACKLOG, self.state.clone()) {
            Ok(new) => *id = Some(new),
            Err(e) => {
                if first {
                    warn(format_args!(
                        "cannot listen on {address} any more: {e:?}; trying again"
                    ));
                }
                timer.queue(RETRY);
            }
        }
    }
}

/// Listens at an address.
pub(crate) struct Listener {
    address: SocketAddress,
    state: Arc<ListenState>,
}

impl Listener {
    /// Begins to listen. May sleep.
    fn begin(&mut self, net: &Net, queue: Arc<OwnedQueue>) -> Result {
        let (net, state, address) = (net.into(), self.state.clone(), self.address);
        let work = pin_init!(ListenWork {
            net,
            state,
            listening <- new_mutex!(Listening { address, id: None }, "svcrdma_listening"),
        });
        let class = work_class!(c"svcrdma_listen");
        let work = DelayedWork::new(queue, class, work, GFP_KERNEL)?;
        let work = Arc::new(work, GFP_KERNEL)?;
        *self.state.work.lock() = Some(work.clone());
        // Locked: it may be wanted as soon as there is an id.
        let mut listening = work.listening.lock();
        let id = ListenId::new(&work.net, &address, LISTEN_BACKLOG, self.state.clone())?;
        self.address = id.local_address();
        *listening = Listening {
            address: self.address,
            id: Some(id),
        };
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
        let shared = Shared {
            queue: queue.clone(),
            poison: Poison::new()?,
            pace: Pace::new()?,
            all_pulls: AllPulls::new()?,
        };
        let limit = total_pages() / SHARE_OF_MEMORY;
        let backlog = Backlog::new(limit, ACCEPT_TIMEOUT, queue.clone())?;
        let state = Arc::pin_init(
            pin_init!(ListenState {
                handle,
                shared,
                backlog,
                work <- new_spinlock!(None, "svcrdma_listen_work"),
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
        let work = self.state.work.lock().take();
        // It waits for what runs, outside of the lock.
        drop(work);
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
