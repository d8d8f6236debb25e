"""The server as a requester (RFC 8167): its Calls to get back what it has delegated, and what the client answers.
nfsd has to be patient, but for the Calls that it gives up: it calls again when a tenth of the lease is over."""

from collections.abc import Iterator

import nfs
from bench import Bench
from case import Case, Difference
from connection import Connection
from endpoint import Lost
from failure import Failure, require
from header import (RDMA_DONE, RDMA_ERROR, RDMA_MSG, RDMA_MSGP, RDMA_NOMSG, Header, chunk_error, private_data, version_error,
                    words)
from session import CALLS, Delegation, Recall, Session
from write_chunks import chunk

FILE = "delegated-{}"
# nfsd keeps in mind what it has recalled of late, and sometimes takes another file for that.
TRIES = 5
# So many answers of the server come in any case before a Call that it might have made meanwhile.
LATER = 20
# nfsd gives a Call up after 6 seconds where the lease is a minute.
GIVEN_UP_SECONDS = 14
# With a lease of two minutes after 12, and looks each time that so many are over.
PATIENCE_SECONDS = 110
# Of a lock owner (RFC 8881, section 3.3.10.1).
LONGEST_NAME = 1024
TOO_LONG_SECONDS = 3
# nfsd has room for one of 20 bytes. Where not all of it is there it makes another Call; with fewer it would give this one up.
LONG_TAG = b"tag" * 60


def bad_replies(bench: Bench) -> None:
    """What cannot be the Reply to a Call is discarded without a word, and the Call waits on (RFC 8166, sections 4.2.4
    and 4.5); so is a Reply to what was not called. What can only be a Call is served, also under the XID that awaits a
    Reply (RFC 8167, section 2.4.1)."""
    session = Session(bench)
    connection = session.connection
    delegation = delegated(bench, session)
    recall = called(bench, session, delegation)
    for what, message in bad_ones(bench, recall):
        must_discard(bench, session, message, what)
    bench.exchange(nfs.null(), xid=recall.xid, connection=connection)
    segment = bench.arena.holding(bytes(8))[0]
    bad_call = Header(recall.xid, reads=[(8, segment)]).encode() + bytes(nfs.null().call(recall.xid).bytes)
    bench.must_refuse(bad_call, "bad Call with the XID that awaits a Reply", connection=connection)
    session.answer(recall)
    must_discard(bench, session, Header(recall.xid).encode() + recall.reply(), "second Reply")
    give_back(bench, session, delegation)
    # The server has seen the answer: it is done with the number.
    delegation = delegated(bench, session)
    session.answer(called(bench, session, delegation))
    give_back(bench, session, delegation)
    session.close()


def bad_ones(bench: Bench, recall: Recall) -> Iterator[tuple[str, bytes]]:
    """What is wrong with a Reply, and the Reply."""
    xid, other, reply = recall.xid, recall.xid ^ 0xffff, recall.reply()
    header, place = Header(xid).encode(), chunk(bench, 100, 20)
    for version in (0, 2, 0xffffffff):
        yield f"version {version}", Header(xid, version=version).encode() + reply
    for procedure in (RDMA_MSGP, RDMA_DONE, 5, 0xffffffff):
        yield f"procedure {procedure}", Header(xid, procedure).encode() + reply
    yield "Read chunk", Header(xid, reads=[(80, place[0])]).encode() + reply
    yield "Write chunk", Header(xid, writes=[place]).encode() + reply
    yield "empty Write chunk", Header(xid, writes=[[]]).encode() + reply
    yield "Reply chunk", Header(xid, reply=place).encode() + reply
    yield "empty Reply chunk", Header(xid, reply=[]).encode() + reply
    yield "RDMA_NOMSG without a chunk", Header(xid, RDMA_NOMSG).encode() + reply
    yield "RDMA_NOMSG with a Write chunk", Header(xid, RDMA_NOMSG, writes=[place]).encode() + reply
    yield "RDMA_NOMSG with a Reply chunk", Header(xid, RDMA_NOMSG, reply=place).encode()
    yield "RDMA_NOMSG with an empty Reply chunk", Header(xid, RDMA_NOMSG, reply=[]).encode()
    for at in (20, 24):
        yield f"2 at byte {at}", header[:at] + words(2) + header[at + 4:] + reply
    whole = Header(xid, writes=[place], reply=place).encode()
    for end in range(28, len(whole)):
        yield f"header cut off after {end} bytes", whole[:end]
    for end in range(8):
        yield f"RPC message of {end} bytes", header + reply[:end]
    yield "other XID in the header", Header(other).encode() + reply
    yield "other XID in the RPC message", header + words(other) + reply[4:]
    yield "message type 2", header + words(xid, 2) + reply[8:]
    yield "Reply to nothing", Header(other).encode() + words(other) + reply[4:]
    yield "error that is none", words(xid, 1, 1, RDMA_ERROR, 99, 0, 0)
    yield "error to nothing", chunk_error(other, CALLS)


def errors(bench: Bench) -> None:
    """An RDMA_ERROR ends the Call (RFC 8166, section 4.5), and nfsd makes another. What is wrong in the RPC message is
    for RPC to find: it sends the Call again."""
    session = Session(bench)
    delegation = delegated(bench, session)
    recall = called(bench, session, delegation)
    session.connection.send(Header(recall.xid).encode() + recall.reply()[:8])
    require(session.recalled(delegation) == recall, "after a Reply cut off in its RPC message another Call")
    for error in (chunk_error, lambda xid, credits: version_error(xid, 1, credits)):
        session.connection.send(error(recall.xid, CALLS))
        before, recall = recall, session.recalled(delegation)
        require(recall.xid != before.xid, "after an RDMA_ERROR the same Call")
    session.answer(recall)
    give_back(bench, session, delegation)
    session.close()


def long_replies(bench: Bench) -> None:
    """A Reply that is longer than nfsd has room for gives its credit back: the client does not answer again. What fits is
    passed on, as over TCP; nfsd cannot decode that, and makes another Call."""
    session = Session(bench)
    delegation = delegated(bench, session)
    recall = called(bench, session, delegation)
    for _ in range(2 * CALLS):
        session.connection.send(Header(recall.xid, credits=CALLS).encode() + recall.reply(LONG_TAG))
        before, recall = recall, session.recalled(delegation)
        require(recall.xid != before.xid, "after a Reply that is too long the same Call")
    session.answer(recall)
    give_back(bench, session, delegation)
    session.close()


def credits(bench: Bench) -> None:
    """The server makes one Call at first, and then as many as a Reply grants, of which zero are one (RFC 8166, sections
    3.3.1 and 3.3.3). Nothing else gives it credits, or takes any (RFC 8167, section 4.1)."""
    session = Session(bench)
    first, second, third, fourth, fifth = delegations = [delegated(bench, session) for _ in range(5)]
    recall = called(bench, session, first)
    say_credits(bench, session, recall, CALLS)
    provoke(bench, second)
    must_not_call(bench, session)
    session.answer(recall)
    recall = session.recalled(second)
    say_credits(bench, session, recall, 0)
    say_credits(bench, session, recall, 1)
    other = called(bench, session, third)
    session.answer(recall, 1)
    session.answer(other, 0)
    # The server has seen them when it answers this.
    bench.works(session.connection)
    recall = called(bench, session, fourth)
    say_credits(bench, session, recall, CALLS)
    provoke(bench, fifth)
    must_not_call(bench, session)
    session.answer(recall)
    session.answer(session.recalled(fifth))
    for delegation in delegations:
        give_back(bench, session, delegation)
    session.close()


def given_up(bench: Bench) -> None:
    """A Call that nfsd gives up waiting for has its credit until it is answered: the client has granted no other (RFC 8166,
    sections 3.3.1 and 3.3.3). What cannot be its Reply is discarded still."""
    session = Session(bench)
    delegation = delegated(bench, session)
    recall = called(bench, session, delegation)
    if session.connection.has_received(GIVEN_UP_SECONDS):
        raise Failure("the server calls again without a credit")
    for message in (Header(recall.xid, RDMA_MSG, CALLS).encode() + words(recall.xid, 2) + recall.reply()[8:],
                    Header(recall.xid, RDMA_NOMSG, CALLS).encode()):
        must_discard(bench, session, message, "late, what cannot be a Reply")
    must_not_call(bench, session)
    # It goes back with the answer, which comes too late for nfsd. Were that counted, so would be the number of the slot.
    session.connection.send(Header(recall.xid, credits=1).encode() + recall.reply())
    session.answer(session.recalled(delegation))
    give_back(bench, session, delegation)
    session.close()


def never_answered(bench: Bench) -> None:
    """A client that has not answered for a minute after nfsd has given up what it was granted loses its connection."""
    session = Session(bench)
    called(bench, session, delegated(bench, session))
    try:
        calls = session.connection.has_received(PATIENCE_SECONDS)
    except Lost:
        session.connection.close()
        return
    raise Failure("the server calls again without a credit" if calls else "the connection is kept")


def too_long(bench: Bench) -> None:
    """A Call that is longer than the client receives is not sent, nor made again and again at once, nor does another wait for
    it: here the server tells of a lock whose owner has a long name."""
    small = Session(bench, connection=Connection(bench.adapter, private_data(receive=1024)))
    holder = Session(bench)
    delegation = delegated(bench, small)
    file = bench.make_file(FILE.format("locked"), b"")
    lock = holder.lock(file.handle, b"holder")
    if lock is None or small.lock(file.handle, bytes(LONGEST_NAME)) is not None:
        raise Failure("the lock is not the holder's")
    holder.unlock(lock)
    if small.connection.has_received(TOO_LONG_SECONDS):
        raise Failure(f"a message of {len(small.connection.receive().message)} bytes")
    small.answer(called(bench, small, delegation))
    give_back(bench, small, delegation)
    for session in (small, holder):
        bench.works(session.connection)
        session.connection.close()


def say_credits(bench: Bench, session: Session, recall: Recall, credits: int) -> None:
    """Name a number in a Call, in a message of which nobody knows what it is, and in bad Replies."""
    xid, reply = bench.xid(), recall.reply()
    answer = Header(xid, credits=bench.credits).encode() + bytes(nfs.null().reply(xid).bytes)
    call = Header(xid, credits=credits).encode() + bytes(nfs.null().call(xid).bytes)
    bench.must_answer(call, answer, f"answer to a Call that asks for {credits} credits", session.connection)
    place = chunk(bench, 100)
    for what, message in (
            ("RDMA_NOMSG without a chunk", Header(recall.xid, RDMA_NOMSG, credits).encode()),
            ("version 2", Header(recall.xid, RDMA_MSG, credits, version=2).encode() + reply),
            ("message type 2", Header(recall.xid, RDMA_MSG, credits).encode() + words(recall.xid, 2) + reply[8:]),
            ("Reply chunk", Header(recall.xid, RDMA_MSG, credits, reply=place).encode() + reply),
            ("Reply to nothing", Header(xid, RDMA_MSG, credits).encode() + words(xid) + reply[4:]),
            ("error to nothing", chunk_error(xid, credits))):
        must_discard(bench, session, message, f"{what} with {credits} credits")


def delegated(bench: Bench, session: Session) -> Delegation:
    """A new file that the server has delegated."""
    for _ in range(TRIES):
        # Not one that was delegated before.
        file = FILE.format(bench.xid())
        bench.remove(file)
        delegation = session.delegated(bench.make_file(file, b"").handle)
        if delegation is not None:
            return delegation
    raise Failure(f"the server has delegated none of {TRIES} files")


def called(bench: Bench, session: Session, delegation: Delegation) -> Recall:
    """Have the server want it back."""
    provoke(bench, delegation)
    return session.recalled(delegation)


def provoke(bench: Bench, delegation: Delegation) -> None:
    """By writing to the file."""
    bench.v3(nfs.v3_write(delegation.handle, 0, b"written"), nfs.JUKEBOX)


def give_back(bench: Bench, session: Session, delegation: Delegation) -> None:
    """So that it can be written to."""
    session.give_back(delegation)
    bench.v3(nfs.v3_write(delegation.handle, 0, b"written"))


def must_discard(bench: Bench, session: Session, message: bytes, what: str) -> None:
    """Fail unless the next thing to come is the answer to a Call."""
    session.connection.send(message)
    try:
        bench.works(session.connection)
    except Failure as failure:
        raise Failure(f"{what} is not discarded: {failure}") from failure


def must_not_call(bench: Bench, session: Session) -> None:
    """Fail unless answers to Calls are all that comes."""
    try:
        for _ in range(LATER):
            bench.works(session.connection)
    except Failure as failure:
        raise Failure(f"the server calls without a credit: {failure}") from failure


CASES = [Case("bad Replies to a Call of the server", bad_replies,
              Difference("answers them with errors", "is not discarded")),
         Case("errors to a Call of the server", errors, Difference("takes no notice", "no answer")),
         Case("Replies to the server that are too long", long_replies, Difference("discards them", "no answer")),
         Case("credits for the server", credits, Difference("answers bad Replies with errors", "is not discarded"))]
GIVEN_UP = [Case("Calls that the server gives up", given_up, Difference("makes others", "without a credit")),
            Case("Calls that are too long", too_long, Difference("sends them", "a message of"))]
NEVER_ANSWERED = [Case("Calls that are never answered", never_answered, Difference("makes others", "without a credit"))]
