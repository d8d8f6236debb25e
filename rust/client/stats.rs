// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The counters of a mount, and its line in `/proc/self/mountstats`.

use crate::kapi::sunrpc::{
    XdrBuf,
    Xprt, //
};
use kernel::{
    seq_file::SeqFile,
    seq_print,
    sync::atomic::{
        Atomic,
        Relaxed, //
    },
};

/// A counter of a mount.
#[derive(Clone, Copy)]
pub(crate) enum Stat {
    /// Segments of Read chunks sent.
    ReadSegments,
    /// Segments of Write chunks sent.
    WriteSegments,
    /// Segments of Reply chunks sent.
    ReplySegments,
    /// Bytes that servers might have written into chunks.
    OfferedBytes,
    /// Bytes that servers have written into chunks.
    WrittenBytes,
    /// Bytes of pages and tails copied into Sends.
    PullupBytes,
    /// Bytes copied from Receives into pages and tails.
    FixupBytes,
    /// Calls that could not be encoded.
    FailedMarshal,
    /// Malformed Replies.
    BadReplies,
    /// Calls sent through a Position Zero Read chunk.
    LongCalls,
    /// Regions made.
    RegionsMade,
    /// RPCs whose regions were invalidated by a local invalidation.
    LocalInvalidations,
    /// Calls that had to wait for a send buffer.
    NoSendBuffer,
}

/// The number of counters.
const STATS: usize = Stat::NoSendBuffer as usize + 1;

/// The counters of a mount, updated from any context.
pub(crate) struct Stats([Atomic<u64>; STATS]);

impl Stats {
    /// Creates the counters, all 0.
    pub(crate) const fn new() -> Self {
        Self([const { Atomic::new(0) }; STATS])
    }

    /// Adds `n` to a counter.
    #[inline]
    pub(crate) fn add(&self, stat: Stat, n: u64) {
        // Most messages have nothing to add to most counters.
        if let (Some(counter), true) = (self.0.get(stat as usize), n != 0) {
            counter.fetch_add(n, Relaxed);
        }
    }

    fn get(&self, stat: Stat) -> u64 {
        self.0
            .get(stat as usize)
            .map_or(0, |counter| counter.load(Relaxed))
    }

    /// Adds the bytes of a Call's pages and tail, which are copied into a Send.
    #[inline]
    pub(crate) fn pulled_up(&self, call: &XdrBuf) {
        let pulled = call.len().saturating_sub(call.head_len());
        self.add(Stat::PullupBytes, pulled as u64);
    }

    /// Prints the line that nfs-utils reads: 27 numbers, in the order of the in-tree module. The
    /// local port, registrations of buffers, recycled and orphaned regions and the last number have
    /// nothing to count here and are 0. The version of the protocol that the connection speaks
    /// follows them, 0 without a connection.
    pub(crate) fn print(&self, xprt: &Xprt, version: u32, seq: &SeqFile) {
        seq_print!(seq, "\txprt:\trdma 0 ");
        xprt.print_counts(seq);
        seq_print!(
            seq,
            "{} {} {} {} {} {} {} 0 {} {} {} ",
            self.get(Stat::ReadSegments),
            self.get(Stat::WriteSegments),
            self.get(Stat::ReplySegments),
            self.get(Stat::OfferedBytes),
            self.get(Stat::WrittenBytes),
            self.get(Stat::PullupBytes),
            self.get(Stat::FixupBytes),
            self.get(Stat::FailedMarshal),
            self.get(Stat::BadReplies),
            self.get(Stat::LongCalls),
        );
        seq_print!(
            seq,
            "0 0 {} {} {} 0 {}\n",
            self.get(Stat::RegionsMade),
            self.get(Stat::LocalInvalidations),
            self.get(Stat::NoSendBuffer),
            version,
        );
    }
}
