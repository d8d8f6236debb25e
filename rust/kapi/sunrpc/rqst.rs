// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Requests of the RPC layer.

use super::super::{
    bindings,
    ib::Fenced,
    sys::bit::test_bit, //
};
use super::{
    backchannel::Backchannel,
    buffer::RpcBuffer,
    task::Task,
    transport::Transport,
    xdr_buf::XdrBuf,
    xprt::Xprt, //
};
use core::{
    marker::PhantomData,
    ops::Deref,
    ptr::NonNull, //
};
use kernel::{
    prelude::*,
    sync::ArcBorrow, //
};

/// A request, for the time of a call from the RPC layer to send it.
///
/// # Invariants
///
/// `raw` is a valid request, which nobody else changes for `'a`.
pub(crate) struct Message<'a> {
    raw: NonNull<bindings::rpc_rqst>,
    _borrow: PhantomData<&'a bindings::rpc_rqst>,
}

impl<'a> Message<'a> {
    /// # Safety
    ///
    /// `raw` must be as the type invariant says.
    pub(super) unsafe fn from_raw(raw: NonNull<bindings::rpc_rqst>) -> Self {
        // INVARIANT: By contract.
        Self {
            raw,
            _borrow: PhantomData,
        }
    }

    fn raw(&self) -> &bindings::rpc_rqst {
        // SAFETY: Valid by the type invariant.
        unsafe { self.raw.as_ref() }
    }

    /// The transaction identifier, in host byte order.
    pub(crate) fn xid(&self) -> u32 {
        u32::from_be(self.raw().rq_xid)
    }

    /// The task that sends it.
    pub(crate) fn task(&self) -> Task<'_> {
        // SAFETY: A request that is sent has a task, which stays, with its client, until the
        // transport has sent it: it is the task that calls, or the request is pinned.
        unsafe { Task::from_raw(self.raw().rq_task) }
    }

    /// The message to send.
    pub(crate) fn send_buf(&self) -> XdrBuf<'a> {
        // SAFETY: By the type invariant the request is valid, and what it sends stays as it is.
        unsafe { XdrBuf::to_send(self.raw) }
    }

    /// Notes that the message goes out now, with its full length.
    pub(crate) fn note_sent(&self) {
        // SAFETY: Valid, and nobody else changes it, by the type invariant.
        unsafe {
            let rqst = self.raw.as_ptr();
            (*rqst).rq_xtime = bindings::ktime_get();
            (*rqst).rq_xmit_bytes_sent += (*rqst).rq_snd_buf.len as usize;
        }
    }
}

/// A Call to send.
///
/// # Invariants
///
/// The request is of a transport of type `T`, and its buffer of [`RpcBuffer`].
pub(crate) struct Rqst<'a, T: Transport> {
    message: Message<'a>,
    _transport: PhantomData<T>,
}

impl<'a, T: Transport> Deref for Rqst<'a, T> {
    type Target = Message<'a>;

    fn deref(&self) -> &Message<'a> {
        &self.message
    }
}

impl<'a, T: Transport> Rqst<'a, T> {
    /// # Safety
    ///
    /// `raw` must be as the type invariants of this and of [`Message`] say.
    pub(super) unsafe fn from_raw(raw: NonNull<bindings::rpc_rqst>) -> Self {
        // INVARIANT: By contract.
        Self {
            // SAFETY: By contract.
            message: unsafe { Message::from_raw(raw) },
            _transport: PhantomData,
        }
    }

    /// The transport's state of the RPC.
    pub(crate) fn call(&self) -> ArcBorrow<'a, T::Call> {
        // SAFETY: By the type invariant.
        unsafe { RpcBuffer::call_of(self.raw().rq_buffer.cast()) }
    }

    /// Room for the Reply.
    pub(crate) fn receive_buf(&self) -> XdrBuf<'a> {
        // SAFETY: As for `send_buf`.
        unsafe { XdrBuf::from_raw(&raw mut (*self.raw.as_ptr()).rq_rcv_buf) }
    }

    /// The cookie of the connection on which this request was last sent.
    pub(crate) fn connect_cookie(&self) -> u32 {
        self.raw().rq_connect_cookie
    }

    /// Direct placement of single data items is allowed: no security flavor looks into the
    /// message (RFC 8267, section 4.3).
    pub(crate) fn may_place_directly(&self) -> bool {
        let cred = self.raw().rq_cred;
        if cred.is_null() {
            return true;
        }
        // SAFETY: The request holds its credential, and the credential its flavor.
        let touches = unsafe {
            let auth = (*cred).cr_auth;
            test_bit(
                bindings::RPCAUTH_AUTH_DATATOUCH,
                &raw const (*auth).au_flags,
            )
        };
        !touches
    }

    /// Program and version of the Call.
    pub(crate) fn program(&self) -> (u32, u32) {
        // SAFETY: A request that is sent has a task, and that a client.
        unsafe {
            let client = (*self.raw().rq_task).tk_client;
            ((*client).cl_prog, (*client).cl_vers)
        }
    }

    /// A Reply will come.
    pub(crate) fn reply_expected(&self) -> bool {
        // SAFETY: A request that is sent has a task.
        unsafe { bindings::rpc_reply_expected(self.raw().rq_task) != 0 }
    }

    /// Takes one unit of the congestion window, or has it already. False when there is none.
    pub(crate) fn take_credit(&self, xprt: &Xprt) -> bool {
        // SAFETY: Both are valid.
        unsafe { bindings::xprt_request_get_cong(xprt.as_raw(), self.raw.as_ptr()) }
    }
}

/// A Reply of the callback service to send.
///
/// # Invariants
///
/// The request is one that [`Backchannel::receive`] handed out, and not given back yet.
pub(crate) struct ReverseRqst<'a>(Message<'a>);

impl<'a> Deref for ReverseRqst<'a> {
    type Target = Message<'a>;

    fn deref(&self) -> &Message<'a> {
        &self.0
    }
}

impl ReverseRqst<'_> {
    /// # Safety
    ///
    /// `raw` must be as the type invariants of this and of [`Message`] say.
    pub(super) unsafe fn from_raw(raw: NonNull<bindings::rpc_rqst>) -> Self {
        // INVARIANT: By contract.
        // SAFETY: By contract.
        Self(unsafe { Message::from_raw(raw) })
    }

    /// The Reply is about to be sent.
    pub(crate) fn note_answered(&self) {
        // SAFETY: By the type invariant.
        unsafe { Backchannel::note_answered(self.raw.as_ptr()) };
    }

    /// The connection that the Call came by.
    pub(crate) fn connection(&self) -> u64 {
        // SAFETY: By the type invariant.
        unsafe { Backchannel::connection_of(self.raw.as_ptr()) }
    }
}

/// A request that waits for its Reply, held so that it cannot go.
///
/// Dropping it lets it wait on.
///
/// # Invariants
///
/// `raw` is a valid request of a transport of type `T` in its receive queue, pinned by us. Its
/// task, its transport and its buffer stay until it is unpinned.
pub(crate) struct PinnedRqst<T: Transport> {
    raw: NonNull<bindings::rpc_rqst>,
    _transport: PhantomData<T>,
}

// SAFETY: A pinned request may be handled by any thread.
unsafe impl<T: Transport> Send for PinnedRqst<T> {}

impl<T: Transport> PinnedRqst<T> {
    /// Finds the request that waits for a Reply of this XID.
    ///
    /// # Safety
    ///
    /// `xprt` must be a transport of type `T`.
    pub(super) unsafe fn find(xprt: &Xprt, xid: u32) -> Option<Self> {
        let raw = xprt.with_queue_lock(|xprt| {
            // SAFETY: The queue lock is held; a request that is found stays while it is.
            unsafe {
                let rqst = bindings::xprt_lookup_rqst(xprt, xid.to_be());
                if !rqst.is_null() {
                    bindings::xprt_pin_rqst(rqst);
                }
                rqst
            }
        });
        // INVARIANT: Pinned above.
        Some(Self {
            raw: NonNull::new(raw)?,
            _transport: PhantomData,
        })
    }

    fn xprt(&self) -> &Xprt {
        // SAFETY: By the type invariant the transport stays.
        unsafe { Xprt::from_raw((*self.raw.as_ptr()).rq_xprt) }
    }

    /// The transport's state of the RPC.
    pub(crate) fn call(&self) -> ArcBorrow<'_, T::Call> {
        // SAFETY: The buffer stays by the type invariant: it is freed after the request was
        // taken from the receive queue, which waits for the pin.
        unsafe { RpcBuffer::call_of((*self.raw.as_ptr()).rq_buffer.cast()) }
    }

    /// Its task.
    pub(crate) fn task(&self) -> Task<'_> {
        // SAFETY: By the type invariant it stays; and with it its client, which it lets go of only
        // after the request was taken from the receive queue.
        unsafe { Task::from_raw((*self.raw.as_ptr()).rq_task) }
    }

    /// Room for the Reply.
    pub(crate) fn receive_buf(&self) -> XdrBuf<'_> {
        // SAFETY: While the request is pinned the RPC layer leaves its buffers alone.
        unsafe { XdrBuf::from_raw(&raw mut (*self.raw.as_ptr()).rq_rcv_buf) }
    }

    /// Shortens the head of the Reply's room to `len` bytes, since what follows it was placed
    /// directly into the pages.
    pub(crate) fn trim_head(&mut self, len: usize) {
        // SAFETY: As for `receive_buf`. The RPC layer keeps a copy that must stay the same.
        unsafe {
            let rqst = self.raw.as_ptr();
            XdrBuf::from_raw(&raw mut (*rqst).rq_rcv_buf).trim_head(len);
            XdrBuf::from_raw(&raw mut (*rqst).rq_private_buf).trim_head(len);
        }
    }

    /// Makes the head of the Reply's room at least `len` bytes long, for what is longer in front of
    /// placed data than the RPC layer thought. Nothing must have been received behind the head.
    ///
    /// `EIO` when the request's buffer has no room for that. It is a page at least, and those that
    /// have data placed take a part of it.
    pub(crate) fn stretch_head(&self, len: usize) -> Result {
        if len <= self.receive_buf().head_len() {
            return Ok(());
        }
        // SAFETY: As for `receive_buf`. Behind call and reply the request's buffer is nobody's. The RPC
        // layer keeps a copy that must stay the same.
        unsafe {
            let rqst = self.raw.as_ptr();
            let head = (*rqst).rq_rcv_buf.head[0].iov_base.cast::<u8>();
            let room = RpcBuffer::<T::Call>::room_from((*rqst).rq_buffer.cast(), head);
            XdrBuf::from_raw(&raw mut (*rqst).rq_rcv_buf).stretch_head(len, room)?;
            XdrBuf::from_raw(&raw mut (*rqst).rq_private_buf).stretch_head(len, room)
        }
    }

    /// Gives the RPC layer its result: the length of the Reply, or an error for the RPC. To a Reply that
    /// ends inside a word the rest of that is added.
    ///
    /// No peer can reach its memory any more, says `_fenced` (RFC 8166, section 4.4.1).
    pub(crate) fn complete(self, _fenced: Fenced, result: Result<usize>) {
        let raw = self.raw.as_ptr();
        let result = match result {
            Ok(len) if len % 4 != 0 => Ok(self.receive_buf().complete_word(len)),
            other => other,
        };
        let this = core::mem::ManuallyDrop::new(self);
        this.xprt().with_queue_lock(|_| {
            // SAFETY: Pinned until here, by the type invariant; the queue lock is held.
            unsafe {
                let task = (*raw).rq_task;
                let copied = match result {
                    Ok(len) => i32::try_from(len).unwrap_or(0),
                    Err(e) => {
                        (*task).tk_status = e.to_errno();
                        0
                    }
                };
                bindings::xprt_complete_rqst(task, copied);
                bindings::xprt_unpin_rqst(raw);
            }
        });
    }
}

impl<T: Transport> Drop for PinnedRqst<T> {
    fn drop(&mut self) {
        let raw = self.raw.as_ptr();
        self.xprt().with_queue_lock(|_| {
            // SAFETY: Pinned by us, by the type invariant; the queue lock is held.
            unsafe { bindings::xprt_unpin_rqst(raw) };
        });
    }
}
