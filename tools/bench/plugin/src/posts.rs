// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! What comes to the functions of a verbs driver, by queue pair: calls, and the work requests that
//! are posted.
//!
//! The first argument of `post_send` and `post_recv` is the queue pair, the second the first of a
//! chain of work requests, as `include/rdma/ib_verbs.h` of the kernel has it.

use std::collections::{BTreeMap, HashMap};
use std::ffi::CStr;

use crate::api;

/// Where things are in `struct ib_send_wr`; `next` is the first in `struct ib_recv_wr`, too.
const NEXT: u64 = 0;
const OPCODE: u64 = 28;
const SEND_FLAGS: u64 = 32;
const SIGNALED: u32 = 1 << 1;
/// Where `struct ib_wc` has its queue pair.
const QUEUE_PAIR: u64 = 24;
/// A chain as long as this is no chain.
const LONGEST: usize = 4096;
/// The registers of the first two arguments.
const ARGUMENTS: [&CStr; 2] = [c"rdi", c"rsi"];

/// What the arguments of a watched function are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// A queue pair and a chain that is to be sent.
    Send,
    /// A queue pair and a chain of Receives.
    Receive,
    /// Something else and a work completion.
    Completion,
    /// A queue pair and something else.
    Queue,
}

impl Kind {
    /// As the control socket has it.
    pub(crate) fn from_word(word: &str) -> Option<Self> {
        match word {
            "send" => Some(Self::Send),
            "receive" => Some(Self::Receive),
            "completion" => Some(Self::Completion),
            "queue" => Some(Self::Queue),
            _ => None,
        }
    }
}

/// A watched function.
struct Watch {
    name: String,
    kind: Kind,
}

/// What was posted: by which function, with which operation (none for Receives), and whether it is
/// signaled.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Posted {
    pub(crate) function: String,
    pub(crate) opcode: Option<u32>,
    pub(crate) signaled: bool,
}

/// The watched functions, and what came to them since the window began.
pub(crate) struct Posts {
    watches: Vec<Watch>,
    by_address: HashMap<u64, usize>,
    arguments: Option<[RegisterHandle; 2]>,
    /// By function and queue pair.
    calls: BTreeMap<(String, u64), u64>,
    requests: BTreeMap<Posted, u64>,
    unreadable: u64,
}

struct RegisterHandle(*mut api::Register);

// SAFETY: a handle is a number that QEMU gives out, not memory.
unsafe impl Send for RegisterHandle {}

impl Posts {
    pub(crate) fn new() -> Self {
        Self {
            watches: Vec::new(),
            by_address: HashMap::new(),
            arguments: None,
            calls: BTreeMap::new(),
            requests: BTreeMap::new(),
            unreadable: 0,
        }
    }

    /// Watches a function, which must not have been translated yet.
    pub(crate) fn watch(&mut self, kind: Kind, name: &str, address: u64) {
        self.by_address.insert(address, self.watches.len());
        self.watches.push(Watch {
            name: name.into(),
            kind,
        });
    }

    /// The watch on the function that begins there.
    pub(crate) fn watch_at(&self, address: u64) -> Option<usize> {
        self.by_address.get(&address).copied()
    }

    /// A window begins.
    pub(crate) fn forget(&mut self) {
        self.calls.clear();
        self.requests.clear();
        self.unreadable = 0;
    }

    /// Calls by function and queue pair.
    pub(crate) fn calls(&self) -> impl Iterator<Item = (&(String, u64), u64)> {
        self.calls.iter().map(|(call, &count)| (call, count))
    }

    pub(crate) fn requests(&self) -> impl Iterator<Item = (&Posted, u64)> {
        self.requests.iter().map(|(posted, &count)| (posted, count))
    }

    /// Calls whose arguments could not be read.
    pub(crate) fn unreadable(&self) -> u64 {
        self.unreadable
    }

    /// Looks up the registers, and says whether they are there; called for a processor, by its
    /// thread.
    pub(crate) fn find_registers(&mut self) -> bool {
        // SAFETY: QEMU calls this for a processor. The array is ours, with so many descriptors of
        // strings that stay.
        unsafe {
            let array = api::qemu_plugin_get_registers();
            let all = std::slice::from_raw_parts((*array).data, (*array).len as usize);
            let find = |name| {
                all.iter()
                    .find(|one| CStr::from_ptr(one.name) == name)
                    .map(|one| RegisterHandle(one.handle))
            };
            self.arguments = match ARGUMENTS.map(find) {
                [Some(first), Some(second)] => Some([first, second]),
                _ => None,
            };
            api::g_array_free(array, 1);
        }
        self.arguments.is_some()
    }

    /// Whether there is a processor whose registers are known.
    pub(crate) fn has_processor(&self) -> bool {
        self.arguments.is_some()
    }

    /// The guest is at the entry of a watched function; called by the processor's thread.
    pub(crate) fn count(&mut self, watch: usize) {
        let Some(Watch { name, kind }) = self.watches.get(watch) else {
            return;
        };
        let (name, kind) = (name.clone(), *kind);
        if self.note(name, kind).is_none() {
            self.unreadable += 1;
        }
    }

    fn note(&mut self, name: String, kind: Kind) -> Option<()> {
        let [first, second] = self.arguments.as_ref()?;
        let (first, second) = (value(first)?, value(second)?);
        let queue_pair = match kind {
            Kind::Completion => u64::from_le_bytes(memory(second.checked_add(QUEUE_PAIR)?)?),
            Kind::Send | Kind::Receive | Kind::Queue => first,
        };
        *self.calls.entry((name.clone(), queue_pair)).or_default() += 1;
        match kind {
            Kind::Send | Kind::Receive => self.walk(&name, kind, second),
            Kind::Completion | Kind::Queue => Some(()),
        }
    }

    fn walk(&mut self, name: &str, kind: Kind, mut request: u64) -> Option<()> {
        for _ in 0..LONGEST {
            if request == 0 {
                return Some(());
            }
            let (opcode, signaled) = if kind == Kind::Send {
                let flags = u32::from_le_bytes(memory(request.checked_add(SEND_FLAGS)?)?);
                let opcode = u32::from_le_bytes(memory(request.checked_add(OPCODE)?)?);
                (Some(opcode), flags & SIGNALED != 0)
            } else {
                (None, true)
            };
            *self
                .requests
                .entry(Posted {
                    function: name.into(),
                    opcode,
                    signaled,
                })
                .or_default() += 1;
            request = u64::from_le_bytes(memory(request.checked_add(NEXT)?)?);
        }
        None
    }
}

/// What a register holds.
fn value(RegisterHandle(register): &RegisterHandle) -> Option<u64> {
    // SAFETY: the handle is QEMU's, and this is the processor's thread; QEMU appends the value to
    // the array.
    bytes(|array| unsafe { api::qemu_plugin_read_register(*register, array) > 0 })
        .map(u64::from_le_bytes)
}

/// So many bytes of the guest's memory, at an address of the code that runs.
fn memory<const N: usize>(address: u64) -> Option<[u8; N]> {
    // SAFETY: this is the processor's thread; QEMU makes the array as long as it is asked to.
    bytes(|array| unsafe { api::qemu_plugin_read_memory_vaddr(address, array, N) })
}

/// What a function of QEMU puts into an array of GLib's.
fn bytes<const N: usize>(fill: impl FnOnce(*mut api::Array<u8>) -> bool) -> Option<[u8; N]> {
    // SAFETY: the array is made and freed here, and has `len` bytes in between.
    unsafe {
        let array = api::g_byte_array_new();
        let filled = fill(array) && (*array).len as usize == N;
        let found = if filled {
            std::slice::from_raw_parts((*array).data, N).try_into().ok()
        } else {
            None
        };
        api::g_byte_array_free(array, 1);
        found
    }
}
