"""NFS: the Calls that the cases make, and the Replies that have to come, to the byte."""

from collections.abc import Callable
from dataclasses import dataclass

import rpc
from rpc import Stream

NFS, NFS_ACL = 100003, 100227
OK, NOT_FOUND, EXISTS, IS_DIRECTORY, JUKEBOX, GRACE = 0, 2, 17, 21, 10008, 10013
V3_NULL, V3_GETATTR, V3_READLINK, V3_READ, V3_WRITE, V3_CREATE, V3_MKDIR, V3_SYMLINK, V3_REMOVE, V3_RMDIR = (
    0, 1, 5, 6, 7, 8, 9, 10, 12, 13)
GETFH, LOOKUP, PUTFH, PUTROOTFH, READ, READLINK, WRITE, READ_PLUS = 10, 15, 22, 24, 25, 27, 38, 68
FILE_SYNC = 2
# For READ and WRITE without OPEN (RFC 7530, section 9.1.4.3).
ANONYMOUS = (0, 0, 0, 0)


@dataclass(frozen=True)
class Message:
    """A Call, and its Reply."""

    call: Callable[[int], Stream]
    reply: Callable[[int], Stream]


@dataclass(frozen=True)
class Operation:
    """One operation of a COMPOUND."""

    number: int
    arguments: Callable[[Stream], object] = lambda stream: None
    results: Callable[[Stream], object] = lambda stream: None
    status: int = OK


def put_root() -> Operation:
    return Operation(PUTROOTFH)


def put(handle: bytes) -> Operation:
    return Operation(PUTFH, lambda stream: stream.opaque(handle))


def lookup(name: str, status: int = OK) -> Operation:
    # A name is no item that may be reduced, but a case may try.
    return Operation(LOOKUP, lambda stream: stream.item(name.encode()), status=status)


def read(content: bytes, offset: int, count: int) -> Operation:
    """Of a file with this content."""
    data = content[offset:offset + count]
    return Operation(READ, lambda stream: stream.words(*ANONYMOUS).long(offset).words(count),
                     lambda stream: stream.words(offset + len(data) >= len(content)).item(data))


def read_plus(content: bytes, offset: int, count: int) -> Operation:
    """Of NFS 4.2: one segment of data, which is not the end of the file."""
    data = content[offset:offset + count]
    return Operation(READ_PLUS, lambda stream: stream.words(*ANONYMOUS).long(offset).words(count),
                     lambda stream: stream.words(0, 1, 0).long(offset).opaque(data))


def read_failing(status: int) -> Operation:
    return Operation(READ, lambda stream: stream.words(*ANONYMOUS).long(0).words(1000), status=status)


def readlink(target: bytes) -> Operation:
    return Operation(READLINK, results=lambda stream: stream.item(target))


def write(offset: int, data: bytes, verifier: bytes) -> Operation:
    def results(stream: Stream) -> None:
        stream.words(len(data), FILE_SYNC)
        stream.bytes += verifier

    return Operation(WRITE, lambda stream: stream.words(*ANONYMOUS).long(offset).words(FILE_SYNC).item(data), results)


def compound(*operations: Operation, minor: int = 0) -> Message:
    """Of NFS 4. An operation that fails has to be the last that has a result."""
    def call(xid: int) -> Stream:
        stream = rpc.call(xid, NFS, 4, 1).words(0, minor, len(operations))
        for operation in operations:
            operation.arguments(stream.words(operation.number))
        return stream

    def reply(xid: int) -> Stream:
        failed = next((n for n, operation in enumerate(operations) if operation.status), len(operations) - 1)
        done = operations[:failed + 1]
        stream = rpc.accepted(xid).words(done[-1].status if done else OK, 0, len(done))
        for operation in done:
            stream.words(operation.number, operation.status)
            if operation.status == OK:
                operation.results(stream)
        return stream

    return Message(call, reply)


def null(version: int = 3) -> Message:
    return Message(lambda xid: rpc.call(xid, NFS, version, 0), rpc.accepted)


def v3_call(xid: int, procedure: int, arguments: Callable[[Stream], object]) -> Stream:
    stream = rpc.call(xid, NFS, 3, procedure)
    arguments(stream)
    return stream


def name(directory: bytes, file: str) -> Callable[[Stream], Stream]:
    """What many procedures of NFS 3 begin with."""
    return lambda stream: stream.opaque(directory).opaque(file.encode())


def attributes(stream: Stream) -> Stream:
    """To be set: the mode, and nothing else."""
    return stream.words(1, 0o777, 0, 0, 0, 0, 0)


def v3_read(handle: bytes, offset: int, count: int) -> Callable[[int], Stream]:
    return lambda xid: v3_call(xid, V3_READ, lambda stream: stream.opaque(handle).long(offset).words(count))


def v3_write(handle: bytes, offset: int, data: bytes) -> Callable[[int], Stream]:
    return lambda xid: v3_call(xid, V3_WRITE, lambda stream: stream.opaque(handle).long(offset).words(
        len(data), FILE_SYNC).item(data))


def v3_symlink(directory: bytes, file: str, target: bytes) -> Callable[[int], Stream]:
    return lambda xid: v3_call(xid, V3_SYMLINK, lambda stream: attributes(name(directory, file)(stream)).item(target))
