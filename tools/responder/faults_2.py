"""A responder of version 2 whose Replies, and what comes beside them, are wrong."""

import itertools
import random
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import protocol
from behaviours_2 import OTHER_XID, UNKNOWN_TYPE, Behaviour2
from conveyed import Call, Reply, call_payload, reply_payload, segment
from generator import Generator
from header import words
from message import Message, Prefix, Segment, error
from proxy_2 import CREDIT_SECONDS, Asked

# What a client has heard before it has memory at hand for errors.
PEACE = 30
# A connection that has lived for so long is followed by the next without delay.
LIFE_SECONDS = 6
HUGE = 1 << 30
# More fragments than a client keeps, each of two words.
MANY, LEAST = 14, 8
FAR = 1 << 20
# A segment that nobody has offered.
NOWHERE = segment(1, 64, 0)


class _Bare(Message):
    """A message whose payload is all that follows the prefix, whatever its type has."""

    @property
    def header(self) -> bytes:
        """The prefix."""
        return self.prefix.encode()


def _message(kind: int, xid: int, payload: bytes = b"", **body: Any) -> Message:
    return Message(Prefix(xid, protocol.VERSION, 0, kind), body, payload)


def _middle(xid: int, remaining: int, payload: bytes) -> Message:
    return _message(protocol.REPLY_MIDDLE, xid, payload, rdma_remaining=remaining)


def _inline(xid: int, payload: bytes) -> Message:
    return _message(protocol.REPLY_INLINE, xid, payload, rdma_writes=[])


def _external(xid: int, *segments: Segment) -> Message:
    """A long Reply, in a chunk of these segments; without any, in none."""
    return _message(protocol.REPLY_EXTERNAL, xid, rdma_writes=[], rdma_reply={"rdma_target": segments} if segments else None)


def _noises(xid: int) -> list[tuple[str, Message]]:
    """Messages under an XID that no Call of the client has, to which it has nothing to say."""
    return [("GRANT", _message(protocol.GRANT, 0)),
            ("GRANT with an XID", _message(protocol.GRANT, xid)),
            ("error that answers nothing", error(Prefix(xid, protocol.VERSION, 0, 0), 0, protocol.SYSTEM)),
            ("error of no code", error(Prefix(xid, protocol.VERSION, 0, 0), 0, 99)),
            ("error cut off", _Bare(Prefix(xid, protocol.VERSION, 0, protocol.ERROR), {}, words(protocol.READ_CHUNKS))),
            ("error of another version", error(Prefix(xid, 1, 0, 0), 0, protocol.SYSTEM))]


def _answered(xid: int) -> list[tuple[str, Message]]:
    """The same, which it answers with an error wherever they come."""
    return [("unknown type", _message(UNKNOWN_TYPE, xid)),
            ("a type of version 1", _message(0, xid)),
            ("version 3", replace(_inline(xid, reply_payload(xid)), prefix=Prefix(xid, 3, 0, protocol.REPLY_INLINE))),
            ("version 1", replace(_inline(xid, reply_payload(xid)), prefix=Prefix(xid, 1, 0, 0))),
            ("properties", _message(protocol.CONNPROP_FINAL, xid, rdma_props=[])),
            ("more properties", _message(protocol.CONNPROP_MIDDLE, xid, rdma_props=[]))]


def _between(xid: int) -> list[tuple[str, Message]]:
    """The same, which is wrong between fragments alone."""
    return [("another Reply", _inline(xid, reply_payload(xid))),
            ("another fragment", _middle(xid, 8, reply_payload(xid)[:8])),
            ("another Call", Call(xid, call_payload(xid)).messages(4096)[0]),
            ("a long Reply", _external(xid, NOWHERE))]


class Babbles(Behaviour2):
    """Sends something that is no answer to anything in front of each Reply, of each kind in turn."""

    def __init__(self) -> None:
        self._count = 0

    def reply_2(self, proxy, asked: Asked, message: bytes) -> None:
        self._count += 1
        xid = (OTHER_XID + self._count) & 0xffffffff
        silent, answered = _noises(xid), _answered(xid)
        silent += [("Reply to nothing", _inline(xid, reply_payload(xid))),
                   ("long Reply to nothing", _external(xid, NOWHERE))]
        kinds = silent if self._count < PEACE else silent + answered
        name, noise = kinds[self._count % len(kinds)]
        if self._count % 7 == 0:
            # Less than a prefix.
            proxy.send_as_is(words(asked.xid, protocol.VERSION, 1)[:self._count % 13])
        if any(name == other for other, _ in answered):
            proxy.expect(xid, name)
        proxy.end.send([noise])
        proxy.reply_2(asked, message)


class Splits(Behaviour2):
    """Sends each Reply without chunks in several messages, with something between them that does not belong there, of each
    kind in turn."""

    def __init__(self) -> None:
        self._count = 0

    def reply_2(self, proxy, asked: Asked, message: bytes) -> None:
        if any(asked.message.segments()):
            return proxy.reply_2(asked, message)
        self._count += 1
        xid = (OTHER_XID + self._count) & 0xffffffff
        answered = _answered(xid) + _between(xid)
        kinds = _noises(xid) + (answered if self._count > PEACE else [])
        name, noise = kinds[self._count % len(kinds)]
        size = min(proxy.end.size, 40 + (len(message) // 3 & ~3))
        first, *rest = Reply(asked.xid, message).messages(size)
        if rest and any(name == other for other, _ in answered):
            proxy.expect(xid, name)
        proxy.end.send([first, *([noise] if rest else []), *rest])


Fault = Callable[[int, bytes], list[Message]]


def _stands(xid: int, message: bytes) -> list[Message]:
    half = len(message) // 2 & ~3
    fragment = _middle(xid, len(message) - half, message[:half])
    return [fragment, replace(fragment, payload=message[half:])]


def _many(xid: int, message: bytes) -> list[Message]:
    padded = message + bytes(MANY * LEAST)
    fragments = [_middle(xid, (MANY - number) * LEAST, padded[number * LEAST:][:LEAST]) for number in range(MANY)]
    return [*fragments, _inline(xid, padded[MANY * LEAST:][:LEAST])]


# What is wrong with a Reply, each with a name.
FAULTS: list[tuple[str, Fault]] = [
    ("what remains does not fall", _stands),
    ("nothing remains behind a fragment", lambda xid, message: [_middle(xid, 0, message)]),
    ("more remains than there is room for", lambda xid, message: [_middle(xid, HUGE, message)]),
    ("more fragments than anybody keeps", _many),
    ("an end too early", lambda xid, message: [_middle(xid, 100, message[:8]), _inline(xid, message[8:])]),
    ("a long Reply without a chunk", lambda xid, message: [_external(xid)]),
    ("a Reply chunk that nobody offered", lambda xid, message: [_external(xid, NOWHERE)]),
    ("a Write chunk that nobody offered",
     lambda xid, message: [_message(protocol.REPLY_INLINE, xid, message, rdma_writes=[{"rdma_target": [NOWHERE]}])]),
    ("two XIDs", lambda xid, message: [_inline(xid, words(xid ^ 1) + message[4:])]),
    ("a Call in a Reply", lambda xid, message: [_inline(xid, message[:4] + words(0) + message[8:])]),
    ("no RPC message", lambda xid, message: [_inline(xid, message[:4])])]
# Credit values by what they differ from what was promised: further back than all that there ever were, and ahead of all
# that there can be (section 4.2.1).
CREDITS = [("credits that go back", -FAR), ("credits without end", (1 << 31) + FAR)]


class Garbles(Behaviour2):
    """Sends a Reply with these faults in its place, one on each connection when that has lived for a while, and the Reply when
    the Call comes again."""

    def __init__(self, *numbers: int) -> None:
        self._numbers = list(numbers)
        self._garbled: set[int] = set()
        self._spoilt: list = []

    def reply_2(self, proxy, asked: Asked, message: bytes) -> None:
        due = (self._numbers and proxy not in self._spoilt and time.monotonic() - proxy.since > LIFE_SECONDS
               and asked.xid not in self._garbled and not any(asked.message.segments()))
        if not due:
            return proxy.reply_2(asked, message)
        self._spoilt.append(proxy)
        self._garbled.add(asked.xid)
        number = self._numbers.pop(0)
        if number < len(FAULTS):
            name, fault = FAULTS[number]
            proxy.end.send(fault(asked.xid, message))
        else:
            name, step = CREDITS[number - len(FAULTS)]
            proxy.send_now(_inline(asked.xid, message), (proxy.end.told + step) & 0xffffffff)
        print(f"garbled: {name}", flush=True)


class Floods(Behaviour2):
    """Sends as many RDMA2_GRANT as the client takes in front of some Replies; and to others Replies to nothing, of which it
    has promised to take one fewer."""

    EVERY, COUNT = 10, 200

    def __init__(self) -> None:
        self._count = 0

    def reply_2(self, proxy, asked: Asked, message: bytes) -> None:
        self._count += 1
        if self._count % self.EVERY == 0:
            for _ in range(self.COUNT):
                proxy.post_as_is(_message(protocol.GRANT, 0).encode())
        else:
            xid = (OTHER_XID + self._count) & 0xffffffff
            for _ in range(proxy.end.left + 1 if self._count % self.EVERY == 1 else 0):
                proxy.send_now(_inline(xid, reply_payload(xid)))
        proxy.reply_2(asked, message)


class Mutates(Behaviour2):
    """Sends messages with something wrong, so many in all and some in front of each Reply; and on each connection that has lived
    for a while a Reply that has something wrong itself."""

    says_anything = True
    BURST, SEED, LONGEST = 8, 8166, 4096

    def __init__(self, count: int) -> None:
        self._left = count
        self._heard: Counter = Counter()
        self._spoilt: list = []
        self._random = random.Random(self.SEED)
        self._generator = Generator(self.SEED)
        cases = (case["messages"] for case in self._generator.cases(1 << 62))
        self._messages = map(bytes.fromhex, itertools.chain.from_iterable(cases))

    def reply_2(self, proxy, asked: Asked, message: bytes) -> None:
        self._heard[proxy] += 1
        burst = min(self.BURST, self._left) if self._heard[proxy] > PEACE else 0
        ends = dict[int, Message]()
        for octets in itertools.islice(self._messages, burst):
            proxy.post_as_is(octets[:self.LONGEST])
            xid, kind = int.from_bytes(octets[:4]), int.from_bytes(octets[12:16])
            if kind == protocol.REPLY_MIDDLE:
                ends[xid] = _inline(xid, reply_payload(xid))
            elif kind == protocol.CALL_MIDDLE:
                ends[xid] = Call(xid, call_payload(xid)).messages(self.LONGEST)[0]
        # No Reply may come before the end of what was begun.
        for end in ends.values():
            proxy.post_as_is(end.encode())
        if burst:
            # Its answer comes behind all others: for more of those at once the client would find no buffers.
            xid = (OTHER_XID + self._left) & 0xffffffff
            proxy.call_back_2("NULL", Call(xid, call_payload(xid)).messages(self.LONGEST))
            proxy.await_answers(CREDIT_SECONDS)
            self._left -= burst
        spoils = self._left or not self._spoilt
        if spoils and proxy not in self._spoilt and time.monotonic() - proxy.since > LIFE_SECONDS:
            self._spoilt.append(proxy)
            self._spoil(proxy, asked, message)
        elif not spoils:
            print("all was sent", flush=True)
        proxy.reply_2(asked, message)

    def _spoil(self, proxy, asked: Asked, message: bytes) -> None:
        """Send a Reply whose header, or what RPC begins with, has something wrong."""
        good = self._random.choice((_inline(asked.xid, message), _external(asked.xid, *(asked.message.reply_chunk or ()))))
        front = len(good.header) + 8
        octets = good.encode()
        proxy.post_as_is((self._generator.mutate(octets[:front]) + octets[front:])[:self.LONGEST])
        print("spoilt a Reply", flush=True)


BY_NAME = {"babbles-2": Babbles, "splits-2": Splits, "garbles-2": Garbles, "floods-2": Floods,
           "mutates-2": Mutates}
