"""Messages of version 2 that convey Calls and Replies (the draft, sections 4.5, 6.3 and 6.6)."""

import nfs
import protocol
from bench import Bench
from case import Case
from connection_2 import GRANT, SERVER_BYTES, Connection2, external, inline, masked, middle, null, properties, segment, write_list
from connections import key, part
from conveyed import Call
from failure import require, same
from header import Header, Segment, words
from message import Message, Prefix, error
from nfs import Operation
from read_chunks import data, listed, must_hold, written
from reply_chunks import around
from write_chunks import aligned, chunk, read, readlink

# Messages that the server takes of one that is continued (interpretation 21), and the longest of its Replies.
MOST_MESSAGES = 10
# A Call that does not fit into one message of the server's, and a Reply that does not fit into one of the client's.
LONG_CALL, LONG_REPLY = 9000, 20_000
# Of INLINE without chunks.
CALL_HEADER, REPLY_HEADER = 32, 20


def writes(bench: Bench) -> None:
    """Data in a Read chunk of one segment, and of many; Positions count from the beginning of the whole (section 4.5.1)."""
    one = Connection2(bench)
    for seed, lengths in ((1, []), (2, [1, 500, 7, 3001, 90])):
        piece, xid = data(seed, 6001), bench.xid()
        message = written(bench, piece)
        one.exchange(message, xid=xid, reduced=[0], reads=listed(bench, message.call(xid), 0, lengths))
        must_hold(bench, piece)
    # The second Position counts what is in the first chunk, with its padding; what is between them is inline.
    pieces, xid = (data(3, 1001), data(4, 77), data(5, 3002)), bench.xid()
    message = written(bench, *pieces)
    call = message.call(xid)
    one.exchange(message, xid=xid, reduced=[0, 2], reads=listed(bench, call, 0, [9]) + listed(bench, call, 2, [2000, 1]))
    must_hold(bench, b"".join(pieces))
    one.close()


def reads(bench: Bench) -> None:
    """Results in Write chunks; one that is not used comes back empty, and so does an empty one (section 4.5.2.1; the binding,
    section 5.1.2.1)."""
    one = Connection2(bench)
    one.exchange(nfs.compound(*read(bench, 11, 3001)), writes=[chunk(bench, 3001)])
    one.exchange(nfs.compound(*read(bench, 11, 3001)), writes=[chunk(bench, 0, 1000, 0, 1501, 900)])
    one.exchange(nfs.compound(*aligned(bench, 1, 1, 1), *read(bench, 7777, 1001)),
                 writes=[chunk(bench, 5, 4500), chunk(bench, 1001)])
    one.exchange(nfs.compound(*aligned(bench, 1, 1, 1), *read(bench, 3, 7), *readlink(bench, 1)),
                 writes=[chunk(bench, 4500), [], chunk(bench, 1000), chunk(bench, 20)])
    one.exchange(nfs.null(), writes=[chunk(bench, 100), [], chunk(bench, 3, 4)])
    # Neither what fails nor what is behind the end of the file has a result.
    end = len(bench.file.content)
    one.exchange(nfs.compound(*read(bench, end, 100), *readlink(bench, 0)), writes=[chunk(bench, 100), chunk(bench, 5)])
    one.exchange(nfs.compound(*read(bench, 3, 1001), nfs.put(bench.directory), nfs.read_failing(nfs.IS_DIRECTORY)),
                 writes=[chunk(bench, 1001), chunk(bench, 1000)])
    # What may not be reduced stays inline.
    handle = Operation(nfs.GETFH, results=lambda stream: stream.opaque(bench.file.handle))
    one.exchange(nfs.compound(nfs.put(bench.directory), nfs.lookup("file"), handle), writes=[chunk(bench, 1000)])
    one.close()


def both_ways(bench: Bench) -> None:
    """A Read chunk, and Write chunks."""
    one, piece, xid = Connection2(bench), data(6, 5003), bench.xid()
    message = nfs.compound(nfs.put(bench.target.handle), nfs.write(0, piece, bench.verifier), *read(bench, 1, 777))
    one.exchange(message, xid=xid, reduced=[0], reads=listed(bench, message.call(xid), 0), writes=[chunk(bench, 700, 100)])
    must_hold(bench, piece)
    one.close()


def invalidated(bench: Bench) -> None:
    """The key that rdma_inv_handle names comes to be invalid with the Reply, whichever of several it is; without a name none
    does (section 6.5)."""
    one = Connection2(bench)
    for name in ("call", "source", "sink", "reply"):
        with_keys(bench, one, name, keys(bench, one))
    places = keys(bench, one)
    for _ in range(2):
        with_keys(bench, one, None, places)
    one.close()


def keys(bench: Bench, one: Connection2) -> dict[str, Segment]:
    """Four places, each by a key that may be made invalid."""
    bench.arena.clear()
    return {name: key(bench, one.connection, bench.arena.take(9000)) for name in ("call", "source", "sink", "reply")}


def with_keys(bench: Bench, one: Connection2, name: str | None, places: dict[str, Segment]) -> None:
    """Make a Call with each kind of chunk, that names one of them. The places are the first of the arena."""
    message = nfs.compound(nfs.put(bench.target.handle), nfs.write(0, data(20, 501), bench.verifier), *aligned(bench, 0, 1),
                           *read(bench, 3, 5000))
    bench.arena.clear()
    xid = bench.xid()
    stream = message.call(xid)
    left = stream.without(stream.items[:1])
    for content in (left, stream.data(stream.items[0])):
        bench.arena.holding(content.ljust(9000, b"\xa5"))
    sink, reply = (bench.arena.take(9000) for _ in range(2))
    call, source = part(places["call"], 0, len(left)), part(places["source"], 0, 501)
    one.end.call(Call(xid, left, [segment(call)], [(stream.items[0].position, segment(source))], [[segment(places["sink"])]],
                      [segment(places["reply"])], places[name].handle if name else 0))
    one.flush()
    invalid = places[name].handle if name and bench.invalidates else None
    one.must_reply(one.expected(xid, message.reply(xid), [[places["sink"]]], [places["reply"]], True), invalid)
    require(sink.offset == places["sink"].offset and reply.offset == places["reply"].offset, "the places are others")


def invalid_last(bench: Bench) -> None:
    """The last message of a continued Reply makes the key invalid (interpretation 37), which cannot be used again."""
    one = Connection2(bench)
    place = key(bench, one.connection, bench.arena.take(9000))
    message = nfs.compound(*aligned(bench, 1, 2, 3), *read(bench, 0, LONG_REPLY))
    one.exchange(message, writes=[[place]], inv_handle=place.handle, invalidated=place.handle if bench.invalidates else None)
    if bench.invalidates:
        xid = bench.xid()
        one.send(inline(xid, nfs.compound(*read(bench, 0, 900)).call(xid).bytes,
                        rdma_provisional_writes=write_list([part(place, 8192, 800), part(place, 8000, 100)])))
        one.connection.must_be_lost()
        bench.arena.check()
    one.connection.close()


def foreign_key(bench: Bench) -> None:
    """RDMA2_ERR_BAD_XDR for a name that is none of the header's, and nothing comes to be invalid (section 6.5, interpretation
    36)."""
    one = Connection2(bench)
    foreign, own = (key(bench, one.connection, bench.arena.take(1000)) for _ in range(2))
    for lists in ({}, {"rdma_provisional_writes": write_list([own])},
                  {"rdma_provisional_reply": {"rdma_target": [segment(own)]}}):
        for handle in (foreign.handle, own.handle ^ 0x100):
            xid = bench.xid()
            call = inline(xid, bytes(nfs.compound(*read(bench, 0, 100)).call(xid).bytes), rdma_inv_handle=handle, **lists)
            one.must_refuse(call, "the key of another Call to be made invalid", protocol.BAD_XDR)
    one.exchange(nfs.compound(*read(bench, 0, 1000)), writes=[[foreign]])
    one.close()


def external_calls(bench: Bench) -> None:
    """The whole of a Call in a Call chunk, alone and with a Read chunk beside it (sections 6.3.5 and 6.6.3)."""
    one, piece = Connection2(bench), data(7, 9001)
    one.exchange(nfs.null(), long=[])
    one.exchange(written(bench, piece), long=[1, 50, 33, 4001])
    must_hold(bench, piece)
    pieces, xid = (data(8, 5001), data(9, 702)), bench.xid()
    message = written(bench, *pieces)
    one.exchange(message, xid=xid, reduced=[0], reads=listed(bench, message.call(xid), 0, [2003]), long=[99])
    must_hold(bench, b"".join(pieces))
    one.close()


def external_replies(bench: Bench) -> None:
    """A Reply that is too long to be inline goes into the Reply chunk, and no other does (section 6.6.3, interpretations 22 and
    34); where it does not fit there it is continued."""
    one = Connection2(bench)
    message = nfs.compound(*read(bench, 4001, LONG_REPLY), *readlink(bench, 2))
    length = len(message.reply(0).bytes)
    one.exchange(message, reply=chunk(bench, 3, 70, 9001, 8191, 9000), in_reply_chunk=True)
    one.exchange(message, reply=chunk(bench, length), in_reply_chunk=True)
    one.exchange(message, reply=chunk(bench, length - 1))
    one.exchange(message, reply=[])
    one.exchange(nfs.compound(*read(bench, 0, 3000)), reply=chunk(bench, 9000))
    bench.arena.clear()
    piece = data(10, 9001)
    message = nfs.compound(nfs.put(bench.target.handle), nfs.write(0, piece, bench.verifier), *aligned(bench, 1, 2, 3),
                           *read(bench, 7000, 9003))
    xid = bench.xid()
    one.exchange(message, xid=xid, long=[44], reads=listed(bench, message.call(xid), 0), reduced=[0],
                 writes=[[]], reply=chunk(bench, 1001, 20_000), in_reply_chunk=True)
    must_hold(bench, piece)
    one.close()


def continued_calls(bench: Bench) -> None:
    """A Call that is longer than a message (section 6.6.2), cut wherever it may be (interpretation 20); a Position counts from
    the beginning of the whole (interpretation 29)."""
    one, piece = Connection2(bench), data(11, LONG_CALL)
    one.exchange(written(bench, piece))
    must_hold(bench, piece)
    for seed, lengths in ((12, [8, 5, 4, 7, 1001, 4, 4096, 333, 8]), (13, [4096]), (14, [8000, 996])):
        piece, xid = data(seed, LONG_CALL + seed), bench.xid()
        message = written(bench, piece)
        for fragment in cut(xid, bytes(message.call(xid).bytes), lengths):
            one.send(fragment)
        one.must_reply(one.expected(xid, message.reply(xid)))
        must_hold(bench, piece)
    pieces, xid = (data(15, LONG_CALL), data(16, 3001), data(17, 50)), bench.xid()
    message = written(bench, *pieces)
    one.exchange(message, xid=xid, reduced=[1], reads=listed(bench, message.call(xid), 1, [100]))
    must_hold(bench, b"".join(pieces))
    one.close()


def continued_replies(bench: Bench) -> None:
    """A Reply that is longer than a message, and has no Reply chunk, also to a Call that is (sections 6.6.2 and 6.6.4); the last
    of its messages has the Write chunks. What just fits is one message, in both directions (interpretation 27)."""
    one, piece = Connection2(bench), data(18, LONG_CALL)
    for more in (0, 1):
        message, xid = nfs.compound(*read(bench, 0, one.size - REPLY_HEADER - around(bench) + more)), bench.xid()
        require(len(one.expected(xid, message.reply(xid))) == 1 + more, "the Reply has another length")
        one.exchange(message, xid=xid)
        call = len(written(bench, b"").call(0).bytes)
        one.exchange(written(bench, piece[:SERVER_BYTES - CALL_HEADER - call + more]))
    one.exchange(nfs.compound(*read(bench, 4001, LONG_REPLY)))
    one.exchange(nfs.compound(*aligned(bench, 1, 2, 3), *read(bench, 1, LONG_REPLY), *readlink(bench, 1)),
                 writes=[chunk(bench, 8000, 999), [], chunk(bench, 998)])
    bench.arena.clear()
    one.exchange(nfs.compound(nfs.put(bench.target.handle), nfs.write(0, piece, bench.verifier), *read(bench, 5, LONG_REPLY)))
    must_hold(bench, piece)
    one.close()


def between(bench: Bench) -> None:
    """RDMA2_GRANT and RDMA2_ERROR may come between fragments (interpretation 17). What else comes is answered, under its own XID,
    and the Call goes on (sections 6.3.6 and 7.1.4, interpretation 18)."""
    one, xid, other = Connection2(bench), bench.xid(), bench.xid()
    message = written(bench, data(19, LONG_CALL))
    first, second, last = cut(xid, bytes(message.call(xid).bytes), [4000, 4000])
    one.send(first)
    one.send(GRANT)
    one.send(error(Prefix(bench.xid(), protocol.VERSION, 0, 0), 0, protocol.SYSTEM))
    place = bench.arena.take(100)
    strangers = [inline(other, null(other)), external(xid, [(0, place)]), external(other, [(0, place)]),
                 properties(other), middle(other, null(other)[:20], 20),
                 middle(other, null(other)[:20], 20, protocol.REPLY_MIDDLE),
                 Message(Prefix(xid, protocol.VERSION, 0, protocol.REPLY_INLINE), {"rdma_writes": []}, null(xid))]
    for stranger in strangers:
        must_be_refused(one, stranger.encode(), protocol.INVAL_CONT)
    # What is left of the last one that was refused is discarded.
    must_be_refused(one, middle(other, null(other)[:20], 20).encode(), protocol.INVAL_CONT)
    one.send(inline(other, null(other)[20:]))
    must_be_refused(one, words(other, protocol.VERSION, 0, 77), protocol.INVAL_HTYPE)
    must_be_refused(one, Header(other).encode() + null(other), protocol.VERS_MISMATCH)
    one.send(second)
    one.send(GRANT)
    one.send(last)
    one.must_reply(one.expected(xid, message.reply(xid)))
    must_hold(bench, data(19, LONG_CALL))
    one.close()


def must_be_refused(one: Connection2, octets: bytes, code: int) -> None:
    """Fail unless this error is the next message to come."""
    one.send(octets)
    same(f"answer to [{octets[:32].hex(' ', 4)}] between fragments", masked(one.receive().message),
         error(Prefix.decode(octets), 0, code).encode())


def bad_fragments(bench: Bench) -> None:
    """rdma_remaining falls by what each message brings, and is not zero before the last (interpretation 19); there are not too
    many messages (interpretation 21). What follows a fragment that is wrong is discarded (section 7.1.4)."""
    one = Connection2(bench)
    payload = bytes(written(bench, data(21, 900)).call(0).bytes)
    rest = len(payload) - 400
    for what, first, remaining in (("none remaining", 400, 0), ("more than any Call", 400, 0xffffffff - 400),
                                   ("all but 2 GiB", 400, 1 << 31)):
        xid = bench.xid()
        must_discard_rest(bench, one, what, [middle(xid, words(xid) + payload[4:first], remaining)], payload[first:])
    for what, remaining in (("one word too many", rest - 396), ("one word too few", rest - 404), ("as before", rest),
                            ("none", 0)):
        xid = bench.xid()
        fragments = [middle(xid, words(xid) + payload[4:400], rest), middle(xid, payload[400:800], remaining)]
        must_discard_rest(bench, one, what, fragments, payload[800:])
    for what, last in (("a last one too short", payload[400:-4]), ("a last one too long", payload[400:] + bytes(4))):
        xid = bench.xid()
        one.send(middle(xid, words(xid) + payload[4:400], rest))
        one.must_refuse(inline(xid, last), what, protocol.INVAL_CONT)
    xid = bench.xid()
    fragments = cut(xid, words(xid) + payload[4:], [8] * MOST_MESSAGES)
    must_discard_rest(bench, one, "too many messages", fragments[:-1], fragments[-1].payload)
    for what, front in (("a word alone", lambda xid: words(xid)), ("another XID", lambda xid: words(xid + 1) + payload[4:400]),
                        ("a Reply", lambda xid: words(xid, 1) + payload[8:400])):
        xid = bench.xid()
        start = front(xid)
        fragments = [middle(xid, start, len(payload) - len(start))]
        must_discard_rest(bench, one, what, fragments, payload[len(start):], protocol.BAD_XDR)
    one.close()


def must_discard_rest(bench: Bench, one: Connection2, what: str, fragments: list[Message], rest: bytes,
                      code: int = protocol.INVAL_CONT) -> None:
    """Fail unless the last of these fragments is answered with an error, and nothing is that follows."""
    for fragment in fragments[:-1]:
        one.send(fragment)
    one.send(fragments[-1])
    same(f"fragment with {what}", masked(one.receive().message), error(fragments[-1].prefix, 0, code).encode())
    xid = fragments[-1].prefix.xid
    one.send(middle(xid, rest[:40], len(rest) - 40))
    one.must_drop(inline(xid, rest[40:]), f"what follows a fragment with {what}")


def cut(xid: int, payload: bytes, lengths: list[int]) -> list[Message]:
    """A Call in fragments of these lengths and the rest."""
    fragments, at = list[Message](), 0
    for length in lengths:
        fragments.append(middle(xid, payload[at:at + length], len(payload) - at - length))
        at += length
    return [*fragments, inline(xid, payload[at:])]


CASES = [Case("INLINE with Read chunks", writes), Case("INLINE with Write chunks", reads), Case("INLINE with both", both_ways),
         Case("key that is named", invalidated), Case("key that is named, and a continued Reply", invalid_last),
         Case("key of another Call", foreign_key), Case("Call chunk", external_calls),
         Case("EXTERNAL for a long Reply", external_replies),
         Case("continued Calls", continued_calls), Case("continued Replies", continued_replies),
         Case("messages between fragments", between), Case("bad fragments", bad_fragments)]
