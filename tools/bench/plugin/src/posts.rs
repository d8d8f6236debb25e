// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! The work requests that a guest's kernel posts: at the entry of a verbs driver's `post_send` and `post_recv` the
//! second argument is the first of a chain, as `include/rdma/ib_verbs.h` of the kernel has it.

use std::collections::{BTreeMap, HashMap};
use std::ffi::CStr;

use crate::api;

/// Where things are in `struct ib_send_wr`; `next` is the first in `struct ib_recv_wr`, too.
const NEXT: u64 = 0;
const OPCODE: u64 = 28;
const SEND_FLAGS: u64 = 32;
const SIGNALED: u32 = 1 << 1;
/// A chain as long as this is no chain.
const LONGEST: usize = 4096;
/// The register of the second argument.
const SECOND_ARGUMENT: &CStr = c"rsi";

/// What kind of chain a watched function is given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Send,
    Receive,
}

/// A watched function.
struct Watch {
    name: String,
    kind: Kind,
}

/// What was posted: by which function, with which operation (none for Receives), and whether it is signaled.
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
    argument: Option<RegisterHandle>,
    calls: BTreeMap<String, u64>,
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
            argument: None,
            calls: BTreeMap::new(),
            requests: BTreeMap::new(),
            unreadable: 0,
        }
    }

    /// Watches a function, if it has not been translated yet.
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

    /// Calls by function.
    pub(crate) fn calls(&self) -> impl Iterator<Item = (&String, u64)> {
        self.calls
            .iter()
            .map(|(function, &count)| (function, count))
    }

    pub(crate) fn requests(&self) -> impl Iterator<Item = (&Posted, u64)> {
        self.requests.iter().map(|(posted, &count)| (posted, count))
    }

    /// Calls whose chain could not be read.
    pub(crate) fn unreadable(&self) -> u64 {
        self.unreadable
    }

    /// Looks up the register; called for a processor, by its thread.
    pub(crate) fn find_registers(&mut self) {
        // SAFETY: QEMU calls this for a processor. The array is ours, with so many descriptors of strings that stay.
        unsafe {
            let array = api::qemu_plugin_get_registers();
            let all = std::slice::from_raw_parts((*array).data, (*array).len as usize);
            let found = all
                .iter()
                .find(|one| CStr::from_ptr(one.name) == SECOND_ARGUMENT);
            self.argument = found.map(|one| RegisterHandle(one.handle));
            api::g_array_free(array, 1);
        }
    }

    /// The guest is at the entry of a watched function; called by the processor's thread.
    pub(crate) fn count(&mut self, watch: usize) {
        let Some(Watch { name, kind }) = self.watches.get(watch) else {
            return;
        };
        let (name, kind) = (name.clone(), *kind);
        *self.calls.entry(name.clone()).or_default() += 1;
        if self.walk(&name, kind).is_none() {
            self.unreadable += 1;
        }
    }

    fn walk(&mut self, name: &str, kind: Kind) -> Option<()> {
        let mut request = self.second_argument()?;
        for _ in 0..LONGEST {
            if request == 0 {
                return Some(());
            }
            let (opcode, signaled) = match kind {
                Kind::Send => {
                    let flags = u32::from_le_bytes(memory(request.checked_add(SEND_FLAGS)?)?);
                    let opcode = u32::from_le_bytes(memory(request.checked_add(OPCODE)?)?);
                    (Some(opcode), flags & SIGNALED != 0)
                }
                Kind::Receive => (None, true),
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

    fn second_argument(&self) -> Option<u64> {
        let RegisterHandle(register) = self.argument.as_ref()?;
        // SAFETY: the handle is QEMU's, and this is the processor's thread; QEMU appends the value to the array.
        bytes(|array| unsafe { api::qemu_plugin_read_register(*register, array) > 0 })
            .map(u64::from_le_bytes)
    }
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
