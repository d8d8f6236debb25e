// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The requester: a transport of the RPC layer for NFS clients.

mod answer;
mod call;
mod cancel;
mod chunks;
mod cm_state;
mod connect;
mod connection;
mod connection_slot;
mod fence;
mod handler;
mod idle_buffers;
mod keep_alive;
mod keep_alive_state;
mod loss;
mod losses;
mod marshal;
mod offer;
mod outage;
mod pins;
mod pull;
mod pulls;
mod refusal;
mod reply;
mod reply_history;
mod reverse;
mod reverse_calls;
mod settle;
mod sizes;
mod stats;
mod status;
mod trace;
mod xprt;
mod xprt_state;

pub(crate) use self::xprt::ClientXprt;
