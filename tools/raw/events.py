"""An id of rdma_cm, and what happens to it."""

import ctypes
import select
import struct

import verbs
from failure import Failure, require

# Nobody waits in vain for so long: an answer may take as long as a busy machine needs.
SECONDS = 60
# Connections that may wait to be accepted.
BACKLOG = 10
# RDMA Reads that may be under way, each way.
DEPTH = 16


class Events:
    """An id with a channel of its own."""

    def __init__(self, requested: "ctypes._Pointer[verbs.Id] | None" = None) -> None:
        """A new id, or that of a connection that is asked for."""
        self._channel = verbs.create_event_channel()
        self.id = requested or verbs.IdPointer()
        if requested:
            verbs.migrate_id(self.id, self._channel)
        else:
            verbs.create_id(self._channel, ctypes.byref(self.id), None, verbs.PORT_SPACE_TCP)

    @property
    def descriptor(self) -> int:
        """Readable when there is an event."""
        return self._channel.contents.descriptor

    def next(self, seconds: float) -> tuple[int, int, bytes] | None:
        """Kind, status and private data of the next event; None when there is none for so long."""
        found = self._take(seconds)
        return found and found[1:]

    def next_request(self) -> tuple["ctypes._Pointer[verbs.Id]", bytes] | None:
        """The id of a connection that is asked for, and what the peer says of itself; None if the event is another."""
        found = self._take(SECONDS)
        if found is None or found[1] != verbs.CONNECT_REQUEST:
            return None
        return ctypes.cast(found[0], verbs.IdPointer), found[3]

    def expect(self, wanted: int) -> bytes:
        """Wait for an event of a kind; its private data."""
        event = self.next(SECONDS)
        if event is None:
            raise Failure(f"no event {wanted} of rdma_cm")
        if event[0] != wanted:
            raise Failure(f"event {event[0]} of rdma_cm with status {event[1]}, expected {wanted}")
        return event[2]

    def resolve(self, address: str, port: int) -> None:
        """Find the device and the way to a server."""
        verbs.resolve_address(self.id, None, _socket_address(address, port), 1000 * SECONDS)
        self.expect(verbs.ADDRESS_RESOLVED)
        verbs.resolve_route(self.id, 1000 * SECONDS)
        self.expect(verbs.ROUTE_RESOLVED)

    def connect(self, private: bytes, not_ready_retries: int = 7, depth: int = DEPTH) -> bytes:
        """Connect, and say that of oneself; what the server says of itself. So many RDMA Reads may be begun."""
        verbs.connect(self.id, ctypes.byref(_parameters(private, not_ready_retries, depth)))
        return self.expect(verbs.ESTABLISHED)

    def accept(self, private: bytes) -> None:
        """Let the peer have its connection."""
        verbs.accept(self.id, ctypes.byref(_parameters(private)))

    def reject(self) -> None:
        """Let the peer have none."""
        verbs.reject(self.id, None, 0)

    def listen(self, address: str, port: int) -> None:
        """Wait for connections there."""
        verbs.bind_address(self.id, _socket_address(address, port))
        verbs.listen(self.id, BACKLOG)

    def close(self) -> None:
        verbs.destroy_id(self.id)
        verbs.destroy_event_channel(self._channel)

    def _take(self, seconds: float) -> tuple[int, int, int, bytes] | None:
        """Id, kind, status and private data of the next event."""
        if not select.select([self.descriptor], [], [], seconds)[0]:
            return None
        event = ctypes.POINTER(verbs.Event)()
        verbs.get_event(self._channel, ctypes.byref(event))
        parameters = event.contents.parameters
        private = ctypes.string_at(parameters.private, parameters.private_length) if parameters.private else b""
        found = event.contents.id, event.contents.kind, event.contents.status, private
        verbs.ack_event(event)
        return found


def _parameters(private: bytes, not_ready_retries: int = 7, depth: int = DEPTH) -> verbs.ConnectionParameters:
    parameters = verbs.ConnectionParameters(private_length=len(private), responder_resources=DEPTH, initiator_depth=depth,
                                            retries=7, not_ready_retries=not_ready_retries)
    # The parameters hold only the address.
    parameters.anchor = ctypes.create_string_buffer(private, len(private))
    parameters.private = ctypes.addressof(parameters.anchor) if private else None
    return parameters


def _socket_address(address: str, port: int) -> bytes:
    """struct sockaddr_in"""
    return struct.pack("=H", 2) + struct.pack(">H4s8x", port, bytes(map(int, address.split("."))))
