"""A connection that speaks version 2: the referee's end says what is sent, and is told what comes."""

from collections.abc import Mapping, Sequence

import conveyed
import nfs
import protocol
from bench import Bench
from connection import Connection
from conveyed import Call, Reply
from endpoint import Received
from ends import End, Service
from events import SECONDS
from failure import Failure, require, same
from header import Chunk, Segment, private_data, words
from message import Message, Prefix, error
from rpc import Stream

# Octets of a message of the server, and what a client says of itself that has no more room than that.
SIZE = 4096
PROPERTIES = {protocol.SBSIZ: 8192, protocol.RBSIZ: SIZE, protocol.RSSIZ: 1 << 20, protocol.RCSIZ: 16,
              protocol.BRS: protocol.REVERSE_NONE}
# What our server says. How long a segment may be is a matter of its memory.
SERVER_BYTES, SERVER_SEGMENTS, LEAST_SEGMENT_BYTES = 8192, 64, 4096
# Messages that no server lets a client have under way.
FAR_TOO_MANY = 1000
# Seconds in which a message would come that must not.
SILENCE = 0.3
GRANT = Message(Prefix(0, protocol.VERSION, 0, protocol.GRANT))


class Connection2:
    """One connection, and who speaks on it."""

    def __init__(self, bench: Bench, properties: Mapping[int, int] = PROPERTIES, *, begins: bool = True,
                 service: Service | None = None, retries: int = 7) -> None:
        """Unless it `begins`, the properties are not told. `service` makes the Replies to the Calls of the server."""
        self._bench = bench
        self.connection = Connection(bench.adapter, private_data(True), not_ready_retries=retries)
        self.end = End(True, properties, service or _serves_nothing)
        self.size = properties.get(protocol.RBSIZ, protocol.DEFAULT_SIZE)
        self._arrived: list[Received] = []
        # The messages that the server lets this end send in all, and those that it has sent.
        self._credits, self._sent = 1, 0
        # GRANTs that have come, and the longest segment that the server reads.
        self.grants, self.segment_bytes = 0, 1 << 20
        if begins:
            self.begin()
        else:
            self.end.has_told = True

    def begin(self) -> None:
        """Exchange the properties."""
        xid = self._bench.xid()
        self.end.tell_properties(xid)
        self.flush()
        self.take_properties(xid, self.receive().message)

    def take_properties(self, xid: int, found: bytes) -> None:
        """Fail unless this is what the server says of itself."""
        values = dict(Message.decode(found).properties)
        self.segment_bytes = int.from_bytes(values.get(protocol.RSSIZ, b""))
        require(self.segment_bytes >= LEAST_SEGMENT_BYTES, f"segments of {self.segment_bytes} bytes")
        told = ((protocol.SBSIZ, SERVER_BYTES), (protocol.RBSIZ, SERVER_BYTES), (protocol.RSSIZ, self.segment_bytes),
                (protocol.RCSIZ, SERVER_SEGMENTS))
        message = properties(xid, *((which, words(value)) for which, value in told))
        same("properties of the server", masked(found), message.encode())

    def close(self) -> None:
        """End it, after a last Call that is answered."""
        self.works()
        self.connection.close()

    def flush(self) -> None:
        """Send what is to be sent, as far as there are credits."""
        while (sent := self.end.post()) is not None:
            if Prefix.decode(sent.message).kind == protocol.ERROR:
                raise Failure(f"the server is answered with error {Message.decode(sent.message).error}")
            self._sent += 1
            self.connection.send(sent.message, sent.invalidates)

    def send(self, message: Message | bytes, heeds: bool = True, credits: int | None = None) -> None:
        """Send a message as it is but for its credit word; if it `heeds` the server's credits, when there is one. It may promise
        others than it should."""
        octets = bytes(message.encode() if isinstance(message, Message) else message)
        while heeds and self.end.left <= 0:
            received = self.next(SECONDS)
            if not is_grant(received):
                self._arrived.append(received)
        self._sent += 1
        told = self.end.sends()
        self.connection.send((octets[:8] + words(told if credits is None else credits) + octets[12:])[:len(octets)])

    def receive(self) -> Received:
        """The next message of the server but for GRANTs."""
        while True:
            received = self._arrived.pop(0) if self._arrived else self.next(SECONDS)
            if not is_grant(received):
                return received

    def must_be_silent(self, what: str, seconds: float = SILENCE) -> None:
        """Fail if a message comes."""
        if self._arrived or self.connection.has_received(seconds):
            received = self._arrived.pop(0) if self._arrived else self.connection.receive()
            raise Failure(f"{what}: a message comes: {received.message[:48].hex(' ', 4)}")

    def must_answer(self, message: Message | bytes, answer: Message | bytes, what: str) -> None:
        """Fail unless the next message to come is this one, no memory was touched, and the connection works."""
        self.send(message)
        received = self.receive()
        same(what, masked(received.message), masked(answer.encode() if isinstance(answer, Message) else answer))
        require(received.invalidated is None, f"{what}: key {received.invalidated} comes to be invalid")
        self._bench.arena.check()
        self.works()

    def must_refuse(self, message: Message | bytes, what: str, code: int, *arguments: int) -> None:
        """Fail unless the answer is this error."""
        octets = message.encode() if isinstance(message, Message) else message
        self.must_answer(octets, error(Prefix.decode(octets), 0, code, *arguments), what)

    def must_drop(self, message: Message | bytes, what: str) -> None:
        """Fail if the message is answered."""
        self.send(message)
        try:
            self.works()
        except Failure as failure:
            raise Failure(f"{what} is not dropped: {failure}") from failure
        self._bench.arena.check()

    def works(self) -> None:
        """Fail unless a Call is answered; the answer must be the next message to come."""
        self.exchange(nfs.null())

    def exchange(self, message: nfs.Message, *, reads: Sequence[tuple[int, Segment]] = (), reduced: Sequence[int] = (),
                 long: Sequence[int] | None = None, writes: Sequence[Chunk] = (), reply: Chunk | None = None,
                 in_reply_chunk: bool = False, inv_handle: int = 0, invalidated: int | None = None,
                 xid: int | None = None) -> None:
        """Make a Call, and fail unless its Reply is, byte for byte, the one that there has to be.

        `reads` is the Read list, `reduced` the items that it takes out. `long` are lengths of segments of the Call chunk, which
        has the rest. `in_reply_chunk` says where the Reply has to be; result by result goes into chunk by chunk.
        """
        xid = self._bench.xid() if xid is None else xid
        call = message.call(xid)
        left = call.without([call.items[n] for n in reduced])
        chunk = [] if long is None else segments(self._bench.arena.holding(left, list(long)))
        self.end.call(Call(xid, left, chunk, [(position, segment(each)) for position, each in reads],
                           [segments(each) for each in writes], None if reply is None else segments(reply), inv_handle))
        self.flush()
        self.must_reply(self.expected(xid, message.reply(xid), writes, reply, in_reply_chunk), invalidated)

    def must_reply(self, expected: Sequence[bytes], invalidated: int | None = None) -> None:
        """Fail unless these messages come next, of which the last makes a key invalid, and memory is as it has to be."""
        for number, message in enumerate(expected, 1):
            received = self.receive()
            same(f"message {number} of {len(expected)} of the Reply", masked(received.message), message)
            wanted = invalidated if number == len(expected) else None
            require(received.invalidated == wanted, f"key invalidated: {received.invalidated}, not {wanted}")
        self._bench.arena.check()

    def expected(self, xid: int, stream: Stream, writes: Sequence[Chunk] = (), reply: Chunk | None = None,
                 in_reply_chunk: bool = False) -> list[bytes]:
        """The messages that answer a Call. The memory of its chunks has to hold the results. A chunk into which no result
        goes comes back empty (the binding, section 5.1.2.1)."""
        placed = [(item, chunk) for item, chunk in zip(stream.items, writes) if chunk and item.length]
        for item, chunk in placed:
            self._bench.arena.put(chunk, stream.data(item))
        lengths = [item.length for item in stream.items] + [0] * len(writes)
        returned = [conveyed.filled(segments(chunk), length) if length else [] for chunk, length in zip(writes, lengths)]
        left = stream.without([item for item, _ in placed])
        whole = None
        if in_reply_chunk:
            if reply is None:
                raise Failure("the case offers no Reply chunk")
            self._bench.arena.put(reply, left)
            whole = conveyed.filled(segments(reply), len(left))
        return [message.encode() for message in Reply(xid, left, returned, whole).messages(self.size)]

    def next(self, seconds: float) -> Received:
        """The next message, of which the end has been told."""
        received = self.connection.receive(seconds)
        self.end.receive(received.message)
        self._take_credits(Prefix.decode(received.message))
        if is_grant(received):
            same("GRANT", masked(received.message), GRANT.encode())
            require(received.invalidated is None, "a GRANT makes a key invalid")
            self.grants += 1
        self.flush()
        return received

    def _take_credits(self, prefix: Prefix) -> None:
        """Fail if the server takes credits back, which ours does not (interpretation 11), or gives more than it has Receives."""
        require(self._credits <= prefix.credits <= self._sent + FAR_TOO_MANY,
                f"a credit value of {prefix.credits} after {self._credits}, with {self._sent} sent")
        self._credits = prefix.credits


def is_grant(received: Received) -> bool:
    return Prefix.decode(received.message).kind == protocol.GRANT


def masked(octets: bytes) -> bytes:
    """A message without its credit word: what that is depends on what else is under way."""
    return octets[:8] + bytes(4) + octets[12:]


def segment(each: Segment) -> conveyed.Segment:
    """A segment as the referee has it."""
    return conveyed.segment(each.handle, each.length, each.offset)


def segments(chunk: Chunk) -> list[conveyed.Segment]:
    """A chunk as the referee has it."""
    return [segment(each) for each in chunk]


def properties(xid: int, *values: tuple[int, bytes], kind: int = protocol.CONNPROP_FINAL) -> Message:
    """A message that tells properties."""
    return Message(Prefix(xid, protocol.VERSION, 0, kind),
                   {"rdma_props": [{"rdma_which": which, "rdma_data": data} for which, data in values]})


def inline(xid: int, payload: bytes, **lists: object) -> Message:
    """RDMA2_CALL_INLINE with what is given of its header."""
    return Message(Prefix(xid, protocol.VERSION, 0, protocol.CALL_INLINE), {**_NO_LISTS, **lists}, bytes(payload))


def external(xid: int, call_chunk: Sequence[tuple[int, Segment]], **lists: object) -> Message:
    """RDMA2_CALL_EXTERNAL with what is given of its header."""
    return Message(Prefix(xid, protocol.VERSION, 0, protocol.CALL_EXTERNAL),
                   {**_NO_LISTS, "rdma_call": read_list(call_chunk), **lists})


def middle(xid: int, payload: bytes, remaining: int, kind: int = protocol.CALL_MIDDLE) -> Message:
    """A fragment."""
    return Message(Prefix(xid, protocol.VERSION, 0, kind), {"rdma_remaining": remaining}, payload)


def read_list(reads: Sequence[tuple[int, Segment]]) -> list[dict[str, object]]:
    """Read segments as a header has them."""
    return [{"rdma_position": position, "rdma_target": segment(each)} for position, each in reads]


def write_list(*chunks: Chunk) -> list[dict[str, object]]:
    """Write chunks as a header has them."""
    return [{"rdma_target": segments(chunk)} for chunk in chunks]


def null(xid: int) -> bytes:
    """A Call without arguments."""
    return bytes(nfs.null().call(xid).bytes)


_NO_LISTS: dict[str, object] = {"rdma_inv_handle": 0, "rdma_reads": [], "rdma_provisional_writes": [],
                                "rdma_provisional_reply": None}


def _serves_nothing(call: Message) -> Reply:
    raise Failure(f"the server calls, with XID {call.prefix.xid:#x}")
