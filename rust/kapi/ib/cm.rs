// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Connection manager ids.
//!
//! C header: [`include/rdma/rdma_cm.h`](srctree/include/rdma/rdma_cm.h)

use crate::kapi::{
    bindings,
    ib::{
        device::{
            DeviceLimits,
            DeviceName,
            PortName, //
        },
        node::Node, //
    },
    sys::{
        address::SocketAddress,
        net::Net, //
    },
};
use core::{
    cell::Cell,
    ffi::c_void,
    ptr::NonNull, //
};
use kernel::{
    error::{
        from_err_ptr,
        to_result, //
    },
    ffi::{
        c_int,
        c_ulong, //
    },
    prelude::*,
    sync::Arc, //
};

/// The kind of an event of an id.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CmEventKind {
    /// The address was resolved and the id is bound to a device.
    AddressResolved,
    /// The address cannot be resolved.
    AddressError,
    /// The route was resolved.
    RouteResolved,
    /// There is no route.
    RouteError,
    /// The connection is up.
    Established,
    /// The connection could not be made.
    ConnectError,
    /// The peer did not answer.
    Unreachable,
    /// The peer refused.
    Rejected,
    /// The peer still knew an earlier connection under the same name: a new try may succeed.
    Stale,
    /// The connection is gone.
    Disconnected,
    /// The device is going: the id must be destroyed soon.
    DeviceRemoval,
    /// The address moved to another device.
    AddressChange,
    /// Nothing that this transport acts on.
    Other,
}

impl CmEventKind {
    /// Returns the kind of an event, with its status as [`CmEvent`] has it.
    fn from_raw(event: bindings::rdma_cm_event_type, status: i32) -> Self {
        let stale = status == bindings::ib_cm_rej_reason_IB_CM_REJ_STALE_CONN as i32;
        match event {
            bindings::rdma_cm_event_type_RDMA_CM_EVENT_REJECTED if stale => Self::Stale,
            bindings::rdma_cm_event_type_RDMA_CM_EVENT_ADDR_RESOLVED => Self::AddressResolved,
            bindings::rdma_cm_event_type_RDMA_CM_EVENT_ADDR_ERROR => Self::AddressError,
            bindings::rdma_cm_event_type_RDMA_CM_EVENT_ROUTE_RESOLVED => Self::RouteResolved,
            bindings::rdma_cm_event_type_RDMA_CM_EVENT_ROUTE_ERROR => Self::RouteError,
            bindings::rdma_cm_event_type_RDMA_CM_EVENT_ESTABLISHED => Self::Established,
            bindings::rdma_cm_event_type_RDMA_CM_EVENT_CONNECT_ERROR => Self::ConnectError,
            bindings::rdma_cm_event_type_RDMA_CM_EVENT_UNREACHABLE => Self::Unreachable,
            bindings::rdma_cm_event_type_RDMA_CM_EVENT_REJECTED => Self::Rejected,
            bindings::rdma_cm_event_type_RDMA_CM_EVENT_DISCONNECTED => Self::Disconnected,
            bindings::rdma_cm_event_type_RDMA_CM_EVENT_DEVICE_REMOVAL => Self::DeviceRemoval,
            bindings::rdma_cm_event_type_RDMA_CM_EVENT_ADDR_CHANGE => Self::AddressChange,
            _ => Self::Other,
        }
    }
}

/// An event of an id, for the time of the call that reports it.
pub(crate) struct CmEvent<'a> {
    /// Its kind.
    pub(crate) kind: CmEventKind,
    /// An errno, or the reason of a rejection as the transport below gives it.
    pub(crate) status: i32,
    /// The peer's private data, of exactly the length received. Empty where there is none.
    pub(crate) private_data: &'a [u8],
    id: NonNull<bindings::rdma_cm_id>,
}

impl CmEvent<'_> {
    /// Returns the address of the peer.
    pub(crate) fn peer(&self) -> SocketAddress {
        // SAFETY: The id is valid for the time of the call that reports the event.
        unsafe { addresses_of(self.id) }.1
    }

    /// Returns the name of the device that the id is bound to, if it is.
    pub(crate) fn device(&self) -> Option<DeviceName> {
        // SAFETY: The id is valid for the time of the call that reports the event; the device stays
        // as long as the id is bound to it.
        unsafe { Some(DeviceName::of(device_of(self.id)?.as_ptr())) }
    }
}

/// Receives the events of an id.
pub(crate) trait CmHandler: Send + Sync + 'static {
    /// Handles an event. From the connection manager's work queue, one at a time; may sleep, but
    /// must not destroy the id or wait for what does: destroying it waits for this. Nor must it
    /// connect, accept or disconnect, or shut down the id's queue pair, which all wait for whoever
    /// has the id's lock, as the caller of this has.
    fn event(&self, event: CmEvent<'_>);
}

/// A peer's wish to connect, for the time of the call that reports it.
pub(crate) struct ConnectRequest<'a> {
    id: NonNull<bindings::rdma_cm_id>,
    adopted: Cell<bool>,
    /// The peer's private data (RFC 8797), of exactly the length received.
    pub(crate) private_data: &'a [u8],
    /// RDMA Reads that the peer can serve at once. Zero if it serves none.
    pub(crate) initiator_depth: u8,
    /// RDMA Reads that the peer may begin at once.
    pub(crate) responder_resources: u8,
}

impl ConnectRequest<'_> {
    /// Returns the address of the peer.
    pub(crate) fn peer(&self) -> SocketAddress {
        // SAFETY: The id is valid for the time of the call that reports the request.
        unsafe { addresses_of(self.id) }.1
    }

    /// Takes the id of the connection over, with a handler for its events; none if that has been
    /// done.
    pub(crate) fn adopt<E: CmHandler>(&self, handler: Arc<E>) -> Option<CmId<E>> {
        if self.adopted.replace(true) {
            return None;
        }
        // SAFETY: The id is new and nobody else's, and its event handler is not called before
        // that of the listener returns. The context stays valid until the id is destroyed, since
        // the id owns a reference to it that it drops only afterwards.
        unsafe {
            let id = self.id.as_ptr();
            (*id).context = Arc::as_ptr(&handler).cast_mut().cast::<c_void>();
            (*id).event_handler = Some(CmId::<E>::event_callback);
        }
        // INVARIANT: Set above.
        Some(CmId {
            id: self.id,
            _handler: handler,
        })
    }
}

/// Receives connection requests.
pub(crate) trait ListenHandler: Send + Sync + 'static {
    /// Handles the wish of a peer to connect. From the connection manager's work queue, one at a
    /// time; may sleep. A request that is not adopted is refused. An id that was adopted must not
    /// be destroyed here, nor be waited for: that waits for this. So nothing should fail after
    /// [`adopt`].
    ///
    /// [`adopt`]: ConnectRequest::adopt
    fn request(&self, request: &ConnectRequest<'_>);
    /// Ends the use of the listener: its device goes, or its address moves. As `request`.
    fn ended(&self);
}

/// An id that listens, as [`CmId`].
pub(crate) struct ListenId<L: ListenHandler>(CmId<L>);

impl<L: ListenHandler> ListenId<L> {
    /// Listens on an address; port 0 stands for any. May sleep.
    pub(crate) fn new(
        net: &Net,
        address: &SocketAddress,
        backlog: i32,
        handler: Arc<L>,
    ) -> Result<Self> {
        // SAFETY: The callback is for this handler.
        let id = unsafe { CmId::with_callback(net, handler, Self::event_callback) }?;
        let (raw, address) = (id.as_raw(), address.as_raw().cast_mut());
        // SAFETY: The id is valid. rdma_cm copies the address, which it does not write to.
        unsafe {
            // So that IPv4 and IPv6 can share a port.
            to_result(bindings::rdma_set_afonly(raw, 1))?;
            to_result(bindings::rdma_bind_addr(raw, address))?;
            to_result(bindings::rdma_listen(raw, backlog))?;
        }
        Ok(Self(id))
    }

    /// Returns the address that it listens on, with the port.
    pub(crate) fn local_address(&self) -> SocketAddress {
        self.0.addresses().0
    }

    /// Takes an event of the id, or of one that asks to connect, from the connection manager.
    ///
    /// # Safety
    ///
    /// To be called by rdma_cm alone, with a valid event.
    unsafe extern "C" fn event_callback(
        id: *mut bindings::rdma_cm_id,
        event: *mut bindings::rdma_cm_event,
    ) -> c_int {
        // SAFETY: The context is that of the listener, which an id that asks to connect inherits,
        // and rdma_destroy_id() of the listener waits for this function to return.
        let handler = unsafe { &*(*id).context.cast::<L>().cast_const() };
        // SAFETY: The event is valid for the time of this call.
        let event = unsafe { &*event };
        match event.event {
            bindings::rdma_cm_event_type_RDMA_CM_EVENT_CONNECT_REQUEST => {
                let Some(id) = NonNull::new(id) else {
                    return 1;
                };
                // SAFETY: The `conn` member is the valid one for this event.
                let conn = unsafe { &event.param.conn };
                let request = ConnectRequest {
                    id,
                    adopted: Cell::new(false),
                    // SAFETY: They are the parameters of the event.
                    private_data: unsafe { private_data(conn) },
                    initiator_depth: conn.initiator_depth,
                    responder_resources: conn.responder_resources,
                };
                handler.request(&request);
                // Anything else than 0 has rdma_cm destroy an id that nobody has taken.
                return c_int::from(!request.adopted.get());
            }
            bindings::rdma_cm_event_type_RDMA_CM_EVENT_DEVICE_REMOVAL
            | bindings::rdma_cm_event_type_RDMA_CM_EVENT_ADDR_CHANGE => handler.ended(),
            _ => (),
        }
        0
    }
}

/// Returns the local and the peer's address; unspecified before they are known.
///
/// # Safety
///
/// `id` must be valid.
unsafe fn addresses_of(id: NonNull<bindings::rdma_cm_id>) -> (SocketAddress, SocketAddress) {
    // SAFETY: The id is valid, as the caller promises. While an address is being resolved it may be
    // written, which at worst mixes it with that of before.
    let addr = unsafe { (&raw const (*id.as_ptr()).route.addr).read_volatile() };
    let [local, peer] = [addr.src_addr, addr.dst_addr].map(SocketAddress::new);
    (local, peer)
}

/// Returns the device that an id is bound to, if it is; it stays as long as the id does.
///
/// # Safety
///
/// `id` must be valid.
unsafe fn device_of(id: NonNull<bindings::rdma_cm_id>) -> Option<NonNull<bindings::ib_device>> {
    // SAFETY: The id is valid, as the caller promises. The device is set, as a word, before the
    // event that reports the address as resolved, and not changed afterwards.
    NonNull::new(unsafe { (&raw const (*id.as_ptr()).device).read_volatile() })
}

/// Returns the private data of an event.
///
/// # Safety
///
/// `conn` must be the parameters of an event of rdma_cm, valid for `'a`.
unsafe fn private_data(conn: &bindings::rdma_conn_param) -> &[u8] {
    if conn.private_data.is_null() {
        return &[];
    }
    let (data, len) = (conn.private_data.cast(), conn.private_data_len);
    // SAFETY: These are the parameters of an event, valid as long as the result, as the caller
    // promises; rdma_cm gives `private_data_len` bytes at `private_data`.
    unsafe { core::slice::from_raw_parts(data, usize::from(len)) }
}

/// Parameters of connecting, or of accepting a connection.
pub(crate) struct ConnectParams<'a> {
    /// Private data for the peer (RFC 8797); at most 56 bytes reach it.
    pub(crate) private_data: &'a [u8],
    /// RDMA Reads that the peer may have under way at once.
    pub(crate) responder_resources: u8,
    /// RDMA Reads that are started at once.
    pub(crate) initiator_depth: u8,
    /// The number of times that the adapter sends again before it gives the connection up, 0 to 7.
    /// Of no use when accepting.
    pub(crate) retry_count: u8,
}

impl ConnectParams<'_> {
    /// Returns the parameters as rdma_cm wants them. `EINVAL` for private data that is too long.
    fn to_raw(&self) -> Result<bindings::rdma_conn_param> {
        Ok(bindings::rdma_conn_param {
            private_data: self.private_data.as_ptr().cast::<c_void>(),
            private_data_len: u8::try_from(self.private_data.len()).map_err(|_| EINVAL)?,
            responder_resources: self.responder_resources,
            initiator_depth: self.initiator_depth,
            retry_count: self.retry_count,
            // Credits make sure that a Receive is always posted (RFC 8166, section 3.3.1), so a
            // receiver that is not ready is a fault to be seen, not to be retried over.
            rnr_retry_count: 0,
            ..Default::default()
        })
    }
}

/// A connection manager id; dropping it destroys it, which waits for running event handlers.
///
/// # Invariants
///
/// `id` is a valid id whose context points to the object that `handler` holds. Nobody else
/// destroys it: our event handlers return 0 for its own events.
pub(crate) struct CmId<E> {
    id: NonNull<bindings::rdma_cm_id>,
    // After `id` is destroyed, no event handler uses it any more: it goes last.
    _handler: Arc<E>,
}

// SAFETY: The functions of rdma_cm that are called here may be called from any thread.
unsafe impl<E: Send + Sync> Send for CmId<E> {}
// SAFETY: The functions of rdma_cm that are called here may be called by any threads at once; those
// that need serialising do so under the id's own lock.
unsafe impl<E: Send + Sync> Sync for CmId<E> {}

impl<E> CmId<E> {
    /// Makes an id for reliable connections in a network namespace. May sleep.
    ///
    /// # Safety
    ///
    /// `callback` must expect the handler as the context of the id, and return 0 for events of it.
    unsafe fn with_callback(
        net: &Net,
        handler: Arc<E>,
        callback: unsafe extern "C" fn(
            *mut bindings::rdma_cm_id,
            *mut bindings::rdma_cm_event,
        ) -> c_int,
    ) -> Result<Self> {
        // SAFETY: The namespace is alive while borrowed. The callback expects this context, as the
        // caller promises; the id owns a reference to it, which it drops only afterwards.
        let id = from_err_ptr(unsafe {
            bindings::rdma_create_id(
                net.as_raw(),
                Some(callback),
                Arc::as_ptr(&handler).cast_mut().cast(),
                bindings::rdma_ucm_port_space_RDMA_PS_TCP,
                bindings::ib_qp_type_IB_QPT_RC,
            )
        })?;
        // INVARIANT: Created above with that context.
        Ok(Self {
            id: NonNull::new(id).ok_or(ENOMEM)?,
            _handler: handler,
        })
    }

    /// Returns the id for the functions of rdma_cm.
    pub(super) fn as_raw(&self) -> *mut bindings::rdma_cm_id {
        self.id.as_ptr()
    }

    /// Returns the local and the peer's address; unspecified before they are known.
    pub(crate) fn addresses(&self) -> (SocketAddress, SocketAddress) {
        // SAFETY: The id is valid by the type invariant.
        unsafe { addresses_of(self.id) }
    }
}

impl<E> Drop for CmId<E> {
    fn drop(&mut self) {
        // SAFETY: Valid and ours by the type invariant; not used afterwards.
        unsafe { bindings::rdma_destroy_id(self.id.as_ptr()) };
    }
}

impl<E: CmHandler> CmId<E> {
    /// Makes an id for a reliable connection in a network namespace. May sleep.
    pub(crate) fn new(net: &Net, handler: Arc<E>) -> Result<Self> {
        // SAFETY: The callback is for this handler.
        unsafe { Self::with_callback(net, handler, Self::event_callback) }
    }

    /// Takes an event of the id from the connection manager. May sleep.
    ///
    /// # Safety
    ///
    /// To be called by rdma_cm alone, with an id of ours and a valid event.
    unsafe extern "C" fn event_callback(
        id: *mut bindings::rdma_cm_id,
        event: *mut bindings::rdma_cm_event,
    ) -> c_int {
        // SAFETY: The context was set from an `Arc<E>` that outlives the id, by the type
        // invariant, and rdma_destroy_id() waits for this function to return.
        let handler = unsafe { &*(*id).context.cast::<E>().cast_const() };
        // SAFETY: The event is valid for the time of this call.
        let event = unsafe { &*event };
        let kind = CmEventKind::from_raw(event.event, event.status);

        let private_data = match kind {
            // SAFETY: The `conn` member is the valid one for this event.
            CmEventKind::Established => unsafe { private_data(&event.param.conn) },
            _ => &[][..],
        };

        if let Some(id) = NonNull::new(id) {
            handler.event(CmEvent {
                kind,
                status: event.status,
                private_data,
                id,
            });
        }
        // Anything else would make rdma_cm destroy an id that we own.
        0
    }

    /// Starts to resolve the address. The answer comes as an event within `timeout` ms.
    pub(crate) fn resolve_address(&self, address: &SocketAddress, timeout: u32) -> Result {
        // SAFETY: The id is valid by the type invariant. rdma_cm copies the address, which it
        // does not write to, before it returns.
        to_result(unsafe {
            bindings::rdma_resolve_addr(
                self.id.as_ptr(),
                core::ptr::null_mut(),
                address.as_raw().cast_mut(),
                timeout as c_ulong,
            )
        })
    }

    /// Starts to resolve the route. The answer comes as an event within `timeout` ms.
    pub(crate) fn resolve_route(&self, timeout: u32) -> Result {
        // SAFETY: The id is valid by the type invariant; rdma_cm checks its state.
        to_result(unsafe { bindings::rdma_resolve_route(self.id.as_ptr(), timeout as c_ulong) })
    }

    /// Starts to connect. The answer comes as an event. The id must have a queue pair.
    pub(super) fn connect(&self, params: &ConnectParams<'_>) -> Result {
        let mut raw = params.to_raw()?;
        // SAFETY: The id is valid by the type invariant; the parameters are copied.
        to_result(unsafe { bindings::rdma_connect(self.id.as_ptr(), &mut raw) })
    }

    /// Accepts the connection that the id was made for. The id must have a queue pair. May sleep.
    pub(super) fn accept(&self, params: &ConnectParams<'_>) -> Result {
        let mut raw = params.to_raw()?;
        // SAFETY: The id is valid by the type invariant; the parameters are copied. rdma_accept()
        // wants the lock of the event handler.
        unsafe {
            bindings::rdma_lock_handler(self.id.as_ptr());
            let result = to_result(bindings::rdma_accept(self.id.as_ptr(), &mut raw));
            bindings::rdma_unlock_handler(self.id.as_ptr());
            result
        }
    }

    /// Returns the device that the id is bound to, and the port. `ENODEV` before the address is
    /// resolved.
    pub(super) fn device_port(&self) -> Result<(NonNull<bindings::ib_device>, u32)> {
        let device = self.device()?;
        // SAFETY: The id is valid by the type invariant, and the device stays as long as it is
        // bound to that. The port is written before the device, but with no order for readers.
        let (port, ports) = unsafe {
            (
                (&raw const (*self.id.as_ptr()).port_num).read_volatile(),
                (*device.as_ptr()).phys_port_cnt,
            )
        };
        // There are no switches here, whose port is 0.
        if port == 0 || port > ports {
            return Err(ENODEV);
        }
        Ok((device, port))
    }

    /// Starts to disconnect. An error says only that there was no connection.
    pub(super) fn disconnect(&self) -> Result {
        // SAFETY: The id is valid by the type invariant.
        to_result(unsafe { bindings::rdma_disconnect(self.id.as_ptr()) })
    }

    /// Returns the name of the device that the id is bound to. `ENODEV` before the address is
    /// resolved.
    pub(crate) fn device_name(&self) -> Result<DeviceName> {
        // SAFETY: The device stays as long as the id is bound to it.
        Ok(unsafe { DeviceName::of(self.device()?.as_ptr()) })
    }

    /// Returns the node of the device that the id is bound to. `ENODEV` before the address is
    /// resolved.
    pub(super) fn node(&self) -> Result<Node> {
        // SAFETY: The device stays as long as the id is bound to it.
        Ok(unsafe { Node::of(self.device()?) })
    }

    /// Returns the name of the port that the id is bound to. `ENODEV` before the address is
    /// resolved.
    pub(crate) fn port_name(&self) -> Result<PortName> {
        let (device, port) = self.device_port()?;
        // SAFETY: The device stays as long as the id is bound to it.
        let device = unsafe { DeviceName::of(device.as_ptr()) };
        Ok(PortName { device, port })
    }

    /// Returns what the device can do that the id is bound to. `ENODEV` before the address is
    /// resolved.
    pub(crate) fn limits(&self) -> Result<DeviceLimits> {
        let (device, port) = self.device_port()?;
        // SAFETY: The device stays as long as the id is bound to it, and has the port.
        Ok(unsafe { DeviceLimits::of(device.as_ptr(), port) })
    }

    /// Returns the device that the id is bound to; it stays as long as the id does. `ENODEV` before
    /// the address is resolved.
    pub(super) fn device(&self) -> Result<NonNull<bindings::ib_device>> {
        // SAFETY: The id is valid by the type invariant.
        unsafe { device_of(self.id) }.ok_or(ENODEV)
    }
}
