// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Protects: why there can be no connection is said once of each outage; its end is said once, and
//! not of a connection that is lost already; the first connection ends none.

use super::*;
use crate::{
    kapi::sys::time::HZ,
    kunit::{
        claim,
        same,
        says,
        text_len, //
    },
};

const WHY: &str = "it was closed";

#[kunit_tests(rpcrdma_outage)]
mod suite {
    use super::*;

    #[test]
    fn the_reason_is_told_once_of_each() -> Result {
        let mut outage = Outage::new();
        for number in 0..2 {
            claim(outage.is_news(EHOSTUNREACH), "the first attempt fails")?;
            claim(
                !outage.is_news(EHOSTUNREACH),
                "the second fails as the first",
            )?;
            let ended = outage.end(ConnectionId(number));
            claim(ended.is_some(), "there is a connection")?;
        }
        Ok(())
    }

    #[test]
    fn the_first_connection_ends_none() -> Result {
        let mut outage = Outage::new();
        let first = outage.end(ConnectionId(0));
        same("nothing was lost", first, None)?;
        outage.lost(ConnectionId(0), WHY);
        claim(outage.end(ConnectionId(1)).is_some(), "something was")?;
        same("the end was told", outage.end(ConnectionId(2)), None)
    }

    #[test]
    fn what_is_lost_already_ends_none() -> Result {
        let mut outage = Outage::new();
        outage.lost(ConnectionId(0), WHY);
        outage.lost(ConnectionId(1), WHY);
        same("lost before it was up", outage.end(ConnectionId(1)), None)?;
        claim(outage.end(ConnectionId(2)).is_some(), "the next is up")
    }

    #[test]
    fn what_is_told_late_begins_none() -> Result {
        let mut outage = Outage::new();
        outage.lost(ConnectionId(3), WHY);
        claim(outage.end(ConnectionId(4)).is_some(), "the next is up")?;
        // Of the one before it.
        outage.lost(ConnectionId(3), WHY);
        same("since", outage.since, None)
    }

    #[test]
    fn it_is_as_long_as_since_the_first_loss() -> Result {
        let mut outage = Outage::new();
        let ago = time::jiffies().wrapping_sub(7 * HZ);
        outage.since = Some(ago);
        // What fails later, and is lost later, does not shorten it.
        outage.lost(ConnectionId(0), WHY);
        claim(outage.is_news(EHOSTUNREACH), "an attempt fails")?;
        same("since", outage.since, Some(ago))?;
        let length = outage.end(ConnectionId(1)).unwrap_or(0);
        claim(length >= 7 * HZ, "its length")
    }

    #[test]
    fn the_status_says_why_and_since_when() -> Result {
        let mut outage = Outage::new();
        let told = |outage: &Outage, text| says(format_args!("{outage}"), text);
        told(&outage, "not connected")?;
        // Nobody may want another.
        outage.lost(ConnectionId(0), WHY);
        told(&outage, "not connected, it was closed")?;
        outage.is_news(ECONNREFUSED);
        told(&outage, "no connection for 0 s, it is refused")?;
        outage.lost(ConnectionId(2), "it was lost at once");
        told(&outage, "no connection for 0 s, it was lost at once")?;
        outage.since = Some(time::jiffies().wrapping_sub(7 * HZ));
        told(&outage, "no connection for 7 s, it was lost at once")?;
        claim(outage.is_under_way(), "it lasts")?;
        outage.end(ConnectionId(3));
        claim(!outage.is_under_way(), "it is over")?;
        told(&outage, "not connected")?;
        let losses = outage.losses().iter().map(|(_, count)| count).sum();
        same("losses", losses, 2u32)
    }

    #[test]
    fn a_loss_after_a_loss_was_a_try() -> Result {
        let mut outage = Outage::new();
        outage.lost(ConnectionId(0), WHY);
        outage.lost(ConnectionId(1), WHY);
        says(
            format_args!("{outage}"),
            "no connection for 0 s, it was closed",
        )
    }

    #[test]
    fn each_reason_is_in_words() -> Result {
        let errors = [
            EPROTO,
            ENETUNREACH,
            EHOSTUNREACH,
            ECONNREFUSED,
            ENODEV,
            EOPNOTSUPP,
            ENOMEM,
        ];
        for error in errors {
            let words = text_len(format_args!("{}", Unmade(error)));
            let name = text_len(format_args!("{error:?}"));
            claim(words > name, "it is in words")?;
        }
        Ok(())
    }
}
