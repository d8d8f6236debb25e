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
use xdr::{
    v2::Bounds,
    Limits, //
};

/// Credits that no test is about.
fn flow() -> Result<Flow> {
    Flow::new(Credits::new(0, 8, false)?, Grant::new(8), None)
}

/// Bounds on what is received, of which no test here makes use.
const NOTHING: Bounds = Bounds {
    calls: Limits::floor(0),
    replies: Limits::floor(0),
    call_octets: 0,
    reply_octets: 0,
    fragments: 0,
    property_octets: 0,
};
