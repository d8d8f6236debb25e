// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! What this plugin uses of QEMU's interface for plugins, version 4 (QEMU 9.2 and 10.0), and of
//! GLib, which QEMU is linked with. The crates that have all of it need a newer compiler than the
//! tool root's.

use std::ffi::{c_char, c_int, c_uint, c_void};

pub(crate) const VERSION: c_int = 4;
/// A callback that reads no register, and one that does.
pub(crate) const NO_REGISTERS: c_int = 0;
pub(crate) const READS_REGISTERS: c_int = 1;
/// The operation that adds.
pub(crate) const ADD: c_int = 0;

pub(crate) type Id = u64;

/// What QEMU tells at installation.
#[repr(C)]
pub struct Info {
    pub target_name: *const c_char,
    pub version_min: c_int,
    pub version_cur: c_int,
    pub system_emulation: bool,
    pub smp_vcpus: c_int,
    pub max_vcpus: c_int,
}

#[repr(C)]
pub(crate) struct Block {
    _opaque: [u8; 0],
}

#[repr(C)]
pub(crate) struct Instruction {
    _opaque: [u8; 0],
}

#[repr(C)]
pub(crate) struct Score {
    _opaque: [u8; 0],
}

/// A counter: a place in each processor's element of a scoreboard.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Counter {
    pub score: *mut Score,
    pub offset: usize,
}

#[repr(C)]
pub(crate) struct Register {
    _opaque: [u8; 0],
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct RegisterDescriptor {
    pub handle: *mut Register,
    pub name: *const c_char,
    pub feature: *const c_char,
}

/// GArray and GByteArray of GLib.
#[repr(C)]
pub(crate) struct Array<T> {
    pub data: *mut T,
    pub len: c_uint,
}

pub(crate) type SimpleCallback = extern "C" fn(Id, c_uint);
pub(crate) type TranslationCallback = extern "C" fn(Id, *mut Block);
pub(crate) type ExecutionCallback = extern "C" fn(c_uint, *mut c_void);

extern "C" {
    pub(crate) fn qemu_plugin_register_vcpu_init_cb(id: Id, callback: SimpleCallback);
    pub(crate) fn qemu_plugin_register_vcpu_tb_trans_cb(id: Id, callback: TranslationCallback);
    pub(crate) fn qemu_plugin_register_vcpu_insn_exec_cb(
        instruction: *mut Instruction,
        callback: ExecutionCallback,
        flags: c_int,
        data: *mut c_void,
    );
    pub(crate) fn qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu(
        block: *mut Block,
        operation: c_int,
        counter: Counter,
        operand: u64,
    );
    pub(crate) fn qemu_plugin_tb_n_insns(block: *const Block) -> usize;
    pub(crate) fn qemu_plugin_tb_vaddr(block: *const Block) -> u64;
    pub(crate) fn qemu_plugin_tb_get_insn(block: *const Block, index: usize) -> *mut Instruction;
    pub(crate) fn qemu_plugin_insn_data(
        instruction: *const Instruction,
        to: *mut c_void,
        length: usize,
    ) -> usize;
    pub(crate) fn qemu_plugin_insn_size(instruction: *const Instruction) -> usize;
    pub(crate) fn qemu_plugin_scoreboard_new(element: usize) -> *mut Score;
    pub(crate) fn qemu_plugin_scoreboard_find(score: *mut Score, processor: c_uint) -> *mut c_void;
    pub(crate) fn qemu_plugin_get_registers() -> *mut Array<RegisterDescriptor>;
    pub(crate) fn qemu_plugin_read_register(register: *mut Register, to: *mut Array<u8>) -> c_int;
    pub(crate) fn qemu_plugin_read_memory_vaddr(
        address: u64,
        to: *mut Array<u8>,
        length: usize,
    ) -> bool;

    pub(crate) fn g_byte_array_new() -> *mut Array<u8>;
    pub(crate) fn g_byte_array_free(array: *mut Array<u8>, with_data: c_int) -> *mut u8;
    pub(crate) fn g_array_free(
        array: *mut Array<RegisterDescriptor>,
        with_data: c_int,
    ) -> *mut c_char;
}
