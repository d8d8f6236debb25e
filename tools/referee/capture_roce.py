"""Captures of RoCE version 2: packets of InfiniBand's reliable connections in UDP."""

import struct
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import capture_cm
from capture_cm import Datagram, QueuePair
from capture_connection import Connection, Incomplete, Moved, Sent
from capture_packet import CLIENT, SERVER, UDP, End, Packet, frame, header

PORT, SOURCE_PORT = 4791, 49152
UDP_HEADER, TRANSPORT = struct.Struct(">HHHH"), struct.Struct(">BBHII")
# Of a datagram: the key and the queue pair of whoever sends it. The connection manager has queue pair 1.
DATAGRAM, MANAGER, MANAGER_KEY = struct.Struct(">II"), 1, 0x80010000
UD_SEND_ONLY, PARTITION, CHECKSUM = 0x64, 0xffff, 4
# Octets of padding, in the second octet of the transport header.
PADDING_SHIFT = 4


class Kinds(NamedTuple):
    """The opcodes of what has one packet or several."""

    first: int
    middle: int
    last: int
    only: int


PLAIN_SENDS, INVALIDATING_SENDS = Kinds(0, 1, 2, 4), Kinds(0, 1, 0x16, 0x17)
# Those with immediate data are like others but for these.
IMMEDIATE = (3, 5)
WRITES, READ_REQUEST, RESPONSES = Kinds(6, 7, 8, 10), 12, Kinds(13, 14, 15, 16)
INVALIDATING, UNFINISHED = (INVALIDATING_SENDS.last, INVALIDATING_SENDS.only), (PLAIN_SENDS.first, PLAIN_SENDS.middle)
# Sends: what is between the transport header and the message, which with immediate data and invalidation is a word.
SENDS = dict.fromkeys(PLAIN_SENDS, 0) | dict.fromkeys((*IMMEDIATE, *INVALIDATING), 4)
# What has a number of its own: Sends, RDMA Writes, RDMA Reads, atomic operations.
REQUESTS = (*range(READ_REQUEST + 1), 0x13, 0x14, *INVALIDATING)
# Of an RDMA Read or Write: address, key, length.
READ = struct.Struct(">QII")
NUMBERS = 1 << 24
# The ends of the connection that is written.
CLIENT_PAIR, SERVER_PAIR = QueuePair(0xc44c52d5, 0x9e, 0x884923), QueuePair(0x2f1b77a0, 0x27, 0xfffffe)


def frames(messages: Iterable[Sent | Moved], private: tuple[bytes, bytes], mtu: int) -> Iterator[bytes]:
    """A connection, its set-up first, with packets of so many octets of a message at most."""
    yield _managed(CLIENT, SERVER, capture_cm.request(CLIENT_PAIR, private[0], mtu))
    yield _managed(SERVER, CLIENT, capture_cm.reply(SERVER_PAIR, CLIENT_PAIR, private[1]))
    yield _managed(CLIENT, SERVER, capture_cm.ready(CLIENT_PAIR, SERVER_PAIR))
    pairs = _Pairs()
    for each in messages:
        if isinstance(each, Sent):
            yield from pairs.send(each, mtu)
        else:
            yield from pairs.read(each, mtu) if each.read else pairs.write(each, mtu)


class _Pairs:
    """The queue pairs of a connection that is written, by whose packets have which number next."""

    def __init__(self) -> None:
        self._next = {True: SERVER_PAIR.first, False: CLIENT_PAIR.first}

    def send(self, sent: Sent, mtu: int) -> Iterator[bytes]:
        """A Send."""
        kinds = INVALIDATING_SENDS if sent.invalidates is not None else PLAIN_SENDS
        key = struct.pack(">I", sent.invalidates or 0)
        for opcode, part in _parts(sent.message, mtu, kinds):
            yield self._packet(sent.by_client, opcode, self._take(sent.by_client), key if opcode in INVALIDATING else b"", part)

    def write(self, moved: Moved, mtu: int) -> Iterator[bytes]:
        """An RDMA Write."""
        where = READ.pack(moved.address, moved.handle, len(moved.data))
        for opcode, part in _parts(moved.data, mtu, WRITES):
            begins = opcode in (WRITES.first, WRITES.only)
            yield self._packet(moved.by_client, opcode, self._take(moved.by_client), where if begins else b"", part)

    def read(self, moved: Moved, mtu: int) -> Iterator[bytes]:
        """An RDMA Read: its request, and its responses, which have the numbers that it takes."""
        where = READ.pack(moved.address, moved.handle, len(moved.data))
        parts = list(_parts(moved.data, mtu, RESPONSES))
        numbers = [self._take(moved.by_client) for _ in parts]
        yield self._packet(moved.by_client, READ_REQUEST, numbers[0], where, b"")
        for number, (opcode, part) in zip(numbers, parts):
            yield self._packet(not moved.by_client, opcode, number, b"" if opcode == RESPONSES.middle else bytes(4), part)

    def _take(self, by_client: bool) -> int:
        number = self._next[by_client]
        self._next[by_client] = (number + 1) % NUMBERS
        return number

    @staticmethod
    def _packet(by_client: bool, opcode: int, number: int, extension: bytes, part: bytes) -> bytes:
        ends = (CLIENT, SERVER) if by_client else (SERVER, CLIENT)
        pair = SERVER_PAIR if by_client else CLIENT_PAIR
        return _packet(*ends, opcode, pair.number, number, extension, part)


def _parts(message: bytes, mtu: int, kinds: Kinds) -> Iterator[tuple[int, bytes]]:
    """The packets of a message: the opcode of each, and what it has of the message."""
    parts = [message[at:at + mtu] for at in range(0, len(message), mtu)] or [b""]
    last = len(parts) - 1
    for index, part in enumerate(parts):
        if last == 0:
            yield kinds.only, part
        else:
            yield kinds.first if index == 0 else kinds.last if index == last else kinds.middle, part


def _managed(source: End, target: End, datagram: bytes) -> bytes:
    return _packet(source, target, UD_SEND_ONLY, MANAGER, 0, DATAGRAM.pack(MANAGER_KEY, MANAGER), datagram)


def _packet(source: End, target: End, opcode: int, pair: int, number: int, extension: bytes, part: bytes) -> bytes:
    padding = -len(part) % 4
    body = TRANSPORT.pack(opcode, padding << PADDING_SHIFT, PARTITION, pair, number) + extension + part + bytes(padding)
    length = UDP_HEADER.size + len(body) + CHECKSUM
    before = header(source, target, UDP, length)
    udp = UDP_HEADER.pack(SOURCE_PORT, PORT, length, 0)
    return frame(source, target, before + udp + body + invariant(before, udp, body))


def invariant(before: bytes, udp: bytes, body: bytes) -> bytes:
    """The checksum of what routers leave alone; what they may change counts as ones, and so does what RoCE has not (InfiniBand
    Architecture, volume 1, annex A17)."""
    version, _, *lengths, _, protocol, _, source, target = struct.unpack(">BBHHHBBH4s4s", before)
    masked = struct.pack(">8sBBHHHBBH4s4s", b"\xff" * 8, version, 0xff, *lengths, 0xff, protocol, 0xffff, source, target)
    masked += udp[:6] + b"\xff\xff" + body[:4] + b"\xff" + body[5:]
    return struct.pack("<I", zlib.crc32(masked))


@dataclass
class _Direction:
    """What one end sends: the number that has to come next, and the parts of a message that has not come whole."""

    by_client: bool
    next: int
    mtu: int
    parts: list[bytes] = field(default_factory=list)
    # A later number has come, so something is lacking until it is sent again.
    ahead: bool = False

    def take(self, opcode: int, number: int, body: bytes) -> Sent | None:
        """The message that a packet completes. One that was taken before, or that comes too early, counts as lost."""
        distance = (number - self.next) % NUMBERS
        if distance:
            self.ahead |= distance < NUMBERS // 2
            return None
        self.ahead = False
        self.next = (number + self._numbers(opcode, body)) % NUMBERS
        if opcode not in SENDS:
            return None
        extension = SENDS[opcode]
        self.parts.append(body[extension:])
        if opcode in UNFINISHED:
            return None
        message, self.parts = b"".join(self.parts), []
        key = struct.unpack_from(">I", body)[0] if opcode in INVALIDATING else None
        return Sent(self.by_client, message, key)

    def _numbers(self, opcode: int, body: bytes) -> int:
        """The response to an RDMA Read has the request's number and those that follow."""
        if opcode != READ_REQUEST:
            return 1
        _, _, length = READ.unpack_from(body)
        return max(1, -(-length // self.mtu))


class _Reader:
    """What is known after some of the packets."""

    def __init__(self) -> None:
        self.found: list[tuple[Connection, _Direction, _Direction]] = []
        # Requests of the connection manager by who asks, and who has received a reply to one: either may be sent again.
        self._asked: dict[tuple[str, int], Datagram] = {}
        self._answered: set[tuple[str, Datagram]] = set()
        # By address and queue pair of the receiver.
        self._directions: dict[tuple[str, int], tuple[Connection, _Direction]] = {}

    def take(self, packet: Packet) -> None:
        """Go on by a packet, of whatever kind."""
        if packet.protocol != UDP or len(packet.body) < UDP_HEADER.size + TRANSPORT.size + CHECKSUM:
            return
        _, port, *_ = UDP_HEADER.unpack_from(packet.body)
        opcode, second, _, pair, number = TRANSPORT.unpack_from(packet.body, UDP_HEADER.size)
        padding = second >> PADDING_SHIFT & 3
        body = packet.body[UDP_HEADER.size + TRANSPORT.size:len(packet.body) - CHECKSUM - padding]
        receiver = packet.target, pair % NUMBERS
        if port != PORT:
            return
        if opcode == UD_SEND_ONLY:
            datagram = capture_cm.parse(body[DATAGRAM.size:])
            if datagram is not None:
                self._set_up(packet, datagram)
        elif opcode in REQUESTS and receiver in self._directions:
            connection, direction = self._directions[receiver]
            sent = direction.take(opcode, number % NUMBERS, body)
            if sent is not None:
                connection.messages.append(sent)

    def _set_up(self, packet: Packet, datagram: Datagram) -> None:
        if datagram.kind == capture_cm.REQUEST:
            self._asked[packet.source, datagram.own.connection] = datagram
            return
        request = self._asked.get((packet.target, datagram.other))
        if request is None or (packet.target, datagram) in self._answered:
            return
        self._answered.add((packet.target, datagram))
        client, server = (packet.target, request.own.number), (packet.source, datagram.own.number)
        connection = Connection(f"{client[0]} QP {client[1]:#x} to {server[0]} QP {server[1]:#x}",
                                private=(request.private, datagram.private))
        calls = _Direction(True, datagram.own.first, request.mtu)
        replies = _Direction(False, request.own.first, request.mtu)
        self._directions[server], self._directions[client] = (connection, calls), (connection, replies)
        self.found.append((connection, calls, replies))


def connections(packets: Iterable[Packet]) -> list[Connection]:
    """The connections whose set-up is in a capture."""
    reader = _Reader()
    for packet in packets:
        reader.take(packet)
    for connection, *directions in reader.found:
        for direction in directions:
            if direction.ahead:
                end = "client" if direction.by_client else "server"
                raise Incomplete(f"{connection.name}: packet {direction.next:#x} of the {end} is not in the capture")
    return [connection for connection, *_ in reader.found]
