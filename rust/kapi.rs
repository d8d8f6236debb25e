// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Safe wrappers of the kernel's interfaces: the only place with `unsafe` code.

mod bindings;
pub(crate) mod ib;
pub(crate) mod page;
pub(crate) mod sunrpc;
pub(crate) mod sys;
pub(crate) mod trace;
