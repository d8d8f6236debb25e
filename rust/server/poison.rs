// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Calls that have broken a connection (RFC 8166, section 4.5.3).
//!
//! The client sends such a Call again on its next connection, which it would break as well. There
//! it is answered with ERR_CHUNK, once.
//!
//! An iWARP device does not report which request the peer has refused. There a Call is marked if it
//! was the only one with outstanding RDMA at several losses in a row.

#[cfg(CONFIG_RPCRDMA_KUNIT_TEST)]
#[path = "../../kunit/poison.rs"]
mod tests;

use crate::kapi::sys::{
    address::SocketAddress,
    time::{
        self,
        HZ, //
    },
};
use kernel::{
    new_spinlock,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc,
        SpinLock, //
    },
    time::Jiffies, //
};

/// The most marks. The oldest mark of the client with the most marks is evicted first, so that one
/// client cannot evict the marks of others.
const MOST: usize = 32;
/// The lifetime of a mark. The client sends the Call again as soon as it has a new connection, or
/// never, if its RPC has ended; and another Call of that host may use the same XID one day.
const LIFETIME: Jiffies = 120 * HZ;
/// The same in Calls of a new connection: Calls that are sent again come first.
const FIRST_CALLS: u32 = 1024;
/// The number of losses in a row at which a Call must have been the only one. On an unreliable link
/// it is another Call each time, or several, or none.
const LOSSES: u32 = 3;

/// A Call that has broken a connection, and its client.
struct Mark {
    client: SocketAddress,
    xid: u32,
    made: Jiffies,
}

/// Returns the mark to evict: the oldest one of the client with the most marks.
fn mark_to_evict(marks: &[Mark]) -> usize {
    let crowd = |one: &Mark| {
        let theirs = marks
            .iter()
            .filter(|mark| mark.client.is_same_host(&one.client));
        theirs.count()
    };
    let all = marks.iter().enumerate().rev();
    all.max_by_key(|(_, one)| crowd(one))
        .map_or(0, |(at, _)| at)
}

/// The only Call with outstanding RDMA at a client's latest losses; at most one for each client.
struct Suspect {
    client: SocketAddress,
    xid: u32,
    losses: u32,
    made: Jiffies,
}

/// The marks of a listener's connections.
#[pin_data]
pub(super) struct Poison {
    #[pin]
    marks: SpinLock<KVec<Mark>>,
    #[pin]
    suspects: SpinLock<KVec<Suspect>>,
    /// The number of marks, read without the lock since it is zero as a rule.
    count: Atomic<usize>,
}

impl Poison {
    /// Creates an empty list. May sleep.
    pub(super) fn new() -> Result<Arc<Self>> {
        let marks = KVec::with_capacity(MOST, GFP_KERNEL)?;
        let suspects = KVec::with_capacity(MOST, GFP_KERNEL)?;
        Arc::pin_init(
            pin_init!(Self {
                marks <- new_spinlock!(marks, "svcrdma_poison"),
                suspects <- new_spinlock!(suspects, "svcrdma_suspects"),
                count: Atomic::new(0),
            }),
            GFP_KERNEL,
        )
    }

    /// Marks a Call of a client as one that has broken a connection. Does not sleep.
    pub(super) fn mark(&self, client: &SocketAddress, xid: u32) {
        let mut marks = self.marks.lock();
        if marks.iter().any(|mark| mark.is(client, xid)) {
            return;
        }
        if marks.len() >= MOST {
            let at = mark_to_evict(&marks);
            let _ = marks.remove(at);
        }
        let _ = marks.push_within_capacity(Mark {
            client: *client,
            xid,
            made: time::jiffies(),
        });
        self.count.store(marks.len(), Relaxed);
    }

    /// Notes that a client's connection was lost for an unknown reason. `only` is the Call that was
    /// the only one with outstanding RDMA. Does not sleep.
    pub(super) fn lost(&self, client: &SocketAddress, only: Option<u32>) {
        let losses = self.count_loss(client, only);
        if let Some(xid) = only.filter(|_| losses >= LOSSES) {
            self.mark(client, xid);
        }
    }

    /// Returns the number of losses in a row with the same Call.
    fn count_loss(&self, client: &SocketAddress, only: Option<u32>) -> u32 {
        let mut suspects = self.suspects.lock();
        let found = suspects.iter().position(|s| s.client.is_same_host(client));
        let before = found.and_then(|i| suspects.remove(i).ok());
        let Some(xid) = only else { return 0 };
        let before = before.filter(|s| s.xid == xid && time::since(s.made) < LIFETIME);
        let losses = before.map_or(0, |s| s.losses) + 1;
        if losses < LOSSES {
            if suspects.len() >= MOST {
                let _ = suspects.remove(0);
            }
            let _ = suspects.push_within_capacity(Suspect {
                client: *client,
                xid,
                losses,
                made: time::jiffies(),
            });
        }
        losses
    }

    /// Returns whether there are marks: as a rule there are none.
    #[inline]
    pub(super) fn is_any(&self) -> bool {
        self.count.load(Relaxed) != 0
    }

    /// Returns whether this Call is marked, and removes the mark. `calls` is the number of Calls
    /// before it on the same connection. Does not sleep.
    pub(super) fn take(&self, client: &SocketAddress, xid: u32, calls: u32) -> bool {
        if !self.is_any() || calls >= FIRST_CALLS {
            return false;
        }
        let mut marks = self.marks.lock();
        marks.retain(|mark| time::since(mark.made) < LIFETIME);
        let found = marks.iter().position(|mark| mark.is(client, xid));
        let taken = found.is_some_and(|i| marks.remove(i).is_ok());
        self.count.store(marks.len(), Relaxed);
        taken
    }
}

impl Mark {
    fn is(&self, client: &SocketAddress, xid: u32) -> bool {
        self.xid == xid && self.client.is_same_host(client)
    }
}
