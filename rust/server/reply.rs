// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! From the result of a request to its Reply.

use crate::{
    kapi::{
        ib::RecvBuf,
        sunrpc::{
            Payload,
            SvcMessage,
            SvcReply, //
        },
    },
    server::{
        connection::{
            Connection,
            Responder, //
        },
        reply_layout::ReplyLayout,
        request::{
            ReplyCtx,
            Request, //
        },
        unsent::Unsent, //
    },
    transport::{
        header::Refusal,
        send_buffer::{
            Purpose,
            SendBuffer, //
        },
    },
};
use kernel::prelude::*;
use xdr::placeable_of_nfs_4;

impl SvcMessage<Connection> for Request {
    #[inline]
    fn reply(
        self,
        connection: &Connection,
        payloads: &mut [Payload],
        rqst: &mut SvcReply<'_>,
    ) -> Result {
        let (message, ctx) = self;
        match send(connection, message, &ctx, payloads, rqst) {
            Err(Unsent::Refused(reason)) => connection.refuse(Refusal {
                xid: ctx.xid,
                reason,
            }),
            Err(Unsent::Failed(e)) => {
                connection.close();
                return Err(e);
            }
            Ok(()) => (),
        }
        Ok(())
    }
}

/// Sends the Reply to a Call that was received as `message`.
#[inline]
fn send(
    connection: &Connection,
    message: RecvBuf,
    ctx: &ReplyCtx,
    payloads: &mut [Payload],
    rqst: &mut SvcReply<'_>,
) -> Result<(), Unsent> {
    // Not moved: it is large.
    let mut buffer = connection.qp.send_buffer(Purpose::Message);
    let buffer = buffer.as_mut().map_err(|e| *e)?;
    let prepared = prepare(connection, buffer, &message, ctx, payloads, rqst);
    // The Receive goes back before the Reply that lets the client use it again.
    let used = connection.put(message);
    let len = prepared?;
    Ok(connection.reply(buffer, len, used, rqst.threads())?)
}

/// Fills a buffer with the Reply, and prepares the RDMA Writes. Returns the number of bytes behind
/// its header.
fn prepare<'c>(
    connection: &'c Connection,
    buffer: &mut SendBuffer<'c, Responder>,
    message: &RecvBuf,
    ctx: &ReplyCtx,
    payloads: &mut [Payload],
    rqst: &mut SvcReply<'_>,
) -> Result<usize, Unsent> {
    let offer = ctx.offer(message)?;
    let payloads = match offer.is_empty() {
        true => &mut [],
        false => eligible(payloads, rqst),
    };
    let (received, len) = (|| message.into(), rqst.result().len());
    let layout = ReplyLayout::new(received, ctx, &offer, payloads, len)?;
    let prepared = layout.prepare(connection, buffer, received, rqst);
    prepared.map_err(|e| {
        let used = connection.qp.returned_size(&offer);
        layout.unsent(connection.longest_inline(true).saturating_sub(used), e)
    })
}

/// Returns the payloads of the result that may be placed in Write chunks.
fn eligible<'p>(payloads: &'p mut [Payload], rqst: &mut SvcReply<'_>) -> &'p mut [Payload] {
    if !rqst.is_of(100_003, 4) {
        return payloads;
    }
    let result = rqst.result();
    let words = |offset: usize| {
        let mut words = [0; 8];
        result.copy_to(offset, &mut words).ok()?;
        let both = u64::from_be_bytes(words);
        Some([(both >> 32) as u32, both as u32])
    };
    let mut kept = 0;
    for i in 0..payloads.len() {
        let Some(&Payload { offset, length }) = payloads.get(i) else {
            break;
        };
        let offset = placeable_of_nfs_4(offset, length, words);
        if let (Some(offset), Some(place)) = (offset, payloads.get_mut(kept)) {
            *place = Payload { offset, length };
            kept += 1;
        }
    }
    payloads.get_mut(..kept).unwrap_or(&mut [])
}
