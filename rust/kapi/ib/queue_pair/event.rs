// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Asynchronous events of a queue pair.

use crate::kapi::{
    bindings,
    ib::device::DeviceName, //
};

/// An event that a device reports of a queue pair, for the time of the call.
pub(crate) struct QpEvent<'a>(&'a bindings::ib_event);

impl QpEvent<'_> {
    /// Wraps an event.
    ///
    /// # Safety
    ///
    /// `event` must be one that a device reports of a queue pair, valid for the lifetime of the
    /// result.
    pub(super) unsafe fn new(event: *mut bindings::ib_event) -> Self {
        // SAFETY: The caller promises that it is valid; nobody writes to it meanwhile.
        Self(unsafe { &*event })
    }

    /// Returns its number in the verbs.
    pub(crate) fn number(&self) -> u32 {
        self.0.event
    }

    /// Returns whether it is one that the in-tree module calls fatal. As a rule work requests
    /// fail after those, but a device that is at fault itself may never say so.
    pub(crate) fn is_fatal(&self) -> bool {
        !matches!(
            self.0.event,
            bindings::ib_event_type_IB_EVENT_PATH_MIG
                | bindings::ib_event_type_IB_EVENT_COMM_EST
                | bindings::ib_event_type_IB_EVENT_SQ_DRAINED
                | bindings::ib_event_type_IB_EVENT_QP_LAST_WQE_REACHED
        )
    }

    /// Returns whether a message has come in before the connection manager was told that the peer
    /// is ready.
    pub(super) fn is_established(&self) -> bool {
        self.0.event == bindings::ib_event_type_IB_EVENT_COMM_EST
    }

    /// Returns the name of the device that says so.
    pub(crate) fn device(&self) -> DeviceName {
        // SAFETY: An event of a queue pair names it, even where ib_core itself makes the event and
        // names no device; a queue pair has a valid device.
        unsafe { DeviceName::of((*self.0.element.qp).device) }
    }
}
