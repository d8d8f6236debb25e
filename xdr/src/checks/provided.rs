// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Replies that the requester pulls.

use super::{
    call,
    malformed::{
        patched,
        refused,
        SPACE, //
    },
    reencode,
    require,
    Check,
    AMPLE, //
};
use crate::{
    encode_done,
    peek_done,
    vectors::{
        self,
        XID, //
    },
    DecodeError,
    Message,
    ReplyPayload,
    ReplyPlace,
    ReturnError,
    Role,
    Segment, //
};

/// The Reply chunk of [`vectors::REPLY_CHUNK`].
const OFFERED: [Segment; 2] = [
    Segment {
        handle: 0xc01,
        length: 8192,
        offset: 0x6000,
    },
    Segment {
        handle: 0xc02,
        length: 8192,
        offset: 0x8000,
    },
];

/// The Read chunk of [`vectors::PROVIDED_REPLY`].
const PROVIDED: [Segment; 2] = [
    Segment {
        handle: 0xe01,
        length: 96,
        offset: 0x1_0000_ff40,
    },
    Segment {
        handle: 0xe02,
        length: 12000,
        offset: 0x1_0000_0000,
    },
];

/// Checks that what looks like a Long Call is a Reply to a requester that pulls, if it has nothing
/// that belongs to a Call alone.
pub fn check_provided_reply() -> Check {
    let reply = call(vectors::PROVIDED_REPLY)?
        .as_provided_reply()
        .map_err(|reason| reason.as_str())?;
    require((reply.xid, reply.credits) == (XID, 64), "fixed fields")?;
    let ReplyPayload::Provided(chunk) = reply.payload else {
        return Err("the Payload stream is in a Read chunk");
    };
    require(chunk.length() == 12096, "octets of the chunk")?;
    let handles = chunk.segments().map(|segment| segment.handle);
    require(handles.eq([0xe01, 0xe02]), "segments of the chunk")?;
    require(
        reply.reply_written(OFFERED) == Ok(0),
        "no Reply chunk comes back",
    )?;
    require(reply.written(OFFERED) == Ok(0), "the Write chunk is unused")?;
    let mut space = [0; SPACE];
    let len = reencode(&Message::Reply(reply), &mut space).map_err(|_| "room")?;
    require(
        space.get(..len) == Some(vectors::PROVIDED_REPLY),
        "it is encoded as it came",
    )?;

    let offer = call(vectors::REPLY_CHUNK)?.offer();
    let len = offer.encode_reply(&mut space, XID, 64, [], ReplyPlace::Provided(&PROVIDED));
    require(
        len == Ok(vectors::PROVIDED_REPLY.len()),
        "octets of one that is made",
    )?;
    require(
        space.get(..vectors::PROVIDED_REPLY.len()) == Some(vectors::PROVIDED_REPLY),
        "what was offered comes back with it",
    )?;

    let long_call = call(vectors::LONG_CALL)?.as_provided_reply();
    require(
        long_call.err() == Some(DecodeError::ReadListInReply),
        "a Read chunk at another Position",
    )?;
    let inline_call = call(vectors::READ_CHUNK)?.as_provided_reply();
    require(
        inline_call.err() == Some(DecodeError::ReadListInReply),
        "an inline Call",
    )?;
    check_both_chunks()
}

/// Checks that a Reply chunk may come back beside the Read chunk, but not with anything in it.
fn check_both_chunks() -> Check {
    let words = vectors::PROVIDED_REPLY.len();
    let mut bytes = [0; SPACE];
    for (to, from) in bytes.iter_mut().zip(vectors::PROVIDED_REPLY) {
        *to = *from;
    }
    let chunk = [1, 1, 0xc01, 0, 0, 0x6000].map(u32::to_be_bytes);
    // In place of the word that says that there is none.
    let at = words.saturating_sub(4);
    for (to, from) in bytes.iter_mut().skip(at).zip(chunk.as_flattened()) {
        *to = *from;
    }
    let end = at.saturating_add(24);
    let returned = |bytes: &[u8]| {
        let reply = call(bytes)?.as_provided_reply();
        let reply = reply.map_err(|reason| reason.as_str())?;
        Ok::<_, &'static str>(reply.reply_written(OFFERED))
    };
    let message = bytes.get(..end).ok_or("message")?;
    require(returned(message)? == Ok(0), "an empty Reply chunk")?;
    let mut space = [0; SPACE];
    let length_word = at.saturating_div(4).saturating_add(3);
    let bytes = patched(message, &[(length_word, 16)], &mut space)?;
    require(
        returned(bytes)? == Err(ReturnError::TwoPayloads),
        "octets in the Reply chunk",
    )
}

/// Checks `RDMA_DONE`: sixteen octets, whose XID is found, and which nobody answers.
pub fn check_done() -> Check {
    let mut space = [0; 28];
    require(encode_done(&mut space, XID, 32) == Ok(16), "encoded length")?;
    require(space.get(..16) == Some(vectors::DONE), "encoded octets")?;
    for len in [16, 20, 28] {
        let bytes = space.get(..len).ok_or("prefix")?;
        require(peek_done(bytes) == Some(XID), "its XID")?;
        let rejected = refused(bytes, &AMPLE).ok_or("it is no Call or Reply")?;
        for role in [Role::Requester, Role::Responder] {
            let answer = rejected.error_message(role, 1);
            require(answer.is_none(), "it has no answer")?;
        }
    }
    let cut = space.get(..15).ok_or("prefix")?;
    require(peek_done(cut).is_none(), "fixed fields that are cut off")?;
    for &(_, valid) in vectors::VALID {
        require(peek_done(valid).is_none(), "no other message is one")?;
    }
    let mut space = [0; SPACE];
    let other = patched(vectors::DONE, &[(1, 2)], &mut space)?;
    require(peek_done(other).is_none(), "another version")?;
    require(
        encode_done(&mut [0; 15], XID, 32).is_err(),
        "no room for it",
    )
}
