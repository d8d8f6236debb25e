// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Whom the tear-down of a queue pair waits for, so that what they use is there.

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

/// Where requests are posted: a queue pair, and the port of its device.
#[derive(Clone, Copy)]
pub(super) struct Target {
    pub(super) qp: *mut bindings::ib_qp,
    pub(super) port: u32,
}

/// What a queue pair consists of.
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

/// Who uses the objects of a queue pair.
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
    /// Those who cover memory, or make something.
    #[pin]
    pub(super) posters: Uses,
    /// RDMA Reads and Writes that are mapped.
    #[pin]
    pub(super) contexts: Uses,
    /// Memory that is mapped for the device.
    #[pin]
    pub(super) buffers: Uses,
}

/// How many there were.
static NUMBERS: Atomic<u64> = Atomic::new(0);

impl Gate {
    /// A number for one.
    pub(super) fn next_number() -> u64 {
        // Zero is nobody's.
        NUMBERS.fetch_add(1, Relaxed) + 1
    }

    /// That of the queue pair of that number; nobody can enter yet.
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

    /// The number of the queue pair.
    #[inline]
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// `ENOTCONN` when the tear-down has begun.
    #[inline]
    pub(super) fn enter(&self) -> Result<Poster<'_>> {
        let counted = self.posters.get().ok_or(ENOTCONN)?;
        let objects = self.objects.as_ref().ok_or(ENOTCONN)?;
        Ok(Poster {
            gate: self,
            objects,
            _counted: counted,
        })
    }

    /// For a context: as long as the first of these is there, the objects are. `ENOTCONN` when the
    /// tear-down has begun.
    #[inline]
    pub(super) fn keep_objects(&self) -> Result<(Use, &Objects)> {
        let counted = self.contexts.get().ok_or(ENOTCONN)?;
        Ok((counted, self.objects.as_ref().ok_or(ENOTCONN)?))
    }
}

/// Somebody whom the tear-down of a queue pair waits for, before it does anything else.
pub(crate) struct Poster<'a> {
    gate: &'a Gate,
    /// Valid, since this is counted.
    objects: &'a Objects,
    _counted: Use,
}

impl Poster<'_> {
    /// The number of the queue pair.
    #[inline]
    pub(super) fn number(&self) -> u64 {
        self.gate.number
    }

    /// What the queue pair consists of, all of it valid as long as the poster is there.
    #[inline]
    pub(super) fn objects(&self) -> &Objects {
        self.objects
    }

    /// As long as what is returned is there, the device of the poster is.
    #[inline]
    pub(super) fn keep_device(&self) -> Result<Use> {
        self.gate.buffers.get().ok_or(ENOTCONN)
    }
}
