"""A raw requester and a raw responder: the state machine of one end of a connection.

Each end is both, since Calls go in both directions. Nothing here moves octets: post() gives what is to be sent next, and
receive() takes what has arrived.
"""

import struct
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

import protocol
from link import Sent
from message import Message, Prefix
from receiver import Accepted, Limits, Receiver, Refused, Verdict
from conveyed import Call, Reply
from side import DEFAULTS

CREDITS = 16
LIMITS = Limits(read_segments=32, read_chunks=2, write_chunks=2, write_segments=32, chunk_segments=16,
                chunk_bytes=1 << 21, message_bytes=1 << 20)

# Makes the Reply to a Call that has arrived: the message that ended it, with the whole Payload stream. None if it is answered
# later.
Service = Callable[[Message], Reply | None]


@dataclass(frozen=True)
class _Post:
    message: Message
    invalidates: int | None = None


class End:
    """One end of a connection, of which version 2 is spoken."""

    def __init__(self, is_client: bool, properties: Mapping[int, int], service: Service) -> None:
        self._is_client = is_client
        self._properties = properties
        self._service = service
        self._receiver = Receiver(not is_client, LIMITS)
        # What waits for credits: all messages that convey one thing go out together.
        self._waiting: deque[list[_Post]] = deque()
        # The Payload stream of a message of which fragments are still to come.
        self._stream = b""
        # How many messages have come, and how many may come in all by what was told.
        self.received, self.told = 0, 1
        self._sent = 0
        # The messages that the other end may send beside those that have come, as it is told.
        self.advertises = CREDITS
        # What the other end has told, and what it told in its properties.
        self._credits = 1
        self._other = dict(DEFAULTS)
        # What came since something was sent: all, and what is no GRANT.
        self._unanswered = self._substantial = 0
        self.has_told = False
        self.replies: dict[int, Message] = {}
        self.errors: dict[int, tuple[int, list[int]]] = {}

    def tell_properties(self, xid: int) -> None:
        """Send RDMA2_CONNPROP_FINAL."""
        props = [{"rdma_which": which, "rdma_data": struct.pack(">I", value)} for which, value in self._properties.items()]
        self.has_told = True
        self._queue([_Post(Message(_prefix(xid, protocol.CONNPROP_FINAL), {"rdma_props": props}))])

    @property
    def size(self) -> int:
        """Octets of the longest message that it may send (section 4.2.2)."""
        return min(self._properties.get(protocol.SBSIZ, protocol.DEFAULT_SIZE), self._other[protocol.RBSIZ])

    def call(self, call: Call) -> None:
        """Send a Call."""
        self.send(call.messages(self.size))

    def reply(self, reply: Reply) -> None:
        """Send a Reply."""
        *rest, last = reply.messages(self.size)
        self._queue([*(_Post(message) for message in rest), _Post(last, reply.invalidates)])

    def send(self, messages: Iterable[Message]) -> None:
        """Send messages as they are, but for their credits, when there are credits for all of them."""
        self._queue([_Post(message) for message in messages])

    @property
    def left(self) -> int:
        """The messages that it may still send."""
        return self._credits - self._sent

    def sends(self) -> int:
        """Count a message that goes out; what it tells of credits. Those of post() are counted."""
        self._sent += 1
        self._unanswered = self._substantial = 0
        # What was told before may be on its way.
        self.told = max(self.told, self.received + self.advertises)
        return (self.received + self.advertises) % (1 << 32)

    def post(self) -> Sent | None:
        """What is to be sent next, with the credits of this moment; None while there is nothing or there are no credits."""
        if self._waiting and len(self._waiting[0]) <= self.left:
            group = self._waiting[0]
            post = group.pop(0)
            if not group:
                self._waiting.popleft()
            return self.stamped(post.message, post.invalidates)
        # A good receiver tells new credits before half of the old ones are used (the draft, section 4.2.1.1). One message
        # more than the credits allow may do so.
        if self._unanswered >= CREDITS // 2 and self._substantial and self.left >= 0:
            return self.stamped(Message(_prefix(0, protocol.GRANT)))
        return None

    def stamped(self, message: Message, invalidates: int | None = None) -> Sent:
        """A message as it goes out now, whatever the credits are."""
        message = replace(message, prefix=replace(message.prefix, credits=self.sends()))
        return Sent(self._is_client, message.encode(), invalidates)

    def receive(self, octets: bytes) -> Verdict:
        """Take what has arrived; what the receiver makes of it."""
        self.received += 1
        self._unanswered += 1
        verdict = self._receiver.receive(octets)
        match verdict:
            case Refused():
                self._substantial += 1
                self._queue([_Post(verdict.answers[0])])
            case Accepted():
                self._credits = verdict.message.prefix.credits
                self._substantial += verdict.message.prefix.kind != protocol.GRANT
                self._take(self._joined(verdict))
        return verdict

    def _joined(self, accepted: Accepted) -> Message:
        """A message, with the whole Payload stream where it ends one that came in fragments."""
        message = accepted.message
        if message.prefix.kind not in protocol.FRAGMENTS:
            return message
        self._stream += message.payload
        if accepted.whole is None:
            return message
        # In front of it are the fragments of one that was refused.
        whole, self._stream = self._stream[len(self._stream) - accepted.whole:], b""
        return replace(message, payload=whole)

    def _take(self, message: Message) -> None:
        prefix = message.prefix
        if prefix.kind == protocol.ERROR:
            self.errors[prefix.xid] = message.error
        elif prefix.kind in protocol.PROPERTIES:
            self._other.update({which: int.from_bytes(data, "big") if data else DEFAULTS[which]
                                for which, data in message.properties if which in protocol.WORD_PROPERTIES})
            if prefix.kind == protocol.CONNPROP_FINAL and not self.has_told:
                self.tell_properties(prefix.xid)
        elif prefix.kind in protocol.MIDDLES or prefix.kind == protocol.GRANT:
            return
        elif prefix.kind in protocol.CALLS:
            reply = self._service(message)
            if reply is not None:
                self.reply(reply)
        else:
            self.replies[prefix.xid] = message

    def _queue(self, group: list[_Post]) -> None:
        self._waiting.append(group)


def exchange(ends: Iterable[End]) -> list[Sent]:
    """Let two ends send until both are quiet; what they send, in order."""
    one, other = ends
    messages = list[Sent]()
    while True:
        before = len(messages)
        for sender, receiver in ((one, other), (other, one)):
            if (sent := sender.post()) is not None:
                messages.append(sent)
                receiver.receive(sent.message)
        if len(messages) == before:
            return messages


def _prefix(xid: int, kind: int) -> Prefix:
    return Prefix(xid, protocol.VERSION, 0, kind)
