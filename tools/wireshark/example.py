"""Messages of version 2 made by hand, from the draft's section 8, and a connection that has one of each type."""

import struct
from enum import IntEnum

from link import Moved, Sent

VERSION = 2
SERVER_CREDITS = CLIENT_CREDITS = 8
NFS, NFS3, CALLBACK = 100003, 3, 0x40000000
NULL, READ, WRITE, READDIR = 0, 6, 7, 16
HANDLE = bytes(range(16))


class Type(IntEnum):
    """The types of headers (the draft, section 8.4)."""

    ERROR = 4
    GRANT = 5
    CONNPROP_MIDDLE = 6
    CONNPROP_FINAL = 7
    CALL_EXTERNAL = 8
    CALL_MIDDLE = 9
    CALL_INLINE = 10
    REPLY_EXTERNAL = 11
    REPLY_MIDDLE = 12
    REPLY_INLINE = 13


def words(*values: int) -> bytes:
    """Unsigned words of 32 bits."""
    return struct.pack(f">{len(values)}I", *values)


def opaque(data: bytes) -> bytes:
    """Octets of variable length."""
    return words(len(data)) + data + bytes(-len(data) % 4)


def message(kind: int, xid: int, credit: int, body: bytes = b"") -> bytes:
    """A prefix and what follows."""
    return words(xid, VERSION, credit, kind) + body


def segment(handle: int, length: int, offset: int) -> bytes:
    """A plain segment."""
    return struct.pack(">IIQ", handle, length, offset)


def read_list(*entries: tuple[int, bytes]) -> bytes:
    """Segments with their Positions."""
    return b"".join(words(1, position) + plain for position, plain in entries) + words(0)


def chunk(*segments: bytes) -> bytes:
    """A Write chunk."""
    return words(len(segments)) + b"".join(segments)


def write_list(*chunks: bytes) -> bytes:
    """Write chunks."""
    return b"".join(words(1) + each for each in chunks) + words(0)


def reply_chunk(present: bytes | None = None) -> bytes:
    """A Reply chunk or none."""
    return words(0) if present is None else words(1) + present


def properties(*values: tuple[int, bytes]) -> bytes:
    """Transport properties."""
    return words(len(values)) + b"".join(words(which) + opaque(data) for which, data in values)


def call(xid: int, procedure: int, arguments: bytes = b"", program: int = NFS, version: int = NFS3) -> bytes:
    """An RPC Call without a credential."""
    return words(xid, 0, 2, program, version, procedure, 0, 0, 0, 0) + arguments


def reply(xid: int, results: bytes = b"") -> bytes:
    """The Reply to a Call that was executed."""
    return words(xid, 1, 0, 0, 0, 0) + results


def readdir_call(xid: int) -> bytes:
    """NFS version 3 READDIR."""
    return call(xid, READDIR, opaque(HANDLE) + bytes(16) + words(8192))


def readdir_reply(xid: int, names: list[str]) -> bytes:
    """Its results, with entries of these names."""
    entries = b"".join(words(1, 0, 100 + index) + opaque(name.encode()) + words(0, 1 + index)
                       for index, name in enumerate(names))
    return reply(xid, words(0, 0) + bytes(8) + entries + words(0, 1))


def write_call(xid: int, data: bytes) -> bytes:
    """NFS version 3 WRITE."""
    return call(xid, WRITE, opaque(HANDLE) + words(0, 0, len(data), 2) + opaque(data))


def write_reply(xid: int, count: int) -> bytes:
    """Its results."""
    return reply(xid, words(0, 0, 0, count, 2) + bytes(8))


def read_call(xid: int, count: int) -> bytes:
    """NFS version 3 READ."""
    return call(xid, READ, opaque(HANDLE) + words(0, 0, count))


def read_reply(xid: int, count: int) -> bytes:
    """Its results, without the data."""
    return reply(xid, words(0, 0, count, 1, count))


class Talk:
    """What both ends send, with right credits: each message counts, and an end has a number of Receives more for the other
    (the draft, section 4.2.1)."""

    def __init__(self) -> None:
        self.all: list[Sent | Moved] = []

    def say(self, by_client: bool, kind: int, xid: int, body: bytes = b"", invalidates: int | None = None) -> None:
        """Send a message."""
        received = sum(isinstance(each, Sent) and each.by_client != by_client for each in self.all)
        credit = received + (CLIENT_CREDITS if by_client else SERVER_CREDITS)
        self.all.append(Sent(by_client, message(kind, xid, credit, body), invalidates))

    def continued(self, by_client: bool, xid: int, rpc: bytes, size: int, last: bytes) -> None:
        """Send an RPC message in parts of so many octets; the last of them with chunk lists. A GRANT goes behind the first."""
        middle, end = (Type.CALL_MIDDLE, Type.CALL_INLINE) if by_client else (Type.REPLY_MIDDLE, Type.REPLY_INLINE)
        parts = [rpc[at:at + size] for at in range(0, len(rpc), size)]
        left = len(rpc)
        for index, part in enumerate(parts[:-1]):
            left -= len(part)
            self.say(by_client, middle, xid, words(left) + part)
            if index == 0:
                self.say(by_client, Type.GRANT, 0)
        self.say(by_client, end, xid, last + parts[-1])


NO_CHUNKS_CALL, NO_CHUNKS_REPLY = words(0, 0, 0, 0), words(0)
# Not a multiple of four.
DATA = bytes(range(251)) * 20 + b"e"
NAMES = [f"a-file-with-a-long-name-{number:03}" for number in range(60)]


def connection() -> list[Sent | Moved]:
    """A client and a server that send one of each type, and move what chunks have."""
    talk = Talk()
    sizes = [(which, words(value)) for which, value in ((1, 8192), (2, 8192), (3, 1 << 20), (4, 16))]
    talk.say(True, Type.CONNPROP_FINAL, 1, properties(*sizes, (5, words(2))))
    talk.say(False, Type.CONNPROP_MIDDLE, 1, properties(*sizes))
    talk.say(False, Type.CONNPROP_FINAL, 1, properties((5, words(0)), (6, b"hello"), (77, bytes(8))))
    talk.say(True, Type.CALL_INLINE, 2, NO_CHUNKS_CALL + call(2, NULL))
    talk.say(False, Type.REPLY_INLINE, 2, NO_CHUNKS_REPLY + reply(2))
    talk.say(True, Type.CALL_INLINE, 3, NO_CHUNKS_CALL + readdir_call(3))
    talk.continued(False, 3, readdir_reply(3, NAMES), 1501, NO_CHUNKS_REPLY)
    talk.say(True, Type.GRANT, 0)
    _with_chunks(talk)
    talk.continued(True, 7, write_call(7, bytes(2000)), 1023, NO_CHUNKS_CALL)
    talk.say(False, Type.REPLY_INLINE, 7, NO_CHUNKS_REPLY + write_reply(7, 2000))
    talk.say(False, Type.CALL_INLINE, 8, NO_CHUNKS_CALL + call(8, NULL, program=CALLBACK, version=1))
    talk.say(True, Type.REPLY_INLINE, 8, NO_CHUNKS_REPLY + reply(8))
    talk.say(True, Type.CALL_INLINE, 9, NO_CHUNKS_CALL + readdir_call(9))
    talk.say(False, Type.ERROR, 9, words(10, 65536))
    return talk.all


def _with_chunks(talk: Talk) -> None:
    """A WRITE with a Read chunk of two segments; a READ with a Write chunk of two; a READDIR with body chunks."""
    # The data's place is behind the length in front of them.
    reduced = write_call(4, DATA)[:-len(DATA) - -len(DATA) % 4]
    plain = segment(0x11, 2000, 0x1000), segment(0x12, len(DATA) - 2000, 0x8000000000000ffc)
    reads = read_list(*((len(reduced), each) for each in plain))
    talk.say(True, Type.CALL_INLINE, 4, words(0) + reads + write_list() + reply_chunk() + reduced)
    talk.all.append(Moved(False, True, 0x11, 0x1000, DATA[:2000]))
    talk.all.append(Moved(False, True, 0x12, 0x8000000000000ffc, DATA[2000:]))
    talk.say(False, Type.REPLY_INLINE, 4, NO_CHUNKS_REPLY + write_reply(4, len(DATA)))
    room = write_list(chunk(segment(0x22, 4096, 0x2000), segment(0x23, len(DATA) - 4096, 0xffff800000003000)))
    talk.say(True, Type.CALL_INLINE, 5, words(0x22) + read_list() + room + reply_chunk() + read_call(5, len(DATA)))
    talk.all.append(Moved(False, False, 0x22, 0x2000, DATA[:4096]))
    talk.all.append(Moved(False, False, 0x23, 0xffff800000003000, DATA[4096:]))
    talk.say(False, Type.REPLY_INLINE, 5, room + read_reply(5, len(DATA)), 0x22)
    body, answer = readdir_call(6), readdir_reply(6, NAMES)
    chunks = read_list((0, segment(0x33, len(body), 0x4000))) + read_list() + write_list()
    talk.say(True, Type.CALL_EXTERNAL, 6, words(0x34) + chunks + reply_chunk(chunk(segment(0x34, 20000, 0x8000))))
    talk.all.append(Moved(False, True, 0x33, 0x4000, body))
    talk.all.append(Moved(False, False, 0x34, 0x8000, answer))
    talk.say(False, Type.REPLY_EXTERNAL, 6, write_list() + reply_chunk(chunk(segment(0x34, len(answer), 0x8000))), 0x34)
