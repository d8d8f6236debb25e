// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Uses of a queue pair that its tear-down waits for, so that what they use is there.

use crate::kapi::{
    bindings,
    sys::uses::{
        Use,
        Uses, //
    },
};
use core::ptr::NonNull;
use kernel::{
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        SetOnce, //
    },
};

/// The place to post requests to: a queue pair, and the port of its device.
#[derive(Clone, Copy)]
pub(super) struct Target {
    pub(super) qp: *mut bindings::ib_qp,
    pub(super) port: u32,
}

/// The objects of a queue pair.
pub(super) struct Objects {
    pub(super) target: Target,
    pub(super) pd: NonNull<bindings::ib_pd>,
    pub(super) device: NonNull<bindings::ib_device>,
    /// Of the connection, if there is one.
    pub(super) id: Option<NonNull<bindings::rdma_cm_id>>,
}

// SAFETY: The objects may be used from any thread.
unsafe impl Send for Objects {}
// SAFETY: Several may use the objects at once: ib_core and drivers take the locks that needs.
unsafe impl Sync for Objects {}

/// The users of the objects of a queue pair.
///
/// # Invariants
///
/// The objects, once they are there, are valid while somebody is counted: all of them for a poster
/// and for a context, the device for a buffer.
#[pin_data]
pub(super) struct Gate {
    /// No other queue pair has it, or ever had, while the module is loaded. Not 0.
    number: u64,
    objects: SetOnce<Objects>,
    /// Whatever covers memory, or makes something.
    #[pin]
    pub(super) posters: Uses,
    /// RDMA Reads and Writes that are mapped.
    #[pin]
    pub(super) contexts: Uses,
    /// Memory that is mapped for the device.
    #[pin]
    pub(super) buffers: Uses,
}

/// The last number.
static NUMBERS: Atomic<u64> = Atomic::new(0);

impl Gate {
    /// Returns a number for one.
    pub(super) fn next_number() -> u64 {
        // Zero is nobody's.
        NUMBERS.fetch_add(1, Relaxed) + 1
    }

    /// Creates that of the queue pair of that number; nobody can enter yet.
    pub(super) fn new(number: u64) -> impl PinInit<Self> {
        pin_init!(Self {
            number,
            objects: SetOnce::new(),
            posters <- Uses::new(),
            contexts <- Uses::new(),
            buffers <- Uses::new(),
        })
    }

    /// Lets posters in.
    ///
    /// # Safety
    ///
    /// The objects must be valid until `posters` and `contexts` were waited for, and the device
    /// until `buffers` were.
    pub(super) unsafe fn open(&self, objects: Objects) {
        // INVARIANT: As the caller promises.
        self.objects.populate(objects);
    }

    /// Returns the number of the queue pair.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Counts a poster. `ENOTCONN` when the tear-down has begun.
    pub(super) fn enter(&self) -> Result<Poster<'_>> {
        let counted = self.posters.get().ok_or(ENOTCONN)?;
        let objects = self.objects.as_ref().ok_or(ENOTCONN)?;
        Ok(Poster {
            gate: self,
            objects,
            _counted: counted,
        })
    }

    /// Counts a context: as long as the first of these is there, the objects are. `ENOTCONN` when
    /// the tear-down has begun.
    pub(super) fn keep_objects(&self) -> Result<(Use, &Objects)> {
        let counted = self.contexts.get().ok_or(ENOTCONN)?;
        Ok((counted, self.objects.as_ref().ok_or(ENOTCONN)?))
    }
}

/// A use of a queue pair that its tear-down waits for before it does anything else.
pub(crate) struct Poster<'a> {
    gate: &'a Gate,
    /// Valid, since this is counted.
    objects: &'a Objects,
    _counted: Use,
}

impl Poster<'_> {
    /// Returns the number of the queue pair.
    pub(super) fn number(&self) -> u64 {
        self.gate.number
    }

    /// Returns what the queue pair consists of, all of it valid as long as the poster is there.
    pub(super) fn objects(&self) -> &Objects {
        self.objects
    }

    /// Counts a buffer: as long as the result is there, the device of the poster is. `ENOTCONN`
    /// when the tear-down waits for buffers.
    pub(super) fn keep_device(&self) -> Result<Use> {
        self.gate.buffers.get().ok_or(ENOTCONN)
    }
}
