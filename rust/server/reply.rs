// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! From the result of a request to its Reply.

use crate::{
    kapi::{
        ib::TransferKind,
        sunrpc::{
            Payload,
            SvcReply,
            XdrBuf, //
        },
        trace, //
    },
    server::{
        arrival::Message,
        connection::{
            Answer,
            Connection,
            UNTOLD, //
        },
        plan::{
            Around,
            Plan, //
        },
        request::{
            Outline,
            Request, //
        },
        segments::Rest,
        trace::returned, //
    },
};
use kernel::prelude::*;
use xdr::{
    encode_plain,
    placeable_of_nfs_4,
    Offer,
    WriteChunk,
    MIN_HEADER, //
};

/// Sends the Reply. From a service thread; may sleep.
#[inline]
pub(super) fn send(
    connection: &Connection,
    (message, outline): Request,
    payloads: &mut [Payload],
    rqst: &mut SvcReply<'_>,
) -> Result {
    let ready = if outline.offers_nothing() {
        prepare_plain(connection, &outline, rqst)
    } else {
        prepare(connection, &message, &outline, payloads, rqst)
    };
    // The Receive goes back before the Reply that lets the client use it again.
    let used = connection.give_back(message);
    match ready.and_then(|ready| connection.reply(ready, used, rqst.threads())) {
        // The client asked for more than it offered room for (RFC 8166, section 4.5.3).
        Err(e) if e == EMSGSIZE => connection.send_chunk_error(outline.xid),
        Err(e) => {
            connection.close();
            return Err(e);
        }
        Ok(()) => (),
    }
    Ok(())
}

/// Fills a buffer with the Reply to a Call that offers nothing for it. `EMSGSIZE` if that is too long
/// to be inline.
#[inline]
fn prepare_plain<'c>(
    connection: &'c Connection,
    outline: &Outline,
    rqst: &mut SvcReply<'_>,
) -> Result<Answer<'c>> {
    let mut buffer = connection.qp.send_buffer()?;
    let result = rqst.result();
    let len = MIN_HEADER + result.len();
    if len > connection.longest_inline(false) {
        return Err(EMSGSIZE);
    }
    let room = encode_plain(buffer.bytes(), outline.xid, UNTOLD).map_err(|_| EMSGSIZE)?;
    result.copy_to(0, room.get_mut(..result.len()).ok_or(EMSGSIZE)?)?;
    trace::svcrdma_send_pullup(|| (buffer.id(), MIN_HEADER as u32, result.len() as u32));
    Ok(Answer {
        buffer,
        len,
        tag: Some(outline.xid),
        invalidate: outline.key,
        transfer: None,
    })
}

/// Fills a buffer with the Reply to a Call that was received as `message`, and prepares the RDMA
/// Writes.
#[inline(never)]
fn prepare<'c>(
    connection: &'c Connection,
    message: &Message,
    outline: &Outline,
    payloads: &mut [Payload],
    rqst: &mut SvcReply<'_>,
) -> Result<Answer<'c>> {
    let offer = outline.offer(message)?;
    let is_nfs_4 = rqst.is_of(100_003, 4);
    let payloads = eligible(&rqst.result(), payloads, is_nfs_4);
    if let (&mut [payload], Some(chunk)) = (&mut *payloads, offer.only_write_chunk()) {
        if let Some(ready) = prepare_one(connection, outline, &offer, payload, chunk, rqst)? {
            return Ok(ready);
        }
    }
    let len = rqst.result().len();
    let plan = Plan::new(message.into(), outline, &offer, payloads, len)?;
    plan.prepare(connection, rqst)
}

/// As [`prepare`], where the one payload goes into the one Write chunk and the rest is inline, as with
/// a READ. None if it is not like that.
#[inline]
fn prepare_one<'c>(
    connection: &'c Connection,
    outline: &Outline,
    offer: &Offer<'_>,
    payload: Payload,
    chunk: WriteChunk<'_>,
    rqst: &mut SvcReply<'_>,
) -> Result<Option<Answer<'c>>> {
    let result = rqst.result();
    let around = Around::new(offer, payload, result.len());
    // There is no Reply chunk beside the one Write chunk.
    let longest = connection.longest_inline(false);
    let Some(around) = around.filter(|around| around.len <= longest) else {
        return Ok(None);
    };
    let Around {
        header,
        first,
        behind,
        len,
    } = around;
    let mut buffer = connection.qp.send_buffer()?;
    let to = buffer.bytes();
    let written = [payload.length as u32];
    if offer
        .encode_reply(to, outline.xid, UNTOLD, written, None)
        .is_none()
    {
        return Ok(None);
    }
    result.copy_to(0, to.get_mut(header..first).ok_or(EMSGSIZE)?)?;
    result.copy_to(behind, to.get_mut(first..len).ok_or(EMSGSIZE)?)?;
    trace::svcrdma_send_pullup(|| (buffer.id(), header as u32, (len - header) as u32));
    if trace::on::svcrdma_encode_wseg() {
        let filled = chunk.filled(payload.length as u32);
        returned(buffer.id(), filled.into_iter().flatten());
    }
    let result = rqst.take_result()?;
    let (kind, parts) = (TransferKind::Write, chunk.segment_count());
    let mut transfer = connection.qp.transfer(kind, result, parts)?;
    Rest::new(chunk.segments()).add(&mut transfer, payload.offset, payload.length)?;
    Ok(Some(Answer {
        buffer,
        len,
        tag: Some(outline.xid),
        invalidate: outline.key,
        transfer: Some(transfer),
    }))
}

/// Those of the payloads that the service names which may be placed.
fn eligible<'p>(
    result: &XdrBuf<'_>,
    payloads: &'p mut [Payload],
    is_nfs_4: bool,
) -> &'p mut [Payload] {
    if !is_nfs_4 {
        return payloads;
    }
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
