"""What a responder does that it should not."""

import struct
import time
from dataclasses import replace

import acls
from failure import require
from header import (CREDITS_WANTED, RDMA_DONE, RDMA_MSG, RDMA_MSGP, RDMA_NOMSG, Header, Segment, filled, private_data,
                    words)
from rpc import CALL

V3_READ = 6
# Of the Reply to a READ of NFS 3: where its status is, its attributes, and the length of its data.
READ_STATUS, READ_COUNT, READ_DATA = 24, 24 + 4 + 4 + 84, 24 + 4 + 4 + 84 + 12


class Behaviour:
    """A server without fault."""

    rejects = False
    credits = CREDITS_WANTED
    private = private_data()

    def begin(self, proxy) -> None:
        """The connection is up."""

    def takes(self, proxy, offer: Header, call: bytes) -> bool:
        """Whether a Call is to be executed."""
        return True

    def reply(self, proxy, offer: Header, message: bytes) -> None:
        """Send the Reply of the server."""
        proxy.reply(offer, message)


class Rejects(Behaviour):
    """Refuses connections."""

    rejects = True


class HangsUp(Behaviour):
    """Accepts connections, and ends them at once."""

    def begin(self, proxy) -> None:
        proxy.hang_up()


class Deaf(Behaviour):
    """Takes Calls and says nothing."""

    def takes(self, proxy, offer: Header, call: bytes) -> bool:
        return False


class Grants(Behaviour):
    """Grants so many credits."""

    def __init__(self, credits: int) -> None:
        self.credits = credits


class SaysNothing(Behaviour):
    """Has no private data."""

    private = b""


class Errs(Behaviour):
    """Cannot send any Reply that is longer than so many bytes."""

    def __init__(self, longest: int) -> None:
        self._longest = longest

    def reply(self, proxy, offer: Header, message: bytes) -> None:
        if len(message) > self._longest:
            proxy.refuse(offer)
        else:
            proxy.reply(offer, message)


class RefusesAcls(Behaviour):
    """Never has room for an ACL."""

    def takes(self, proxy, offer: Header, call: bytes) -> bool:
        refused = acls.of_nfs_3(call) or acls.of_nfs_4(call)
        if refused:
            proxy.refuse(offer)
        return not refused


class LongAcls(Behaviour):
    """Has the longest ACLs that a client of NFS 3 takes; nfsd sends none of more than a page."""

    def takes(self, proxy, offer: Header, call: bytes) -> bool:
        asked = acls.of_nfs_3(call)
        if asked:
            proxy.reply(offer, acls.longest(offer.xid))
        return not asked


# The client has Receives for what it asked for, and a few. More than that, sent before it has posted the next, costs any
# connection, as it may.
MOMENT = 0.1


class Stutters(Behaviour):
    """Sends each Reply twice, or that of a Call that there never was beside it."""

    def __init__(self) -> None:
        self._count = 0

    def reply(self, proxy, offer: Header, message: bytes) -> None:
        self._count += 1
        for xid in (offer.xid, offer.xid ^ (0x5a5a5a5a if self._count % 2 else 0)):
            proxy.reply(replace(offer, xid=xid), words(xid) + message[4:])
            time.sleep(MOMENT)


class Babbles(Behaviour):
    """Sends something that is no message in front of each Reply."""

    def __init__(self) -> None:
        self._count = 0

    def reply(self, proxy, offer: Header, message: bytes) -> None:
        other = offer.xid ^ 0x5a5a5a5a
        noises = (b"\0", b"\0" * 4, b"\xff" * 28, words(other, 1, 1, RDMA_DONE), words(other, 1, 1, 77),
                  Header(other, RDMA_MSGP).encode() + bytes(40), Header(other, version=2).encode() + bytes(40),
                  Header(other, RDMA_NOMSG).encode(), words(other, 1, 1, RDMA_MSG, 0, 1, 0xffffffff),
                  words(other, 1, 1, RDMA_MSG, 1, 0, 1, 1, 0, 1) * 20)
        proxy.send(noises[self._count % len(noises)])
        self._count += 1
        time.sleep(MOMENT)
        proxy.reply(offer, message)


class Places(Behaviour):
    """Puts the data of a READ of NFS 3 into its Write chunk, as a server should."""

    def reply(self, proxy, offer: Header, message: bytes) -> None:
        if not offer.writes:
            return proxy.reply(offer, message)
        status, = struct.unpack_from(">I", message, READ_STATUS)
        if status:
            return proxy.reply(offer, message)
        count, = struct.unpack_from(">I", message, READ_COUNT)
        data = message[READ_DATA:READ_DATA + count]
        chunk = list(offer.writes[0])
        require(sum(segment.length for segment in chunk) >= count, "the Write chunk is too small")
        self.place(proxy, offer, chunk, data, message[:READ_DATA])

    def place(self, proxy, offer: Header, chunk: list[Segment], data: bytes, rest: bytes) -> None:
        proxy.place(chunk, data)
        self.answer(proxy, offer, filled(chunk, len(data)), rest)

    def answer(self, proxy, offer: Header, chunk: list[Segment], rest: bytes) -> None:
        proxy.send_header(Header(offer.xid, RDMA_MSG, self.credits, writes=[chunk]), rest)


class Pads(Places):
    """Writes XDR padding behind the data (RFC 8166, section 3.4.6.2, says that a responder must not): into the chunk
    where that has room, and behind it otherwise."""

    def place(self, proxy, offer: Header, chunk: list[Segment], data: bytes, rest: bytes) -> None:
        padding = b"\0" * (-len(data) % 4)
        if sum(segment.length for segment in chunk) >= len(data) + len(padding):
            return super().place(proxy, offer, chunk, data + padding, rest)
        proxy.place(chunk, data)
        proxy.write(padding, chunk[-1].handle, chunk[-1].offset + chunk[-1].length)
        self.answer(proxy, offer, filled(chunk, len(data)), rest)


class Returns(Places):
    """Returns the Write chunk of a READ in another form than it was offered, and as it should when it comes again."""

    def __init__(self) -> None:
        self._seen: list[int] = []

    def answer(self, proxy, offer: Header, chunk: list[Segment], rest: bytes) -> None:
        first = chunk[0]
        forms = (replace(first, handle=first.handle ^ 1), replace(first, offset=first.offset + 8),
                 replace(first, length=first.length + (1 << 20)))
        if offer.xid in self._seen:
            return super().answer(proxy, offer, chunk, rest)
        self._seen.append(offer.xid)
        super().answer(proxy, offer, [forms[len(self._seen) % len(forms)], *chunk[1:]], rest)


class CallsBack(Behaviour):
    """Sends so many Calls of its own with each Reply, whether somebody answers them or not."""

    def __init__(self, count: int) -> None:
        self._count = count

    def reply(self, proxy, offer: Header, message: bytes) -> None:
        proxy.reply(offer, message)
        for number in range(self._count):
            xid = (offer.xid + 0x10000 * (number + 1)) & 0xffffffff
            # NULL of the callback program.
            time.sleep(MOMENT)
            proxy.send_header(Header(xid, RDMA_MSG, self.credits), words(xid, CALL, 2, 0x40000000, 1, 0, 0, 0, 0, 0))


BY_NAME = {"honest": Behaviour, "rejects": Rejects, "hangs-up": HangsUp, "deaf": Deaf, "grants": Grants,
           "says-nothing": SaysNothing, "errs": Errs, "refuses-acls": RefusesAcls, "long-acls": LongAcls,
           "stutters": Stutters, "babbles": Babbles, "places": Places, "pads": Pads, "returns": Returns,
           "calls-back": CallsBack}
