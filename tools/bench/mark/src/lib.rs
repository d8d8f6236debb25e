// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! The marks between which the plugin counts: an instruction that does nothing, with a number in it
//! that no compiler writes. The measured program executes it, and the plugin knows it by its bytes.

use std::arch::asm;

/// How long the instruction is, in bytes.
pub const SIZE: usize = 8;
/// `nopl disp32(%rax,%rax,1)`, whose displacement is the number of the mark and then these three
/// bytes.
const OPCODE: [u8; 4] = [0x0f, 0x1f, 0x84, 0x00];
const SIGNATURE: [u8; 3] = *b"RPC";

macro_rules! execute {
    ($mark:expr) => {
        // SAFETY: the instruction does nothing.
        unsafe {
            asm!(
                ".byte 0x0f, 0x1f, 0x84, 0x00, {number}, 0x52, 0x50, 0x43",
                number = const $mark as u8,
                options(nostack, preserves_flags)
            )
        }
    };
}

/// What the measured program says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mark {
    Begin = 1,
    End = 2,
}

impl Mark {
    /// Executes the mark's instruction.
    #[inline(always)]
    pub fn set(self) {
        match self {
            Self::Begin => execute!(Mark::Begin),
            Self::End => execute!(Mark::End),
        }
    }

    /// The mark that an instruction of these bytes is.
    pub fn read(instruction: [u8; SIZE]) -> Option<Self> {
        let [a, b, c, d, number, signature @ ..] = instruction;
        let is_mark = [a, b, c, d] == OPCODE && signature == SIGNATURE;
        is_mark.then(|| Self::from_number(number.into())).flatten()
    }

    /// The mark of a number.
    pub fn from_number(number: usize) -> Option<Self> {
        match number {
            1 => Some(Self::Begin),
            2 => Some(Self::End),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[inline(never)]
    extern "C" fn ends() {
        Mark::End.set();
    }

    #[test]
    fn what_is_executed_is_what_is_read() {
        ends();
        // SAFETY: the test's code is longer than this, and can be read.
        let code: [u8; 64] = unsafe { *(ends as *const [u8; 64]) };
        assert!(code
            .windows(SIZE)
            .any(|bytes| Mark::read(bytes.try_into().unwrap()) == Some(Mark::End)));
    }

    #[test]
    fn bytes_of_a_mark() {
        assert_eq!(Mark::read(*b"\x0f\x1f\x84\0\x01RPC"), Some(Mark::Begin));
    }

    #[test]
    fn padding_is_no_mark() {
        assert_eq!(Mark::read([0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0]), None);
        assert_eq!(Mark::read(*b"\x0f\x1f\x84\0\x03RPC"), None);
    }
}
