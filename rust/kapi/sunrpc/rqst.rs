// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Requests of the RPC layer.

use crate::kapi::{
    bindings,
    page::TransferMemory,
    sunrpc::{
        buffer::{
            NotFound,
            Prefix,
            RpcBuffer, //
        },
        encoded::EncodedCall,
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
    types::Opaque, //
};

/// A request, for the time of a call from the RPC layer to send it.
///
/// # Invariants
///
/// While it is borrowed it has a task, and that with a client or none. Meanwhile nobody else
/// changes what it sends, nor frees the memory of that.
#[repr(transparent)]
pub(crate) struct RpcRqst(Opaque<bindings::rpc_rqst>);

impl RpcRqst {
    /// Borrows a request.
    ///
    /// # Safety
    ///
    /// `raw` must be valid for `'a`, and as the type invariant says.
    pub(super) unsafe fn from_raw<'a>(raw: *mut bindings::rpc_rqst) -> &'a Self {
        // INVARIANT: The contract of this function is the type invariant.
        // SAFETY: Valid by the contract of this function; the type is transparent, and opaque.
        unsafe { &*raw.cast() }
    }

    fn raw(&self) -> *mut bindings::rpc_rqst {
        self.0.get()
    }

    /// Returns the XID in host byte order.
    pub(crate) fn xid(&self) -> u32 {
        // SAFETY: Valid by the type invariant; it does not change while the request is sent.
        u32::from_be(unsafe { (*self.raw()).rq_xid })
    }

    /// Returns the task that sends it.
    pub(crate) fn task(&self) -> &Task {
        // SAFETY: By the type invariant the request has a task, which stays, with its client, until
        // the transport has sent it: it is the task that calls, or the request is pinned.
        unsafe { Task::from_raw((*self.raw()).rq_task) }
    }

    /// Returns the transport that it is sent on.
    pub(crate) fn xprt(&self) -> &Xprt {
        // SAFETY: By the type invariant the request is valid, and it holds its transport.
        unsafe { Xprt::from_raw((*self.raw()).rq_xprt) }
    }

    /// Returns the message to send.
    pub(crate) fn send_buf(&self) -> &XdrBuf {
        // SAFETY: By the type invariant the request is valid, and what it sends stays as it is.
        unsafe { XdrBuf::from_raw(&raw mut (*self.raw()).rq_snd_buf) }
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
    message: &'a RpcRqst,
    /// The Call was sent before, perhaps on this connection.
    again: bool,
    _call: PhantomData<ArcBorrow<'a, C>>,
}

impl<C> Deref for Rqst<'_, C> {
    type Target = RpcRqst;

    fn deref(&self) -> &RpcRqst {
        self.message
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
            let xprt = message.xprt();
            // SAFETY: The lock is held.
            let withdrawn = xprt.with_queue_lock(|_| unsafe { prefix.withdraw() });
            withdrawn.then_some(()).ok_or(ENOBUFS)?;
        }
        // INVARIANT: The Call counts as not sent, and the room is filled below.
        let this = Self {
            message,
            again,
            _call: PhantomData,
        };
        // SAFETY: The request is valid, and nobody else changes the copy of its room.
        let copy = unsafe { XdrBuf::from_raw(&raw mut (*raw).rq_private_buf) };
        // SAFETY: Both are of the request, and nobody else has its room.
        unsafe { room::fill(this.buf(), copy)? };
        Ok(this)
    }

    /// Notes that the Call is posted now, by this task. From here on the room is that of a Reply
    /// that comes, and the RPC layer may let go of what was sent.
    #[inline]
    pub(crate) fn sent(self) -> &'a Task {
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

    /// Returns the buffer for the Reply.
    fn buf(&self) -> &XdrBuf {
        // SAFETY: The request is valid by the type invariant. The RPC layer made the room before
        // the request was sent, and leaves it alone until there is a Reply. As long as the Call
        // counts as not sent nobody else does anything with it.
        unsafe { XdrBuf::from_raw(&raw mut (*self.raw()).rq_rcv_buf) }
    }

    /// Returns the transport's state of the RPC.
    pub(crate) fn call(&self) -> ArcBorrow<'a, C> {
        self.prefix().call()
    }

    /// Returns the message to send, for regions to cover.
    #[inline]
    pub(crate) fn send_buf(&self) -> EncodedCall<'_> {
        let (message, covers) = (self.message.send_buf(), &self.prefix().covers);
        // SAFETY: The message is the request's. The RPC layer has the memory back when the request
        // is completed or gives its buffer back, which both is only when no region covers any of
        // it.
        unsafe { EncodedCall::new(message, self.raw(), NonNull::from(covers)) }
    }

    /// Returns the room for the Reply, for regions to cover.
    pub(crate) fn receive_buf(&self) -> Room<'_> {
        // SAFETY: By the type invariant there is a page behind every byte. The RPC layer has the
        // memory back, and the buffer, only when no region covers any of it.
        unsafe { Room::new(self.buf(), NonNull::from(&self.prefix().covers)) }
    }

    /// Returns the cookie of the connection on which this request was last sent.
    pub(crate) fn connect_cookie(&self) -> u32 {
        // SAFETY: Valid by the type invariant; it is changed by who sends the request, and by who
        // ends it, while its task waits.
        unsafe { (*self.raw()).rq_connect_cookie }
    }

    /// Returns whether single data items may be placed directly: no security flavor looks into the
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

    /// Returns program and version of the Call.
    pub(crate) fn program(&self) -> (u32, u32) {
        // SAFETY: By the type invariant the request has a task. That of a Call has a client.
        unsafe {
            let client = (*(*self.raw()).rq_task).tk_client;
            ((*client).cl_prog, (*client).cl_vers)
        }
    }

    /// Returns the number by which the RPC layer counts the procedure of the Call in its program
    /// and version: one of NFS 4 tells what the COMPOUND is for.
    pub(crate) fn counted_procedure(&self) -> Option<u32> {
        // SAFETY: By the type invariant the request has a task. Its procedure, if it has one,
        // outlives it, and nobody changes it.
        let procedure = unsafe { (*(*self.raw()).rq_task).tk_msg.rpc_proc.as_ref() };
        procedure.map(|procedure| procedure.p_statidx)
    }

    /// Returns whether a Reply will come.
    pub(crate) fn reply_expected(&self) -> bool {
        // SAFETY: By the type invariant the request has a task. Its procedure, if it has one,
        // outlives it, and nobody changes it.
        let procedure = unsafe { (*(*self.raw()).rq_task).tk_msg.rpc_proc.as_ref() };
        procedure.is_some_and(|procedure| procedure.p_decode.is_some())
    }

    /// Lets all others be sent that wait for it and are counted in the window; false if there are
    /// none.
    pub(crate) fn put_last(&self) -> bool {
        self.xprt().put_last(self.raw())
    }

    /// Takes one unit of the congestion window, unless it has one; false when there is none.
    pub(crate) fn get_credit(&self) -> bool {
        let xprt = self.xprt();
        // SAFETY: The request is valid by the type invariant, and this is its transport.
        let taken = unsafe { bindings::xprt_request_get_cong(xprt.as_raw(), self.raw()) };
        if !taken {
            xprt.let_pass();
        }
        taken
    }
}

impl<C> Drop for Rqst<'_, C> {
    /// Leaves a Call unsent.
    fn drop(&mut self) {
        if self.again {
            // The one before may still have its Reply, on a connection that is about to end.
            self.prefix().progress.sent();
        }
    }
}

/// A request that waits for its Reply, held so that it cannot go, for a Reply that came.
///
/// Dropped without a result, it waits on, also for another Reply.
///
/// # Invariants
///
/// `raw` is a valid request of a transport whose state of an RPC is a `C` in its receive queue,
/// pinned by us. Its task, its transport and its buffer stay until it is unpinned. Its buffer is
/// claimed, so that there is no other value for it, nor an [`Rqst`]. There is a page behind every
/// byte of its room.
pub(crate) struct PinnedRqst<C> {
    raw: NonNull<bindings::rpc_rqst>,
    /// The length of the Reply, or the error of the RPC, once it has either.
    result: Option<Result<usize>>,
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
                result: None,
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

    /// Returns the transport's state of the RPC.
    pub(crate) fn call(&self) -> ArcBorrow<'_, C> {
        self.prefix().call()
    }

    /// Returns its task.
    pub(crate) fn task(&self) -> &Task {
        // SAFETY: By the type invariant it stays; and with it its client, which it lets go of only
        // after the request was taken from the receive queue.
        unsafe { Task::from_raw((*self.raw()).rq_task) }
    }

    /// Returns the buffer for the Reply, and the copy of it that the RPC layer keeps, which must
    /// stay the same.
    fn bufs(&self) -> [&XdrBuf; 2] {
        let rqst = self.raw();
        // SAFETY: While the request is pinned the RPC layer leaves its buffers alone. By the type
        // invariant nobody else has it, and like the result this is not used by several threads.
        unsafe {
            [&raw mut (*rqst).rq_rcv_buf, &raw mut (*rqst).rq_private_buf]
                .map(|raw| XdrBuf::from_raw(raw))
        }
    }

    /// Returns the room for the Reply.
    pub(crate) fn receive_buf(&self) -> Room<'_> {
        let [buf, _] = self.bufs();
        // SAFETY: By the type invariant nobody else has the room, and there is a page behind every
        // byte. The RPC layer lets go of the memory, and of the buffer, only when `buf_free` has
        // returned, which waits until this counts none.
        unsafe { Room::new(buf, NonNull::from(&self.prefix().covers)) }
    }

    /// Returns the room as memory for RDMA Reads, for the end of which its buffer waits. Does not
    /// sleep.
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
        let [head, _] = bufs.map(|buf| buf.fields().head[0].iov_base);
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
    #[inline]
    pub(crate) fn complete(mut self, result: Result<usize>) -> Result {
        if !self.prefix().covers.is_none() {
            return Err(EBUSY);
        }
        self.result = Some(result.map(|len| self.receive_buf().complete_word(len)));
        Ok(())
    }
}

impl<C> Drop for PinnedRqst<C> {
    /// Lets the request go, with its result if it has one, all with the queue lock held.
    fn drop(&mut self) {
        let rqst = self.raw();
        // The task may end as soon as it is unpinned, and its reference to the transport be the
        // last: but `xprt_free()` waits for this before it frees the lock.
        let _transport_stays = rcu::read_lock();
        self.xprt().with_queue_lock(|_| {
            let prefix = self.prefix();
            // SAFETY: The lock is held. It is claimed by the type invariant, and not used any more.
            unsafe { prefix.unclaim() };
            // SAFETY: The request, which is in the receive queue, and its task are valid by the
            // type invariant until it is unpinned: by us it is pinned. The lock of the queue is
            // held.
            unsafe {
                match self.result {
                    Some(Ok(len)) => {
                        bindings::xprt_complete_rqst((*rqst).rq_task, len.try_into().unwrap_or(0));
                    }
                    Some(Err(e)) => prefix.progress.end_with((*rqst).rq_task, e),
                    None => (),
                }
                bindings::xprt_unpin_rqst(rqst);
            }
        });
    }
}
