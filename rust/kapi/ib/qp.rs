// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Queue pairs.

use crate::kapi::bindings;

/// Where requests are posted: a queue pair, and the port of its device.
#[derive(Clone, Copy)]
pub(super) struct Target {
    pub(super) qp: *mut bindings::ib_qp,
    pub(super) port: u32,
}
