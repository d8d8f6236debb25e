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
from receiver import Accepted, Limits, Receiver, Refused
from conveyed import Call, Reply
from side import DEFAULTS

CREDITS = 16
LIMITS = Limits(read_segments=32, read_chunks=2, write_chunks=2, write_segments=32, chunk_segments=16,
                chunk_bytes=1 << 21, message_bytes=1 << 20)

# Makes the Reply to a Call that has arrived: the message that ended it.
Service = Callable[[Message], Reply]


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
        self._sent = self._received = 0
        # What the other end has told, and what it told in its properties.
        self._credits = 1
        self._other = dict(DEFAULTS)
        # What came since something was sent: all, and what is no GRANT.
        self._unanswered = self._substantial = 0
        self._has_told = False
        self.replies: dict[int, Message] = {}
        self.errors: dict[int, tuple[int, list[int]]] = {}

    def tell_properties(self, xid: int) -> None:
        """Send RDMA2_CONNPROP_FINAL."""
        props = [{"rdma_which": which, "rdma_data": struct.pack(">I", value)} for which, value in self._properties.items()]
        self._has_told = True
        self._queue([_Post(Message(_prefix(xid, protocol.CONNPROP_FINAL), {"rdma_props": props}))])

    def call(self, call: Call) -> None:
        """Send a Call."""
        self._queue([_Post(message) for message in call.messages(self._other[protocol.RBSIZ])])

    def reply(self, reply: Reply) -> None:
        """Send a Reply."""
        *rest, last = reply.messages(self._other[protocol.RBSIZ])
        self._queue([*(_Post(message) for message in rest), _Post(last, reply.invalidates)])

    def post(self) -> Sent | None:
        """What is to be sent next, with the credits of this moment; None while there is nothing or there are no credits."""
        left = self._credits - self._sent
        if self._waiting and len(self._waiting[0]) <= left:
            group = self._waiting[0]
            post = group.pop(0)
            if not group:
                self._waiting.popleft()
            return self._stamped(post)
        # A good receiver tells new credits before half of the old ones are used (the draft, section 4.2.1.1). One message
        # more than the credits allow may do so.
        if self._unanswered >= CREDITS // 2 and self._substantial and left >= 0:
            return self._stamped(_Post(Message(_prefix(0, protocol.GRANT))))
        return None

    def receive(self, octets: bytes) -> None:
        """Take what has arrived."""
        self._received += 1
        self._unanswered += 1
        verdict = self._receiver.receive(octets)
        match verdict:
            case Refused():
                self._substantial += 1
                self._queue([_Post(verdict.answers[0])])
            case Accepted():
                self._credits = verdict.message.prefix.credits
                self._substantial += verdict.message.prefix.kind != protocol.GRANT
                self._take(verdict.message)

    def _take(self, message: Message) -> None:
        prefix = message.prefix
        if prefix.kind == protocol.ERROR:
            self.errors[prefix.xid] = message.error
        elif prefix.kind in protocol.PROPERTIES:
            self._other.update({which: int.from_bytes(data, "big") if data else DEFAULTS[which]
                                for which, data in message.properties if which in protocol.WORD_PROPERTIES})
            if prefix.kind == protocol.CONNPROP_FINAL and not self._has_told:
                self.tell_properties(prefix.xid)
        elif prefix.kind in protocol.MIDDLES or prefix.kind == protocol.GRANT:
            return
        elif prefix.kind in protocol.CALLS:
            self.reply(self._service(message))
        else:
            self.replies[prefix.xid] = message

    def _queue(self, group: list[_Post]) -> None:
        self._waiting.append(group)

    def _stamped(self, post: _Post) -> Sent:
        self._sent += 1
        self._unanswered = self._substantial = 0
        message = replace(post.message, prefix=replace(post.message.prefix, credits=self._received + CREDITS))
        return Sent(self._is_client, message.encode(), post.invalidates)


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
