// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Protects: whatever fails while a connection is made, its objects go once and in order, and what
//! was refused may be tried again.

use crate::transport::tests::endpoint::*;

#[kunit_tests(rpcrdma_creation)]
mod suite {
    use super::*;

    #[test]
    fn creation_fails_at_each_step() -> Result {
        for (request, after, made, unmade) in [
            (Request::CreateCq, 0, 0, &[][..]),
            (Request::CreateCq, 1, 1, &[Request::DestroyCq]),
            (
                Request::AllocPd,
                0,
                2,
                &[Request::DestroyCq, Request::DestroyCq],
            ),
            (
                Request::CreateQp,
                0,
                3,
                &[Request::DestroyCq, Request::DestroyCq, Request::DeallocPd],
            ),
            (Request::ModifyQp, 0, 4, &UNMADE),
            (Request::AllocMr, 0, 5, &UNMADE),
        ] {
            let balance = Balance::begin();
            let device = Device::new()?;
            let gone = counter()?;
            device.refuse(request, after);
            let made_qp = make(device.id(silent(&gone)?)?, PLAN, &gone);
            same("error", made_qp.err(), Some(ENOMEM))?;
            let mut expected = KVec::new();
            expected.extend_from_slice(MADE.get(..made).unwrap_or(&[]), GFP_KERNEL)?;
            expected.extend_from_slice(unmade, GFP_KERNEL)?;
            device.expect_all(&expected)?;
            // The id and its handler, and the queue pair's.
            same("gone", gone.load(Acquire), 2)?;
            device.expect_nothing_left()?;
            drop(device);
            balance.end()?;
        }
        Ok(())
    }

    #[test]
    fn what_was_refused_may_be_tried_again() -> Result {
        for (request, expected) in [
            (Request::CreateCq, Part::CompletionQueue),
            (Request::CreateQp, Part::QueuePair),
            (Request::AllocMr, Part::Region),
        ] {
            let balance = Balance::begin();
            let device = Device::new()?;
            let gone = counter()?;
            device.refuse(request, 0);
            let made = try_to_make(device.id(silent(&gone)?)?, PLAN, &gone);
            let Err(NotMade::Refused(id, refused, e)) = made else {
                return Err(EINVAL);
            };
            same("refused", refused, expected)?;
            same("error", e, ENOMEM)?;
            device.expect_nothing_left()?;
            // The queue pair's handler alone.
            same("gone", gone.load(Acquire), 1)?;
            let qp = make(id, PLAN, &gone)?;
            drop(qp);
            device.expect_nothing_left()?;
            drop(device);
            balance.end()?;
        }
        Ok(())
    }

    #[test]
    fn creation_without_a_device() -> Result {
        let gone = counter()?;
        let id = fake::unbound_id(silent(&gone)?)?;
        let made = make(id, PLAN, &gone);
        same("error", made.err(), Some(ENODEV))?;
        same("gone", gone.load(Acquire), 2)
    }

    #[test]
    fn creation_without_room_for_the_drain() -> Result {
        let device = Device::new()?;
        let gone = counter()?;
        let mut plan = PLAN;
        plan.qp.max_send_wr = 0;
        let made = make(device.id(silent(&gone)?)?, plan, &gone);
        same("error", made.err(), Some(EINVAL))?;
        device.expect_all(&[])?;
        same("gone", gone.load(Acquire), 2)
    }
}
