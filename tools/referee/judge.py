"""A judge of senders: which rules the messages of a connection break, in the order of the wire.

It stops at nothing: after a broken rule it goes on with what the message says, so that one fault is found once.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import protocol
import returned
from flow import Flow
from link import Sent
from message import Message, Prefix
from receiver import MOST_PROPERTIES, Stream, fault_of_chunks, fault_of_positions, is_good_property, octets_of
from rules import Finding
from side import DEFAULTS, Side, Unfinished
from xdr import Malformed


@dataclass(frozen=True)
class Judged:
    """A message: what it is, and which rules it breaks."""

    text: str
    findings: tuple[Finding, ...]

    def __str__(self) -> str:
        return "\n".join((self.text, *(f"    {finding}" for finding in self.findings)))


def judge(messages: Iterable[Sent], before: int = 0) -> list[Judged]:
    """Judge all messages of one connection, whose ends have counted some before the first."""
    bench = Judge(before)
    return [bench.judge(message) for message in messages]


class Judge:
    """Judges the messages of one connection one after another."""

    def __init__(self, before: int) -> None:
        self._client, self._server = (Side(is_client, Flow(before, before + 1)) for is_client in (True, False))
        self._count = 0
        # None until the first message is answered.
        self._version: int | None = None

    def judge(self, sent: Sent) -> Judged:
        """Judge the next message."""
        sender, other = (self._client, self._server) if sent.by_client else (self._server, self._client)
        self._count += 1
        octets = sent.message
        if len(octets) < protocol.PREFIX:
            sender.flow.send_uncounted()
            return Judged(f"{sender.name}: {len(octets)} octets", (Finding("encoding", "no prefix"),))
        prefix = Prefix.decode(octets)
        text = f"{sender.name}: {_described(prefix, octets)}"
        if sent.invalidates is not None:
            text += f", invalidates {sent.invalidates:#010x}"
        if prefix.version == 1 and (self._count == 1 or self._version == 1 or self._falls_back(sender)):
            self._version = 1
            return Judged(text, ())
        findings = list(self._opening(sender, prefix, octets))
        if self._version == 1:
            # The version was refused with this message, in a form that both versions have (section 4.3.2).
            is_refusal = not sender.is_client and prefix.kind == protocol.ERROR
            return Judged(text, (*findings, *(() if is_refusal else (Finding("version", "version 1 was agreed"),))))
        return Judged(text, (*findings, *self._message(sender, other, sent, prefix)))

    def _falls_back(self, sender: Side) -> bool:
        """Whether this is the answer to the first message."""
        return self._version is None and not sender.is_client

    def _opening(self, sender: Side, prefix: Prefix, octets: bytes) -> Iterator[Finding]:
        if self._count == 1:
            if not sender.is_client:
                self._version = protocol.VERSION
                yield Finding("first-sender", "the server does")
            if prefix.kind != protocol.CONNPROP_FINAL:
                yield Finding("first-type", f"it is {_name(prefix)}")
            if len(octets) > protocol.FIRST_SIZE:
                yield Finding("first-size", f"it has {len(octets)}")
            if prefix.xid == 0:
                yield Finding("first-xid", "it is 0")
        elif self._version is None and sender.is_client:
            yield Finding("patience", f"{_name(prefix)} is sent")
        elif self._version is None:
            self._version = 1 if _refuses_version(octets) else protocol.VERSION

    def _message(self, sender: Side, other: Side, sent: Sent, prefix: Prefix) -> Iterator[Finding]:
        if prefix.version != protocol.VERSION:
            sender.flow.send_uncounted()
            if prefix.kind != protocol.ERROR or (prefix.xid, prefix.version) not in other.foreign:
                sender.foreign.add((prefix.xid, prefix.version))
                yield Finding("version", f"it is {prefix.version}")
            return
        yield from sender.flow.send(other.flow, prefix.kind == protocol.GRANT, prefix.credits)
        if prefix.kind not in protocol.PROPERTIES:
            yield from _fits(sender, other, len(sent.message))
        if prefix.kind not in protocol.HEADERS:
            sender.requests.add(prefix.xid)
            yield Finding("type", f"it is {prefix.kind}")
            return
        try:
            message = Message.decode(sent.message)
        except Malformed as fault:
            sender.requests.add(prefix.xid)
            yield Finding("encoding", str(fault))
            return
        if message.encode() != sent.message:
            yield Finding("encoding", "octets are left over or padding is not 0")
        if sent.invalidates is not None and prefix.kind not in (protocol.REPLY_EXTERNAL, protocol.REPLY_INLINE):
            yield Finding("invalidation", f"{_name(prefix)} does")
        if prefix.kind == protocol.GRANT:
            if prefix.xid:
                yield Finding("grant-xid", f"it is {prefix.xid:#010x}")
        elif prefix.kind == protocol.ERROR:
            yield from _error(other, message)
        elif prefix.kind in protocol.PROPERTIES:
            yield from _properties(sender, other, message, len(sent.message))
        else:
            yield from _rpc(sender, other, message, sent.invalidates)


def _fits(sender: Side, other: Side, length: int) -> Iterator[Finding]:
    if length > other.properties[protocol.RBSIZ]:
        yield Finding("size", f"it has {length} octets, they have {other.properties[protocol.RBSIZ]}")
    if length > sender.properties[protocol.SBSIZ]:
        yield Finding("send-size", f"it has {length} octets, the sender said {sender.properties[protocol.SBSIZ]}")


def _error(other: Side, message: Message) -> Iterator[Finding]:
    """An error, and what it ends. It does not say in which direction its XID is meant: any request will do."""
    xid = message.prefix.xid
    code, _ = message.error
    if code not in protocol.ERRORS:
        yield Finding("error-code", f"it is {code}")
    if xid in other.calls:
        del other.calls[xid]
    elif other.unfinished is not None and other.unfinished.stream.xid == xid:
        other.unfinished.is_answered = True
    elif xid in other.requests:
        other.requests.discard(xid)
        if code == protocol.BAD_PROPVAL:
            other.forget_properties()
    else:
        yield Finding("error", f"nothing has the XID {xid:#010x}")


def _properties(sender: Side, other: Side, message: Message, length: int) -> Iterator[Finding]:
    sender.requests.add(message.prefix.xid)
    if sender.unfinished is not None:
        yield Finding("interleaved", f"{_name(message.prefix)} does")
    if sender.has_final:
        yield Finding("second-final", f"{_name(message.prefix)} does")
        return
    if length > min(protocol.DEFAULT_SIZE, other.properties[protocol.RBSIZ]):
        yield Finding("property-size", f"it has {length}")
    sender.property_octets = (sender.property_octets or 0) + length
    if sender.property_octets > MOST_PROPERTIES:
        yield Finding("property-total", f"they have {sender.property_octets}")
        sender.property_octets = 0
    for which, data in message.properties:
        if not is_good_property(which, data):
            yield Finding("property-value", f"property {which} is {data.hex()}")
        elif which in protocol.WORD_PROPERTIES:
            sender.told[which] = int.from_bytes(data, "big") if data else DEFAULTS[which]
    if message.prefix.kind == protocol.CONNPROP_FINAL:
        sender.has_final, sender.property_octets = True, None
        sender.properties.update(sender.told)


def _rpc(sender: Side, other: Side, message: Message, invalidates: int | None) -> Iterator[Finding]:
    prefix = message.prefix
    stream = Stream(prefix.kind in protocol.CALLS, prefix.xid)
    if sender.property_octets is not None:
        sender.property_octets = None
        yield Finding("property-sequence", f"{_name(prefix)} does")
    open_ = sender.unfinished
    is_next = open_ is not None and open_.stream == stream and prefix.kind in protocol.FRAGMENTS
    if open_ is not None and not is_next:
        yield Finding("interleaved", f"{_name(prefix)} of {prefix.xid:#010x} does")
    if not is_next:
        yield from _beginning(sender, other, message, stream)
    yield from _remaining(sender, message, stream)
    if prefix.kind == protocol.CALL_EXTERNAL:
        whole = octets_of([entry["rdma_target"] for entry in message.call_chunk])
    else:
        whole = open_.received if is_next and open_ is not None else len(message.payload)
    if wrong := fault_of_chunks(message) or fault_of_positions(message, whole):
        yield Finding("inv-handle" if "invalidate" in wrong else "chunks", wrong)
    if stream.is_call:
        yield from _call(sender, other, message)
    if prefix.kind in protocol.MIDDLES:
        return
    if stream.is_call:
        if not (is_next and open_ is not None and open_.is_answered):
            sender.calls[prefix.xid] = message
    elif (call := other.calls.pop(prefix.xid, None)) is not None:
        if wrong := returned.fault(call, message):
            yield Finding("returned-chunks", wrong)
        if invalidates is not None and invalidates != (call.body["rdma_inv_handle"] or None):
            yield Finding("invalidated-handle", f"the Call named {call.body['rdma_inv_handle']:#010x}")


def _beginning(sender: Side, other: Side, message: Message, stream: Stream) -> Iterator[Finding]:
    """The only or first part of a message."""
    if message.prefix.kind in protocol.FRAGMENTS:
        if message.first_word != stream.xid:
            yield Finding("xid", f"{stream.xid:#010x} in the header, {message.first_word:#010x} behind it")
        if (word := message.payload[4:8]) != (not stream.is_call).to_bytes(4, "big"):
            yield Finding("payload-type", f"the RPC message says {word.hex() or 'nothing'}")
    if stream.is_call:
        if stream.xid in sender.calls:
            yield Finding("xid-in-use", f"{stream.xid:#010x} is")
        return
    call = other.calls.get(stream.xid)
    if call is None:
        yield Finding("reply", f"there is none with the XID {stream.xid:#010x}")
    elif message.prefix.kind in protocol.MIDDLES and call.reply_chunk:
        length = len(message.payload) + message.body["rdma_remaining"]
        if length <= octets_of(call.reply_chunk):
            yield Finding("reply-chunk-unused", f"{length} octets are sent in fragments")


def _remaining(sender: Side, message: Message, stream: Stream) -> Iterator[Finding]:
    """The count of what is still to come."""
    if message.prefix.kind not in protocol.FRAGMENTS:
        return
    is_middle = message.prefix.kind in protocol.MIDDLES
    told = message.body.get("rdma_remaining", 0)
    open_ = sender.unfinished
    if open_ is None or open_.stream != stream:
        if is_middle and told == 0:
            yield Finding("remaining", "it is 0 although more comes")
        if is_middle and open_ is None:
            sender.unfinished = Unfinished(stream, told, len(message.payload))
        return
    left = open_.remaining - len(message.payload)
    if told != left or is_middle and told == 0:
        yield Finding("remaining", f"{told if is_middle else 'nothing'} is said to remain of {left}")
    open_.remaining = told
    open_.received += len(message.payload)
    if not is_middle:
        sender.unfinished = None


def _call(sender: Side, other: Side, message: Message) -> Iterator[Finding]:
    """What the responder can take."""
    segments = list(message.segments())
    if len(segments) > other.properties[protocol.RCSIZ]:
        yield Finding("segment-count", f"{len(segments)} are more than {other.properties[protocol.RCSIZ]}")
    longest = max((segment["rdma_length"] for segment in segments), default=0)
    if longest > other.properties[protocol.RSSIZ]:
        yield Finding("segment-size", f"{longest} is more than {other.properties[protocol.RSSIZ]}")
    if sender.is_client:
        return
    level = other.properties[protocol.BRS]
    has_chunks = bool(message.call_chunk or message.reads or message.writes or message.reply_chunk is not None)
    needed = protocol.REVERSE_GENL if has_chunks else \
        protocol.REVERSE_CONT if message.prefix.kind == protocol.CALL_MIDDLE else protocol.REVERSE_NONE + 1
    if level < needed:
        yield Finding("reverse", f"it needs {needed}, the client said {level}")


def _refuses_version(octets: bytes) -> bool:
    """Whether a message is an error that says that version 2 is not spoken."""
    try:
        message = Message.decode(octets)
    except Malformed:
        return False
    if message.prefix.kind != protocol.ERROR or message.error[0] != protocol.ERR_VERS:
        return False
    lowest, highest = message.error[1]
    return not lowest <= protocol.VERSION <= highest


def _name(prefix: Prefix) -> str:
    return protocol.NAMES.get(prefix.kind, f"header type {prefix.kind}")


def _described(prefix: Prefix, octets: bytes) -> str:
    """A message in one line."""
    start = f"xid {prefix.xid:#010x}, credits {prefix.credits}, {len(octets)} octets"
    if prefix.version != protocol.VERSION:
        return f"version {prefix.version}, type {prefix.kind}, {start}"
    parts = [_name(prefix), start]
    try:
        message = Message.decode(octets)
    except Malformed:
        return ", ".join((*parts, "malformed"))
    if prefix.kind == protocol.ERROR:
        code, arguments = message.error
        parts.append(" ".join((protocol.ERRORS.get(code, f"error {code}"), *map(str, arguments))))
    for which, data in message.properties:
        parts.append(f"property {which} = {data.hex() or 'default'}")
    if "rdma_remaining" in message.body:
        parts.append(f"{message.body['rdma_remaining']} remaining")
    for name, count in (("Call segments", len(message.call_chunk)), ("Read segments", len(message.reads)),
                        ("Write chunks", len(message.writes)), ("Reply segments", len(message.reply_chunk or ()))):
        if count:
            parts.append(f"{count} {name}")
    if handle := message.body.get("rdma_inv_handle"):
        parts.append(f"may invalidate {handle:#010x}")
    if message.payload:
        parts.append(f"{len(message.payload)} of payload")
    return ", ".join(parts)
