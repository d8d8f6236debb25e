"""The transport header of RPC-over-RDMA version 1 (RFC 8166, section 4), written from the RFC and not from the module.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace

RDMA_MSG, RDMA_NOMSG, RDMA_MSGP, RDMA_DONE, RDMA_ERROR = range(5)
ERR_VERS, ERR_CHUNK = 1, 2
CREDITS_WANTED = 32


@dataclass(frozen=True)
class Segment:
    """A plain segment (RFC 8166, section 3.4.3)."""

    handle: int
    length: int
    offset: int


Chunk = Sequence[Segment]


@dataclass(frozen=True)
class Header:
    """What begins RDMA_MSG and RDMA_NOMSG."""

    xid: int
    procedure: int = RDMA_MSG
    credits: int = CREDITS_WANTED
    version: int = 1
    # Each with its Position.
    reads: Sequence[tuple[int, Segment]] = ()
    writes: Sequence[Chunk] = ()
    reply: Chunk | None = None

    def encode(self) -> bytes:
        parts = [words(self.xid, self.version, self.credits, self.procedure)]
        for position, segment in self.reads:
            parts += [words(1, position), _segment(segment)]
        parts.append(words(0))
        for chunk in self.writes:
            parts += [words(1), _array(chunk)]
        parts.append(words(0))
        parts.append(words(0) if self.reply is None else words(1) + _array(self.reply))
        return b"".join(parts)


def decode(message: bytes) -> tuple[Header, bytes]:
    """A header without mistakes, of RDMA_MSG or RDMA_NOMSG, and what is behind it."""
    at = 0

    def take(count: int) -> tuple[int, ...]:
        nonlocal at
        values = struct.unpack_from(f">{count}I", message, at)
        at += 4 * count
        return values

    def segment() -> Segment:
        nonlocal at
        handle, length, offset = struct.unpack_from(">IIQ", message, at)
        at += 16
        return Segment(handle, length, offset)

    def chunk() -> list[Segment]:
        return [segment() for _ in range(take(1)[0])]

    xid, version, credits, procedure = take(4)
    reads, writes = [], []
    while take(1)[0]:
        position, = take(1)
        reads.append((position, segment()))
    while take(1)[0]:
        writes.append(chunk())
    reply = chunk() if take(1)[0] else None
    return Header(xid, procedure, credits, version, reads, writes, reply), message[at:]


def words(*values: int) -> bytes:
    """Unsigned words of 32 bits."""
    return struct.pack(f">{len(values)}I", *values)


def chunk_error(xid: int, credits: int) -> bytes:
    """RFC 8166, section 4.5.2."""
    return words(xid, 1, credits, RDMA_ERROR, ERR_CHUNK)


def version_error(xid: int, version: int, credits: int) -> bytes:
    """RFC 8166, section 4.5.1: only version 1 is spoken."""
    return words(xid, version, credits, RDMA_ERROR, ERR_VERS, 1, 1)


def filled(chunk: Chunk, length: int) -> list[Segment]:
    """A Write chunk or Reply chunk as it comes back with so many bytes in it (RFC 8166, section 3.4.6)."""
    returned = []
    for segment in chunk:
        part = min(segment.length, length)
        returned.append(replace(segment, length=part))
        length -= part
    return returned


def private_data(invalidate: bool = False, send: int = 8192, receive: int = 8192) -> bytes:
    """RFC 8797, section 4."""
    return struct.pack(">IBBBB", 0xf6ab0e18, 1, invalidate, send // 1024 - 1, receive // 1024 - 1)


def pulls(may_pull: bool = False, may_provide: bool = False) -> bytes:
    """What follows the private data of who pulls Replies, or provides them (Documentation/reliable-reply.rst)."""
    return struct.pack(">IBBxx", 0x72a1c35e, 1, may_pull + 2 * may_provide)


def done(xid: int) -> bytes:
    """RDMA_DONE (RFC 8166, section 4.1.2)."""
    return words(xid, 1, CREDITS_WANTED, RDMA_DONE)


def is_whole(private: bytes) -> bool:
    """Whether private data say all that they should."""
    return len(private) >= len(private_data())


def receive_size(private: bytes) -> int:
    """How long a message the peer can receive that says this of itself (RFC 8797, section 4)."""
    magic, version, _, _, receive = struct.unpack_from(">IBBBB", private.ljust(8, b"\0"))
    return 1024 * (receive + 1) if (magic, version) == (0xf6ab0e18, 1) else 1024


def _segment(segment: Segment) -> bytes:
    return struct.pack(">IIQ", segment.handle, segment.length, segment.offset)


def _array(chunk: Chunk) -> bytes:
    return words(len(chunk)) + b"".join(map(_segment, chunk))
