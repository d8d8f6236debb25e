"""The compiler for the XDR language."""

import struct
import unittest

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


class Compiled(unittest.TestCase):
    """What a description says is encoded and decoded."""

    def both_ways(self, name: str, value: object, octets: bytes) -> None:
        out = bytearray()
        SCHEMA.codec(name).encode(value, out)
        self.assertEqual(bytes(out), octets)
        self.assertEqual(SCHEMA.codec(name).decode(octets + b"more", 0), (value, len(octets)))

    def fails(self, name: str, octets: bytes, fault: type[Exception] = Malformed) -> None:
        with self.assertRaises(fault):
            SCHEMA.codec(name).decode(octets, 0)

    def test_struct(self) -> None:
        self.both_ways("pair", {"left": 5, "right": {"number": 1 << 40}}, words(5, 256, 0))

    def test_struct_that_ends_early(self) -> None:
        for length in range(12):
            self.fails("pair", words(5, 256, 0)[:length])

    def test_linked_lists(self) -> None:
        self.both_ways("list", {"head": [7, 8], "other": [{"value": 1, "tint": 2}]}, words(1, 7, 1, 8, 0, 1, 1, 2, 0))
        self.both_ways("list", {"head": [], "other": []}, words(0, 0))

    def test_linked_list_is_as_long_as_it_may_be(self) -> None:
        self.both_ways("list", {"head": [9] * 50000, "other": []}, words(*(1, 9) * 50000, 0, 0))

    def test_word_before_an_entry_is_0_or_1(self) -> None:
        self.fails("list", words(2, 7, 0, 0))
        self.fails("maybe", words(0xffffffff, 0, 1))

    def test_linked_list_without_an_end(self) -> None:
        self.fails("list", words(1, 7))

    def test_optional(self) -> None:
        self.both_ways("maybe", {"there": None}, words(0))
        self.both_ways("maybe", {"there": {"number": 3}}, words(1, 0, 3))

    def test_counted_array(self) -> None:
        self.both_ways("counted", {"many": [{"number": 1}, {"number": 2}]}, words(2, 0, 1, 0, 2))
        self.both_ways("several", [{"number": 1}], words(1, 0, 1))
        self.fails("counted", words(3, *(0,) * 6))
        self.fails("several", words(0xffffffff, 0, 1))

    def test_opaque(self) -> None:
        self.both_ways("octets", {"data": b"abcde"}, words(5) + b"abcde\0\0\0")
        self.both_ways("octets", {"data": b""}, words(0))

    def test_opaque_that_is_too_long(self) -> None:
        self.fails("octets", words(5) + b"abcde\0\0", Overlong)
        self.fails("octets", words(0xffffffff) + b"abcd", Overlong)
        self.fails("few", words(4) + b"abcd", Overlong)

    def test_padding_may_hold_anything(self) -> None:
        self.assertEqual(SCHEMA.codec("octets").decode(words(1) + b"aXYZ", 0), ({"data": b"a"}, 8))

    def test_union(self) -> None:
        self.both_ways("choice", {"which": 1, "number": 6}, words(1, 6))
        self.both_ways("choice", {"which": 2, "number": {"number": 6}}, words(2, 0, 6))
        self.both_ways("choice", {"which": 3}, words(3))
        self.fails("choice", words(1))

    def test_union_without_a_default(self) -> None:
        self.both_ways("strict", {"which": 1}, words(1))
        self.fails("strict", words(2))

    def test_typedef_the_wrong_way_round(self) -> None:
        self.assertIs(SCHEMA.codec("shade"), SCHEMA.codec("uint32"))

    def test_faulty_descriptions(self) -> None:
        for text in ("class a {};", "struct a { uint32 b };", "struct a { uint32 b; } const", "const A = @;"):
            with self.subTest(text), self.assertRaises(Faulty):
                Schema(text, {})
        with self.assertRaises(Faulty):
            Schema("struct a { unheard b; };", {}).codec("a")


class OfTheDraft(unittest.TestCase):
    """The description in the draft, section 8."""

    def test_all_header_types_compile(self) -> None:
        for name in protocol.HEADERS.values():
            if name is not None:
                protocol.SCHEMA.codec(name)

    def test_begins_with_its_license(self) -> None:
        text = protocol.DESCRIPTION.read_text(encoding="ascii")
        self.assertTrue(text.startswith("/*\n * Copyright (c) 2010, 2020 IETF Trust"))

    def test_numbers(self) -> None:
        self.assertEqual([*protocol.HEADERS], [*range(4, 14)])
        self.assertEqual([*protocol.ERRORS], [*range(1, 12), 100])


if __name__ == "__main__":
    unittest.main()
