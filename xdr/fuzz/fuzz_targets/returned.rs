// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! An offer and a Reply, both from the input: what counts as written is within the offer and has
//! no gap.

#![no_main]

use libfuzzer_sys::fuzz_target;
use xdr::{
    checks::AMPLE,
    Message,
    Segment, //
};

fuzz_target!(|input: &[u8]| {
    let Some((&count, rest)) = input.split_first() else {
        return;
    };
    let len = usize::from(count % 5) * Segment::SIZE;
    let Some((offer, bytes)) = rest.split_at_checked(len) else {
        return;
    };
    let offer: Vec<_> = offer
        .chunks_exact(Segment::SIZE)
        .map(|raw| Segment {
            handle: u32::from_be_bytes(raw[..4].try_into().unwrap()),
            length: u32::from_be_bytes(raw[4..8].try_into().unwrap()),
            offset: u64::from_be_bytes(raw[8..].try_into().unwrap()),
        })
        .collect();
    let Ok(Message::Reply(reply)) = Message::decode(bytes, &AMPLE) else {
        return;
    };

    let check = |returned: Vec<Segment>, written: u32| {
        // Segments that were not used may be left out.
        assert!(returned.len() <= offer.len());
        let mut left = written;
        for (returned, offered) in returned.iter().zip(&offer) {
            assert_eq!(returned.handle, offered.handle);
            assert_eq!(returned.offset, offered.offset);
            // In order means: exactly what a responder makes that fills one after the other.
            assert_eq!(returned.length, offered.length.min(left));
            left -= returned.length;
        }
        assert_eq!(left, 0);
    };
    if let Ok(written) = reply.written(&offer) {
        let chunks: Vec<_> = reply.writes.chunks().collect();
        assert!(chunks.len() <= 1);
        let returned = chunks.first().map(|chunk| chunk.segments().collect());
        check(returned.unwrap_or_default(), written);
    }
    if let Ok(written @ 1..) = reply.reply_written(&offer) {
        assert!(written >= 8);
        check(reply.reply_chunk.unwrap().segments().collect(), written);
    }
});
