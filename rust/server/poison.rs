// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Calls that have broken a connection (RFC 8166, section 4.5.3).
//!
//! The client sends such a Call again on its next connection, which it would break as well. There
//! it is answered with ERR_CHUNK, once.
//!
//! An iWARP device does not report which request the peer has refused. There no Call is marked: a
//! connection that is lost again and again may lose the same Call each time, which then is at no
//! fault, and must not fail.

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

/// The marks of a listener's connections.
#[pin_data]
pub(super) struct Poison {
    #[pin]
    marks: SpinLock<KVec<Mark>>,
    /// The number of marks, read without the lock since it is zero as a rule.
    count: Atomic<usize>,
}

impl Poison {
    /// Creates an empty list. May sleep.
    pub(super) fn new() -> Result<Arc<Self>> {
        let marks = KVec::with_capacity(MOST, GFP_KERNEL)?;
        Arc::pin_init(
            pin_init!(Self {
                marks <- new_spinlock!(marks, "svcrdma_poison"),
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
