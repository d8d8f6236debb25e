"""Calls of the server over version 2 (the draft, section 4.6). nfsd has to be patient: it calls again when a tenth of the lease
is over."""

from collections.abc import Iterator

import nfs
import protocol
from bench import Bench
from case import Case
from connection_2 import GRANT, PROPERTIES, Connection2, inline, masked, middle, segments, write_list
from conveyed import Call, Reply
from failure import require, same
from header import Chunk, words
from message import Message, Prefix, error
from reverse_calls import called, delegated, give_back, provoke
from session import Delegation, Recall, Session
from write_chunks import chunk

# Seconds in which nfsd would have called.
SILENCE = 1.5


class Session2(Session):
    """A client that the server has not seen before, over version 2."""

    def __init__(self, bench: Bench, support: int = protocol.REVERSE_CONT) -> None:
        self.one = Connection2(bench, {**PROPERTIES, protocol.BRS: support}, service=lambda call: None)
        super().__init__(bench, connection=self.one.connection)

    def answer_to(self, xid: int, call: bytes) -> bytes:
        self.one.end.call(Call(xid, call))
        self.one.flush()
        header = replied(xid, b"").header
        received = self.one.receive().message
        same("header of the Reply", masked(received[:len(header)]), header)
        return received[len(header):]

    def next_call(self) -> tuple[int, bytes]:
        received = self.one.receive().message
        xid = Prefix.decode(received).xid
        header = inline(xid, b"").header
        same("header of a Call of the server", masked(received[:len(header)]), header)
        return xid, received[len(header):]

    def answer(self, recall: Recall, credits: int = 0) -> None:
        self.one.end.reply(Reply(recall.xid, recall.reply()))
        self.one.flush()
        self.answered(recall)


def replied(xid: int, payload: bytes, *chunks: Chunk) -> Message:
    """RDMA2_REPLY_INLINE."""
    return Message(Prefix(xid, protocol.VERSION, 0, protocol.REPLY_INLINE), {"rdma_writes": write_list(*chunks)}, payload)


def recalled(bench: Bench) -> None:
    """A Call of the server is RDMA2_CALL_INLINE, without chunks, and awaits RDMA2_REPLY_INLINE (sections 4.6.1 and 4.6.2). A bad
    Reply is discarded, while the Call waits on; what is a Call is served under the same XID (section 3.1.5.4)."""
    session = Session2(bench)
    one, delegation = session.one, delegated(bench, session)
    recall = called(bench, session, delegation)
    for what, message in bad_ones(bench, recall):
        one.must_drop(message, what)
    one.exchange(nfs.null(), xid=recall.xid)
    session.answer(recall)
    one.must_drop(replied(recall.xid, recall.reply()), "second Reply")
    give_back(bench, session, delegation)
    # The server has seen the answer: it is done with the number.
    delegation = delegated(bench, session)
    session.answer(called(bench, session, delegation))
    finish(bench, session, delegation)


def bad_ones(bench: Bench, recall: Recall) -> Iterator[tuple[str, Message | bytes]]:
    """What is wrong with a Reply, and the Reply."""
    xid, other, reply, place = recall.xid, recall.xid ^ 0xffff, recall.reply(), chunk(bench, 100, 20)
    yield "other XID", replied(other, words(other) + reply[4:])
    yield "other XID in the header", replied(other, reply)
    yield "other XID in the RPC message", replied(xid, words(other) + reply[4:])
    yield "message type 2", replied(xid, words(xid, 2) + reply[8:])
    yield "Write chunk", replied(xid, reply, place)
    yield "empty Write chunk", replied(xid, reply, [])
    outside = Prefix(xid, protocol.VERSION, 0, protocol.REPLY_EXTERNAL)
    yield "RDMA2_REPLY_EXTERNAL alone", Message(outside, {"rdma_writes": [], "rdma_reply": None})
    for returned in ([], place):
        body = {"rdma_writes": [], "rdma_reply": {"rdma_target": segments(returned)}}
        yield "RDMA2_REPLY_EXTERNAL", Message(outside, body)
    yield "nothing remaining", middle(xid, reply[:40], 0, protocol.REPLY_MIDDLE)
    whole = replied(xid, reply).encode()
    for end in range(protocol.PREFIX, protocol.PREFIX + 12):
        yield f"cut off after {end} bytes", whole[:end]
    yield "error that is none", Prefix(xid, protocol.VERSION, 0, protocol.ERROR).encode() + words(99, 0, 0)
    yield "error to nothing", error(Prefix(other, protocol.VERSION, 0, 0), 0, protocol.SYSTEM)


def continued(bench: Bench) -> None:
    """A Reply in several messages, with an RDMA2_GRANT between them (sections 6.3.9 and 6.6.2)."""
    session = Session2(bench)
    one, delegation = session.one, delegated(bench, session)
    recall = called(bench, session, delegation)
    reply, at = recall.reply(), 0
    for length in (8, 5, 27):
        one.send(middle(recall.xid, reply[at:at + length], len(reply) - at - length, protocol.REPLY_MIDDLE))
        one.send(GRANT)
        at += length
    one.send(replied(recall.xid, reply[at:]))
    session.answered(recall)
    give_back(bench, session, delegation)
    delegation = delegated(bench, session)
    session.answer(called(bench, session, delegation))
    finish(bench, session, delegation)


def errors(bench: Bench) -> None:
    """An RDMA2_ERROR ends the Call (interpretation 43), and nfsd makes another."""
    session = Session2(bench)
    one, delegation = session.one, delegated(bench, session)
    recall = called(bench, session, delegation)
    for code in (protocol.SYSTEM, protocol.INVAL_CONT, protocol.VERS_MISMATCH):
        one.send(error(Prefix(recall.xid, protocol.VERSION, 0, 0), 0, code))
        before, recall = recall, session.recalled(delegation)
        require(recall.xid != before.xid, "after an RDMA2_ERROR the same Call")
    session.answer(recall)
    finish(bench, session, delegation)


def no_credits(bench: Bench) -> None:
    """A Call of the server waits until the client has a Receive for it (section 4.2.1)."""
    session = Session2(bench)
    one, delegation = session.one, delegated(bench, session)
    # The Reply uses the last credit, and shows that the server knows of no other: what provokes its Call goes by another
    # connection.
    one.end.advertises = 1
    one.works()
    one.end.advertises = 0
    provoke(bench, delegation)
    one.must_be_silent("no credits for a Call", SILENCE)
    one.end.advertises = 16
    one.send(GRANT)
    session.answer(session.recalled(delegation))
    finish(bench, session, delegation)


def not_supported(bench: Bench) -> None:
    """A client that takes no Calls gets none (section 4.6.3, interpretation 62); one that takes simple ones does."""
    session = Session2(bench, protocol.REVERSE_NONE)
    delegation = delegated(bench, session)
    provoke(bench, delegation)
    session.one.must_be_silent("no Calls are taken", SILENCE)
    give_back(bench, session, delegation)
    session.one.works()
    session.connection.close()
    session = Session2(bench, protocol.NUMBER["RDMA2_RVRSDIR_SIMPLE"])
    delegation = delegated(bench, session)
    session.answer(called(bench, session, delegation))
    finish(bench, session, delegation)


def finish(bench: Bench, session: Session2, delegation: Delegation) -> None:
    """Give the file back; the connection works as before, and is closed."""
    give_back(bench, session, delegation)
    session.one.works()
    session.close()


CASES = [Case("Call of the server", recalled), Case("Reply to the server in several messages", continued),
         Case("errors to the server", errors), Case("no credits for the server", no_credits),
         Case("client that takes no Calls", not_supported)]
