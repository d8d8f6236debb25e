"""A responder on a socket of its own, without a device (iWARP alone): it has a key come to be invalid that is not valid yet.

A WRITE that is longer than TCP has room for is under way to it, and it does not read: what the client has posted behind that
stays unsent, the READ, too, and what makes its key valid. The answer to that is sent all the same.
"""

import socket
import time

import iwarp
import rpc
from failure import require
from header import CREDITS_WANTED, Header, Segment, chunk_error, decode, filled, private_data, receive_size
from records import Records

PRIVATE = private_data(invalidate=True)
# Of a WRITE that is long.
LONG = 1 << 19
# How often a READ comes beside one; the last time it is answered before it is read. By the others it is known which key it has.
ROUNDS = 3
# Until the client has posted the READ, which it does a second after the WRITE, and until it has done what is to be seen.
POSTED_SECONDS, DONE_SECONDS = 6, 2
NFS3ERR_IO = 5
FORGED = b"forged!!" * 512


class Forger:
    """One connection. Its Calls are executed one at a time."""

    # Of all connections.
    rounds = 0

    def __init__(self, connection: socket.socket, server: tuple[str, int]) -> None:
        self._end = iwarp.accepted(connection, PRIVATE)
        self._threshold = receive_size(self._end.private)
        self._server = Records(server)
        self._key = 0

    def run(self) -> None:
        """Until the connection ends."""
        while True:
            offer, call = self._called()
            if sum(segment.length for _, segment in offer.reads) >= LONG and Forger.rounds < ROUNDS:
                self._beside(offer, call)
            else:
                self._reply(offer, self._executed(offer, call))

    def close(self) -> None:
        self._end.close()
        self._server.close()

    def _beside(self, write: Header, call: bytes) -> None:
        """Answer a long WRITE, and in front of it the READ that comes beside it."""
        Forger.rounds += 1
        if Forger.rounds < ROUNDS:
            answer = self._executed(write, call)
            read, _ = self._called()
            self._key = _place(read).handle
            print(f"beside {write.xid:#010x} with {write.reads[0][1].handle:#x}: {read.xid:#010x} with {self._key:#x}", flush=True)
            self._fail(read)
            self._reply(write, answer)
            return
        self._begin_reads(write)
        time.sleep(POSTED_SECONDS)
        expected = _next_xid(write.xid)
        self._fail(Header(expected), self._key + 1)
        print(f"forged beside {write.xid:#010x} with {write.reads[0][1].handle:#x}", flush=True)
        time.sleep(DONE_SECONDS)
        answer = self._execute(write, call)
        read, _ = self._called()
        place = _place(read)
        if (read.xid, place.handle) != (expected, self._key + 1):
            print(f"missed: {read.xid:#010x} with {place.handle:#x} behind {write.xid:#010x} with {self._key:#x}", flush=True)
        self._end.write(FORGED, place.handle, place.offset)
        print("written", flush=True)
        # By this the client knows that it has what was written.
        self._reply(write, answer)

    def _called(self) -> tuple[Header, bytes]:
        return decode(self._end.receive(seconds=3600).message)

    def _fail(self, offer: Header, invalidates: int | None = None) -> None:
        """Answer a READ of NFS 3 with EIO, and no attributes."""
        reply = rpc.accepted(offer.xid).words(NFS3ERR_IO, 0)
        header = Header(offer.xid, credits=CREDITS_WANTED, writes=[filled(chunk, 0) for chunk in offer.writes])
        self._end.send(header.encode() + bytes(reply.bytes), invalidates)

    def _executed(self, offer: Header, call: bytes) -> bytes:
        """The NFS server's answer to a Call, whose data are read before."""
        self._begin_reads(offer)
        return self._execute(offer, call)

    def _begin_reads(self, offer: Header) -> None:
        for _, segment in offer.reads:
            self._end.begin_read(segment.handle, segment.offset, segment.length)

    def _execute(self, offer: Header, call: bytes) -> bytes:
        """The same, when they are being read."""
        if offer.reads:
            position, data = offer.reads[0][0], self._end.end_reads()
            require({where for where, _ in offer.reads} == {position}, "several Read chunks")
            call = call[:position] + data + rpc.padding(len(data)) + call[position:]
        self._server.send(call)
        return self._server.receive()

    def _reply(self, offer: Header, message: bytes) -> None:
        """Inline, or not at all."""
        unused = [filled(chunk, 0) for chunk in offer.writes]
        header = Header(offer.xid, writes=unused, reply=offer.reply and filled(offer.reply, 0))
        whole = header.encode() + message
        self._end.send(whole if len(whole) <= self._threshold else chunk_error(offer.xid, CREDITS_WANTED))


def _next_xid(xid: int) -> int:
    """The one that a Linux client on a little-endian machine has next, which counts them without regard to the order of bytes."""
    count = int.from_bytes(xid.to_bytes(4), "little") + 1 & 0xffffffff
    return int.from_bytes(count.to_bytes(4, "little"))


def _place(read: Header) -> Segment:
    """Where the data of a READ are to go."""
    require(len(read.writes) == 1 and len(read.writes[0]) == 1, "no READ into one piece of memory")
    return read.writes[0][0]
