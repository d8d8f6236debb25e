// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Of `rust/client`.

#[path = "../../../rust/client/cm_state.rs"]
pub(crate) mod cm_state;
#[path = "../../../rust/client/idle_buffers.rs"]
mod idle_buffers;
#[path = "../../../rust/client/keep_alive_state.rs"]
mod keep_alive_state;
#[path = "../../../rust/client/loss.rs"]
mod loss;
#[path = "../../../rust/client/losses.rs"]
pub(crate) mod losses;
#[path = "../../../rust/client/outage.rs"]
pub(crate) mod outage;
#[path = "../../../rust/client/pulls.rs"]
mod pulls;
#[path = "../../../rust/client/refusal.rs"]
mod refusal;
#[path = "../../../rust/client/reply_history.rs"]
mod reply_history;
#[path = "../../../rust/client/reverse_calls.rs"]
mod reverse_calls;
#[path = "../../../rust/client/sizes.rs"]
pub(crate) mod sizes;

pub(crate) use crate::played::{
    call,
    xprt,
    xprt_state, //
};
