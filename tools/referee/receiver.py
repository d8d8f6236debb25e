"""What a receiver of RPC-over-RDMA version 2 makes of the messages of one connection (the draft, section 7).

A message is looked at in the order of section 7: prefix, version, header type, place among other messages, XDR. Of what is
wrong then any may be answered, since the draft has no order for it. A message that is refused or discarded changes nothing
of what is under way, except that a fragment that is refused or discarded ends its own sequence, and that properties that are
refused count as sent.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import protocol
from message import Chunk, Message, Prefix, Segment, error
from xdr import Malformed, Overlong

# The answers of a receiver say this, since it counts no credits here.
CREDITS = 7
# What the properties of one end may have in all; the draft has no bound.
MOST_PROPERTIES = 16384
# Octets of the first message of a connection, at most.
LEAST_RECEIVE = 1024
# Of the two words that begin an RPC message, and of the shortest header of a Call (RFC 5531, section 9): nothing in those
# is a data item that may be reduced.
LEAST_MESSAGE, LEAST_CALL_HEADER = 8, 40


@dataclass(frozen=True)
class Limits:
    """What a responder has room for."""

    # Segments of all Read chunks, the Call chunk with them.
    read_segments: int
    # Read chunks, the Call chunk with them.
    read_chunks: int
    # Chunks of the Write list.
    write_chunks: int
    # Segments of the Write list.
    write_segments: int
    # Segments of any one chunk.
    chunk_segments: int
    # Octets of any one chunk, and of all Read chunks with the Call chunk.
    chunk_bytes: int
    # Octets of a message that comes in fragments.
    message_bytes: int

    @property
    def is_none(self) -> bool:
        """Whether no chunk has room."""
        return not (self.read_chunks or self.write_chunks or self.chunk_segments)


@dataclass(frozen=True)
class Accepted:
    """A message that is processed."""

    message: Message
    # Where a message ends that came inline, the octets of its whole Payload stream.
    whole: int | None = None


@dataclass(frozen=True)
class Refused:
    """A message that is answered with one of these errors."""

    answers: tuple[Message, ...]


@dataclass(frozen=True)
class Discarded:
    """A message that nothing follows from."""


Verdict = Accepted | Refused | Discarded


class Stream(NamedTuple):
    """What the fragments of one message have in common."""

    is_call: bool
    xid: int


@dataclass
class Reassembly:
    """A message of which fragments are still to come."""

    stream: Stream
    remaining: int
    received: int


# The code of an error, and the words of its arm.
Fault = tuple[int, ...]


class _Faulty(Exception):
    """A message is refused with one of these errors; or discarded, when nothing may be answered."""

    def __init__(self, *faults: Fault) -> None:
        super().__init__(*faults)
        self.faults = faults


class Receiver:
    """One end of a connection on which version 2 is agreed and no properties have come yet."""

    def __init__(self, is_server: bool, limits: Limits) -> None:
        self._is_server = is_server
        self._limits = limits
        self._open: Reassembly | None = None
        # What is left of a message of which a fragment was refused.
        self._spoilt: Stream | None = None
        # Octets of the properties so far; None outside of their sequence.
        self._properties: int | None = None
        self._has_properties = False

    def receive(self, octets: bytes) -> Verdict:
        """Judge the next message."""
        if len(octets) < protocol.PREFIX:
            return Discarded()
        prefix = Prefix.decode(octets)
        try:
            return self._received(prefix, octets)
        except _Faulty as faulty:
            return Refused(tuple(error(prefix, CREDITS, *fault) for fault in dict.fromkeys(faulty.faults)))

    def _received(self, prefix: Prefix, octets: bytes) -> Verdict:
        if prefix.version != protocol.VERSION:
            # The word for an error is the same in all versions (RFC 8166, section 4.2), and no error answers one. Errors about
            # a version come under the one that they are about (sections 4.3.2 and 7).
            if prefix.kind == protocol.ERROR:
                verdict = _aside(octets)
                about = (protocol.ERR_VERS, protocol.VERS_MISMATCH)
                is_known = isinstance(verdict, Accepted) and verdict.message.error[0] in about
                return verdict if is_known else Discarded()
            raise _Faulty((protocol.VERS_MISMATCH,))
        if prefix.kind not in protocol.HEADERS:
            raise _Faulty((protocol.INVAL_HTYPE,))
        if prefix.kind in protocol.ASIDE:
            return _aside(octets)
        stream = Stream(prefix.kind in protocol.CALLS, prefix.xid)
        if self._is_spoilt(prefix.kind, stream):
            return Discarded()
        self._must_follow(prefix.kind, stream)
        if prefix.kind in protocol.PROPERTIES:
            return self._take_properties(prefix.kind, octets)
        try:
            return self._take(prefix.kind, stream, octets)
        except _Faulty:
            self._open = None
            if prefix.kind in protocol.MIDDLES:
                self._spoilt = stream
            if stream.is_call:
                raise
            # An answer to what is no request finds nobody, or the wrong one (section 7; RFC 8166, section 4.5).
            return Discarded()

    def _is_spoilt(self, kind: int, stream: Stream) -> bool:
        """Whether a message is a later fragment of one that was refused (section 7.1.4)."""
        if self._spoilt is None:
            return False
        if stream == self._spoilt and kind in protocol.FRAGMENTS:
            if kind not in protocol.MIDDLES:
                self._spoilt = None
            return True
        if self._open is None:
            # Fragments come one after another: after another message no more of them do.
            self._spoilt = None
        return False

    def _must_follow(self, kind: int, stream: Stream) -> None:
        """Refuse what may not follow the messages before it (sections 6.3.3, 6.3.4, 6.3.6, 6.3.9)."""
        if self._open is not None:
            if stream == self._open.stream and kind in protocol.FRAGMENTS:
                return
        elif kind in protocol.PROPERTIES:
            if not self._has_properties:
                return
        elif self._properties is None:
            return
        if kind in protocol.MIDDLES:
            self._spoilt = stream
        raise _Faulty((protocol.INVAL_CONT,))

    def _take_properties(self, kind: int, octets: bytes) -> Verdict:
        so_far = (self._properties or 0) + len(octets)
        # What is refused counts as sent.
        self._properties = so_far if kind == protocol.CONNPROP_MIDDLE else None
        self._has_properties = kind == protocol.CONNPROP_FINAL
        faults: list[Fault] = [(protocol.INVAL_CONT,)] if so_far > MOST_PROPERTIES else []
        try:
            message = Message.decode(octets)
        except Overlong:
            raise _Faulty(*faults, (protocol.BAD_PROPVAL,)) from None
        except Malformed:
            raise _Faulty(*faults, (protocol.BAD_XDR,)) from None
        if not all(is_good_property(which, data) for which, data in message.properties):
            faults.append((protocol.BAD_PROPVAL,))
        if faults:
            raise _Faulty(*faults)
        return Accepted(message)

    def _take(self, kind: int, stream: Stream, octets: bytes) -> Verdict:
        try:
            message = Message.decode(octets)
        except Malformed:
            raise _Faulty((protocol.BAD_XDR,)) from None
        before = self._open.received if self._open else 0
        inline = before + len(message.payload) + message.body.get("rdma_remaining", 0)
        faults: list[Fault] = []
        if kind in protocol.FRAGMENTS and self._open is None and fault_of_start(message) is not None:
            faults.append((protocol.BAD_XDR,))
        body = sum(entry["rdma_target"]["rdma_length"] for entry in message.call_chunk)
        whole = inline if kind in protocol.FRAGMENTS else body
        if fault_of_chunks(message) is not None or fault_of_positions(message, whole) is not None:
            faults.append((protocol.BAD_XDR,))
        is_end = False
        if kind in protocol.FRAGMENTS:
            try:
                is_end = self._continue(message, stream)
            except _Faulty as faulty:
                faults += faulty.faults
        if stream.is_call and (not self._is_server or self._limits.is_none):
            faults += _chunks_refused(message)
        faults += self._no_room(message)
        if faults:
            raise _Faulty(*faults)
        return Accepted(message, whole if is_end else None)

    def _continue(self, message: Message, stream: Stream) -> bool:
        """Account for a fragment; whether it is the last."""
        remaining = message.body.get("rdma_remaining", 0)
        length = len(message.payload)
        is_last = message.prefix.kind not in protocol.MIDDLES
        if self._open is None:
            if is_last:
                return True
            if remaining == 0 or length + remaining > self._limits.message_bytes:
                raise _Faulty((protocol.INVAL_CONT,))
            self._open = Reassembly(stream, remaining, length)
            return False
        if self._open.remaining - length != remaining or is_last != (remaining == 0):
            raise _Faulty((protocol.INVAL_CONT,))
        self._open.remaining = remaining
        self._open.received += length
        if is_last:
            self._open = None
        return is_last

    def _no_room(self, message: Message) -> list[Fault]:
        """What there is no room for (section 7.3)."""
        limits, faults = self._limits, list[Fault]()
        reads = [[entry["rdma_target"] for entry in message.call_chunk]] if message.call_chunk else []
        reads += [chunk for _, chunk in message.read_chunks()]
        if len(reads) > limits.read_chunks:
            faults.append((protocol.READ_CHUNKS, limits.read_chunks))
        if len(message.writes) > limits.write_chunks:
            faults.append((protocol.WRITE_CHUNKS, limits.write_chunks))
        chunks: list[Chunk] = [*reads, *message.writes, message.reply_chunk or ()]
        if any(len(chunk) > limits.chunk_segments for chunk in chunks):
            faults.append((protocol.SEGMENTS, limits.chunk_segments))
        if sum(map(len, reads)) > limits.read_segments:
            faults.append((protocol.SEGMENTS, limits.read_segments))
        if sum(map(len, message.writes)) > limits.write_segments:
            faults.append((protocol.SEGMENTS, limits.write_segments))
        if any(octets_of(chunk) > limits.chunk_bytes for chunk in chunks) or sum(map(octets_of, reads)) > limits.chunk_bytes:
            # No error of section 7.3 says that a chunk is too long.
            faults.append((protocol.SYSTEM,))
        return faults


def octets_of(chunk: Sequence[Segment]) -> int:
    """The length of a chunk (section 4.4.1)."""
    return sum(segment["rdma_length"] for segment in chunk)


def is_good_property(which: int, data: bytes) -> bool:
    """Whether a property that is known has a value of its type (section 5.1). No octets are the default."""
    if which not in protocol.WORD_PROPERTIES or not data:
        return True
    if len(data) != 4:
        return False
    value = int.from_bytes(data, "big")
    # A Receive has room for the first message of a connection at least (section 4.3), and a segment for an octet.
    least, most = {protocol.BRS: (0, protocol.REVERSE_GENL), protocol.RBSIZ: (LEAST_RECEIVE, value),
                   protocol.RSSIZ: (1, value)}.get(which, (0, value))
    return least <= value <= most


def fault_of_chunks(message: Message) -> str | None:
    """What is wrong with the chunk lists and the handle to invalidate, whoever reads them."""
    kind = message.prefix.kind
    if kind == protocol.CALL_EXTERNAL and not message.call_chunk:
        return "no Call chunk (section 6.3.5)"
    if any(entry["rdma_position"] for entry in message.call_chunk):
        return "a Call chunk with a Position that is not 0 (section 6.6.3)"
    positions = [entry["rdma_position"] for entry in message.reads]
    if 0 in positions:
        return "a Read list with Position 0 (section 6.3.7)"
    if any(position < LEAST_CALL_HEADER for position in positions):
        return "a Position in the header of the RPC Call"
    if any(position % 4 for position in positions):
        return "a Position that is no multiple of four (section 4.5.1)"
    if positions != sorted(positions):
        return "Positions that decrease (section 4.5.1.1)"
    if kind == protocol.REPLY_EXTERNAL and message.reply_chunk is None:
        return "no Reply chunk (section 6.3.8)"
    if any(segment["rdma_offset"] + segment["rdma_length"] >= 1 << 64 for segment in message.segments()):
        return "a segment that goes around the end of all addresses"
    body = {protocol.CALL_EXTERNAL: [entry["rdma_target"] for entry in message.call_chunk],
            protocol.REPLY_EXTERNAL: message.reply_chunk}.get(kind)
    if body is not None and octets_of(body) < LEAST_MESSAGE:
        return "a body chunk that has no RPC message"
    handle = message.body.get("rdma_inv_handle", 0)
    if handle and all(segment["rdma_handle"] != handle for segment in message.segments()):
        return "a handle to invalidate that is not in the header (section 6.5)"
    return None


def fault_of_start(message: Message) -> str | None:
    """What is wrong with the front of a Payload stream: it has the XID of the header (section 7.2) and the direction that the
    header type has."""
    if len(message.payload) < LEAST_MESSAGE:
        return "less than the two words that begin an RPC message"
    if message.first_word != message.prefix.xid:
        return "another XID in the RPC message"
    direction = 0 if message.prefix.kind in protocol.CALLS else 1
    if int.from_bytes(message.payload[4:8], "big") != direction:
        return "an RPC message of the other direction"
    return None


def fault_of_positions(message: Message, reduced: int) -> str | None:
    """What is wrong with the places of the Read chunks in a Payload stream of so many octets without them: each is behind
    the one before it, and not behind the end of what there is by then (section 4.5.1)."""
    end, unreduced = 0, reduced
    for position, chunk in message.read_chunks():
        if position < end:
            return "a Read chunk that begins in the one before it"
        if position > unreduced:
            return "a Read chunk behind the end"
        end = position + octets_of(chunk)
        unreduced += octets_of(chunk) + -octets_of(chunk) % 4
    return None


def _aside(octets: bytes) -> Verdict:
    """GRANT or an error. Nothing is answered to either."""
    try:
        message = Message.decode(octets)
    except Malformed:
        return Discarded()
    if message.prefix.kind == protocol.ERROR and message.error[0] not in protocol.ERRORS:
        return Discarded()
    return Accepted(message)


def _chunks_refused(message: Message) -> list[Fault]:
    """What an end says of chunks in a Call that takes none, as a client in a reverse Call (sections 4.6.4 and 7.3)."""
    faults: list[Fault] = []
    if message.call_chunk or message.reads:
        faults.append((protocol.READ_CHUNKS, 0))
    if message.writes or message.reply_chunk is not None:
        faults.append((protocol.WRITE_CHUNKS, 0))
    return faults
