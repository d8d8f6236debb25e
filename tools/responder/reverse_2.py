"""A responder of version 2 that makes Calls of its own, with and without mistakes."""

import struct
from collections.abc import Sequence
from dataclasses import replace

import protocol
from behaviours_2 import PROPERTIES, UNKNOWN_TYPE, Behaviour2
from conveyed import Call, segment
from header import words
from message import Message, Prefix
from proxy_2 import Asked
from rpc import CALL, REPLY

# NULL of the callback program; a service does not look at what follows it.
HEADER = struct.Struct(">10I")
PROGRAM = 0x40000000
# A page, which is more than one message has; and nearly what the messages have together that a client takes for one.
LONG, LONGEST = 4096 - HEADER.size, 40_000
HUGE = 1 << 30


class CallsBack(Behaviour2):
    """Makes a Call of its own now and then, of each kind in turn, under the XID of a Call of the client: those of both directions
    have nothing to do with each other (section 3.1.5.4)."""

    properties = PROPERTIES | {protocol.BRS: protocol.REVERSE_NONE}
    # Nobody takes Calls of the server before the client has a session.
    PEACE, EVERY = 40, 4

    def __init__(self) -> None:
        self._replies = self._count = 0

    def reply_2(self, proxy, asked: Asked, message: bytes) -> None:
        self._replies += 1
        if self._replies > self.PEACE and self._replies % self.EVERY == 0:
            forms = _forms(asked.xid)
            proxy.call_back_2(*forms[self._count % len(forms)])
            self._count += 1
        proxy.reply_2(asked, message)


def _forms(xid: int) -> list[tuple[str, Sequence[Message]]]:
    payload = HEADER.pack(xid, CALL, 2, PROGRAM, 1, 0, 0, 0, 0, 0)
    call, target = Call(xid, payload), segment(0x1234, 4096, 0x100000)
    prefix = Prefix(xid, protocol.VERSION, 0, protocol.CALL_MIDDLE)
    (inline,) = call.messages(4096)
    start = Message(prefix, {"rdma_remaining": len(payload) - 20}, payload[:20])

    def one(call: Call) -> Sequence[Message]:
        return call.messages(4096)

    return [("NULL", [inline]),
            ("NULL in fragments", replace(call, payload=payload + bytes(LONG)).messages(4096)),
            ("NULL in ten messages", replace(call, payload=payload + bytes(LONGEST)).messages(4096)),
            ("NULL in small fragments", call.messages(72)),
            ("Read chunk", one(replace(call, reads=[(40, target)]))),
            ("Write chunk", one(replace(call, writes=[[target]]))),
            ("empty Write chunk", one(replace(call, writes=[[]]))),
            ("Reply chunk", one(replace(call, reply=[target]))),
            ("Call chunk", one(replace(call, call_chunk=[target]))),
            ("Read chunk and Reply chunk", one(replace(call, reads=[(40, target)], reply=[target]))),
            ("two XIDs", one(replace(call, payload=words(xid ^ 1) + payload[4:]))),
            ("Reply in a Call", one(replace(call, payload=payload[:4] + words(REPLY) + payload[8:]))),
            ("half a word", one(replace(call, payload=payload[:6]))),
            ("a handle of nothing", one(replace(call, inv_handle=0x1234))),
            ("unknown type", [Message(replace(prefix, kind=UNKNOWN_TYPE))]),
            ("nothing remains", [replace(start, body={"rdma_remaining": 0})]),
            ("too much remains", [replace(start, body={"rdma_remaining": HUGE})]),
            ("an end too early", [start, replace(inline, payload=payload[24:])])]


class CallsAtOnce(Behaviour2):
    """Makes many Calls of its own of one kind, as far as there are credits for them, with one Reply in `every`."""

    properties = CallsBack.properties
    PEACE = 40

    def __init__(self, kind: int = 0, every: int = 20, at_once: int = 60) -> None:
        self._replies = 0
        self._kind, self._every, self._at_once = kind, every, at_once

    def reply_2(self, proxy, asked: Asked, message: bytes) -> None:
        self._replies += 1
        if self._replies > self.PEACE and self._replies % self._every == 0:
            for number in range(self._at_once):
                _, messages = _forms(asked.xid ^ number << 16)[self._kind]
                proxy.call_back_2("NULL at once", messages)
        proxy.reply_2(asked, message)


BY_NAME = {"calls-back-2": CallsBack, "calls-back-at-once": CallsAtOnce}
