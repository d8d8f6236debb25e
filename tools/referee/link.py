"""The link of a requester and a responder, as a capture of it: connections written into a file and read from one."""

from collections.abc import Iterable
from pathlib import Path

import capture_file
import capture_iwarp
import capture_packet
import capture_roce
from capture_connection import Connection, Incomplete, Moved, Sent

__all__ = ["Connection", "Incomplete", "Moved", "Sent", "read", "write"]


def write(path: Path, kind: str, messages: Iterable[Sent | Moved], private: tuple[bytes, bytes] = (b"", b""), mtu: int = 1024,
          cut: int | None = None) -> None:
    """Write one connection of "roce" or "iwarp", with at most `mtu` octets of a message in a packet or in a segment of DDP. On
    iWARP `cut` has segments of TCP end after so many octets, wherever that is in a frame of MPA."""
    if kind == "roce" and cut is None:
        capture_file.write(path, capture_roce.frames(messages, private, mtu))
    elif kind == "iwarp":
        capture_file.write(path, capture_iwarp.frames(messages, private, mtu, cut))
    else:
        raise ValueError(f"no such capture: {kind}, cut after {cut}")


def read(path: Path) -> list[Connection]:
    """The connections of both kinds whose set-up is in a capture; of what RDMA moves there, nothing."""
    packets = [packet for frame in capture_file.read(path) if (packet := capture_packet.parse(frame))]
    return capture_roce.connections(packets) + capture_iwarp.connections(packets)
