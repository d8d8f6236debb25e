// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Endpoints over a device without hardware.

mod endpoint;
mod posting;
mod transfer;

use crate::transport::flow::{
    credits::Credits,
    grant::Grant,
    Flow, //
};
use kernel::prelude::*;

/// Credits that no test is about.
fn flow() -> Result<Flow> {
    Ok(Flow {
        credits: Credits::new(0, 8, false)?,
        grant: Grant::new(8),
    })
}
