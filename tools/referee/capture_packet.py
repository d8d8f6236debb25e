"""Packets of IP in frames of Ethernet, and the addresses of the two ends that captures are written of."""

import ipaddress
import struct
from dataclasses import dataclass

TCP, UDP = 6, 17
IPV4, IPV6, VLAN = 0x0800, 0x86dd, 0x8100
ETHERNET, HEADER4, HEADER6 = struct.Struct(">6s6sH"), struct.Struct(">BBHHHBBH4s4s"), struct.Struct(">IHBB16s16s")
# Of IPv4: version and words of the header; may not be cut in pieces; hops; and what says that it is a piece.
BEGIN, WHOLE, HOPS, PIECE = 0x45, 0x4000, 64, 0x3fff


@dataclass(frozen=True)
class End:
    """Who sends: addresses of IP and of Ethernet."""

    address: ipaddress.IPv4Address
    hardware: bytes


# Of the documentation's addresses (RFC 5737).
CLIENT = End(ipaddress.IPv4Address("192.0.2.2"), bytes.fromhex("525400000002"))
SERVER = End(ipaddress.IPv4Address("192.0.2.1"), bytes.fromhex("525400000001"))


@dataclass(frozen=True)
class Packet:
    """What one end has sent to the other."""

    source: str
    target: str
    protocol: int
    body: bytes


def frame(source: End, target: End, packet: bytes) -> bytes:
    """A frame with a packet of IPv4."""
    return ETHERNET.pack(target.hardware, source.hardware, IPV4) + packet


def header(source: End, target: End, protocol: int, length: int) -> bytes:
    """The header of IPv4 in front of so many octets."""
    fields = (BEGIN, 0, HEADER4.size + length, 0, WHOLE, HOPS, protocol)
    addresses = source.address.packed, target.address.packed
    return HEADER4.pack(*fields, checksum(HEADER4.pack(*fields, 0, *addresses)), *addresses)


def checksum(data: bytes) -> int:
    """That of IP, UDP and TCP (RFC 1071)."""
    padded = data + bytes(len(data) % 2)
    total = sum(struct.unpack(f">{len(padded) // 2}H", padded))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


def parse(captured: bytes) -> Packet | None:
    """The packet in a frame, or nothing if it has none, or one in pieces, or one with headers in between."""
    if len(captured) < ETHERNET.size:
        return None
    *_, kind = ETHERNET.unpack_from(captured)
    at = ETHERNET.size
    while kind == VLAN and at + 4 <= len(captured):
        kind, = struct.unpack_from(">H", captured, at + 2)
        at += 4
    if kind == IPV4 and len(captured) >= at + HEADER4.size:
        begin, _, length, _, piece, _, protocol, _, source, target = HEADER4.unpack_from(captured, at)
        if piece & PIECE:
            return None
        body = captured[at + 4 * (begin & 15):at + length]
    elif kind == IPV6 and len(captured) >= at + HEADER6.size:
        _, length, protocol, _, source, target = HEADER6.unpack_from(captured, at)
        body = captured[at + HEADER6.size:at + HEADER6.size + length]
    else:
        return None
    return Packet(str(ipaddress.ip_address(source)), str(ipaddress.ip_address(target)), protocol, body)
