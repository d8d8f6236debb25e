// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! A plugin of QEMU's emulator that counts what a guest executes, between two marks that the
//! measured program sets.
//!
//! For each block of code of the guest's kernel it counts how often it was executed. With the
//! block's length and the kernel's symbols that gives instructions by module and by function, and
//! calls of each function, all of them exact, and without a change to the guest. What the guest
//! does in user mode is one number.
//!
//! At the entry of functions that it is told, those by which a verbs consumer posts work requests
//! and a driver completes them, it also counts by queue pair, walks the chain that is posted, and
//! counts by operation.
//!
//! Arguments: `out=FILE` is where the counts go (see `window.rs` for the format), `control=SOCKET`
//! takes commands (see `control.rs`), `peer=SOCKET` is another plugin's, which is told to begin and
//! to end at the same marks.

mod api;
mod blocks;
mod control;
mod posts;
mod scoreboard;
mod window;

use std::ffi::{c_char, c_int, c_uint, c_void, CStr};
use std::fs::File;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use mark::Mark;

use crate::blocks::{Blocks, CAPACITY, USER};
use crate::posts::{Kind, Posts};
use crate::scoreboard::Scoreboard;
use crate::window::Window;

/// The half of the address space that is the kernel's.
const KERNEL: u64 = 1 << 63;

/// What the plugin holds from its installation to QEMU's end.
struct Plugin {
    scoreboard: Scoreboard,
    counts: Mutex<Counts>,
    peer: Option<String>,
}

/// What translation, execution and the control socket share.
struct Counts {
    blocks: Blocks,
    posts: Posts,
    window: Window,
}

static PLUGIN: OnceLock<Plugin> = OnceLock::new();

impl Plugin {
    fn counts(&self) -> MutexGuard<'_, Counts> {
        // No holder leaves it half changed.
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins or ends a window here, and at the peer, so that the peer's covers this one's.
    fn mark(&self, mark: Mark) {
        if mark == Mark::Begin {
            self.tell_peer(mark);
        }
        self.mark_here(mark);
        if mark == Mark::End {
            self.tell_peer(mark);
        }
    }

    fn mark_here(&self, mark: Mark) {
        let counts = &mut *self.counts();
        if !counts.posts.has_processor() {
            counts.window.complain("a mark before there is a processor");
            return;
        }
        let counters = self.scoreboard.read(counts.blocks.used());
        match mark {
            Mark::Begin => {
                counts.posts.forget();
                counts.window.begin(counters);
            }
            Mark::End => counts.window.end(&counters, &counts.blocks, &counts.posts),
        }
    }

    /// Has calls of a function looked at; not of one whose code was translated before, since that
    /// will not be again.
    fn watch(&self, kind: Kind, name: &str, address: u64) -> Option<()> {
        let counts = &mut *self.counts();
        if counts.blocks.begins_at(address) {
            return None;
        }
        counts.posts.watch(kind, name, address);
        Some(())
    }

    fn tell_peer(&self, mark: Mark) {
        if let Some(peer) = &self.peer {
            if let Err(error) = control::tell(peer, mark) {
                self.counts().window.complain(&format!("{peer}: {error}"));
            }
        }
    }
}

/// The version of QEMU's interface for plugins that `api.rs` declares.
#[no_mangle]
#[allow(non_upper_case_globals)]
pub static qemu_plugin_version: c_int = api::VERSION;

/// Called by QEMU once, before the guest begins. Anything but 0 ends QEMU.
///
/// # Safety
///
/// `info` is valid for the call, and `argv` has `argc` strings.
#[no_mangle]
pub unsafe extern "C" fn qemu_plugin_install(
    id: api::Id,
    info: *const api::Info,
    argc: c_int,
    argv: *const *const c_char,
) -> c_int {
    // SAFETY: the caller's promise.
    let (info, words) = unsafe { (&*info, words(argc, argv)) };
    match install(id, info, &words) {
        Ok(()) => 0,
        Err(why) => {
            eprintln!("counting plugin: {why}");
            1
        }
    }
}

/// The strings of a C program's arguments.
///
/// # Safety
///
/// `argv` has `argc` strings.
unsafe fn words(argc: c_int, argv: *const *const c_char) -> Vec<String> {
    let count = usize::try_from(argc).unwrap_or(0);
    let word = |index| {
        // SAFETY: the caller's promise.
        let word = unsafe { CStr::from_ptr(*argv.add(index)) };
        word.to_string_lossy().into_owned()
    };
    (0..count).map(word).collect()
}

/// `out=`, `control=` and `peer=`.
#[derive(Default)]
struct Arguments {
    out: String,
    control: String,
    peer: Option<String>,
}

impl Arguments {
    fn parse(words: &[String]) -> Result<Self, String> {
        let mut found = Self::default();
        for word in words {
            match word.split_once('=') {
                Some(("out", path)) => found.out = path.into(),
                Some(("control", path)) => found.control = path.into(),
                Some(("peer", path)) => found.peer = Some(path.into()),
                _ => return Err(format!("no such argument: {word}")),
            }
        }
        if found.out.is_empty() || found.control.is_empty() {
            return Err("wants out= and control=".into());
        }
        Ok(found)
    }
}

fn install(id: api::Id, info: &api::Info, words: &[String]) -> Result<(), String> {
    if !info.system_emulation || info.smp_vcpus != 1 {
        return Err("counts a machine with one virtual CPU, and nothing else".into());
    }
    let Arguments { out, control, peer } = Arguments::parse(words)?;
    let file = File::create(&out).map_err(|error| format!("{out}: {error}"))?;
    let counts = Counts {
        blocks: Blocks::new(),
        posts: Posts::new(),
        window: Window::new(Box::new(file)),
    };
    let plugin = Plugin {
        scoreboard: Scoreboard::new(CAPACITY),
        counts: Mutex::new(counts),
        peer,
    };
    PLUGIN.set(plugin).map_err(|_| "is installed already")?;
    control::listen(&control).map_err(|error| format!("{control}: {error}"))?;
    // SAFETY: the functions have the types that the interface wants, and this library stays until
    // QEMU ends.
    unsafe {
        api::qemu_plugin_register_vcpu_init_cb(id, processor_made);
        api::qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    }
    Ok(())
}

/// A processor is there, and so are its registers' names.
extern "C" fn processor_made(_: api::Id, _: c_uint) {
    if let Some(plugin) = PLUGIN.get() {
        let counts = &mut *plugin.counts();
        if !counts.posts.find_registers() {
            counts
                .window
                .complain("the processor has not the registers of arguments");
        }
    }
}

/// QEMU has translated a block of code: have its executions counted, and look for what is special
/// in it.
extern "C" fn translated(_: api::Id, block: *mut api::Block) {
    let Some(plugin) = PLUGIN.get() else { return };
    let counts = &mut *plugin.counts();
    // SAFETY: QEMU's block is valid during this call.
    let (address, length) = unsafe {
        (
            api::qemu_plugin_tb_vaddr(block),
            api::qemu_plugin_tb_n_insns(block),
        )
    };
    let (slot, step) = if address >= KERNEL {
        counts.blocks.slot(address, length)
    } else {
        look_for_marks(block, length);
        (USER, length)
    };
    plugin.scoreboard.add_when_executed(block, slot, step);
    if let Some(watch) = counts.posts.watch_at(address) {
        // SAFETY: QEMU's block is valid during this call, and has at least one instruction. The
        // callback takes the watch's number for a pointer.
        unsafe {
            let first = api::qemu_plugin_tb_get_insn(block, 0);
            let number = watch as *mut c_void;
            api::qemu_plugin_register_vcpu_insn_exec_cb(
                first,
                posted,
                api::READS_REGISTERS,
                number,
            );
        }
    }
}

fn look_for_marks(block: *mut api::Block, length: usize) {
    for index in 0..length {
        // SAFETY: QEMU's block is valid during its translation, and has so many instructions.
        let instruction = unsafe { api::qemu_plugin_tb_get_insn(block, index) };
        if let Some(mark) = read_mark(instruction) {
            let number = mark as usize as *mut c_void;
            // SAFETY: the instruction is of a block that is being translated. The callback takes
            // the mark's number for a pointer.
            unsafe {
                api::qemu_plugin_register_vcpu_insn_exec_cb(
                    instruction,
                    marked,
                    api::NO_REGISTERS,
                    number,
                );
            }
        }
    }
}

/// The mark that an instruction is; valid during its block's translation.
fn read_mark(instruction: *const api::Instruction) -> Option<Mark> {
    let mut bytes = [0u8; mark::SIZE];
    // SAFETY: the caller's instruction is valid, and no more is written than there is room for.
    let size = unsafe {
        if api::qemu_plugin_insn_size(instruction) != bytes.len() {
            return None;
        }
        api::qemu_plugin_insn_data(instruction, bytes.as_mut_ptr().cast(), bytes.len())
    };
    (size == bytes.len()).then(|| Mark::read(bytes)).flatten()
}

/// The guest executes a mark.
extern "C" fn marked(_: c_uint, number: *mut c_void) {
    if let (Some(plugin), Some(mark)) = (PLUGIN.get(), Mark::from_number(number as usize)) {
        plugin.mark(mark);
    }
}

/// The guest is at the entry of a watched function.
extern "C" fn posted(_: c_uint, watch: *mut c_void) {
    if let Some(plugin) = PLUGIN.get() {
        plugin.counts().posts.count(watch as usize);
    }
}
