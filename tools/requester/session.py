"""A session of NFS 4.1 or 4.2, on a connection of its own (RFC 8881, section 2.10)."""

import os
import struct

import nfs
import rpc
from bench import Bench
from connection import Connection
from endpoint import Received
from failure import require
from header import Header
from nfs import Operation
from rpc import Stream

EXCHANGE_ID, CREATE_SESSION, SEQUENCE = 42, 43, 53
CALLBACK_PROGRAM = 0x40000000
# Of a channel: padding, longest request and reply, longest reply that is kept, operations, requests, no RDMA reads.
FORE, BACK = (0, 1 << 20, 1 << 20, 4096, 16, 1, 0), (0, 4096, 4096, 0, 2, 1, 0)
# What the server thinks right in the results of SEQUENCE: its highest slots, and flags. They come after status, tag and count
# of the COMPOUND, and its own number, status, session, number and slot.
FREE_PLACE, FREE_BYTES = 12 + 8 + 16 + 8, 12


class Session:
    """A client that the server has not seen before."""

    def __init__(self, bench: Bench, minor: int = 1) -> None:
        self._bench, self._minor = bench, minor
        self.connection = Connection(bench.adapter)
        self._session, self._number = b"", 0
        client, number = struct.unpack_from(">QI", self._results(Operation(EXCHANGE_ID, self._owner)))
        found = self._results(Operation(CREATE_SESSION, lambda stream: stream.long(client).words(
            number, 0, *FORE, *BACK, CALLBACK_PROGRAM, 1, rpc.AUTH_NONE)))
        self._session = found[:16]

    def close(self) -> None:
        self.connection.close()

    def ask(self, message: bytes) -> Received:
        """Send a message; the next one that comes."""
        self.connection.send(message)
        return self.connection.receive()

    def compound(self, *operations: Operation) -> nfs.Message:
        """With a SEQUENCE in front, the next of its slot. What is the server's to choose is left at 0."""
        self._number += 1
        number = self._number

        def results(stream: Stream) -> None:
            stream.bytes += self._session
            stream.words(number, 0, 0, 0, 0)

        sequence = Operation(SEQUENCE, lambda stream: self._named(stream).words(number, 0, 0, 0), results)
        return nfs.compound(sequence, *operations, minor=self._minor)

    def _owner(self, stream: Stream) -> None:
        # A verifier and a name; no flags, no protection of state, no implementation.
        stream.bytes += os.urandom(8)
        stream.opaque(b"requester" + os.urandom(8)).words(0, 0, 0)

    def _named(self, stream: Stream) -> Stream:
        stream.bytes += self._session
        return stream

    def _results(self, operation: Operation) -> bytes:
        """Those of an operation that is alone in its COMPOUND."""
        xid = self._bench.xid()
        found = self.ask(Header(xid).encode() + nfs.compound(operation, minor=self._minor).call(xid).bytes).message
        known = len(Header(xid).encode()) + len(rpc.accepted(xid).bytes)
        status, _, _, number, own = struct.unpack_from(">5I", found, known)
        require((status, number, own) == (nfs.OK, operation.number, nfs.OK), f"operation {number}: status {status}")
        return found[known + 20:]
