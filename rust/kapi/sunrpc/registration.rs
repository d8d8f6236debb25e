// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The registration of all classes of transports with the RPC layer.

use crate::kapi::{
    bindings,
    sunrpc::{
        class::{
            XprtClass,
            CLIENT,
            CLIENT_QUEUE,
            REVERSE,
            SERVICE,
            SERVICE_QUEUE, //
        },
        setup::setup,
        svc::{
            ReverseOps,
            SvcListener,
            SvcOps, //
        },
        transport::Transport, //
    },
    sys::{
        module,
        single::{
            Single,
            Taken, //
        },
        workqueue::OwnedQueue, //
    },
};
use core::ffi::{
    c_int,
    CStr, //
};
use kernel::{
    error::to_result,
    prelude::*, //
};

/// The name of the class of the reverse direction.
const REVERSE_NAME: &CStr = c"rdma backchannel";

/// The right to the classes and their queues.
static CLASSES: Single = Single::new();

/// Keeps the classes registered. Its end waits for all that is of them, and so for all that uses
/// this module: it is that of the module.
///
/// # Invariants
///
/// All places are filled, and nobody else's. The first `classes` are registered: of the reverse
/// direction, of the service, of mounts.
pub(crate) struct Registered {
    classes: usize,
    _taken: Taken,
}

impl Registered {
    /// Counts a class if it was registered.
    fn count(&mut self, result: c_int) -> Result {
        to_result(result)?;
        self.classes += 1;
        Ok(())
    }
}

/// Registers the class of the transports of mounts, and both of a service, with one queue for the
/// work of all mounts, and one for that of the service. `EEXIST` when a name or an identifier is
/// taken, `EBUSY` when they are registered. May sleep.
pub(crate) fn register<T: Transport, L: SvcListener>(
    module: &'static ThisModule,
) -> Result<Registered> {
    let taken = CLASSES.take()?;
    let mounts = OwnedQueue::new(c"rpcrdma", GFP_KERNEL)?;
    let service = OwnedQueue::new(c"svcrdma", GFP_KERNEL)?;
    let client = XprtClass::new(module, T::IDENT, T::NAME, T::NETIDS, setup::<T>);
    let ident = bindings::xprt_transports_XPRT_TRANSPORT_BC_RDMA as c_int;
    let setup = ReverseOps::<L>::setup;
    let reverse = XprtClass::new(module, ident, REVERSE_NAME, [c""; 2], setup);
    let listeners = bindings::svc_xprt_class {
        xcl_name: L::NAME.as_char_ptr(),
        xcl_owner: module.as_ptr(),
        xcl_ops: SvcOps::<L>::TABLE,
        xcl_max_payload: L::MAX_PAYLOAD,
        xcl_ident: L::IDENT,
        ..bindings::svc_xprt_class::default()
    };
    // SAFETY: The places are static, and were taken above.
    unsafe {
        CLIENT_QUEUE.as_raw().write(mounts);
        SERVICE_QUEUE.as_raw().write(service);
        CLIENT.as_raw().write(client);
        SERVICE.as_raw().write(listeners);
        REVERSE.as_raw().write(reverse);
    }
    // INVARIANT: They are filled, and no class is registered.
    let mut registered = Registered {
        classes: 0,
        _taken: taken,
    };
    // SAFETY: The classes are filled and static, and their functions are written for this: those of
    // the reverse direction for connections of the service, which is the only one. An array of
    // network identifiers is behind the structure.
    unsafe {
        registered.count(bindings::xprt_register_transport(REVERSE.as_raw().cast()))?;
        registered.count(bindings::svc_reg_xprt_class(SERVICE.as_raw()))?;
        registered.count(bindings::xprt_register_transport(CLIENT.as_raw().cast()))?;
    }
    Ok(registered)
}

impl Drop for Registered {
    fn drop(&mut self) {
        // Nobody uses the reverse direction without the service, which goes first.
        // SAFETY: So many are registered by the type invariant.
        unsafe {
            if self.classes > 2 {
                bindings::xprt_unregister_transport(CLIENT.as_raw().cast());
            }
            if self.classes > 1 {
                bindings::svc_unreg_xprt_class(SERVICE.as_raw());
            }
            if self.classes > 0 {
                bindings::xprt_unregister_transport(REVERSE.as_raw().cast());
            }
        }
        // Nobody finds the classes any more. But a set-up may run for who has found one, and there
        // may be transports, where this is not the end of the module, or an initialisation that
        // failed.
        module::wait_until_unused();
        // Runs what is queued.
        // SAFETY: Filled by the type invariant. Whoever uses one has a reference to this module.
        unsafe {
            CLIENT_QUEUE.as_raw().drop_in_place();
            SERVICE_QUEUE.as_raw().drop_in_place();
        }
    }
}
