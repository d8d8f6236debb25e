"""Reply chunks, and what is too long without one (RFC 8166, sections 3.5.3, 4.3.3 and 4.5.3)."""

import nfs
from bench import Bench
from case import Case, Difference
from connection import Connection
from header import Header, private_data
from write_chunks import aligned, chunk, read, readlink

# Bytes in front of the RPC message of a Reply without chunks, and in the RPC message around the data of a READ.
HEADER = 28


def around(bench: Bench) -> int:
    return len(nfs.compound(*read(bench, 0, 0)).reply(0).bytes)


def not_needed(bench: Bench) -> None:
    """A Reply that fits inline comes inline; the Reply chunk comes back with all lengths zero (section 4.3.3)."""
    in_chunk = bench.differs("uses each Reply chunk that is offered, although the Reply fits inline")
    bench.exchange(nfs.null(), reply=chunk(bench, 100, 1000), in_reply_chunk=in_chunk)
    bench.exchange(nfs.compound(*readlink(bench, 1)), reply=chunk(bench, 33, 5000, 7), in_reply_chunk=in_chunk)


def needed(bench: Bench) -> None:
    """A long Reply in segments of odd lengths, its padding with it (section 3.5.3)."""
    message = nfs.compound(*read(bench, 4001, 20_001), *readlink(bench, 2))
    length = len(message.reply(0).bytes)
    bench.exchange(message, reply=chunk(bench, 3, 70, 9001, 8191, 9000), in_reply_chunk=True)
    bench.exchange(message, reply=chunk(bench, length), in_reply_chunk=True)


def many_segments(bench: Bench) -> None:
    lengths = list(range(201, 201 + 2 * 64, 2))
    bench.exchange(nfs.compound(*read(bench, 1, sum(lengths) - 500)), reply=chunk(bench, *lengths), in_reply_chunk=True)


def too_many_segments(bench: Bench) -> None:
    if bench.differs("takes as many segments as a message can hold"):
        bench.exchange(nfs.null(), reply=chunk(bench, *[10] * 65), in_reply_chunk=True)
        return
    xid = bench.xid()
    bench.must_refuse(Header(xid, reply=chunk(bench, *[10] * 65)).encode() + nfs.null().call(xid).bytes, "65 segments")


def with_write_chunks(bench: Bench) -> None:
    """Results that have a Write chunk go there, the rest of a long Reply into the Reply chunk."""
    message = nfs.compound(*aligned(bench, 1, 2, 3), *read(bench, 7000, 9003), *readlink(bench, 0))
    bench.exchange(message, writes=[chunk(bench, 8000, 999)], reply=chunk(bench, 1001, 10_000), in_reply_chunk=True)
    bench.exchange(message, writes=[chunk(bench, 9000), [], chunk(bench, 9)], reply=chunk(bench, 10_000),
                   in_reply_chunk=True)


def too_small(bench: Bench) -> None:
    """ERR_CHUNK, and nothing is written."""
    message = nfs.compound(*read(bench, 0, 20_000))
    length = len(message.reply(0).bytes)
    for lengths in ((length - 1,), (10_000, length - 10_001), (0,), ()):
        xid = bench.xid()
        header = Header(xid, reply=chunk(bench, *lengths))
        bench.must_refuse(header.encode() + message.call(xid).bytes, f"Reply chunk of {lengths} bytes for {length}")


def none(bench: Bench) -> None:
    """A Reply that is too long to be inline by one word, and no Reply chunk."""
    fits = bench.threshold - HEADER - around(bench)
    bench.exchange(nfs.compound(*read(bench, 0, fits)))
    message, xid = nfs.compound(*read(bench, 0, fits + 1)), bench.xid()
    bench.must_refuse(Header(xid).encode() + message.call(xid).bytes, "Reply longer than the inline threshold")


def threshold_with_chunk(bench: Bench) -> None:
    """The header counts, too: the same Reply with a Reply chunk fits inline only as long as both do."""
    place = chunk(bench, 9000)
    # The number of segments, and one.
    header = HEADER + 4 + 16
    fits = bench.threshold - header - around(bench)
    in_chunk = bench.differs("uses each Reply chunk that is offered, although the Reply fits inline")
    bench.exchange(nfs.compound(*read(bench, 0, fits)), reply=place, in_reply_chunk=in_chunk)
    bench.exchange(nfs.compound(*read(bench, 0, fits + 1)), reply=chunk(bench, 9000), in_reply_chunk=True)


def small_receives(bench: Bench) -> None:
    """To a client that takes 1024 bytes, no more is sent inline."""
    if bench.differs("does not look at how much a client can receive inline"):
        return
    connection = Connection(bench.adapter, private_data(receive=1024))
    fits = 1024 - HEADER - around(bench)
    bench.exchange(nfs.compound(*read(bench, 0, fits)), connection=connection)
    message, xid = nfs.compound(*read(bench, 0, fits + 1)), bench.xid()
    bench.must_refuse(Header(xid).encode() + message.call(xid).bytes, "Reply of more than 1024 bytes",
                      connection=connection)
    bench.exchange(message, reply=chunk(bench, 2000), in_reply_chunk=True, connection=connection)
    connection.close()


def header_too_long(bench: Bench) -> None:
    """The chunks that come back have to fit inline themselves."""
    connection = Connection(bench.adapter, private_data(receive=1024))
    message, xid = nfs.compound(*read(bench, 0, 60)), bench.xid()
    header = Header(xid, writes=[chunk(bench, *[1] * 64)])
    if bench.differs("does not look at how much a client can receive inline"):
        bench.exchange(message, writes=[chunk(bench, *[1] * 64)], connection=connection)
    else:
        bench.must_refuse(header.encode() + message.call(xid).bytes, "header of more than 1024 bytes",
                          connection=connection)
    connection.close()


CASES = [Case("Reply chunk not needed", not_needed), Case("Reply chunk", needed),
         Case("64 segments in a Reply chunk", many_segments), Case("65 segments in a Reply chunk", too_many_segments),
         Case("Reply chunk and Write chunks", with_write_chunks,
              Difference("loses the connection", "the connection is lost")), Case("Reply chunk too small", too_small),
         Case("long Reply without chunk", none,
              Difference("sends inline what has no Reply chunk", r"threshold: 4100 bytes")),
         Case("inline threshold with chunks", threshold_with_chunk),
         Case("client that receives 1024 bytes", small_receives), Case("header too long to return", header_too_long)]
