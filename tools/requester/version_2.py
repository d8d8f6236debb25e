"""NFS 2, where the server has it: its READLINK names the page of its result in a way of its own."""

import nfs
import rpc
from bench import Bench
from case import Case
from nfs import Message
from write_chunks import chunk

READLINK, HANDLE_BYTES = 5, 32
# The links that are no longer than 1024 bytes.
SHORT = (0, 1)


def readlink(bench: Bench, number: int) -> Message:
    link = bench.links[number]

    def call(xid: int) -> rpc.Stream:
        stream = rpc.call(xid, nfs.NFS, 2, READLINK)
        stream.bytes += link.handle.ljust(HANDLE_BYTES, b"\0")
        return stream

    return Message(call, lambda xid: rpc.accepted(xid).words(nfs.OK).item(link.content))


def inline(bench: Bench) -> None:
    for number in SHORT:
        bench.exchange(readlink(bench, number))


def placed(bench: Bench) -> None:
    for number in SHORT:
        bench.exchange(readlink(bench, number), writes=[chunk(bench, 1, 1000)])


CASES = [Case("READLINK of NFS 2", inline), Case("READLINK of NFS 2 with a Write chunk", placed)]
