// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! A QEMU that is not one. What it has behind its interface for plugins is here a few vectors.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ffi::{c_char, c_int, c_uint, c_void, CString};
use std::ptr;

/// What QEMU tells at installation.
#[repr(C)]
struct Info {
    target_name: *const c_char,
    version_min: c_int,
    version_cur: c_int,
    system_emulation: bool,
    smp_vcpus: c_int,
    max_vcpus: c_int,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Counter {
    score: *mut u64,
    offset: usize,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct RegisterDescriptor {
    handle: *mut c_void,
    name: *const c_char,
    feature: *const c_char,
}

#[repr(C)]
struct Array<T> {
    data: *mut T,
    len: c_uint,
}

pub(crate) type Execution = extern "C" fn(c_uint, *mut c_void);

/// A block as QEMU would hand it to a plugin, with what the plugin asked for.
pub(crate) struct Block {
    address: u64,
    instructions: Vec<Instruction>,
    adds: Vec<(usize, u64)>,
}

pub(crate) struct Instruction {
    bytes: Vec<u8>,
    callback: Option<(Execution, *mut c_void)>,
}

thread_local! {
    static TRANSLATED: RefCell<Option<extern "C" fn(u64, *mut Block)>> = const { RefCell::new(None) };
    static MADE: RefCell<Option<extern "C" fn(u64, c_uint)>> = const { RefCell::new(None) };
    static MEMORY: RefCell<HashMap<u64, Vec<u8>>> = RefCell::new(HashMap::new());
    static ARGUMENTS: Cell<[u64; 2]> = const { Cell::new([0; 2]) };
}
static mut COUNTERS: *mut u64 = ptr::null_mut();

#[no_mangle]
extern "C" fn qemu_plugin_register_vcpu_init_cb(_: u64, callback: extern "C" fn(u64, c_uint)) {
    MADE.set(Some(callback));
}

#[no_mangle]
extern "C" fn qemu_plugin_register_vcpu_tb_trans_cb(
    _: u64,
    callback: extern "C" fn(u64, *mut Block),
) {
    TRANSLATED.set(Some(callback));
}

#[no_mangle]
unsafe extern "C" fn qemu_plugin_register_vcpu_insn_exec_cb(
    instruction: *mut Instruction,
    callback: Execution,
    _: c_int,
    data: *mut c_void,
) {
    // SAFETY: the plugin hands back an instruction that it was given.
    unsafe { (*instruction).callback = Some((callback, data)) };
}

#[no_mangle]
unsafe extern "C" fn qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu(
    block: *mut Block,
    operation: c_int,
    counter: Counter,
    operand: u64,
) {
    assert_eq!(operation, 0);
    // SAFETY: the plugin hands back a block that it was given.
    unsafe { (*block).adds.push((counter.offset / 8, operand)) };
}

#[no_mangle]
unsafe extern "C" fn qemu_plugin_tb_n_insns(block: *const Block) -> usize {
    // SAFETY: the plugin hands back a block that it was given.
    unsafe { &*block }.instructions.len()
}

#[no_mangle]
unsafe extern "C" fn qemu_plugin_tb_vaddr(block: *const Block) -> u64 {
    // SAFETY: the plugin hands back a block that it was given.
    unsafe { (*block).address }
}

#[no_mangle]
unsafe extern "C" fn qemu_plugin_tb_get_insn(block: *mut Block, index: usize) -> *mut Instruction {
    // SAFETY: the plugin hands back a block that it was given.
    unsafe { &mut (&mut (*block).instructions)[index] }
}

#[no_mangle]
unsafe extern "C" fn qemu_plugin_insn_data(
    instruction: *const Instruction,
    to: *mut u8,
    length: usize,
) -> usize {
    // SAFETY: the plugin hands back an instruction that it was given, and has room for `length`
    // bytes.
    unsafe {
        let bytes = &(*instruction).bytes;
        let length = length.min(bytes.len());
        ptr::copy_nonoverlapping(bytes.as_ptr(), to, length);
        length
    }
}

#[no_mangle]
unsafe extern "C" fn qemu_plugin_insn_size(instruction: *const Instruction) -> usize {
    // SAFETY: the plugin hands back an instruction that it was given.
    unsafe { &*instruction }.bytes.len()
}

#[no_mangle]
extern "C" fn qemu_plugin_scoreboard_new(element: usize) -> *mut u64 {
    let counters = Box::leak(vec![0u64; element / 8].into_boxed_slice()).as_mut_ptr();
    // SAFETY: this test has one thread that counts.
    unsafe { COUNTERS = counters };
    counters
}

#[no_mangle]
extern "C" fn qemu_plugin_scoreboard_find(score: *mut u64, processor: c_uint) -> *mut u64 {
    assert_eq!(processor, 0);
    score
}

#[no_mangle]
extern "C" fn qemu_plugin_get_registers() -> *mut Array<RegisterDescriptor> {
    let names = [c"rax", c"rdi", c"rsi"];
    let all: Vec<_> = names
        .iter()
        .enumerate()
        .map(|(index, name)| RegisterDescriptor {
            handle: (index + 1) as *mut c_void,
            name: name.as_ptr(),
            feature: ptr::null(),
        })
        .collect();
    let all = Box::leak(all.into_boxed_slice());
    Box::into_raw(Box::new(Array {
        data: all.as_mut_ptr(),
        len: names.len() as c_uint,
    }))
}

#[no_mangle]
unsafe extern "C" fn qemu_plugin_read_register(register: *mut c_void, to: *mut Array<u8>) -> c_int {
    let argument = (register as usize)
        .checked_sub(2)
        .expect("reads another register than those of arguments");
    // SAFETY: the plugin's array is one of ours.
    unsafe { fill(to, &ARGUMENTS.get()[argument].to_le_bytes()) };
    8
}

#[no_mangle]
unsafe extern "C" fn qemu_plugin_read_memory_vaddr(
    address: u64,
    to: *mut Array<u8>,
    length: usize,
) -> bool {
    let found = MEMORY.with_borrow(|memory| {
        let (start, bytes) = memory.iter().find(|(&start, bytes)| {
            start <= address && address + length as u64 <= start + bytes.len() as u64
        })?;
        let offset = (address - start) as usize;
        Some(bytes[offset..offset + length].to_vec())
    });
    let Some(bytes) = found else { return false };
    // SAFETY: the plugin's array is one of ours.
    unsafe { fill(to, &bytes) };
    true
}

/// Puts bytes into an array.
///
/// # Safety
///
/// It is one of `g_byte_array_new`.
unsafe fn fill(to: *mut Array<u8>, bytes: &[u8]) {
    // SAFETY: the caller's promise.
    unsafe {
        (*to).data = Box::leak(bytes.to_vec().into_boxed_slice()).as_mut_ptr();
        (*to).len = bytes.len() as c_uint;
    }
}

#[no_mangle]
extern "C" fn g_byte_array_new() -> *mut Array<u8> {
    Box::into_raw(Box::new(Array {
        data: ptr::null_mut(),
        len: 0,
    }))
}

#[no_mangle]
unsafe extern "C" fn g_byte_array_free(array: *mut Array<u8>, _: c_int) -> *mut u8 {
    // SAFETY: it is one of ours.
    drop(unsafe { Box::from_raw(array) });
    ptr::null_mut()
}

#[no_mangle]
unsafe extern "C" fn g_array_free(array: *mut Array<RegisterDescriptor>, _: c_int) -> *mut c_char {
    // SAFETY: it is one of ours.
    drop(unsafe { Box::from_raw(array) });
    ptr::null_mut()
}

/// A processor is there.
pub(crate) fn make_processor() {
    MADE.with_borrow(|callback| callback.expect("wants to see processors"))(1, 0);
}

/// What the next functions are called with.
pub(crate) fn set_arguments(arguments: [u64; 2]) {
    ARGUMENTS.set(arguments);
}

/// Translates a block of instructions.
pub(crate) fn block(address: u64, instructions: &[&[u8]]) -> Box<Block> {
    let instructions = instructions
        .iter()
        .map(|bytes| Instruction {
            bytes: bytes.to_vec(),
            callback: None,
        })
        .collect();
    let mut block = Box::new(Block {
        address,
        instructions,
        adds: Vec::new(),
    });
    let translated =
        TRANSLATED.with_borrow(|callback| callback.expect("wants to see translations"));
    translated(1, &mut *block);
    block
}

/// Executes a block so often.
pub(crate) fn execute(block: &Block, times: u64) {
    for _ in 0..times {
        for &(slot, step) in &block.adds {
            // SAFETY: the plugin stays inside of its scoreboard, or this test fails under Miri and
            // the like.
            unsafe { *COUNTERS.add(slot) += step };
        }
        for instruction in &block.instructions {
            if let Some((callback, data)) = instruction.callback {
                callback(0, data);
            }
        }
    }
}

/// A work completion of a queue pair.
pub(crate) fn completion(address: u64, queue_pair: u64) {
    let mut bytes = vec![0u8; 64];
    bytes[24..32].copy_from_slice(&queue_pair.to_le_bytes());
    MEMORY.with_borrow_mut(|memory| memory.insert(address, bytes));
}

/// A work request that is followed by another one; 0 is none.
pub(crate) fn request(address: u64, next: u64, opcode: u32, flags: u32) {
    let mut bytes = vec![0u8; 40];
    bytes[..8].copy_from_slice(&next.to_le_bytes());
    bytes[28..32].copy_from_slice(&opcode.to_le_bytes());
    bytes[32..36].copy_from_slice(&flags.to_le_bytes());
    MEMORY.with_borrow_mut(|memory| memory.insert(address, bytes));
}

/// Installs the plugin; 0 if it is content.
pub(crate) fn install(words: &[String], processors: c_int) -> c_int {
    let words: Vec<_> = words
        .iter()
        .map(|word| CString::new(word.as_str()).unwrap())
        .collect();
    let argv: Vec<_> = words.iter().map(|word| word.as_ptr()).collect();
    let info = Info {
        target_name: c"x86_64".as_ptr(),
        version_min: 2,
        version_cur: 4,
        system_emulation: true,
        smp_vcpus: processors,
        max_vcpus: processors,
    };
    // SAFETY: what is handed over lives longer than the call, and is laid out as QEMU's header has
    // it.
    unsafe {
        counting::qemu_plugin_install(
            1,
            ptr::from_ref(&info).cast(),
            argv.len() as c_int,
            argv.as_ptr(),
        )
    }
}
