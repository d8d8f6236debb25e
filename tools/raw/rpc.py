"""RPC messages (RFC 5531), and where the data items are that may be reduced."""

from dataclasses import dataclass

from header import words

CALL, REPLY = 0, 1
AUTH_NONE, AUTH_SYS = 0, 1


def padding(length: int) -> bytes:
    """What XDR puts behind so many bytes."""
    return bytes(-length % 4)


@dataclass(frozen=True)
class Item:
    """A data item that may be placed directly: where it is in the stream that nothing is taken out of."""

    position: int
    length: int


class Stream:
    """XDR being written."""

    def __init__(self, *values: int) -> None:
        self.bytes = bytearray()
        self.items: list[Item] = []
        self.words(*values)

    def words(self, *values: int) -> "Stream":
        self.bytes += words(*values)
        return self

    def long(self, value: int) -> "Stream":
        return self.words(value >> 32, value & 0xffffffff)

    def opaque(self, data: bytes) -> "Stream":
        """Of variable length."""
        self.words(len(data))
        self.bytes += data + padding(len(data))
        return self

    def item(self, data: bytes) -> "Stream":
        """The same, and may be reduced."""
        self.items.append(Item(len(self.bytes) + 4, len(data)))
        return self.opaque(data)

    def data(self, item: Item) -> bytes:
        return bytes(self.bytes[item.position:item.position + item.length])

    def without(self, items: list[Item]) -> bytes:
        """What is left when items are taken out, with their padding (RFC 8166, section 3.4.4.4)."""
        left, at = b"", 0
        for item in items:
            left += self.bytes[at:item.position]
            at = item.position + item.length + -item.length % 4
        return left + bytes(self.bytes[at:])


def call(xid: int, program: int, version: int, procedure: int) -> Stream:
    """A Call, up to its arguments, of root."""
    credential = Stream(0).opaque(b"requester").words(0, 0, 0)
    stream = Stream(xid, CALL, 2, program, version, procedure, AUTH_SYS)
    return stream.opaque(bytes(credential.bytes)).words(AUTH_NONE, 0)


def accepted(xid: int, status: int = 0) -> Stream:
    """The Reply to a Call that was executed, up to the results; or that says why it was not."""
    return Stream(xid, REPLY, 0, AUTH_NONE, 0, status)
