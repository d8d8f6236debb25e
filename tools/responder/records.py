"""An NFS server's TCP port."""

import socket
import struct

LAST_FRAGMENT = 1 << 31


class Records:
    """A connection to it, by whole records (RFC 5531, section 11)."""

    def __init__(self, server: tuple[str, int]) -> None:
        self._server = socket.create_connection(server)

    def fileno(self) -> int:
        """Readable when there is a record, or a part of one."""
        return self._server.fileno()

    def close(self) -> None:
        self._server.close()

    def send(self, record: bytes) -> None:
        self._server.sendall(struct.pack(">I", LAST_FRAGMENT | len(record)) + record)

    def receive(self) -> bytes:
        """The next one of the server."""
        record, last = b"", False
        while not last:
            mark, = struct.unpack(">I", self._exactly(4))
            last = bool(mark & LAST_FRAGMENT)
            record += self._exactly(mark & ~LAST_FRAGMENT)
        return record

    def _exactly(self, length: int) -> bytes:
        data = b""
        while len(data) < length:
            part = self._server.recv(length - len(data))
            if not part:
                raise OSError("the server has closed the connection")
            data += part
        return data
