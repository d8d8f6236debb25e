// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! What both ends share.

pub(crate) mod credits;
mod unanswered;
