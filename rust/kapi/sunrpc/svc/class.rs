// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The classes of a service: of its listeners and connections, and of the reverse direction.

use crate::kapi::{
    bindings,
    sunrpc::{
        class::{
            Registered,
            XprtClass,
            REVERSE,
            SERVICE, //
        },
        svc::{
            ops::SvcOps,
            reverse::ReverseOps,
            SvcListener, //
        },
    },
    sys::workqueue::OwnedQueue, //
};
use core::ffi::{
    c_int,
    CStr, //
};
use kernel::prelude::*;

/// The name of the class of the reverse direction.
const REVERSE_NAME: &CStr = c"rdma backchannel";

/// Both classes of one service are registered while this lives.
pub(crate) struct RegisteredService {
    // Nobody uses the reverse direction without the service, which goes first.
    _service: Registered<bindings::svc_xprt_class>,
    _reverse: Registered<XprtClass>,
}

/// Registers both classes of a service. `EEXIST` when a name or an identifier is taken, `EBUSY`
/// when a service is registered. May sleep.
pub(crate) fn register_service<T: SvcListener>(
    module: &'static ThisModule,
) -> Result<RegisteredService> {
    let queue = OwnedQueue::new(c"svcrdma", GFP_KERNEL)?;
    let ident = bindings::xprt_transports_XPRT_TRANSPORT_BC_RDMA as c_int;
    let reverse = XprtClass::new(
        module,
        ident,
        REVERSE_NAME,
        [c""; 2],
        ReverseOps::<T>::setup,
    );
    // SAFETY: The set-up is written for this, and makes transports for connections of `T`: while
    // this class is registered so is no other service.
    let _reverse = unsafe { REVERSE.register(reverse, None) }?;
    let service = bindings::svc_xprt_class {
        xcl_name: T::NAME.as_char_ptr(),
        xcl_owner: module.as_ptr(),
        xcl_ops: SvcOps::<T>::TABLE,
        xcl_max_payload: T::MAX_PAYLOAD,
        xcl_ident: T::IDENT,
        ..bindings::svc_xprt_class::default()
    };
    // SAFETY: The table is written for this.
    let _service = unsafe { SERVICE.register(service, Some(queue)) }?;
    Ok(RegisteredService { _service, _reverse })
}
