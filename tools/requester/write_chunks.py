"""Write lists (RFC 8166, section 4.3.2; RFC 8267, section 6.4.1)."""

from collections.abc import Callable

import nfs
from bench import Bench
from case import Case, Difference
from failure import same
from header import RDMA_MSG, Header, Segment, filled
from nfs import Operation
from read_chunks import REFUSED
from rpc import Stream


def read(bench: Bench, offset: int, count: int) -> list[Operation]:
    return [nfs.put(bench.file.handle), nfs.read(bench.file.content, offset, count)]


def aligned(bench: Bench, offset: int, pages: int, less: int = 0) -> list[Operation]:
    """A READ that others may follow in a COMPOUND.

    nfsd of Linux 7.3 returns other memory than the data for a READ whose data do not begin with a page of its buffer.
    So this one, after its word on the file and with what stands in front of the data of the next, fills pages.
    """
    return read(bench, offset, 4096 * pages - 24 - less)


def readlink(bench: Bench, number: int) -> list[Operation]:
    link = bench.links[number]
    return [nfs.put(link.handle), nfs.readlink(link.content)]


def chunk(bench: Bench, *lengths: int) -> list[Segment]:
    return [bench.arena.take(length) for length in lengths]


def a_chunk_each(bench: Bench) -> None:
    """Results of three READs and two READLINKs, whose lengths are odd, in segments of odd lengths."""
    message = nfs.compound(*aligned(bench, 1, 1, 1), *aligned(bench, 7777, 2, 3), *read(bench, 3, 1001),
                           *readlink(bench, 2), *readlink(bench, 1))
    bench.exchange(message, writes=[chunk(bench, 1001, 3, 4500), chunk(bench, 5, 9000), chunk(bench, 1001),
                                    chunk(bench, 2000), chunk(bench, 7, 11, 13, 1000)])


def nothing_behind(bench: Bench) -> None:
    """Chunks of exactly the length of results that XDR pads: no byte is written behind them (section 3.4.6.2). Nor is
    one where there is room for it."""
    for count in (1, 2, 3, 4, 1021, 4097):
        message = nfs.compound(*read(bench, 10, count))
        bench.exchange(message, writes=[chunk(bench, count)])
        bench.exchange(message, writes=[chunk(bench, count + 3)])
        bench.exchange(message, writes=[chunk(bench, count, 3)])


def empty_between(bench: Bench) -> None:
    """An empty chunk asks for its result inline, and comes back empty (section 4.3.2.3)."""
    message = nfs.compound(*aligned(bench, 0, 1, 2), *read(bench, 2000, 1002), *readlink(bench, 1),
                           *readlink(bench, 0))
    bench.exchange(message, writes=[chunk(bench, 5000), [], chunk(bench, 1500), []])
    message = nfs.compound(*readlink(bench, 0), *readlink(bench, 1), *read(bench, 5, 999))
    bench.exchange(message, writes=[[], chunk(bench, 10, 1000), []])


def only_empty(bench: Bench) -> None:
    bench.exchange(nfs.compound(*read(bench, 0, 1001)), writes=[[]])
    bench.exchange(nfs.null(), writes=[[], chunk(bench, 7), []])


def unused(bench: Bench) -> None:
    """Chunks that no result is for come back with the number of their segments, and lengths of zero (section
    4.3.2.2)."""
    bench.exchange(nfs.compound(*read(bench, 5, 2001)),
                   writes=[chunk(bench, 500, 501, 1000), chunk(bench, 100, 200), chunk(bench, 7)])


def none_used(bench: Bench) -> None:
    bench.exchange(nfs.null(), writes=[chunk(bench, 100), chunk(bench, 3, 4)])


def rest_inline(bench: Bench) -> None:
    """READs beyond the Write list return their data inline."""
    bench.exchange(nfs.compound(*aligned(bench, 1, 1, 3), *read(bench, 5000, 1002), *readlink(bench, 1)),
                   writes=[chunk(bench, 4099)])


def of_no_bytes(bench: Bench) -> None:
    """A READ behind the end of the file keeps its chunk's place, unused."""
    end = len(bench.file.content)
    bench.exchange(nfs.compound(*readlink(bench, 0), *read(bench, end, 100), *readlink(bench, 1)),
                   writes=[chunk(bench, 5), chunk(bench, 100, 1), chunk(bench, 998)])
    bench.exchange(nfs.compound(*read(bench, end - 5, 100)), writes=[chunk(bench, 3, 97)])


def after_a_failure(bench: Bench) -> None:
    """The operations after one that fails are not executed, and their chunks are unused."""
    message = nfs.compound(*read(bench, 3, 1001), nfs.put(bench.directory), nfs.read_failing(nfs.IS_DIRECTORY),
                           *read(bench, 0, 100))
    bench.exchange(message, writes=[chunk(bench, 1001), chunk(bench, 1000), chunk(bench, 100)])


def many_segments(bench: Bench) -> None:
    segments(bench, 64)


def too_many_segments(bench: Bench) -> None:
    if bench.differs("takes as many segments as a message can hold"):
        segments(bench, 65)
        return
    xid = bench.xid()
    call = nfs.compound(*read(bench, 0, 65)).call(xid)
    bench.must_refuse(Header(xid, writes=[chunk(bench, *[1] * 65)]).encode() + call.bytes, "65 segments")


def segments(bench: Bench, count: int) -> None:
    """So many, each of another odd length; the last three are not needed."""
    lengths = list(range(1, 2 * count, 2))
    bench.exchange(nfs.compound(*read(bench, 11, sum(lengths[:-3]))), writes=[chunk(bench, *lengths)])


def all_segments(bench: Bench) -> None:
    """As many segments as the Write list and the Reply chunk may have together, all of them used."""
    odd = list(range(1, 128, 2))
    operations = [*aligned(bench, 1, 1), *aligned(bench, 1001, 1), *read(bench, 9, 9001)]
    writes = [chunk(bench, *odd[:-1], 4096 - 24 - sum(odd[:-1])) for _ in range(2)]
    bench.exchange(nfs.compound(*operations), writes=writes, reply=chunk(bench, *[147] * 64), in_reply_chunk=True)
    for lengths in ((43, 43, 43), (64, 64, 1)):
        xid = bench.xid()
        call = nfs.compound(*read(bench, 0, 10)).call(xid)
        header = Header(xid, writes=[chunk(bench, *[1] * length) for length in lengths])
        bench.must_refuse(header.encode() + call.bytes, f"Write list of {sum(lengths)} segments")


def empty_segments(bench: Bench) -> None:
    bench.exchange(nfs.compound(*read(bench, 11, 3001)), writes=[chunk(bench, 0, 1000, 0, 0, 1501, 0, 700, 0)])


def sixteen_chunks(bench: Bench) -> None:
    chunks(bench, 16)


def seventeen_chunks(bench: Bench) -> None:
    if bench.differs("takes as many Write chunks as a message can hold"):
        chunks(bench, 17)
        return
    xid = bench.xid()
    call = nfs.compound(*read(bench, 0, 10)).call(xid)
    bench.must_refuse(Header(xid, writes=[chunk(bench, 10)] * 17).encode() + call.bytes, "17 Write chunks")


def chunks(bench: Bench, count: int) -> None:
    operations = [operation for n in range(count) for operation in aligned(bench, 1001 * n, 1, n % 4)]
    bench.exchange(nfs.compound(*operations), writes=[chunk(bench, 51, 4050) for _ in range(count)])


def too_small(bench: Bench) -> None:
    """ERR_CHUNK; nothing is written, not even into the chunks that are long enough."""
    for lengths in ((2000, 999), (0,), (998, 2000)):
        xid = bench.xid()
        call = nfs.compound(*read(bench, 0, 1000), *read(bench, 5000, 1000)).call(xid)
        header = Header(xid, writes=[chunk(bench, length) for length in lengths])
        bench.must_refuse(header.encode() + call.bytes, f"Write chunks of {lengths} bytes for 1000 each")


def large(bench: Bench) -> None:
    count = 250_001
    bench.exchange(nfs.compound(*read(bench, 4097, count)),
                   writes=[chunk(bench, 65_535, 1, 100_003, 4096, count)])


def version_3(bench: Bench) -> None:
    """READ and READLINK of NFS 3: the Reply is the one without chunks, less what is in the chunk."""
    requests = [(nfs.v3_read(bench.file.handle, 1, 2003), bench.file.content[1:2004]),
                (lambda xid: nfs.v3_call(xid, nfs.V3_READLINK, lambda stream: stream.opaque(bench.links[1].handle)),
                 bench.links[1].content)]
    for call, content in requests:
        placed_as_inline(bench, call, content)


def placed_as_inline(bench: Bench, call: Callable[[int], Stream], content: bytes) -> None:
    """Fail unless this is what a Call of NFS 2 or 3 has in a Write chunk, and the rest is as without one."""
    # The first one may change the time of the last access.
    bench.v3(call)
    plain = bench.v3(call)
    end = Stream().opaque(content).bytes
    same("end of the Reply", plain[-len(end):], bytes(end))
    xid, place = bench.xid(), chunk(bench, 1, 999, 3000)
    found = bench.ask(Header(xid, writes=[place]).encode() + call(xid).bytes).message
    bench.arena.put(place, content)
    expected = Header(xid, RDMA_MSG, bench.credits, writes=[filled(place, len(content))]).encode()
    expected += nfs.rpc.accepted(xid).words(0).bytes + plain[:4 - len(end)]
    same("Reply", found, expected)
    bench.arena.check()


def failed_version_3(bench: Bench) -> None:
    """A READ that fails leaves its chunk unused."""
    bad_handle, no_attributes = 10001, 0
    message = nfs.Message(nfs.v3_read(bytes(32), 0, 1000),
                          lambda xid: nfs.rpc.accepted(xid).words(bad_handle, no_attributes))
    bench.exchange(message, writes=[chunk(bench, 500, 500)])


def not_a_result(bench: Bench) -> None:
    """What may not be reduced stays inline: a file handle."""
    message = nfs.compound(nfs.put(bench.directory), nfs.lookup("file"),
                           Operation(nfs.GETFH, results=lambda stream: stream.opaque(bench.file.handle)))
    bench.exchange(message, writes=[chunk(bench, 1000)])


def both(bench: Bench) -> None:
    """Read chunk and Write chunks in one Call."""
    data = b"of a chunk"
    message, xid = nfs.compound(nfs.put(bench.target.handle), nfs.write(0, data, bench.verifier),
                                *read(bench, 1, 777), *readlink(bench, 0)), bench.xid()
    position = message.call(xid).items[0].position
    segments = bench.arena.holding(data, [3])
    bench.exchange(message, xid=xid, reduced=[0], reads=[(position, segment) for segment in segments],
                   writes=[chunk(bench, 800), chunk(bench, 1, 10)])


EMPTY = Difference("refuses empty Write chunks", REFUSED)
COUNTED = Difference("takes the count of a READLINK of NFS 4 for the beginning of its data", "Reply: ")

CASES = [Case("a Write chunk for each result", a_chunk_each, COUNTED),
         Case("no padding in Write chunks", nothing_behind),
         Case("empty Write chunk between others", empty_between, EMPTY),
         Case("only an empty Write chunk", only_empty, EMPTY), Case("unused Write chunks", unused),
         Case("no Write chunk used", none_used), Case("READs beyond the Write list", rest_inline),
         Case("READ of no bytes", of_no_bytes, COUNTED), Case("Write chunks after a failure", after_a_failure),
         Case("64 segments in a Write chunk", many_segments), Case("65 segments in a Write chunk", too_many_segments),
         Case("all segments of a Write list and a Reply chunk", all_segments,
              Difference("loses the connection when results fill so many segments", "the connection is lost")),
         Case("empty Write segments", empty_segments,
              Difference("loses the connection when a Write chunk has empty segments", "the connection is lost")),
         Case("16 Write chunks", sixteen_chunks), Case("17 Write chunks", seventeen_chunks),
         Case("Write chunk too small", too_small,
              Difference("answers with NFS4ERR_IO", r"Write chunks of .*: \d{3} bytes, expected 20")),
         Case("large Write chunk", large), Case("Write chunk of NFS 3", version_3),
         Case("failing READ of NFS 3", failed_version_3),
         Case("Write chunk for nothing eligible", not_a_result),
         Case("Read chunk and Write chunks", both, COUNTED)]
