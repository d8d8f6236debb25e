"""Connections: private data (RFC 8797), remote invalidation, credits, and Calls that break them."""

from collections.abc import Callable

import nfs
import rpc
from bench import CREDITS, Bench
from case import Case, Difference
from connection import Connection
from endpoint import SENDS, Lost
from failure import Failure, require, same
from header import Header, Segment, chunk_error, private_data, words
from read_chunks import data, listed, written
from reply_chunks import HEADER, around
from write_chunks import aligned, chunk, read

# More than the queues of server and client hold together, and when to look after the others.
FAR_TOO_MANY, MEANWHILE = 600, 100
# Bytes of a Reply without Reply chunk that a client gets inline which does not say what it takes.
SILENT_CLIENT = 4096
MAGIC = words(0xf6ab0e18)
EMPTY = Segment(0, 0, 0)
# After so many Calls that none were in flight beside the server notices.
IDLE = 3000
# Rounds of 16 Calls in which a grant has to grow: the server looks once in 1024 whether it can be less.
ROUNDS = 50
# Connections that a Call breaks before the server knows it for the cause. An iWARP device does not name the request that was at
# fault: there it breaks any number, since a Call that is at none may be lost as often.
LOSSES, NAMES_NONE = {"rxe": 1, "siw": 4}, "siw"


def said(bench: Bench) -> None:
    """What the server says of itself; rdma_cm fills it up where the messages have a fixed length."""
    found = bench.connection.private
    # The in-tree server says nothing of invalidation.
    expected = private_data(bench.invalidates) if bench.is_ours else private_data(send=4096, receive=4096)
    if bench.adapter.name == "rxe":
        expected = expected.ljust(len(found), b"\0")
    same("private data of the server", found, expected)


def not_said(bench: Bench) -> None:
    """Private data that is not that of RFC 8797, or too short for it: no invalidation (section 5), and no more than 4096
    bytes inline where the client offers no Reply chunk, and so says that the Reply will fit (RFC 8166, section 4.3.3)."""
    whole = private_data(True)
    others = {"none": b"", "another identifier": words(0xf6ab0e19) + whole[4:],
              "another version": MAGIC + b"\2" + whole[5:]}
    others |= {f"{length} bytes": private_data()[:length] for length in range(1, 8)}
    if bench.differs("does not look at how much a client can receive inline"):
        return
    for what, private in others.items():
        # Where messages have a fixed length, zeros follow, which behind a version say 1024 bytes.
        says = bench.adapter.name == "rxe" and len(private) in range(5, 8)
        within(bench, private, 1024 if says else SILENT_CLIENT, what)


def no_room(bench: Bench) -> None:
    """Such a client may have no room after all: it loses its connection, and the Call gets ERR_CHUNK when it comes again
    (section 4.5.3), but on iWARP."""
    xid = bench.xid()
    again = Header(xid).encode() + nfs.compound(*read(bench, 0, 1500)).call(xid).bytes

    def connect() -> Connection:
        return Connection(bench.adapter, b"", receive_bytes=1024)

    for _ in range(LOSSES[bench.adapter.name]):
        connection = connect()
        bench.exchange(nfs.compound(*read(bench, 0, 1000 - HEADER - around(bench))), connection=connection)
        connection.send(again)
        connection.must_be_lost()
        connection.close()
    if bench.adapter.name == NAMES_NONE or bench.differs("sends it again, and loses the connection again"):
        return
    must_get_error(bench, xid, again, "Reply that finds no room", connect)


def said_by_client(bench: Bench) -> None:
    """The smaller size rules; the identifier may be at any offset, reserved bits may be set (sections 4 and 5.2)."""
    for what, private, receives in (
            ("sizes of 3072", private_data(receive=3072), 3072), ("large sizes", private_data(receive=262_144), 8192),
            ("reserved bits", MAGIC + bytes([1, 0xfe, 7, 2]), 3072),
            ("identifier at offset 5", bytes(5) + private_data(receive=3072), 3072),
            ("more behind it", private_data(receive=3072) + b"more", 3072)):
        if bench.differs("does not look at how much a client can receive inline"):
            return
        within(bench, private, receives, what)


def within(bench: Bench, private: bytes, threshold: int, what: str) -> None:
    """The server sends so many bytes inline, and no more; it invalidates nothing."""
    connection = Connection(bench.adapter, private)
    fits = threshold - HEADER - around(bench)
    try:
        bench.exchange(nfs.compound(*read(bench, 0, fits)), connection=connection)
        message, xid = nfs.compound(*read(bench, 0, fits + 1)), bench.xid()
        bench.must_refuse(Header(xid).encode() + message.call(xid).bytes, "Reply longer than the threshold",
                          connection=connection)
        bench.exchange(nfs.compound(*read(bench, 0, 1000)), writes=[chunk(bench, 1000)], connection=connection)
    except Failure as failure:
        raise Failure(f"private data: {what}: {failure}") from failure
    connection.close()


def invalidated(bench: Bench) -> None:
    """A key that covers all chunks comes to be invalid with the Reply, or, where devices do not look at keys, stays valid."""
    for writes, reads in ((1, 0), (2, 0), (1, 1), (0, 1)):
        connection = Connection(bench.adapter, private_data(True))
        place = key(bench, connection, bench.arena.take(12_000))
        places = [part(place, 4100 * n, 4100) for n in range(writes)], [part(place, 9000, 500)] * reads
        exchange_by(bench, connection, *places, place.handle if bench.invalidates else None)
        if bench.invalidates:
            must_be_invalid(bench, connection, place)
        else:
            exchange_by(bench, connection, *places, None)
            connection.close()
    if bench.differs("counts the keys of empty segments") or not bench.invalidates:
        return
    connection = Connection(bench.adapter, private_data(True))
    place = key(bench, connection, bench.arena.take(12_000))
    bench.exchange(nfs.compound(*read(bench, 0, 4000)), writes=[[EMPTY, part(place, 0, 4100), EMPTY]], connection=connection,
                   invalidated=place.handle)
    must_be_invalid(bench, connection, place)


def not_invalidated(bench: Bench) -> None:
    """No key does if there are two, if the client has not said that it wants it, with ERR_CHUNK, or with no chunk; nor that of
    empty segments, which is none."""
    wants = Connection(bench.adapter, private_data(True))
    first, second = (key(bench, wants, bench.arena.take(5000)) for _ in range(2))
    for writes, reads in (([first, second], []), ([first], [second])):
        exchange_by(bench, wants, writes, reads, None)
    place = bench.arena.take(10)
    message, xid = nfs.compound(*read(bench, 0, 100)), bench.xid()
    bench.must_refuse(Header(xid, writes=[[place]]).encode() + message.call(xid).bytes, "Write chunk too small",
                      connection=wants)
    bench.exchange(nfs.null(), connection=wants)
    bench.exchange(nfs.null(), writes=[[EMPTY]], reply=[EMPTY], connection=wants)
    exchange_by(bench, wants, [], [EMPTY], None)
    wants.close()
    silent = Connection(bench.adapter, private_data(False))
    place = key(bench, silent, bench.arena.take(5000))
    # It is used again, which shows more than the adapter may tell.
    for _ in range(2):
        exchange_by(bench, silent, [place], [], None)
    silent.close()


def exchange_by(bench: Bench, connection: Connection, writes: list[Segment], reads: list[Segment],
                expected: int | None) -> None:
    """A READ for each Write chunk, a WRITE for each Read chunk."""
    operations = [operation for n in range(len(writes)) for operation in aligned(bench, 1000 * n, 1, n)]
    if reads:
        operations += [nfs.put(bench.target.handle), nfs.write(0, bytes([0xa5]) * reads[0].length, bench.verifier)]
    message, xid = nfs.compound(*operations), bench.xid()
    positions = [item.position for item in message.call(xid).items]
    if bench.adapter.name == "siw":
        # Its library does not say which key a message made invalid.
        expected = None
    bench.exchange(message, xid=xid, reduced=range(len(positions)), reads=list(zip(positions, reads)),
                   writes=[[segment] for segment in writes], invalidated=expected, connection=connection)


def key(bench: Bench, connection: Connection, place: Segment) -> Segment:
    """The same memory by a key that may be made invalid."""
    if bench.adapter.name == "siw":
        return Segment(bench.arena.another_key().contents.remote_key, place.length, place.offset)
    return connection.window(place)


def part(segment: Segment, start: int, length: int) -> Segment:
    return Segment(segment.handle, length, segment.offset + start)


def must_be_invalid(bench: Bench, connection: Connection, place: Segment) -> None:
    """The server cannot write there any more: that breaks the connection."""
    xid = bench.xid()
    message = nfs.compound(*read(bench, 0, 900)).call(xid).bytes
    connection.send(Header(xid, writes=[[part(place, 10_000, 900)]]).encode() + message)
    connection.must_be_lost()
    connection.close()
    bench.arena.check()


def grown(bench: Bench) -> None:
    """The grant grows with use, up to 8 for each of the four threads, and shrinks without; it is never zero, whatever is
    asked for."""
    connection = Connection(bench.adapter)
    seen = [grants(bench, connection, 1, 32)]
    for wanted in (1, 0, 1 << 31, 0xffffffff):
        for _ in range(3):
            seen.append(grants(bench, connection, 16, wanted))
    seen += growth(bench, connection)
    if bench.differs("grants all it has at once"):
        require(set(seen) == {CREDITS[bench.server]}, f"grants: {seen}")
        connection.close()
        return
    require(seen[0] == 16 and seen[-1] == 32 and seen == sorted(seen), f"grants: {seen}")
    # One Call at a time needs no more than at the beginning; and then it is as it was.
    for _ in range(IDLE):
        xid = bench.xid()
        granted = bench.ask(Header(xid).encode() + bytes(nfs.null().call(xid).bytes), connection).message[8:12]
        if granted == words(16):
            break
    same("grant of who has made one Call at a time", granted, words(16))
    for _ in range(20):
        bench.exchange(nfs.null(), connection=connection)
    again = growth(bench, connection)
    require(again[-1] == 32, f"grants: {again}")
    connection.close()


def growth(bench: Bench, connection: Connection) -> list[int]:
    """The grants of as many rounds as it takes until the largest is reached: one round alone need not have half its Calls
    under way at the same time, since a server with few processors may answer each before the next one arrives."""
    seen = [grants(bench, connection, 16, 32)]
    while seen[-1] != 32 and len(seen) < ROUNDS:
        seen.append(grants(bench, connection, 16, 32))
    return seen


def grants(bench: Bench, connection: Connection, count: int, wanted: int) -> int:
    """Make so many Calls at once, which take a while; the largest grant."""
    xids = [bench.xid() for _ in range(count)]
    message = written(bench, data(count, 5000))
    for xid in xids:
        call = message.call(xid)
        connection.send(Header(xid, credits=wanted, reads=listed(bench, call, 0)).encode() + call.without(call.items))
    found = {}
    for _ in xids:
        answer = connection.receive().message
        found[int.from_bytes(answer[:4])] = answer
    require(sorted(found) == xids, "not each Call has an answer")
    for xid, answer in found.items():
        same("Reply", answer, Header(xid, credits=int.from_bytes(answer[8:12])).encode() + message.reply(xid).bytes)
    bench.arena.clear()
    return max(int.from_bytes(answer[8:12]) for answer in found.values())


def in_flight(bench: Bench) -> None:
    """Sixteen Calls of every kind at once, three times."""
    connection = Connection(bench.adapter)
    for _ in range(3):
        bench.arena.clear()
        expected = {}
        for n in range(16):
            xid, count = bench.xid(), 1001 + 600 * n
            message = nfs.compound(*read(bench, 777 * n, count))
            if n % 4 == 1:
                message = nfs.compound(*read(bench, n, 1500))
            writes = [chunk(bench, 1000, 600 * n + 7)] if n % 4 == 0 else []
            reply = chunk(bench, 9001, 5000) if n % 4 in (2, 3) and n > 3 else None
            if n % 4 in (2, 3) and reply is None:
                message = nfs.compound(*read(bench, n, 99))
            reads, inline = [], bytes(message.call(xid).bytes)
            if n % 4 == 3:
                reads, inline = [(0, segment) for segment in bench.arena.holding(inline, [50])], b""
            header = Header(xid, int(not inline), reads=reads, writes=writes, reply=reply)
            connection.send(header.encode() + inline)
            long = reply is not None and (not bench.is_ours or count > 8000)
            expected[xid] = bench.expected(xid, message.reply(xid), writes, reply, long)
        bench.collect(connection, expected)
    connection.close()


def few_too_many(bench: Bench) -> None:
    """Half as many Calls again as are granted: the server has room for them, and answers all."""
    connection = Connection(bench.adapter, not_ready_retries=0)
    grants(bench, connection, 24, 32)
    connection.close()


def far_too_many(bench: Bench) -> None:
    """Many more Calls than granted: that may cost the connection, but no other."""
    connection = Connection(bench.adapter, not_ready_retries=0, receives=250)
    try:
        grants(bench, connection, 250, 250)
    except Lost:
        pass
    connection.close()
    bench.works()


def takes_no_replies(bench: Bench) -> None:
    """Many more Calls than granted, and no Receive for any Reply: the server executes no more when its send queue is
    full, and takes no more when it is out of Receives. Others are served meanwhile."""
    connection = Connection(bench.adapter, posted=False)
    try:
        for sent in range(FAR_TOO_MANY):
            xid = bench.xid()
            connection.send(Header(xid).encode() + bytes(nfs.null().call(xid).bytes))
            if sent == MEANWHILE:
                bench.works()
    except Lost:
        pass
    # An iWARP device has done with a message when TCP has it.
    if bench.adapter.name == "rxe":
        require(connection.taken < FAR_TOO_MANY - SENDS, f"the server has taken {connection.taken} Calls")
    connection.close()
    bench.works()


def at_fault(bench: Bench) -> None:
    """A Call with a key that is none breaks its connection (section 4.5.3). Sent again on the next, it gets ERR_CHUNK,
    once, but on iWARP."""
    for kind in ("Read chunk", "Write chunk", "Reply chunk"):
        xid = bench.xid()
        for _ in range(LOSSES[bench.adapter.name]):
            breaks(bench, xid, kind)
        if bench.adapter.name == NAMES_NONE:
            continue
        if bench.differs("executes a Call again that has broken a connection, and loses the next"):
            breaks(bench, xid, kind)
        else:
            must_get_error(bench, xid, faulty(bench, xid, kind), f"Call with a bad {kind}", lambda: Connection(bench.adapter))
    if bench.adapter.name == "rxe" and bench.is_ours:
        # What has broken a connection is an XID, whatever the Call looks like the next time.
        xid = bench.xid()
        breaks(bench, xid, "Reply chunk")
        connection = Connection(bench.adapter)
        bench.must_answer(Header(xid).encode() + bytes(nfs.null().call(xid).bytes), chunk_error(xid, bench.credits),
                          "Call with a known XID, and no chunk", connection)
        bench.exchange(nfs.null(), xid=xid, connection=connection)
        connection.close()


def must_get_error(bench: Bench, xid: int, again: bytes, what: str, connect: Callable[[], Connection]) -> None:
    """A Call that comes again gets ERR_CHUNK, once."""
    connection = connect()
    bench.must_answer(again, chunk_error(xid, bench.credits), f"{what}, sent again", connection)
    # The mark is gone: another Call may have this XID.
    bench.exchange(nfs.null(), xid=xid, connection=connection)
    connection.close()


def breaks(bench: Bench, xid: int, kind: str) -> None:
    connection = Connection(bench.adapter)
    connection.send(faulty(bench, xid, kind))
    connection.must_be_lost()
    connection.close()
    bench.arena.check()


def faulty(bench: Bench, xid: int, kind: str) -> bytes:
    none = Segment(0x00bad000, 20_000, bench.arena.address)
    if kind == "Read chunk":
        call = written(bench, bytes(20_000)).call(xid)
        header = Header(xid, reads=[(call.items[0].position, none)])
        return header.encode() + call.without(call.items)
    call = nfs.compound(*read(bench, 0, 15_000)).call(xid)
    header = Header(xid, writes=[[none]]) if kind == "Write chunk" else Header(xid, reply=[none])
    return header.encode() + bytes(call.bytes)


def come_back(bench: Bench) -> None:
    """A Call sent again on a new connection, from another port, is answered from the duplicate request cache."""
    def answer(xid: int) -> bytes:
        connection = Connection(bench.adapter)
        call = nfs.v3_call(xid, nfs.V3_MKDIR, lambda stream: nfs.attributes(nfs.name(bench.directory, "once")(stream)))
        received = bench.ask(Header(xid).encode() + bytes(call.bytes), connection).message
        connection.close()
        return received

    bench.v3(lambda xid: nfs.v3_call(xid, nfs.V3_RMDIR, nfs.name(bench.directory, "once")), nfs.NOT_FOUND)
    xid = bench.xid()
    first, again, other = answer(xid), answer(xid), answer(bench.xid())
    status = slice(HEADER + len(rpc.accepted(xid).bytes), HEADER + len(rpc.accepted(xid).bytes) + 4)
    same("status of the first", first[status], words(nfs.OK))
    same("answer of the second", again, first)
    same("status of another Call", other[status], words(nfs.EXISTS))


def left(bench: Bench) -> None:
    """A client that goes with Calls in flight. They are at no fault: what it sends again is answered."""
    for _ in range(3):
        connection, xids = Connection(bench.adapter), [bench.xid() for _ in range(12)]
        for n, xid in enumerate(xids):
            message = written(bench, data(n, 20_000)).call(xid)
            reads = listed(bench, message, 0, [10_000])
            connection.send(Header(xid, reads=reads).encode() + message.without(message.items))
        connection.close()
        bench.arena.clear()
        connection = Connection(bench.adapter)
        for xid in xids:
            bench.exchange(nfs.null(), xid=xid, connection=connection)
        connection.close()


def left_often(bench: Bench) -> None:
    """A client that goes again and again, as over a link that does not last, each time with the same Call alone in flight. That is
    at no fault either."""
    xid = bench.xid()
    message = written(bench, data(0, 200_000)).call(xid)
    for _ in range(2 * LOSSES[NAMES_NONE]):
        connection = Connection(bench.adapter)
        reads = listed(bench, message, 0, [100_000])
        connection.send(Header(xid, reads=reads).encode() + message.without(message.items))
        connection.close()
        bench.arena.clear()
    connection = Connection(bench.adapter)
    bench.exchange(nfs.null(), xid=xid, connection=connection)
    connection.close()


FEW_REGIONS = Difference("loses the connection when it needs more regions at once than it has",
                         "the connection is lost", "siw")

CASES = [Case("private data of the server", said), Case("private data missing or short", not_said),
         Case("no private data, and no room", no_room), Case("private data of the client", said_by_client), Case("remote invalidation", invalidated),
         Case("no remote invalidation", not_invalidated,
              Difference("executes a READ whose Write chunk is too small, and invalidates its key",
                         "the connection is lost|too small: 104 bytes")),
         Case("grant", grown, FEW_REGIONS), Case("Calls in flight", in_flight, FEW_REGIONS),
         Case("a few Calls too many", few_too_many, FEW_REGIONS),
         Case("far too many Calls", far_too_many),
         Case("no Receives for Replies", takes_no_replies,
              Difference("takes Calls as long as its send queue has room", "has taken", "rxe")),
         Case("Call that breaks its connection", at_fault),
         Case("Call sent again", come_back), Case("client gone", left), Case("client gone often", left_often)]
