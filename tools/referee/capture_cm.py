"""Datagrams of InfiniBand's connection manager that set a connection up (InfiniBand Architecture, volume 1, section 12)."""

import struct
from dataclasses import dataclass

from capture_packet import CLIENT, SERVER

# Of a management datagram: base version, class of the connection manager, version of that class, method Send.
MANAGEMENT, HEADER, LENGTH = (1, 7, 2, 3), struct.Struct(">BBBBHHQHHI"), 256
REQUEST, REPLY, READY = 0x10, 0x13, 0x14
# Where things are in a request and in a reply. Starting Packet Sequence Numbers and numbers of queue pairs have 24 bits.
NUMBERS, SERVICE, GUID, REQUEST_QP, REQUEST_PSN, REQUEST_MTU, PATH = struct.Struct(">II"), 8, 16, 32, 44, 50, 52
REPLY_QP, REPLY_PSN, REPLY_GUID = 12, 20, 28
# Private data: 92 octets in a request, which begin with the addresses of IP, and 196 in a reply.
REQUEST_PRIVATE, REPLY_PRIVATE, ADDRESSES = 140, 36, struct.Struct(">BBH16s16s")
REQUEST_SPACE, REPLY_SPACE = 56, 196
# Of the RDMA IP CM service: the prefix, TCP, and NFS's port over RDMA.
SERVICE_ID, CLIENT_PORT = 0x0000000001064e51, 40000
# RDMA Reads that an end serves and begins; timeouts and retries as Linux has them; the default partition.
READS, TIMEOUTS, PARTITION, RETRIES = 16, 0xa6, 0xffff, 0xf0
TRANSACTION = 0x2d5524cc4


@dataclass(frozen=True)
class QueuePair:
    """One end of a connection: its number for the connection manager, its queue pair, and the number of the first packet that
    it wants to receive."""

    connection: int
    number: int
    first: int


@dataclass(frozen=True)
class Datagram:
    """What one says: a request, a reply or that all is ready; who says it and to whom, and the private data."""

    kind: int
    own: QueuePair
    other: int
    private: bytes
    mtu: int = 0


def parse(data: bytes) -> Datagram | None:
    """A request or a reply; nothing else matters here."""
    if len(data) < LENGTH:
        return None
    *management, _, _, _, kind, _, _ = HEADER.unpack_from(data)
    body = data[HEADER.size:]
    own, other = NUMBERS.unpack_from(body)
    if tuple(management) != MANAGEMENT or kind not in (REQUEST, REPLY):
        return None
    if kind == REQUEST:
        pair = QueuePair(own, _short(body, REQUEST_QP), _short(body, REQUEST_PSN))
        start = REQUEST_PRIVATE + ADDRESSES.size
        return Datagram(kind, pair, 0, body[start:start + REQUEST_SPACE], 128 << (body[REQUEST_MTU] >> 4))
    pair = QueuePair(own, _short(body, REPLY_QP), _short(body, REPLY_PSN))
    return Datagram(kind, pair, other, body[REPLY_PRIVATE:REPLY_PRIVATE + REPLY_SPACE])


def request(client: QueuePair, private: bytes, mtu: int) -> bytes:
    """The datagram that asks for a connection with packets of so many octets."""
    body = bytearray(REQUEST_PRIVATE)
    struct.pack_into(">IIQQ", body, 0, client.connection, 0, SERVICE_ID, _guid(CLIENT.hardware))
    struct.pack_into(">III", body, REQUEST_QP, client.number << 8 | READS, READS, TIMEOUTS & 0xf8)
    struct.pack_into(">IHBB", body, REQUEST_PSN, client.first << 8 | TIMEOUTS, PARTITION,
                     (mtu // 128).bit_length() - 1 << 4, RETRIES)
    struct.pack_into(">HH16s16s", body, PATH, 0xffff, 0xffff, _mapped(CLIENT.address.packed), _mapped(SERVER.address.packed))
    ends = (end.address.packed.rjust(16, b"\0") for end in (CLIENT, SERVER))
    addresses = ADDRESSES.pack(0, 0x40, CLIENT_PORT, *ends)
    return _datagram(REQUEST, bytes(body) + addresses + _filled(private, REQUEST_SPACE))


def reply(server: QueuePair, client: QueuePair, private: bytes) -> bytes:
    """The datagram that accepts a connection."""
    body = bytearray(REPLY_PRIVATE)
    struct.pack_into(">IIIII", body, 0, server.connection, client.connection, 0, server.number << 8, 0)
    struct.pack_into(">IBB", body, REPLY_PSN, server.first << 8, READS, READS)
    struct.pack_into(">Q", body, REPLY_GUID, _guid(SERVER.hardware))
    return _datagram(REPLY, bytes(body) + _filled(private, REPLY_SPACE))


def ready(client: QueuePair, server: QueuePair) -> bytes:
    """The datagram that says that the client is ready to use it."""
    return _datagram(READY, NUMBERS.pack(client.connection, server.connection))


def _datagram(kind: int, body: bytes) -> bytes:
    return (HEADER.pack(*MANAGEMENT, 0, 0, TRANSACTION, kind, 0, 0) + body).ljust(LENGTH, b"\0")


def _short(body: bytes, at: int) -> int:
    return int.from_bytes(body[at:at + 3], "big")


def _filled(private: bytes, space: int) -> bytes:
    if len(private) > space:
        raise ValueError(f"{len(private)} octets of private data, and room for {space}")
    return private.ljust(space, b"\0")


def _guid(hardware: bytes) -> int:
    return int.from_bytes(hardware[:3] + b"\xff\xfe" + hardware[3:], "big")


def _mapped(address: bytes) -> bytes:
    return (b"\xff\xff" + address).rjust(16, b"\0")
