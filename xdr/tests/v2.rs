// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Properties of the codec of version 2 over generated messages. Its second implementation is the
//! referee (`tools/referee`).

#![allow(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    missing_docs
)]

use proptest::{
    collection::vec,
    option,
    prelude::*, //
};
use xdr::{
    checks::v2::{
        reencode,
        BOUNDS, //
    },
    v2::{
        encode_error,
        encode_fragment,
        encode_properties,
        error_message,
        Fragments,
        Properties,
        Received,
        Receiver,
        ReverseSupport, //
    },
    Call,
    CallPayload,
    Direction,
    Encoder,
    FixedHeader,
    Message,
    Segment, //
};

const XID: u32 = 0x0102_0304;

/// A Call to be sent.
#[derive(Clone, Debug)]
struct Sent {
    credits: u32,
    /// Segments of a Call chunk, or the words of a Payload stream behind its two first.
    payload: Result<Vec<Segment>, Vec<u32>>,
    /// Segments of a Read chunk at Position 40.
    reads: Vec<Segment>,
    writes: Vec<Vec<Segment>>,
    reply: Option<Vec<Segment>>,
    /// Which of the handles may be made invalid.
    invalid: Option<prop::sample::Index>,
}

fn segment() -> impl Strategy<Value = Segment> {
    (1..u32::MAX, 8u32..1 << 20, any::<u32>()).prop_map(|(handle, length, offset)| Segment {
        handle,
        length,
        offset: u64::from(offset) << 12,
    })
}

fn sent() -> impl Strategy<Value = Sent> {
    let payload = prop_oneof![
        vec(segment(), 1..4).prop_map(Ok),
        vec(any::<u32>(), 8..40).prop_map(Err)
    ];
    let reply = option::of(vec(segment(), 0..4));
    let writes = vec(vec(segment(), 0..4), 0..4);
    let reads = vec(segment(), 0..4);
    let invalid = option::of(any::<prop::sample::Index>());
    (any::<u32>(), payload, reads, writes, reply, invalid).prop_map(
        |(credits, payload, reads, writes, reply, invalid)| Sent {
            credits,
            payload,
            reads,
            writes,
            reply,
            invalid,
        },
    )
}

impl Sent {
    fn handles(&self) -> Vec<u32> {
        let call = self.payload.iter().flatten();
        let chunks = self.writes.iter().chain(&self.reply).flatten();
        let segments = call.chain(&self.reads).chain(chunks);
        segments.map(|segment| segment.handle).collect()
    }

    fn inv_handle(&self) -> u32 {
        let handles = self.handles();
        match &self.invalid {
            Some(index) if !handles.is_empty() => *index.get(&handles),
            _ => 0,
        }
    }

    fn stream(&self) -> Vec<u8> {
        let words = self.payload.as_ref().err().cloned().unwrap_or_default();
        let words = [vec![XID, 0], words].concat();
        words.iter().flat_map(|word| word.to_be_bytes()).collect()
    }

    /// The message, with this much of its Payload stream.
    fn encode(&self, stream: &[u8]) -> Vec<u8> {
        let mut space = [0; 4096];
        let inv_handle = self.inv_handle();
        let mut encoder = match &self.payload {
            Ok(call) => Encoder::call_external(&mut space, XID, self.credits, inv_handle, call),
            Err(_) => Encoder::call_inline(&mut space, XID, self.credits, inv_handle),
        };
        encoder.read_chunk(40, &self.reads);
        let mut encoder = encoder.end_reads();
        for chunk in &self.writes {
            encoder.write_chunk(chunk);
        }
        let length = match &self.reply {
            Some(chunk) => encoder.end_writes().reply_chunk(chunk),
            None => encoder.end_writes().no_reply_chunk(),
        };
        [&space[..length.unwrap()], stream].concat()
    }

    fn check(&self, call: &Call<'_>) -> Result<(), TestCaseError> {
        prop_assert_eq!(call.xid, XID);
        prop_assert_eq!(call.credits, self.credits);
        prop_assert_eq!(call.inv_handle, Some(self.inv_handle()));
        let reads: Vec<_> = call.reads.segments().map(|entry| entry.segment).collect();
        prop_assert_eq!(&reads, &self.reads);
        let writes: Vec<Vec<_>> = call
            .writes
            .chunks()
            .map(|chunk| chunk.segments().collect())
            .collect();
        prop_assert_eq!(&writes, &self.writes);
        let reply = call.reply_chunk.map(|chunk| chunk.segments().collect());
        prop_assert_eq!(&reply, &self.reply);
        if let CallPayload::PositionZero(chunk) = call.payload {
            prop_assert_eq!(Ok(chunk.segments().collect()), self.payload.clone());
        }
        Ok(())
    }
}

/// Receives any octets: what is accepted encodes to the same, what is refused has an answer that
/// decodes.
fn receive(receiver: &mut Receiver, bytes: &[u8]) -> Result<(), TestCaseError> {
    match receiver.receive(bytes) {
        Ok(received) => {
            let header = FixedHeader::peek(bytes).unwrap();
            let mut space = vec![0; bytes.len() + 8];
            let length = reencode(&header, &received, &mut space).unwrap();
            match received {
                // Its XID is ignored, and so is padding.
                Received::Grant(_) | Received::Properties { .. } => {
                    prop_assert_eq!(&space[4..16], &bytes[4..16]);
                }
                _ => prop_assert_eq!(&space[..length], &bytes[..length]),
            }
        }
        Err(rejected) => {
            let Some(message) = error_message(&rejected, &BOUNDS, 1) else {
                return Ok(());
            };
            let mut space = [0; 28];
            let length = encode_error(&message, &mut space).unwrap();
            let Ok(Received::Message {
                message: Message::Error(found),
                ..
            }) = receiver.clone().receive(&space[..length])
            else {
                panic!("the answer does not decode");
            };
            prop_assert_eq!(found, message);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_octets(messages in vec(vec(any::<u8>(), 0..200), 1..4)) {
        let mut receiver = Receiver::new(BOUNDS);
        for message in &messages {
            receive(&mut receiver, message)?;
        }
    }

    #[test]
    fn any_words_behind_a_prefix(
        types in vec((3u32..15, vec(0u32..50, 0..40)), 1..6),
    ) {
        let mut receiver = Receiver::new(BOUNDS);
        for (header_type, words) in types {
            let words = [vec![XID, 2, 3, header_type], words].concat();
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
            receive(&mut receiver, &bytes)?;
        }
    }

    #[test]
    fn a_call_is_what_was_sent(sent in sent()) {
        let stream = match sent.payload {
            Ok(_) => Vec::new(),
            Err(_) => sent.stream(),
        };
        let bytes = sent.encode(&stream);
        let received = Receiver::new(BOUNDS).receive(&bytes);
        let Ok(Received::Message { message: Message::Call(call), before: 0 }) = received else {
            panic!("{received:?}");
        };
        sent.check(&call)?;
        if let CallPayload::Inline(inline) = call.payload {
            prop_assert_eq!(inline.bytes, &stream);
        }
    }

    #[test]
    fn a_changed_call_is_received_all_the_same(
        sent in sent(),
        at in any::<prop::sample::Index>(),
        value in prop_oneof![any::<u32>(), 0u32..9],
        cut in option::of(any::<prop::sample::Index>()),
    ) {
        let mut bytes = sent.encode(&sent.stream());
        let word = at.index(bytes.len() / 4) * 4;
        bytes[word..word + 4].copy_from_slice(&value.to_be_bytes());
        if let Some(end) = cut {
            bytes.truncate(end.index(bytes.len()));
        }
        receive(&mut Receiver::new(BOUNDS), &bytes)?;
    }

    #[test]
    fn fragments_make_the_whole_again(
        sent in sent().prop_filter("inline", |sent| sent.payload.is_err()),
        room in 8u32..100,
        last_room in 4u32..100,
    ) {
        let stream = sent.stream();
        let length = u32::try_from(stream.len()).unwrap();
        let mut fragments = Fragments::new(length, room, last_room).unwrap();
        let messages = fragments.messages();
        let mut receiver = Receiver::new(BOUNDS);
        let (mut rest, mut whole, mut count) = (&stream[..], Vec::<u8>::new(), 1);
        for (length, remaining) in fragments.by_ref() {
            let (part, behind) = rest.split_at(length as usize);
            rest = behind;
            let mut space = [0; 20];
            let header =
                encode_fragment(&mut space, Direction::Call, XID, sent.credits, remaining);
            let bytes = [&space[..header.unwrap()], part].concat();
            let received = receiver.receive(&bytes);
            let Ok(Received::Fragment(fragment)) = received else {
                panic!("{received:?}");
            };
            prop_assert_eq!(fragment.remaining, remaining);
            whole.extend(fragment.payload.bytes);
            count += 1;
        }
        prop_assert_eq!(rest.len(), fragments.left() as usize);
        let bytes = sent.encode(rest);
        let received = receiver.receive(&bytes);
        let Ok(Received::Message { message: Message::Call(call), before }) = received else {
            panic!("{received:?}");
        };
        sent.check(&call)?;
        prop_assert_eq!(before as usize, whole.len());
        let CallPayload::Inline(inline) = call.payload else {
            panic!("no Payload stream");
        };
        whole.extend(inline.bytes);
        prop_assert_eq!(whole, stream);
        prop_assert_eq!(count, messages);
    }

    #[test]
    fn properties_are_what_was_said(
        max_send in any::<u32>(),
        min_receive in 1024u32..,
        segment_bytes in any::<u32>(),
        segments in any::<u32>(),
        reverse in prop::sample::select(vec![
            ReverseSupport::None,
            ReverseSupport::Simple,
            ReverseSupport::Continued,
            ReverseSupport::General,
        ]),
    ) {
        let said = Properties { max_send, min_receive, segment_bytes, segments, reverse };
        let mut space = [0; 80];
        let length = encode_properties(&said, &mut space, XID, 1).unwrap();
        let received = Receiver::new(BOUNDS).receive(&space[..length]);
        let Ok(Received::Properties { set, last: true }) = received else {
            panic!("{received:?}");
        };
        let mut found = Properties::default();
        found.apply(&set);
        prop_assert_eq!(found, said);
    }
}
