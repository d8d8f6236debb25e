"""One connection of a client, whose Calls an NFS server on TCP executes."""

import struct
import time
from collections.abc import Callable

import verbs
from endpoint import Endpoint
from events import Events
from failure import Failure, require
from header import (RDMA_DONE, RDMA_ERROR, RDMA_MSG, RDMA_NOMSG, Chunk, Header, chunk_error, decode, filled, is_whole,
                    receive_size, version_error)
from memory import Memory
from records import Records
from rpc import CALL, REPLY, padding

LOOK_SECONDS = 0.5
# What an end takes that says nothing of itself (RFC 8166, section 3.3.3).
LEAST_BYTES = 1024
ANSWERS_NOTHING = "an RDMA_ERROR that answers no Call of ours"


class Proxy(Endpoint):
    """The server's end."""

    def __init__(self, events: Events, private: bytes, behaviour, server: tuple[str, int]) -> None:
        context = events.id.contents.context
        super().__init__(events, verbs.alloc_domain(context), verbs.Calls(context))
        # Bytes of a message that the client can receive.
        self.threshold = receive_size(private)
        self._behaviour = behaviour
        self._server = Records(server)
        # The headers of the Calls that are being executed.
        self._offers: dict[int, Header] = {}
        # How many there may be: one until there was an answer (RFC 8166, section 3.3.3).
        self._grant = 1
        # By XID, what Calls of our own are called that the client has not answered.
        self._own: dict[int, str] = {}

    def run(self) -> None:
        """Until the connection ends."""
        self._behaviour.begin(self)
        while True:
            self.take()
            if self._await_notice(LOOK_SECONDS, self._server.fileno()):
                self._answered(self._server.receive())

    def take(self) -> None:
        """Do what is to be done with what has arrived."""
        while self._complete_next():
            while self._arrived:
                self._called(self._arrived.pop(0).message)

    def close(self) -> None:
        super().close()
        self._server.close()

    @property
    def unanswered(self) -> int:
        """How many Calls of our own the client has not answered yet."""
        return len(self._own)

    @property
    def outstanding(self) -> list[Header]:
        """The headers of the Calls that have no Reply yet."""
        return list(self._offers.values())

    def await_answers(self, seconds: float) -> bool:
        """Wait until the client has answered all Calls of our own; whether it has."""
        return self._await(lambda: not self._own, seconds)

    def await_calls(self, count: int, seconds: float) -> bool:
        """Wait until the client has so many Calls outstanding; whether it has."""
        return self._await(lambda: len(self._offers) >= count, seconds)

    def _await(self, happened: Callable[[], bool], seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        self.take()
        while not happened() and (left := deadline - time.monotonic()) > 0:
            self._await_notice(min(left, LOOK_SECONDS))
            self.take()
        return happened()

    def readable(self, data: bytes) -> Memory:
        """Memory with these data that the client may read."""
        memory = Memory(self._domain, len(data), verbs.LOCAL_WRITE | verbs.REMOTE_READ)
        memory.bytes[:] = data
        return memory

    def hang_up(self) -> None:
        """End the connection as a server does."""
        verbs.disconnect(self._events.id)

    def send_header(self, header: Header, rest: bytes = b"") -> None:
        """A message with this header."""
        self.send(header.encode() + rest)

    def call_back(self, calls: list[tuple[str, Header, bytes]]) -> None:
        """Send Calls of our own in one go, each with a name. What becomes of them is printed; it is no business of the
        NFS server's."""
        for name, header, _ in calls:
            self._own[header.xid] = name
            print(f"called {name}", flush=True)
        self.send_at_once([header.encode() + message for _, header, message in calls])

    def call_badly(self, name: str, message: bytes) -> None:
        """Send what can only be a Call of our own, and cannot be served."""
        self._own[int.from_bytes(message[:4])] = name
        self.send(message)

    def place(self, chunk: Chunk, data: bytes) -> None:
        """Write data into a chunk, from its beginning on."""
        for segment in chunk:
            part, data = data[:segment.length], data[segment.length:]
            if part:
                self.write(part, segment.handle, segment.offset)

    def reply(self, offer: Header, message: bytes) -> None:
        """Send a Reply as RFC 8166 wants it: inline, or in the Reply chunk. Nothing goes into Write chunks."""
        unused = [filled(chunk, 0) for chunk in offer.writes]
        credits = self._behaviour.credits
        inline = Header(offer.xid, RDMA_MSG, credits, writes=unused, reply=offer.reply and filled(offer.reply, 0))
        if len(inline.encode()) + len(message) <= self.threshold:
            self.send_header(inline, message)
        elif offer.reply and len(message) <= sum(segment.length for segment in offer.reply):
            self.place(offer.reply, message)
            self.send_header(Header(offer.xid, RDMA_NOMSG, credits, writes=unused,
                                    reply=filled(offer.reply, len(message))))
        else:
            self.refuse(offer)

    def refuse(self, offer: Header) -> None:
        """Send ERR_CHUNK in the place of a Reply, and say so: somebody counts."""
        print("refused", flush=True)
        self.send(chunk_error(offer.xid, self._behaviour.credits))

    def refuse_version(self, offer: Header) -> None:
        """Send ERR_VERS in the place of a Reply, though the Call is of the only version there is, and say so."""
        print("refused", flush=True)
        self.send(version_error(offer.xid, 1, self._behaviour.credits))

    def _called(self, message: bytes) -> None:
        """Pass a Call on, or the Reply to one of the server."""
        xid, _, credits, kind = struct.unpack_from(">4I", message)
        # In neither direction may a responder grant nothing (RFC 8166, section 3.3.1).
        require(credits > 0, "a message without credits")
        if kind == RDMA_DONE:
            self._behaviour.done(self, xid)
            return
        if kind == RDMA_ERROR:
            # A requester sends none (section 4.2.4).
            require(self._told(xid, f"refused {struct.unpack_from('>I', message, 16)[0]}"), ANSWERS_NOTHING)
            return
        header, stream = decode(message)
        for position, chunk in _chunks(header):
            data = b"".join(self.read(segment.handle, segment.offset, segment.length) for segment in chunk)
            stream = stream[:position] + data + padding(len(data)) + stream[position:]
        is_reply = struct.unpack_from(">I", stream, 4)[0] == REPLY
        # A client uses no chunks for them, and a Read list is empty in any Reply (section 4.3.1).
        require(not is_reply or not (header.reads or header.writes or header.reply), "a Reply with chunks")
        if is_reply and self._told(xid, "answered"):
            return
        if not is_reply and not self._behaviour.takes(self, header, stream):
            return
        if not is_reply:
            self._offers[header.xid] = header
            require(len(self._offers) <= self._grant, f"{len(self._offers)} Calls where {self._grant} are granted")
            require(is_whole(self._behaviour.private) or len(message) <= LEAST_BYTES, f"a message of {len(message)} bytes")
        self._server.send(stream)

    def _answered(self, message: bytes) -> None:
        """Pass a Reply back, or a Call of the server."""
        # Both directions may use the same XID (RFC 8167, section 2.4.1).
        xid, direction = struct.unpack_from(">2I", message)
        if direction == CALL:
            self.send_header(Header(xid, RDMA_MSG, self._behaviour.credits), message)
            return
        offer = self._offers.pop(xid, None)
        if offer is None:
            raise Failure(f"the NFS server answers {xid:#010x}, which is no Call")
        self._grant = max(1, min(self._behaviour.credits, offer.credits))
        self._behaviour.reply(self, offer, message)

    def _told(self, xid: int, what: str) -> bool:
        """Print what became of a Call of our own; False if it is none."""
        name = self._own.pop(xid, None)
        if name is not None:
            print(f"{what} {name}", flush=True)
        return name is not None


def _chunks(header: Header) -> list[tuple[int, Chunk]]:
    """The Read chunks in the order of their Positions, each of which counts what is in front of it."""
    positions = sorted({position for position, _ in header.reads})
    return [(position, [segment for where, segment in header.reads if where == position]) for position in positions]
