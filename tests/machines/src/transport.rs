// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Of `rust/transport`.

#[path = "../../../rust/transport/chunk_limits.rs"]
pub(crate) mod chunk_limits;
pub(crate) mod flow;
#[path = "../../../rust/transport/plan.rs"]
pub(crate) mod plan;
#[path = "../../../rust/transport/provided.rs"]
pub(crate) mod provided;
#[path = "../../../rust/transport/provided_total.rs"]
pub(crate) mod provided_total;
#[path = "../../../rust/transport/unsupported.rs"]
pub(crate) mod unsupported;

#[cfg(test)]
mod provided_table;

pub(crate) use crate::played::endpoint;
