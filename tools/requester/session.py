"""A session of NFS 4.1 or 4.2, on a connection of its own by which the server calls back (RFC 8881, section 2.10)."""

import os
import struct
from dataclasses import dataclass

import nfs
import rpc
from bench import Bench
from connection import Connection
from endpoint import Received
from failure import require, same
from header import Header, words
from nfs import Operation
from rpc import Stream

CLOSE, DELEGRETURN, LOCK, LOCKU, OPEN = 4, 8, 12, 14, 18
EXCHANGE_ID, CREATE_SESSION, DESTROY_SESSION, SEQUENCE, DESTROY_CLIENTID, RECLAIM_COMPLETE = 42, 43, 44, 53, 57, 58
USE_AS_BACK_CHANNEL = 2
CALLBACK_PROGRAM, CB_COMPOUND, CB_RECALL, CB_SEQUENCE = 0x40000000, 1, 4, 11
# Credits that a server asks for, for its Calls.
CALLS = 2
# Of a channel: padding, longest request and reply, longest reply that is kept, operations, requests, no RDMA reads.
FORE, BACK = (0, 1 << 20, 1 << 20, 4096, 64, 1, 0), (0, 4096, 4096, 0, 2, CALLS, 0)
# What the server thinks right in the results of SEQUENCE: its highest slots, and flags. They come after status, tag and
# count of the COMPOUND, and its own number, status, session, number and slot.
FREE_PLACE, FREE_BYTES = 12 + 8 + 16 + 8, 12
READ_WITH_DELEGATION, BOTH_WITHOUT, NO_CREATE, CLAIM_FH, DELEGATED_TO_READ = 0x101, 0x403, 0, 4, 1
# Of a lock that its owner waits for; and what the server says when another has it.
WRITE_WAITING, DENIED = 4, 10010
# Of the results of OPEN: the state, and where the attributes are, behind the change of the directory and flags.
STATE_BYTES, ATTRIBUTES = 16, 16 + 20 + 4


@dataclass(frozen=True)
class Delegation:
    """A file that is delegated to be read."""

    handle: bytes
    state: bytes


@dataclass(frozen=True)
class Lock:
    """On a whole file."""

    handle: bytes
    state: bytes


@dataclass(frozen=True)
class Recall:
    """A Call of the server that wants a delegation back."""

    xid: int
    # What of CB_SEQUENCE comes back in the Reply.
    session: bytes
    number: int
    slot: int
    highest: int

    def reply(self, tag: bytes = b"") -> bytes:
        """What the client says that does so."""
        stream = rpc.accepted(self.xid).words(nfs.OK).opaque(tag).words(2, CB_SEQUENCE, nfs.OK)
        stream.bytes += self.session
        return bytes(stream.words(self.number, self.slot, self.highest, self.highest, CB_RECALL, nfs.OK).bytes)


class Session:
    """A client that the server has not seen before."""

    def __init__(self, bench: Bench, minor: int = 1, connection: Connection | None = None) -> None:
        self._bench, self._minor = bench, minor
        self.connection = connection or Connection(bench.adapter)
        self._session, self._number = b"", 0
        # Of the server's next Call, by its slot.
        self._numbers: dict[int, int] = {}
        self._client, number = struct.unpack_from(">QI", self._results_alone(Operation(EXCHANGE_ID, self._owner)))
        found = self._results_alone(Operation(CREATE_SESSION, lambda stream: stream.long(self._client).words(
            number, USE_AS_BACK_CHANNEL, *FORE, *BACK, CALLBACK_PROGRAM, 1, rpc.AUTH_NONE)))
        self._session = found[:16]
        self._results(Operation(RECLAIM_COMPLETE, lambda stream: stream.words(0)))

    def close(self) -> None:
        """Have the server forget it."""
        self._results_alone(Operation(DESTROY_SESSION, self._named))
        self._results_alone(Operation(DESTROY_CLIENTID, lambda stream: stream.long(self._client)))
        self.connection.close()

    def ask(self, message: bytes) -> Received:
        """Send a message; the next one that comes."""
        self.connection.send(message)
        return self.connection.receive()

    def answer_to(self, xid: int, call: bytes) -> bytes:
        """Make a Call; the RPC message that answers it."""
        header = Header(xid).encode()
        found = self.ask(header + call).message
        # The third word is the grant.
        same("header of the Reply", found[:8] + header[8:12] + found[12:len(header)], header)
        return found[len(header):]

    def next_call(self) -> tuple[int, bytes]:
        """Fail unless the next message to come is a Call; its XID, and the RPC message."""
        found = self.connection.receive().message
        xid = int.from_bytes(found[:4])
        header = Header(xid, credits=CALLS).encode()
        same("header of a Call of the server", found[:len(header)], header)
        return xid, found[len(header):]

    def compound(self, *operations: Operation) -> nfs.Message:
        """With a SEQUENCE in front, the next of its slot. What is the server's to choose is left at 0."""
        self._number += 1
        number = self._number

        def results(stream: Stream) -> None:
            self._named(stream).words(number, 0, 0, 0, 0)

        sequence = Operation(SEQUENCE, lambda stream: self._named(stream).words(number, 0, 0, 0), results)
        return nfs.compound(sequence, *operations, minor=self._minor)

    def delegated(self, handle: bytes) -> Delegation | None:
        """A file that is not open, but delegated; None if the server did not like to."""
        found = self._results(nfs.put(handle), Operation(OPEN, lambda stream: stream.words(
            0, READ_WITH_DELEGATION, 0).long(self._client).opaque(b"owner").words(NO_CREATE, CLAIM_FH)))
        state = found[:STATE_BYTES]
        behind = ATTRIBUTES + 4 + 4 * int.from_bytes(found[ATTRIBUTES:ATTRIBUTES + 4])
        kind, delegation = int.from_bytes(found[behind:behind + 4]), found[behind + 4:behind + 4 + STATE_BYTES]
        self._results(nfs.put(handle), _with_state(CLOSE, state, 0))
        return Delegation(handle, delegation) if kind == DELEGATED_TO_READ else None

    def give_back(self, delegation: Delegation) -> None:
        self._results(nfs.put(delegation.handle), _with_state(DELEGRETURN, delegation.state))

    def lock(self, handle: bytes, owner: bytes) -> Lock | None:
        """A lock for an owner of that name; None if another has one, and the server will tell when it is free."""
        opened = self._results(nfs.put(handle), Operation(OPEN, lambda stream: stream.words(
            0, BOTH_WITHOUT, 0).long(self._client).opaque(b"owner").words(NO_CREATE, CLAIM_FH)))[:STATE_BYTES]

        def arguments(stream: Stream) -> None:
            stream.words(WRITE_WAITING, 0).long(0).long((1 << 64) - 1).words(1, 0)
            stream.bytes += opened
            stream.words(0).long(self._client).opaque(owner)

        operations, xid = (nfs.put(handle), Operation(LOCK, arguments)), self._bench.xid()
        message = self.compound(*operations)
        found = self.answer_to(xid, bytes(message.call(xid).bytes))
        known = len(message.reply(xid).bytes)
        status = int.from_bytes(found[known - 4:known])
        require(status in (nfs.OK, DENIED), f"LOCK has status {status}")
        return Lock(handle, found[known:known + STATE_BYTES]) if status == nfs.OK else None

    def unlock(self, lock: Lock) -> None:
        def arguments(stream: Stream) -> None:
            stream.words(WRITE_WAITING, 0).bytes += lock.state
            stream.long(0).long((1 << 64) - 1)

        self._results(nfs.put(lock.handle), Operation(LOCKU, arguments))

    def recalled(self, delegation: Delegation) -> Recall:
        """Fail unless the next message to come is, to the byte, a Call that wants this back, with the number to which the
        answers before have brought its slot."""
        xid, found = self.next_call()
        stream = Stream(xid, rpc.CALL, 2, CALLBACK_PROGRAM, 1, CB_COMPOUND, rpc.AUTH_NONE, 0, rpc.AUTH_NONE, 0)
        stream.words(0, self._minor, 0, 2, CB_SEQUENCE)
        chosen = len(self._named(stream).bytes)
        # The server's to choose.
        slot, highest = struct.unpack_from(">2I", found.ljust(chosen + 12, b"\0"), chosen + 4)
        recall = Recall(xid, self._session, self._numbers.setdefault(slot, 1), slot, highest)
        stream.words(recall.number, slot, highest, 0, 0, CB_RECALL)
        stream.bytes += delegation.state
        same("Call of the server", found, bytes(stream.words(0).opaque(delegation.handle).bytes))
        return recall

    def answer(self, recall: Recall, credits: int = CALLS) -> None:
        """As a client does that is about to give the file back."""
        self.connection.send(Header(recall.xid, credits=credits).encode() + recall.reply())
        self.answered(recall)

    def answered(self, recall: Recall) -> None:
        """The server's next Call with this slot has the next number."""
        self._numbers[recall.slot] = recall.number + 1

    def _owner(self, stream: Stream) -> None:
        # A verifier and a name; no flags, no protection of state, no implementation.
        stream.bytes += os.urandom(8)
        stream.opaque(b"requester" + os.urandom(8)).words(0, 0, 0)

    def _named(self, stream: Stream) -> Stream:
        stream.bytes += self._session
        return stream

    def _results(self, *operations: Operation) -> bytes:
        """Those of the last of these operations; the others have none."""
        return self._last_results(self.compound(*operations), operations[-1])

    def _results_alone(self, operation: Operation) -> bytes:
        """Those of one that needs no session."""
        return self._last_results(nfs.compound(operation, minor=self._minor), operation)

    def _last_results(self, message: nfs.Message, last: Operation) -> bytes:
        xid = self._bench.xid()
        found = self.answer_to(xid, bytes(message.call(xid).bytes))
        status = len(rpc.accepted(xid).bytes)
        known = len(message.reply(xid).bytes)
        same(f"status and results of operation {last.number}", found[status:status + 4] + found[known - 8:known],
             words(nfs.OK, last.number, nfs.OK))
        return found[known:]


def _with_state(number: int, state: bytes, *before: int) -> Operation:
    """An operation on a state, with these words in front of it."""
    def arguments(stream: Stream) -> None:
        stream.words(*before).bytes += state

    return Operation(number, arguments)
