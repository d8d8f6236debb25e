"""NFS 2, where the server has it (RFC 8267, section 4): its READLINK names the page of its result in a way of its own."""

import nfs
import rpc
from bench import Bench
from case import Case
from nfs import Message
from read_chunks import data, must_hold, must_lead, taken_out
from write_chunks import chunk, placed_as_inline

READLINK, READ, WRITE, SYMLINK, HANDLE_BYTES = 5, 6, 8, 13, 32
# What a link is not to have set of its attributes.
NOT_SET = (0xffffffff,) * 8
# The links that are no longer than 1024 bytes.
SHORT = (0, 1)


def readlink(bench: Bench, number: int) -> Message:
    link = bench.links[number]
    return Message(lambda xid: begun(xid, READLINK, link.handle),
                   lambda xid: rpc.accepted(xid).words(nfs.OK).item(link.content))


def begun(xid: int, procedure: int, handle: bytes) -> rpc.Stream:
    """A Call, up to what follows the handle."""
    stream = rpc.call(xid, nfs.NFS, 2, procedure)
    stream.bytes += handle.ljust(HANDLE_BYTES, b"\0")
    return stream


def inline(bench: Bench) -> None:
    for number in SHORT:
        bench.exchange(readlink(bench, number))


def placed(bench: Bench) -> None:
    for number in SHORT:
        bench.exchange(readlink(bench, number), writes=[chunk(bench, 1, 1000)])


def read(bench: Bench) -> None:
    """Data in a Write chunk (RFC 8267, section 4)."""
    placed_as_inline(bench, lambda xid: begun(xid, READ, bench.file.handle).words(1, 2003, 0), bench.file.content[1:2004])


def written(bench: Bench) -> None:
    """Data in a Read chunk."""
    piece = data(44, 3001)
    taken_out(bench, lambda xid: begun(xid, WRITE, bench.target.handle).words(0, 0, 0).item(piece))
    must_hold(bench, piece)


def link(bench: Bench) -> None:
    """A target in a Read chunk, in front of the attributes."""
    target = data(45, 501).hex().encode()[:501]
    bench.remove("made")
    taken_out(bench, lambda xid: begun(xid, SYMLINK, bench.directory).opaque(b"made").item(target).words(*NOT_SET))
    must_lead(bench, "made", target)


CASES = [Case("READLINK of NFS 2", inline), Case("READLINK of NFS 2 with a Write chunk", placed),
         Case("READ of NFS 2 with a Write chunk", read), Case("WRITE of NFS 2 by Read chunk", written),
         Case("SYMLINK of NFS 2 by Read chunk", link)]
