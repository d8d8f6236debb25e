// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! The plugin between a QEMU that is not one, and a host that asks: blocks are translated and executed as this test wants.
//!
//! What QEMU has behind its interface is here a few vectors. A plugin is installed once a process, so this is one test.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::{c_char, c_int, c_uint, c_void, CString};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::ptr;

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

type Execution = extern "C" fn(c_uint, *mut c_void);

/// A block as QEMU would hand it to a plugin, with what the plugin asked for.
struct Block {
    address: u64,
    instructions: Vec<Instruction>,
    adds: Vec<(usize, u64)>,
}

struct Instruction {
    bytes: Vec<u8>,
    callback: Option<(Execution, *mut c_void)>,
}

thread_local! {
    static TRANSLATED: RefCell<Option<extern "C" fn(u64, *mut Block)>> = const { RefCell::new(None) };
    static MADE: RefCell<Option<extern "C" fn(u64, c_uint)>> = const { RefCell::new(None) };
    static MEMORY: RefCell<HashMap<u64, Vec<u8>>> = RefCell::new(HashMap::new());
    static ARGUMENT: RefCell<u64> = const { RefCell::new(0) };
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
    // SAFETY: the plugin hands back what it was given.
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
    // SAFETY: as above.
    unsafe { (*block).adds.push((counter.offset / 8, operand)) };
}

#[no_mangle]
unsafe extern "C" fn qemu_plugin_tb_n_insns(block: *const Block) -> usize {
    // SAFETY: as above.
    unsafe { &*block }.instructions.len()
}

#[no_mangle]
unsafe extern "C" fn qemu_plugin_tb_vaddr(block: *const Block) -> u64 {
    // SAFETY: as above.
    unsafe { (*block).address }
}

#[no_mangle]
unsafe extern "C" fn qemu_plugin_tb_get_insn(block: *mut Block, index: usize) -> *mut Instruction {
    // SAFETY: as above.
    unsafe { &mut (&mut (*block).instructions)[index] }
}

#[no_mangle]
unsafe extern "C" fn qemu_plugin_insn_data(
    instruction: *const Instruction,
    to: *mut u8,
    length: usize,
) -> usize {
    // SAFETY: as above; the plugin has room for `length` bytes.
    unsafe {
        let bytes = &(*instruction).bytes;
        let length = length.min(bytes.len());
        ptr::copy_nonoverlapping(bytes.as_ptr(), to, length);
        length
    }
}

#[no_mangle]
unsafe extern "C" fn qemu_plugin_insn_size(instruction: *const Instruction) -> usize {
    // SAFETY: as above.
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
    let names = [c"rax", c"rsi"];
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
        len: 2,
    }))
}

#[no_mangle]
unsafe extern "C" fn qemu_plugin_read_register(register: *mut c_void, to: *mut Array<u8>) -> c_int {
    assert_eq!(register as usize, 2, "reads another register than rsi");
    // SAFETY: the plugin's array is one of ours.
    unsafe { fill(to, &ARGUMENT.with_borrow(|value| value.to_le_bytes())) };
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
    // SAFETY: as above.
    unsafe { fill(to, &bytes) };
    true
}

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

fn mark(number: u8) -> Vec<u8> {
    [&[0x0f, 0x1f, 0x84, 0x00, number], &b"RPC"[..]].concat()
}

/// Translates a block of instructions.
fn block(address: u64, instructions: &[&[u8]]) -> Box<Block> {
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

fn execute(block: &Block, times: u64) {
    for _ in 0..times {
        for &(slot, step) in &block.adds {
            // SAFETY: the plugin stays inside of its scoreboard, or this test fails under Miri and the like.
            unsafe { *COUNTERS.add(slot) += step };
        }
        for instruction in &block.instructions {
            if let Some((callback, data)) = instruction.callback {
                callback(0, data);
            }
        }
    }
}

/// A work request that is followed by another one; 0 is none.
fn request(address: u64, next: u64, opcode: u32, flags: u32) {
    let mut bytes = vec![0u8; 40];
    bytes[..8].copy_from_slice(&next.to_le_bytes());
    bytes[28..32].copy_from_slice(&opcode.to_le_bytes());
    bytes[32..36].copy_from_slice(&flags.to_le_bytes());
    MEMORY.with_borrow_mut(|memory| memory.insert(address, bytes));
}

fn ask(path: &str, command: &str) -> String {
    let mut stream = UnixStream::connect(path).unwrap();
    writeln!(stream, "{command}").unwrap();
    let mut answer = String::new();
    BufReader::new(&stream).read_line(&mut answer).unwrap();
    answer.trim().to_string()
}

fn install(words: &[String], processors: c_int) -> c_int {
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
    // SAFETY: what is handed over lives longer than the call, and is laid out as QEMU's header has it.
    unsafe {
        counting::qemu_plugin_install(
            1,
            ptr::from_ref(&info).cast(),
            argv.len() as c_int,
            argv.as_ptr(),
        )
    }
}

#[test]
fn counts_what_is_executed_between_the_marks() {
    let directory = std::env::temp_dir().join(format!("counting-{}", std::process::id()));
    fs::create_dir_all(&directory).unwrap();
    let path = |name: &str| directory.join(name).to_str().unwrap().to_string();
    let (out, control) = (path("counts"), path("control"));
    let words = [format!("out={out}"), format!("control={control}")];

    assert_ne!(
        install(&words[..1], 1),
        0,
        "installs without a control socket"
    );
    assert_ne!(install(&words, 2), 0, "installs for two processors");
    assert_eq!(install(&words, 1), 0);
    MADE.with_borrow(|callback| callback.unwrap())(1, 0);

    assert_eq!(
        ask(&control, "watch send device_post_send ffffffffc0001000"),
        "ok"
    );
    assert_eq!(
        ask(&control, "watch receive device_post_recv ffffffffc0002000"),
        "ok"
    );
    assert_eq!(ask(&control, "watch other x 0"), "error");

    let nop = [0x90u8];
    let plain = block(0xffff_ffff_8100_0000, &[&nop, &nop, &nop]);
    let shorter = block(0xffff_ffff_8100_0000, &[&nop]);
    let user = block(0x40_0000, &[&nop, &nop]);
    let begin = block(0x40_1000, &[&nop, &mark(1)]);
    let end = block(0x40_2000, &[&mark(2), &nop]);
    let post_send = block(0xffff_ffff_c000_1000, &[&nop, &nop]);
    let post_receive = block(0xffff_ffff_c000_2000, &[&nop]);
    // A mark counts in user mode alone; and a compiler's own padding is none.
    let kernel_mark = block(0xffff_ffff_8100_1000, &[&mark(1)]);
    let padding = block(0x40_3000, &[&[0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0]]);

    execute(&plain, 7);
    execute(&begin, 1);
    execute(&plain, 5);
    execute(&shorter, 2);
    execute(&user, 10);
    execute(&kernel_mark, 1);
    execute(&padding, 1);
    // RegMR, then a Send that is signaled.
    request(0x1000, 0x2000, 0x20, 0);
    request(0x2000, 0, 2, 2);
    ARGUMENT.set(0x1000);
    execute(&post_send, 3);
    execute(&post_receive, 1);
    ARGUMENT.set(0xdead);
    execute(&post_send, 1);
    let again = block(0xffff_ffff_8100_0000, &[&nop, &nop, &nop]);
    execute(&again, 1);
    execute(&end, 1);
    execute(&plain, 100);

    let text = fs::read_to_string(&out).unwrap();
    let lines: Vec<_> = text.lines().collect();
    // Of the block with a mark, all of the last is counted, and nothing of the first.
    assert_eq!(
        lines,
        [
            "window 1",
            "user 23",
            "lost 0",
            "unreadable 1",
            "calls device_post_recv 1",
            "calls device_post_send 4",
            "posted device_post_recv - 1 2",
            "posted device_post_send 2 1 3",
            "posted device_post_send 32 0 3",
            "block ffffffff81000000 3 6",
            "block ffffffff81000000 1 2",
            "block ffffffffc0001000 2 4",
            "block ffffffffc0002000 1 1",
            "block ffffffff81001000 1 1",
            "end 1",
        ]
    );

    assert_eq!(ask(&control, "begin"), "ok");
    execute(&user, 1);
    assert_eq!(ask(&control, "end"), "ok");
    assert_eq!(ask(&control, "end"), "ok");
    let text = fs::read_to_string(&out).unwrap();
    let last: Vec<_> = text.lines().skip(lines.len()).collect();
    assert_eq!(
        last,
        [
            "window 2",
            "user 2",
            "lost 0",
            "unreadable 0",
            "end 2",
            "error a window ends that did not begin"
        ]
    );
    fs::remove_dir_all(&directory).unwrap();
}
