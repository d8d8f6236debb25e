"""Captures of iWARP: frames of MPA (RFC 5044, RFC 6581) with segments of DDP (RFC 5041) and RDMAP (RFC 5040) in TCP."""

import struct
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from capture_connection import Connection, Incomplete, Moved, Sent
from capture_packet import CLIENT, SERVER, TCP, End, Packet, checksum, frame, header
from capture_stream import ACK, HEADER, SYN, Stream, Streams

PORT, CLIENT_PORT = 20049, 48953
# Of TCP, a flag, the words of a header without options, and the window.
PUSH, WORDS, WINDOW = 8, 5, 0xffff
# What begins a connection: key, flags with the revision, and the length of what follows.
START = struct.Struct(">16sHH")
REQUEST, REPLY = b"MPA ID Req Frame", b"MPA ID Rep Frame"
MARKERS, ENHANCED, REVISION = 0x8000, 0x1000, 2
# In front of the private data are then the RDMA Reads that an end takes and begins.
READS, DEPTH = struct.Struct(">HH"), 16
# Of a segment: it goes to a tag, it is the last one of a message; the versions of DDP and RDMAP.
TAGGED, LAST, VERSIONS = 0x8000, 0x4000, 0x0140
WRITE, READ_REQUEST, READ_RESPONSE, SEND, SEND_INVALIDATING, SEND_SOLICITED, SEND_SOLICITED_INVALIDATING = range(7)
INVALIDATING = (SEND_INVALIDATING, SEND_SOLICITED_INVALIDATING)
SENDS = (SEND, SEND_SOLICITED, *INVALIDATING)
# Of a frame: its length and the control fields. Of a segment to a queue: a key or nothing, the queue, the number of the message
# there, the place in it.
CONTROL, TO_QUEUE, CHECKSUM = struct.Struct(">HH"), struct.Struct(">IIII"), 4
SEND_QUEUE, READ_QUEUE = 0, 1
# Of a segment to a tag: that and the address. Of an RDMA Read: where its data go, how many, where they are.
TO_TAG, READ, SINK = struct.Struct(">IQ"), struct.Struct(">IQIIQ"), (0x5eed00, 0xffff000000000000)
# Where the streams that are written begin.
FIRST = {True: 0x10000000, False: 0xfffffff0}
# How many messages an end, the client or not, has sent to a queue of the other.
Numbers = Counter[tuple[bool, int]]


def frames(messages: Iterable[Sent | Moved], private: tuple[bytes, bytes], mtu: int, cut: int | None) -> Iterator[bytes]:
    """A connection, its set-up first, with segments of so many octets of a message at most. A frame of MPA has a segment of TCP
    for itself, unless the stream is cut into segments of TCP elsewhere, after so many octets each."""
    tcp = _Tcp()
    yield from tcp.handshake()
    yield from tcp.send(True, _start(REQUEST, private[0]), None)
    yield from tcp.send(False, _start(REPLY, private[1]), None)
    numbers: Numbers = Counter()
    for each in messages:
        for by_client, parts in _framed(each, numbers, mtu):
            for part in parts if cut is None else [b"".join(parts)]:
                yield from tcp.send(by_client, part, cut)


def _start(key: bytes, private: bytes) -> bytes:
    private = READS.pack(DEPTH, DEPTH) + private
    return START.pack(key, ENHANCED | REVISION, len(private)) + private


def _framed(each: Sent | Moved, numbers: Numbers, mtu: int) -> Iterator[tuple[bool, list[bytes]]]:
    """Who sends which frames of MPA."""
    if isinstance(each, Sent):
        numbers[each.by_client, SEND_QUEUE] += 1
        yield each.by_client, list(_send(each, numbers[each.by_client, SEND_QUEUE], mtu))
    elif each.read:
        numbers[each.by_client, READ_QUEUE] += 1
        yield each.by_client, [_read_request(each, numbers[each.by_client, READ_QUEUE])]
        yield not each.by_client, list(_placed(READ_RESPONSE, SINK, each.data, mtu))
    else:
        yield each.by_client, list(_placed(WRITE, (each.handle, each.address), each.data, mtu))


def _send(sent: Sent, number: int, mtu: int) -> Iterator[bytes]:
    """A message to the queue for Sends."""
    opcode = SEND if sent.invalidates is None else SEND_INVALIDATING
    for at in range(0, len(sent.message), mtu) or [0]:
        last = LAST if at + mtu >= len(sent.message) else 0
        where = TO_QUEUE.pack(sent.invalidates or 0, SEND_QUEUE, number, at)
        yield _frame(last | opcode, where + sent.message[at:at + mtu])


def _read_request(moved: Moved, number: int) -> bytes:
    """What asks for octets of the other end's memory."""
    where = TO_QUEUE.pack(0, READ_QUEUE, number, 0)
    return _frame(LAST | READ_REQUEST, where + READ.pack(*SINK, len(moved.data), moved.handle, moved.address))


def _placed(opcode: int, where: tuple[int, int], data: bytes, mtu: int) -> Iterator[bytes]:
    """Octets that go to a tag and an address."""
    tag, address = where
    for at in range(0, len(data), mtu) or [0]:
        last = LAST if at + mtu >= len(data) else 0
        yield _frame(TAGGED | last | opcode, TO_TAG.pack(tag, address + at) + data[at:at + mtu])


def _frame(control: int, segment: bytes) -> bytes:
    """A segment in a frame of MPA, without markers and with a checksum of zero, as siw sends them."""
    framed = CONTROL.pack(2 + len(segment), VERSIONS | control) + segment
    return framed + bytes(-len(framed) % 4) + bytes(CHECKSUM)


class _Tcp:
    """The two streams of a connection that is written."""

    def __init__(self) -> None:
        self._next = dict(FIRST)

    def handshake(self) -> Iterator[bytes]:
        yield self._segment(True, SYN, b"")
        yield self._segment(False, SYN | ACK, b"")
        yield self._segment(True, ACK, b"")

    def send(self, by_client: bool, data: bytes, cut: int | None) -> Iterator[bytes]:
        size = cut or len(data)
        for at in range(0, len(data), size):
            yield self._segment(by_client, PUSH | ACK, data[at:at + size])

    def _segment(self, by_client: bool, flags: int, data: bytes) -> bytes:
        source, target = (CLIENT, SERVER) if by_client else (SERVER, CLIENT)
        ports = (CLIENT_PORT, PORT) if by_client else (PORT, CLIENT_PORT)
        acknowledged = self._next[not by_client] if flags & ACK else 0
        fields = (*ports, self._next[by_client], acknowledged, WORDS << 12 | flags, WINDOW)
        self._next[by_client] = (self._next[by_client] + len(data) + bool(flags & SYN)) & 0xffffffff
        return _checked(source, target, fields, data)


def _checked(source: End, target: End, fields: tuple[int, ...], data: bytes) -> bytes:
    length = HEADER.size + len(data)
    pseudo = source.address.packed + target.address.packed + struct.pack(">HH", TCP, length)
    summed = checksum(pseudo + HEADER.pack(*fields, 0, 0) + data)
    return frame(source, target, header(source, target, TCP, length) + HEADER.pack(*fields, summed, 0) + data)


@dataclass
class _Direction:
    """What one end sends: its private data, what has come of a frame, and what has come of a message."""

    by_client: bool
    private: bytes | None = None
    rest: bytearray = field(default_factory=bytearray)
    parts: list[bytes] = field(default_factory=list)

    def take(self, data: bytes) -> Iterator[Sent]:
        """The messages that octets of the stream complete."""
        self.rest += data
        if self.private is None:
            self._begin()
        if self.private is None:
            return
        while True:
            length = CONTROL.unpack_from(self.rest)[0] if len(self.rest) >= CONTROL.size else 0
            whole = 2 + length + -(2 + length) % 4 + CHECKSUM
            if length < 2 or len(self.rest) < whole:
                return
            framed = bytes(self.rest[:2 + length])
            del self.rest[:whole]
            sent = self._segment(framed)
            if sent is not None:
                yield sent

    def _begin(self) -> None:
        if len(self.rest) < START.size:
            return
        key, flags, length = START.unpack_from(self.rest)
        if key != (REQUEST if self.by_client else REPLY) or len(self.rest) < START.size + length:
            return
        if flags & MARKERS:
            raise ValueError("MPA with markers, which nothing here sends")
        start = START.size + (READS.size if flags & ENHANCED else 0)
        self.private = bytes(self.rest[start:START.size + length])
        del self.rest[:START.size + length]

    def _segment(self, framed: bytes) -> Sent | None:
        _, control = CONTROL.unpack_from(framed)
        opcode = control & 0xf
        if control & TAGGED or opcode not in SENDS:
            return None
        key, *_ = TO_QUEUE.unpack_from(framed, CONTROL.size)
        self.parts.append(framed[CONTROL.size + TO_QUEUE.size:])
        if not control & LAST:
            return None
        message, self.parts = b"".join(self.parts), []
        return Sent(self.by_client, message, key if opcode in INVALIDATING else None)


@dataclass
class _Ends:
    """A stream of TCP and what its ends send, if it is one of MPA."""

    stream: Stream
    connection: Connection
    client: _Direction = field(default_factory=lambda: _Direction(True))
    server: _Direction = field(default_factory=lambda: _Direction(False))


def connections(packets: Iterable[Packet]) -> list[Connection]:
    """The connections whose set-up is in a capture; streams of TCP that do not begin as those of MPA do are something else."""
    streams = Streams()
    found: dict[int, _Ends] = {}
    for packet in packets:
        octets = streams.take(packet)
        if octets is None or not octets.data:
            continue
        ends = found.setdefault(id(octets.stream), _Ends(octets.stream, Connection(octets.stream.name)))
        direction = ends.client if octets.by_client else ends.server
        ends.connection.messages += direction.take(octets.data)
    made = [ends for ends in found.values() if ends.client.private is not None and ends.server.private is not None]
    for ends in made:
        ends.connection.private = ends.client.private or b"", ends.server.private or b""
        for half in filter(None, (ends.stream.client, ends.stream.server)):
            if half.early:
                raise Incomplete(f"{ends.connection.name}: octet {half.next:#x} of a stream is not in the capture")
    return [ends.connection for ends in made]
