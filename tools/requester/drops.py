"""Calls that nfsd drops: what is being executed for another connection already. Somebody has to see to it that nfsd is held
up for some seconds when it has made the directory HOLD, by emptying its caches while nobody fills them."""

import time

import nfs
from bench import Bench
from case import Case, Difference
from connection import Connection
from failure import require, same
from header import Header, words

HOLD = "hold"
# A Call that has no answer for so long is held up.
HELD_SECONDS = 1
# For so long a client without a credit may wait for it at least, though so many of its Calls are dropped.
LEAST_SECONDS, DROPPED = 1, 8
# Until nfsd is, and until it is not any more.
MOST_SECONDS = 30


def dropped(bench: Bench) -> None:
    """The credit of a Call that nfsd drops comes back with the next Reply. A client that has no other would wait for its
    own timer: it loses the connection, and so learns that there will be no Reply (RFC 8166, section 4.5.4). A Call that
    nfsd has put off is not dropped."""
    connections = [Connection(bench.adapter) for _ in range(4)]
    first, again, only, waits = connections
    for connection in (first, again, waits):
        bench.works(connection)
    put_off = held_up(bench, waits)
    xid = bench.xid()
    call = nfs.v3_call(xid, nfs.V3_MKDIR, lambda stream: nfs.attributes(nfs.name(bench.directory, "made")(stream)))
    message = Header(xid).encode() + bytes(call.bytes)
    first.send(message)
    # It has to be known when the same comes by the others.
    time.sleep(HELD_SECONDS)
    again.send(message)
    same("grant after a Call was dropped", words(await_grant(bench, again)), words(bench.credits + 1))
    sent = time.monotonic()
    for _ in range(DROPPED):
        only.send(message)
    only.must_be_lost()
    waited = time.monotonic() - sent
    require(waited >= LEAST_SECONDS, f"the connection was lost after {waited:.1f} s")
    for connection, expected in ((waits, put_off), (first, xid)):
        answer = connection.receive(MOST_SECONDS).message
        same("XID and grant", answer[:4] + answer[8:12], words(expected, bench.credits))
        bench.works(connection)
    for connection in connections:
        connection.close()


def held_up(bench: Bench, connection: Connection) -> int:
    """Wait until nfsd is; the XID of a Call that it has not answered then."""
    bench.v3(lambda xid: nfs.v3_call(xid, nfs.V3_MKDIR, lambda stream: nfs.attributes(nfs.name(bench.directory, HOLD)(
        stream))), nfs.EXISTS)
    end = time.monotonic() + MOST_SECONDS
    while time.monotonic() < end:
        xid = bench.xid()
        call = nfs.v3_call(xid, nfs.V3_GETATTR, lambda stream: stream.opaque(bench.directory))
        connection.send(Header(xid).encode() + bytes(call.bytes))
        if not connection.has_received(HELD_SECONDS):
            return xid
        connection.receive()
    require(False, "nfsd is not held up")
    return 0


def await_grant(bench: Bench, connection: Connection) -> int:
    """The grant of the Replies that come now, after the first that is another one than the usual, or after many."""
    for _ in range(100):
        xid = bench.xid()
        granted = int.from_bytes(bench.ask(Header(xid).encode() + bytes(nfs.null().call(xid).bytes),
                                           connection).message[8:12])
        if granted != bench.credits:
            break
    return granted


CASES = [Case("Call that is dropped", dropped,
              Difference("gives no credit back, and keeps the connection", "grant after a Call was dropped"))]
