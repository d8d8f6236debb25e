// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Protects: no message goes out for which the peer has no Receive; Replies and the question
//! whether the peer is there find a credit however many Calls there are; a GRANT never waits for
//! one.

use super::*;
use crate::{
    kunit::{
        claim,
        same, //
    },
    transport::flow::{
        credits::Credits,
        grant::Grant,
        Flow, //
    },
};
use kernel::prelude::*;
use xdr::{
    Limits,
    Version, //
};

/// The header type of a Call without chunks, and of a GRANT.
const CALL: u32 = 10;
const GRANT: u32 = 5;
const POSTED: u32 = 32;

const BOUNDS: Bounds = Bounds {
    calls: Limits::floor(4096),
    replies: Limits::floor(4096),
    call_octets: 4096,
    reply_octets: 4096,
    fragments: 1,
    property_octets: 0,
};

fn messages() -> Messages {
    Messages::new(BOUNDS)
}

/// A message comes that tells a credit value.
fn receive(state: &mut Messages, header_type: u32, credits: u32) -> Result {
    let mut message = [0; 16];
    let words = [1, Version::Two.number(), credits, header_type];
    for (to, word) in message.chunks_exact_mut(4).zip(words) {
        to.copy_from_slice(&word.to_be_bytes());
    }
    // A Call that ends there is not well formed, and tells its credit value all the same.
    let arrived = state.arrive(&message).map(|_| ());
    arrived.map_err(|_| EPROTO)
}

/// Returns the state of a connection whose peer takes so many messages more.
fn with_credits(credits: u32) -> Result<Messages> {
    let mut state = messages();
    receive(&mut state, CALL, credits)?;
    Ok(state)
}

#[kunit_tests(rpcrdma_messages)]
mod suite {
    use super::*;

    #[test]
    fn the_first_message_has_a_credit() -> Result {
        let mut state = messages();
        claim(state.take(), "the first")?;
        claim(!state.take(), "no second one")
    }

    #[test]
    fn a_reply_waits_for_the_credits_of_all_its_messages() -> Result {
        let mut state = with_credits(3)?;
        claim(state.may_post(Charge::AtPost, 3), "as many")?;
        claim(!state.may_post(Charge::AtPost, 4), "one more")?;
        state.stamp(Charge::AtPost, 3, POSTED);
        claim(!state.may_post(Charge::AtPost, 1), "none is left")?;
        receive(&mut state, CALL, 4)?;
        claim(state.may_post(Charge::AtPost, 1), "one came")
    }

    #[test]
    fn calls_leave_a_credit() -> Result {
        let mut state = with_credits(4)?;
        claim(state.take_for_call(false), "a Call of three")?;
        claim(!state.take_for_more(3), "too few for the rest")?;
        claim(state.take_for_more(2), "enough")?;
        claim(!state.take_for_call(false), "the last is not for Calls")?;
        same("messages of a Call", state.most_of_call(), 3)?;
        claim(state.may_post(Charge::AtPost, 1), "a Reply has it")?;
        claim(state.take_for_call(true), "or a Call beside none")?;
        state.put(2);
        claim(state.take_for_call(false), "given back")
    }

    #[test]
    fn a_grant_goes_beside_the_credits() -> Result {
        let mut state = with_credits(1)?;
        claim(state.take(), "the last")?;
        claim(state.may_post(Charge::Beside, 1), "it may go")?;
        claim(state.begin_grant(POSTED), "it is owed")?;
        claim(!state.begin_grant(POSTED), "one at a time")?;
        // The Receive that is kept for the peer's own GRANT is not advertised.
        same("told", state.stamp(Charge::Beside, 1, POSTED), POSTED)?;
        claim(!state.begin_grant(POSTED), "nothing is owed")?;
        claim(!state.may_post(Charge::Beside, 1), "no second one")
    }

    #[test]
    fn a_message_tells_what_a_grant_would() -> Result {
        let mut state = with_credits(8)?;
        claim(state.begin_grant(POSTED), "owed")?;
        state.not_granted();
        same("told", state.stamp(Charge::AtPost, 1, POSTED), POSTED)?;
        claim(!state.begin_grant(POSTED), "not owed any more")
    }

    #[test]
    fn what_has_no_receive_is_not_told() -> Result {
        let mut state = with_credits(8)?;
        same("told", state.stamp(Charge::AtPost, 1, 2), 2)?;
        receive(&mut state, CALL, 8)?;
        // Beside what was told.
        receive(&mut state, GRANT, 8)?;
        claim(!state.begin_grant(0), "there is no Receive")?;
        same("told", state.stamp(Charge::AtPost, 1, 0), 2)?;
        claim(state.begin_grant(1), "there is one for the next GRANT")?;
        same("told", state.stamp(Charge::Beside, 1, 1), 3)
    }

    #[test]
    fn grants_are_not_answered_by_grants() -> Result {
        let mut state = with_credits(8)?;
        state.stamp(Charge::AtPost, 1, POSTED);
        for _ in 0..POSTED {
            receive(&mut state, GRANT, 8)?;
            claim(!state.begin_grant(MOST_MESSAGES), "no answer")?;
        }
        Ok(())
    }

    #[test]
    fn a_value_that_nobody_can_mean_ends_the_connection() -> Result {
        let mut state = with_credits(8)?;
        claim(receive(&mut state, CALL, 1 << 31).is_err(), "too many")
    }

    #[test]
    fn one_call_at_a_time_leaves_receives_for_a_long_reply() -> Result {
        let mut flow = Flow::new(
            Credits::new(0, POSTED, true)?,
            Grant::new(POSTED),
            Some(&BOUNDS),
        )?;
        flow.settle(Version::Two);
        let mut posted = 0;
        let mut messages = 0;
        while messages < 3 * POSTED {
            let wanted = flow.credits.wanted_receives().unwrap_or(posted);
            flow.credits.posted(wanted.saturating_sub(posted));
            posted = posted.max(wanted);
            claim(posted > MOST_MESSAGES, "room for it, and a GRANT")?;
            flow.credits.received();
            posted = posted.saturating_sub(1);
            messages += 1;
        }
        Ok(())
    }
}
