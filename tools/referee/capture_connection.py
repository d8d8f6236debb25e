"""A connection as a capture has it: the Sends of both ends in the order of the wire, and what each end said at set-up."""

from dataclasses import dataclass, field


class Incomplete(Exception):
    """A capture lacks something that was on the wire."""


@dataclass(frozen=True)
class Sent:
    """The message of one Send, whole, and the key of the receiver's that it makes invalid."""

    by_client: bool
    message: bytes
    invalidates: int | None = None


@dataclass(frozen=True)
class Moved:
    """The octets of an RDMA Read or Write that one end begins, and where in the other's memory they are."""

    by_client: bool
    read: bool
    handle: int
    address: int
    data: bytes


@dataclass
class Connection:
    """What two ends have sent; the private data of the client and of the server as they arrive: the connection manager of
    InfiniBand tells no length, so zeros follow there, to 56 and 196 octets."""

    name: str
    messages: list[Sent] = field(default_factory=list)
    private: tuple[bytes, bytes] = (b"", b"")
