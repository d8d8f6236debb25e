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

/// A counter that many may add to.
pub(crate) struct Counter(Atomic<u64>);

impl Counter {
    const fn new() -> Self {
        Self(Atomic::new(0))
    }

    /// Adds `n`.
    #[inline]
    pub(crate) fn add(&self, n: u64) {
        // Most messages have nothing to add to most counters.
        if n != 0 {
            self.0.fetch_add(n, Relaxed);
        }
    }

    fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// What is counted of a mount.
pub(crate) struct Stats {
    /// Segments of Read chunks sent.
    pub(crate) read_segments: Counter,
    /// Segments of Write chunks sent.
    pub(crate) write_segments: Counter,
    /// Segments of Reply chunks sent.
    pub(crate) reply_segments: Counter,
    /// Bytes that servers might have written into chunks.
    pub(crate) offered_bytes: Counter,
    /// Bytes that servers have written into chunks.
    pub(crate) written_bytes: Counter,
    /// Bytes of pages and tails copied into Sends.
    pub(crate) pullup_bytes: Counter,
    /// Bytes copied from Receives into pages and tails.
    pub(crate) fixup_bytes: Counter,
    /// Calls that could not be encoded.
    pub(crate) failed_marshal: Counter,
    /// Replies that were not well formed.
    pub(crate) bad_replies: Counter,
    /// Calls sent through a Position Zero Read chunk.
    pub(crate) long_calls: Counter,
    /// Regions made.
    pub(crate) regions_made: Counter,
    /// RPCs whose regions had to be invalidated by us.
    pub(crate) local_invalidations: Counter,
    /// Calls that had to wait for a send buffer.
    pub(crate) no_send_buffer: Counter,
}

impl Stats {
    /// A Call is copied into a Send.
    #[inline]
    pub(crate) fn pulled_up(&self, call: &XdrBuf) {
        let pulled = call.len().saturating_sub(call.head_len());
        self.pullup_bytes.add(pulled as u64);
    }

    pub(crate) const fn new() -> Self {
        Self {
            read_segments: Counter::new(),
            write_segments: Counter::new(),
            reply_segments: Counter::new(),
            offered_bytes: Counter::new(),
            written_bytes: Counter::new(),
            pullup_bytes: Counter::new(),
            fixup_bytes: Counter::new(),
            failed_marshal: Counter::new(),
            bad_replies: Counter::new(),
            long_calls: Counter::new(),
            regions_made: Counter::new(),
            local_invalidations: Counter::new(),
            no_send_buffer: Counter::new(),
        }
    }

    /// Prints the line that nfs-utils reads: 27 numbers, in the order of the in-tree module. The
    /// local port, registrations of buffers, recycled and orphaned regions and the last number
    /// have nothing to count here and are 0.
    pub(crate) fn print(&self, xprt: &Xprt, seq: &SeqFile) {
        seq_print!(seq, "\txprt:\trdma 0 ");
        xprt.print_counts(seq);
        seq_print!(
            seq,
            "{} {} {} {} {} {} {} 0 {} {} {} ",
            self.read_segments.get(),
            self.write_segments.get(),
            self.reply_segments.get(),
            self.offered_bytes.get(),
            self.written_bytes.get(),
            self.pullup_bytes.get(),
            self.fixup_bytes.get(),
            self.failed_marshal.get(),
            self.bad_replies.get(),
            self.long_calls.get(),
        );
        seq_print!(
            seq,
            "0 0 {} {} {} 0\n",
            self.regions_made.get(),
            self.local_invalidations.get(),
            self.no_send_buffer.get(),
        );
    }
}
