"""Streams of TCP, put together from its segments."""

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

from capture_packet import TCP, Packet

# Ports, sequence number, acknowledgment, words of the header and flags, window, checksum, urgent pointer.
HEADER = struct.Struct(">HHIIHHHH")
SYN, ACK = 2, 16
NUMBERS = 1 << 32


@dataclass
class Half:
    """What one end sends: the number of the octet that has to come next, and what has come too early."""

    next: int
    early: dict[int, bytes] = field(default_factory=dict)

    def take(self, number: int, data: bytes) -> bytes:
        """The octets that are complete now; those that were sent again come once."""
        self.early[number] = max(self.early.get(number, b""), data, key=len)
        ready = b""
        while (found := next((each for each in self.early if self._behind(each) < NUMBERS // 2), None)) is not None:
            part = self.early.pop(found)[self._behind(found):]
            ready += part
            self.next = (self.next + len(part)) % NUMBERS
        return ready

    def _behind(self, number: int) -> int:
        """How far a number is behind the next one."""
        return (self.next - number) % NUMBERS


@dataclass
class Stream:
    """A connection of TCP whose beginning was seen, and the number that the client began with."""

    name: str
    first: int
    client: Half
    server: Half | None = None


@dataclass(frozen=True)
class Octets:
    """What a segment completes of a stream."""

    stream: Stream
    by_client: bool
    data: bytes


# By address and port of the client and of the server.
Key = tuple[str, int, str, int]


class Streams:
    """The connections of TCP in a capture."""

    def __init__(self) -> None:
        self._open: dict[Key, Stream] = {}

    def take(self, packet: Packet) -> Octets | None:
        """Go on by a packet, of whatever kind."""
        if packet.protocol != TCP or len(packet.body) < HEADER.size:
            return None
        source, target, number, _, control, *_ = HEADER.unpack_from(packet.body)
        data = packet.body[4 * (control >> 12):]
        ahead, back = (packet.source, source, packet.target, target), (packet.target, target, packet.source, source)
        if control & SYN and control & ACK:
            if back in self._open and not self._open[back].server:
                self._open[back].server = Half((number + 1) % NUMBERS)
        elif control & SYN:
            self._begin(ahead, number)
        elif data and ahead in self._open:
            return Octets(self._open[ahead], True, self._open[ahead].client.take(number, data))
        elif data and back in self._open and (server := self._open[back].server):
            return Octets(self._open[back], False, server.take(number, data))
        return None

    def _begin(self, key: Key, number: int) -> None:
        """The ports may have been another connection's; but what begins one may be sent again."""
        if key not in self._open or self._open[key].first != number:
            name = f"{key[0]} port {key[1]} to {key[2]} port {key[3]}"
            self._open[key] = Stream(name, number, Half((number + 1) % NUMBERS))
