// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Of `rust/transport/flow`.

#[path = "../../../../rust/transport/flow/credits.rs"]
pub(crate) mod credits;
#[path = "../../../../rust/transport/flow/grant.rs"]
pub(crate) mod grant;
