"""Files of captured Ethernet frames: pcap is read and written, pcapng is read."""

import struct
from collections.abc import Iterable, Iterator
from pathlib import Path

ETHERNET, SNAPSHOT = 1, 262144
# Of pcap: the file's header, with the size of a frame that is kept and the kind of link; and a frame's header: when it was
# seen, how much of it was kept, how long it was.
MAGIC, MAGIC_NANOSECONDS, VERSION = 0xa1b2c3d4, 0xa1b23c4d, (2, 4)
HEADER, RECORD = "IHHiIII", "IIII"
# Of pcapng: the blocks that begin a section, describe an interface, and have a frame each; and what tells the order of octets.
SECTION, INTERFACE, SIMPLE, ENHANCED = 0x0a0d0d0a, 1, 3, 6
ORDER = 0x1a2b3c4d
# Between two frames that are written.
MICROSECONDS = 100


def write(path: Path, frames: Iterable[bytes]) -> None:
    """Write frames, at equal distances in time."""
    parts = [struct.pack("<" + HEADER, MAGIC, *VERSION, 0, 0, SNAPSHOT, ETHERNET)]
    for number, frame in enumerate(frames):
        seconds, microseconds = divmod(number * MICROSECONDS, 1_000_000)
        parts += [struct.pack("<" + RECORD, seconds, microseconds, len(frame), len(frame)), frame]
    path.write_bytes(b"".join(parts))


def read(path: Path) -> Iterator[bytes]:
    """The frames of a file; a file that ends within one ends in front of it, as it does when the capture is stopped."""
    data = path.read_bytes()
    return _pcapng(data) if data[:4] == struct.pack("<I", SECTION) else _pcap(data)


def _pcap(data: bytes) -> Iterator[bytes]:
    order = next((order for order in "<>" if data[:4] in (struct.pack(order + "I", MAGIC),
                                                        struct.pack(order + "I", MAGIC_NANOSECONDS))), None)
    if order is None:
        raise ValueError("neither pcap nor pcapng")
    *_, kind = struct.unpack_from(order + HEADER, data)
    _must_be_ethernet(kind)
    at, record = struct.calcsize(order + HEADER), struct.Struct(order + RECORD)
    while at + record.size <= len(data):
        _, _, kept, _ = record.unpack_from(data, at)
        at += record.size + kept
        if at <= len(data):
            yield data[at - kept:at]


def _pcapng(data: bytes) -> Iterator[bytes]:
    at, order = 0, "<"
    while at + 12 <= len(data):
        if data[at:at + 4] == struct.pack("<I", SECTION):
            order = "<" if struct.unpack_from("<I", data, at + 8) == (ORDER,) else ">"
        kind, length = struct.unpack_from(order + "II", data, at)
        body = data[at + 8:at + length - 4]
        at += max(length, 12)
        if at > len(data):
            return
        if kind == INTERFACE:
            _must_be_ethernet(*struct.unpack_from(order + "H", body))
        elif kind == ENHANCED:
            kept, = struct.unpack_from(order + "I", body, 12)
            yield body[20:20 + kept]
        elif kind == SIMPLE:
            original, = struct.unpack_from(order + "I", body)
            yield body[4:4 + original]


def _must_be_ethernet(kind: int) -> None:
    if kind != ETHERNET:
        raise ValueError(f"frames of link type {kind}, not of Ethernet")
