"""Errors of version 2 (the draft, section 7)."""

from collections.abc import Iterator

import nfs
import protocol
import rpc
from bench import Bench
from case import Case
from connection_2 import PROPERTIES, SIZE, Connection2, external, inline, middle, null, read_list, segments, write_list
from header import Segment, words
from message import Message, Prefix
from read_chunks import data, written
from write_chunks import chunk, read

# What the server has room for: Read chunks, and Write chunks; segments of one, and of all Read or all Write chunks.
CHUNKS, SEGMENTS, LIST_SEGMENTS = 16, 64, 128
# What a Receive of a client has room for, at least.
LEAST_SIZE = 1024
# A Reply that is in more messages than any may be (interpretation 21).
TOO_LONG = 10 * SIZE


def header_types(bench: Bench) -> None:
    """RDMA2_ERR_INVAL_HTYPE, also for those of version 1 (section 7.1.3, interpretation 26)."""
    one = Connection2(bench)
    for kind in (*range(4), 14, 99, 0xffffffff):
        for rest in (b"", null(0)):
            message = words(bench.xid(), protocol.VERSION, 0, kind) + rest
            one.must_refuse(message, f"type {kind}", protocol.INVAL_HTYPE)
    one.close()


def not_answered(bench: Bench) -> None:
    """No error answers an error, however bad it is, nor an RDMA2_GRANT (interpretation 40); unknown codes are discarded (section
    7), and so are Replies to nothing, and bad ones (interpretation 39)."""
    one, place = Connection2(bench), bench.arena.take(100)
    prefix = Prefix(bench.xid(), protocol.VERSION, 0, protocol.ERROR)
    for rest in ((), (protocol.ERR_VERS,), (protocol.ERR_VERS, 1), (protocol.WRITE_RESOURCE, 1), (0,), (77, 1, 2),
                 *((code, 1, 1) for code in protocol.ERRORS)):
        one.must_drop(prefix.encode() + words(*rest), f"error {rest}")
    one.must_drop(prefix.encode() + b"\0", "error cut off")
    one.must_drop(Message(Prefix(0x77, protocol.VERSION, 0, protocol.GRANT)).encode() + bytes(40), "GRANT with XID and more")
    xid, reply = bench.xid(), bytes(rpc.accepted(1).bytes)
    start = Prefix(xid, protocol.VERSION, 0, protocol.REPLY_INLINE)
    for what, lists, payload in (("to nothing", [], words(xid) + reply[4:]), ("of another XID", [], reply),
                                 ("that is a Call", [], null(xid)), ("of one word", [], words(xid)), ("of no word", [], b""),
                                 ("with a Write chunk", write_list([place]), words(xid) + reply[4:])):
        one.must_drop(Message(start, {"rdma_writes": lists}, payload).encode(), f"Reply {what}")
    one.must_drop(start.encode() + words(2), "Reply with a bad list")
    outside = Prefix(xid, protocol.VERSION, 0, protocol.REPLY_EXTERNAL)
    for returned in (None, {"rdma_target": segments([place])}):
        one.must_drop(Message(outside, {"rdma_writes": [], "rdma_reply": returned}), "Reply in a chunk that was not offered")
    one.must_drop(middle(xid, words(xid, 1), 0, protocol.REPLY_MIDDLE), "Reply in fragments with none remaining")
    one.close()


def cut_off(bench: Bench) -> None:
    """RDMA2_ERR_BAD_XDR for a header that ends too early (section 7.2.1)."""
    one = Connection2(bench)
    first, second = bench.arena.take(10), bench.arena.take(20)
    lists = {"rdma_reads": read_list([(80, first)]), "rdma_provisional_writes": write_list([first, second]),
             "rdma_provisional_reply": {"rdma_target": segments([second])}}
    wholes = {"INLINE": (inline(0, b"", **lists), 8), "EXTERNAL": (external(0, [(0, first)], **lists), 0),
              "MIDDLE": (middle(0, b"", 100), 8)}
    for name, (whole, payload) in wholes.items():
        octets = whole.encode()
        # Not after each byte, for the sake of time; and each time after another one of a word.
        for end in range(protocol.PREFIX, len(octets) + payload, 3):
            xid = bench.xid()
            cut = words(xid) + (octets[4:] + words(xid, 0))[:end - 4]
            one.must_refuse(cut, f"{name} cut off after {end} bytes", protocol.BAD_XDR)
    one.close()


def bad_lists(bench: Bench) -> None:
    """What stands in front of optional data is 0 or 1; a chunk has as many segments as it says."""
    one, place = Connection2(bench), bench.arena.take(100)
    # The lists of INLINE follow the prefix and a word; those of EXTERNAL begin with the Call chunk.
    for at in (20, 24, 28):
        xid = bench.xid()
        octets = inline(xid, null(xid)).encode()
        for value in (2, 0xffffffff):
            one.must_refuse(octets[:at] + words(value) + octets[at + 4:], f"{value} at byte {at}", protocol.BAD_XDR)
    xid = bench.xid()
    octets = external(xid, [(0, place)]).encode()
    for at in (20, 44, 48, 52, 56):
        one.must_refuse(octets[:at] + words(2) + octets[at + 4:], f"2 at byte {at} of EXTERNAL", protocol.BAD_XDR)
    for count in (2, 3, 0x0fffffff, 0x10000000, 0x10000001, 0xffffffff):
        xid = bench.xid()
        for lists in ((0, 0, 1, count, 1, 2, 3, 4, 0, 0), (0, 0, 0, 1, count, 1, 2, 3, 4)):
            one.must_refuse(words(xid, protocol.VERSION, 0, protocol.CALL_INLINE, *lists), f"{count} segments", protocol.BAD_XDR)
    one.close()


def bad_chunks(bench: Bench) -> None:
    """RDMA2_ERR_BAD_XDR for Positions and segments that cannot be, and for body chunks that are missing or too short (sections
    4.5.1, 6.3.5, 6.3.7 and 6.6.3, interpretations 30 to 32)."""
    one = Connection2(bench)
    for what, call in impossible(bench):
        one.must_refuse(call, what, protocol.BAD_XDR)
        bench.arena.clear()
    one.close()


def impossible(bench: Bench) -> Iterator[tuple[str, Message]]:
    """What cannot be, and a Call that has it."""
    message = written(bench, data(1, 100), data(2, 100))
    for what, move in (("not aligned", lambda first, second: (first + 2, second)),
                       ("in the RPC header", lambda first, second: (8, second)), ("zero", lambda first, second: (0, second)),
                       ("decreasing", lambda first, second: (second, first)),
                       ("overlapping", lambda first, second: (first, first + 96)),
                       ("behind the end", lambda first, second: (first, second + 400)),
                       ("the last possible", lambda first, second: (first, 0xfffffffc))):
        xid = bench.xid()
        call = message.call(xid)
        chunks = [bench.arena.holding(call.data(item))[0] for item in call.items]
        positions = move(*(item.position for item in call.items))
        reads = list(zip(positions, chunks))
        left = call.without(call.items)
        yield f"Position {what}", inline(xid, left, rdma_reads=read_list(reads))
        whole = bench.arena.holding(left)
        yield f"Position {what} beside a Call chunk", external(xid, [(0, whole[0])], rdma_reads=read_list(reads))
    xid = bench.xid()
    whole = bench.arena.holding(null(xid))
    yield "Call chunk at a Position", external(xid, [(4, whole[0])])
    yield "Call chunk at two Positions", external(xid, [(0, whole[0]), (40, whole[0])])
    yield "EXTERNAL without a Call chunk", external(xid, [])
    yield "EXTERNAL with other chunks", external(xid, [], rdma_reads=read_list([(40, whole[0])]), rdma_provisional_reply={
        "rdma_target": segments(whole)})
    for length in (0, 4, 7):
        yield f"Call chunk of {length} bytes", external(xid, [(0, Segment(whole[0].handle, length, whole[0].offset))])
    last = Segment(1, 4096, (1 << 64) - 1)
    yield "impossible Call chunk", external(xid, [(0, last)])
    yield "impossible Read chunk", inline(xid, null(xid), rdma_reads=read_list([(40, last)]))
    yield "impossible Write chunk", inline(xid, null(xid), rdma_provisional_writes=write_list([last]))
    yield "impossible Reply chunk", inline(xid, null(xid), rdma_provisional_reply={"rdma_target": segments([last])})


def bad_payload(bench: Bench) -> None:
    """RDMA2_ERR_BAD_XDR for an RPC message with another XID, or of another direction, or of no more than a word (section 7.2,
    interpretation 33)."""
    one, xid, other = Connection2(bench), bench.xid(), bench.xid()
    for what, payload in (("another XID", null(other)), ("a Reply", bytes(rpc.accepted(xid).bytes)),
                          ("message type 2", words(xid, 2) + null(xid)[8:]), ("a word", words(xid)),
                          ("seven bytes", null(xid)[:7])):
        one.must_refuse(inline(xid, payload), what, protocol.BAD_XDR)
        if len(payload) > 8:
            call = external(xid, [(0, bench.arena.holding(payload)[0])])
            one.must_refuse(call, f"{what} in a Call chunk", protocol.BAD_XDR)
    one.close()


def not_eligible(bench: Bench) -> None:
    """RDMA2_ERR_BAD_XDR for arguments that are reduced and may not be (appendix A.1, interpretation 49)."""
    one = Connection2(bench)
    for program, version, procedure in ((nfs.NFS, 3, nfs.V3_NULL), (nfs.NFS, 3, nfs.V3_GETATTR), (nfs.NFS, 4, 0),
                                        (399_999, 1, 1)):
        xid = bench.xid()
        call = rpc.call(xid, program, version, procedure)
        reads = read_list([(len(call.bytes) + 4, bench.arena.holding(bytes(100))[0])])
        left = bytes(call.bytes) + words(100)
        what = f"Read chunk of program {program}, version {version}, procedure {procedure}"
        one.must_refuse(inline(xid, left, rdma_reads=reads), what, protocol.BAD_XDR)
        one.must_refuse(external(xid, [(0, bench.arena.holding(left)[0])], rdma_reads=reads), what, protocol.BAD_XDR)
    one.close()


def too_many(bench: Bench) -> None:
    """More chunks, or segments, than the server has room for: the error says for how many (sections 7.3.1 to 7.3.3,
    interpretations 45 to 47). So many are taken."""
    one = Connection2(bench)
    odd, xid = [n % 7 + 1 for n in range(SEGMENTS - 1)], bench.xid()
    message = written(bench, data(30, 900))
    item = message.call(xid).items[0]
    one.exchange(message, xid=xid, reduced=[0], reads=[(item.position, each) for each in bench.arena.holding(data(30, 900), odd)])
    one.exchange(nfs.compound(*read(bench, 0, 500)), writes=[chunk(bench, *[10] * SEGMENTS)] + [chunk(bench, 1)] * (CHUNKS - 1))
    bench.arena.clear()
    for what, call, code, most in over(bench, [bench.arena.take(4)] * (LIST_SEGMENTS + 1)):
        one.must_refuse(call, what, code, *most)
    # The property says how long a segment may be. There is no error for that: RDMA2_ERR_SYSTEM (interpretation 44).
    xid, long = bench.xid(), Segment(1, 0x7fffffff, 0)
    one.must_refuse(external(xid, [(0, long)]), "Call chunk of 2 GiB", protocol.SYSTEM)
    left = message.call(xid).without([item])
    one.must_refuse(inline(xid, left, rdma_reads=read_list([(item.position, long)])), "Read chunk of 2 GiB", protocol.SYSTEM)
    one.close()


def over(bench: Bench, places: list[Segment]) -> Iterator[tuple[str, Message, int, tuple[int]]]:
    """Calls that have too much, with the error that says so."""
    xid = bench.xid()
    call, at = null(xid), 400
    payload = call + bytes(1000)
    yield ("17 Read chunks", inline(xid, payload, rdma_reads=read_list([(at + 4 * n, places[n]) for n in range(CHUNKS + 1)])),
           protocol.READ_CHUNKS, (CHUNKS,))
    body, reads = Segment(places[0].handle, 1000, places[0].offset), read_list([(at + 4 * n, places[n]) for n in range(CHUNKS)])
    yield "16 Read chunks and a Call chunk", external(xid, [(0, body)], rdma_reads=reads), protocol.READ_CHUNKS, (CHUNKS,)
    yield ("17 Write chunks", inline(xid, call, rdma_provisional_writes=write_list(*[[place] for place in places[:CHUNKS + 1]])),
           protocol.WRITE_CHUNKS, (CHUNKS,))
    many = places[:SEGMENTS + 1]
    yield ("65 segments in a Read chunk", inline(xid, payload, rdma_reads=read_list([(at, place) for place in many])),
           protocol.SEGMENTS, (SEGMENTS,))
    yield ("65 segments in a Call chunk", external(xid, [(0, place) for place in many]), protocol.SEGMENTS, (SEGMENTS,))
    yield ("65 segments in a Write chunk", inline(xid, call, rdma_provisional_writes=write_list(many)), protocol.SEGMENTS,
           (SEGMENTS,))
    yield ("65 segments in a Reply chunk", inline(xid, call, rdma_provisional_reply={"rdma_target": segments(many)}),
           protocol.SEGMENTS, (SEGMENTS,))
    writes = write_list(places[:43], places[43:86], places[86:])
    yield ("129 segments in the Write list", inline(xid, call, rdma_provisional_writes=writes), protocol.SEGMENTS,
           (LIST_SEGMENTS,))
    yield ("129 segments in the Read list", inline(xid, payload, rdma_reads=read_list(
        [(at + 400 * (n // 43), place) for n, place in enumerate(places)])), protocol.SEGMENTS, (LIST_SEGMENTS,))


def no_room(bench: Bench) -> None:
    """A Write chunk that is too short for its result, and a Reply that neither fits into a chunk nor can be continued (sections
    7.3.4 and 7.3.5). Nothing is written."""
    one, xid = Connection2(bench), bench.xid()
    call = nfs.compound(*read(bench, 0, 1000), *read(bench, 5000, 1000)).call(xid)
    for lengths in ((1000, 999), (0,), (998, 2000)):
        index = next(n for n, length in enumerate(lengths, 1) if length < 1000)
        writes = write_list(*[chunk(bench, length) for length in lengths])
        one.must_refuse(inline(xid, bytes(call.bytes), rdma_provisional_writes=writes),
                        f"Write chunks of {lengths} bytes for 1000 each", protocol.WRITE_RESOURCE, index, 1000)
    message = nfs.compound(*read(bench, 0, TOO_LONG))
    call, length = message.call(xid), len(message.reply(xid).bytes)
    for reply in (None, [], chunk(bench, length - 1), chunk(bench, 10_000, length - 10_001)):
        lists = {"rdma_provisional_reply": None if reply is None else {"rdma_target": segments(reply)}}
        one.must_refuse(inline(xid, bytes(call.bytes), **lists), "Reply that finds no room", protocol.REPLY_RESOURCE, length)
    one.exchange(message, reply=chunk(bench, length), in_reply_chunk=True)
    one.close()


def no_header(bench: Bench) -> None:
    """Write chunks that a Reply cannot return, since its header would be longer than the client's Receives: a longer Reply
    chunk would not help (interpretation 23)."""
    one, xid = Connection2(bench, PROPERTIES | {protocol.RBSIZ: LEAST_SIZE}), bench.xid()
    full = chunk(bench, *[10] * SEGMENTS)
    for writes in (write_list(full, full), write_list(full[1:])):
        for reply in (None, {"rdma_target": segments(chunk(bench, 4))}):
            one.must_refuse(inline(xid, null(xid), rdma_provisional_writes=writes, rdma_provisional_reply=reply),
                            "Write chunks that fit into no Reply", protocol.SYSTEM)
    one.close()


CASES = [Case("header types", header_types), Case("what is not answered", not_answered), Case("headers cut off", cut_off),
         Case("bad lists", bad_lists), Case("bad chunks", bad_chunks), Case("bad RPC messages", bad_payload),
         Case("arguments that may not be reduced", not_eligible), Case("too many chunks and segments", too_many),
         Case("no room for results", no_room), Case("no room for the header of a Reply", no_header)]
