"""What is malformed, and what is answered to it (RFC 8166, section 4.5); what may not be reduced (RFC 8267)."""

import nfs
import rpc
from bench import Bench
from case import Case, Difference
from connection import Connection
from header import (RDMA_DONE, RDMA_ERROR, RDMA_MSG, RDMA_MSGP, RDMA_NOMSG, Header, Segment, chunk_error,
                    version_error, words)
from read_chunks import data, listed, written
from write_chunks import chunk


def null(xid: int) -> bytes:
    return bytes(nfs.null().call(xid).bytes)


def other_versions(bench: Bench) -> None:
    """ERR_VERS, with the version of the message and the range 1 to 1 (section 4.5.1)."""
    for version in (0, 2, 3, 0xffffffff):
        xid = bench.xid()
        message = Header(xid, version=version).encode() + null(xid)
        bench.must_answer(message, version_error(xid, version, bench.credits), f"version {version}")
        # Whatever follows: the header of another version looks different.
        xid = bench.xid()
        message = words(xid, version, 1, 77, 5, 5, 5)
        bench.must_answer(message, version_error(xid, version, bench.credits), f"version {version}, procedure 77")


def other_procedures(bench: Bench) -> None:
    for procedure in (RDMA_MSGP, 5, 0xffffffff):
        xid = bench.xid()
        bench.must_refuse(Header(xid, procedure).encode() + null(xid), f"procedure {procedure}")


def dropped_procedures(bench: Bench) -> None:
    """RDMA_DONE, and RDMA_ERROR to nothing that was asked (sections 4.2.4 and 4.6.2)."""
    xid = bench.xid()
    bench.must_drop(Header(xid, RDMA_DONE).encode() + null(xid), "RDMA_DONE")
    for rest in ((2, 0, 0), (1, 1, 1), (1, 7, 3), (9, 9, 9)):
        bench.must_drop(words(bench.xid(), 1, 1, RDMA_ERROR, *rest), f"RDMA_ERROR {rest}")
    bench.must_drop(chunk_error(bench.xid(), 1), "ERR_CHUNK")


def short(bench: Bench) -> None:
    """Messages of fewer than 28 bytes, of any version."""
    for length in range(28):
        message = Header(bench.xid()).encode()[:length]
        bench.must_drop(message, f"message of {length} bytes")
        message = words(bench.xid(), 2, 1, 77, 0, 0, 0)[:length]
        bench.must_drop(message, f"message of {length} bytes, version 2, procedure 77")


def no_payload(bench: Bench) -> None:
    """An RDMA_MSG without an RPC message, or with the beginning of one."""
    for length in (0, 4, 7):
        xid = bench.xid()
        bench.must_refuse(Header(xid).encode() + null(xid)[:length], f"RPC message of {length} bytes")


def truncated(bench: Bench) -> None:
    """Lists that go on behind the end of the message."""
    xid = bench.xid()
    place = chunk(bench, 10, 20)
    whole = Header(xid, reads=[(80, place[0])], writes=[place], reply=place).encode()
    for end in range(28, len(whole)):
        bench.must_refuse(whole[:end], f"header cut off after {end} bytes")


def bad_words(bench: Bench) -> None:
    """What stands in front of optional-data is neither 0 nor 1 (RFC 4506, section 4.19)."""
    for at in (16, 20, 24):
        for value in (2, 0xffffffff):
            xid = bench.xid()
            message = bytearray(Header(xid).encode() + null(xid))
            message[at:at + 4] = words(value)
            bench.must_refuse(bytes(message), f"{value} at byte {at}")
    place = chunk(bench, 10)[0]
    # Behind a Read segment, and behind a Write chunk.
    for lists, at in (({"reads": [(80, place)]}, 40), ({"writes": [[place]]}, 44)):
        for value in (2, 0xffffffff):
            xid = bench.xid()
            message = bytearray(Header(xid, **lists).encode() + null(xid))
            message[at:at + 4] = words(value)
            bench.must_refuse(bytes(message), f"{value} at byte {at}, behind an entry")


def bad_counts(bench: Bench) -> None:
    """Chunks of more segments than the message has."""
    for count in (2, 3, 0x0fffffff, 0x10000000, 0x10000001, 0xffffffff):
        for lists in ((0, 1, count, 1, 2, 3, 4, 0, 0), (0, 0, 1, count, 1, 2, 3, 4)):
            xid = bench.xid()
            bench.must_refuse(words(xid, 1, 1, RDMA_MSG, *lists), f"{count} segments, of which one is there")


def wrapping(bench: Bench) -> None:
    """Segments whose end is behind the last address, and chunks longer than any."""
    last = Segment(1, 4096, (1 << 64) - 1)
    longest = Segment(1, 0xffffffff, 0)
    xid = bench.xid()
    for header in (Header(xid, writes=[[last]]), Header(xid, reply=[last]), Header(xid, writes=[[longest, longest]]),
                   Header(xid, reply=[longest, longest])):
        bench.must_refuse(header.encode() + null(xid), "impossible segment")
    message = written(bench, data(1, 100))
    for segments in ([last], [longest], [longest, longest], [Segment(1, 8 << 20, 0)]):
        xid = bench.xid()
        call = message.call(xid)
        reads = [(call.items[0].position, segment) for segment in segments]
        bench.must_refuse(Header(xid, reads=reads).encode() + call.without(call.items), f"Read chunk {segments}")


def positions(bench: Bench) -> None:
    """Positions that cannot be (section 3.4.5)."""
    message = written(bench, data(1, 100), data(2, 100))
    cases = {"not aligned": lambda first, second: (first + 2, second),
             "in the RPC header": lambda first, second: (8, second),
             "overlapping": lambda first, second: (first, first + 96),
             "behind the end": lambda first, second: (first, second + 400),
             "the last possible": lambda first, second: (first, 0xfffffffc)}
    for name, move in cases.items():
        xid = bench.xid()
        call = message.call(xid)
        first, second = (bench.arena.holding(call.data(item))[0] for item in call.items)
        places = move(call.items[0].position, call.items[1].position)
        header = Header(xid, reads=list(zip(places, (first, second))))
        bench.must_refuse(header.encode() + call.without(call.items), f"Position {name}")


def position_zero_inline(bench: Bench) -> None:
    """A Position Zero Read chunk beside an inline RPC message (section 3.5.3)."""
    xid = bench.xid()
    segments = bench.arena.holding(null(xid))
    bench.must_refuse(Header(xid, reads=[(0, segments[0])]).encode() + null(xid), "RDMA_MSG, Position Zero Read chunk")


def nothing_long(bench: Bench) -> None:
    """RDMA_NOMSG without a chunk that holds a Call (section 4.5.2)."""
    place = bench.arena.take(100)
    for what, lists in (("no chunk", {}), ("a Write chunk", {"writes": [[place]]}),
                        ("a Reply chunk", {"reply": [place]}), ("an empty Reply chunk", {"reply": []}),
                        ("a Read chunk at another Position", {"reads": [(80, place)]})):
        xid = bench.xid()
        bench.must_refuse(Header(xid, RDMA_NOMSG, **lists).encode() + null(xid), f"RDMA_NOMSG with {what}")


def short_long(bench: Bench) -> None:
    """A Position Zero Read chunk too short for an RPC message."""
    for length in (0, 4, 7):
        xid = bench.xid()
        segment = bench.arena.holding(null(xid)[:length])[0]
        bench.must_refuse(Header(xid, RDMA_NOMSG, reads=[(0, segment)]).encode(), f"long Call of {length} bytes")


def other_xid(bench: Bench) -> None:
    """The XID of the header is not that of the RPC message (sections 4.2.1 and 4.5.2)."""
    xid, other = bench.xid(), bench.xid()
    bench.must_refuse(Header(xid).encode() + null(other), "other XID")
    segment = bench.arena.holding(null(other))[0]
    bench.must_refuse(Header(xid, RDMA_NOMSG, reads=[(0, segment)]).encode(), "other XID in a long Call")


def neither(bench: Bench) -> None:
    """An RPC message that is neither a Call nor a Reply, and a Reply to nothing that was asked."""
    xid = bench.xid()
    message = bytearray(null(xid))
    message[4:8] = words(2)
    bench.must_refuse(Header(xid).encode() + message, "message type 2")
    segment = bench.arena.holding(bytes(message))[0]
    bench.must_refuse(Header(xid, RDMA_NOMSG, reads=[(0, segment)]).encode(), "message type 2 in a long Call")
    xid = bench.xid()
    bench.must_drop(Header(xid).encode() + rpc.accepted(xid).bytes, "Reply to nothing")


def rpc_errors(bench: Bench) -> None:
    """What is wrong inside of the RPC message is for RPC to answer (RFC 5531, section 9)."""
    unavailable, mismatch = 1, 2
    bench.exchange(nfs.Message(lambda xid: rpc.call(xid, 399_999, 1, 0), lambda xid: rpc.accepted(xid, unavailable)))
    bench.exchange(nfs.Message(lambda xid: rpc.call(xid, nfs.NFS, 9, 0),
                               lambda xid: rpc.accepted(xid, mismatch).words(3, 4)))
    # MSG_DENIED, RPC_MISMATCH, 2 to 2.
    xid = bench.xid()
    message = bytearray(null(xid))
    message[8:12] = words(3)
    answer = Header(xid, credits=bench.credits).encode() + words(xid, 1, 1, 0, 2, 2)
    bench.must_answer(Header(xid).encode() + message, answer, "RPC version 3")


def garbage(bench: Bench) -> None:
    """Arguments that the service cannot parse (RFC 8166, section 4.5.2; RFC 5531, section 9)."""
    garbage_args = 4

    def reply(xid: int) -> rpc.Stream:
        return rpc.accepted(xid, garbage_args)

    cut_off = nfs.Message(lambda xid: nfs.v3_call(xid, nfs.V3_GETATTR, lambda stream: stream.words(64)), reply)
    bench.exchange(cut_off, writes=[chunk(bench, 100)])
    # Fewer bytes in the Read chunk than the count in front of it says.
    message, xid = nfs.Message(nfs.v3_write(bench.target.handle, 0, data(1, 3000)), reply), bench.xid()
    position = message.call(xid).items[0].position
    bench.exchange(message, xid=xid, reduced=[0], reads=[(position, bench.arena.holding(data(1, 2000))[0])])


def not_eligible(bench: Bench) -> None:
    """Read chunks for procedures that have no argument to reduce (RFC 8267, sections 4 and 5.2)."""
    padding = rpc.Stream().opaque(bytes(100)).bytes
    for program, version, procedure in ((nfs.NFS, 3, nfs.V3_NULL), (nfs.NFS, 3, nfs.V3_GETATTR),
                                        (nfs.NFS, 3, nfs.V3_READ), (nfs.NFS, 3, nfs.V3_REMOVE), (nfs.NFS, 2, 6),
                                        (nfs.NFS, 4, 0), (nfs.NFS_ACL, 3, 2), (399_999, 1, 1)):
        for long in (False, True):
            xid = bench.xid()
            call = rpc.call(xid, program, version, procedure)
            position = len(call.bytes) + 4
            reads = [(position, bench.arena.holding(bytes(100))[0])]
            inline = bytes(call.bytes + padding[:4])
            if long:
                reads.append((0, bench.arena.holding(inline)[0]))
                inline = b""
            message = Header(xid, RDMA_NOMSG if long else RDMA_MSG, reads=reads).encode() + inline
            what = f"Read chunk of program {program}, version {version}, procedure {procedure}"
            bench.must_refuse(message, what)


def misplaced(bench: Bench) -> None:
    """WRITE and SYMLINK of NFS 2 and 3 have one Position for a Read chunk, and one alone, which their arguments lead to
    (RFC 8166, section 6.1)."""
    def v2_write(xid: int) -> rpc.Stream:
        return rpc.call(xid, nfs.NFS, 2, 8).words(*[0] * 11).item(bytes(100))

    for what, call in (("WRITE", nfs.v3_write(bench.target.handle, 0, data(1, 100))),
                       ("SYMLINK", nfs.v3_symlink(bench.directory, "never", b"t" * 100)), ("WRITE of NFS 2", v2_write)):
        xid = bench.xid()
        stream = call(xid)
        position = stream.items[0].position
        arguments = len(rpc.call(xid, nfs.NFS, 3, 0).bytes)
        for other in (arguments, arguments + 4, position - 8, position - 4, position + 4, position + 96):
            refuse_item(bench, xid, stream, [(other, 4)], f"Position {other} of {what}, and not {position}")
        refuse_item(bench, xid, stream, [(position, 48), (position + 48, 52)], f"two Read chunks of {what}")
    bench.v3(lambda xid: nfs.v3_call(xid, nfs.V3_REMOVE, nfs.name(bench.directory, "never")), nfs.NOT_FOUND)


def misplaced_in_compound(bench: Bench) -> None:
    """Neither a name, nor a file handle, nor arguments of a READ may be reduced (RFC 8267, section 6.1)."""
    xid = bench.xid()
    call = nfs.compound(nfs.put(bench.directory), nfs.lookup("file"), nfs.read(b"", 0, 100)).call(xid)
    name = call.items[0].position
    for what, position in (("minor version", name - len(bench.directory) - 24), ("file handle", name - len(bench.directory) - 8),
                           ("name", name), ("operation", name + 4), ("offset of a READ", name + 24)):
        refuse_item(bench, xid, call, [(position, 4)], what)
    # One that may be, and then one that may not.
    call = nfs.compound(nfs.put(bench.target.handle), nfs.write(0, data(1, 100), bench.verifier),
                        nfs.lookup("name")).call(xid)
    first, second = call.items
    refuse_item(bench, xid, call, [(first.position, 100), (second.position, 4)], "name behind a WRITE")


def refuse_item(bench: Bench, xid: int, stream: rpc.Stream, places: list[tuple[int, int]], what: str) -> None:
    """ERR_CHUNK is the answer to Read chunks at these places of a stream, each of a length, with the rest inline and in
    a Position Zero Read chunk."""
    items = [rpc.Item(*place) for place in places]
    for long in (False, True):
        bench.arena.clear()
        reads = [(item.position, bench.arena.holding(stream.data(item))[0]) for item in items]
        inline = stream.without(items)
        if long:
            reads += [(0, segment) for segment in bench.arena.holding(inline, [50])]
        header = Header(xid, RDMA_NOMSG if long else RDMA_MSG, reads=reads).encode()
        bench.must_refuse(header + (b"" if long else inline), what)


def in_header(bench: Bench) -> None:
    """A Read chunk that begins in the RPC header, behind the shortest there can be: in the credential."""
    xid = bench.xid()
    call = written(bench, data(1, 100)).call(xid)
    header = len(rpc.call(xid, nfs.NFS, 4, 1).bytes)
    for position in (40, 44, header - 4):
        segment = bench.arena.holding(bytes(call.bytes[position:position + 4]))[0]
        inline = bytes(call.bytes[:position] + call.bytes[position + 4:])
        bench.must_refuse(Header(xid, reads=[(position, segment)]).encode() + inline, f"Position {position}")
        # Nothing inline says where the header would end.
        segment = bench.arena.holding(bytes(call.bytes[position:]))[0]
        inline = bytes(call.bytes[:position])
        bench.must_refuse(Header(xid, reads=[(position, segment)]).encode() + inline, f"all from Position {position} on")


def no_harm(bench: Bench) -> None:
    """Errors between Calls that are being executed: each of these is answered as if nothing had been."""
    calls = {}
    connection = Connection(bench.adapter)
    for n in range(6):
        xid, bad = bench.xid(), bench.xid()
        offset, place = 1000 * n + 1, chunk(bench, 20_001)
        message = nfs.compound(nfs.put(bench.file.handle), nfs.read(bench.file.content, offset, 20_001))
        connection.send(Header(xid, writes=[place]).encode() + message.call(xid).bytes)
        connection.send(Header(bad, RDMA_MSGP).encode() + null(bad))
        calls[xid] = bench.expected(xid, message.reply(xid), [place], None, False)
        calls[bad] = chunk_error(bad, bench.credits)
    bench.collect(connection, calls)
    connection.close()


SILENT = Difference("drops it", "no answer")
LOST = "the connection is lost"
EXECUTED = r": \d\d bytes, expected 20"
PASSED_ON = Difference("passes it on", EXECUTED)
EXECUTES = Difference("passes it on", r": \d{2,3} bytes, expected 20")

CASES = [Case("other versions", other_versions), Case("other procedures", other_procedures),
         Case("procedures that are dropped", dropped_procedures),
         Case("short messages", short,
              Difference("answers each with ERR_CHUNK, the shortest with what it did not receive",
                         "message of 0 bytes.* is not dropped")),
         Case("no RPC message", no_payload, SILENT), Case("header cut off", truncated),
         Case("bad words in lists", bad_words), Case("bad counts", bad_counts),
         Case("impossible segments", wrapping, Difference("does not look at segments before it uses them", EXECUTED)),
         Case("bad Positions", positions, PASSED_ON),
         Case("Position Zero Read chunk, RDMA_MSG", position_zero_inline,
              Difference("executes the inline Call", EXECUTED)),
         Case("RDMA_NOMSG without a Call", nothing_long, Difference("executes what follows the header", EXECUTED)),
         Case("long Call too short", short_long, Difference("drops the connection", LOST)),
         Case("other XID", other_xid, Difference("does not compare them", EXECUTED)),
         Case("neither Call nor Reply", neither, SILENT), Case("errors of RPC", rpc_errors),
         Case("arguments of no sense", garbage),
         Case("Read chunk of nothing eligible", not_eligible, PASSED_ON),
         Case("Read chunk at another Position", misplaced, EXECUTES),
         Case("Read chunk elsewhere in a COMPOUND", misplaced_in_compound, EXECUTES),
         Case("Read chunk in the RPC header", in_header, PASSED_ON), Case("errors between Calls", no_harm)]
