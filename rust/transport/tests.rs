// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Endpoints over a device without hardware.

mod endpoint;
mod posting;
mod transfer;

use crate::{
    kapi::{
        ib::Regions,
        trace::TaskId, //
    },
    transport::{
        endpoint::Handler,
        flow::{
            credits::Credits,
            grant::Grant,
            Flow, //
        },
        send_buffer::SendBuffer, //
    },
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

/// For whom it is.
fn nobody() -> TaskId {
    TaskId::NONE
}

/// Posts a Call for no task.
fn post<H: Handler>(
    mut buffer: SendBuffer<'_, H>,
    len: usize,
    regions: Option<&mut Regions>,
) -> Result {
    buffer.post(len, regions, nobody)
}

/// Sends another message, or lets it wait for its turn.
fn send<H: Handler>(mut buffer: SendBuffer<'_, H>, len: usize) -> Result {
    buffer.send(len)
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
