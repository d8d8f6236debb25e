// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Two ends that send when they may, and a wire between them: nobody receives a message that it has
//! no Receive for, both go on while either has something to say, and neither says anything when
//! nobody has.

#![no_main]

use std::collections::VecDeque;

use libfuzzer_sys::fuzz_target;
use xdr::v2::Credits;

/// Receives of an end, beside the one for a GRANT.
const ADVERTISED: u32 = 4;

#[derive(Default)]
struct End {
    credits: Credits,
    /// Messages on their way to it: the credit value, and whether it is a GRANT.
    wire: VecDeque<(u32, bool)>,
}

fuzz_target!(|input: &[u8]| {
    let mut ends = [End::default(), End::default()];
    for &byte in input {
        let (at, step) = (usize::from(byte & 1), byte >> 1);
        match step & 1 {
            0 => send(&mut ends, at),
            _ => receive(&mut ends, at),
        }
    }
    settle(&mut ends);
    // Whoever wants to say something still can.
    for at in [0, 1] {
        for _ in 0..3 * ADVERTISED {
            let before = ends[1 - at].wire.len();
            send(&mut ends, at);
            assert!(ends[1 - at].wire.len() > before, "no credit is left");
            settle(&mut ends);
        }
    }
});

fn send(ends: &mut [End; 2], at: usize) {
    if let Some(value) = ends[at].credits.send(ADVERTISED) {
        ends[1 - at].wire.push_back((value, false));
    }
    assert!(
        ends[1 - at].wire.len() as u32 <= ADVERTISED + 1,
        "no Receive"
    );
}

fn receive(ends: &mut [End; 2], at: usize) {
    let Some((value, is_grant)) = ends[at].wire.pop_front() else {
        return;
    };
    ends[at].credits.receive(value, is_grant).unwrap();
    if ends[at].credits.owes_grant(ADVERTISED) {
        if let Some(value) = ends[at].credits.send_grant(ADVERTISED) {
            ends[1 - at].wire.push_back((value, true));
        }
    }
    assert!(
        ends[1 - at].wire.len() as u32 <= ADVERTISED + 1,
        "no Receive"
    );
}

/// Receives until nothing is under way.
fn settle(ends: &mut [End; 2]) {
    for _ in 0..1000 {
        if ends.iter().all(|end| end.wire.is_empty()) {
            return;
        }
        receive(ends, 0);
        receive(ends, 1);
    }
    panic!("the ends do not come to rest");
}
