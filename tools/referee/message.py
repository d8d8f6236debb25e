"""A message of RPC-over-RDMA version 2 as a value, and its octets."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import protocol
from xdr import UNSIGNED

FIRST_WORD = "rdma_rpc_first_word"
_PREFIX = protocol.SCHEMA.codec("rpcrdma2_hdr_prefix")
_CODECS = {kind: protocol.SCHEMA.codec(name) for kind, name in protocol.HEADERS.items() if name is not None}
_CARRIERS = frozenset(kind for kind, name in protocol.HEADERS.items()
                      if name is not None and FIRST_WORD in protocol.SCHEMA.fields(name))

# As xdr.py decodes them.
Segment = Mapping[str, int]
ReadSegment = Mapping[str, Any]
Chunk = Sequence[Segment]


@dataclass(frozen=True)
class Prefix:
    """What begins each message (the draft, section 6.4)."""

    xid: int
    version: int
    credits: int
    kind: int

    @classmethod
    def decode(cls, octets: bytes) -> "Prefix":
        """The prefix of a message that is long enough for it."""
        start = _PREFIX.decode(octets, 0)[0]["rdma_start"]
        return cls(start["rdma_xid"], start["rdma_vers"], start["rdma_credit"], start["rdma_htype"])

    def encode(self) -> bytes:
        """The four words."""
        out = bytearray()
        _PREFIX.encode({"rdma_start": {"rdma_xid": self.xid, "rdma_vers": self.version, "rdma_credit": self.credits,
                                       "rdma_htype": self.kind}}, out)
        return bytes(out)


@dataclass(frozen=True)
class Message:
    """A message with a known header type."""

    prefix: Prefix
    # What follows the prefix, without the first word of the Payload stream.
    body: Mapping[str, Any] = field(default_factory=dict)
    payload: bytes = b""

    @classmethod
    def decode(cls, octets: bytes) -> "Message":
        """A message, or xdr.Malformed. What follows a header without a Payload stream is not looked at."""
        prefix = Prefix.decode(octets)
        codec = _CODECS.get(prefix.kind)
        if codec is None:
            return cls(prefix)
        body, end = codec.decode(octets, protocol.PREFIX)
        if prefix.kind not in _CARRIERS:
            return cls(prefix, body)
        del body[FIRST_WORD]
        return cls(prefix, body, octets[end - 4:])

    @property
    def header(self) -> bytes:
        """The octets of the Transport stream, up to the Payload stream."""
        out = bytearray(self.prefix.encode())
        codec = _CODECS.get(self.prefix.kind)
        if codec is None:
            return bytes(out)
        if self.prefix.kind not in _CARRIERS:
            codec.encode(self.body, out)
            return bytes(out)
        codec.encode({**self.body, FIRST_WORD: 0}, out)
        return bytes(out[:-4])

    def encode(self) -> bytes:
        """All octets."""
        return self.header + self.payload

    @property
    def first_word(self) -> int:
        """The first word of the Payload stream: the XID, if a message begins here."""
        return UNSIGNED.decode(self.payload, 0)[0]

    @property
    def call_chunk(self) -> Sequence[ReadSegment]:
        """The segments of the Call chunk."""
        return self.body.get("rdma_call", ())

    @property
    def reads(self) -> Sequence[ReadSegment]:
        """The segments of the Read list."""
        return self.body.get("rdma_reads", ())

    @property
    def writes(self) -> Sequence[Chunk]:
        """The Write chunks, provisional or returned."""
        return [chunk["rdma_target"] for chunk in self.body.get("rdma_provisional_writes", self.body.get("rdma_writes", ()))]

    @property
    def reply_chunk(self) -> Chunk | None:
        """The Reply chunk, provisional or returned."""
        chunk = self.body.get("rdma_provisional_reply", self.body.get("rdma_reply"))
        return None if chunk is None else chunk["rdma_target"]

    def read_chunks(self) -> Iterator[tuple[int, list[Segment]]]:
        """Each Read chunk of the Read list with its Position: neighbours of the same Position are one chunk."""
        position, segments = 0, list[Segment]()
        for entry in self.reads:
            if segments and entry["rdma_position"] != position:
                yield position, segments
                segments = []
            position = entry["rdma_position"]
            segments.append(entry["rdma_target"])
        if segments:
            yield position, segments

    def segments(self) -> Iterator[Segment]:
        """All segments of the header."""
        for entry in (*self.call_chunk, *self.reads):
            yield entry["rdma_target"]
        for chunk in self.writes:
            yield from chunk
        yield from self.reply_chunk or ()

    @property
    def properties(self) -> Sequence[tuple[int, bytes]]:
        """The transport properties: which, and the octets of the value."""
        return [(each["rdma_which"], each["rdma_data"]) for each in self.body.get("rdma_props", ())]

    @property
    def error(self) -> tuple[int, list[int]]:
        """The code of an error and the words of its arm."""
        code, *arm = self.body.values()
        words = [word for each in arm for word in (each.values() if isinstance(each, dict) else [each])]
        return code, words


def error(prefix: Prefix, credits: int, code: int, *arguments: int) -> Message:
    """The answer to a message (the draft, section 7): its XID and its version come back."""
    out = bytearray()
    for word in (code, *arguments):
        UNSIGNED.encode(word, out)
    body, end = _CODECS[protocol.ERROR].decode(bytes(out), 0)
    if end != len(out):
        raise ValueError(f"error {code} has other arguments than {arguments}")
    return Message(Prefix(prefix.xid, prefix.version, credits, protocol.ERROR), body)
