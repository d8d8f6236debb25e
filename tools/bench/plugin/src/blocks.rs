// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Which counter is which block's.

use std::collections::HashMap;

/// How many counters there are. A kernel that boots and works executes about 200,000 blocks.
pub(crate) const CAPACITY: usize = 1 << 19;
/// Counts instructions, of all that is executed in user mode.
pub(crate) const USER: usize = 0;
/// Counts instructions, of blocks that came when all counters were taken.
pub(crate) const LOST: usize = 1;
const FIRST: usize = 2;

/// A block of the kernel's code. The same address can begin blocks of several lengths.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Block {
    pub(crate) address: u64,
    /// In instructions.
    pub(crate) length: usize,
}

/// All blocks that were ever translated; a block that is translated again keeps its counter.
pub(crate) struct Blocks {
    slots: HashMap<Block, usize>,
    /// In the order of their counters.
    blocks: Vec<Block>,
}

impl Blocks {
    pub(crate) fn new() -> Self {
        Self {
            slots: HashMap::new(),
            blocks: Vec::new(),
        }
    }

    /// How many counters have a meaning.
    pub(crate) fn used(&self) -> usize {
        FIRST + self.blocks.len()
    }

    /// The counter of a block, and what each execution adds to it.
    pub(crate) fn slot(&mut self, address: u64, length: usize) -> (usize, usize) {
        let block = Block { address, length };
        if let Some(&slot) = self.slots.get(&block) {
            return (slot, 1);
        }
        let slot = self.used();
        if slot >= CAPACITY {
            return (LOST, length);
        }
        self.slots.insert(block, slot);
        self.blocks.push(block);
        (slot, 1)
    }

    /// Whether a block begins there.
    pub(crate) fn begins_at(&self, address: u64) -> bool {
        self.blocks.iter().any(|block| block.address == address)
    }

    /// Each block with its counter's number.
    pub(crate) fn all(&self) -> impl Iterator<Item = (usize, Block)> + '_ {
        self.blocks
            .iter()
            .enumerate()
            .map(|(index, &block)| (FIRST + index, block))
    }
}
