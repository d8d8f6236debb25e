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

    /// Whether Call 5 is refused whose mark and suspicion are so old.
    fn refused_when(mark: Jiffies, suspicion: Jiffies) -> Result<bool> {
        let poison = Poison::new()?;
        let client = SocketAddress::for_test(1);
        let before = |ago| time::jiffies().wrapping_sub(ago);
        poison.lost(&client, Some(5));
        poison.lost(&client, Some(5));
        for suspect in poison.suspects.lock().iter_mut() {
            suspect.made = before(suspicion);
        }
        poison.lost(&client, Some(5));
        for made in poison.marks.lock().iter_mut() {
            made.made = before(mark);
        }
        Ok(poison.take(&client, 5, 0))
    }

    #[test]
    fn marks_and_suspicions_are_forgotten() -> Result {
        claim(refused_when(60 * HZ, 60 * HZ)?, "a minute ago")?;
        claim(!refused_when(120 * HZ, 0)?, "an old mark")?;
        claim(!refused_when(0, 120 * HZ)?, "an old suspicion")
    }

    #[test]
    fn who_was_refused_begins_anew() -> Result {
        let poison = Poison::new()?;
        let client = SocketAddress::for_test(1);
        for _ in 0..LOSSES {
            poison.lost(&client, Some(5));
        }
        claim(poison.take(&client, 5, 0), "alone at each")?;
        poison.lost(&client, Some(5));
        claim(!poison.take(&client, 5, 0), "one loss more")
    }

    /// Whether Call 5 is refused after losses at which these were alone.
    fn refused_after(losses: &[Option<u32>]) -> Result<bool> {
        let poison = Poison::new()?;
        let (client, other) = (SocketAddress::for_test(1), SocketAddress::for_test(2));
        for only in losses {
            poison.lost(&client, *only);
            // Others lose theirs meanwhile.
            poison.lost(&other, Some(6));
        }
        claim(!poison.take(&client, 4, 0), "another Call")?;
        claim(!poison.take(&other, 5, 0), "another client")?;
        Ok(poison.take(&client, 5, 0))
    }

    #[test]
    fn alone_at_three_losses() -> Result {
        claim(refused_after(&[Some(5), Some(5), Some(5)])?, "alone")?;
        claim(
            refused_after(&[Some(4), None, Some(5), Some(5), Some(5)])?,
            "later ones",
        )
    }

    #[test]
    fn a_loss_may_be_nobodys_fault() -> Result {
        claim(!refused_after(&[Some(5), Some(5)])?, "two losses")?;
        claim(
            !refused_after(&[Some(5), Some(5), None, Some(5)])?,
            "not alone in between",
        )?;
        claim(
            !refused_after(&[Some(5), Some(4), Some(5), Some(5)])?,
            "another one in between",
        )
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
