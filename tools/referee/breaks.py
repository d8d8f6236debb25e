"""For each rule of the judge, the conversation changed so that it breaks this rule and no other."""

import struct
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import protocol
from conversation import EXTERNAL, LAST, LONG, NULL, PROPERTIES, READ, TOO_MANY, WRITE, WRITE_HANDLE, Conversation
from ends import CREDITS
from link import Sent
from message import Message, Prefix
from conveyed import Call, call_payload, segment

# An XID, a handle and a number that the conversation does not have.
UNUSED = 0x7777
# A property that nobody knows.
UNKNOWN = 99

Break = Callable[[list[Sent]], None]


@dataclass(frozen=True)
class At:
    """The first message of an end that has a type and an XID."""

    by_client: bool
    kind: int
    xid: int = 0

    def index(self, messages: list[Sent]) -> int:
        """Where it is."""
        return next(index for index, sent in enumerate(messages)
                    if sent.by_client == self.by_client and _key(sent) == (self.kind, self.xid))


CLIENT_FINAL = At(True, protocol.CONNPROP_FINAL, PROPERTIES)
SERVER_FINAL = At(False, protocol.CONNPROP_FINAL, PROPERTIES)
NULL_CALL = At(True, protocol.CALL_INLINE, NULL)
NULL_REPLY = At(False, protocol.REPLY_INLINE, NULL)
WRITE_CALL = At(True, protocol.CALL_INLINE, WRITE)
WRITE_REPLY = At(False, protocol.REPLY_INLINE, WRITE)
READ_REPLY = At(False, protocol.REPLY_INLINE, READ)
EXTERNAL_REPLY = At(False, protocol.REPLY_EXTERNAL, EXTERNAL)
LONG_MIDDLE = At(True, protocol.CALL_MIDDLE, LONG)
LONG_END = At(True, protocol.CALL_INLINE, LONG)
THE_ERROR = At(False, protocol.ERROR, TOO_MANY)
THE_GRANT = At(False, protocol.GRANT)
LAST_REPLY = At(False, protocol.REPLY_INLINE, LAST)


def broken(rule: str) -> list[Sent]:
    """The conversation that breaks a rule."""
    messages = Conversation().run()
    BREAKS[rule](messages)
    return messages


def _key(sent: Sent) -> tuple[int, int]:
    prefix = Prefix.decode(sent.message)
    return prefix.kind, prefix.xid


def _octets(at: At, change: Callable[[bytes], bytes]) -> Break:
    def apply(messages: list[Sent]) -> None:
        index = at.index(messages)
        messages[index] = replace(messages[index], message=change(messages[index].message))
    return apply


def _value(at: At, change: Callable[[Message], Message]) -> Break:
    return _octets(at, lambda octets: change(Message.decode(octets)).encode())


def _prefix(at: At, **fields: int) -> Break:
    return _value(at, lambda message: replace(message, prefix=replace(message.prefix, **fields)))


def _body(at: At, **fields: Any) -> Break:
    return _value(at, lambda message: replace(message, body={**message.body, **fields}))


def _property(at: At, which: int, data: bytes) -> Break:
    """A property with another value, or one more."""
    def change(message: Message) -> Message:
        props = [each for each in message.body["rdma_props"] if each["rdma_which"] != which]
        return replace(message, body={"rdma_props": [*props, {"rdma_which": which, "rdma_data": data}]})
    return _value(at, change)


def _word(value: int) -> bytes:
    return struct.pack(">I", value)


def _invalidates(at: At, handle: int) -> Break:
    def apply(messages: list[Sent]) -> None:
        index = at.index(messages)
        messages[index] = replace(messages[index], invalidates=handle)
    return apply


def _copy_behind(at: At, behind: At, **fields: int) -> Break:
    """A message comes once more, behind another one."""
    def apply(messages: list[Sent]) -> None:
        sent = messages[at.index(messages)]
        message = Message.decode(sent.message)
        copied = replace(message, prefix=replace(message.prefix, **fields))
        messages.insert(behind.index(messages) + 1, replace(sent, message=copied.encode()))
    return apply


def _insert(behind: At, by_client: bool, message: Message) -> Break:
    """A message with the credit value that its sender told last."""
    def apply(messages: list[Sent]) -> None:
        index = behind.index(messages) + 1
        told = [Prefix.decode(sent.message).credits for sent in messages[:index] if sent.by_client == by_client]
        credits = told[-1] if told else CREDITS
        stamped = replace(message, prefix=replace(message.prefix, credits=credits))
        messages.insert(index, Sent(by_client, stamped.encode()))
    return apply


def _all(*breaks: Break) -> Break:
    def apply(messages: list[Sent]) -> None:
        for each in breaks:
            each(messages)
    return apply


def _swap_first(messages: list[Sent]) -> None:
    messages[:2] = reversed(messages[:2])


def _no_credits_left(messages: list[Sent]) -> None:
    """The last Reply takes back what is not used."""
    _prefix(LAST_REPLY, credits=sum(sent.by_client for sent in messages))(messages)


def _advance(message: Message) -> Message:
    return replace(message, prefix=replace(message.prefix, credits=message.prefix.credits + (1 << 31) - 8))


def _payload_word(at: At, word: int, value: int) -> Break:
    def change(message: Message) -> Message:
        payload = message.payload
        return replace(message, payload=payload[:4 * word] + _word(value) + payload[4 * word + 4:])
    return _value(at, change)


def _move_reads(message: Message) -> Message:
    reads = [{**entry, "rdma_position": entry["rdma_position"] + 2} for entry in message.reads]
    return replace(message, body={**message.body, "rdma_reads": reads})


def _new(kind: int, xid: int = 0, **body: Any) -> Message:
    return Message(Prefix(xid, protocol.VERSION, 0, kind), body)


GRANT = _new(protocol.GRANT)
(INTRUDER,) = Call(UNUSED, call_payload(UNUSED)).messages(protocol.DEFAULT_SIZE)
LONG_PROPERTIES = _new(protocol.CONNPROP_MIDDLE, PROPERTIES, rdma_props=[{"rdma_which": UNKNOWN, "rdma_data": bytes(4000)}])

BREAKS: dict[str, Break] = {
    "first-sender": _swap_first,
    "first-type": _all(_copy_behind(CLIENT_FINAL, SERVER_FINAL), _prefix(CLIENT_FINAL, kind=protocol.CONNPROP_MIDDLE)),
    "first-size": _property(CLIENT_FINAL, UNKNOWN, bytes(1000)),
    "first-xid": _prefix(CLIENT_FINAL, xid=0),
    "patience": _insert(CLIENT_FINAL, True, GRANT),
    "version": _prefix(NULL_REPLY, version=3),
    "type": _prefix(NULL_REPLY, kind=14),
    "encoding": _octets(EXTERNAL_REPLY, lambda octets: octets + bytes(4)),
    "xid": _payload_word(NULL_CALL, 0, UNUSED),
    "payload-type": _payload_word(NULL_CALL, 1, 1),
    "chunks": _value(WRITE_CALL, _move_reads),
    "inv-handle": _body(NULL_CALL, rdma_inv_handle=UNUSED),
    "credit": _prefix(SERVER_FINAL, credits=1),
    "grant-credit": _all(_no_credits_left, _insert(LAST_REPLY, True, GRANT), _insert(LAST_REPLY, True, GRANT)),
    "credit-backward": _prefix(LAST_REPLY, credits=0),
    "credit-advance": _value(LAST_REPLY, _advance),
    "grant-answer": _all(_insert(LAST_REPLY, False, GRANT), _insert(LAST_REPLY, True, GRANT)),
    "grant-xid": _prefix(THE_GRANT, xid=UNUSED),
    "interleaved": _insert(LONG_MIDDLE, True, INTRUDER),
    "remaining": _body(LONG_MIDDLE, rdma_remaining=4),
    "second-final": _copy_behind(CLIENT_FINAL, SERVER_FINAL),
    "property-sequence": _prefix(SERVER_FINAL, kind=protocol.CONNPROP_MIDDLE),
    "property-size": _property(SERVER_FINAL, UNKNOWN, bytes(protocol.DEFAULT_SIZE)),
    "property-total": _all(*[_insert(CLIENT_FINAL, False, LONG_PROPERTIES)] * 5),
    "property-value": _property(SERVER_FINAL, protocol.RBSIZ, bytes(8)),
    "size": _property(CLIENT_FINAL, protocol.RBSIZ, _word(1024)),
    "send-size": _property(CLIENT_FINAL, protocol.SBSIZ, _word(1024)),
    "segment-size": _property(SERVER_FINAL, protocol.RSSIZ, _word(4096)),
    "segment-count": _property(SERVER_FINAL, protocol.RCSIZ, _word(2)),
    "reverse": _property(CLIENT_FINAL, protocol.BRS, _word(protocol.REVERSE_NONE)),
    "xid-in-use": _copy_behind(NULL_CALL, NULL_CALL),
    "reply": _copy_behind(NULL_REPLY, NULL_REPLY),
    "returned-chunks": _body(READ_REPLY, rdma_writes=[]),
    "reply-chunk-unused": _body(LONG_END, rdma_provisional_reply={"rdma_target": [segment(UNUSED, 65536, 0)]}),
    "invalidation": _invalidates(THE_GRANT, WRITE_HANDLE),
    "invalidated-handle": _invalidates(WRITE_REPLY, UNUSED),
    "error": _prefix(THE_ERROR, xid=UNUSED),
    "error-code": _body(THE_ERROR, rdma_err=77),
}
