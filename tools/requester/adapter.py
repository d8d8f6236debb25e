"""The RDMA device, and memory of this process that the server may reach."""

import os
from collections.abc import Sequence

import verbs
from events import Events
from failure import require, same
from header import Segment
from memory import Memory

ARENA_BYTES = 2 << 20
CANARY = 0xA5
# Between two pieces of memory, so that a write behind the end of one is seen. Odd, so that pieces begin anywhere.
GAP = 61
PORT = 20049


class Arena(Memory):
    """What chunks are made of. A model of it says what has to be in it."""

    def __init__(self, domain: int) -> None:
        super().__init__(domain, ARENA_BYTES, verbs.LOCAL_WRITE | verbs.REMOTE_WRITE | verbs.REMOTE_READ | verbs.BIND)
        self._model = bytearray()
        self._used = 0
        self.clear()

    def clear(self) -> None:
        """Take all pieces back."""
        self._model = bytearray([CANARY]) * ARENA_BYTES
        self.bytes[:] = bytes(self._model)
        self._used = GAP

    def take(self, length: int, key: int | None = None) -> Segment:
        """A piece of memory, by its own or another key for the same place."""
        start = self._used
        self._used += length + GAP
        require(self._used <= ARENA_BYTES, "the arena is too small for the case")
        return Segment(self.region.contents.remote_key if key is None else key, length, self.address + start)

    def holding(self, data: bytes, lengths: list[int] | None = None) -> list[Segment]:
        """Pieces that hold data, of these lengths and the rest."""
        lengths = list(lengths or [])
        lengths.append(len(data) - sum(lengths))
        segments = [self.take(length) for length in lengths]
        self.put(segments, data)
        for segment in segments:
            start = segment.offset - self.address
            self.bytes[start:start + segment.length] = self._model[start:start + segment.length]
        return segments

    def put(self, segments: Sequence[Segment], data: bytes) -> None:
        """Say that data has to be in these pieces, from their beginning on and in this order."""
        for segment in segments:
            start = segment.offset - self.address
            part, data = data[:segment.length], data[segment.length:]
            self._model[start:start + len(part)] = part
        require(not data, "the case puts more into a chunk than it holds")

    def check(self) -> None:
        """Fail unless what has to be there is there, and nothing else was touched."""
        end = min(self._used + 65536, ARENA_BYTES)
        same("memory of the requester", self.bytes[:end], bytes(self._model[:end]))

    def another_key(self) -> "verbs.Region":
        """The whole of it registered once more."""
        return verbs.register(self._domain, self.address, ARENA_BYTES, self._access)


class Adapter:
    """The device that leads to the server."""

    def __init__(self, address: str) -> None:
        self.address = address
        # Not to be closed: the device is open as long as an id is bound to it.
        self._events = Events()
        self._events.resolve(address, PORT)
        self.context = self._events.id.contents.context
        self.calls = verbs.Calls(self.context)
        self.domain = verbs.alloc_domain(self.context)
        self.arena = Arena(self.domain)
        self.name = os.listdir("/sys/class/infiniband")[0].rstrip("0123456789")
