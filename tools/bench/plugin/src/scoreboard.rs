// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! The counters, which QEMU's generated code adds to without a call.

use crate::api;

/// So many counters of 64 bits, of the only processor.
pub(crate) struct Scoreboard {
    score: *mut api::Score,
}

// SAFETY: the pointer names QEMU's object, which lives as long as QEMU, and whose functions any
// thread may call.
unsafe impl Send for Scoreboard {}
// SAFETY: QEMU finds a counter for any thread. Counters are words that generated code alone writes,
// and that are read whole.
unsafe impl Sync for Scoreboard {}

impl Scoreboard {
    pub(crate) fn new(counters: usize) -> Self {
        // SAFETY: QEMU allocates and clears it.
        let score = unsafe { api::qemu_plugin_scoreboard_new(counters * size_of::<u64>()) };
        Self { score }
    }

    /// From now on each execution of a block adds `step` to a counter.
    pub(crate) fn add_when_executed(&self, block: *mut api::Block, slot: usize, step: usize) {
        let counter = api::Counter {
            score: self.score,
            offset: slot * size_of::<u64>(),
        };
        // SAFETY: called during the block's translation; the counter is inside of the scoreboard's
        // element.
        unsafe {
            api::qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu(
                block,
                api::ADD,
                counter,
                step as u64,
            );
        }
    }

    /// The first so many counters. There has to be a processor.
    pub(crate) fn read(&self, count: usize) -> Vec<u64> {
        // SAFETY: the caller has made sure of the processor, so it has its element of the
        // scoreboard.
        let first = unsafe { api::qemu_plugin_scoreboard_find(self.score, 0) }.cast::<u64>();
        let counter = |index| {
            // SAFETY: `count` is at most the number of counters. A processor that runs meanwhile
            // only adds.
            unsafe { first.add(index).read_volatile() }
        };
        (0..count).map(counter).collect()
    }
}
