// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Connection private data: found just where it is, and the same when encoded again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use xdr::{
    PrivateData,
    Pulls, //
};

fuzz_target!(|bytes: &[u8]| {
    let start = [0xf6, 0xab, 0x0e, 0x18, 1];
    let wanted = bytes
        .windows(PrivateData::SIZE)
        .find(|window| window.starts_with(&start));
    match (PrivateData::decode(bytes), wanted) {
        (Some(data), Some(window)) => {
            let mut expected: [u8; PrivateData::SIZE] = window.try_into().unwrap();
            expected[5] &= 1;
            let mut space = [0; PrivateData::MAX_SIZE];
            let len = data.encode(&mut space).unwrap();
            assert_eq!(space[..PrivateData::SIZE], expected);
            // The block is found, wherever it is; its reserved octets are not kept.
            assert_eq!(len == PrivateData::SIZE, data.pulls == Pulls::NONE);
            assert_eq!(PrivateData::decode(&space[..len]), Some(data));
            if len != PrivateData::SIZE {
                let found = |block: &[u8]| block.starts_with(&space[8..14]);
                assert!(bytes.windows(PrivateData::MAX_SIZE).any(|w| found(&w[8..])));
            }
            assert!(data.send_threshold(&PrivateData::DEFAULT) == 1024);
            assert!((1024..=262_144).contains(&data.receive_size.bytes()));
        }
        (None, None) => {}
        (decoded, wanted) => panic!("{decoded:?}, {wanted:?}"),
    }
});
