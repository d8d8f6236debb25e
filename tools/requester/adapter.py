"""The RDMA device, and memory of this process that the server may reach."""

import ctypes
import mmap
import os
import select
import struct

import verbs
from failure import Failure, require, same
from header import Segment

ARENA_BYTES = 2 << 20
CANARY = 0xA5
# Between two pieces of memory, so that a write behind the end of one is seen. Odd, so that pieces begin anywhere.
GAP = 61
SECONDS = 10
PORT = 20049


class Events:
    """An id of rdma_cm, and its events."""

    def __init__(self) -> None:
        self._channel = verbs.create_event_channel()
        self.id = ctypes.POINTER(verbs.Id)()
        verbs.create_id(self._channel, ctypes.byref(self.id), None, verbs.PORT_SPACE_TCP)

    def next(self, seconds: float) -> tuple[int, int, bytes] | None:
        """Kind, status and private data of the next event; None when there is none for so long."""
        if not select.select([self._channel.contents.descriptor], [], [], seconds)[0]:
            return None
        event = ctypes.POINTER(verbs.Event)()
        verbs.get_event(self._channel, ctypes.byref(event))
        parameters = event.contents.parameters
        private = ctypes.string_at(parameters.private, parameters.private_length) if parameters.private else b""
        found = event.contents.kind, event.contents.status, private
        verbs.ack_event(event)
        return found

    def expect(self, wanted: int) -> bytes:
        """Wait for an event of a kind; its private data."""
        event = self.next(SECONDS)
        require(event is not None, f"no event {wanted} of rdma_cm")
        if event[0] != wanted:
            raise Failure(f"event {event[0]} of rdma_cm with status {event[1]}, expected {wanted}")
        return event[2]

    def resolve(self, address: str) -> None:
        """Find the device and the way to a server."""
        there = struct.pack("=H", 2) + struct.pack(">H4s8x", PORT, bytes(map(int, address.split("."))))
        verbs.resolve_address(self.id, None, there, 1000 * SECONDS)
        self.expect(verbs.ADDRESS_RESOLVED)
        verbs.resolve_route(self.id, 1000 * SECONDS)
        self.expect(verbs.ROUTE_RESOLVED)

    def close(self) -> None:
        verbs.destroy_id(self.id)
        verbs.destroy_event_channel(self._channel)


class Memory:
    """A mapping, registered."""

    def __init__(self, domain: int, size: int, access: int) -> None:
        self.bytes = mmap.mmap(-1, size)
        self._anchor = ctypes.c_char.from_buffer(self.bytes)
        self.address = ctypes.addressof(self._anchor)
        self._domain, self._access = domain, access
        self.region = verbs.register(domain, self.address, size, access)

    def close(self) -> None:
        verbs.deregister(self.region)
        del self._anchor
        self.bytes.close()


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

    def put(self, segments: list[Segment], data: bytes) -> None:
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
        self._events.resolve(address)
        self.context = self._events.id.contents.context
        self.calls = verbs.Calls(self.context)
        self.domain = verbs.alloc_domain(self.context)
        self.arena = Arena(self.domain)
        self.name = os.listdir("/sys/class/infiniband")[0].rstrip("0123456789")
