"""An RPC Call and an RPC Reply with what the transport moves beside them, and the messages that convey them."""

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import protocol
from message import Chunk, Message, Prefix, Segment

# Of NFS (RFC 5531, section 9): a Call with no credentials, and a Reply that succeeds.
PROGRAM, NFS_VERSION = 100003, 4


@dataclass(frozen=True)
class Call:
    """A Call. An empty Call chunk has its Payload stream go inline."""

    xid: int
    payload: bytes
    call_chunk: Sequence[Segment] = ()
    # Each with its Position.
    reads: Sequence[tuple[int, Segment]] = ()
    writes: Sequence[Chunk] = ()
    reply: Chunk | None = None
    inv_handle: int = 0

    def messages(self, size: int) -> list[Message]:
        """The messages of at most so many octets that convey it; their credits are still to be told."""
        body: dict[str, Any] = {"rdma_inv_handle": self.inv_handle, "rdma_reads": _read_list(self.reads),
                                "rdma_provisional_writes": _write_list(self.writes),
                                "rdma_provisional_reply": None if self.reply is None else {"rdma_target": self.reply}}
        if self.call_chunk:
            body["rdma_call"] = _read_list([(0, segment) for segment in self.call_chunk])
            return [Message(_prefix(self.xid, protocol.CALL_EXTERNAL), body)]
        last = Message(_prefix(self.xid, protocol.CALL_INLINE), body, self.payload)
        return list(_fragments(last, protocol.CALL_MIDDLE, size))


@dataclass(frozen=True)
class Reply:
    """A Reply. With a Reply chunk its Payload stream was written there."""

    xid: int
    payload: bytes
    writes: Sequence[Chunk] = ()
    reply: Chunk | None = None
    # What the last of its Sends invalidates.
    invalidates: int | None = None

    def messages(self, size: int) -> list[Message]:
        """The messages of at most so many octets that convey it; their credits are still to be told."""
        body: dict[str, Any] = {"rdma_writes": _write_list(self.writes)}
        if self.reply is not None:
            body["rdma_reply"] = {"rdma_target": self.reply}
            return [Message(_prefix(self.xid, protocol.REPLY_EXTERNAL), body)]
        last = Message(_prefix(self.xid, protocol.REPLY_INLINE), body, self.payload)
        return list(_fragments(last, protocol.REPLY_MIDDLE, size))


def segment(handle: int, length: int, offset: int) -> Segment:
    """A segment as the codec has it."""
    return {"rdma_handle": handle, "rdma_length": length, "rdma_offset": offset}


def filled(chunk: Chunk, length: int) -> list[Segment]:
    """A Write chunk or Reply chunk as it comes back with so many octets in it (the draft, section 4.5.2.1)."""
    returned = list[Segment]()
    for each in chunk:
        part = min(each["rdma_length"], length)
        returned.append({**each, "rdma_length": part})
        length -= part
    return returned


def call_payload(xid: int, procedure: int = 0, arguments: bytes = b"") -> bytes:
    """The octets of an RPC Call."""
    return struct.pack(">10I", xid, 0, 2, PROGRAM, NFS_VERSION, procedure, 0, 0, 0, 0) + arguments


def reply_payload(xid: int, results: bytes = b"") -> bytes:
    """The octets of an RPC Reply."""
    return struct.pack(">6I", xid, 1, 0, 0, 0, 0) + results


def _fragments(last: Message, middle: int, size: int) -> Iterator[Message]:
    """The message as it is, or its Payload stream cut into what fits."""
    payload = last.payload
    if len(last.header) + len(payload) > size:
        start = Message(replace(last.prefix, kind=middle), {"rdma_remaining": 0})
        most, room = size - len(start.header), size - len(last.header)
        while len(payload) > room:
            # The last takes some, and at least its first word.
            part = min(most, len(payload) - 4)
            yield replace(start, body={"rdma_remaining": len(payload) - part}, payload=payload[:part])
            payload = payload[part:]
    yield replace(last, payload=payload)


def _prefix(xid: int, kind: int) -> Prefix:
    return Prefix(xid, protocol.VERSION, 0, kind)


def _read_list(reads: Sequence[tuple[int, Segment]]) -> list[dict[str, Any]]:
    return [{"rdma_position": position, "rdma_target": target} for position, target in reads]


def _write_list(writes: Sequence[Chunk]) -> list[dict[str, Any]]:
    return [{"rdma_target": chunk} for chunk in writes]
