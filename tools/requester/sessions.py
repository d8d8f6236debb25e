"""What wants a session: NFS 4.2."""

import nfs
import rpc
from bench import Bench
from case import Case, Difference
from failure import same
from header import Header
from session import FREE_BYTES, FREE_PLACE, Session
from write_chunks import chunk

# So long that the data of a READ behind it begin with a page; see `aligned`.
PLUS_BYTES = 4096 - 24
# The same where another READ_PLUS follows on the same file; and how many of those there are.
PLUS_BYTES_ALIKE, MANY = 4096 - 32, 20


def read_plus(bench: Bench) -> None:
    """Nothing of READ_PLUS is eligible (RFC 8267, section 6.1): the Write chunk is for the READ behind it, and stays unused
    if there is none."""
    session, content = Session(bench, minor=2), bench.file.content
    own = [nfs.put(bench.file.handle), nfs.read_plus(content, 8192, PLUS_BYTES)]
    for operations in (own + [nfs.put(bench.file.handle), nfs.read(content, 7777, 1001)], own):
        bench.arena.clear()
        message, xid, place = session.compound(*operations), bench.xid(), chunk(bench, 9000)
        received = session.ask(Header(xid, writes=[place]).encode() + message.call(xid).bytes)
        expected = bench.expected(xid, message.reply(xid), [place], None, False)
        free = len(Header(xid, writes=[place]).encode()) + len(rpc.accepted(xid).bytes) + FREE_PLACE
        behind = free + FREE_BYTES
        same("Reply", received.message, expected[:free] + received.message[free:behind] + expected[behind:])
        bench.arena.check()
    session.close()


def much_read_plus(bench: Bench) -> None:
    """The Write chunk is for the READ however many of READ_PLUS are in front of it."""
    session, content = Session(bench, minor=2), bench.file.content
    message, xid = session.compound(
        nfs.put(bench.file.handle), *[nfs.read_plus(content, 100 * n, PLUS_BYTES_ALIKE) for n in range(MANY)],
        nfs.read_plus(content, 8192, PLUS_BYTES), nfs.put(bench.file.handle), nfs.read(content, 7777, 1001)), bench.xid()
    place, reply = chunk(bench, 9000), chunk(bench, 100_000)
    received = session.ask(Header(xid, writes=[place], reply=reply).encode() + message.call(xid).bytes)
    stream = message.reply(xid)
    free = len(rpc.accepted(xid).bytes) + FREE_PLACE
    chosen = reply[0].offset - bench.arena.address + free
    stream.bytes[free:free + FREE_BYTES] = bench.arena.bytes[chosen:chosen + FREE_BYTES]
    same("Reply", received.message, bench.expected(xid, stream, [place], reply, True))
    bench.arena.check()
    session.close()


CASES = [Case("READ_PLUS with a Write chunk", read_plus,
              Difference("puts the data of READ_PLUS into the Write chunk", "Reply: ")),
         Case("much of READ_PLUS in front of a READ", much_read_plus,
              Difference("puts the data of READ_PLUS into the Write chunk", "connection is lost|Reply|no answer"))]
