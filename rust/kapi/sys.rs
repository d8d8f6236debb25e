// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! What the `kernel` crate lacks.

pub(crate) mod address;
pub(in crate::kapi) mod bit;
pub(crate) mod completion;
pub(crate) mod counters;
pub(crate) mod fifo;
pub(crate) mod listing;
pub(crate) mod log;
pub(crate) mod memalloc;
pub(crate) mod module;
pub(crate) mod net;
pub(in crate::kapi) mod single;
pub(crate) mod stable;
pub(crate) mod sysctl;
pub(crate) mod time;
pub(crate) mod uses;
pub(in crate::kapi) mod warn;
pub(crate) mod workqueue;
