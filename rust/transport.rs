// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! What both ends share.

pub(crate) mod credits;
pub(crate) mod endpoint;
pub(crate) mod queues;
pub(crate) mod reverse_credits;
mod unanswered;
pub(crate) mod unfit;
