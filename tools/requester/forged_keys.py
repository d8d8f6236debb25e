"""Keys that come to be invalid before they are valid, by a client that does not read what the server sends (iWARP alone)."""

import time

import iwarp
import nfs
from adapter import PORT
from bench import Bench
from case import Case
from endpoint import Lost
from failure import Failure, require, same
from header import RDMA_NOMSG, Header, Segment, decode, done, private_data, pulls
from nfs import Message, Operation
from pulls import NOTHING
from write_chunks import read

# A client that receives little: what is longer it pulls.
PULLS = private_data(True, receive=1024) + pulls(may_pull=True)
# File handles in a Reply, which has one piece of memory then.
HANDLES = 50
# READs whose data fill all room that TCP has for a peer who does not read, into memory that nobody looks at.
READS, PLACE = 4, Segment(0x5eed00, 250_000, 0)
# Until the server has done what is to be seen.
SECONDS = 2


class Client:
    """One that has a device of its own making."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self.end = iwarp.connected(bench.adapter.address, PORT, PULLS)

    def call(self, message: Message, **chunks) -> int:
        """Make a Call; its XID."""
        xid = self._bench.xid()
        self.end.send(Header(xid, **chunks).encode() + message.call(xid).bytes)
        return xid

    def works(self) -> None:
        """Fail unless a Call is answered by the next message."""
        xid = self.call(nfs.null())
        require(int.from_bytes(self.end.receive().message[:4]) == xid, "no answer to a Call")

    def must_fill(self, *xids: int) -> None:
        """Fail unless the next messages say in any order that data have filled the Write chunks of these Calls."""
        found = [decode(self.end.receive().message)[0] for _ in xids]
        require({header.xid for header in found} == set(xids), "other Replies than to the READs")
        require(all(header.writes == [[PLACE]] for header in found), "a READ without its data")

    def provided(self, xid: int) -> Segment:
        """Where the Reply is that has to come next."""
        header, _ = decode(self.end.receive().message)
        segments = [segment for _, segment in header.reads]
        require((header.xid, header.procedure, len(segments)) == (xid, RDMA_NOMSG, 1), "the Reply is not provided, or in pieces")
        return segments[0]


def before_it_is_valid(bench: Bench) -> None:
    """The word that a Reply was pulled makes its key invalid, before the server's device has sent anything of it: the Reply
    stays with the server until nobody reaches it."""
    if bench.adapter.name != "siw" or bench.differs(NOTHING):
        return
    client, message = Client(bench), handles(bench)
    xid = client.call(message)
    first = client.provided(xid)
    same("Reply", client.end.read(first.handle, first.offset, first.length), bytes(message.reply(xid).bytes))
    client.end.send(done(xid), first.handle)
    client.works()
    # From here on nothing is read.
    reads = [client.call(nfs.compound(*read(bench, 0, PLACE.length)), writes=[[PLACE]]) for _ in range(READS)]
    time.sleep(SECONDS)
    xid = client.call(message)
    time.sleep(SECONDS)
    client.end.send(done(xid), first.handle + 1)
    time.sleep(SECONDS)
    client.must_fill(*reads)
    second = client.provided(xid)
    require(second.handle == first.handle + 1, f"key {second.handle:#x} behind {first.handle:#x}: it was not foreseen")
    client.works()
    try:
        client.end.read(second.handle, second.offset, second.length)
    except Lost:
        client.end.close()
        return
    raise Failure("what the server has taken back can be read")


def handles(bench: Bench) -> Message:
    """A Call whose Reply is longer than comes inline, and shorter than a page."""
    handle = bench.file.handle
    return nfs.compound(nfs.put(handle), *[Operation(nfs.GETFH, results=lambda stream: stream.opaque(handle))] * HANDLES)


CASES = [Case("key that is invalid before it is valid", before_it_is_valid)]
