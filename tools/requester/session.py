"""A session of NFS 4.1 or 4.2, on a connection of its own by which the server calls back (RFC 8881, section 2.10)."""

import os
import struct
from collections.abc import Callable

import nfs
import rpc
from bench import Bench
from connection import Connection
from endpoint import Received
from failure import Failure, require
from header import Header
from nfs import Operation
from rpc import Stream

EXCHANGE_ID, CREATE_SESSION, SEQUENCE = 42, 43, 53
USE_AS_BACK_CHANNEL = 2
CALLBACK_PROGRAM = 0x40000000
# Of a channel: padding, longest request and reply, longest reply that is kept, operations, requests, no RDMA reads.
FORE, BACK = (0, 1 << 20, 1 << 20, 4096, 16, 1, 0), (0, 4096, 4096, 0, 2, 1, 0)
# Where the flags are in the results of SEQUENCE: after status, tag and count of the COMPOUND, and its own number, status,
# session, number and slots.
FLAGS = 12 + 8 + 16 + 16


class Session:
    """A client that the server has not seen before."""

    def __init__(self, bench: Bench, minor: int = 1) -> None:
        self._bench, self._minor = bench, minor
        self.connection = Connection(bench.adapter)
        self._session, self._number = b"", 0
        # Of the server, with their headers.
        self._calls: list[bytes] = []
        client, number = struct.unpack_from(">QI", self._results(Operation(EXCHANGE_ID, self._owner)))
        found = self._results(Operation(CREATE_SESSION, lambda stream: stream.long(client).words(
            number, USE_AS_BACK_CHANNEL, *FORE, *BACK, CALLBACK_PROGRAM, 1, rpc.AUTH_NONE)))
        self._session = found[:16]

    def close(self) -> None:
        self.connection.close()

    def ask(self, message: bytes) -> Received:
        """Send a message; the next one that is no Call of the server."""
        self.connection.send(message)
        return self._await(lambda received: not self._keep(received.message))

    def called(self) -> bytes:
        """The next Call of the server, with its header."""
        if not self._calls:
            self._await(lambda received: self._keep(received.message))
        return self._calls.pop(0)

    def compound(self, *operations: Operation) -> nfs.Message:
        """With a SEQUENCE in front, the next of its slot. The flags that the server returns are left at 0."""
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

    def _keep(self, message: bytes) -> bool:
        """Keep a Call of the server for later; False if the message is none."""
        is_call = len(message) >= 36 and message[32:36] == bytes(4) and message[16:28] == bytes(12)
        if is_call:
            self._calls.append(message)
        return is_call

    def _await(self, is_it: Callable[[Received], bool]) -> Received:
        """The next message that is the one; others but Calls of the server must not come."""
        while not is_it(received := self.connection.receive()):
            if not self._calls:
                raise Failure(f"unexpected message: {received.message[:48].hex(' ', 4)}")
        return received
