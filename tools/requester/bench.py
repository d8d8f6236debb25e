"""What a case works with: the connection, files on the server, and how a Reply has to look."""

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass

import nfs
import rpc
from adapter import Adapter
from connection import Connection
from endpoint import Received
from failure import Failure, require, same
from header import RDMA_MSG, RDMA_NOMSG, Chunk, Header, Segment, chunk_error, filled, words
from nfs import Message, Operation
from rpc import Stream

OURS, IN_TREE = "ours", "c"
DIRECTORY = "requester"
FILE_BYTES = 300_001
# Bytes of a message that the other server sends inline.
THRESHOLD = {OURS: 8192, IN_TREE: 4096}
# What a new connection is granted, and what it may come to be granted.
CREDITS = {OURS: 16, IN_TREE: 128}


@dataclass(frozen=True)
class File:
    """A file, or a symbolic link, on the server."""

    handle: bytes
    content: bytes


class Bench:
    """One server, seen from one client."""

    def __init__(self, address: str, server: str, first_xid: int) -> None:
        self.server = server
        self.adapter = Adapter(address)
        self.arena = self.adapter.arena
        self._xid = first_xid
        self._connection: Connection | None = None
        # Where the in-tree server is known to do something else, and the case went on with that.
        self.differences: list[str] = []

    @property
    def connection(self) -> Connection:
        """The connection of all cases that need none of their own."""
        if self._connection is not None and self._connection.is_lost:
            self._connection.close()
            self._connection = None
        if self._connection is None:
            self._connection = Connection(self.adapter)
        return self._connection

    @property
    def credits(self) -> int:
        return CREDITS[self.server]

    @property
    def threshold(self) -> int:
        return THRESHOLD[self.server]

    @property
    def is_ours(self) -> bool:
        return self.server == OURS

    @property
    def invalidates(self) -> bool:
        """Whether the server makes keys invalid, and says so: ours does not where devices do not look at them (iWARP)."""
        return not self.is_ours or self.adapter.name != "siw"

    def differs(self, why: str) -> bool:
        """Whether the server is the in-tree one, which does here what the words say."""
        if not self.is_ours and why not in self.differences:
            self.differences.append(why)
        return not self.is_ours

    def xid(self) -> int:
        self._xid = self._xid + 1 & 0xffff_ffff
        return self._xid

    def begin(self) -> None:
        """Before a case."""
        self.arena.clear()
        self.differences.clear()

    def end(self) -> None:
        """After a case: the connection of the others still works."""
        self.works()

    def abandon(self) -> None:
        """After a case that failed: answers may still come, which are not for the next."""
        self.close()
        self._connection = None

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()

    def works(self, connection: Connection | None = None) -> None:
        """Fail unless a Call is answered; the answer must be the next message to come."""
        self.exchange(nfs.null(), connection=connection)

    def ask(self, message: bytes, connection: Connection | None = None) -> Received:
        """Send a message, receive a message."""
        connection = connection or self.connection
        connection.send(message)
        return connection.receive()

    def must_answer(self, message: bytes, answer: bytes, what: str, connection: Connection | None = None) -> None:
        """Fail unless the next message to come is this one, and no memory was touched."""
        same(what, self.ask(message, connection).message, answer)
        self.arena.check()

    def must_refuse(self, message: bytes, what: str, xid: int | None = None,
                    connection: Connection | None = None) -> None:
        """Fail unless the answer is ERR_CHUNK; then the connection has to work as before."""
        number = int.from_bytes(message[:4]) if xid is None else xid
        self.must_answer(message, chunk_error(number, self.credits), what, connection)

    def must_drop(self, message: bytes, what: str) -> None:
        """Fail unless the message is not answered."""
        self.connection.send(message)
        try:
            self.works()
        except Failure as failure:
            raise Failure(f"{what} is not dropped: {failure}") from failure
        self.arena.check()

    def exchange(self, message: Message, *, reads: Sequence[tuple[int, Segment]] = (),
                 reduced: Sequence[int] = (), long: bool = False, writes: Sequence[Chunk] = (),
                 reply: Chunk | None = None, in_reply_chunk: bool = False, invalidated: int | None = None,
                 xid: int | None = None, connection: Connection | None = None) -> None:
        """Make a Call, and fail unless its Reply is, byte for byte, the one that there has to be.

        `reads` is the Read list, `reduced` the items that it takes out; with `long` it has the rest, too.
        `in_reply_chunk` says where the Reply has to be; result by result goes into chunk by chunk.
        """
        xid = self.xid() if xid is None else xid
        call = message.call(xid)
        inline = b"" if long else call.without([call.items[n] for n in reduced])
        header = Header(xid, RDMA_NOMSG if long else RDMA_MSG, reads=reads, writes=writes, reply=reply)
        received = self.ask(header.encode() + inline, connection)
        same("Reply", received.message, self.expected(xid, message.reply(xid), writes, reply, in_reply_chunk))
        self.arena.check()
        require(received.invalidated == invalidated, f"key invalidated: {received.invalidated}, not {invalidated}")

    def collect(self, connection: Connection, answers: dict[int, bytes]) -> None:
        """Fail unless these are the answers that come, by XID and in any order; the grant may have grown meanwhile."""
        while answers:
            found = connection.receive().message
            granted, most = int.from_bytes(found[8:12]), max(self.credits, 32)
            require(self.credits <= granted <= most, f"grant of {granted}")
            xid = int.from_bytes(found[:4])
            same(f"answer to {xid:#x}", found[:8] + words(self.credits) + found[12:], answers.pop(xid, b""))
        self.arena.check()

    def expected(self, xid: int, stream: Stream, writes: Sequence[Chunk], reply: Chunk | None,
                 in_reply_chunk: bool) -> bytes:
        """The message that answers a Call. The memory of its chunks has to hold the results."""
        placed = [(item, chunk) for item, chunk in zip(stream.items, writes) if chunk]
        for item, chunk in placed:
            self.arena.put(chunk, stream.data(item))
        lengths = [item.length for item in stream.items] + [0] * len(writes)
        returned = [filled(chunk, length) for chunk, length in zip(writes, lengths)]
        left = stream.without([item for item, _ in placed])
        if in_reply_chunk:
            if reply is None:
                raise Failure("the case offers no Reply chunk")
            self.arena.put(reply, left)
            return Header(xid, RDMA_NOMSG, self.credits, writes=returned, reply=filled(reply, len(left))).encode()
        reply = None if reply is None else filled(reply, 0)
        return Header(xid, RDMA_MSG, self.credits, writes=returned, reply=reply).encode() + left

    def v3(self, call, *allowed: int) -> bytes:
        """Make a Call of NFS 3 by a plain inline message; its results behind the status."""
        xid = self.xid()
        received = self.ask(Header(xid).encode() + bytes(call(xid).bytes)).message
        head = Header(xid, RDMA_MSG, self.credits).encode() + bytes(rpc.accepted(xid).bytes)
        same("beginning of the Reply", received[:len(head)], head)
        status = int.from_bytes(received[len(head):len(head) + 4])
        require(status in (nfs.OK, *allowed), f"status {status}")
        return received[len(head) + 4:]

    def handle(self, *operations: Operation) -> bytes:
        """The file handle that operations lead to."""
        xid = self.xid()
        call = nfs.compound(*operations, Operation(nfs.GETFH)).call(xid)
        found = self.ask(Header(xid).encode() + call.bytes).message
        known = Header(xid, credits=self.credits).encode()
        known += nfs.compound(*operations, Operation(nfs.GETFH)).reply(xid).bytes
        same("beginning of the Reply", found[:len(known)], known)
        return found[len(known) + 4:len(known) + 4 + int.from_bytes(found[len(known):len(known) + 4])]

    def prepare(self) -> None:
        """Make the files."""
        root = self.handle(nfs.put_root())
        self.v3(lambda xid: nfs.v3_call(xid, nfs.V3_MKDIR, lambda stream: nfs.attributes(
            nfs.name(root, DIRECTORY)(stream))), nfs.EXISTS)
        self.directory = self.handle(nfs.put_root(), nfs.lookup(DIRECTORY))
        self.file = self.make_file("file", random.Random(8166).randbytes(FILE_BYTES))
        self.target = self.make_file("target", b"")
        self.await_service()
        self.links = [self.make_link(f"link{n}", random.Random(n).randbytes(n).hex().encode()[:n])
                      for n in (5, 998, 1501)]

    def await_service(self) -> None:
        """NFS 4 does no I/O while clients may still claim what they had before the server began."""
        message = nfs.compound(nfs.put(self.file.handle), nfs.read(self.file.content, 0, 1))
        in_grace = nfs.compound(nfs.put(self.file.handle), nfs.read_failing(nfs.GRACE))
        for _ in range(60):
            xid = self.xid()
            found = self.ask(Header(xid).encode() + message.call(xid).bytes).message
            if not found.endswith(in_grace.reply(xid).bytes):
                return
            time.sleep(0.5)
        raise Failure("the server does not leave its grace period")

    def make_file(self, file: str, content: bytes) -> File:
        unchecked, truncated = 0, (1, 0o777, 0, 0, 1, 0, 0, 0, 0)
        self.v3(lambda xid: nfs.v3_call(xid, nfs.V3_CREATE, lambda stream: nfs.name(self.directory, file)(stream).words(
            unchecked, *truncated)))
        handle = self.handle(nfs.put(self.directory), nfs.lookup(file))
        for offset in range(0, len(content), 3500):
            verifier = self.v3(nfs.v3_write(handle, offset, content[offset:offset + 3500]))[-8:]
            self.verifier = verifier
        return File(handle, content)

    def make_link(self, file: str, target: bytes) -> File:
        self.remove(file)
        self.v3(nfs.v3_symlink(self.directory, file, target))
        return File(self.handle(nfs.put(self.directory), nfs.lookup(file)), target)

    def remove(self, file: str) -> None:
        self.v3(lambda xid: nfs.v3_call(xid, nfs.V3_REMOVE, nfs.name(self.directory, file)), nfs.NOT_FOUND)
