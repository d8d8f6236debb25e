"""One connection of a client that may speak version 2, whose Calls an NFS server on TCP executes."""

import struct
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import protocol
from conveyed import Call, Reply, filled
from ends import LIMITS, End
from events import Events
from failure import require
from header import words
from link import Sent
from message import Chunk, Message, Prefix, Segment, error
from proxy import ANSWERS_NOTHING, LOOK_SECONDS, Proxy
from receiver import Refused, octets_of
from rpc import CALL, padding

# Of an RPC Call: where its program, version and procedure are (RFC 5531, section 9).
PROGRAM = 12
NFS_3_READ = (100003, 3, 6)
# Of the Reply to a READ of NFS 3 without a verifier: where its status is, the length of its data, and these.
READ_STATUS, READ_COUNT, READ_DATA = 24, 24 + 4 + 4 + 84, 24 + 4 + 4 + 84 + 12
# A Reply in more fragments than a client keeps Receives for would wait for ever.
MOST_MESSAGES = 10
# Seconds in which a client that gets messages promises to take more.
CREDIT_SECONDS = 20


@dataclass(frozen=True)
class Asked:
    """A Call of the client."""

    # The message that ended it.
    message: Message
    # The RPC message, with what its chunks have.
    stream: bytes

    @property
    def xid(self) -> int:
        """Its XID."""
        return self.message.prefix.xid

    @property
    def procedure(self) -> tuple[int, int, int]:
        """Program, version and procedure."""
        program, version, procedure = struct.unpack_from(">3I", self.stream, PROGRAM)
        return program, version, procedure

    @property
    def invalidates(self) -> int | None:
        """The handle that the client wants to be invalidated."""
        return self.message.body["rdma_inv_handle"] or None


class Proxy2(Proxy):
    """The server's end. Which version it speaks follows from the client's first message."""

    def __init__(self, events: Events, private: bytes, behaviour, server: tuple[str, int]) -> None:
        super().__init__(events, private, behaviour, server)
        self.end = End(False, behaviour.properties, self._asked)
        # When it was asked for.
        self.since = time.monotonic()
        self._version: int | None = None
        # The Calls that are being executed.
        self._asking: dict[int, Asked] = {}
        # The header types of the client's messages so far.
        self._kinds: set[int] = set()

    def reply_2(self, asked: Asked, message: bytes) -> None:
        """Send a Reply as the draft wants it: the data of a READ in its Write chunk; inline, in the Reply chunk, or in several
        messages (section 6.6)."""
        stream, writes = self._reduced(asked, message)
        plain = Reply(asked.xid, stream, writes, invalidates=asked.invalidates)
        messages = plain.messages(self.end.size)
        room = asked.message.reply_chunk or ()
        if len(messages) == 1:
            self.end.reply(plain)
        elif len(stream) <= octets_of(room):
            self.put(room, stream)
            self.end.reply(Reply(asked.xid, b"", writes, filled(room, len(stream)), asked.invalidates))
        elif len(messages) <= MOST_MESSAGES:
            self.end.reply(plain)
        else:
            self.refuse_2(asked.message.prefix, protocol.REPLY_RESOURCE, len(stream))

    def refuse_2(self, prefix: Prefix, code: int, *arguments: int) -> None:
        """Send an error, and say so: somebody counts."""
        print(f"refused {code}", flush=True)
        self.end.send([error(prefix, 0, code, *arguments)])

    def call_back_2(self, name: str, messages: Iterable[Message]) -> None:
        """Send a Call of our own. What becomes of it is printed; it is no business of the NFS server's."""
        messages = list(messages)
        self.expect(messages[-1].prefix.xid, name)
        self.end.send(messages)
        self.flush()

    def expect(self, xid: int, name: str) -> None:
        """Expect an answer to a message of our own, of which is printed what it says."""
        self._own[xid] = name
        print(f"called {name}", flush=True)

    def put(self, chunk: Chunk, data: bytes) -> None:
        """Write data into a chunk, from its beginning on."""
        for segment in chunk:
            part, data = data[:segment["rdma_length"]], data[segment["rdma_length"]:]
            if part:
                self.write(part, segment["rdma_handle"], segment["rdma_offset"])

    def send_now(self, message: Message, credits: int | None = None) -> None:
        """Send a message whatever the credits are; it may promise others than it should."""
        sent = self.end.stamped(message).message
        self.send(sent if credits is None else sent[:8] + words(credits) + sent[12:])

    def send_as_is(self, octets: bytes) -> None:
        """Send what need not be a message of version 2."""
        self.end.sends()
        self.send(octets)

    def post_as_is(self, octets: bytes) -> None:
        """Send octets when there is a credit for them, and with the credit word of that moment as far as they have one."""
        self._await(lambda: self.end.left > 0, CREDIT_SECONDS)
        require(self.end.left > 0, "the client promises nothing")
        self.send((octets[:8] + words(self.end.sends()) + octets[12:])[:len(octets)])

    def grant(self) -> None:
        """Tell the credits of this moment."""
        self.send_now(Message(Prefix(0, protocol.VERSION, 0, protocol.GRANT)))

    def flush(self) -> None:
        """Send what there are credits for."""
        while (sent := self.end.post()) is not None:
            self.post_2(sent)

    def post_2(self, sent: Sent) -> None:
        """Send a message that the end has made."""
        self.send(sent.message, sent.invalidates)

    def wait(self, seconds: float) -> None:
        """Take what comes in so many seconds, and answer nothing of that but with errors."""
        self._await(lambda: False, seconds)

    def _called(self, message: bytes) -> None:
        if self._version is None:
            version, = struct.unpack_from(">I", message, 4)
            print(f"spoken to in version {version}", flush=True)
            if version == protocol.VERSION and not self._behaviour.meets(self, message):
                return
            self._version = version
        if self._version == protocol.VERSION:
            self._called_2(message)
        else:
            super()._called(message)

    def _called_2(self, message: bytes) -> None:
        kind = Prefix.decode(message).kind
        require(len(message) <= self._behaviour.properties.get(protocol.RBSIZ, protocol.DEFAULT_SIZE),
                f"a message of {len(message)} octets")
        verdict = self.end.receive(message)
        require(not isinstance(verdict, Refused), f"a message that is refused: {message.hex(' ', 4)}")
        # A GRANT alone may go beyond the credits, by one (section 4.2.1.1).
        require(self.end.received <= self.end.told + (kind == protocol.GRANT),
                f"{self.end.received} messages where {self.end.told} are promised")
        if kind not in self._kinds:
            self._kinds.add(kind)
            print(f"came {protocol.NAMES[kind]}", flush=True)
        while self.end.errors:
            xid, (code, arguments) = self.end.errors.popitem()
            said = " ".join(map(str, ("refused", code, *arguments)))
            require(self._told(xid, said) or self._behaviour.says_anything, ANSWERS_NOTHING)
        while self.end.replies:
            xid, reply = self.end.replies.popitem()
            # Both directions may use the same XID (section 3.1.5.4); a client offers no chunks.
            if not self._told(xid, "answered") and not self._behaviour.says_anything:
                self._server.send(reply.payload)
        self.flush()

    def _asked(self, message: Message) -> None:
        """Pass a Call on."""
        properties = self._behaviour.properties
        segments = list(message.segments())
        longest = max((segment["rdma_length"] for segment in segments), default=0)
        require(longest <= properties.get(protocol.RSSIZ, LIMITS.chunk_bytes), f"a segment of {longest} octets")
        require(len(segments) <= properties.get(protocol.RCSIZ, LIMITS.write_segments), f"{len(segments)} segments")
        if not self._behaviour.admits(self, message):
            return
        stream = message.payload
        if message.prefix.kind == protocol.CALL_EXTERNAL:
            stream = self._read([entry["rdma_target"] for entry in message.call_chunk])
        for position, chunk in message.read_chunks():
            # Each Position counts what is in front of it (section 4.5.1).
            data = self._read(chunk)
            stream = stream[:position] + data + padding(len(data)) + stream[position:]
        asked = Asked(message, stream)
        if self._behaviour.takes_2(self, asked):
            self._asking[asked.xid] = asked
            self._server.send(stream)

    def _answered(self, message: bytes) -> None:
        if self._version != protocol.VERSION:
            return super()._answered(message)
        xid, direction = struct.unpack_from(">2I", message)
        if direction == CALL:
            self.end.call(Call(xid, message))
        else:
            asked = self._asking.pop(xid, None)
            require(asked is not None, f"the NFS server answers {xid:#010x}, which is no Call")
            self._behaviour.reply_2(self, asked, message)
        self.flush()

    def _read(self, chunk: Sequence[Segment]) -> bytes:
        return b"".join(self.read(each["rdma_handle"], each["rdma_offset"], each["rdma_length"]) for each in chunk)

    def _reduced(self, asked: Asked, message: bytes) -> tuple[bytes, list[list[Segment]]]:
        """What is left of a Reply when the data of a READ of NFS 3 are in its first Write chunk, and the chunks as they come
        back. Of others nothing is placed."""
        unused = [filled(chunk, 0) for chunk in asked.message.writes]
        if not unused or asked.procedure != NFS_3_READ or struct.unpack_from(">I", message, READ_STATUS)[0]:
            return message, unused
        count, = struct.unpack_from(">I", message, READ_COUNT)
        chunk = asked.message.writes[0]
        if not octets_of(chunk):
            return message, unused
        require(octets_of(chunk) >= count, "the Write chunk is too small")
        self.put(chunk, message[READ_DATA:READ_DATA + count])
        return message[:READ_DATA], [filled(chunk, count), *unused[1:]]
