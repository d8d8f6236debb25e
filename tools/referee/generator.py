"""The cases of the differential test: messages that are well formed, and messages and sequences that are not."""

import random
import struct
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from typing import Any

import protocol
from message import Message, Prefix, error
from receiver import Limits

AMPLE = Limits(read_segments=64, read_chunks=16, write_chunks=16, write_segments=64, chunk_segments=32,
               chunk_bytes=(1 << 32) - 1, message_bytes=1 << 20)
FLOOR = Limits(read_segments=32, read_chunks=2, write_chunks=1, write_segments=16, chunk_segments=16,
               chunk_bytes=1 << 20, message_bytes=1 << 17)
TIGHT = Limits(read_segments=2, read_chunks=1, write_chunks=1, write_segments=2, chunk_segments=2,
               chunk_bytes=4096, message_bytes=64)
NOTHING = Limits(read_segments=0, read_chunks=0, write_chunks=0, write_segments=0, chunk_segments=0,
                 chunk_bytes=0, message_bytes=0)
EDGES = (0, 1, 2, 3, 4, 5, 8, 13, 14, 100, 0x7fffffff, 0x80000000, 0xfffffffc, 0xffffffff)
KINDS = tuple(protocol.HEADERS)
XIDS = 6
MOST_MESSAGES = 6


class Generator:
    """Makes cases; the same for the same seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def cases(self, count: int) -> Iterator[dict[str, Any]]:
        """Cases with so many messages in all."""
        scenes = self._scenes()
        while count > 0:
            scene = self._random.choice(scenes)
            messages = [self._touched(octets) for octets in scene()][:min(count, MOST_MESSAGES)]
            count -= len(messages)
            if messages:
                yield {"role": self._random.choice(("server", "server", "client")), "limits": self._limits(),
                       "awaited": sorted(self._random.sample(range(1, XIDS + 1), 3)),
                       "messages": [octets.hex() for octets in messages]}

    def _scenes(self) -> tuple[Callable[[], list[bytes]], ...]:
        return (self._unrelated, self._calls, self._calls, self._calls, self._mutated, self._mutated, self._mutated,
                self._broken_chunks, self._broken_chunks, self._continued, self._disturbed, self._disturbed,
                self._exchange, self._sized, self._placed, self._placed, self._placed)

    def _limits(self) -> dict[str, int]:
        limits = asdict(self._random.choice((AMPLE, AMPLE, AMPLE, AMPLE, FLOOR, FLOOR, TIGHT, NOTHING)))
        if self._random.random() < 0.4:
            name = self._random.choice(list(limits))
            limits[name] = self._random.choice((0, 1, 2, 3, 4, 16, 4096, 8192, limits[name]))
        return limits

    # Scenes

    def _unrelated(self) -> list[bytes]:
        return [self.message().encode() for _ in range(self._random.randint(1, 3))]

    def _calls(self) -> list[bytes]:
        return [self.message(self._random.choice((protocol.CALL_EXTERNAL, protocol.CALL_INLINE, protocol.CALL_INLINE,
                                                  protocol.REPLY_INLINE))).encode()
                for _ in range(self._random.randint(1, 4))]

    def _mutated(self) -> list[bytes]:
        messages = self._continued() if self._random.random() < 0.2 else [self.message().encode()]
        at = self._random.randrange(len(messages))
        for _ in range(self._random.choice((1, 1, 1, 2, 4))):
            messages[at] = self.mutate(messages[at])
        return messages

    def _broken_chunks(self) -> list[bytes]:
        """Chunk lists with one rule broken."""
        kind = self._random.choice((protocol.CALL_EXTERNAL, protocol.CALL_INLINE, protocol.REPLY_EXTERNAL))
        body = {**self.message(kind).body}
        match self._random.randrange(8):
            case 0:
                body["rdma_inv_handle"] = self._random.choice((1, 5, 0xffffffff))
            case 1 if body.get("rdma_reads"):
                self._random.shuffle(body["rdma_reads"])
            case 2 if body.get("rdma_reads"):
                self._random.choice(body["rdma_reads"])["rdma_position"] = self._random.choice((0, 1, 2, 6, 4096, 0xffffffff))
            case 3 if "rdma_call" in body:
                body["rdma_call"] = self._random.choice(([], self._reads(), self._call_chunk() * 9))
            case 4 if body.get("rdma_reads"):
                body["rdma_reads"][0]["rdma_target"].update(rdma_offset=(1 << 64) - 1, rdma_length=0xffffffff)
            case 5 if "rdma_call" in body:
                body["rdma_call"], body["rdma_reads"] = body["rdma_reads"], body["rdma_call"]
            case 6 if "rdma_reply" in body:
                body["rdma_reply"] = self._random.choice((None, {"rdma_target": []}))
            case _:
                name = "rdma_writes" if "rdma_writes" in body else "rdma_provisional_writes"
                body[name] = [self._chunk(self._random.choice((0, 1, 3, 17, 33))) for _ in range(self._random.randint(0, 4))]
        return [Message(self._prefix(kind), body, self._payload(kind)).encode()]

    def _placed(self) -> list[bytes]:
        """Read chunks where they belong, in one message, behind fragments or beside a Call chunk; often one rule is broken."""
        reduced = 40 + 4 * self._random.randint(0, 60)
        chunks, end, unreduced = list[tuple[int, int]](), 40, reduced
        for _ in range(self._random.choice((1, 2, 2, 3, 4))):
            length = self._random.choice((1, 2, 3, 4, 5, 100, 4095, 4096))
            first = end + -end % 4
            # Most often at an end, where a mistake by a word tells.
            position = self._random.choice((first, unreduced, first + 4 * self._random.randint(0, (unreduced - first) // 4)))
            chunks.append((position, length))
            end, unreduced = position + length, unreduced + length + -length % 4
        handle = None
        if self._random.random() < 0.6:
            chunks, handle = self._misplaced(chunks, unreduced)
        entries: list[dict[str, Any]] = [{"rdma_position": position, "rdma_target": part}
                                         for position, length in chunks for part in self._cut(length)]
        xid = self._random.randint(1, XIDS)
        body: dict[str, Any] = {"rdma_inv_handle": handle or self._random.choice((0, entries[0]["rdma_target"]["rdma_handle"])),
                                "rdma_reads": entries, "rdma_provisional_writes": [], "rdma_provisional_reply": None}
        before = [] if handle is None else [Message(Prefix(XIDS, protocol.VERSION, 1, protocol.REPLY_EXTERNAL), {
            "rdma_writes": [], "rdma_reply": {"rdma_target": [{"rdma_handle": handle, "rdma_length": 8, "rdma_offset": 0}]}}).encode()]
        if self._random.random() < 0.3:
            body["rdma_call"] = [{"rdma_position": 0, "rdma_target": part} for part in self._cut(reduced)]
            return [*before, Message(Prefix(xid, protocol.VERSION, 1, protocol.CALL_EXTERNAL), body).encode()]
        payload = struct.pack(">II", xid, 0) + self._random.randbytes(reduced - 8)
        last = Message(Prefix(xid, protocol.VERSION, 1, protocol.CALL_INLINE), body, payload)
        return [*before, *(self._fragments(last) if self._random.random() < 0.5 else [last.encode()])]

    def _misplaced(self, chunks: list[tuple[int, int]], unreduced: int) -> tuple[list[tuple[int, int]], int | None]:
        """The same with one rule broken, or the handle of another message."""
        at = self._random.randrange(len(chunks))
        position, length = chunks[at]
        wrong = {"unaligned": position + 2, "zero": 0, "in the header": 36, "in the one before": position - 4,
                 "behind the end": unreduced - (length + -length % 4) + 4, "order": position}
        rule = self._random.choice((*wrong, "handle"))
        if rule == "handle":
            return chunks, self._random.getrandbits(32) | 1
        changed = [*chunks[:at], (max(0, wrong[rule]), length), *chunks[at + 1:]]
        return (changed[::-1] if rule == "order" else changed), None

    def _cut(self, length: int) -> list[dict[str, Any]]:
        """Segments of so many octets in all."""
        first = self._random.choice((length, length // 2))
        parts = [first, length - first] if first < length else [length]
        return [{"rdma_handle": self._random.getrandbits(32), "rdma_length": part, "rdma_offset": 4096} for part in parts]

    def _continued(self) -> list[bytes]:
        """The fragments of one message, in order."""
        last = self.message(self._random.choice((protocol.CALL_INLINE, protocol.REPLY_INLINE)))
        return self._fragments(replace(last, payload=last.payload + self._random.randbytes(4 * self._random.randint(2, 20))))

    def _fragments(self, last: Message) -> list[bytes]:
        """A message in fragments."""
        kind = protocol.CALL_MIDDLE if last.prefix.kind == protocol.CALL_INLINE else protocol.REPLY_MIDDLE
        fragments, payload = [], last.payload
        for number in range(self._random.randint(1, 4)):
            part = min(self._random.choice((8, 8, 9, 12, 16, 20) if number == 0 else (4, 4, 8, 9, 12)), len(payload) - 4)
            if part < 4:
                break
            prefix = replace(last.prefix, kind=kind)
            fragments.append(Message(prefix, {"rdma_remaining": len(payload) - part}, payload[:part]))
            payload = payload[part:]
        return [each.encode() for each in (*fragments, replace(last, payload=payload))]

    def _disturbed(self) -> list[bytes]:
        """Fragments with something wrong about their order."""
        messages = self._continued()
        at = self._random.randint(1, len(messages) - 1) if len(messages) > 1 else 1
        match self._random.randrange(9):
            case 0 | 1:
                messages.insert(at, self.message(self._random.choice((protocol.GRANT, protocol.ERROR))).encode())
            case 2:
                messages.insert(at, self.message().encode())
            case 3:
                messages = [each for pair in zip(messages, self._continued(), strict=False) for each in pair]
            case 4:
                messages[at - 1] = _with_word(messages[at - 1], 4, self._random.choice((*EDGES, len(messages[0]))))
            case 5:
                messages[at % len(messages)] = _with_word(messages[at % len(messages)], 0, self._random.randint(1, XIDS))
            case 6:
                messages[at % len(messages)] = _with_word(messages[at % len(messages)], 3, self._random.choice(KINDS))
            case 7:
                del messages[at - 1]
            case _:
                messages.insert(at, messages[at - 1])
        return messages + ([self.message(protocol.CALL_INLINE).encode()] if self._random.random() < 0.5 else [])

    def _exchange(self) -> list[bytes]:
        """Properties, in one message or several."""
        kinds = [protocol.CONNPROP_MIDDLE] * self._random.choice((0, 0, 1, 2)) + [protocol.CONNPROP_FINAL]
        match self._random.randrange(6):
            case 0:
                kinds.insert(self._random.randint(0, len(kinds)), self._random.choice(KINDS))
            case 1:
                kinds += [self._random.choice((protocol.CONNPROP_FINAL, protocol.CONNPROP_MIDDLE))]
            case 2:
                kinds += [protocol.CALL_INLINE]
        return [self.message(kind).encode() for kind in kinds]

    def _sized(self) -> list[bytes]:
        """Properties about as long as all may be, and lists that are long."""
        if self._random.random() < 0.5:
            lengths = [self._random.choice((4000, 5000, 8156, 8160, 8164)) for _ in range(self._random.randint(2, 4))]
            return [Message(self._prefix(protocol.CONNPROP_MIDDLE),
                            {"rdma_props": [{"rdma_which": 99, "rdma_data": bytes(length)}]}).encode() for length in lengths]
        count = self._random.choice((15, 16, 17, 32, 33, 64, 65, 150))
        in_chunk = self._random.choice((1, 2, 16, 200))
        reads = [{"rdma_position": 64 + 4 * (each // in_chunk), "rdma_target": self._segment()} for each in range(count)]
        body = {"rdma_inv_handle": 0, "rdma_reads": reads, "rdma_provisional_writes": [], "rdma_provisional_reply": None}
        return [Message(self._prefix(protocol.CALL_INLINE), body, self._payload(protocol.CALL_INLINE)).encode()]

    # Values

    def message(self, kind: int | None = None) -> Message:
        """A message that is well formed."""
        kind = self._random.choice(KINDS) if kind is None else kind
        prefix = self._prefix(kind)
        if kind == protocol.ERROR:
            code = self._random.choice((*protocol.ERRORS, *protocol.ERRORS, 0, 12, 99))
            arguments = {protocol.ERR_VERS: 2, protocol.WRITE_RESOURCE: 2, protocol.READ_CHUNKS: 1, protocol.WRITE_CHUNKS: 1,
                         protocol.SEGMENTS: 1, protocol.REPLY_RESOURCE: 1}.get(code, 0)
            return error(prefix, prefix.credits, code, *(self._random.choice(EDGES) for _ in range(arguments)))
        return Message(prefix, self._body(kind, prefix.xid), self._payload(kind, prefix.xid))

    def _prefix(self, kind: int) -> Prefix:
        return Prefix(self._random.randint(1, XIDS), protocol.VERSION, self._random.choice((1, 32, 64, *EDGES)), kind)

    def _body(self, kind: int, xid: int) -> dict[str, Any]:
        if kind in protocol.PROPERTIES:
            return {"rdma_props": [self._property() for _ in range(self._random.choice((0, 1, 2, 5, 6)))]}
        if kind in protocol.MIDDLES:
            return {"rdma_remaining": self._random.choice((4, 8, 48, 4096, xid))}
        if kind == protocol.REPLY_INLINE:
            return {"rdma_writes": self._writes()}
        if kind == protocol.REPLY_EXTERNAL:
            return {"rdma_writes": self._writes(), "rdma_reply": self._chunk()}
        if kind == protocol.GRANT:
            return {}
        body: dict[str, Any] = {"rdma_inv_handle": 0}
        bare = self._random.random() < 0.3
        if kind == protocol.CALL_EXTERNAL:
            body["rdma_call"] = self._call_chunk()
        body["rdma_reads"] = [] if bare else self._reads()
        body["rdma_provisional_writes"] = [] if bare else self._writes()
        body["rdma_provisional_reply"] = None if bare or self._random.random() < 0.5 else self._chunk()
        handles = [each["rdma_handle"] for each in Message(self._prefix(kind), body).segments()]
        if handles and self._random.random() < 0.5:
            body["rdma_inv_handle"] = self._random.choice(handles)
        return body

    def _property(self) -> dict[str, Any]:
        which = self._random.choice((1, 2, 3, 4, 5, 5, 6, 7, 0, 0xffffffff))
        if which in protocol.WORD_PROPERTIES and self._random.random() < 0.9:
            word = self._random.choice((0, 1, 2, 3) if which == protocol.BRS else (*EDGES, 1024, 4096, 8192))
            return {"rdma_which": which, "rdma_data": struct.pack(">I", word)}
        return {"rdma_which": which, "rdma_data": self._random.randbytes(self._random.choice((0, 0, 1, 3, 4, 5, 8, 40)))}

    def _reads(self) -> list[dict[str, Any]]:
        entries, position = [], 0
        for _ in range(self._random.choice((0, 1, 1, 2, 3))):
            position += 4 * self._random.randint(1, 50)
            entries += [{"rdma_position": position, "rdma_target": self._segment()}
                        for _ in range(self._random.choice((1, 1, 2, 5)))]
        return entries

    def _call_chunk(self) -> list[dict[str, Any]]:
        return [{"rdma_position": 0, "rdma_target": self._segment()} for _ in range(self._random.choice((1, 1, 2, 3)))]

    def _writes(self) -> list[dict[str, Any]]:
        return [self._chunk() for _ in range(self._random.choice((0, 0, 1, 1, 2, 4)))]

    def _chunk(self, count: int | None = None) -> dict[str, Any]:
        count = self._random.choice((0, 1, 1, 2, 4)) if count is None else count
        return {"rdma_target": [self._segment() for _ in range(count)]}

    def _segment(self) -> dict[str, Any]:
        length = self._random.choice((0, 1, 100, 4096, 4096, 4096, 4096, 8192, 65536, 65536, 1 << 20, 0xffffffff))
        offset = self._random.choice((0, 4096, self._random.getrandbits(48), (1 << 64) - 4096))
        return {"rdma_handle": self._random.getrandbits(32), "rdma_length": length, "rdma_offset": offset}

    def _payload(self, kind: int, xid: int | None = None) -> bytes:
        if kind not in protocol.FRAGMENTS:
            return b""
        xid = self._random.randint(1, XIDS) if xid is None else xid
        words = self._random.choice((0, 1, 4, 9, 30))
        return struct.pack(">II", xid, kind in protocol.REPLIES) + self._random.randbytes(4 * words)

    # Mutations

    def _touched(self, octets: bytes) -> bytes:
        """Sometimes what any message may suffer."""
        return self.mutate(octets) if self._random.random() < 0.04 else octets

    def mutate(self, octets: bytes) -> bytes:
        """A message with something changed."""
        words = max(1, len(octets) // 4)
        at = self._random.choice((self._random.randrange(words), self._random.randrange(min(words, 16))))
        match self._random.randrange(10):
            case 0 if octets:
                bit = self._random.randrange(8 * len(octets))
                changed = bytearray(octets)
                changed[bit // 8] ^= 1 << bit % 8
                return bytes(changed)
            case 1:
                return octets[:self._random.randint(0, len(octets))]
            case 2:
                return octets[:4 * self._random.randint(0, words)]
            case 3:
                return octets + self._random.randbytes(self._random.choice((1, 4, 16)))
            case 4 | 5:
                return _with_word(octets, at, self._random.choice((*EDGES, len(octets), len(octets) - 4 * at)))
            case 6:
                return octets[:4 * at] + octets[4 * at + 4:]
            case 7:
                return octets[:4 * at] + struct.pack(">I", self._random.choice(EDGES)) + octets[4 * at:]
            case 8:
                return _with_word(octets, 3, self._random.choice((*EDGES, *KINDS)))
            case _:
                return _with_word(octets, 1, self._random.choice(EDGES)) if self._random.random() < 0.3 else \
                    _with_word(octets, self._random.randrange(4, 12), self._random.choice(EDGES))


def _with_word(octets: bytes, at: int, word: int) -> bytes:
    """A message with one of its words replaced, if it has that many."""
    if 4 * at + 4 > len(octets):
        return octets
    return octets[:4 * at] + struct.pack(">I", word & 0xffffffff) + octets[4 * at + 4:]
