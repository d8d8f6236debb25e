// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Calls whose own fault broke the connection (RFC 8166, section 4.5.3).
//!
//! The client sends such a Call again on its next connection, where it would do the same. So it is
//! answered with ERR_CHUNK there, once.
//!
//! An iWARP device does not say which request it was that the peer refused. There a Call is found
//! out when it was the only one with RDMA under way, at several losses in a row.

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

/// Marks that are kept. Of the client that has most of them the oldest goes first, so that one
/// client cannot evict the marks of others.
const MOST: usize = 32;
/// How long a mark counts. The client sends the Call again as soon as it has a new connection, or
/// never, if nobody waits for it any more; and another Call of that host may have the same XID one
/// day.
const LIFETIME: Jiffies = 120 * HZ;
/// The same in Calls of a new connection: those that are sent again come first.
const FIRST_CALLS: u32 = 1024;
/// Losses in a row at which a Call must have been alone. A link that is lost by itself finds
/// another Call each time, several, or none.
const LOSSES: u32 = 3;

/// Who sent which Call.
struct Mark {
    client: SocketAddress,
    xid: u32,
    made: Jiffies,
}

/// Which mark is to go: the oldest of a client that has most of them.
fn superfluous(marks: &[Mark]) -> usize {
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

/// Who was alone when a client's connections were lost of late: one for each client.
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
    /// So that a Call costs no lock while there are none.
    count: Atomic<usize>,
}

impl Poison {
    /// Without marks. May sleep.
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

    /// A Call of the client's was at fault. Does not sleep.
    pub(super) fn mark(&self, client: &SocketAddress, xid: u32) {
        let mut marks = self.marks.lock();
        if marks.iter().any(|mark| mark.is(client, xid)) {
            return;
        }
        if marks.len() >= MOST {
            let at = superfluous(&marks);
            let _ = marks.remove(at);
        }
        let _ = marks.push_within_capacity(Mark {
            client: *client,
            xid,
            made: time::jiffies(),
        });
        self.count.store(marks.len(), Relaxed);
    }

    /// A connection of the client's was lost, and nobody knows by whose fault. `only` is the Call
    /// that alone had RDMA under way. Does not sleep.
    pub(super) fn lost(&self, client: &SocketAddress, only: Option<u32>) {
        let losses = self.count_loss(client, only);
        if let Some(xid) = only.filter(|_| losses >= LOSSES) {
            self.mark(client, xid);
        }
    }

    /// How many losses in a row it has been the same Call.
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

    /// Whether there are marks: as a rule there are none.
    #[inline]
    pub(super) fn is_any(&self) -> bool {
        self.count.load(Relaxed) != 0
    }

    /// Whether the Call is one that was at fault; it is forgotten. `calls` says how many there were
    /// before it by the same connection. Does not sleep.
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
