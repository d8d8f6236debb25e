// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The checked-in seeds of the fuzz targets, made from the golden vectors.
//!
//! `XDR_WRITE_CORPUS=1 cargo test --test corpus` writes them anew.

#![allow(clippy::indexing_slicing, clippy::panic, clippy::unwrap_used)]

use std::{
    collections::BTreeMap,
    env, fs,
    path::{
        Path,
        PathBuf, //
    },
};

use xdr::{
    checks::AMPLE,
    vectors,
    Message,
    Segment, //
};

/// Limits that admit most vectors: fifteen of everything, 16 MiB less 256 octets in each chunk.
const WIDE: [u8; 12] = [15, 15, 15, 15, 255, 255, 255, 255, 255, 255, 255, 255];

/// Limits in the middle of what the vectors have.
const TIGHT: [u8; 12] = [2, 2, 1, 2, 0, 32, 0, 32, 0, 12, 0, 32];

fn offer(segments: impl Iterator<Item = Segment>, reply: &[u8]) -> Vec<u8> {
    let octets = |segment: Segment| {
        let words = [segment.handle, segment.length].map(u32::to_be_bytes);
        [words.as_flattened(), &segment.offset.to_be_bytes()].concat()
    };
    let raw: Vec<_> = segments.map(octets).collect();
    let count = u8::try_from(raw.len()).unwrap();
    [&[count], raw.concat().as_slice(), reply].concat()
}

/// Seeds by path below the corpus directory.
fn seeds() -> BTreeMap<PathBuf, Vec<u8>> {
    let mut seeds = BTreeMap::new();
    let mut add = |target: &str, name: &str, bytes: Vec<u8>| {
        let path = Path::new(target).join(name.replace(' ', "_"));
        assert!(seeds.insert(path, bytes).is_none());
    };

    let refused = [("msgp", vectors::MSGP), ("done", vectors::DONE)];
    for &(name, bytes) in vectors::VALID.iter().chain(&refused) {
        add("message", name, bytes.to_vec());
        add("limits", name, [&WIDE, bytes].concat());
        add("limits", &format!("{name} tight"), [&TIGHT, bytes].concat());
    }

    let Ok(Message::Call(call)) = Message::decode(vectors::REPLY_CHUNK, &AMPLE) else {
        panic!("vector does not decode");
    };
    let reply_chunk = call.reply_chunk.unwrap().segments();
    add(
        "returned",
        "reply chunk",
        offer(reply_chunk, vectors::LONG_REPLY),
    );
    let Ok(Message::Call(call)) = Message::decode(vectors::WRITE_LIST, &AMPLE) else {
        panic!("vector does not decode");
    };
    let chunk = call.writes.chunks().next().unwrap();
    let two = vectors::WRITE_LIST_RETURNED;
    add("returned", "two chunks", offer(chunk.segments(), two));
    // The same Reply without its second Write chunk, which is words 19 to 28.
    let one = [&two[..19 * 4], &two[29 * 4..]].concat();
    assert!(Message::decode(&one, &AMPLE).is_ok());
    add("returned", "one chunk", offer(chunk.segments(), &one));

    // Room of 510 octets, Position 44, a Read chunk of two segments, a Write chunk of one, an
    // empty Write chunk, a Reply chunk of one; then a Long Call; then the same in little room.
    let chunks = [
        2, 1, 9, 4, 1, 8, 2, 10, 4, 1, 8, 2, 1, 3, 7, 2, 6, 9, 0, 1, 1, 5, 8, 3, 7, 7,
    ];
    add("roundtrip", "call", [&[255, 44], &chunks[..]].concat());
    add("roundtrip", "long call", [&[255, 0], &chunks[..]].concat());
    add(
        "roundtrip",
        "little room",
        [&[30, 48], &chunks[..]].concat(),
    );

    add("private_data", "plain", vectors::PRIVATE_DATA.to_vec());
    let behind = [&[0xf6, 0xab, 0x0e], vectors::PRIVATE_DATA, &[0; 48]].concat();
    add("private_data", "among others", behind);
    let pulls = vectors::PRIVATE_DATA_PULLS;
    add("private_data", "pulls", pulls.to_vec());

    seeds_of_2(add);
    seeds
}

/// Those of version 2: the messages of a connection, of which each seed has one more.
fn seeds_of_2(mut add: impl FnMut(&str, &str, Vec<u8>)) {
    // The octet in front is for bounds that admit all.
    let mut connection = vec![0];
    let mut put = |bytes: &[u8]| {
        connection.extend(u16::try_from(bytes.len()).unwrap().to_be_bytes());
        connection.extend(bytes);
        connection.clone()
    };
    for (name, bytes) in vectors::v2::CONNECTION {
        let so_far = put(bytes);
        add(
            "v2_connection",
            &format!("{name} tight"),
            [&[1], &so_far[1..]].concat(),
        );
        add("v2_connection", name, so_far);
    }
    for (number, bytes) in vectors::v2::ERRORS.iter().enumerate() {
        let length = u16::try_from(bytes.len()).unwrap().to_be_bytes();
        let alone = [&[0], &length[..], *bytes].concat();
        add("v2_connection", &format!("error {number}"), alone);
    }
    // Each end sends and receives in turn; one sends alone.
    add(
        "v2_credits",
        "in turn",
        vec![0, 3, 1, 2, 0, 0, 0, 3, 3, 3, 1, 1, 2, 2, 6, 15, 0, 3, 1, 2],
    );
    add(
        "v2_credits",
        "alone",
        vec![0, 3, 1, 2, 0, 3, 0, 3, 0, 3, 0, 3, 0, 3, 0, 3],
    );
}

#[test]
fn seeds_are_current() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus");
    let write = env::var_os("XDR_WRITE_CORPUS").is_some();
    for (path, bytes) in seeds() {
        let path = corpus.join(path);
        if write {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, &bytes).unwrap();
        }
        let read = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert_eq!(read, bytes, "{}", path.display());
    }
}
