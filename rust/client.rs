// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The requester: a transport of the RPC layer for NFS clients.

mod alarm;
mod answer;
mod call;
mod chunks;
mod connect;
mod connection;
mod events;
mod keep_alive;
mod marshal;
mod mount;
mod refusal;
mod region_plan;
mod reply;
mod reverse;
mod settle;
mod sizes;
mod stats;
mod trace;

pub(crate) use self::mount::Mount;
