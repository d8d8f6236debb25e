// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Of `rust/transport`.

pub(crate) mod flow;
#[path = "../../../rust/transport/provided.rs"]
pub(crate) mod provided;
#[path = "../../../rust/transport/provided_total.rs"]
pub(crate) mod provided_total;
#[path = "../../../rust/transport/queues.rs"]
pub(crate) mod queues;
#[path = "../../../rust/transport/region_plan.rs"]
pub(crate) mod region_plan;
#[path = "../../../rust/transport/unfit.rs"]
pub(crate) mod unfit;

#[cfg(test)]
mod provided_table;

pub(crate) use crate::played::endpoint;
