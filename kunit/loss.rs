// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Protects: a connection that is lost is given up, once, and as soon as it is up where it was lost
//! before that; one that is being closed is not given up again; the next one is delayed where it
//! did not live; and it is up only when the server has answered the first Call.

use super::*;
use crate::{
    client::xprt::ClientXprt,
    kapi::sunrpc::Unmounted,
    kunit::{
        claim,
        same, //
    },
};

/// The loss of a new connection of this mount.
fn loss(mount: &Unmounted<ClientXprt>) -> Result<Arc<LossNotifier>> {
    LossNotifier::new(
        mount.transport().state().clone(),
        SocketAddress::for_test(1),
    )
}

#[kunit_tests(rpcrdma_loss)]
mod suite {
    use super::*;

    #[test]
    fn what_is_up_and_lost_is_closed() -> Result {
        let mount = Unmounted::new()?;
        let loss = loss(&mount)?;
        loss.enable();
        claim(!mount.was_to_close(), "nothing is lost")?;
        loss.lost(CmEventKind::Disconnected);
        claim(mount.was_to_close(), "it is lost")
    }

    #[test]
    fn what_is_lost_before_it_is_up_is_closed_then() -> Result {
        let mount = Unmounted::new()?;
        let loss = loss(&mount)?;
        loss.lost(CmEventKind::DeviceRemoval);
        // There is nothing to close: the attempt may fail yet.
        claim(!mount.was_to_close(), "it is not up")?;
        loss.enable();
        claim(mount.was_to_close(), "it is up, and lost")
    }

    #[test]
    fn a_loss_is_told_once() -> Result {
        let mount = Unmounted::new()?;
        let loss = loss(&mount)?;
        loss.enable();
        let mut told = 0;
        for reason in [
            LossReason::BadMessage,
            LossReason::NotPosted,
            LossReason::Overdue,
        ] {
            loss.report(reason);
            told += u32::from(mount.was_to_close());
        }
        same("told", told, 1)
    }

    #[test]
    fn what_is_being_closed_is_left_alone() -> Result {
        let mount = Unmounted::new()?;
        let loss = loss(&mount)?;
        loss.enable();
        loss.disable(0);
        loss.lost(CmEventKind::Disconnected);
        claim(!mount.was_to_close(), "its end is no news")
    }

    #[test]
    fn memory_that_was_taken_back_is_a_reason() -> Result {
        let mount = Unmounted::new()?;
        let loss = loss(&mount)?;
        let killed = |failure| matches!(loss.reason(failure), LossReason::Killed);
        claim(!killed(WcError::flushed()), "nothing was taken back")?;
        loss.memory_taken_back();
        claim(!killed(WcError::not_posted()), "it is another's fault")?;
        claim(killed(WcError::flushed()), "the server has used it")?;
        let taken_back = |ago| {
            let then = time::jiffies().wrapping_sub(ago);
            loss.taken_back.store(then, Relaxed);
        };
        taken_back(5 * HZ);
        claim(killed(WcError::flushed()), "the server uses it still")?;
        taken_back(10 * HZ);
        claim(!killed(WcError::flushed()), "that was long ago")
    }

    #[test]
    fn a_short_life_is_followed_by_a_delay_that_grows() -> Result {
        let mount = Unmounted::<ClientXprt>::new()?;
        let delay_after = |lived: Jiffies, messages, reason| {
            mount.attempted();
            let loss = loss(&mount)?;
            loss.enable();
            let since = time::jiffies().wrapping_sub(lived);
            loss.since.store(since, Relaxed);
            loss.report(reason);
            loss.disable(messages);
            Ok::<_, Error>(mount.backoff())
        };
        let first = delay_after(0, 1, LossReason::BadMessage)?;
        claim(first > 0, "the first delay")?;
        let few = USEFUL_MESSAGES - 1;
        let closed = || LossReason::Event(CmEventKind::Disconnected);
        let short = delay_after(2 * HZ, few, closed())?;
        same("of few words", short, 2 * first)?;
        let bad = delay_after(0, u32::MAX - 1, LossReason::BadMessage)?;
        same("that broke the protocol", bad, 4 * first)?;
        let long = delay_after(USEFUL_LIFE, 1, closed())?;
        same("after a long life", long, 0)?;
        let busy = USEFUL_MESSAGES;
        same("after a busy life", delay_after(0, busy, closed())?, 0)?;
        claim(delay_after(0, 1, closed())? > 0, "there is a delay again")?;
        let overdue = delay_after(0, 1, LossReason::Overdue)?;
        same("when a Reply was overdue", overdue, 0)?;
        let failed = |failure| delay_after(0, u32::MAX - 1, LossReason::Failed(failure));
        claim(failed(WcError::not_posted())? > 0, "it would fail again")?;
        same("ended meanwhile", failed(WcError::flushed())?, 0)
    }

    #[test]
    fn each_reason_has_words() -> Result {
        for reason in [
            LossReason::Failed(WcError::flushed()),
            LossReason::Event(CmEventKind::Other),
            LossReason::Silent,
        ] {
            claim(!reason.words().is_empty(), "it is said")?;
        }
        Ok(())
    }

    #[test]
    fn an_attempt_that_fails_resets_no_delay() -> Result {
        let mount = Unmounted::<ClientXprt>::new()?;
        mount.attempted();
        let loss = loss(&mount)?;
        loss.report(LossReason::NoAnswer);
        loss.disable(0);
        claim(mount.backoff() > 0, "the next attempt is delayed")
    }

    #[test]
    fn the_first_call_is_waited_for() -> Result {
        let mount = Unmounted::<ClientXprt>::new()?;
        let unanswered = loss(&mount)?;
        same("no answer", unanswered.wait_answer(1), Err(EHOSTUNREACH))?;
        let answered = loss(&mount)?;
        answered.answered();
        same("an answer", answered.wait_answer(1), Ok(()))?;
        let lost = loss(&mount)?;
        lost.lost(CmEventKind::Disconnected);
        lost.answered();
        same("lost", lost.wait_answer(1), Err(ENOTCONN))
    }
}
