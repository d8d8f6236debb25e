"""Read lists: several Read chunks, in any order, of any shape (RFC 8166, sections 3.4.5 and 4.3.1)."""

from collections.abc import Callable, Sequence

import nfs
from bench import Bench
from case import Case, Difference
from failure import same
from header import RDMA_NOMSG, Header, Segment
from nfs import Message, Operation
from rpc import Stream, padding


# Of the service, each with memory of its own; and some.
THREADS = 8
# An operation of NFS 4, and a type of file (RFC 7530, sections 16.4 and 3.2).
CREATE, LINK = 6, 5


def data(seed: int, length: int) -> bytes:
    """Bytes to write, other ones for each seed."""
    return bytes((seed * 37 + i * 7 + i // 251) & 0xff for i in range(length))


def written(bench: Bench, *pieces: bytes) -> Message:
    """A COMPOUND of WRITEs, one piece behind the other."""
    offset, operations = 0, [nfs.put(bench.target.handle)]
    for piece in pieces:
        operations.append(nfs.write(offset, piece, bench.verifier))
        offset += len(piece)
    return nfs.compound(*operations)


def must_hold(bench: Bench, content: bytes) -> None:
    """Fail unless the file that was written into has this content at its beginning."""
    at = 0
    while at < len(content):
        part = content[at:at + 2500]
        xid = bench.xid()
        call = nfs.v3_read(bench.target.handle, at, len(part))(xid)
        found = bench.ask(Header(xid).encode() + bytes(call.bytes)).message
        # The end of the results: the data, after attributes that change.
        same(f"file at {at}", found[-len(part + padding(len(part))):], part + padding(len(part)))
        at += len(part)


def listed(bench: Bench, stream: Stream, item: int, lengths: Sequence[int] = ()) -> list[tuple[int, Segment]]:
    """The Read chunk of an item, as it stands in a Read list."""
    found = stream.items[item]
    return [(found.position, segment) for segment in bench.arena.holding(stream.data(found), list(lengths))]


def two_chunks(bench: Bench) -> None:
    pieces = data(1, 1001), data(2, 2002)
    message, xid = written(bench, *pieces), bench.xid()
    call = message.call(xid)
    bench.exchange(message, xid=xid, reduced=[0, 1], reads=listed(bench, call, 0) + listed(bench, call, 1))
    must_hold(bench, b"".join(pieces))


def one_of_three(bench: Bench) -> None:
    """Two items stay inline around the one that is taken out."""
    pieces = data(3, 301), data(4, 20_003), data(5, 302)
    message, xid = written(bench, *pieces), bench.xid()
    bench.exchange(message, xid=xid, reduced=[1], reads=listed(bench, message.call(xid), 1, [7, 5001]))
    must_hold(bench, b"".join(pieces))


def not_sorted(bench: Bench) -> None:
    """Descending Positions, and the segments of the chunks mixed: those of one Position stay in order."""
    pieces = data(6, 3001), data(7, 4003), data(8, 999)
    message, xid = written(bench, *pieces), bench.xid()
    call = message.call(xid)
    first, second, third = (listed(bench, call, n, [101, 203]) for n in range(3))
    mixed = [third[0], second[0], first[0], first[1], third[1], second[1], second[2], first[2], third[2]]
    bench.exchange(message, xid=xid, reduced=[0, 1, 2], reads=mixed)
    must_hold(bench, b"".join(pieces))


def position_zero(bench: Bench) -> None:
    """The whole of a Call in a Position Zero Read chunk of several segments."""
    piece = data(9, 9001)
    message, xid = written(bench, piece), bench.xid()
    whole = bench.arena.holding(bytes(message.call(xid).bytes), [1, 50, 33, 4001])
    bench.exchange(message, xid=xid, long=True, reads=[(0, segment) for segment in whole])
    must_hold(bench, piece)


def position_zero_and_others(bench: Bench) -> None:
    """A Position Zero Read chunk whose segments stand between those of two other chunks."""
    pieces = data(10, 5001), data(11, 702), data(12, 6003)
    message, xid = written(bench, *pieces), bench.xid()
    call = message.call(xid)
    rest = call.without([call.items[0], call.items[2]])
    zero = [(0, segment) for segment in bench.arena.holding(rest, [99, 41])]
    first, third = listed(bench, call, 0, [2003]), listed(bench, call, 2, [1, 2])
    bench.exchange(message, xid=xid, long=True, reduced=[0, 2],
                   reads=[third[0], zero[0], first[0], zero[1], third[1], first[1], zero[2], third[2]])
    must_hold(bench, b"".join(pieces))


def with_padding(bench: Bench) -> None:
    """A requester should not, but may bring the padding along (RFC 8166, section 3.4.5.2), in the last segment or in
    one of its own."""
    pieces = data(13, 2001), data(14, 1002)
    message, xid = written(bench, *pieces), bench.xid()
    call = message.call(xid)
    first, second = call.items
    extended = bench.arena.holding(pieces[0] + padding(2001))
    separate = bench.arena.holding(pieces[1] + padding(1002), [1002])
    bench.exchange(message, xid=xid, reduced=[0, 1],
                   reads=[(first.position, extended[0]), *((second.position, segment) for segment in separate)])
    must_hold(bench, b"".join(pieces))


def some_with_padding(bench: Bench) -> None:
    """One chunk brings its padding along, and the others do not."""
    pieces = data(25, 1001), data(26, 1002), data(27, 1003)
    message, xid = written(bench, *pieces), bench.xid()
    call = message.call(xid)
    padded = bench.arena.holding(pieces[1] + padding(1002))
    bench.exchange(message, xid=xid, reduced=[0, 1, 2],
                   reads=[*listed(bench, call, 0), (call.items[1].position, padded[0]), *listed(bench, call, 2)])
    must_hold(bench, b"".join(pieces))


def one_with_padding(bench: Bench) -> None:
    piece = data(15, 2003)
    message, xid = written(bench, piece), bench.xid()
    position = message.call(xid).items[0].position
    bench.exchange(message, xid=xid, reduced=[0],
                   reads=[(position, segment) for segment in bench.arena.holding(piece + padding(2003), [1000])])
    must_hold(bench, piece)


def shorter_than_counted(bench: Bench) -> None:
    """Up to three bytes fewer than the count says: they are the padding, which is zeros (RFC 4506, section 4.10), and
    not what other requests have left in the memory."""
    for less in (1, 2, 3):
        for _ in range(THREADS):
            message, xid = written(bench, b"\xee" * 5000), bench.xid()
            bench.exchange(message, xid=xid, reduced=[0], reads=listed(bench, message.call(xid), 0))
        piece, xid = data(28 + less, 2004), bench.xid()
        call = nfs.v3_write(bench.target.handle, 0, piece)(xid)
        reads = [(call.items[0].position, bench.arena.holding(piece[:-less])[0])]
        bench.ask(Header(xid, reads=reads).encode() + call.without(call.items))
        must_hold(bench, piece[:-less] + bytes(less))


def empty_segments(bench: Bench) -> None:
    """Segments of no bytes between others, and a chunk of nothing else."""
    pieces = data(16, 1501), b"", data(17, 702)
    message, xid = written(bench, *pieces), bench.xid()
    call = message.call(xid)
    reads = (listed(bench, call, 0, [0, 700, 0, 0, 801]) + listed(bench, call, 1, [0])
             + listed(bench, call, 2, [0, 0]))
    bench.exchange(message, xid=xid, reduced=[0, 1, 2], reads=reads)
    must_hold(bench, b"".join(pieces))


def sixteen_chunks(bench: Bench) -> None:
    chunks(bench, 16)


def seventeen_chunks(bench: Bench) -> None:
    message, xid = written(bench, *[data(n, 100) for n in range(17)]), bench.xid()
    call = message.call(xid)
    reads = [segment for n in range(17) for segment in listed(bench, call, n)]
    bench.must_refuse(Header(xid, reads=reads).encode() + call.without(call.items), "17 Read chunks")


def chunks(bench: Bench, count: int) -> None:
    pieces = [data(n, 301 + n) for n in range(count)]
    message, xid = written(bench, *pieces), bench.xid()
    call = message.call(xid)
    reads = [segment for n in range(count) for segment in listed(bench, call, n, [100])]
    bench.exchange(message, xid=xid, reduced=range(count), reads=reads)
    must_hold(bench, b"".join(pieces))


def many_segments(bench: Bench) -> None:
    segments(bench, 64)


def too_many_segments(bench: Bench) -> None:
    if bench.differs("takes as many segments as a message can hold"):
        segments(bench, 65)
        return
    message, xid = written(bench, data(18, 6500)), bench.xid()
    call = message.call(xid)
    reads = listed(bench, call, 0, [100] * 64)
    bench.must_refuse(Header(xid, reads=reads).encode() + call.without(call.items), "65 segments")


def segments(bench: Bench, count: int) -> None:
    """A chunk of so many segments, each of another odd length."""
    piece = data(19, sum(range(1, 2 * count, 2)))
    message, xid = written(bench, piece), bench.xid()
    reads = listed(bench, message.call(xid), 0, list(range(1, 2 * count - 2, 2)))
    bench.exchange(message, xid=xid, reduced=[0], reads=reads)
    must_hold(bench, piece)


def whole_list(bench: Bench) -> None:
    """As many Read segments as the server takes in all. On iWARP each needs a region, of which there are fewer."""
    half = 32 if bench.adapter.name == "siw" else 64
    pieces = data(20, 6400), data(21, 6401)
    message, xid = written(bench, *pieces), bench.xid()
    call = message.call(xid)
    reads = listed(bench, call, 0, [100] * (half - 1)) + listed(bench, call, 1, [99] * (half - 1))
    bench.exchange(message, xid=xid, reduced=[0, 1], reads=reads)
    must_hold(bench, b"".join(pieces))
    if bench.differs("takes as many segments as a message can hold"):
        return
    message, xid = written(bench, *pieces, data(22, 10)), bench.xid()
    call = message.call(xid)
    reads = [*reads, *listed(bench, call, 2)]
    bench.must_refuse(Header(xid, reads=reads).encode() + call.without(call.items), "a segment more")


def large(bench: Bench) -> None:
    """Many pages, in segments that begin and end anywhere."""
    piece = data(23, 200_003)
    message, xid = written(bench, piece), bench.xid()
    bench.exchange(message, xid=xid, reduced=[0],
                   reads=listed(bench, message.call(xid), 0, [65_537, 4095, 4097, 70_001]))
    bench.arena.clear()
    check = nfs.compound(nfs.put(bench.target.handle), nfs.read(piece, 0, len(piece) + 0))
    bench.exchange(check, writes=[[bench.arena.take(len(piece))]])


def symlinks(bench: Bench) -> None:
    """A target in a Read chunk (RFC 8267, section 4), with a Position Zero Read chunk and without."""
    target = data(24, 1001).hex().encode()[:1001]
    for long in (False, True):
        bench.remove("made")
        taken_out(bench, nfs.v3_symlink(bench.directory, "made", target), long)
        must_lead(bench, "made", target)


def links_4(bench: Bench) -> None:
    """The same of a CREATE of NFS 4 (RFC 8267, section 6.1)."""
    target = data(43, 1001).hex().encode()[:1001]
    # No attributes are set.
    create = Operation(CREATE, lambda stream: stream.words(LINK).item(target).opaque(b"made").words(0, 0))
    message = nfs.compound(nfs.put(bench.directory), create)
    for long in (False, True):
        bench.remove("made")
        taken_out(bench, message.call, long, message.reply)
        must_lead(bench, "made", target)


def writes_3(bench: Bench) -> None:
    """Data of a WRITE of NFS 3 in a Read chunk (RFC 8267, section 4), with a Position Zero Read chunk and without."""
    for seed, long in ((41, False), (42, True)):
        piece = data(seed, 3001)
        taken_out(bench, nfs.v3_write(bench.target.handle, 0, piece), long)
        must_hold(bench, piece)
        bench.arena.clear()


def taken_out(bench: Bench, call: Callable[[int], Stream], long: bool = False,
              reply: Callable[[int], Stream] = lambda xid: nfs.rpc.accepted(xid).words(nfs.OK)) -> None:
    """Make a Call whose item is in a Read chunk, and the rest in a Position Zero Read chunk if it is long; fail unless its Reply
    begins so."""
    xid = bench.xid()
    stream = call(xid)
    reads, inline = listed(bench, stream, 0, [500]), stream.without(stream.items)
    if long:
        reads += [(0, segment) for segment in bench.arena.holding(inline, [77])]
        inline = b""
    answer = bench.ask(Header(xid, RDMA_NOMSG if long else 0, reads=reads).encode() + inline).message
    start = Header(xid, credits=bench.credits).encode() + bytes(reply(xid).bytes)
    same("beginning of the Reply", answer[:len(start)], start)
    bench.arena.check()


def must_lead(bench: Bench, link: str, target: bytes) -> None:
    """Fail unless a symbolic link has this target."""
    handle = bench.handle(nfs.put(bench.directory), nfs.lookup(link))
    bench.exchange(nfs.compound(nfs.put(handle), nfs.readlink(target)))


REFUSED = r"\[00000004 00000002\]"
NO_PADDING = Difference("refuses Read chunks without padding that others follow", REFUSED)

CASES = [Case("two Read chunks", two_chunks, NO_PADDING), Case("Read chunk between inline data", one_of_three),
         Case("Read list not sorted", not_sorted, NO_PADDING), Case("Position Zero Read chunk", position_zero),
         Case("Position Zero Read chunk among others", position_zero_and_others, NO_PADDING),
         Case("padding in two Read chunks", with_padding), Case("padding in a Read chunk", one_with_padding),
         Case("padding in one of three Read chunks", some_with_padding, NO_PADDING),
         Case("Read chunk shorter than counted", shorter_than_counted,
              Difference("pads with what the memory had from other requests", "file at")),
         Case("empty Read segments", empty_segments, NO_PADDING), Case("16 Read chunks", sixteen_chunks, NO_PADDING),
         Case("17 Read chunks", seventeen_chunks,
              Difference("takes as many Read chunks as a message can hold", r"17 Read chunks: \d{3} bytes")),
         Case("64 segments in a Read chunk", many_segments), Case("65 segments in a Read chunk", too_many_segments),
         Case("all segments of a Read list", whole_list), Case("large Read chunk", large),
         Case("symbolic links by Read chunk", symlinks, NO_PADDING),
         Case("link of NFS 4 by Read chunk", links_4, NO_PADDING),
         Case("NFS 3 WRITE by Read chunk", writes_3, NO_PADDING)]
