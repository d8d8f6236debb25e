"""What a responder does that it should not."""

import struct
import time
from dataclasses import replace

import acls
from failure import require
from header import (CREDITS_WANTED, RDMA_DONE, RDMA_ERROR, RDMA_MSG, RDMA_MSGP, RDMA_NOMSG, Header, Segment, filled,
                    private_data, pulls, words)
from rpc import CALL

# Of a Call: where its program, version and procedure are (RFC 5531, section 9).
PROGRAM = 12
NFS, READ, FSSTAT = 100003, 6, 18
# Of a Reply that was accepted: where its verifier is. A flavor that the RPC layer takes from every server.
VERIFIER, AUTH_SHORT = 12, 2
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
        """Whether a Call, with this RPC message, is to be executed."""
        return True

    def reply(self, proxy, offer: Header, message: bytes) -> None:
        """Send the Reply of the server."""
        proxy.reply(offer, message)

    def done(self, proxy, xid: int) -> None:
        """The client says that it has pulled a Reply."""
        require(False, "an RDMA_DONE to a server that provides nothing")


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


class Mute(Behaviour):
    """Answers the first Call of each connection, which is the transport's own, and says nothing to the others."""

    def __init__(self) -> None:
        self._begun: list = []

    def takes(self, proxy, offer: Header, call: bytes) -> bool:
        begins = proxy not in self._begun
        if begins:
            self._begun.append(proxy)
        return begins


class FallsSilent(Behaviour):
    """Takes Calls and answers none but NULL from the first FSSTAT of NFS 3 on: on the connection of that, and on those that
    come after it, so many in all."""

    def __init__(self, count: int) -> None:
        self._left = count
        self._silent: list = []

    def takes(self, proxy, offer: Header, call: bytes) -> bool:
        if is_null(call):
            return True
        due = self._silent or is_fsstat(call)
        if due and self._left and proxy not in self._silent:
            self._left -= 1
            self._silent.append(proxy)
            print("fell silent", flush=True)
        return proxy not in self._silent


class Grants(Behaviour):
    """Grants so many credits."""

    def __init__(self, credits: int) -> None:
        self.credits = credits


class SaysLittle(Behaviour):
    """Has only so many bytes of private data."""

    def __init__(self, length: int) -> None:
        self.private = private_data()[:length]


class Errs(Behaviour):
    """Cannot send any Reply that is longer than so many bytes."""

    def __init__(self, longest: int) -> None:
        self._longest = longest

    def reply(self, proxy, offer: Header, message: bytes) -> None:
        if len(message) > self._longest:
            self.refuse(proxy, offer)
        else:
            proxy.reply(offer, message)

    def refuse(self, proxy, offer: Header) -> None:
        proxy.refuse(offer)


class ErrsVersion(Errs):
    """Says of the Calls of such Replies that it does not speak their version."""

    def refuse(self, proxy, offer: Header) -> None:
        proxy.refuse_version(offer)


class RefusesReads(Behaviour):
    """Refuses each READ of NFS 3, as soon as it comes."""

    def takes(self, proxy, offer: Header, call: bytes) -> bool:
        refused = struct.unpack_from(">3I", call, PROGRAM) == (NFS, 3, READ)
        if refused:
            proxy.refuse(offer)
        return not refused


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
    """Sends something that is no message in front of each Reply. Under the XID of no Call some of it can only be a bad Call, to
    which there is an answer: it comes when the client has sent so often that it has memory at hand for that."""

    PEACE = 30

    def __init__(self) -> None:
        self._count = 0

    def reply(self, proxy, offer: Header, message: bytes) -> None:
        other = offer.xid ^ 0x5a5a5a5a
        noises = (b"\0", b"\0" * 4, words(other, 1, 1, RDMA_DONE), words(other, 1, 1, RDMA_ERROR, 99, 0, 0),
                  # Under the XID that awaits a Reply: it is none.
                  Header(offer.xid, RDMA_DONE).encode() + message[:40])
        calls = (b"\xff" * 28, words(other, 1, 1, 77, 0, 0, 0), Header(other, RDMA_MSGP).encode() + bytes(40),
                 Header(other, version=2).encode() + bytes(40), Header(other, RDMA_NOMSG).encode(),
                 words(other, 1, 1, RDMA_MSG, 0, 1, 0xffffffff), words(other, 1, 1, RDMA_MSG, 1, 0, 1, 1, 0, 1) * 20)
        all_kinds = noises if self._count < self.PEACE else noises + calls
        noise = all_kinds[self._count % len(all_kinds)]
        self._count += 1
        if noise in calls:
            proxy.call_badly("noise", noise)
        else:
            proxy.send(noise)
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


class LeavesOut(Places):
    """Sends what it can inline, and returns no chunk that it has not used."""

    def reply(self, proxy, offer: Header, message: bytes) -> None:
        plain = Header(offer.xid, RDMA_MSG, self.credits)
        if len(plain.encode()) + len(message) > proxy.threshold:
            return super().reply(proxy, offer, message)
        if offer.writes or offer.reply:
            print("left out", flush=True)
        proxy.send_header(plain, message)


class CutsOff(Behaviour):
    """Leaves out the padding at the end of the Reply to a READ of NFS 3."""

    def __init__(self) -> None:
        self._reads: set[int] = set()

    def takes(self, proxy, offer: Header, call: bytes) -> bool:
        if struct.unpack_from(">3I", call, PROGRAM) == (NFS, 3, READ):
            self._reads.add(offer.xid)
        return True

    def reply(self, proxy, offer: Header, message: bytes) -> None:
        if offer.xid in self._reads and not struct.unpack_from(">I", message, READ_STATUS)[0]:
            count, = struct.unpack_from(">I", message, READ_COUNT)
            print(f"cut off {len(message) - READ_DATA - count}", flush=True)
            message = message[:READ_DATA + count]
        proxy.reply(offer, message)


class Verifies(Places):
    """Has a verifier of another length, longer and shorter in turn, in each Reply to a READ of NFS 3 whose data it puts
    into the Write chunk, and none in others."""

    BYTES = (0, 400, 16, 40, 396)

    def __init__(self) -> None:
        self._count = 0

    def answer(self, proxy, offer: Header, chunk: list[Segment], rest: bytes) -> None:
        length = self.BYTES[self._count % len(self.BYTES)]
        self._count += 1
        print("verified", flush=True)
        verifier = words(AUTH_SHORT, length) + bytes(length)
        super().answer(proxy, offer, chunk, rest[:VERIFIER] + verifier + rest[VERIFIER + 8:])


class InvalidatesAnother(Places):
    """Invalidates a key of another RPC with the Reply to a READ of NFS 3, a few times."""

    private = private_data(invalidate=True)
    TIMES = 2

    def __init__(self) -> None:
        # What comes after it on that connection the client does not hear any more.
        self._spent: list = []

    def answer(self, proxy, offer: Header, chunk: list[Segment], rest: bytes) -> None:
        others = [other for other in proxy.outstanding if other.writes]
        if not others or len(self._spent) == self.TIMES or proxy in self._spent:
            return super().answer(proxy, offer, chunk, rest)
        self._spent.append(proxy)
        print("invalidated", flush=True)
        header = Header(offer.xid, RDMA_MSG, self.credits, writes=[chunk])
        proxy.send(header.encode() + rest, others[0].writes[0][0].handle)


class Scribbles(Behaviour):
    """Sends what it can inline, and the Write chunk that it was offered back as unused, into which it has written."""

    def reply(self, proxy, offer: Header, message: bytes) -> None:
        unused = [filled(chunk, 0) for chunk in offer.writes]
        whole = Header(offer.xid, RDMA_MSG, self.credits, writes=unused)
        if unused and len(whole.encode()) + len(message) <= proxy.threshold:
            for chunk in offer.writes:
                proxy.place(chunk, b"\x5a" * sum(segment.length for segment in chunk))
            print("scribbled", flush=True)
        proxy.reply(offer, message)


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


def null(xid: int) -> bytes:
    """NULL of the callback program."""
    return words(xid, CALL, 2, 0x40000000, 1, 0, 0, 0, 0, 0)


def own_xid(offer: Header, number: int) -> int:
    """An XID for the n-th Call of our own with a Reply."""
    return (offer.xid + 0x10000 * (number + 1)) & 0xffffffff


class CallsBack(Behaviour):
    """Sends so many Calls of its own with each Reply, whether somebody answers them or not. That Replies to the client's Calls
    may be pulled makes no difference to them."""

    private = private_data() + pulls(may_provide=True)

    def __init__(self, count: int) -> None:
        self._count = count

    def reply(self, proxy, offer: Header, message: bytes) -> None:
        proxy.reply(offer, message)
        for number in range(self._count):
            xid = own_xid(offer, number)
            time.sleep(MOMENT)
            proxy.call_back([("NULL", Header(xid, RDMA_MSG, self.credits), null(xid))])


# So many Replies come before, since nobody takes Calls of the server before the client has a session.
PEACE = 30


class CallsInTurn(Behaviour):
    """Sends so many Calls of its own with a Reply, but not before those that it has sent are answered."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._replies = 0

    def reply(self, proxy, offer: Header, message: bytes) -> None:
        proxy.reply(offer, message)
        self._replies += 1
        if self._replies > PEACE and not proxy.unanswered:
            xids = [own_xid(offer, number) for number in range(self._count)]
            proxy.call_back([("NULL", Header(xid, RDMA_MSG, self.credits), null(xid)) for xid in xids])


class CutsCallsOff(Behaviour):
    """Sends a Call of its own that ends behind its third word, on so many connections."""

    def __init__(self, count: int) -> None:
        self._left = count
        self._replies = 0
        self._cut: list = []

    def reply(self, proxy, offer: Header, message: bytes) -> None:
        proxy.reply(offer, message)
        self._replies += 1
        if self._replies > PEACE and self._left and proxy not in self._cut:
            self._left -= 1
            self._cut.append(proxy)
            xid = own_xid(offer, 0)
            proxy.call_back([("cut off", Header(xid, RDMA_MSG, self.credits), null(xid)[:12])])


class CallsAlike(Behaviour):
    """Sends a Call of its own in front of each Reply, under the XID of that: both are under way at the same time (RFC
    8167, section 2.4.1)."""

    SECONDS = 20

    def __init__(self) -> None:
        self._replies = 0

    def reply(self, proxy, offer: Header, message: bytes) -> None:
        self._replies += 1
        if self._replies > PEACE:
            proxy.call_back([("NULL", Header(offer.xid, RDMA_MSG, self.credits), null(offer.xid))])
            # Every other time the Reply goes before the answer has come.
            if self._replies % 2:
                proxy.await_answers(self.SECONDS)
        proxy.reply(offer, message)


class Withholds(Behaviour):
    """Withholds all Replies now and then, when the client has used up its credits, until a Call of its own is answered."""

    credits = 3
    EVERY, TIMES = 40, 3
    # What the client may have under way: it keeps a credit.
    CALLS = credits - 1
    SECONDS = 20

    def __init__(self) -> None:
        self._replies = 0
        self._due = 0

    def reply(self, proxy, offer: Header, message: bytes) -> None:
        self._replies += 1
        if self._replies % self.EVERY == 0 and self._replies <= self.EVERY * self.TIMES:
            self._due += 1
        # With the one that this is the Reply of.
        if self._due and proxy.await_calls(self.CALLS - 1, MOMENT):
            self._due -= 1
            # Its next one has found no credit by then.
            time.sleep(MOMENT)
            xid = own_xid(offer, 0)
            proxy.call_back([("NULL", Header(xid, RDMA_MSG, CREDITS_WANTED), null(xid))])
            if not proxy.await_answers(self.SECONDS):
                print("waited in vain", flush=True)
        proxy.reply(offer, message)


class WithholdsFirst(Behaviour):
    """Breaks the connection now and then when the client has several Calls under way, and withholds the first Reply on the
    next one but that to NULL until a Call of its own is answered: the client has all those to send again, with one credit."""

    credits = GRANTED = 8
    EVERY, TIMES = 40, 3
    # More than one has to wait for the credit.
    CALLS = 3
    SECONDS = 20

    def __init__(self) -> None:
        self._replies = 0
        self._due = 0
        self._broken = False
        self._hung_up: list = []
        self._nulls: set[int] = set()

    def takes(self, proxy, offer: Header, call: bytes) -> bool:
        if is_null(call):
            self._nulls.add(offer.xid)
        return True

    def reply(self, proxy, offer: Header, message: bytes) -> None:
        if proxy in self._hung_up:
            # Nobody hears it: what is due is for the next connection.
            return
        self._replies += 1
        if self._replies % self.EVERY == 0 and self._replies <= self.EVERY * self.TIMES:
            self._due += 1
        if self._broken and offer.xid not in self._nulls:
            self._broken = False
            # The next one has found no credit by then.
            time.sleep(MOMENT)
            xid = own_xid(offer, 0)
            proxy.call_back([("NULL", Header(xid, RDMA_MSG, CREDITS_WANTED), null(xid))])
            if not proxy.await_answers(self.SECONDS):
                print("waited in vain", flush=True)
            proxy.reply(offer, message)
            # From the next Reply on: what this one grants was fixed when it came.
            self.credits = self.GRANTED
            return
        # With the one that this is the Reply of.
        if self._due and not self._broken and proxy.await_calls(self.CALLS - 1, MOMENT):
            self._due -= 1
            self._broken = True
            self.credits = 1
            self._hung_up.append(proxy)
            proxy.hang_up()
            return
        proxy.reply(offer, message)


class Floods(Behaviour):
    """Sends so many Calls of its own at once with each Reply, until that costs the connection; on two connections."""

    CONNECTIONS = 2

    def __init__(self, count: int) -> None:
        self._count = count
        self._replies = 0
        self._flooded: list = []

    def reply(self, proxy, offer: Header, message: bytes) -> None:
        proxy.reply(offer, message)
        self._replies += 1
        if self._replies <= PEACE or (proxy not in self._flooded and len(self._flooded) == self.CONNECTIONS):
            return
        if proxy not in self._flooded:
            self._flooded.append(proxy)
        xids = [own_xid(offer, number) for number in range(self._count)]
        proxy.call_back([("NULL", Header(xid, RDMA_MSG, self.credits), null(xid)) for xid in xids])


class Garbles(Behaviour):
    """Sends something else in the place of a Reply now and then, and the Reply when the Call comes again."""

    # A mount is made in peace, and between two of them the client gets somewhere.
    BEFORE, EVERY = 30, 5

    def __init__(self) -> None:
        self._replies = 0
        self._garbled: list[int] = []
        # What comes after the first one the client does not hear any more.
        self._spoilt: list = []

    def reply(self, proxy, offer: Header, message: bytes) -> None:
        self._replies += 1
        kinds = self._kinds(offer, message)
        due = (self._replies > self.BEFORE and self._replies % self.EVERY == 0 and len(self._garbled) < len(kinds)
               and proxy not in self._spoilt)
        if not due or offer.xid in self._garbled:
            return proxy.reply(offer, message)
        name, garbled = kinds[len(self._garbled)]
        self._garbled.append(offer.xid)
        self._spoilt.append(proxy)
        print(f"garbled {name}", flush=True)
        proxy.send(garbled)

    def _kinds(self, offer: Header, message: bytes) -> list[tuple[str, bytes]]:
        header = Header(offer.xid, RDMA_MSG, self.credits)
        return [("a chunk list without end", words(offer.xid, 1, self.credits, RDMA_MSG, 0, 1, 0xffffffff)),
                ("a procedure that is none", words(offer.xid, 1, self.credits, 77, 0, 0, 0) + message[:40]),
                ("another version", replace(header, version=2).encode() + message[:40]),
                ("a long Reply without a chunk", replace(header, procedure=RDMA_NOMSG).encode()),
                # With fewer words it would have no XID to the client.
                ("an error that is none", words(offer.xid, 1, self.credits, RDMA_ERROR, 99, 0, 0)),
                ("two XIDs", header.encode() + words(offer.xid ^ 1) + message[4:40]),
                ("a Reply cut off", header.encode() + message[:8])]


class IgnoresProbes(Behaviour):
    """Does not answer NULL of NFS, except where a client begins with it: never, or the first so many times."""

    def __init__(self, most: int = 1 << 32) -> None:
        self._begun: list = []
        self._left = most

    def takes(self, proxy, offer: Header, call: bytes) -> bool:
        if is_null(call) and proxy in self._begun:
            ignored = self._left > 0
            self._left -= ignored
            print("ignored" if ignored else "asked", flush=True)
            return not ignored
        if proxy not in self._begun and not is_null(call):
            self._begun.append(proxy)
        return True


def is_null(call: bytes) -> bool:
    """Whether a Call is NULL of NFS: a mount asks for that of NFSACL, too, and waits for the answer."""
    program, _, procedure = struct.unpack_from(">3I", call, PROGRAM)
    return (program, procedure) == (NFS, 0)


def is_fsstat(call: bytes) -> bool:
    return struct.unpack_from(">3I", call, PROGRAM) == (NFS, 3, FSSTAT)


BY_NAME = {"honest": Behaviour, "rejects": Rejects, "hangs-up": HangsUp, "deaf": Deaf, "mute": Mute, "grants": Grants,
           "says-little": SaysLittle, "errs": Errs, "refuses-reads": RefusesReads, "errs-version": ErrsVersion, "refuses-acls": RefusesAcls,
           "long-acls": LongAcls, "stutters": Stutters, "babbles": Babbles, "places": Places,
           "pads": Pads, "calls-back": CallsBack, "calls-in-turn": CallsInTurn, "floods": Floods,
           "leaves-out": LeavesOut, "cuts-off": CutsOff, "verifies": Verifies, "falls-silent": FallsSilent,
           "invalidates-another": InvalidatesAnother, "calls-alike": CallsAlike, "scribbles": Scribbles, "cuts-calls-off": CutsCallsOff,
           "withholds": Withholds, "withholds-first": WithholdsFirst,
           "garbles": Garbles, "ignores-probes": IgnoresProbes}
