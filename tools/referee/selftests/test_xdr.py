"""The compiler for the XDR language."""

import struct

import pytest

import protocol
from xdr import Faulty, Malformed, Overlong, Schema

TEXT = """
/* A comment. */
const TWO = 2;
typedef shade uint32;
struct pair { uint32 left; struct wide right; };
struct wide { uint64 number; };
struct entry { uint32 value; struct entry *next; };
struct double_entry { uint32 value; shade tint; struct double_entry *next; };
struct list { struct entry *head; struct double_entry *other; };
struct maybe { struct wide *there; };
struct counted { struct wide many<TWO>; };
struct octets { opaque data<>; };
struct few { opaque data<3>; };
typedef wide several<>;
union choice switch (code which) {
    case 1: uint32 number;
    case TWO: wide number;
    default: void;
};
union strict switch (uint32 which) { case 1: void; };
"""
SCHEMA = Schema(TEXT, {"code": "uint32"})


def words(*values: int) -> bytes:
    return struct.pack(f">{len(values)}I", *values)


CODED: dict[str, tuple[str, object, bytes]] = {
    "struct": ("pair", {"left": 5, "right": {"number": 1 << 40}}, words(5, 256, 0)),
    "linked lists": ("list", {"head": [7, 8], "other": [{"value": 1, "tint": 2}]}, words(1, 7, 1, 8, 0, 1, 1, 2, 0)),
    "empty linked lists": ("list", {"head": [], "other": []}, words(0, 0)),
    "linked list is as long as it may be": ("list", {"head": [9] * 50000, "other": []}, words(*(1, 9) * 50000, 0, 0)),
    "optional, not there": ("maybe", {"there": None}, words(0)),
    "optional": ("maybe", {"there": {"number": 3}}, words(1, 0, 3)),
    "counted array": ("counted", {"many": [{"number": 1}, {"number": 2}]}, words(2, 0, 1, 0, 2)),
    "array": ("several", [{"number": 1}], words(1, 0, 1)),
    "opaque": ("octets", {"data": b"abcde"}, words(5) + b"abcde\0\0\0"),
    "opaque, empty": ("octets", {"data": b""}, words(0)),
    "union": ("choice", {"which": 1, "number": 6}, words(1, 6)),
    "union, by a constant": ("choice", {"which": 2, "number": {"number": 6}}, words(2, 0, 6)),
    "union, by default": ("choice", {"which": 3}, words(3)),
    "union without a default": ("strict", {"which": 1}, words(1))}
NOT_DECODED: dict[str, tuple[str, bytes, type[Exception]]] = {
    **{f"struct that ends after {length}": ("pair", words(5, 256, 0)[:length], Malformed) for length in range(12)},
    "word before an entry is 0 or 1": ("list", words(2, 7, 0, 0), Malformed),
    "word before what is optional is 0 or 1": ("maybe", words(0xffffffff, 0, 1), Malformed),
    "linked list without an end": ("list", words(1, 7), Malformed),
    "counted array of too many": ("counted", words(3, *(0,) * 6), Malformed),
    "array that ends early": ("several", words(0xffffffff, 0, 1), Malformed),
    "opaque that lacks padding": ("octets", words(5) + b"abcde\0\0", Overlong),
    "opaque that ends early": ("octets", words(0xffffffff) + b"abcd", Overlong),
    "opaque that is too long": ("few", words(4) + b"abcd", Overlong),
    "union that ends early": ("choice", words(1), Malformed),
    "union of another value": ("strict", words(2), Malformed)}


@pytest.mark.parametrize(("name", "value", "octets"), CODED.values(), ids=CODED)
def test_both_ways(name: str, value: object, octets: bytes) -> None:
    """What a description says is encoded and decoded."""
    out = bytearray()
    SCHEMA.codec(name).encode(value, out)
    assert bytes(out) == octets
    assert SCHEMA.codec(name).decode(octets + b"more", 0) == (value, len(octets))


@pytest.mark.parametrize(("name", "octets", "fault"), NOT_DECODED.values(), ids=NOT_DECODED)
def test_not_decoded(name: str, octets: bytes, fault: type[Exception]) -> None:
    with pytest.raises(fault):
        SCHEMA.codec(name).decode(octets, 0)


def test_padding_may_hold_anything() -> None:
    assert SCHEMA.codec("octets").decode(words(1) + b"aXYZ", 0) == ({"data": b"a"}, 8)


def test_typedef_the_wrong_way_round() -> None:
    assert SCHEMA.codec("shade") is SCHEMA.codec("uint32")


@pytest.mark.parametrize("text", ["class a {};", "struct a { uint32 b };", "struct a { uint32 b; } const", "const A = @;"])
def test_faulty_descriptions(text: str) -> None:
    with pytest.raises(Faulty):
        Schema(text, {})


def test_type_that_is_not_described() -> None:
    with pytest.raises(Faulty):
        Schema("struct a { unheard b; };", {}).codec("a")


@pytest.mark.parametrize("name", filter(None, protocol.HEADERS.values()))
def test_all_header_types_compile(name: str) -> None:
    """Of the draft, section 8."""
    protocol.SCHEMA.codec(name)


def test_begins_with_its_license() -> None:
    assert protocol.DESCRIPTION.read_text(encoding="ascii").startswith("/*\n * Copyright (c) 2010, 2020 IETF Trust")


def test_numbers() -> None:
    assert [*protocol.HEADERS] == [*range(4, 14)] and [*protocol.ERRORS] == [*range(1, 12), 100]
