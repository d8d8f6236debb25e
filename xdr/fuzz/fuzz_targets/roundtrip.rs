// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! A header built from the input by the encoder, in whatever room: when it fits, it decodes to
//! what went in; when it does not, the error says how much room it needs.

#![no_main]

use libfuzzer_sys::fuzz_target;
use xdr::{
    checks::AMPLE,
    lists_size,
    Call,
    EncodeError,
    Encoder,
    Message,
    Segment,
    MIN_HEADER, //
};

/// Takes octets from the input; zeros when it is used up.
struct Input<'a>(&'a [u8]);

impl Input<'_> {
    fn octet(&mut self) -> u8 {
        match self.0.split_first() {
            Some((first, rest)) => {
                self.0 = rest;
                *first
            }
            None => 0,
        }
    }

    fn segments(&mut self) -> Vec<Segment> {
        let count = self.octet() % 5;
        (0..count)
            .map(|_| Segment {
                handle: u32::from(self.octet()) << 20,
                length: u32::from(self.octet()) << (self.octet() % 17),
                offset: u64::from(self.octet()) << (self.octet() % 50),
            })
            .collect()
    }
}

fn encode(
    buffer: &mut [u8],
    position: u32,
    read: &[Segment],
    writes: &[Vec<Segment>],
    reply: Option<&[Segment]>,
) -> Result<usize, EncodeError> {
    let mut encoder = match position {
        0 => Encoder::nomsg(buffer, 7, 1),
        _ => Encoder::msg(buffer, 7, 1),
    };
    encoder.read_chunk(position, read);
    let mut encoder = encoder.end_reads();
    for chunk in writes {
        encoder.write_chunk(chunk);
    }
    match reply {
        Some(chunk) => encoder.end_writes().reply_chunk(chunk),
        None => encoder.end_writes().no_reply_chunk(),
    }
}

fuzz_target!(|bytes: &[u8]| {
    let mut input = Input(bytes);
    let room = usize::from(input.octet()) * 2;
    let position = u32::from(input.octet());
    let read = input.segments();
    let writes: Vec<_> = (0..input.octet() % 4).map(|_| input.segments()).collect();
    let reply = (input.octet() & 1 == 1).then(|| input.segments());

    let needed = MIN_HEADER
        + lists_size(
            read.len(),
            writes.iter().map(Vec::len),
            reply.as_ref().map(Vec::len),
        );
    let mut buffer = vec![0x5a; room + 8];
    let result = encode(
        &mut buffer[..room],
        position,
        &read,
        &writes,
        reply.as_deref(),
    );
    assert_eq!(buffer[room..], [0x5a; 8]);
    match result {
        Err(EncodeError::NoRoom { needed: n, room: r }) => {
            assert_eq!((n, r), (needed, room));
            assert!(needed > room);
            return;
        }
        Err(EncodeError::Position(p)) => {
            assert_eq!(p, position);
            assert!(p % 4 != 0 || p < 40);
            return;
        }
        Err(EncodeError::NoPayload) => {
            assert_eq!(position, 0);
            return;
        }
        Err(EncodeError::Written) => panic!("nothing is returned"),
        Ok(len) => assert_eq!(len, needed),
    }
    buffer.truncate(needed);

    if position != 0 {
        // A payload that ends at the Position.
        buffer.extend([0, 0, 0, 7, 0, 0, 0, 0]);
        buffer.resize(needed + position as usize, 0);
    }
    match Message::decode(&buffer, &AMPLE) {
        Ok(Message::Call(Call {
            reads,
            writes: decoded,
            reply_chunk,
            ..
        })) => {
            let expected = read.iter().map(|segment| (position, *segment));
            assert!(reads
                .segments()
                .map(|r| (r.position, r.segment))
                .eq(expected));
            let decoded: Vec<Vec<_>> = decoded.chunks().map(|c| c.segments().collect()).collect();
            assert_eq!(decoded, writes);
            assert_eq!(reply_chunk.map(|c| c.segments().collect()), reply);
        }
        // Without Read chunks RDMA_NOMSG is a Reply.
        Ok(Message::Reply(decoded)) => {
            assert!(position == 0 && read.is_empty());
            assert_eq!(decoded.reply_chunk.map(|c| c.segments().collect()), reply);
        }
        Ok(Message::Error(_)) => panic!("encoded a Call, decoded an error"),
        Err(rejected) => {
            let sum = |chunk: &[Segment]| chunk.iter().map(|s| u64::from(s.length)).sum::<u64>();
            let holder = if read.is_empty() {
                reply.as_deref()
            } else {
                Some(&read[..])
            };
            assert!(position == 0 && sum(holder.unwrap()) < 8, "{rejected:?}");
        }
    }
});
