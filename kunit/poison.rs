// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Protects: a Call at fault is refused once, on the next connection of the same client, and no
//! other Call ever.

use super::*;
use crate::kunit::claim;

#[kunit_tests(rpcrdma_poison)]
mod suite {
    use super::*;

    #[test]
    fn refused_once() -> Result {
        let poison = Poison::new()?;
        let (client, other) = (SocketAddress::for_test(1), SocketAddress::for_test(2));
        claim(!poison.take(&client, 5, 0), "nothing is marked")?;
        claim(!poison.is_any(), "there are none")?;
        poison.mark(&client, 5);
        poison.mark(&client, 5);
        claim(!poison.take(&client, 6, 0), "another Call")?;
        claim(!poison.take(&other, 5, 0), "another client")?;
        claim(
            !poison.take(&client, 5, FIRST_CALLS),
            "too late to be a retransmission",
        )?;
        claim(poison.take(&client, 5, FIRST_CALLS - 1), "the one")?;
        claim(!poison.take(&client, 5, 0), "once is enough")?;
        claim(!poison.is_any(), "there is none any more")
    }

    /// Whether a Call is refused whose mark is so old.
    fn refused_after(ago: Jiffies) -> Result<bool> {
        let poison = Poison::new()?;
        let client = SocketAddress::for_test(1);
        poison.mark(&client, 5);
        for mark in poison.marks.lock().iter_mut() {
            mark.made = time::jiffies().wrapping_sub(ago);
        }
        Ok(poison.take(&client, 5, 0))
    }

    #[test]
    fn marks_are_forgotten() -> Result {
        claim(refused_after(60 * HZ)?, "a minute ago")?;
        claim(!refused_after(120 * HZ)?, "an old mark")
    }

    #[test]
    fn nobody_has_those_of_others_go() -> Result {
        let poison = Poison::new()?;
        let (client, other) = (SocketAddress::for_test(1), SocketAddress::for_test(2));
        poison.mark(&client, 5);
        for xid in 0..2 * MOST as u32 {
            poison.mark(&other, xid);
        }
        poison.mark(&client, 6);
        claim(poison.take(&client, 5, 0), "the first")?;
        claim(poison.take(&client, 6, 0), "the last")
    }

    #[test]
    fn the_oldest_go_first() -> Result {
        let poison = Poison::new()?;
        let client = SocketAddress::for_test(1);
        for xid in 0..=MOST as u32 {
            poison.mark(&client, xid);
        }
        claim(!poison.take(&client, 0, 0), "the oldest")?;
        claim(poison.take(&client, 1, 0), "the next")?;
        claim(poison.take(&client, MOST as u32, 0), "the newest")
    }
}
