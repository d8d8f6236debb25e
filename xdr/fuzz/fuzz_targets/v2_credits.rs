// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Two ends whose Receives come and go, that send when they may, and a wire between them: nobody
//! receives a message that it has no Receive for, each can go on with as long a message as the
//! other takes, and neither says anything when nobody has something to say.

#![no_main]

use std::collections::VecDeque;

use libfuzzer_sys::fuzz_target;
use xdr::v2::Credits;

struct End {
    credits: Credits,
    /// Receives, beside the one for a GRANT; those that were told of stay.
    advertised: u32,
    /// Messages that it takes at a time.
    least: u32,
    told: u32,
    received: u32,
    /// Messages on their way to it: the credit value, and whether it is a GRANT.
    wire: VecDeque<(u32, bool)>,
}

impl End {
    fn new() -> Self {
        Self {
            credits: Credits::new(),
            advertised: 2,
            least: 1,
            told: 1,
            received: 0,
            wire: VecDeque::new(),
        }
    }

    /// Notes what the peer was told.
    fn tell(&mut self, value: u32) {
        assert!(value >= self.told, "credits are taken back");
        self.told = value;
    }
}

fuzz_target!(|input: &[u8]| {
    let mut ends = [End::new(), End::new()];
    for &byte in input {
        let at = usize::from(byte & 1);
        match byte >> 1 & 3 {
            0 => send(&mut ends, at),
            1 | 2 => receive(&mut ends, at),
            _ => {
                // More than it takes at a time, as the end of this wants it.
                let least = 1 + u32::from(byte >> 3 & 3);
                ends[at].least = least;
                ends[at].advertised = least + 1 + u32::from(byte >> 5);
                grant(&mut ends, at);
            }
        }
    }
    settle(&mut ends);
    // Whoever has much to say still can, in one go.
    for at in [0, 1] {
        for _ in 0..20 {
            for _ in 0..ends[1 - at].least {
                let before = ends[1 - at].wire.len();
                send(&mut ends, at);
                assert!(ends[1 - at].wire.len() > before, "no credit is left");
            }
            settle(&mut ends);
        }
    }
});

fn send(ends: &mut [End; 2], at: usize) {
    let end = &mut ends[at];
    if let Some(value) = end.credits.send(end.advertised) {
        end.tell(value);
        deliver(&mut ends[1 - at], value, false);
    }
}

/// Puts a message on the wire to an end, which has a Receive for it.
fn deliver(to: &mut End, value: u32, is_grant: bool) {
    to.wire.push_back((value, is_grant));
    let arriving = to.received + to.wire.len() as u32;
    assert!(arriving <= to.told + 1, "no Receive");
}

fn receive(ends: &mut [End; 2], at: usize) {
    let end = &mut ends[at];
    let Some((value, is_grant)) = end.wire.pop_front() else {
        return;
    };
    end.received += 1;
    end.credits.receive(value, is_grant).unwrap();
    grant(ends, at);
}

/// Has an end send a GRANT if it owes one.
fn grant(ends: &mut [End; 2], at: usize) {
    let end = &mut ends[at];
    let may_owe = end.credits.may_owe_grant(end.least);
    if may_owe && end.credits.owes_grant(end.advertised + 1, end.least) {
        if let Some(value) = end.credits.send_grant(end.advertised) {
            end.tell(value);
            deliver(&mut ends[1 - at], value, true);
        }
    }
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
