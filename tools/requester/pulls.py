"""Replies that the requester pulls (draft-cel-nfsv4-rpcrdma-reliable-reply, and Documentation/reliable-reply.rst), also by
one who does it wrong."""

import itertools
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import nfs
from bench import Bench
from case import Case
from connection import Connection
from endpoint import Lost
from events import DEPTH
from failure import Failure, require, same
from header import RDMA_NOMSG, Header, Segment, chunk_error, decode, done, filled, private_data, pulls
from nfs import Message
from write_chunks import aligned, chunk, read

PULLS = private_data(True) + pulls(may_pull=True)
# The device takes a message that makes the key of a region here invalid for a mistake, if it is rxe.
KEEPS_KEYS = private_data() + pulls(may_pull=True)
# What nobody was offered.
NO_XID, NO_KEY = 0x7e57_0000, 0x0bad_0b00
# For how many seconds a Reply is provided that is too late, and bytes of Replies at once: the test has set that.
TIME, MOST_BYTES = 2, 2 << 20
NOTHING = "provides nothing"
# Replies of a few pages, of which a client has so many at once before it has said of one that it was pulled. Fewer of large
# ones are as many bytes as it may have; results have so many around them.
BYTES, AT_ONCE, LARGE_BYTES = 12_000, 16, 60_000
# Results that are placed in Write chunks, between parts of what is pulled; and pages of one that is kept with what is pulled.
# Whatever a Reply is, it has some pages around its results.
GAPS, PLACED_PAGES, AROUND = 7, 48, 5 * 4096
# Who has as much provided at once as there may be, and pages of the server's own in one Reply; and how many more each asks for
# then. The file says that it is so.
HOLDERS, OWN_PAGES, MORE, HELD = 8, 30, 1250, Path("/tmp/pulls.held")
# Who has something provided at once, and how many Replies of a quarter of a MiB each.
CROWD, EACH = 64, 15


class Puller:
    """A connection that pulls."""

    def __init__(self, bench: Bench, private: bytes = PULLS, depth: int = DEPTH) -> None:
        self.bench = bench
        self.connection = Connection(bench.adapter, private, depth=depth)

    def call(self, message: Message, xid: int = 0, **chunks) -> int:
        """Make a Call, with an XID of its own if there is none; its XID."""
        xid = xid or self.bench.xid()
        self.connection.send(Header(xid, **chunks).encode() + message.call(xid).bytes)
        return xid

    def provided(self, xid: int, writes: Sequence[Sequence[Segment]] = ()) -> list[Segment]:
        """The segments of the Reply that has to come next, with Write chunks that come back so."""
        message = self.connection.receive().message
        header, _ = decode(message)
        require(bool(header.reads) and header.credits != 0, "nothing is provided, or nothing granted")
        expected = Header(xid, RDMA_NOMSG, header.credits, reads=[(0, segment) for _, segment in header.reads], writes=writes)
        same("header", message, expected.encode())
        return [segment for _, segment in header.reads]

    def pull(self, segments: Sequence[Segment], odd: bool = False) -> bytes:
        """What is there; with `odd` in pieces that the server did not think of."""
        parts = []
        for segment in segments:
            at = 0
            for length in (1, 4095, segment.length) if odd else (segment.length,):
                length = min(length, segment.length - at)
                if length:
                    parts.append(self.connection.read(segment.handle, segment.offset + at, length))
                at += length
        return b"".join(parts)

    def done(self, xid: int, key: int | None = None) -> None:
        # By the library of siw the peer gets another key than this one.
        self.connection.send(done(xid), None if self.bench.adapter.name == "siw" else key)

    def exchange(self, message: Message, *, key: bool = False, odd: bool = False, **chunks) -> list[Segment]:
        """Make a Call, and fail unless what is pulled is its Reply, to the byte; where that was."""
        xid = self.call(message, **chunks)
        segments = self.provided(xid)
        same("Reply", self.pull(segments, odd), bytes(message.reply(xid).bytes))
        self.done(xid, segments[0].handle if key else None)
        return segments

    def works(self) -> None:
        self.bench.works(self.connection)

    def is_over(self, segments: Sequence[Segment]) -> None:
        """Fail unless that cannot be read any more: who tries loses the connection."""
        self.must_fail(lambda: self.pull(segments), "what is provided no more can still be read")

    def must_fail(self, attempt: Callable[[], object], otherwise: str) -> None:
        """Fail unless the device refuses that, which costs the connection."""
        try:
            attempt()
        except (Lost, Failure):
            self.close()
            return
        raise Failure(otherwise)

    def close(self) -> None:
        self.connection.close()


def long(bench: Bench, length: int = BYTES, offset: int = 0) -> Message:
    """A Call whose Reply is longer than comes inline."""
    return nfs.compound(*read(bench, offset, length))


def said(bench: Bench) -> None:
    """The server says that it provides Replies to who may pull them, and to nobody else; whatever else is behind. One that
    knows nothing of it says what it says to everybody."""
    if bench.differs(NOTHING):
        puller = Puller(bench)
        same("private data of the server", puller.connection.private, bench.connection.private)
        puller.works()
        puller.close()
        return
    whole = pulls(may_pull=True)
    plain = private_data(True)
    for what, private, provides in (
            ("a client that may pull", plain + whole, True), ("one that does both", plain + pulls(True, True), True),
            ("one that cannot begin RDMA Reads", plain + whole, False),
            ("one that only provides", plain + pulls(may_provide=True), False), ("one that says nothing", plain, False),
            ("reserved octets", plain + whole[:6] + b"\xff\xff", True), ("more behind it", plain + whole + b"more", True),
            ("a flag that nobody knows", plain + whole[:5] + b"\x05" + whole[6:], False),
            ("another version", plain + whole[:4] + b"\2" + whole[5:], False),
            ("another identifier", plain + b"\0" + whole[1:], False), ("a block that is cut off", plain + whole[:5], False)):
        # Where messages have a fixed length, zeros follow.
        puller = Puller(bench, private, 0 if "cannot" in what else DEPTH)
        found = puller.connection.private.rstrip(b"\0")
        expected = (private_data(bench.invalidates) + (pulls(may_provide=True) if provides else b"")).rstrip(b"\0")
        same(f"private data of the server for {what}", found, expected)
        xid = puller.call(long(bench))
        if provides:
            puller.provided(xid)
        else:
            same(f"answer to {what}", puller.connection.receive().message, chunk_error(xid, bench.credits))
        puller.close()


def pulled(bench: Bench) -> None:
    """A long Reply in memory of the server, with and without a key that is made invalid; short ones come inline."""
    if bench.differs(NOTHING):
        return
    puller = Puller(bench)
    for length in (8200, 12_289, 20_000, 60_001):
        for key in (False, True):
            puller.exchange(long(bench, length, 5), key=key, odd=not key)
            puller.works()
    puller.close()


def chunk_too_small(bench: Bench) -> None:
    """A Reply chunk that has no room for the Reply comes back as if there were none; one that has is used."""
    if bench.differs(NOTHING):
        return
    puller = Puller(bench, KEEPS_KEYS)
    puller.exchange(long(bench), reply=chunk(bench, 900))
    puller.exchange(long(bench), reply=[])
    bench.exchange(long(bench), reply=chunk(bench, BYTES + 500), in_reply_chunk=True, connection=puller.connection)
    puller.works()
    puller.close()


def beside_write_chunks(bench: Bench) -> None:
    """Results that have a Write chunk go there, and the rest is pulled."""
    if bench.differs(NOTHING):
        return
    for placed in (1, GAPS):
        puller = Puller(bench, KEEPS_KEYS)
        reads = [aligned(bench, 1 + 7 * i, 2, i % 4) for i in range(GAPS + 1)]
        message = nfs.compound(*itertools.chain(*reads), *read(bench, 0, 7001))
        places = [chunk(bench, 4000, 5000) for _ in range(placed)]
        xid = puller.call(message, writes=places)
        stream = message.reply(xid)
        items = stream.items[:placed]
        for place, item in zip(places, items):
            bench.arena.put(place, stream.data(item))
        segments = puller.provided(xid, [filled(place, len(stream.data(item))) for place, item in zip(places, items)])
        same("what is pulled", puller.pull(segments), bytes(stream.without(items)))
        bench.arena.check()
        puller.done(xid, segments[0].handle)
        puller.works()
        puller.close()


def over(bench: Bench) -> None:
    """Once it is said that it was pulled, nobody reaches the Reply any more, whether a key is made invalid or not."""
    if bench.differs(NOTHING):
        return
    for key in (False, True):
        puller = Puller(bench)
        segments = puller.exchange(long(bench), key=key)
        puller.works()
        puller.is_over(segments)


def too_late(bench: Bench) -> None:
    """Who does not say so finds the Reply gone after a while, and nothing else is the worse for it."""
    if bench.differs(NOTHING):
        return
    puller, other = Puller(bench), Puller(bench)
    segments = puller.provided(puller.call(long(bench)))
    xid = other.call(long(bench))
    key = other.provided(xid)[0].handle
    time.sleep(TIME + 2)
    puller.works()
    puller.is_over(segments)
    # It may have been on its way.
    other.done(xid, key)
    other.exchange(long(bench))
    other.works()
    other.close()


def again(bench: Bench) -> None:
    """Of two Replies under one XID the first is taken back before there is the second, and one word is enough for both."""
    if bench.differs(NOTHING):
        return
    for said_first in (False, True):
        puller = Puller(bench)
        xid = puller.call(long(bench))
        first = puller.provided(xid)
        second = puller.provided(puller.call(long(bench, LARGE_BYTES), xid))
        same("second Reply", puller.pull(second), bytes(long(bench, LARGE_BYTES).reply(xid).bytes))
        if said_first:
            puller.done(xid, second[0].handle)
            puller.works()
            puller.is_over(second)
        else:
            puller.is_over(first)


def only_read(bench: Bench) -> None:
    """What is provided can be read, by its own connection, and nothing else."""
    if bench.differs(NOTHING):
        return
    puller, other = Puller(bench), Puller(bench)
    xid = puller.call(long(bench))
    segments = puller.provided(xid)
    other.must_fail(lambda: other.pull(segments), "another connection can read what is provided")
    same("Reply", puller.pull(segments), bytes(long(bench).reply(xid).bytes))

    def write() -> None:
        puller.connection.write(b"written", segments[0].handle, segments[0].offset)
        puller.works()

    puller.must_fail(write, "what is provided can be written")


def unknown(bench: Bench) -> None:
    """Twice, of an XID of nobody, of another connection's: it is dropped without a word."""
    if bench.differs(NOTHING):
        return
    puller, other = Puller(bench), Puller(bench)
    xid = other.call(long(bench))
    segments = other.provided(xid)
    for unknown_xid in (NO_XID, xid, xid):
        puller.done(unknown_xid)
        puller.works()
    same("the other's Reply", other.pull(segments), bytes(long(bench).reply(xid).bytes))
    for _ in range(3):
        other.done(xid)
    other.works()
    for each in (puller, other):
        each.close()


def foreign_key(bench: Bench) -> None:
    """A key of another Reply, or of nobody, with the word that one was pulled, or with a Call: the connection ends."""
    if bench.differs(NOTHING):
        return
    if bench.adapter.name == "siw":
        return
    for kind in ("another Reply's", "nobody's", "with a Call", "of nothing provided"):
        puller = Puller(bench)
        first = puller.call(long(bench))
        keys = [puller.provided(first)[0].handle]
        keys.append(puller.provided(puller.call(long(bench)))[0].handle)
        if kind == "another Reply's":
            puller.done(first, keys[1])
        elif kind == "nobody's":
            puller.done(first, NO_KEY)
        elif kind == "with a Call":
            xid = bench.xid()
            puller.connection.send(Header(xid).encode() + bytes(nfs.null().call(xid).bytes), keys[0])
        else:
            puller.done(NO_XID, keys[0])
        puller.connection.must_be_lost()
        puller.close()


def too_many(bench: Bench) -> None:
    """There is an end to what is provided to who never says that it was pulled: ERR_CHUNK then, and no other client
    notices; afterwards all is as before."""
    if bench.differs(NOTHING):
        return
    puller = Puller(bench, KEEPS_KEYS)
    placed = 4096 * PLACED_PAGES
    beside = nfs.compound(*aligned(bench, 1, PLACED_PAGES), *read(bench, 0, BYTES))
    place, stream = chunk(bench, placed), beside.reply(0)
    for asked, length, writes in ((long(bench), BYTES, []), (long(bench, LARGE_BYTES), LARGE_BYTES, []),
                                  (beside, BYTES + placed, [place])):
        if writes:
            bench.arena.put(place, stream.data(stream.items[0]))
        waiting = until_refused(puller, asked, writes=writes)
        require(len(waiting) * length <= MOST_BYTES, f"{len(waiting)} Replies of {length} bytes are provided at once")
        require(len(waiting) >= min(AT_ONCE, MOST_BYTES // (length + AROUND)), f"only {len(waiting)} Replies of {length} bytes are provided at once")
        bench.works()
        for xid, key in waiting:
            puller.done(xid, key)
        until_provided(puller, long(bench))
        puller.works()
    puller.close()


def until_provided(puller: Puller, asked: Message) -> None:
    """Ask until there is room again: what was pulled counts until it is fenced."""
    for _ in range(1000):
        xid = puller.call(asked)
        message = puller.connection.receive().message
        if message[12:16] == Header(xid, RDMA_NOMSG).encode()[12:16]:
            puller.done(xid, decode(message)[0].reads[0][1].handle)
            return
        must_be_refusal(message, xid)
    raise Failure("nothing is provided any more")


def until_refused(puller: Puller, asked: Message, **chunks) -> list[tuple[int, int]]:
    """XIDs and keys of what is provided, until the server says ERR_CHUNK."""
    waiting: list[tuple[int, int]] = []
    while len(waiting) < 200:
        xid = puller.call(asked, **chunks)
        message = puller.connection.receive().message
        if message[12:16] != Header(xid, RDMA_NOMSG).encode()[12:16]:
            must_be_refusal(message, xid)
            return waiting
        waiting.append((xid, decode(message)[0].reads[0][1].handle))
    raise Failure("there is no end to it")


def must_be_refusal(message: bytes, xid: int) -> None:
    """Fail unless that is ERR_CHUNK, whatever it grants."""
    same("answer", message[:8] + message[12:], chunk_error(xid, 0)[:8] + chunk_error(xid, 0)[12:])


def left(bench: Bench) -> None:
    """Who goes with all that is provided to him takes nothing with him."""
    if bench.differs(NOTHING):
        return
    for _ in range(3):
        puller = Puller(bench)
        for _ in range(AT_ONCE):
            puller.provided(puller.call(long(bench)))
        puller.close()
    bench.works()


def held(bench: Bench) -> None:
    """Clients that have nothing provided, then all that there may be, and ask for thousands more, and then have said that it
    was pulled. nfsd reads into pages of its own where a COMPOUND has two READs."""
    asked = nfs.compound(*aligned(bench, 1, OWN_PAGES), *read(bench, 0, 4096 * OWN_PAGES))
    pullers = [Puller(bench) for _ in range(HOLDERS)]
    for puller in pullers:
        puller.exchange(asked)
        puller.works()
    pause()
    # Where there is no room for a large one, there may be some for a few more.
    waiting = [until_refused(puller, asked) + until_refused(puller, long(bench)) for puller in pullers]
    for puller in pullers:
        for _ in range(MORE):
            xid = puller.call(long(bench))
            must_be_refusal(puller.connection.receive().message, xid)
    pause()
    for puller, replies in zip(pullers, waiting):
        for xid, _ in replies:
            puller.done(xid)
        puller.works()
    pause()
    for puller in pullers:
        puller.close()


def crowded(bench: Bench) -> None:
    """Many clients, each with less provided than it may have, and all with more than the server has for all of them: those that
    were provided first are taken back, and nobody is refused."""
    asked = nfs.compound(*aligned(bench, 1, OWN_PAGES), *read(bench, 0, 4096 * OWN_PAGES))
    pullers = [Puller(bench) for _ in range(CROWD)]
    for puller in pullers:
        puller.exchange(asked)
    pause()
    provided = [[(xid, puller.provided(xid)) for xid in (puller.call(asked) for _ in range(EACH))] for puller in pullers]
    pause()
    xid, newest = provided[-1][-1]
    same("Reply", pullers[-1].pull(newest), bytes(asked.reply(xid).bytes))
    pullers[0].is_over(provided[0][0][1])
    for puller in pullers[1:]:
        puller.works()
        puller.close()
    # The server lets connections go by and by.
    time.sleep(TIME)
    pause()


def pause(asked: int = 0) -> None:
    """Until somebody has looked at the server, which was asked for so much, and removes the file."""
    HELD.write_text(str(asked))
    while HELD.exists():
        time.sleep(0.1)


CASES = [Case("agreement", said), Case("Reply that is pulled", pulled), Case("Reply chunk that is too small", chunk_too_small),
         Case("pulled beside Write chunks", beside_write_chunks), Case("pulled, and read again", over),
         Case("provided twice", again), Case("only to be read", only_read),
         Case("pulled twice, or another's", unknown),
         Case("key of another Reply", foreign_key), Case("never pulled", too_many), Case("left with them", left)]
LATE, HOLDING = [Case("pulled too late", too_late)], [Case("as much as there may be", held)]
CROWDED = [Case("as much as all may have", crowded)]
