// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! The marks: an instruction that does nothing, with a number in it that no compiler writes.

use crate::api;

/// `nopl disp32(%rax,%rax,1)`, whose displacement is the number of the mark and then these three bytes.
const OPCODE: [u8; 4] = [0x0f, 0x1f, 0x84, 0x00];
const SIGNATURE: [u8; 3] = *b"RPC";
const SIZE: usize = 8;

/// What the measured program says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mark {
    Begin = 1,
    End = 2,
}

impl Mark {
    pub(crate) fn from_number(number: usize) -> Option<Self> {
        match number {
            1 => Some(Self::Begin),
            2 => Some(Self::End),
            _ => None,
        }
    }

    /// As the control socket has it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Begin => "begin",
            Self::End => "end",
        }
    }
}

/// The mark that an instruction is; valid during its block's translation.
pub(crate) fn read(instruction: *const api::Instruction) -> Option<Mark> {
    let mut bytes = [0u8; SIZE];
    // SAFETY: the caller's instruction is valid, and no more is written than there is room for.
    let size = unsafe {
        if api::qemu_plugin_insn_size(instruction) != SIZE {
            return None;
        }
        api::qemu_plugin_insn_data(instruction, bytes.as_mut_ptr().cast(), SIZE)
    };
    let [a, b, c, d, number, signature @ ..] = bytes;
    let is_mark = size == SIZE && [a, b, c, d] == OPCODE && signature == SIGNATURE;
    is_mark.then(|| Mark::from_number(number.into())).flatten()
}
