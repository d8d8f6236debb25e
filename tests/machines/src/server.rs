// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Of `rust/server`.

#[path = "../../../rust/server/all_pulls.rs"]
mod all_pulls;
#[path = "../../../rust/server/backlog.rs"]
mod backlog;
#[path = "../../../rust/server/poison.rs"]
mod poison;
#[path = "../../../rust/server/sizes.rs"]
mod sizes;
