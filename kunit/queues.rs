// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Protects: no queue is longer than the device allows, whatever it says of itself; none is too
//! short for what has to fit, or else the device is refused, with the numbers.

use super::*;
use crate::kunit::{
    claim,
    drivers::limits,
    same,
    text_len, //
};
use crate::transport::unfit::Refused;
use kernel::prelude::*;

/// Numbers that a device may say, sane or not.
const NUMBERS: &[u32] = &[
    0,
    1,
    2,
    15,
    16,
    17,
    32,
    33,
    34,
    50,
    127,
    128,
    255,
    256,
    257,
    511,
    764,
    1023,
    4096,
    65535,
    1_048_576,
    u32::MAX - 1,
    u32::MAX,
];
const RANDOM: usize = 20_000;
/// As of a client.
const WISH: Wish = Wish {
    longest: 100,
    usual: 200,
    added: 10,
    messages: 128,
    beside: 34,
};

/// The device has what it is asked for, and it is enough; or it is refused, and has not.
fn judge(device: &DeviceLimits, wish: &Wish) -> Result {
    let queue = device.max_qp_wr.min(device.max_cqe);
    match Queues::new(device, wish) {
        Ok(queues) => {
            claim(
                u64::from(queues.sends) + u64::from(wish.added) <= u64::from(queue),
                "sends",
            )?;
            claim(
                queues.sends > wish.longest,
                "the longest post, and the drain",
            )?;
            claim(queues.receives < queue, "receives, and the drain")?;
            claim(
                (1..=wish.messages.max(1)).contains(&queues.messages),
                "messages",
            )?;
            same("receives", queues.receives, queues.messages + wish.beside)
        }
        Err(Unfit::ShortQueues { needed, .. }) => {
            claim(queue < needed, "it has too little")?;
            let exact = limits(needed, needed);
            // More than there can be has no number.
            claim(
                needed == u32::MAX || Queues::new(&exact, wish).is_ok(),
                "what is needed would do",
            )
        }
        Err(_) => claim(false, "of the queues"),
    }
}

/// The next of a row of numbers without order.
fn next(seed: &mut u64) -> u64 {
    *seed = seed
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    *seed >> 33
}

fn any(seed: &mut u64) -> u32 {
    let n = next(seed) as usize;
    match n % 3 {
        0 => NUMBERS.get(n / 3 % NUMBERS.len()).copied().unwrap_or(0),
        1 => next(seed) as u32 % 2048,
        _ => next(seed) as u32,
    }
}

#[kunit_tests(rpcrdma_queues)]
mod suite {
    use super::*;

    #[test]
    fn within_any_limits() -> Result {
        let mut seed = 18;
        for _ in 0..RANDOM {
            let device = limits(any(&mut seed), any(&mut seed));
            let wish = Wish {
                longest: any(&mut seed),
                usual: any(&mut seed),
                added: any(&mut seed),
                messages: any(&mut seed),
                beside: any(&mut seed),
            };
            judge(&device, &wish).inspect_err(|_| pr_err!("# {device:?}, {wish:?}\n"))?;
        }
        Ok(())
    }

    #[test]
    fn says_what_is_missing() -> Result {
        let device = limits(110, 4096);
        let short = Queues::new(&device, &WISH).err();
        let expected = Unfit::ShortQueues {
            requests: 110,
            completions: 4096,
            needed: 111,
        };
        same("short", short, Some(expected))?;
        let enough = Queues::new(&limits(111, 111), &WISH);
        let expected = Queues {
            sends: 101,
            receives: 110,
            messages: 76,
        };
        same("queues", enough.ok(), Some(expected))
    }

    #[test]
    fn what_may_do_later_is_told_from_what_never_will() -> Result {
        let short = Queues::new(&limits(1, 1), &WISH).err().ok_or(EINVAL)?;
        let refuses = Unfit::Refuses {
            what: Refused::Queues,
            size: 1,
            error: ENOMEM,
        };
        for (unfit, error) in [(short, EOPNOTSUPP), (refuses, ENOMEM)] {
            claim(text_len(format_args!("{unfit}")) != 0, "it is said")?;
            same("error", Error::from(unfit), error)?;
        }
        Ok(())
    }
}
