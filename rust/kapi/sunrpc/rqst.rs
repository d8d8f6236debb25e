// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Requests of the RPC layer.

use crate::kapi::{
    bindings,
    page::TransferMemory,
    sunrpc::{
        backchannel::Backchannel,
        buffer::{
            NotFound,
            Prefix,
            RpcBuffer, //
        },
        encoded::{
            Encoded,
            EncodedCall, //
        },
        room::{
            self,
            Room, //
        },
        task::Task,
        xdr_buf::XdrBuf,
        xprt::Xprt, //
    },
    sys::bit::test_bit, //
};
use core::{
    marker::PhantomData,
    mem::ManuallyDrop,
    ops::Deref,
    ptr::NonNull, //
};
use kernel::{
    prelude::*,
    sync::{
        rcu,
        Arc,
        ArcBorrow, //
    },
};

/// A request, for the time of a call from the RPC layer to send it.
///
/// # Invariants
///
/// `raw` is a valid request for `'a`, with a task, and that with a client or none. For `'a` nobody
/// else changes what it sends, nor frees the memory of that.
pub(crate) struct RpcRqst<'a> {
    raw: *mut bindings::rpc_rqst,
    _borrow: PhantomData<&'a ()>,
}

impl<'a> RpcRqst<'a> {
    /// # Safety
    ///
    /// `raw` must be as the type invariant says.
    pub(super) unsafe fn from_raw(raw: *mut bindings::rpc_rqst) -> Self {
        // INVARIANT: The contract of this function is the type invariant.
        Self {
            raw,
            _borrow: PhantomData,
        }
    }

    fn raw(&self) -> *mut bindings::rpc_rqst {
        self.raw
    }

    /// The transaction identifier, in host byte order.
    pub(crate) fn xid(&self) -> u32 {
        // SAFETY: Valid by the type invariant; it does not change while the request is sent.
        u32::from_be(unsafe { (*self.raw()).rq_xid })
    }

    /// The task that sends it.
    pub(crate) fn task(&self) -> Task<'_> {
        // SAFETY: By the type invariant the request has a task, which stays, with its client, until
        // the transport has sent it: it is the task that calls, or the request is pinned.
        unsafe { Task::from_raw((*self.raw()).rq_task) }
    }

    /// The transport that it is sent on.
    pub(crate) fn xprt(&self) -> &Xprt {
        // SAFETY: By the type invariant the request is valid, and it holds its transport.
        unsafe { Xprt::from_raw((*self.raw()).rq_xprt) }
    }

    /// The message to send.
    pub(crate) fn send_buf(&self) -> Encoded<'_> {
        // SAFETY: By the type invariant the request is valid, and what it sends stays as it is.
        Encoded::new(unsafe { XdrBuf::from_raw(&raw mut (*self.raw()).rq_snd_buf) })
    }

    /// Notes that the message goes out now, with its full length.
    pub(crate) fn note_sent(&self) {
        let rqst = self.raw();
        // SAFETY: Valid by the type invariant; these are for who sends it to change.
        unsafe {
            (*rqst).rq_xtime = bindings::ktime_get();
            (*rqst).rq_xmit_bytes_sent += (*rqst).rq_snd_buf.len as usize;
        }
    }
}

/// A Call to send. Nobody answers it before it was [`Self::sent`], and after that whoever sends it
/// has nothing of its messages.
///
/// # Invariants
///
/// The request is of a transport whose state of an RPC is a `C`, and its buffer of [`RpcBuffer`],
/// which says that the Call was not sent. There is a page behind every byte of its room.
pub(crate) struct Rqst<'a, C: 'static> {
    message: RpcRqst<'a>,
    /// The Call was sent before, perhaps on this connection.
    again: bool,
    _call: PhantomData<ArcBorrow<'a, C>>,
}

impl<'a, C> Deref for Rqst<'a, C> {
    type Target = RpcRqst<'a>;

    fn deref(&self) -> &RpcRqst<'a> {
        &self.message
    }
}

impl<'a, C> Rqst<'a, C> {
    /// Begins to send a Call. Does not sleep. `ENOBUFS` when memory is short, or while somebody has
    /// a Reply to the Call that was sent before.
    ///
    /// # Safety
    ///
    /// `raw` must be as the type invariant of [`RpcRqst`] says, of a transport whose state of an
    /// RPC is a `C`, its buffer of [`RpcBuffer`], and nobody else may send it.
    #[inline]
    pub(super) unsafe fn begin(raw: *mut bindings::rpc_rqst) -> Result<Self> {
        // SAFETY: The contract of this function has that of the other ones in it.
        let (message, prefix) = unsafe { (RpcRqst::from_raw(raw), RpcBuffer::<C>::prefix_of(raw)) };
        let again = !prefix.progress.is_unsent();
        if again {
            let withdrawn = message.xprt().with_queue_lock(|_| {
                // SAFETY: The lock is held.
                unsafe { prefix.withdraw() }
            });
            withdrawn.then_some(()).ok_or(ENOBUFS)?;
        }
        // INVARIANT: The Call counts as not sent, and the room is filled below.
        let this = Self {
            message,
            again,
            _call: PhantomData,
        };
        // SAFETY: The request is valid, and nobody else has its room.
        unsafe {
            room::fill(
                this.buf(),
                XdrBuf::from_raw(&raw mut (*this.raw()).rq_private_buf),
            )?
        };
        Ok(this)
    }

    /// The Call is posted now, by this task. From here on whoever receives a Reply has its room,
    /// and the RPC layer may let go of what was sent.
    #[inline]
    pub(crate) fn sent(self) -> Task<'a> {
        let this = ManuallyDrop::new(self);
        this.note_sent();
        this.prefix().progress.sent();
        // SAFETY: The request has a task, which stays until the transport has sent the request.
        unsafe { Task::from_raw((*this.raw()).rq_task) }
    }

    fn prefix(&self) -> &'a Prefix<C> {
        // SAFETY: The buffer is one of `RpcBuffer` by the type invariant; it stays as long as the
        // message does.
        unsafe { RpcBuffer::prefix_of(self.raw()) }
    }

    /// The buffer for the Reply.
    fn buf(&self) -> XdrBuf<'_> {
        // SAFETY: The request is valid by the type invariant. The RPC layer made the room before
        // the request was sent, and leaves it alone until there is a Reply. As long as the Call
        // counts as not sent nobody else does anything with it.
        unsafe { XdrBuf::from_raw(&raw mut (*self.raw()).rq_rcv_buf) }
    }

    /// The transport's state of the RPC.
    pub(crate) fn call(&self) -> ArcBorrow<'a, C> {
        self.prefix().call()
    }

    /// The message to send, for regions to cover.
    #[inline]
    pub(crate) fn send_buf(&self) -> EncodedCall<'_> {
        let (message, covers) = (self.message.send_buf(), &self.prefix().covers);
        // SAFETY: The message is the request's. The RPC layer has the memory back when the request
        // is completed or gives its buffer back, which both is only when no region covers any of
        // it.
        unsafe { EncodedCall::new(message, self.raw(), NonNull::from(covers)) }
    }

    /// Room for the Reply, for regions to cover.
    pub(crate) fn receive_buf(&self) -> Room<'_> {
        // SAFETY: By the type invariant there is a page behind every byte. The RPC layer has the
        // memory back, and the buffer, only when no region covers any of it.
        unsafe { Room::new(self.buf(), NonNull::from(&self.prefix().covers)) }
    }

    /// The cookie of the connection on which this request was last sent.
    pub(crate) fn connect_cookie(&self) -> u32 {
        // SAFETY: Valid by the type invariant; it is changed by who sends the request.
        unsafe { (*self.raw()).rq_connect_cookie }
    }

    /// Direct placement of single data items is allowed: no security flavor looks into the
    /// message (RFC 8166, section 8.2.2.3).
    pub(crate) fn may_place_directly(&self) -> bool {
        // SAFETY: Valid by the type invariant; it keeps its credential while it is sent.
        let cred = unsafe { (*self.raw()).rq_cred };
        if cred.is_null() {
            return true;
        }
        // SAFETY: The request holds its credential, and the credential its flavor.
        let flags = unsafe { &raw const (*(*cred).cr_auth).au_flags };
        // SAFETY: The flavor is valid as long as the credential.
        !unsafe { test_bit(bindings::RPCAUTH_AUTH_DATATOUCH, flags) }
    }

    /// Program and version of the Call.
    pub(crate) fn program(&self) -> (u32, u32) {
        // SAFETY: By the type invariant the request has a task. That of a Call has a client.
        unsafe {
            let client = (*(*self.raw()).rq_task).tk_client;
            ((*client).cl_prog, (*client).cl_vers)
        }
    }

    /// The number by which the RPC layer counts the procedure of the Call in its program and
    /// version: one of NFS 4 tells what the COMPOUND is for.
    pub(crate) fn counted_procedure(&self) -> Option<u32> {
        // SAFETY: By the type invariant the request has a task. Its procedure, if it has one,
        // outlives it, and nobody changes it.
        let procedure = unsafe { (*(*self.raw()).rq_task).tk_msg.rpc_proc.as_ref() };
        procedure.map(|procedure| procedure.p_statidx)
    }

    /// A Reply will come.
    pub(crate) fn reply_expected(&self) -> bool {
        // SAFETY: By the type invariant the request has a task. Its procedure, if it has one,
        // outlives it, and nobody changes it.
        let procedure = unsafe { (*(*self.raw()).rq_task).tk_msg.rpc_proc.as_ref() };
        procedure.is_some_and(|procedure| procedure.p_decode.is_some())
    }

    /// Lets all others be sent that wait for it and are counted in the window. False if there are
    /// none.
    pub(crate) fn put_last(&self, xprt: &Xprt) -> bool {
        xprt.put_last(self.raw())
    }

    /// Takes one unit of the congestion window, or has it already. False when there is none.
    pub(crate) fn get_credit(&self, xprt: &Xprt) -> bool {
        // SAFETY: The transport is borrowed, the request valid by the type invariant.
        let taken = unsafe { bindings::xprt_request_get_cong(xprt.as_raw(), self.raw()) };
        if !taken {
            xprt.let_pass();
        }
        taken
    }
}

impl<C> Drop for Rqst<'_, C> {
    /// The Call could not be sent now.
    fn drop(&mut self) {
        if self.again {
            // The one before may still have its Reply, on a connection that is about to end.
            self.prefix().progress.sent();
        }
    }
}

/// A Reply of the callback service to send.
///
/// # Invariants
///
/// The request is one that [`Backchannel::receive`] handed out, and not given back yet.
pub(crate) struct ReverseRqst<'a>(RpcRqst<'a>);

impl<'a> Deref for ReverseRqst<'a> {
    type Target = RpcRqst<'a>;

    fn deref(&self) -> &RpcRqst<'a> {
        &self.0
    }
}

impl ReverseRqst<'_> {
    /// # Safety
    ///
    /// `raw` must be as the type invariants of this and of [`RpcRqst`] say.
    pub(super) unsafe fn from_raw(raw: *mut bindings::rpc_rqst) -> Self {
        // INVARIANT: The contract of this function is the type invariant.
        // SAFETY: The contract of this function has that of the other one in it.
        Self(unsafe { RpcRqst::from_raw(raw) })
    }

    /// The Reply is about to be sent.
    pub(crate) fn note_answered(&self) {
        // SAFETY: By the type invariant the request is of the backchannel, and this sends it.
        unsafe { Backchannel::note_answered(self.raw()) };
    }

    /// The connection that the Call came by.
    pub(crate) fn connection(&self) -> u64 {
        // SAFETY: By the type invariant the request is of the backchannel.
        unsafe { Backchannel::connection_of(self.raw()) }
    }
}

/// A request that waits for its Reply, held so that it cannot go, by the one who has the Reply.
///
/// Dropping it lets it wait on, also for another Reply.
///
/// # Invariants
///
/// `raw` is a valid request of a transport whose state of an RPC is a `C` in its receive queue,
/// pinned by us. Its task, its transport and its buffer stay until it is unpinned. Its buffer is
/// claimed, so that there is no other value for it, nor an [`Rqst`]. There is a page behind every
/// byte of its room.
pub(crate) struct PinnedRqst<C> {
    raw: NonNull<bindings::rpc_rqst>,
    _call: PhantomData<Arc<C>>,
}

// SAFETY: A pinned request may be handled by any thread, but by one at a time.
unsafe impl<C: Send + Sync> Send for PinnedRqst<C> {}

impl<C> PinnedRqst<C> {
    /// Finds the request that waits for a Reply of this XID.
    ///
    /// # Safety
    ///
    /// `xprt` must be a transport whose state of an RPC is a `C`.
    pub(super) unsafe fn find(xprt: &Xprt, xid: u32) -> Result<Self, NotFound> {
        xprt.with_queue_lock(|xprt| {
            // SAFETY: The transport is valid, and the queue lock is held.
            let rqst = unsafe { bindings::xprt_lookup_rqst(xprt, xid.to_be()) };
            let raw = NonNull::new(rqst).ok_or(NotFound::Unknown)?;
            // SAFETY: A request that is found stays while the queue lock is held, and with it its
            // buffer, which is one of `RpcBuffer`.
            let prefix = unsafe { RpcBuffer::<C>::prefix_of(rqst) };
            // SAFETY: The lock is held.
            unsafe { prefix.claim()? };
            // SAFETY: Nobody else changes its room, since it is claimed.
            if !room::is_filled(unsafe { XdrBuf::from_raw(&raw mut (*rqst).rq_rcv_buf) }) {
                // The RPC layer has made other room since it was sent.
                // SAFETY: The lock is held, and it was claimed above.
                unsafe { prefix.unclaim() };
                return Err(NotFound::Unsent);
            }
            // SAFETY: The request is in the queue, whose lock is held.
            unsafe { bindings::xprt_pin_rqst(rqst) };
            // INVARIANT: Claimed and pinned above, and the room is filled.
            Ok(Self {
                raw,
                _call: PhantomData,
            })
        })
    }

    fn raw(&self) -> *mut bindings::rpc_rqst {
        self.raw.as_ptr()
    }

    fn xprt(&self) -> &Xprt {
        // SAFETY: By the type invariant the request is valid, and the transport stays.
        unsafe { Xprt::from_raw((*self.raw()).rq_xprt) }
    }

    fn prefix(&self) -> &Prefix<C> {
        // SAFETY: The buffer stays by the type invariant: it is freed after the request was
        // taken from the receive queue, which waits for the pin.
        unsafe { RpcBuffer::prefix_of(self.raw()) }
    }

    /// The transport's state of the RPC.
    pub(crate) fn call(&self) -> ArcBorrow<'_, C> {
        self.prefix().call()
    }

    /// Its task.
    pub(crate) fn task(&self) -> Task<'_> {
        // SAFETY: By the type invariant it stays; and with it its client, which it lets go of only
        // after the request was taken from the receive queue.
        unsafe { Task::from_raw((*self.raw()).rq_task) }
    }

    /// The buffer for the Reply, and the copy of it that the RPC layer keeps, which must stay the
    /// same.
    fn bufs(&self) -> [XdrBuf<'_>; 2] {
        let rqst = self.raw();
        // SAFETY: While the request is pinned the RPC layer leaves its buffers alone. By the type
        // invariant nobody else has it, and like the result this is not used by several threads.
        unsafe {
            [&raw mut (*rqst).rq_rcv_buf, &raw mut (*rqst).rq_private_buf]
                .map(|raw| XdrBuf::from_raw(raw))
        }
    }

    /// Room for the Reply.
    pub(crate) fn receive_buf(&self) -> Room<'_> {
        let [buf, _] = self.bufs();
        // SAFETY: By the type invariant nobody else has the room, and there is a page behind every
        // byte. The RPC layer lets go of the memory, and of the buffer, only when `buf_free` has
        // returned, which waits until this counts none.
        unsafe { Room::new(buf, NonNull::from(&self.prefix().covers)) }
    }

    /// The same as memory for RDMA Reads, for the end of which its buffer waits. Does not sleep.
    pub(crate) fn receive_memory(&self) -> Result<TransferMemory> {
        TransferMemory::kept(&self.receive_buf().pieces())
    }

    /// Shortens the head of the Reply's room to `len` bytes, since what follows it was placed
    /// directly into the pages.
    pub(crate) fn trim_head(&mut self, len: usize) {
        for buf in self.bufs() {
            // SAFETY: Nobody else has it.
            unsafe { room::trim_head(buf, len) };
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
        let bufs = self.bufs();
        let [head, _] = bufs.map(|buf| buf.head().iov_base);
        let room = self.prefix().capacity_from(head.cast());
        bufs.into_iter().try_for_each(|buf| {
            // SAFETY: Nobody else has them; what is behind call and reply in their memory is
            // nobody's.
            unsafe { room::stretch_head(buf, len, room) }
        })
    }

    /// Gives the RPC layer its result: the length of the Reply, or an error for the RPC. To a Reply
    /// that ends inside a word the rest of that is added; of one longer than the room nothing is
    /// behind that.
    ///
    /// `EBUSY`, and it waits on, while a region covers memory of it: a peer could reach that (RFC
    /// 8166, section 4.4.1).
    #[inline(always)]
    pub(crate) fn complete(self, result: Result<usize>) -> Result {
        if !self.prefix().covers.is_none() {
            return Err(self.refuse());
        }
        let result = result.map(|len| self.receive_buf().complete_word(len));
        let this = ManuallyDrop::new(self);
        let last = |task: *mut bindings::rpc_task| match result {
            // SAFETY: The task's request is in the receive queue, whose lock is held.
            Ok(len) => unsafe {
                bindings::xprt_complete_rqst(task, i32::try_from(len).unwrap_or(0))
            },
            // SAFETY: The task stays until the request is unpinned. Its request is in the receive
            // queue, whose lock is held.
            Err(e) => unsafe { this.prefix().progress.end_with(task, e) },
        };
        // SAFETY: `this` is not dropped, nor used afterwards.
        unsafe { this.let_go(last) };
        Ok(())
    }

    #[cold]
    fn refuse(self) -> Error {
        EBUSY
    }

    /// Lets it go, after `last` was done with its task, all with the queue lock held.
    ///
    /// # Safety
    ///
    /// To be called once, and the value must not be used afterwards.
    #[inline(always)]
    unsafe fn let_go(&self, last: impl FnOnce(*mut bindings::rpc_task)) {
        let rqst = self.raw();
        // The task may end as soon as it is unpinned, and its reference to the transport be the
        // last: but `xprt_free()` waits for this before it frees the lock.
        let _transport_stays = rcu::read_lock();
        self.xprt().with_queue_lock(|_| {
            // SAFETY: The lock is held. It is claimed by the type invariant, and the value is not
            // used afterwards.
            unsafe { self.prefix().unclaim() };
            // SAFETY: Valid by the type invariant, until it is unpinned below.
            last(unsafe { (*rqst).rq_task });
            // SAFETY: Pinned by us, by the type invariant; the queue lock is held.
            unsafe { bindings::xprt_unpin_rqst(rqst) };
        });
    }
}

impl<C> Drop for PinnedRqst<C> {
    fn drop(&mut self) {
        // SAFETY: It is not used any more.
        unsafe { self.let_go(|_| ()) };
    }
}
