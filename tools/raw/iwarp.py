"""An iWARP end by hand: MPA (RFC 5044, 6581), DDP (RFC 5041) and RDMAP (RFC 5040) on a socket of TCP.

No device has a process send what it should not, or leave unread what has come. Memory there is none here: what the peer
writes is thrown away. Neither markers nor checksums are used, as siw wants it.
"""

import socket
import struct
import time

from endpoint import Lost, Received
from events import DEPTH, SECONDS
from failure import Failure, require

# What begins a connection: key, flags with the revision, and the length of what follows.
START = struct.Struct(">16sHH")
REQUEST, REPLY = b"MPA ID Req Frame", b"MPA ID Rep Frame"
# Markers, checksums, or a rejection; and that in front of the private data are the RDMA Reads that an end takes and begins.
UNWANTED, ENHANCED, REVISION = 0xe000, 0x1000, 2
READS = struct.Struct(">HH")
# Of DDP: to a tag, the last segment of a message; the versions of DDP and RDMAP.
TAGGED, LAST, VERSIONS = 0x8000, 0x4000, 0x0140
WRITE, READ_REQUEST, READ_RESPONSE, SEND, SEND_INVALIDATING, SEND_SOLICITED, SEND_SOLICITED_INVALIDATING, TERMINATE = range(8)
INVALIDATING = (SEND_INVALIDATING, SEND_SOLICITED_INVALIDATING)
SENDS = (SEND, SEND_SOLICITED, *INVALIDATING)
# Of a segment to a queue: a key or nothing, the queue, the number of the message there, the place in it. To a tag: key, place.
TO_QUEUE, TO_TAG = struct.Struct(">IIII"), struct.Struct(">IQ")
SEND_QUEUE, READ_QUEUE = 0, 1
# Of an RDMA Read: where its data go, how many, where they are. Nobody has registered the former.
READ, SINK = struct.Struct(">IQIIQ"), (0x5eed00, 0)
CHECKSUM = bytes(4)
# Of one segment; of what TCP takes here that nobody reads, and of its segments: what a peer's TCP takes goes by the latter.
SEGMENT_BYTES, WINDOW_BYTES, TCP_SEGMENT_BYTES = 8192, 65536, 1400


class Iwarp:
    """One end of a connection. It reads only while somebody waits for something."""

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected
        # What the peer says of itself.
        self.private = b""
        # Messages sent and RDMA Reads begun.
        self._sent = self._begun = 0
        self._arrived: list[Received] = []
        # Of what has come in part: a message, and the data of RDMA Reads; and how many of these have come.
        self._message, self._data, self._ended = b"", b"", 0

    def close(self) -> None:
        self._socket.close()

    def send(self, message: bytes, invalidates: int | None = None) -> None:
        """Send a message, which makes a key of the peer's invalid."""
        self._sent += 1
        opcode = SEND if invalidates is None else SEND_INVALIDATING
        self._put(LAST | opcode, TO_QUEUE.pack(invalidates or 0, SEND_QUEUE, self._sent, 0) + message)

    def receive(self, seconds: float = SECONDS) -> Received:
        """The next message of the peer."""
        deadline = time.monotonic() + seconds
        while not self._arrived:
            self._take(deadline)
        return self._arrived.pop(0)

    def write(self, data: bytes, key: int, address: int) -> None:
        """Put data into the peer's memory; it does not say whether it has let them in."""
        for start in range(0, len(data), SEGMENT_BYTES):
            part, last = data[start:start + SEGMENT_BYTES], start + SEGMENT_BYTES >= len(data)
            self._put(TAGGED | (LAST if last else 0) | WRITE, TO_TAG.pack(key, address + start) + part)

    def read(self, key: int, address: int, length: int) -> bytes:
        """Data from the peer's memory."""
        self.begin_read(key, address, length)
        return self.end_reads()

    def begin_read(self, key: int, address: int, length: int) -> None:
        """Ask for data from the peer's memory."""
        self._begun += 1
        self._put(LAST | READ_REQUEST, TO_QUEUE.pack(0, READ_QUEUE, self._begun, 0) + READ.pack(*SINK, length, key, address))

    def end_reads(self) -> bytes:
        """All data that were asked for."""
        deadline = time.monotonic() + SECONDS
        while self._ended < self._begun:
            self._take(deadline)
        data, self._data = self._data, b""
        return data

    def start(self, key: bytes, private: bytes) -> None:
        """Send what begins a connection."""
        private = READS.pack(DEPTH, DEPTH) + private
        self._socket.sendall(START.pack(key, ENHANCED | REVISION, len(private)) + private)

    def await_start(self, key: bytes) -> None:
        """Receive what begins a connection."""
        found, flags, length = START.unpack(self._exactly(START.size))
        wanted = ENHANCED | REVISION
        require(found == key and flags & (UNWANTED | wanted) == wanted, f"MPA begins with {found!r}, {flags:#06x}")
        self.private = self._exactly(length)[READS.size:]

    def _put(self, control: int, segment: bytes) -> None:
        """Send one segment, in a frame of MPA (RFC 5044, section 4.1)."""
        frame = struct.pack(">HH", 2 + len(segment), VERSIONS | control) + segment
        try:
            self._socket.sendall(frame + bytes(-len(frame) % 4) + CHECKSUM)
        except ConnectionError as error:
            raise Lost(f"the connection is lost: {error}") from None

    def _take(self, deadline: float) -> None:
        """Do what is to be done with the next segment."""
        left = deadline - time.monotonic()
        require(left > 0, "no answer")
        self._socket.settimeout(left)
        length, control = struct.unpack(">HH", self._exactly(4))
        segment = self._exactly(length - 2 + -(2 + length) % 4 + len(CHECKSUM))[:length - 2]
        opcode, last = control & 0xf, control & LAST
        if opcode in SENDS:
            key, *_ = TO_QUEUE.unpack_from(segment)
            self._message += segment[TO_QUEUE.size:]
            if last:
                self._arrived.append(Received(self._message, key if opcode in INVALIDATING else None))
                self._message = b""
        elif opcode == READ_RESPONSE:
            self._data += segment[TO_TAG.size:]
            self._ended += bool(last)
        elif opcode == TERMINATE:
            raise Lost("the peer terminates the connection")
        elif opcode != WRITE:
            raise Failure(f"a segment with opcode {opcode}")

    def _exactly(self, length: int) -> bytes:
        data = bytearray()
        while len(data) < length:
            try:
                part = self._socket.recv(length - len(data))
            except TimeoutError:
                raise Failure("no answer") from None
            except ConnectionError as error:
                raise Lost(f"the connection is lost: {error}") from None
            if not part:
                raise Lost("the connection is lost")
            data += part
        return bytes(data)


def connected(address: str, port: int, private: bytes) -> Iwarp:
    """A connection to a server, and what one says of oneself."""
    end = Iwarp(_socket())
    end._socket.connect((address, port))
    end.start(REQUEST, private)
    end.await_start(REPLY)
    return end


def listening(address: str, port: int) -> socket.socket:
    """Where connections are awaited."""
    listener = _socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.settimeout(None)
    listener.bind((address, port))
    listener.listen()
    return listener


def accepted(connection: socket.socket, private: bytes) -> Iwarp:
    """A connection that a client has asked for."""
    end = Iwarp(connection)
    end.await_start(REQUEST)
    end.start(REPLY, private)
    return end


def _socket() -> socket.socket:
    """It takes little of what is sent while nobody reads, and has the peer keep little of it."""
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, WINDOW_BYTES)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, TCP_SEGMENT_BYTES)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    made.settimeout(SECONDS)
    return made
